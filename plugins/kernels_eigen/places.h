// Names of plugins/functors/places.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_PLACES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_PLACES_H_

#include "plugins/functors/places.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {

using functors::Places;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_PLACES_H_
