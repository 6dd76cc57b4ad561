// Checks of Bitcast.
#ifndef WEIR_PLUGINS_FUNCTORS_BITCAST_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_BITCAST_PLAN_H_

#include "plugins/functors/operands.h"

namespace weir::functors {

/// The same bytes; only the shapes group them differently.
struct BitcastPlan {
  size_t bytes = 0;

  int32_t Prepare(sdk::Prep& prep) {
    bytes = static_cast<size_t>(prep.size(0)) * sdk::SizeOf(prep.input(0).dtype);
    const weir_shape& out = prep.output(0).shape;
    if (bytes != static_cast<size_t>(sdk::SizeOf(out)) * sdk::SizeOf(prep.output(0).dtype)) {
      return prep.error().InvalidArgument("Cannot bitcast from ", prep.shape(0), " to ", out,
                                          ": the elements have other sizes");
    }
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BITCAST_PLAN_H_
