// The arithmetic of plugins/functors by its names in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_

#include "plugins/functors/arithmetic.h"

namespace weir::kernels_eigen {

using functors::Add;
using functors::Conjugated;
using functors::Difference;
using functors::Larger;
using functors::Mul;
using functors::Negative;
using functors::Product;
using functors::Quotient;
using functors::Smaller;
using functors::Sub;
using functors::Sum;
using functors::Unsigned;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_
