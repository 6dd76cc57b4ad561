// The op catalogue of weir.
#ifndef WEIR_CORE_OPS_DECLARE_ALL_H_
#define WEIR_CORE_OPS_DECLARE_ALL_H_

#include "core/base/status.h"
#include "core/op/registry.h"

namespace weir::ops {

/// Declares every op, one family after the other, without freezing (plugins may add theirs).
void DeclareAll(op::OpRegistry& ops);

/// The frozen catalogue without plugins' ops, made on first use; a fault in it is a bug and ends up in the error.
Result<const op::OpRegistry*> Catalogue();

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_DECLARE_ALL_H_
