// The kinds of variables behind the handle Variable: by reference, by resource handle, partitioned, and mere values.
#ifndef WEIR_CORE_CLIENT_VARIABLES_VARIABLE_INTERNAL_H_
#define WEIR_CORE_CLIENT_VARIABLES_VARIABLE_INTERNAL_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/variables/state_ops.h"
#include "core/client/variables/variable.h"

namespace weir {

/// What all kinds have. Immutable but for ReplaceInitializer; shared by the copies of a Variable. The functions of the
/// base class are those of a mere value, such as a custom getter returns, and of a variable that does not exist.
class VariableKind {
 public:
  VariableKind() = default;
  explicit VariableKind(const VariableNodes& nodes);
  virtual ~VariableKind() = default;

  virtual std::string name() const { return handle.exists() ? handle.name() : value.name(); }
  virtual bool is_resource() const { return false; }
  /// Whether each use is a new read.
  virtual bool is_read_anew() const { return false; }
  virtual Graph* graph() const { return value.graph(); }
  virtual const std::vector<Variable>& parts() const;
  virtual const std::vector<int64_t>& partitions() const;

  /// As the functions of Variable with these names.
  virtual Output Value(const Where& where) const;
  virtual Output ReadValue(const Where& where) const;
  virtual Output IsInitialized(std::string_view name, const Where& where) const;
  /// `op`: Assign, AssignAdd or AssignSub. Returns the new value.
  virtual Output Change(const std::string& op, const Operand& given, const Where& where) const;

  Graph& Home() const { return graph() != nullptr ? *graph() : Graph::Default(); }

  Output handle, value;
  mutable Output initial_value;   // of ReplaceInitializer, as the next
  mutable Operation initializer;  // of all copies
  DType dtype = DType::kInvalid;
  PartialShape shape;
  bool trainable = false;
  VariableConstraint constraint;
  std::optional<SaveSlice> slice;
};

/// VariableV2: the handle is a reference, which ops read and write in place.
class ReferenceVariable final : public VariableKind {
 public:
  using VariableKind::VariableKind;
};

/// VarHandleOp: each use reads, unless a caching device keeps the value.
class ResourceVariable final : public VariableKind {
 public:
  using VariableKind::VariableKind;
  bool is_resource() const override { return true; }
  bool is_read_anew() const override { return value.op().type() == "ReadVariableOp"; }
  Output Value(const Where& where) const override;
  Output ReadValue(const Where& where) const override;
  Output IsInitialized(std::string_view name, const Where& where) const override;
  Output Change(const std::string& op, const Operand& given, const Where& where) const override;
};

/// Parts of one variable, cut along at most one axis: has no nodes of its own.
class PartitionedVariable final : public VariableKind {
 public:
  /// `parts` is not empty.
  PartitionedVariable(std::string name, const Shape& shape, std::vector<Variable> parts,
                      std::vector<int64_t> partitions);
  std::string name() const override { return name_; }
  bool is_resource() const override { return parts_[0].is_resource(); }
  Graph* graph() const override { return parts_[0].graph(); }
  const std::vector<Variable>& parts() const override { return parts_; }
  const std::vector<int64_t>& partitions() const override { return partitions_; }
  Output Value(const Where& where) const override;
  Output Change(const std::string& op, const Operand& given, const Where& where) const override;

 private:
  int cut_axis() const;

  std::string name_;
  std::vector<Variable> parts_;
  std::vector<int64_t> partitions_;
};

/// Gives a variable with nodes of its own, and its copies, another initializer and initial value.
void ReplaceInitializer(const Variable& variable, const Operation& initializer, const Output& initial_value);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_VARIABLE_INTERNAL_H_
