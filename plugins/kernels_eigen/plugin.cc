// The entry of kernels_eigen: the families that the file contains.
#include "sdk/cpp/plugin.h"

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/kernels/step_products.h"
#include "plugins/kernels_eigen/quantized_families.h"
#include "plugins/kernels_eigen/sequence_families.h"
#if defined(WEIR_FOR_ASYNC_EXAMPLE)
#include "sdk/examples/async_device/async_kernels.h"
#endif

namespace weir::kernels_eigen {
namespace {

void AddHot(sdk::KernelTable& k) {
  AddActivations(k);
  AddComparison(k);
  AddConvolution(k);
  AddDepthwise(k);
  AddCrossEntropy(k);
  AddLayerNorm(k);
  AddMathBinary(k);
  AddMathUnary(k);
  AddMatMul(k);
  AddReduce(k);
  AddSoftmax(k);
  AddStepProducts(k);
}

#if !defined(WEIR_HOT_FAMILIES_ONLY)
void AddFunctions(sdk::KernelTable& k) {
  AddApproximateEqual(k);
  AddBessel(k);
  AddDistortedBoxes(k);
  AddEuclideanNorm(k);
  AddFourier(k);
  AddFractionalPool(k);
  AddParameterDraws(k);
  AddPositions(k);
  AddProjective(k);
  AddScaleAndTranslate(k);
  AddSliceAssign(k);
  AddSparseCounts(k);
  AddTridiagonal(k);
}

void AddRest(sdk::KernelTable& k) {
  AddAdaptive(k);
  AddAddN(k);
  AddArgReduce(k);
  AddAudio(k);
  AddAssignAdd(k);
  AddBatchNorm(k);
  AddBias(k);
  AddBits(k);
  AddBlocks(k);
  AddCast(k);
  AddCholesky(k);
  AddConcat(k);
  AddCounting(k);
  AddDilation(k);
  AddCategorical(k);
  AddCtc(k);
  AddCtcBeam(k);
  AddDistinct(k);
  AddDistances(k);
  AddEinsum(k);
  AddFill(k);
  AddFunctions(k);
  AddGather(k);
  AddIncomplete(k);
  AddInplace(k);
  AddLeastSquares(k);
  AddLu(k);
  AddMatrixDiag(k);
  AddMatrixFunctions(k);
  AddColours(k);
  AddCrop(k);
  AddDrawBoxes(k);
  AddFakeQuant(k);
  AddLocalNorm(k);
  AddMirror(k);
  AddMixedMatMul(k);
  AddOptimisers(k);
  AddOrder(k);
  AddPermute(k);
  AddQuantize(k);
  AddQuantizedMath(k);
  AddRagged(k);
  AddQr(k);
  AddRandom(k);
  AddRecurrent(k);
  AddRecurrentGrad(k);
  AddRejection(k);
  AddRepeat(k);
  AddRoll(k);
  AddRoundTrip(k);
  AddPool(k);
  AddPoolGrad(k);
  AddResize(k);
  AddReverseSequence(k);
  AddSamplers(k);
  AddScan(k);
  AddScatter(k);
  AddSegments(k);
  AddSelect(k);
  AddSets(k);
  AddSelfAdjointEig(k);
  AddShapeArgs(k);
  AddSlice(k);
  AddSparseArithmetic(k);
  AddSparseParts(k);
  AddSparseReduce(k);
  AddSparseSegments(k);
  AddSparseSums(k);
  AddSpecial(k);
  AddStatelessRandom(k);
  AddStrings(k);
  AddSvd(k);
  AddSuppress(k);
  AddTopK(k);
  AddTriangularSolve(k);
  AddUnique(k);
}
#endif

}  // namespace
}  // namespace weir::kernels_eigen

#if defined(WEIR_FOR_ASYNC_EXAMPLE)
WEIR_PLUGIN("kernels_async", "0.1.0", "weir", WEIR_ASYNC_PLATFORM,
            async_device::AsyncKernels<weir::kernels_eigen::AddHot, weir::kernels_eigen::AddRest>)
#elif defined(WEIR_HOT_FAMILIES_ONLY)
WEIR_PLUGIN("kernels_eigen", "0.1.0", "weir", "cpu", weir::sdk::Kernels<weir::kernels_eigen::AddHot>)
#else
WEIR_PLUGIN("kernels_eigen", "0.1.0", "weir", "cpu",
            weir::sdk::Kernels<weir::kernels_eigen::AddHot, weir::kernels_eigen::AddRest>)
#endif
