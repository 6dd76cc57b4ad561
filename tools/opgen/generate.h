// The files that opgen writes.
#ifndef WEIR_TOOLS_OPGEN_GENERATE_H_
#define WEIR_TOOLS_OPGEN_GENERATE_H_

#include <string>
#include <vector>

#include "tools/opgen/raw_op.h"

namespace weir::opgen {

/// raw_ops.h: for each op a function `weir::raw::Op`, a struct `OpAttrs` of the attributes that have defaults, and a
/// struct `OpOutputs` where there are several outputs.
std::string RawHeader(const std::vector<RawOp>& ops);

/// raw_calls.h: `AddRawCalls(calls)` adds a call of each builder with values from a `Source` that the test defines.
std::string RawCalls(const std::vector<RawOp>& ops);

}  // namespace weir::opgen

#endif  // WEIR_TOOLS_OPGEN_GENERATE_H_
