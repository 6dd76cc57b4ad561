// Ops that plugins bring. From when its plugin is loaded, such an op is known to every frozen registry of the process.
#ifndef WEIR_CORE_OP_VENDOR_OPS_H_
#define WEIR_CORE_OP_VENDOR_OPS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/registry.h"

namespace weir::op {

/// Adds an op of the plugin `owner`; `keeps` owns the definition and lives as long as the process. AlreadyExists if a
/// plugin brought one of this name. Thread-safe; what was found before stays valid.
Status AddVendorOp(const OpDef* op, std::unique_ptr<const OpRegistry> keeps, std::string owner);
/// Null if no plugin brought it. Thread-safe, lock-free.
const OpDef* FindVendorOp(std::string_view name);
/// Sorted by name.
std::vector<const OpDef*> AllVendorOps();
/// The plugin that brought the op; empty if it is weir's own.
std::string_view OwnerOfOp(std::string_view name);

/// `load` is called once, by FindOrLoad: it may load plugins that bring ops. For programs that make graphs before a
/// session has loaded the plugins. The first loader stays.
void SetVendorOpLoader(void (*load)());
/// `ops.Find`; for an op that nobody has, once more after the loader was called. Not while plugins are being loaded.
const OpDef* FindOrLoad(const OpRegistry& ops, std::string_view name);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_VENDOR_OPS_H_
