// The core's side of the plugin boundary: the host table, node views, tensors as plugins see them.
#ifndef WEIR_CORE_KERNEL_HOST_H_
#define WEIR_CORE_KERNEL_HOST_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/device/error_record.h"
#include "core/kernel/node_resources.h"
#include "core/op/attrs.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/host.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// The table given to every plugin; valid for the life of the process.
const weir_host& HostTable();

using device::CallPlugin;
using device::ErrorRecord;

/// Least level that plugins' log lines need to reach standard error; WEIR_LOG_WARNING until set. Thread-safe.
void SetLogLevel(int32_t level);
/// Bytes that plugins hold from host_alloc.
uint64_t PluginHostBytes();

/// Fills the plugin's view of a tensor; borrowed from `tensor`, and read-only. String tensors carry an opaque handle.
weir_tensor ViewOf(const Tensor& tensor);
weir_shape ViewOf(const Shape& shape);

inline weir_str ViewOf(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view Text(weir_str s) { return s.data ? std::string_view(s.data, s.size) : std::string_view(); }

}  // namespace weir::kernel

/// A node as kernels see it while they are prepared. Referents outlive it.
struct weir_node {
  std::string_view name;
  weir::op::AttrView attrs;
  /// Known value of input i in host memory, or null.
  std::function<const weir::Tensor*(int i)> constant_input;
  /// Where node_resource keeps objects; null = nowhere, so that the function answers null.
  weir::kernel::NodeResources* resources = nullptr;
  /// Storage behind values handed out by `attr`; grows only.
  mutable std::vector<std::shared_ptr<void>> storage;
  /// Its kernel has to give the same bits for the same inputs every time, or to decline.
  bool deterministic = false;
};

#endif  // WEIR_CORE_KERNEL_HOST_H_
