// Names of plugins/functors/step_checks.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STEP_CHECKS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STEP_CHECKS_H_

#include "plugins/functors/step_checks.h"
#include "plugins/kernels_eigen/places.h"

namespace weir::kernels_eigen {

using functors::CheckRows;
using functors::CheckScalar;
using functors::CheckShape;
using functors::FindRows;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STEP_CHECKS_H_
