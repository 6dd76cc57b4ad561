// Ops of plugins: ops/1 as definitions of the core.
#ifndef WEIR_CORE_KERNEL_VENDOR_OPS_H_
#define WEIR_CORE_KERNEL_VENDOR_OPS_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/op/registry.h"
#include "sdk/abi/ops.h"

namespace weir::kernel {

/// Declares the ops of a plugin for the whole process, once for each table; `api` may be null and lives as long as the
/// process. Returns the faults: names that exist, definitions that are none. The other ops are declared all the same.
std::vector<std::string> DeclareVendorOps(const weir_ops_api* api, std::string_view plugin, const op::OpRegistry& ops);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_VENDOR_OPS_H_
