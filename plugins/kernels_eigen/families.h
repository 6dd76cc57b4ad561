// One function per family of kernels, called by the plugin's entry.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

// Performance-critical: also built for x86-64-v4.
[[gnu::cold]] void AddActivations(sdk::KernelTable& k);
[[gnu::cold]] void AddComparison(sdk::KernelTable& k);
[[gnu::cold]] void AddConvolution(sdk::KernelTable& k);
[[gnu::cold]] void AddDepthwise(sdk::KernelTable& k);
[[gnu::cold]] void AddCrossEntropy(sdk::KernelTable& k);
[[gnu::cold]] void AddLayerNorm(sdk::KernelTable& k);
[[gnu::cold]] void AddMathBinary(sdk::KernelTable& k);
[[gnu::cold]] void AddMathUnary(sdk::KernelTable& k);
[[gnu::cold]] void AddMatMul(sdk::KernelTable& k);
[[gnu::cold]] void AddReduce(sdk::KernelTable& k);
[[gnu::cold]] void AddSoftmax(sdk::KernelTable& k);

[[gnu::cold]] void AddAdaptive(sdk::KernelTable& k);
[[gnu::cold]] void AddAddN(sdk::KernelTable& k);
[[gnu::cold]] void AddArgReduce(sdk::KernelTable& k);
[[gnu::cold]] void AddAssignAdd(sdk::KernelTable& k);
[[gnu::cold]] void AddBatchNorm(sdk::KernelTable& k);
[[gnu::cold]] void AddBias(sdk::KernelTable& k);
[[gnu::cold]] void AddBits(sdk::KernelTable& k);
[[gnu::cold]] void AddBlocks(sdk::KernelTable& k);
[[gnu::cold]] void AddCast(sdk::KernelTable& k);
[[gnu::cold]] void AddColours(sdk::KernelTable& k);
[[gnu::cold]] void AddConcat(sdk::KernelTable& k);
[[gnu::cold]] void AddDilation(sdk::KernelTable& k);
[[gnu::cold]] void AddDistinct(sdk::KernelTable& k);
[[gnu::cold]] void AddDistances(sdk::KernelTable& k);
[[gnu::cold]] void AddCrop(sdk::KernelTable& k);
[[gnu::cold]] void AddDrawBoxes(sdk::KernelTable& k);
[[gnu::cold]] void AddFakeQuant(sdk::KernelTable& k);
[[gnu::cold]] void AddFill(sdk::KernelTable& k);
[[gnu::cold]] void AddGather(sdk::KernelTable& k);
[[gnu::cold]] void AddLocalNorm(sdk::KernelTable& k);
[[gnu::cold]] void AddMirror(sdk::KernelTable& k);
[[gnu::cold]] void AddOptimisers(sdk::KernelTable& k);
[[gnu::cold]] void AddPermute(sdk::KernelTable& k);
[[gnu::cold]] void AddRagged(sdk::KernelTable& k);
[[gnu::cold]] void AddPool(sdk::KernelTable& k);
[[gnu::cold]] void AddPoolGrad(sdk::KernelTable& k);
[[gnu::cold]] void AddRandom(sdk::KernelTable& k);
[[gnu::cold]] void AddRepeat(sdk::KernelTable& k);
[[gnu::cold]] void AddResize(sdk::KernelTable& k);
[[gnu::cold]] void AddScan(sdk::KernelTable& k);
[[gnu::cold]] void AddScatter(sdk::KernelTable& k);
[[gnu::cold]] void AddSegments(sdk::KernelTable& k);
[[gnu::cold]] void AddSelect(sdk::KernelTable& k);
[[gnu::cold]] void AddSets(sdk::KernelTable& k);
[[gnu::cold]] void AddShapeArgs(sdk::KernelTable& k);
[[gnu::cold]] void AddSlice(sdk::KernelTable& k);
[[gnu::cold]] void AddSparseArithmetic(sdk::KernelTable& k);
[[gnu::cold]] void AddSparseParts(sdk::KernelTable& k);
[[gnu::cold]] void AddSparseReduce(sdk::KernelTable& k);
[[gnu::cold]] void AddSparseSegments(sdk::KernelTable& k);
[[gnu::cold]] void AddSparseSums(sdk::KernelTable& k);
[[gnu::cold]] void AddSpecial(sdk::KernelTable& k);
[[gnu::cold]] void AddStrings(sdk::KernelTable& k);
[[gnu::cold]] void AddSuppress(sdk::KernelTable& k);
[[gnu::cold]] void AddTopK(sdk::KernelTable& k);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_FAMILIES_H_
