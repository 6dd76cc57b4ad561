// DynamicStitch and ParallelDynamicStitch: their checks.
#ifndef WEIR_PLUGINS_FUNCTORS_STITCH_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_STITCH_PLAN_H_

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Row data[m][i] goes to row indices[m][i]; all other rows are zero.
struct StitchPlan {
  uint32_t count = 0;
  int64_t limit = 0;
  size_t block = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& out = prep.output(0).shape;
    count = prep.inputs() / 2;
    if (out.rank < 1) return prep.error().Fail(WEIR_INTERNAL, "output 0 has shape ", out);
    limit = out.dims[0];
    block = static_cast<size_t>(SizeOf(out, 1, out.rank)) * sdk::SizeOf(prep.output(0).dtype);
    for (uint32_t i = 0; i < count; ++i) {
      const weir_shape &indices = prep.shape(i), &data = prep.shape(count + i);
      bool fits = data.rank == indices.rank + out.rank - 1;
      for (uint32_t k = 0; fits && k < data.rank; ++k) {
        fits = data.dims[k] == (k < indices.rank ? indices.dims[k] : out.dims[k - indices.rank + 1]);
      }
      if (!fits) {
        return prep.error().InvalidArgument("data[", i, "].shape = ", data, " does not start with indices[", i,
                                            "].shape = ", indices, " and end like the output's shape ", out);
      }
    }
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_STITCH_PLAN_H_
