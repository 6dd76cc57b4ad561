#include "core/execute/links.h"

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/indexed.h"

namespace weir::execute {

namespace {

/// By storage: an instruction other than kRecv uses it that may need a tensor, more than an address.
IndexedVector<plan::StorageId, char> UsedAsTensors(const plan::ExecutionPlan& plan) {
  IndexedVector<plan::StorageId, char> used(plan.storages.size(), 0);
  for (const plan::Instruction& instruction : plan.instructions) {
    const bool by_address = instruction.opcode == plan::Opcode::kKernel ||
                            instruction.opcode == plan::Opcode::kTiledKernel ||
                            instruction.opcode == plan::Opcode::kRecv;
    if (by_address) continue;
    for (uint32_t operand = 0; operand < instruction.inputs + instruction.outputs; ++operand) {
      used[plan.values[plan.slots[instruction.first_slot + operand].value].storage] = 1;
    }
  }
  return used;
}

/// An instruction of a plan.
struct End {
  const plan::ExecutionPlan* plan = nullptr;
  const plan::Instruction* instruction = nullptr;
  const plan::Value& value() const {
    return plan->values[plan->slots[instruction->first_slot + (sends() ? 0 : instruction->inputs)].value];
  }
  bool sends() const { return instruction->opcode == plan::Opcode::kSend; }
  bool in_loop() const { return !plan->transfers[instruction->detail].frames.empty(); }
};

bool Lends(const End& send, const End& receive, const IndexedVector<plan::StorageId, char>& used_as_tensors) {
  const plan::Value &given = send.value(), &taken = receive.value();
  const plan::Storage& memory = send.plan->storages[given.storage];
  return !send.in_loop() && memory.home == plan::Storage::Home::kFresh && memory.space == plan::kHostSpace &&
         HasFixedSize(given.dtype) && given.dtype == taken.dtype && given.shape_known && taken.shape_known &&
         given.shape == taken.shape && used_as_tensors[taken.storage] == 0;
}

}  // namespace

Occurrence OccurrenceOf(std::span<const int64_t> numbers) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  Occurrence occurrence;
  if (numbers.empty()) return occurrence;
  occurrence.number = numbers.back();
  for (const int64_t number : numbers.first(numbers.size() - 1)) {
    occurrence.around = (occurrence.around ^ (static_cast<uint64_t>(number) + kFactor)) * kFactor;
    occurrence.around ^= occurrence.around >> 32;
  }
  return occurrence;
}

Links::Links(std::span<const plan::ExecutionPlan* const> plans) {
  struct Ends {
    Link link{};
    int sends = 0, receives = 0;
    End send, receive;
  };
  std::unordered_map<std::string_view, Ends> ends;
  std::vector<IndexedVector<plan::StorageId, char>> used_as_tensors;
  for (const plan::ExecutionPlan* const plan : plans) used_as_tensors.push_back(UsedAsTensors(*plan));
  for (uint32_t part = 0; part < plans.size(); ++part) {
    of_.emplace_back(plans[part]->transfers.size(), kNone);
    for (const plan::Instruction& instruction : plans[part]->instructions) {
      const bool sends = instruction.opcode == plan::Opcode::kSend;
      if (!sends && instruction.opcode != plan::Opcode::kRecv) continue;
      Ends& of = ends[plans[part]->transfers[instruction.detail].key];
      ++(sends ? of.sends : of.receives);
      (sends ? of.link.send_part : of.link.recv_part) = part;
      (sends ? of.link.send_transfer : of.link.recv_transfer) = instruction.detail;
      (sends ? of.send : of.receive) = {plans[part], &instruction};
    }
  }
  for (const auto& [key, of] : ends) {
    if (of.sends != 1 || of.receives != 1) continue;
    const Link& link = of.link;
    const plan::Transfer& from = plans[link.send_part]->transfers[link.send_transfer];
    if (from.frames != plans[link.recv_part]->transfers[link.recv_transfer].frames) continue;
    const auto number = static_cast<uint32_t>(links_.size());
    of_[link.send_part][link.send_transfer] = of_[link.recv_part][link.recv_transfer] = number;
    links_.push_back(link);
    links_.back().lends = Lends(of.send, of.receive, used_as_tensors[link.recv_part]);
  }
}

}  // namespace weir::execute
