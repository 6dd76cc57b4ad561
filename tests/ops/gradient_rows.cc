#include "tests/ops/gradient_rows.h"

#include <cmath>

namespace weir::testing {
namespace {

/// Values without ties, zeros or symmetry, inside (low, high).
Tensor Reals(std::initializer_list<int64_t> dims, double low, double high, double phase = 0.3) {
  const Shape shape = Shape::Of(dims);
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const double turn = std::fmod(0.618033988749895 * static_cast<double>(i + 1) + phase, 1.0);
    values.push_back(low + (high - low) * turn);
  }
  return Tensor::Of<double>(shape, values);
}

Tensor Signed(std::initializer_list<int64_t> dims, double phase = 0.3) { return Reals(dims, -1.9, 2.1, phase); }
Tensor Positive(std::initializer_list<int64_t> dims, double phase = 0.3) { return Reals(dims, 0.4, 2.3, phase); }
Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector<int32_t>(values); }
Tensor Coordinates(std::initializer_list<int64_t> dims, const std::vector<int32_t>& values) {
  return Tensor::Of<int32_t>(Shape::Of(dims), values);
}
Tensor Int(int32_t value) { return Tensor::Scalar<int32_t>(value); }

/// Labels as the op wants them: each row is a distribution.
Tensor OneClassEach() {
  return Tensor::Of<double>(Shape::Of({3, 4}), {0.1, 0.2, 0.3, 0.4, 0.25, 0.25, 0.25, 0.25, 0, 0.5, 0, 0.5});
}

std::vector<GradientRow> Unary() {
  std::vector<GradientRow> rows;
  for (const char* op : {"Neg", "Exp", "Expm1", "Square", "Abs", "Tanh", "Sigmoid", "Relu", "Sign", "Identity",
                         "Softmax", "LogSoftmax"}) {
    rows.push_back({op, {{Signed({3, 4})}}});
  }
  for (const char* op : {"Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Inv"})
    rows.push_back({op, {{Positive({2, 3})}}});
  for (const char* op : {"TanhGrad", "SigmoidGrad"})
    rows.push_back({op, {{Reals({2, 3}, -0.8, 0.8)}, {Signed({2, 3}, 0.7)}}});
  for (const char* op : {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad"})
    rows.push_back({op, {{Positive({2, 3})}, {Signed({2, 3}, 0.7)}}});
  rows.push_back({"ReluGrad", {{Signed({2, 3})}, {Signed({2, 3}, 0.7), true}}});
  rows.push_back({"Cast", {{Signed({3})}}, {{"DstT", DType::kFloat}}});
  rows.push_back({"PlaceholderWithDefault", {{Signed({3})}}, {{"shape", PartialShape::Of({3})}}});
  rows.push_back({"CheckNumerics", {{Signed({3})}}, {{"message", std::string("m")}}});
  rows.push_back({"IdentityN", {{Signed({3})}, {Signed({2}, 0.6)}}, {}, 1});
  return rows;
}

std::vector<GradientRow> Binary() {
  std::vector<GradientRow> rows;
  for (const char* op : {"Add", "AddV2", "Sub", "Mul", "SquaredDifference", "Maximum", "Minimum"}) {
    rows.push_back({op, {{Signed({2, 3})}, {Signed({2, 3}, 0.71)}}});
    rows.push_back({op, {{Signed({2, 1, 3})}, {Signed({4, 1}, 0.77)}}});
  }
  for (const char* op : {"Div", "RealDiv", "DivNoNan"}) {
    rows.push_back({op, {{Signed({2, 3})}, {Positive({3}, 0.71)}}});
    rows.push_back({op, {{Signed({})}, {Positive({2, 2}, 0.71)}}});
  }
  rows.push_back({"Pow", {{Positive({2, 3})}, {Signed({3}, 0.71)}}});
  rows.push_back({"FloorMod", {{Reals({4}, 5.1, 5.9)}, {Reals({4}, 2.1, 2.4)}}});
  rows.push_back({"AddN", {{Signed({2, 2})}, {Signed({2, 2}, 0.6)}, {Signed({2, 2}, 0.9)}}});
  const Tensor chooses = Tensor::Of<bool>(Shape::Of({2, 3}), {true, false, true, false, false, true});
  rows.push_back({"Select", {{chooses}, {Signed({2, 3})}, {Signed({2, 3}, 0.7)}}});
  rows.push_back({"SelectV2", {{chooses}, {Signed({2, 3})}, {Signed({3}, 0.7)}}});
  return rows;
}

std::vector<GradientRow> Products() {
  std::vector<GradientRow> rows;
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      rows.push_back({"MatMul",
                      {{a ? Signed({3, 2}) : Signed({2, 3})}, {b ? Signed({4, 3}, 0.7) : Signed({3, 4}, 0.7)}},
                      {{"transpose_a", a}, {"transpose_b", b}}});
      rows.push_back(
          {"BatchMatMulV2",
           {{a ? Signed({2, 3, 2}) : Signed({2, 2, 3})}, {b ? Signed({1, 4, 3}, 0.7) : Signed({1, 3, 4}, 0.7)}},
           {{"adj_x", a}, {"adj_y", b}}});
    }
  }
  rows.push_back({"BatchMatMul", {{Signed({2, 2, 3})}, {Signed({2, 3, 2}, 0.7)}}});
  rows.push_back({"BiasAdd", {{Signed({2, 3, 4})}, {Signed({4}, 0.7)}}});
  rows.push_back({"BiasAdd", {{Signed({2, 3, 4})}, {Signed({3}, 0.7)}}, {{"data_format", "NCHW"}}});
  rows.push_back({"BiasAddGrad", {{Signed({2, 3, 4})}}});
  rows.push_back({"SoftmaxCrossEntropyWithLogits", {{Signed({3, 4})}, {OneClassEach(), true}}});
  rows.push_back({"SparseSoftmaxCrossEntropyWithLogits", {{Signed({3, 4})}, {Tensor::Vector<int64_t>({1, 3, 0})}}});
  return rows;
}

std::vector<GradientRow> Reductions() {
  std::vector<GradientRow> rows;
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) {
    rows.push_back({op, {{Signed({2, 3, 2})}, {Ints({1})}}});
    rows.push_back({op, {{Signed({2, 3, 2})}, {Ints({0, -1})}}, {{"keep_dims", true}}});
    rows.push_back({op, {{Signed({4})}, {Int(0)}}});
  }
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      rows.push_back({"Cumsum", {{Signed({2, 4})}, {Int(1)}}, {{"exclusive", exclusive}, {"reverse", reverse}}});
      rows.push_back({"Cumprod", {{Positive({2, 4})}, {Int(1)}}, {{"exclusive", exclusive}, {"reverse", reverse}}});
    }
  }
  rows.push_back({"UnsortedSegmentSum", {{Signed({4, 2})}, {Ints({2, 0, 2, 1})}, {Int(3)}}});
  return rows;
}

std::vector<GradientRow> Arrays() {
  const op::AttrList kStrided = {{"begin_mask", 1}, {"end_mask", 2}, {"shrink_axis_mask", 4}};
  return {
      {"Reshape", {{Signed({2, 6})}, {Ints({3, -1})}}},
      {"ExpandDims", {{Signed({2, 3})}, {Int(1)}}},
      {"Squeeze", {{Signed({2, 1, 3})}}, {{"squeeze_dims", std::vector<int64_t>{1}}}},
      {"Transpose", {{Signed({2, 3, 4})}, {Ints({2, 0, 1})}}},
      {"ConcatV2", {{Signed({2, 3})}, {Signed({2, 1}, 0.7)}, {Int(1)}}, {{"N", 2}}},
      {"Concat", {{Int(0)}, {Signed({2, 3})}, {Signed({1, 3}, 0.7)}}, {{"N", 2}}},
      {"Split", {{Int(1)}, {Signed({2, 4})}}, {{"num_split", 2}}, 1},
      {"SplitV", {{Signed({2, 5})}, {Ints({2, 3})}, {Int(1)}}, {{"num_split", 2}}, 1},
      {"Slice", {{Signed({3, 4})}, {Ints({1, 0})}, {Ints({2, 3})}}},
      {"StridedSlice", {{Signed({3, 4, 2})}, {Ints({0, 1, 1})}, {Ints({3, 3, 2})}, {Ints({2, 1, 1})}}, kStrided},
      {"StridedSliceGrad", {{Ints({3, 4})}, {Ints({0, 1})}, {Ints({3, 4})}, {Ints({2, 1})}, {Signed({2, 3})}}},
      {"ReverseV2", {{Signed({2, 3})}, {Ints({1})}}},
      {"GatherV2", {{Signed({4, 3})}, {Ints({3, 0, 3})}, {Int(0)}}},
      {"GatherV2", {{Signed({2, 4, 2})}, {Ints({3, 0})}, {Int(1)}}},
      {"Gather", {{Signed({4, 3})}, {Ints({1, 1, 2})}}},
      {"GatherNd", {{Signed({3, 4})}, {Coordinates({3, 2}, {0, 1, 2, 3, 0, 1})}}},
      {"GatherNd", {{Signed({3, 4})}, {Coordinates({4, 1}, {0, 2, 0, 1})}}},
      {"ScatterNd", {{Coordinates({3, 1}, {2, 0, 2})}, {Signed({3, 2})}, {Ints({4, 2})}}},
      {"Print", {{Signed({2})}, {Signed({2}, 0.7), true}}, {{"first_n", 0}}},
      {"Tile", {{Signed({2, 3})}, {Ints({2, 2})}}},
      {"BroadcastTo", {{Signed({3, 1})}, {Ints({2, 3, 4})}}},
      {"Pack", {{Signed({2, 3})}, {Signed({2, 3}, 0.7)}}, {{"axis", 1}}},
      {"Unpack", {{Signed({2, 3})}}, {{"num", 3}, {"axis", 1}}, 2},
      {"Pad", {{Signed({2, 3})}, {Tensor::Of<int32_t>(Shape::Of({2, 2}), {1, 0, 0, 2})}}},
      {"DynamicStitch", {{Ints({0, 2})}, {Ints({1, 3})}, {Signed({2, 2})}, {Signed({2, 2}, 0.7)}}, {{"N", 2}}},
      {"Fill", {{Ints({2, 3})}, {Signed({})}}},
  };
}

}  // namespace

const std::vector<GradientRow>& GradientRows() {
  static const std::vector<GradientRow> rows = [] {
    std::vector<GradientRow> all;
    for (const auto& family : {Unary(), Binary(), Products(), Reductions(), Arrays()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return rows;
}

}  // namespace weir::testing
