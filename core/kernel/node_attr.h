// A node's attributes as plain data for plugins.
#ifndef WEIR_CORE_KERNEL_NODE_ATTR_H_
#define WEIR_CORE_KERNEL_NODE_ATTR_H_

#include <string_view>

#include "core/base/status.h"
#include "core/kernel/host.h"
#include "sdk/abi/types.h"

namespace weir::kernel {

/// The attribute or its default. Data behind it lives as long as the node's referents and storage. NotFound when the
/// node has none; Unimplemented for a value that has no form at the boundary (a placeholder inside a function).
Result<weir_attr> FindAttr(const weir_node& node, std::string_view name);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_NODE_ATTR_H_
