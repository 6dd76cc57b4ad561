#include "core/client/variables/variable.h"

#include <fmt/format.h>

#include <utility>

#include "core/client/control_flow/control_flow.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/variables/variable_internal.h"
#include "core/io/tensor_slice.h"

namespace weir {

Variable Variable::FromNodes(const VariableNodes& nodes) {
  if (nodes.handle.dtype() == DType::kResource) return Variable(std::make_shared<ResourceVariable>(nodes));
  return Variable(std::make_shared<ReferenceVariable>(nodes));
}

Variable Variable::FromValue(const Output& value) {
  const auto kind = std::make_shared<VariableKind>();
  kind->value = value;
  if (IsSpoiled(value)) {  // what is made of its handle and initializer is spoiled, too
    kind->handle = value;
    kind->initializer = value.op();
  }
  kind->dtype = BaseType(value.dtype());
  kind->shape = value.shape();
  return Variable(kind);
}

Variable Variable::FromParts(std::string name, const Shape& shape, std::vector<Variable> parts,
                             std::vector<int64_t> partitions) {
  if (parts.empty()) return Variable();
  return Variable(
      std::make_shared<PartitionedVariable>(std::move(name), shape, std::move(parts), std::move(partitions)));
}

const VariableKind& Variable::kind() const {
  static const VariableKind kNone;
  return kind_ ? *kind_ : kNone;
}

Graph* Variable::graph() const { return kind().graph(); }
Graph& Variable::Home() const { return kind().Home(); }
const Output& Variable::handle() const { return kind().handle; }
Output Variable::value(Where where) const { return kind().Value(where); }
const Output& Variable::snapshot() const { return kind().value; }
bool Variable::is_read_anew() const { return kind().is_read_anew(); }
const Output& Variable::initial_value() const { return kind().initial_value; }
const Operation& Variable::initializer() const { return kind().initializer; }
std::string Variable::name() const { return kind().name(); }
DType Variable::dtype() const { return kind().dtype; }
const PartialShape& Variable::shape() const { return kind().shape; }
bool Variable::trainable() const { return kind().trainable; }
bool Variable::is_resource() const { return kind().is_resource(); }
const VariableConstraint& Variable::constraint() const { return kind().constraint; }
const std::optional<SaveSlice>& Variable::slice() const { return kind().slice; }
const std::vector<Variable>& Variable::parts() const { return kind().parts(); }
const std::vector<int64_t>& Variable::partitions() const { return kind().partitions(); }

std::string SaveSlice::spec() const {
  io::TensorSlice slice;
  for (size_t i = 0; i < offset.size() && i < shape.size(); ++i) slice.push_back({offset[i], shape[i]});
  std::string text;
  for (const int64_t extent : full_shape) text += fmt::format("{} ", extent);
  return text + io::ToString(slice);
}

Output Variable::ReadValue(Where where) const { return kind().ReadValue(where); }

Output Variable::InitializedValue(Where where) const {
  const ControlDependencies none(std::nullopt, Home());
  const BranchFn read = [&] { return ReadValue(where); };
  const BranchFn initial = [&] { return initial_value(); };
  return Cond(IsInitialized({}, where), read, initial, "cond", where);
}

Output Variable::IsInitialized(std::string_view name, Where where) const { return kind().IsInitialized(name, where); }

Output Variable::ReadAfter(const Operation& change, Where where) const {
  if (!change.exists()) return Output::Absent(Home());
  const ControlDependencies after({change}, Home());
  return BuildOp("ReadVariableOp", {handle()}, {{"dtype", dtype()}}, "ReadVariableOp", where).output(0);
}

Output Variable::Assign(const Operand& value, Where where) const { return kind().Change("Assign", value, where); }
Output Variable::AssignAdd(const Operand& value, Where where) const { return kind().Change("AssignAdd", value, where); }
Output Variable::AssignSub(const Operand& value, Where where) const { return kind().Change("AssignSub", value, where); }

std::string Variable::ToString() const {
  return fmt::format("<tf.Variable '{}' shape={} dtype={}>", name(), shape().ToTupleString(),
                     NumpyName(is_resource() ? dtype() : RefType(dtype())));
}

CollectionEntry::CollectionEntry(const Variable& value)
    : output(value.handle()), variable(std::make_shared<Variable>(value)) {}

Dependency::Dependency(const Variable& variable)
    : operation_(variable.handle().exists() ? variable.op() : variable.value().op()) {}

}  // namespace weir
