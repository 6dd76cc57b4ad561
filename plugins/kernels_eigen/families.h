// One function per family of kernels, called by the plugin's entry.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

// Performance-critical: also built for x86-64-v4.
void AddActivations(sdk::KernelTable& k);
void AddComparison(sdk::KernelTable& k);
void AddConvolution(sdk::KernelTable& k);
void AddDepthwise(sdk::KernelTable& k);
void AddCrossEntropy(sdk::KernelTable& k);
void AddLayerNorm(sdk::KernelTable& k);
void AddMathBinary(sdk::KernelTable& k);
void AddMathUnary(sdk::KernelTable& k);
void AddMatMul(sdk::KernelTable& k);
void AddReduce(sdk::KernelTable& k);
void AddSoftmax(sdk::KernelTable& k);

void AddAdaptive(sdk::KernelTable& k);
void AddAddN(sdk::KernelTable& k);
void AddArgReduce(sdk::KernelTable& k);
void AddAssignAdd(sdk::KernelTable& k);
void AddBatchNorm(sdk::KernelTable& k);
void AddBias(sdk::KernelTable& k);
void AddBits(sdk::KernelTable& k);
void AddBlocks(sdk::KernelTable& k);
void AddCast(sdk::KernelTable& k);
void AddColours(sdk::KernelTable& k);
void AddConcat(sdk::KernelTable& k);
void AddDilation(sdk::KernelTable& k);
void AddDistinct(sdk::KernelTable& k);
void AddDistances(sdk::KernelTable& k);
void AddCrop(sdk::KernelTable& k);
void AddDrawBoxes(sdk::KernelTable& k);
void AddFakeQuant(sdk::KernelTable& k);
void AddFill(sdk::KernelTable& k);
void AddGather(sdk::KernelTable& k);
void AddLocalNorm(sdk::KernelTable& k);
void AddMirror(sdk::KernelTable& k);
void AddOptimisers(sdk::KernelTable& k);
void AddPermute(sdk::KernelTable& k);
void AddRagged(sdk::KernelTable& k);
void AddPool(sdk::KernelTable& k);
void AddPoolGrad(sdk::KernelTable& k);
void AddRandom(sdk::KernelTable& k);
void AddRepeat(sdk::KernelTable& k);
void AddResize(sdk::KernelTable& k);
void AddScan(sdk::KernelTable& k);
void AddScatter(sdk::KernelTable& k);
void AddSegments(sdk::KernelTable& k);
void AddSelect(sdk::KernelTable& k);
void AddSets(sdk::KernelTable& k);
void AddShapeArgs(sdk::KernelTable& k);
void AddSlice(sdk::KernelTable& k);
void AddSparseArithmetic(sdk::KernelTable& k);
void AddSparseParts(sdk::KernelTable& k);
void AddSparseReduce(sdk::KernelTable& k);
void AddSparseSegments(sdk::KernelTable& k);
void AddSparseSums(sdk::KernelTable& k);
void AddSpecial(sdk::KernelTable& k);
void AddStrings(sdk::KernelTable& k);
void AddSuppress(sdk::KernelTable& k);
void AddTopK(sdk::KernelTable& k);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_FAMILIES_H_
