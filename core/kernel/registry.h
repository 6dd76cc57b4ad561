// All kernels, of plugins and of the core, by op, platform and element types.
#ifndef WEIR_CORE_KERNEL_REGISTRY_H_
#define WEIR_CORE_KERNEL_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/builtin.h"
#include "core/op/attrs.h"
#include "core/op/registry.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// The platform of the core's kernels, which use host tensors and can serve any device.
inline constexpr std::string_view kHostPlatform = "host";

/// A registered kernel. `record` belongs to the plugin and lives as long as the process. The record of a host kernel
/// only names op and platform; `host` is the kernel.
struct KernelEntry {
  const weir_kernel* record = nullptr;
  std::string plugin;                         // "core" for host kernels
  std::string file;                           // base name of the plugin's file; empty for host kernels
  int isa_level = 0;                          // 0 plain, 2..4 for x86-64-v2..v4; the higher wins an equal key inside
                                              // one plugin name
  std::shared_ptr<const BuiltinKernel> host;  // null for plugin kernels
};

/// Filled while plugins load, then read-only and thread-safe.
class KernelRegistry {
 public:
  /// Adds a plugin kernel. InvalidArgument for platform `host`, an unknown or universal op, operands that are handles
  /// or variants other than variables (they never cross the ABI), an undeclared attribute, and a second record with the
  /// same op, platform, types and priority from one file.
  Status Add(const op::OpRegistry& ops, KernelEntry entry);

  /// Adds the core's host kernel of an op. A second one for the same op is a bug and is ignored.
  void AddHost(std::string op, BuiltinFn fn, InputUse inputs = InputUse::kDuringCall) {
    AddHostKernel(std::move(op), {std::move(fn), {}, false, inputs});
  }
  void AddHostBlocking(std::string op, BuiltinFn fn) { AddHostKernel(std::move(op), {std::move(fn), {}, true, {}}); }
  void AddHostAsync(std::string op, AsyncBuiltinFn fn, InputUse inputs = InputUse::kDuringCall) {
    AddHostKernel(std::move(op), {{}, std::move(fn), false, inputs});
  }

  /// Plugin kernels on a platform whose type constraints match the node; higher ISA variants hide lower ones of the
  /// same plugin. Ordered by descending priority, then plugin name; ranking by cost is done by the placer.
  std::vector<const KernelEntry*> Find(const op::AttrView& attrs, std::string_view platform) const;
  /// The core's kernel, for devices without their own; null if there is none.
  const KernelEntry* FindHost(std::string_view op) const;
  /// All kernels of an op on all platforms, for messages and listings.
  std::vector<const KernelEntry*> ForOp(std::string_view op) const;
  std::vector<const KernelEntry*> All() const;
  size_t size() const;

 private:
  void AddHostKernel(std::string op, BuiltinKernel kernel);

  std::unordered_map<std::string, std::vector<KernelEntry>> by_op_;
};

/// Printed information about a node and the kernels of its op.
struct KernelListing {
  std::string attrs;    // of the node: "N=2, T=DT_FLOAT"
  std::string kernels;  // "Registered kernels:\n" and a line for each
};
KernelListing ListKernels(const KernelRegistry& kernels, const op::AttrView& attrs);

/// TensorFlow's error for a missing kernel: "No OpKernel was registered to support Op 'X' used by {{node n}} …".
Status NoKernelError(const KernelRegistry& kernels, const op::AttrView& attrs, std::string_view node,
                     const std::vector<std::string>& device_kinds);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_REGISTRY_H_
