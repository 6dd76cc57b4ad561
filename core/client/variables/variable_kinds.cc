// How each kind of variable is read and changed.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/variables/variable_internal.h"

namespace weir {

VariableKind::VariableKind(const VariableNodes& nodes)
    : handle(nodes.handle),
      value(nodes.value),
      initial_value(nodes.initial_value),
      initializer(nodes.initializer),
      dtype(BaseType(nodes.value.dtype())),
      shape(nodes.value.shape()),
      trainable(nodes.trainable),
      slice(nodes.slice) {}

const std::vector<Variable>& VariableKind::parts() const {
  static const std::vector<Variable> kNone;
  return kNone;
}

const std::vector<int64_t>& VariableKind::partitions() const {
  static const std::vector<int64_t> kNone;
  return kNone;
}

Output VariableKind::Value(const Where&) const { return value; }

Output VariableKind::ReadValue(const Where& where) const {
  return BuildOp("Identity", {handle}, {}, "read", where).output(0);
}

Output VariableKind::IsInitialized(std::string_view name, const Where& where) const {
  return BuildOp("IsVariableInitialized", {handle}, {}, name, where).output(0);
}

Output VariableKind::Change(const std::string& op, const Operand& given, const Where& where) const {
  return BuildOp(op, {handle, given}, {{"use_locking", false}}, op, where).output(0);
}

Output ReadHandle(const Output& handle, DType dtype, Where where) {
  if (handle.graph() == nullptr) return Output();
  const ColocateWith nothing(std::nullopt, *handle.graph());
  return BuildOp("ReadVariableOp", {handle}, {{"dtype", dtype}}, {}, where).output(0);
}

Output ResourceVariable::Value(const Where& where) const {
  return is_read_anew() ? ReadHandle(handle, dtype, where) : value;
}

Output ResourceVariable::ReadValue(const Where& where) const {
  Output read;
  {
    const NameScope scope("Read", Home());
    std::optional<ColocateWith> nothing;
    std::optional<DeviceScope> cache;
    if (!is_read_anew()) {
      nothing.emplace(std::nullopt, Home());
      cache.emplace(value.op().device(), Home());
    }
    read = BuildOp("ReadVariableOp", {handle}, {{"dtype", dtype}}, {}, where).output(0);
  }
  return BuildOp("Identity", {read}, {}, "Identity", where).output(0);
}

Output ResourceVariable::IsInitialized(std::string_view name, const Where& where) const {
  return BuildOp("VarIsInitializedOp", {handle}, {}, name, where).output(0);
}

Output ResourceVariable::Change(const std::string& op, const Operand& given, const Where& where) const {
  const std::string handled = op + "VariableOp";
  Operation change;
  {
    std::optional<ControlDependencies> cached;  // a cache has the value from before the change
    if (!is_read_anew() && op != "Assign") cached.emplace(std::vector<Dependency>{value}, Home());
    change = BuildOp(handled, {handle, given.In(Home(), dtype)}, {{"dtype", dtype}}, handled, where);
  }
  if (!change.exists()) return Output::Absent(Home());
  const ControlDependencies after({change}, Home());
  return BuildOp("ReadVariableOp", {handle}, {{"dtype", dtype}}, "ReadVariableOp", where).output(0);
}

PartitionedVariable::PartitionedVariable(std::string name, const Shape& whole, std::vector<Variable> parts,
                                         std::vector<int64_t> partitions)
    : name_(std::move(name)), parts_(std::move(parts)), partitions_(std::move(partitions)) {
  dtype = parts_[0].dtype();
  shape = whole;
  trainable = parts_[0].trainable();
}

int PartitionedVariable::cut_axis() const {
  const auto cut = std::ranges::find_if(partitions_, [](int64_t n) { return n > 1; });
  return cut == partitions_.end() ? 0 : static_cast<int>(cut - partitions_.begin());
}

Output PartitionedVariable::Value(const Where& where) const {
  Graph& graph = Home();
  const ControlDependencies none(std::nullopt, graph);
  Operand whole(parts_[0], where);
  if (parts_.size() > 1) {
    const NameScope scope(name_ + "/ConcatPartitions/", graph);
    whole = Concat({parts_.begin(), parts_.end()}, cut_axis(), "concat", where);
  }
  const NameScope root("", graph);
  return BuildOp("Identity", {whole}, {}, name_, where).output(0);
}

/// Each part by its piece of `given`; the new values together.
Output PartitionedVariable::Change(const std::string& op, const Operand& given, const Where& where) const {
  std::vector<int> lengths;
  for (const Variable& part : parts_) {
    const PartialShape& extents = part.shape();
    lengths.push_back(cut_axis() < extents.rank() ? static_cast<int>(extents.dim(cut_axis())) : 0);
  }
  const List<Output> pieces = SplitV(given.In(Home(), dtype, "value"), lengths, cut_axis(), "split", where);
  const auto change = [&](size_t i) {
    if (op == "AssignAdd") return parts_[i].AssignAdd(pieces[i], where);
    if (op == "AssignSub") return parts_[i].AssignSub(pieces[i], where);
    return parts_[i].Assign(pieces[i], where);
  };
  std::vector<Operand> changed;
  for (size_t i = 0; i < parts_.size(); ++i) changed.emplace_back(change(i));
  return changed.size() == 1 ? changed[0].In(Home()) : Concat(changed, cut_axis(), "concat", where);
}

}  // namespace weir
