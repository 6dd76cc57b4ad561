// Stretches of a tape that a device recorded once and launches as a whole from then on.
#ifndef WEIR_CORE_EXECUTE_CAPTURES_INTERNAL_H_
#define WEIR_CORE_EXECUTE_CAPTURES_INTERNAL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/device/stream.h"
#include "core/plan/plan.h"

namespace weir::execute {

/// The stretches of a plan that can be recorded: kernels of one stream behind each other, all of which promise that
/// what they enqueue depends on their addresses alone (WEIR_KERNEL_CAPTURABLE), on a device that records. Feeds and
/// fetches lie outside: they are copied to and from places that stay the same. A stretch is recorded when it runs for
/// the third time, and again if its addresses have changed since, as those of a variable with a new value may.
/// Single-threaded.
class Captures {
 public:
  struct Stretch {
    uint32_t begin = 0;  // instructions
    uint32_t end = 0;
    plan::StreamId stream;
    uint32_t runs = 0;     // with these addresses, until it is recorded
    uint32_t changes = 0;  // of the addresses, after it was recorded
    std::vector<std::pair<uint64_t, uint64_t>> addresses;  // by slot: data and handle, when it was recorded
    std::shared_ptr<const device::Captured> recorded;
  };
  /// What to do with a stretch that is about to run.
  enum class Way : uint8_t { kRun, kRecord, kLaunch };

  explicit Captures(const plan::ExecutionPlan& plan);
  /// The stretch that begins at an instruction; null if none does.
  Stretch* At(uint32_t instruction) {
    if (stretches_.empty()) return nullptr;
    const uint32_t at = by_begin_[instruction];
    return at == kNone ? nullptr : &stretches_[at];
  }
  Way Next(Stretch& stretch, std::span<const weir_reg> registers);
  /// Keeps what the device recorded; null: the device cannot record this, and is not asked again.
  void Recorded(Stretch& stretch, std::span<const weir_reg> registers,
                std::shared_ptr<const device::Captured> recorded);
  /// No work of an earlier run is on its way.
  void Begin() { retired_.clear(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  std::span<const weir_reg> SlotsOf(const Stretch& stretch, std::span<const weir_reg> registers) const;

  const plan::ExecutionPlan& plan_;
  std::vector<Stretch> stretches_;
  std::vector<uint32_t> by_begin_;  // by instruction; empty without stretches
  std::vector<std::shared_ptr<const device::Captured>> retired_;  // may still run
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_CAPTURES_INTERNAL_H_
