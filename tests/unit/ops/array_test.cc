// Tests of array and file ops beyond the tables of this folder: strings and real numbers as known values, and
// IndexedSlices that pass through.
#include <gtest/gtest.h>

#include "core/ops/declare_all.h"
#include "tests/unit/ops/sketch.h"

namespace weir::ops::test {
namespace {

/// The shapes inferred by the row's op for inputs with `values`; an invalid value is unknown. "error …" for an error.
std::string Shapes(const std::string& line, const std::vector<Tensor>& values) {
  Result<Row> row = ParseRow(Ops(), line);
  if (!row.ok()) return row.status().message();
  for (size_t i = 0; i < values.size(); ++i) {
    row->inputs[i].value = values[i];
    if (values[i].valid()) row->inputs[i].shape = values[i].shape();
  }
  const Result<std::vector<PartialShape>> shapes = InferShapes(*row);
  if (!shapes.ok()) return "error " + shapes.status().message();
  std::string out;
  for (const PartialShape& shape : *shapes) out += (out.empty() ? "" : " ") + shape.ToString();
  return out;
}

TEST(ArrayShapes, RangeCountsInItsOwnType) {
  const std::string row = "Range Tidx=double : [] ; [] ; [] ->";
  const auto range = [&row](double start, double limit, double delta) {
    return Shapes(row, {Tensor::Scalar(start), Tensor::Scalar(limit), Tensor::Scalar(delta)});
  };
  EXPECT_EQ(range(0, 1, 0.1), "[10]");
  EXPECT_EQ(range(1, 0, -0.3), "[4]");
  EXPECT_EQ(range(2, 2, 0.5), "[0]");
  EXPECT_EQ(range(0, 1, 0), "error Requires delta != 0");
  EXPECT_EQ(range(0, 1, 1e-300), "error Requires ((limit - start) / delta) <= 9223372036854775807");
  // In float, 1 / 0.1f is exactly 10, though 0.1f is more than a tenth.
  EXPECT_EQ(
      Shapes("Range Tidx=float : [] ; [] ; [] ->", {Tensor::Scalar(0.f), Tensor::Scalar(1.f), Tensor::Scalar(0.1f)}),
      "[10]");
}

TEST(ArrayShapes, RestoredShapesComeFromTheSlices) {
  const auto restore = [](const std::string& first, const std::string& second) {
    return Shapes("RestoreV2 dtypes=[float,int32] : [] ; [2] ; [2] ->",
                  {Tensor(), Tensor(), Tensor::Vector<std::string>({first, second})});
  };
  EXPECT_EQ(restore("", "10 20 0,5:-"), "<unknown> [5,20]");
  EXPECT_EQ(restore("4 2,1", ""), "[1] <unknown>");
  EXPECT_TRUE(restore("10 20 0,11:-", "").starts_with("error ")) << restore("10 20 0,11:-", "");
  EXPECT_TRUE(restore("ten", "").starts_with("error ")) << restore("ten", "");
}

TEST(ArrayShapes, ValuesOfTheWrongLengthAreErrorsEvenWhereShapesAreUnknown) {
  const Tensor three = Tensor::Vector<int32_t>({0, 1, 2});
  const std::vector<std::string> rows = {"Transpose : [2,3] ; <unknown> ->", "Pad : [2,3] ; <unknown> ->",
                                         "Tile : [2,3] ; <unknown> ->", "Slice : [2,3] ; [2] ; <unknown> ->"};
  for (const std::string& line : rows) {
    Result<Row> row = ParseRow(Ops(), line);
    ASSERT_TRUE(row.ok()) << row.status().ToString();
    row->inputs.back().value = three;
    EXPECT_FALSE(InferShapes(*row).ok()) << line;
  }
}

std::string NamesRunBy(op::RunBy who) {
  std::string names;
  for (const op::OpDef* def : Ops().All()) {
    if (def->run_by == who) names += (names.empty() ? "" : " ") + def->name;
  }
  return names;
}

TEST(Catalogue, KindOfEveryOp) {
  EXPECT_EQ(
      NamesRunBy(op::RunBy::kUniversal),
      "Assign AssignVariableOp Const EnsureShape ExpandDims GuaranteeConst Identity IdentityN "
      "IsVariableInitialized Placeholder PlaceholderV2 PlaceholderWithDefault PreventGradient Rank ReadVariableOp "
      "Reshape Shape ShapeN Size Snapshot Squeeze StopGradient TemporaryVariable VarHandleOp VarIsInitializedOp "
      "Variable VariableShape VariableV2");
  EXPECT_EQ(NamesRunBy(op::RunBy::kExecutor),
            "Case ControlTrigger DeviceIndex Enter Exit For If LoopCond Merge NextIteration NoOp PartitionedCall "
            "RefEnter RefExit RefIdentity RefMerge RefNextIteration RefSelect RefSwitch RemoteCall "
            "StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile Switch SymbolicGradient While "
            "_Arg _Recv _Retval _Send");
}

/// A sketch with IndexedSlices as the gradient of its first output.
class SparseSketch : public Sketch {
 public:
  using Sketch::Sketch;
  op::Grad DyAsIs(int i) override {
    const op::Value indices = ConstInts({0, 2});
    return op::Grad::Slices(Dy(i), indices, ConstInts({5, 3}));
  }
};

TEST(ArrayGradients, IndexedSlicesPassThroughIdentitiesAndReads) {
  for (const char* line : {"Identity : [2,3] ->", "ReadVariableOp : handle [2,3] ->", "IdentityN : [2,3] ->"}) {
    const Result<Row> row = ParseRow(Ops(), line);
    ASSERT_TRUE(row.ok()) << row.status().ToString();
    SparseSketch sketch(Ops(), *row, Flow::kAllOutputs);
    const Result<std::vector<op::Grad>> grads = row->def->gradient(sketch);
    ASSERT_TRUE(grads.ok()) << line << grads.status().ToString();
    ASSERT_EQ(grads->size(), 1u) << line;
    EXPECT_TRUE((*grads)[0].sparse()) << line;
  }
}

TEST(ArrayGradients, GathersAlongAxisZeroGiveRowsAndOthersAreDense) {
  const auto sparse = [](const std::string& line) {
    const Result<Row> row = ParseRow(Ops(), line);
    EXPECT_TRUE(row.ok()) << row.status().ToString();
    Sketch sketch(Ops(), *row, Flow::kFirstOutput);
    const Result<std::vector<op::Grad>> grads = row->def->gradient(sketch);
    EXPECT_TRUE(grads.ok() && sketch.status().ok()) << line << sketch.status().ToString();
    return grads.ok() && (*grads)[0].sparse();
  };
  EXPECT_TRUE(sparse("GatherV2 : [5,3] ; [2] ; =0 ->"));
  EXPECT_TRUE(sparse("GatherV2 : [5,3] ; [2] ; =-2 ->"));
  EXPECT_FALSE(sparse("GatherV2 : [5,3] ; [2] ; =1 ->"));
  EXPECT_FALSE(sparse("GatherV2 : [5,3] ; [2] ; [] ->"));
  EXPECT_FALSE(sparse("GatherV2 batch_dims=1 : [5,3] ; [5,2] ; =1 ->"));
}

}  // namespace
}  // namespace weir::ops::test
