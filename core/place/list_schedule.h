// List scheduling: a greedy pass that gives each task the device with the earliest finish time.
#ifndef WEIR_CORE_PLACE_LIST_SCHEDULE_H_
#define WEIR_CORE_PLACE_LIST_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "core/place/problem.h"

namespace weir::place {

/// A time for each task on each device.
using TaskTable = IndexedTable<TaskId, DeviceId, int64_t>;

struct ListOptions {
  enum class Order : uint8_t {
    kRank,       // descending upward rank (HEFT: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002)
    kReadyTime,  // in the order of a simulation from the sources (TensorFlow white paper, 2015, section 3.2.1)
    kReadyRank,  // ready tasks by descending rank, for ranks that may be lower before than after
  };
  /// A deferrable task is placed with its first consumer.
  enum class Deferral : uint8_t {
    kNone,
    kBefore,  // runs before it; its time counts in the consumer's rank
    kBeside,  // starts together with it, as if the device ran both at once: the rule of the published tables, which
              // underestimates the time of a run
  };
  Order order = Order::kRank;
  Deferral deferral = Deferral::kBefore;
  bool reserve_links = true;  // transfers over one link are serialized
  int max_gaps = 64;          // limit on gaps tried between placed tasks; 0 = append only
  /// Added to finish times when devices are compared, from OptimisticCosts. Null = nothing.
  const TaskTable* ahead_ns = nullptr;
  /// Number of consumers whose earliest ends count when devices are compared (Bittencourt, Sakellariou, Madeira, 2010);
  /// without `ahead_ns`.
  int children = 0;
};

/// The device and times of each task. Times are those of the pass; Simulate gives those of a run.
struct Schedule {
  std::vector<int> device_of;
  std::vector<int64_t> start_ns, finish_ns;
  int64_t makespan_ns = 0;
};

/// The optimistic cost table: the longest time from the end of a task on a device to the end
/// of the step, with each later task on its best device (PEFT: Arabnejad, Barbosa, IEEE TPDS 25(3), 2014). O(uses *
/// devices * devices).
TaskTable OptimisticCosts(const Problem& problem);
/// By task: the mean over its allowed devices.
std::vector<int64_t> MeanOver(const Problem& problem, const TaskTable& by_device);

/// The first visited member of a group decides for all. Devices whose memory would overflow are skipped while another
/// has room. Ties go to the lower device. `ranks` come from UpwardRanks. O(uses * devices + tasks * devices *
/// max_gaps).
Schedule ListSchedule(const Problem& problem, const ListOptions& options, const std::vector<int64_t>& ranks);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_LIST_SCHEDULE_H_
