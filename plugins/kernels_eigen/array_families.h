// Families of linear algebra, diagonals, order and whole arrays, and what their kernels share.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_ARRAY_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_ARRAY_FAMILIES_H_

#include <algorithm>

#include "plugins/functors/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

[[gnu::cold]] void AddCholesky(sdk::KernelTable& k);
[[gnu::cold]] void AddCounting(sdk::KernelTable& k);
[[gnu::cold]] void AddEinsum(sdk::KernelTable& k);
[[gnu::cold]] void AddIncomplete(sdk::KernelTable& k);
[[gnu::cold]] void AddInplace(sdk::KernelTable& k);
[[gnu::cold]] void AddLeastSquares(sdk::KernelTable& k);
[[gnu::cold]] void AddLu(sdk::KernelTable& k);
[[gnu::cold]] void AddMatrixDiag(sdk::KernelTable& k);
[[gnu::cold]] void AddMatrixFunctions(sdk::KernelTable& k);
[[gnu::cold]] void AddMixedMatMul(sdk::KernelTable& k);
[[gnu::cold]] void AddOrder(sdk::KernelTable& k);
[[gnu::cold]] void AddQr(sdk::KernelTable& k);
[[gnu::cold]] void AddRoll(sdk::KernelTable& k);
[[gnu::cold]] void AddSelfAdjointEig(sdk::KernelTable& k);
[[gnu::cold]] void AddSvd(sdk::KernelTable& k);
[[gnu::cold]] void AddTensorScatter(sdk::KernelTable& k);
[[gnu::cold]] void AddTriangularSolve(sdk::KernelTable& k);
[[gnu::cold]] void AddUnique(sdk::KernelTable& k);

using functors::HasNoElements;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_ARRAY_FAMILIES_H_
