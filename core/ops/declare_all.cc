#include "core/ops/declare_all.h"

#include "core/ops/families.h"

namespace weir::ops {

void DeclareAll(op::OpRegistry& ops) {
  DeclarePlumbing(ops);
  DeclareTransfer(ops);
  DeclareFunctional(ops);
  DeclareState(ops);
  DeclareMathUnary(ops);
  DeclareMathBinary(ops);
  DeclareReduction(ops);
  DeclareComparison(ops);
  DeclareLinalg(ops);
  DeclareMatrix(ops);
  DeclareTridiagonal(ops);
  DeclareEinsum(ops);
  DeclareSpecial(ops);
  DeclareIncomplete(ops);
  DeclareFourier(ops);
  DeclareBits(ops);
  DeclareNn(ops);
  DeclareActivations(ops);
  DeclareConvolution(ops);
  DeclarePatchOps(ops);
  DeclareFused(ops);
  DeclarePool(ops);
  DeclareNormalisation(ops);
  DeclareResize(ops);
  DeclareWarps(ops);
  DeclareColours(ops);
  DeclareBoxes(ops);
  DeclareFakeQuant(ops);
  DeclareQuantize(ops);
  DeclareRecurrent(ops);
  DeclareCtc(ops);
  DeclareAudio(ops);
  DeclareRandom(ops);
  DeclareStateless(ops);
  DeclareSamplers(ops);
  DeclareShape(ops);
  DeclareArray(ops);
  DeclareBlocks(ops);
  DeclareMatrixDiag(ops);
  DeclareWholeArray(ops);
  DeclareCounting(ops);
  DeclarePositions(ops);
  DeclareConcat(ops);
  DeclareSlice(ops);
  DeclareGather(ops);
  DeclareSegment(ops);
  DeclareScatter(ops);
  DeclareSparse(ops);
  DeclareSparseMath(ops);
  DeclareSparseMessages(ops);
  DeclareSets(ops);
  DeclareRagged(ops);
  DeclareTrain(ops);
  DeclareStack(ops);
  DeclareTensorArray(ops);
  DeclareTensorList(ops);
  DeclareOptional(ops);
  DeclareTable(ops);
  DeclareQueue(ops);
  DeclareReader(ops);
  DeclareBarrier(ops);
  DeclareStaging(ops);
  DeclareAccumulator(ops);
  DeclareFiles(ops);
  DeclareSummary(ops);
  DeclareStrings(ops);
  DeclareText(ops);
  DeclareParseExample(ops);
  DeclareImages(ops);
  DeclareFeatures(ops);
  DeclarePrint(ops);
  DeclareCheck(ops);
}

Result<const op::OpRegistry*> Catalogue() {
  struct Frozen {
    op::OpRegistry ops;
    Status status;
    Frozen() {
      DeclareAll(ops);
      status = ops.Freeze(op::OpRegistry::Checks::kOnUse);
    }
  };
  static const Frozen& frozen = *new Frozen;  // never destroyed: freeing its records would take a part of a short run
  WEIR_TRY(frozen.status);
  return &frozen.ops;
}

}  // namespace weir::ops
