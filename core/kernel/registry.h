// All kernels, of plugins and of the core, by op, platform and element types.
#ifndef WEIR_CORE_KERNEL_REGISTRY_H_
#define WEIR_CORE_KERNEL_REGISTRY_H_

#include <algorithm>
#include <atomic>
#include <functional>
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

/// Whether a record fits the declaration of its op. Threads may find out at once: they get the same answer.
class RecordCheck {
 public:
  enum class Outcome : uint8_t { kOpen, kFits, kFaulty };

  RecordCheck() = default;
  RecordCheck(const RecordCheck& other) noexcept : outcome_(other.outcome()) {}
  RecordCheck& operator=(const RecordCheck& other) noexcept {
    Set(other.outcome());
    return *this;
  }
  Outcome outcome() const { return outcome_.load(std::memory_order_relaxed); }
  void Set(Outcome outcome) { outcome_.store(outcome, std::memory_order_relaxed); }

 private:
  std::atomic<Outcome> outcome_{Outcome::kOpen};
};

/// A registered kernel. `record` belongs to the plugin and lives as long as the process. The record of a host kernel
/// only names op and platform; `host` is the kernel.
struct KernelEntry {
  const weir_kernel* record = nullptr;
  std::string plugin;                         // "core" for host kernels
  std::string file;                           // base name of the plugin's file; empty for host kernels
  int isa_level = 0;                          // 0 plain, 2..4 for x86-64-v2..v4; the higher wins an equal key inside
                                              // one plugin name
  std::shared_ptr<const BuiltinKernel> host;  // null for plugin kernels
  mutable RecordCheck check;
};

/// A record that AddOnUse added and that does not fit its op.
struct RecordFault {
  std::string plugin;
  std::string file;
  std::string message;
};

/// Filled while plugins load, then read-only and thread-safe.
class KernelRegistry {
 public:
  /// Adds a plugin kernel. InvalidArgument for platform `host`, an unknown or universal op, operands that are handles
  /// or variants other than variables (they never cross the ABI), an undeclared attribute, and a second record with the
  /// same op, platform, types and priority from one file.
  Status Add(const op::OpRegistry& ops, KernelEntry entry);
  /// The same, but a record is compared with its op's declaration only when kernels of the op are asked for, and left
  /// out if it does not fit. All calls name one `ops`, which outlives the registry and its copies.
  Status AddOnUse(const op::OpRegistry& ops, KernelEntry entry);
  /// Compares all records that are not compared yet, and returns those that do not fit.
  std::vector<RecordFault> Faults() const;

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
  /// True if the condition holds for a record, which may not be compared with its op yet.
  template <class Condition>
  bool AnyRecord(Condition condition) const {
    const auto holds = [&condition](const KernelEntry& entry) { return condition(entry.record); };
    return std::any_of(by_op_.begin(), by_op_.end(), [&holds](const auto& of_op) {
      return std::any_of(of_op.second.begin(), of_op.second.end(), holds);
    });
  }

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void AddHostKernel(std::string op, BuiltinKernel kernel);
  /// False for a record that does not fit its op.
  bool Usable(const KernelEntry& entry) const;

  std::unordered_map<std::string, std::vector<KernelEntry>, TextHash, std::equal_to<>> by_op_;
  const op::OpRegistry* ops_ = nullptr;  // of the records added by AddOnUse
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
