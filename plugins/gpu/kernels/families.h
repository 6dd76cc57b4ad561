// One function per family of kernels, called by the plugin's entry.
#ifndef WEIR_PLUGINS_GPU_KERNELS_FAMILIES_H_
#define WEIR_PLUGINS_GPU_KERNELS_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::gpu {

void AddArrays(sdk::KernelTable& k);
void AddBessel(sdk::KernelTable& k);
void AddBinaryFunctions(sdk::KernelTable& k);
void AddBlocks(sdk::KernelTable& k);
void AddCategorical(sdk::KernelTable& k);
void AddChosen(sdk::KernelTable& k);
void AddColours(sdk::KernelTable& k);
void AddComplex(sdk::KernelTable& k);
void AddConvolutions(sdk::KernelTable& k);
void AddCounting(sdk::KernelTable& k);
void AddCrop(sdk::KernelTable& k);
void AddDiagonals(sdk::KernelTable& k);
void AddDilation(sdk::KernelTable& k);
void AddDraws(sdk::KernelTable& k);
void AddEigenPairs(sdk::KernelTable& k);
void AddEinsum(sdk::KernelTable& k);
void AddFourier(sdk::KernelTable& k);
void AddGru(sdk::KernelTable& k);
void AddLayouts(sdk::KernelTable& k);
void AddLinearAlgebra(sdk::KernelTable& k);
void AddLocalNorm(sdk::KernelTable& k);
void AddLstm(sdk::KernelTable& k);
void AddMirror(sdk::KernelTable& k);
void AddNormalisation(sdk::KernelTable& k);
void AddPartition(sdk::KernelTable& k);
void AddPooling(sdk::KernelTable& k);
void AddProducts(sdk::KernelTable& k);
void AddProjective(sdk::KernelTable& k);
void AddQuantised(sdk::KernelTable& k);
void AddReductions(sdk::KernelTable& k);
void AddResize(sdk::KernelTable& k);
void AddRows(sdk::KernelTable& k);
void AddScans(sdk::KernelTable& k);
void AddSegments(sdk::KernelTable& k);
void AddSelection(sdk::KernelTable& k);
void AddShapeArgs(sdk::KernelTable& k);
void AddSoftmax(sdk::KernelTable& k);
void AddSparse(sdk::KernelTable& k);
void AddSparseParts(sdk::KernelTable& k);
void AddSparseRows(sdk::KernelTable& k);
void AddSpecial(sdk::KernelTable& k);
void AddSteps(sdk::KernelTable& k);
void AddSuppress(sdk::KernelTable& k);
void AddSvd(sdk::KernelTable& k);
void AddTridiagonal(sdk::KernelTable& k);
void AddUnaryFunctions(sdk::KernelTable& k);
void AddUnique(sdk::KernelTable& k);
void AddUpdates(sdk::KernelTable& k);

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_FAMILIES_H_
