// The functions of families.h for transforms, special functions, positions, assignments to parts of arrays, matrices of
// three diagonals, counts of sparse tensors, and random cells, boxes and numbers of several parameters.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_FUNCTION_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_FUNCTION_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

[[gnu::cold]] void AddApproximateEqual(sdk::KernelTable& k);
[[gnu::cold]] void AddBessel(sdk::KernelTable& k);
[[gnu::cold]] void AddDistortedBoxes(sdk::KernelTable& k);
[[gnu::cold]] void AddEuclideanNorm(sdk::KernelTable& k);
[[gnu::cold]] void AddFourier(sdk::KernelTable& k);
[[gnu::cold]] void AddFractionalPool(sdk::KernelTable& k);
[[gnu::cold]] void AddParameterDraws(sdk::KernelTable& k);
[[gnu::cold]] void AddPositions(sdk::KernelTable& k);
[[gnu::cold]] void AddProjective(sdk::KernelTable& k);
[[gnu::cold]] void AddScaleAndTranslate(sdk::KernelTable& k);
[[gnu::cold]] void AddSliceAssign(sdk::KernelTable& k);
[[gnu::cold]] void AddSparseCounts(sdk::KernelTable& k);
[[gnu::cold]] void AddTridiagonal(sdk::KernelTable& k);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_FUNCTION_FAMILIES_H_
