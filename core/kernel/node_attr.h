// A node's attributes in the plain form of the plugin ABI.
#ifndef WEIR_CORE_KERNEL_NODE_ATTR_H_
#define WEIR_CORE_KERNEL_NODE_ATTR_H_

#include <string_view>

#include "core/base/status.h"
#include "core/kernel/host.h"
#include "sdk/abi/types.h"

namespace weir::kernel {

/// The attribute or its default. Its data lives as long as the node's referenced objects and storage. NotFound if the
/// node has none; Unimplemented for a value without an ABI form (a placeholder in a function).
Result<weir_attr> FindAttr(const weir_node& node, std::string_view name);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_NODE_ATTR_H_
