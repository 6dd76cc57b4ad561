// Names of plugins/functors/philox.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PHILOX_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PHILOX_H_

#include "plugins/functors/philox.h"

namespace weir::kernels_eigen {

using functors::Philox;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PHILOX_H_
