// The core's side of the plugin boundary: the host table, node views and tensor views.
#ifndef WEIR_CORE_KERNEL_HOST_H_
#define WEIR_CORE_KERNEL_HOST_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/device/error_record.h"
#include "core/op/attrs.h"
#include "core/runtime/node_resources.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/host.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// The function table passed to every plugin; valid for the life of the process.
const weir_host& HostTable();

using device::CallPlugin;
using device::ErrorRecord;

/// Minimum level of plugin log lines that are printed to standard error; WEIR_LOG_WARNING by default. Thread-safe.
void SetLogLevel(int32_t level);
/// Bytes that plugins currently hold from host_alloc.
uint64_t PluginHostBytes();

/// A read-only plugin view of a tensor; borrowed from `tensor`. String tensors have an opaque handle.
weir_tensor ViewOf(const Tensor& tensor);
weir_shape ViewOf(const Shape& shape);

inline weir_str ViewOf(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view Text(weir_str s) { return s.data ? std::string_view(s.data, s.size) : std::string_view(); }

}  // namespace weir::kernel

/// A node as seen by kernels during preparation. Referenced objects must outlive it.
struct weir_node {
  std::string_view name;
  weir::op::AttrView attrs;
  /// Known value of input i in host memory, or null.
  std::function<const weir::Tensor*(int i)> constant_input;
  /// Storage of node_resource objects; null: the function returns null.
  weir::runtime::NodeResources* resources = nullptr;
  /// Owns values returned by `attr`; only grows.
  mutable std::vector<std::shared_ptr<void>> storage;
  /// The kernel must give the same bits for the same inputs every time, or decline.
  bool deterministic = false;
};

#endif  // WEIR_CORE_KERNEL_HOST_H_
