// What the caller of a run gets.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/execute/instance_internal.h"

namespace weir::execute {

using plan::Storage;
using plan::Value;

const Tensor* PlanRunner::Instance::Shareable(const Value& value) const {
  const Storage& storage = StorageOf(value);
  const Tensor& own = tensors_[value.storage];
  const auto unless_lent = [](const Tensor& tensor) {
    return tensor.buffer() && !tensor.buffer()->lent() ? &tensor : nullptr;
  };
  switch (storage.home) {
    case Storage::Home::kFresh:
      return &own;
    case Storage::Home::kConstant:
      return storage.space == plan::kHostSpace ? unless_lent(storage.constant) : nullptr;
    case Storage::Home::kFeed:
      return unless_lent(own.valid() ? own : feeds_[PositionOf(storage.feed)]);
    case Storage::Home::kOwned: {
      if (!own.buffer() || !own.on_host()) return nullptr;
      if (own.buffer().use_count() == 1) return &own;
      // It may be a view of a variable, or of what is fed.
      const auto fed = [&own](const Tensor& feed) { return feed.buffer() == own.buffer(); };
      return std::any_of(feeds_.begin(), feeds_.end(), fed) ? unless_lent(own) : nullptr;
    }
    case Storage::Home::kArena:
    case Storage::Home::kMade:
    case Storage::Home::kVariable:
    case Storage::Home::kBound:
      return nullptr;
  }
  return nullptr;
}

Status PlanRunner::Instance::Fetch(const Instruction& instruction, Tensor* to) {
  const Value& value = ValueOf(instruction, 0);
  const Value& chosen = Chosen(value);
  if (const Tensor* const shared = Shareable(chosen)) {
    if (&chosen == &value && (!value.shape_known || shared->shape() == value.shape)) {
      *to = *shared;
      return Status();
    }
    WEIR_ASSIGN(*to, TensorOf(value));
    return Status();
  }
  const Storage& storage = StorageOf(chosen);
  if (storage.home == Storage::Home::kVariable) return FetchVariable(instruction, storage, to);
  return FetchCopy(instruction, storage.space, to);
}

Status PlanRunner::Instance::FetchVariable(const Instruction& instruction, const Storage& storage, Tensor* to) {
  const VariableLocks locks(*this, instruction);
  const plan::VariableUse& use = VariableAt(storage);
  if (use.is_resource) {
    *to = Tensor::Scalar(runtime::HandleOf(use.key, use.variable));
    return Status();
  }
  if (const Status ready = CheckInitialized(use); !ready.ok()) {
    const graph::Node& node = *plan_.nodes[instruction.node];
    const std::string retval = fmt::format("_retval_{}_0_{}", node.name(), instruction.detail);  // TensorFlow's name
    return ready.Append("\n\t [[{{node " + retval + "}}]]").WithNode(node.name(), node.origin());
  }
  return FetchCopy(instruction, storage.space, to);
}

Status PlanRunner::Instance::FetchCopy(const Instruction& instruction, plan::SpaceId space, Tensor* to) {
  WEIR_ASSIGN(const Tensor tensor, TensorOf(ValueOf(instruction, 0)));
  if (tensor.on_host()) {
    WEIR_ASSIGN(*to, tensor.Clone());
    return Status();
  }
  WEIR_TRY(BeforeAccess(instruction));
  if (!instruction.stream.valid()) {
    WEIR_ASSIGN(*to, streams_.ToHost(space, tensor));
    return AfterAccess(instruction);
  }
  device::Event arrived;
  WEIR_ASSIGN(*to, streams_.Download(instruction.stream, tensor, &arrived));
  arriving_.emplace_back(std::move(arrived), &instruction);
  return AfterAccess(instruction);
}

}  // namespace weir::execute
