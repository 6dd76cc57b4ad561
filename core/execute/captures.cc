#include "core/execute/captures_internal.h"

#include <algorithm>

namespace weir::execute {
namespace {

using plan::Instruction;

constexpr uint32_t kRecordAt = 3;  // a plan that runs once or twice does not repay it
constexpr uint32_t kLeastKernels = 2;
constexpr uint32_t kMostChanges = 8;  // a stretch whose addresses change more often runs unrecorded

bool CanRecord(const plan::ExecutionPlan& plan, const Instruction& instruction) {
  if (instruction.opcode != plan::Opcode::kStreamKernel || !instruction.stream.valid()) return false;
  if ((plan.kernels[instruction.detail]->flags() & WEIR_KERNEL_CAPTURABLE) == 0) return false;
  return (plan.DeviceOf(instruction).info().flags & WEIR_DEVICE_GRAPH_CAPTURE) != 0;
}

}  // namespace

Captures::Captures(const plan::ExecutionPlan& plan) : plan_(plan) {
  if (plan.streams.empty() || plan.tier != plan::Tier::kT0) return;
  std::vector<bool> entered(plan.instructions.size() + 1, false);  // by a jump
  for (const plan::Jump& jump : plan.jumps) entered[jump.target] = true;
  const auto count = static_cast<uint32_t>(plan.instructions.size());
  for (uint32_t begin = 0, end = 0; begin < count; begin = std::max(end, begin + 1)) {
    end = begin;
    const Instruction& first = plan.instructions[begin];
    while (end < count && CanRecord(plan, plan.instructions[end]) && plan.instructions[end].stream == first.stream &&
           (end == begin || !entered[end])) {
      ++end;
    }
    if (end - begin < kLeastKernels) continue;
    if (by_begin_.empty()) by_begin_.assign(count, kNone);
    by_begin_[begin] = static_cast<uint32_t>(stretches_.size());
    Stretch& made = stretches_.emplace_back();
    made.begin = begin;
    made.end = end;
    made.stream = first.stream;
  }
}

std::span<const weir_reg> Captures::SlotsOf(const Stretch& stretch, std::span<const weir_reg> registers) const {
  const uint32_t first = plan_.instructions[stretch.begin].first_slot;
  const size_t end = stretch.end < plan_.instructions.size() ? plan_.instructions[stretch.end].first_slot
                                                             : registers.size();
  return registers.subspan(first, end - first);
}

Captures::Way Captures::Next(Stretch& stretch, std::span<const weir_reg> registers) {
  if (stretch.changes > kMostChanges) return Way::kRun;
  if (stretch.recorded == nullptr) return ++stretch.runs < kRecordAt ? Way::kRun : Way::kRecord;
  const std::span<const weir_reg> slots = SlotsOf(stretch, registers);
  const bool same = std::ranges::equal(slots, stretch.addresses, [](const weir_reg& now, const auto& then) {
    return now.data == then.first && now.handle == then.second;
  });
  if (same) return Way::kLaunch;
  retired_.push_back(std::move(stretch.recorded));
  stretch.recorded = nullptr;
  stretch.runs = 1;
  ++stretch.changes;
  return Way::kRun;
}

void Captures::Recorded(Stretch& stretch, std::span<const weir_reg> registers,
                        std::shared_ptr<const device::Captured> recorded) {
  if (recorded == nullptr) {
    stretch.changes = kMostChanges + 1;
    return;
  }
  stretch.addresses.clear();
  for (const weir_reg& slot : SlotsOf(stretch, registers)) stretch.addresses.emplace_back(slot.data, slot.handle);
  stretch.recorded = std::move(recorded);
}

}  // namespace weir::execute
