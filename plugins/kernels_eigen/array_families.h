// Families of linear algebra, diagonals, order and whole arrays, and what their kernels share.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_ARRAY_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_ARRAY_FAMILIES_H_

#include <algorithm>

#include "plugins/functors/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

void AddCholesky(sdk::KernelTable& k);
void AddCounting(sdk::KernelTable& k);
void AddEinsum(sdk::KernelTable& k);
void AddIncomplete(sdk::KernelTable& k);
void AddInplace(sdk::KernelTable& k);
void AddLeastSquares(sdk::KernelTable& k);
void AddLu(sdk::KernelTable& k);
void AddMatrixDiag(sdk::KernelTable& k);
void AddMatrixFunctions(sdk::KernelTable& k);
void AddMixedMatMul(sdk::KernelTable& k);
void AddOrder(sdk::KernelTable& k);
void AddQr(sdk::KernelTable& k);
void AddRoll(sdk::KernelTable& k);
void AddSelfAdjointEig(sdk::KernelTable& k);
void AddSvd(sdk::KernelTable& k);
void AddTensorScatter(sdk::KernelTable& k);
void AddTriangularSolve(sdk::KernelTable& k);
void AddUnique(sdk::KernelTable& k);

using functors::HasNoElements;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_ARRAY_FAMILIES_H_
