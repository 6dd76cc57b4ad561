// Transfers between plans that run together in one process.
#ifndef WEIR_CORE_EXECUTE_LINKS_H_
#define WEIR_CORE_EXECUTE_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace weir::execute {

/// The iteration in which a transfer happens: that of the innermost loop, and a hash of those around it. {0, 0} outside
/// loops.
struct Occurrence {
  uint64_t around = 0;
  int64_t number = 0;
  bool operator==(const Occurrence&) const = default;
};

/// `numbers`: of the loops around a transfer, outermost first.
Occurrence OccurrenceOf(std::span<const int64_t> numbers);

/// What a link that lends carries: where the sender has the value.
struct Loan {
  weir_reg memory{};
  bool dead = false;
};

/// Numbers for the transfers whose two ends are in the given plans, so that no run compares keys. A transfer is linked
/// if its key names one kSend and one kRecv, both in loops of the same names. Immutable.
class Links {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Link {
    uint32_t send_part, send_transfer;
    uint32_t recv_part, recv_transfer;
    /// The receiver may use the sender's memory in place: the run of both keeps it, and only kernels read it there.
    bool lends = false;
  };

  explicit Links(std::span<const plan::ExecutionPlan* const> plans);

  const std::vector<Link>& all() const { return links_; }
  /// By transfer of a plan: its link, or kNone.
  std::span<const uint32_t> Of(size_t part) const { return of_[part]; }

 private:
  std::vector<Link> links_;
  std::vector<std::vector<uint32_t>> of_;
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_LINKS_H_
