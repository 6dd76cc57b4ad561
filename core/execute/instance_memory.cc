// What a run's memory went to, for whoever has to find out why it did not suffice.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/execute/instance_internal.h"

namespace weir::execute {

std::string PlanRunner::Instance::LargestValues(const std::function<uint64_t(plan::StorageId)>& bytes_of) const {
  constexpr size_t kShown = 20;
  std::vector<std::pair<uint64_t, std::string>> values;
  IndexedVector<plan::StorageId, bool> seen(plan_.storages.size(), false);
  for (const Instruction& instruction : plan_.instructions) {
    const graph::Node& node = *plan_.nodes[instruction.node];
    for (uint32_t o = 0; o < instruction.outputs; ++o) {
      const plan::Value& value = ValueOf(instruction, instruction.inputs + o);
      const plan::StorageId index = value.storage;
      const uint64_t bytes = seen[index] ? 0 : bytes_of(index);
      if (bytes == 0) continue;
      seen[index] = true;
      const Shape& shape = value.shape_known ? value.shape : tensors_[index].shape();
      values.emplace_back(bytes, value.scratch ? fmt::format("scratch memory of {} ({})", node.name(), node.op().name)
                                               : fmt::format("{} ({}) {} {}", node.name(), node.op().name,
                                                             Name(value.dtype), shape.ToString()));
    }
  }
  std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string table;
  for (size_t i = 0; i < std::min(kShown, values.size()); ++i) {
    table += fmt::format("\n{:>14} bytes  {}", values[i].first, values[i].second);
  }
  return table;
}

std::string PlanRunner::Instance::WantedMemory(plan::SpaceId space) const {
  return fmt::format("\nThe step needs {} bytes at once. Its largest values:{}", plan_.arena_bytes[space],
                     LargestValues([&](plan::StorageId index) {
                       const plan::Storage& storage = plan_.storages[index];
                       const bool there = storage.home == plan::Storage::Home::kArena && storage.space == space;
                       return there ? storage.bytes : 0;
                     }));
}

std::string PlanRunner::Instance::HeldMemory() const {
  const uint64_t planned = std::accumulate(plan_.arena_bytes.begin(), plan_.arena_bytes.end(), uint64_t{0});
  uint64_t others = 0;
  for (const std::shared_ptr<Buffer>& made : made_) others += made ? made->bytes() : 0;
  for (const RunStack& stack : stacks_) others += stack.memory_bytes();
  for (const Tensor& tensor : tensors_) others += tensor.bytes();
  return fmt::format("\nThe step held {} bytes for values of known size and {} for others. Its largest values:{}",
                     planned, others, LargestValues([&](plan::StorageId index) {
                       const plan::Storage& storage = plan_.storages[index];
                       if (storage.home == plan::Storage::Home::kMade) {
                         return made_[storage.made] ? storage.bytes : 0;
                       }
                       return storage.home == plan::Storage::Home::kArena ? storage.bytes : tensors_[index].bytes();
                     }));
}

}  // namespace weir::execute
