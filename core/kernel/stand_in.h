// Kernels of other processes, as far as placement needs them.
#ifndef WEIR_CORE_KERNEL_STAND_IN_H_
#define WEIR_CORE_KERNEL_STAND_IN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/registry.h"
#include "core/op/registry.h"

namespace weir::kernel {

/// What a placer knows of a kernel; the fields are those of weir_kernel.
struct KernelDescription {
  std::string op, platform, plugin;
  uint32_t flags = 0, cost_class = 0;
  int32_t priority = 0;
  uint64_t host_inputs = 0, host_outputs = 0, variable_reads = 0, variable_writes = 0;
  double flops_per_element = 0;
  std::vector<std::pair<std::string, uint64_t>> types;  // sorted: attribute, mask of element types
};

/// The plugins' kernels for these platforms, those of a higher instruction set instead of lower ones, sorted by op.
std::vector<KernelDescription> DescribeKernels(const KernelRegistry& kernels, std::span<const std::string> platforms);

/// Registers records that place but never run, on the platform `at` instead of `platform`. The same kernel in `to`, or
/// another one of its op, lends its estimate. Kernels of ops that this process does not know, and those that do not fit
/// their ops, are left out. `to` must not outlive the result.
std::shared_ptr<const void> AddStandIns(const op::OpRegistry& ops, std::span<const KernelDescription> kernels,
                                        const std::string& platform, const std::string& at, KernelRegistry& to);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_STAND_IN_H_
