// Names of plugins/functors/draws.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_DRAWS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_DRAWS_H_

#include "plugins/functors/draws.h"
#include "plugins/kernels_eigen/kernels/philox.h"

namespace weir::kernels_eigen {

using functors::Bits;
using functors::BlockByBlock;
using functors::DrawIntegers;
using functors::FullIntegers;
using functors::kPerBlock;
using functors::kTurn;
using functors::Normal;
using functors::NormalPair;
using functors::NormalValues;
using functors::TruncatedValues;
using functors::Uniform;
using functors::UniformDouble;
using functors::UniformFloat;
using functors::UniformValues;
using functors::Words;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_DRAWS_H_
