// Names of plugins/functors/pool.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_POOL_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_POOL_H_

#include "plugins/functors/pool.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {

using functors::ExpectPooled;
using functors::kPoolTileWork;
using functors::PoolForm;
using functors::PoolPlan;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_POOL_H_
