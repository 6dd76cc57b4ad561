// List schedules: one greedy pass that gives every task the device where it finishes first.
#ifndef WEIR_CORE_PLACE_LIST_SCHEDULE_H_
#define WEIR_CORE_PLACE_LIST_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "core/place/problem.h"

namespace weir::place {

struct ListOptions {
  enum class Order : uint8_t {
    kRank,       // falling upward rank (HEFT: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002)
    kReadyTime,  // as a simulation from the sources meets them (TensorFlow white paper, 2015, section 3.2.1)
  };
  /// A deferrable task goes where its first consumer goes.
  enum class Deferral : uint8_t {
    kNone,
    kBefore,  // and takes its time before it, which counts to the consumer's rank
    kBeside,  // and starts with it, as if the device ran both at once: the rule of the published tables, which believes
              // in less time than a run takes
  };
  Order order = Order::kRank;
  Deferral deferral = Deferral::kBefore;
  bool reserve_links = true;  // transfers over one link wait for each other
  int max_gaps = 64;          // gaps looked at between tasks placed before; 0 = only behind the last
};

/// Where and when the pass put each task. Times are those of the pass; Simulate gives those of a run.
struct Schedule {
  std::vector<int> device_of;
  std::vector<int64_t> start_ns, finish_ns;
  int64_t makespan_ns = 0;
};

/// The first member of a group decides for all. A device whose memory would overflow is passed over while another has
/// room. Ties go to the lower device. `ranks` are UpwardRanks. O(uses * devices + tasks * devices * max_gaps).
Schedule ListSchedule(const Problem& problem, const ListOptions& options, const std::vector<int64_t>& ranks);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_LIST_SCHEDULE_H_
