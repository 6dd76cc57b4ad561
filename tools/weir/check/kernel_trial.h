// Trial nodes for a kernel: attributes, shapes and values that the op accepts, found with the op's shape function.
#ifndef WEIR_TOOLS_WEIR_CHECK_KERNEL_TRIAL_H_
#define WEIR_TOOLS_WEIR_CHECK_KERNEL_TRIAL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/host.h"
#include "core/kernel/prepared.h"
#include "core/op/attrs.h"
#include "core/op/registry.h"
#include "core/runtime/node_resources.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/kernel.h"

namespace weir::check {

/// One node with host values for its inputs. Immovable: views borrow from it.
class KernelTrial {
 public:
  KernelTrial(const op::OpDef& def, op::AttrList attrs);
  KernelTrial(const KernelTrial&) = delete;
  KernelTrial& operator=(const KernelTrial&) = delete;

  const weir_node& node() const { return node_; }
  const op::AttrList& attrs() const { return attrs_; }
  const std::vector<Tensor>& values() const { return values_; }
  const std::vector<kernel::OperandSpec>& inputs() const { return inputs_; }
  const std::vector<kernel::OperandSpec>& outputs() const { return outputs_; }
  /// The shapes that the op's shape function infers for the outputs. If a shape is open, `outputs` has a shape of one
  /// element.
  const std::vector<PartialShape>& inferred() const { return inferred_; }
  /// True if no output has elements to compute.
  bool empty() const;
  /// True if an operand is a string tensor, which only the dynamic form accepts.
  bool has_strings() const;
  /// "Add T=float [2,3] [2,3]"
  std::string ToString() const;

 private:
  friend class TrialSearch;
  const op::OpDef* def_;
  op::AttrList attrs_;
  runtime::NodeResources resources_;
  weir_node node_;
  std::vector<Tensor> values_;
  std::vector<bool> known_;  // the input is a constant
  std::vector<kernel::OperandSpec> inputs_;
  std::vector<kernel::OperandSpec> outputs_;
  std::vector<PartialShape> inferred_;
};

/// Calls `try_it` with trials for `record` until enough are accepted: at least one for every element type of the first
/// constraint, and for the first type several shapes, including an empty one. `try_it` returns whether the kernel
/// accepted the trial. Returns the number of accepted trials.
int ForEachTrial(const op::OpDef& def, const weir_kernel& record,
                 const std::function<bool(const KernelTrial&)>& try_it);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_KERNEL_TRIAL_H_
