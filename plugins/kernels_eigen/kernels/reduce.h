// Names of plugins/functors/reduce_plan.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_REDUCE_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_REDUCE_H_

#include "plugins/functors/reduce_plan.h"

namespace weir::kernels_eigen {

using functors::ReducePlan;
using functors::Walk;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_REDUCE_H_
