// Conds and loops for the interop tests.
#ifndef WEIR_TESTS_INTEROP_CONTROL_FLOW_H_
#define WEIR_TESTS_INTEROP_CONTROL_FLOW_H_

#include <string>

#include "core/base/status.h"

namespace weir {

/// Writes flow.meta, a MetaGraph with conds, loops and a gradient, and its values `z`, `power`, `table`, `dz` for the
/// defaults of its inputs `p`, `x` and `n`, as .npy files.
Status WriteControlFlow(const std::string& folder);

/// Reads a MetaGraph with values `z`, `power`, `table` and an input `x`, takes the gradient of z by x, and writes all
/// four as .npy files.
Status ReadControlFlow(const std::string& path, const std::string& folder);

/// Reads a MetaGraph with a value `y` and inputs `x` and `w` of known values, takes the gradients of y by both, and
/// writes them as ours_x.npy and ours_w.npy, and the graph, which has them as `ours_x` and `ours_w`, as ours.pb.
Status WriteGradients(const std::string& path, const std::string& folder);

}  // namespace weir

#endif  // WEIR_TESTS_INTEROP_CONTROL_FLOW_H_
