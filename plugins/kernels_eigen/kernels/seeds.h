// Names of plugins/functors/seeds.h in this namespace.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SEEDS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SEEDS_H_

#include "plugins/functors/seeds.h"
#include "plugins/kernels_eigen/kernels/philox.h"

namespace weir::kernels_eigen {

using functors::CheckKey;
using functors::CheckSeed;
using functors::FromSeed;
using functors::SeedWord;
using functors::SeedWords;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SEEDS_H_
