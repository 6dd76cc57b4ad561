// Kernels of ops that do no arithmetic on a device: plain functions over host tensors, registered by explicit calls.
#ifndef WEIR_CORE_KERNEL_BUILTIN_H_
#define WEIR_CORE_KERNEL_BUILTIN_H_

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/node_resources.h"
#include "core/kernel/resource.h"
#include "core/op/attrs.h"
#include "core/tensor/tensor.h"

namespace weir::kernel {

/// One call. All inputs are on the host and valid. Inputs are flattened; the function sets every output.
struct BuiltinCall {
  std::string_view node_name;
  op::AttrView attrs;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;         // sized to the node's outputs, to be filled
  NodeResources* resources = nullptr;  // what the node keeps from call to call; null = nothing
};

/// Errors are completed with the node by the caller. Called concurrently from several steps. Deterministic unless the
/// op is stateful.
using BuiltinFn = std::function<Status(BuiltinCall&)>;

/// The builtin kernels by op name.
class BuiltinRegistry {
 public:
  /// A second kernel for one op is a bug and is ignored.
  void Add(std::string op, BuiltinFn fn) { kernels_.emplace(std::move(op), std::move(fn)); }
  /// Null when there is none.
  const BuiltinFn* Find(std::string_view op) const {
    const auto it = kernels_.find(std::string(op));
    return it == kernels_.end() ? nullptr : &it->second;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, fn] : kernels_) names.push_back(name);
    return names;
  }

 private:
  std::unordered_map<std::string, BuiltinFn> kernels_;
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_BUILTIN_H_
