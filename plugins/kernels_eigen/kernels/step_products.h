// Products in loops whose left matrix has a part for each step that does not depend on the loop: that part is
// multiplied for all steps ahead of the loop (core/fuse/lift.cc).
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STEP_PRODUCTS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STEP_PRODUCTS_H_

#include "sdk/cpp/plugin.h"

namespace weir::kernels_eigen {

[[gnu::cold]] void AddStepProducts(sdk::KernelTable& k);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STEP_PRODUCTS_H_
