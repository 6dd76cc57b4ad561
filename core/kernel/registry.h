// Kernels that plugins registered, found by op, platform and element types.
#ifndef WEIR_CORE_KERNEL_REGISTRY_H_
#define WEIR_CORE_KERNEL_REGISTRY_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/op/attrs.h"
#include "core/op/registry.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// One registered kernel. `record` belongs to the plugin and lives as long as the process.
struct KernelEntry {
  const weir_kernel* record = nullptr;
  std::string plugin;
  std::string file;   // base name of the plugin's file
  int isa_level = 0;  // 0 plain, 2..4 for x86-64-v2..v4; the higher wins an equal key inside one plugin name
};

/// Filled while plugins load, then read-only and thread-safe.
class KernelRegistry {
 public:
  /// Refuses (InvalidArgument) a record for an unknown or universal op, for an attribute that the op lacks, and a
  /// second record with the same op, platform, types and priority from the same file.
  Status Add(const op::OpRegistry& ops, KernelEntry entry);

  /// Kernels for a node on a platform, whose type constraints fit; higher ISA variants hide lower ones of the same
  /// plugin. Order: priority (higher first), then plugin name; ranking by cost is the placer's.
  std::vector<const KernelEntry*> Find(const op::AttrView& attrs, std::string_view platform) const;
  /// All kernels of an op on all platforms, for messages and listings.
  std::vector<const KernelEntry*> ForOp(std::string_view op) const;
  std::vector<const KernelEntry*> All() const;
  size_t size() const;

 private:
  std::unordered_map<std::string, std::vector<KernelEntry>> by_op_;
};

/// What messages print of a node and its op.
struct KernelListing {
  std::string attrs;    // of the node: "N=2, T=DT_FLOAT"
  std::string kernels;  // "Registered kernels:\n" and a line for each
};
KernelListing ListKernels(const KernelRegistry& kernels, const op::AttrView& attrs);

/// TensorFlow's text for a missing kernel: "No OpKernel was registered to support Op 'X' used by {{node n}} …".
Status NoKernelError(const KernelRegistry& kernels, const op::AttrView& attrs, std::string_view node,
                     const std::vector<std::string>& device_kinds);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_REGISTRY_H_
