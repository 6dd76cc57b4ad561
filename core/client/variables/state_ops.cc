#include "core/client/variables/state_ops.h"

#include <string>

#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"

namespace weir {

Output ScatterOp::operator()(const Variable& variable, const Operand& indices, const Operand& updates,
                             std::string_view name, Where where) const {
  if (!variable.is_resource()) return BuildOp(op, {variable.handle(), indices, updates}, {}, name, where).output(0);
  const std::string handled = std::string("Resource") + op;
  const bool slices = handled.find("Nd") != std::string::npos;
  const Output given = updates.In(variable.Home(), variable.dtype());
  const Operation scatter =
      BuildOp(handled, {variable.handle(), indices, given}, {{slices ? "T" : "dtype", variable.dtype()}}, name, where);
  return variable.ReadAfter(scatter, where);
}

Output CountUpTo(const Variable& variable, int64_t limit, std::string_view name, Where where) {
  if (!variable.is_resource()) {
    return BuildOp("CountUpTo", {variable.handle()}, {{"limit", limit}}, name, where).output(0);
  }
  return BuildOp("ResourceCountUpTo", {variable.handle()}, {{"limit", limit}, {"T", variable.dtype()}}, name, where)
      .output(0);
}

Output Assign(const Variable& variable, const Operand& value, const AssignOptions& options, Where where) {
  if (variable.is_resource()) return variable.Assign(value, where);
  return BuildOp("Assign", {variable.handle(), value}, {{"validate_shape", options.validate_shape}}, options.name,
                 where)
      .output(0);
}

}  // namespace weir
