// The registry of weir's ops.
#ifndef WEIR_CORE_OPS_DECLARE_ALL_H_
#define WEIR_CORE_OPS_DECLARE_ALL_H_

#include "core/base/status.h"
#include "core/op/registry.h"

namespace weir::ops {

/// Declares every op, family by family, without freezing the registry, so that plugins can add ops.
void DeclareAll(op::OpRegistry& ops);

/// The frozen registry without plugin ops, created on first use. An error means a bug in a declaration.
Result<const op::OpRegistry*> Catalogue();

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_DECLARE_ALL_H_
