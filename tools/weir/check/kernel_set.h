// The kernels of the plugin under test with the devices that they run on, and the CPU's kernels beside it.
#ifndef WEIR_TOOLS_WEIR_CHECK_KERNEL_SET_H_
#define WEIR_TOOLS_WEIR_CHECK_KERNEL_SET_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/kernel/registry.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/subject.h"

namespace weir::check {

/// Kernels in a registry of their own, and an open device for each of their platforms.
class KernelSet {
 public:
  /// Borrows the target.
  explicit KernelSet(const Target& target) : target_(target) {}

  /// Adds the kernels of a started plugin. InvalidArgument with the reasons for records that the core refuses.
  Status Add(const Subject& subject, const std::string& path);
  /// Opens devices, of `subject` first. Skip if one is missing.
  Finding OpenDevices(const Subject& subject);

  bool empty() const { return registry_.size() == 0; }
  const kernel::KernelRegistry& registry() const { return registry_; }
  device::Device& DeviceOf(const kernel::KernelEntry& entry) const;
  const std::map<std::string, std::unique_ptr<device::Device>>& devices() const { return devices_; }
  /// The ops of the kernels.
  std::set<std::string> Ops() const;

 private:
  const Target& target_;
  kernel::KernelRegistry registry_;
  std::map<std::string, std::unique_ptr<device::Device>> devices_;  // by platform
};

/// The kernels for platform "cpu" of all other plugins in the target's folders; empty without them or a CPU.
std::unique_ptr<KernelSet> CpuKernels(const Target& target, const Subject& subject);

/// Faults by the op of the kernel, for one rule.
class FaultList {
 public:
  void Add(std::string_view op, std::string text);
  bool empty() const { return first_.empty(); }
  /// The first fault of each of a few ops, and the number of the others.
  std::string ToString() const;

 private:
  std::map<std::string, std::string, std::less<>> first_;
  int more_ = 0;
};

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_KERNEL_SET_H_
