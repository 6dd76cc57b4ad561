// Kernels that move elements: one row per case, run in every size of element, into fresh and into shared memory.
#include <gtest/gtest.h>

#include <iterator>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

/// An operand of a row: elements of the type that moves, or integers.
struct Operand {
  bool moved;
  std::vector<int64_t> dims;
  std::vector<double> numbers;
};
Operand E(std::vector<int64_t> dims, std::vector<double> numbers) {
  return {true, std::move(dims), std::move(numbers)};
}
Operand I(std::vector<int64_t> dims, std::vector<double> numbers) {
  return {false, std::move(dims), std::move(numbers)};
}
Operand V(std::vector<double> numbers) {
  const auto n = static_cast<int64_t>(numbers.size());
  return I({n}, std::move(numbers));
}
Operand N(double number) { return I({}, {number}); }
/// 0, 1, 2, … in that shape.
Operand Counted(std::vector<int64_t> dims) {
  Operand operand = E(std::move(dims), {});
  int64_t n = 1;
  for (const int64_t dim : operand.dims) n *= dim;
  for (int64_t i = 0; i < n; ++i) operand.numbers.push_back(static_cast<double>(i));
  return operand;
}

struct Row {
  const char* op;
  Attributes attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  const char* error = nullptr;  // what it says instead of giving the outputs
};

void Expect(const Row& row, uint32_t type, uint32_t index_type, const CallOptions& options) {
  Attributes attributes = row.attributes;
  for (const char* name : {"T", "Tparams", "dtype"}) attributes.try_emplace(name, Type(type));
  attributes.try_emplace("shape_type", Type(index_type));
  const auto type_of = [&](const Operand& x) { return x.moved ? type : index_type; };
  std::vector<Value> inputs, outputs;
  for (const Operand& x : row.inputs) inputs.push_back(AsType(x.numbers, x.dims, type_of(x)));
  for (const Operand& x : row.outputs) outputs.push_back(Blank(type_of(x), x.dims));
  const Outcome outcome = Kernels().Call(row.op, attributes, inputs, outputs, options);
  const std::string what = std::string(row.op) + " in type " + std::to_string(type);
  if (row.error != nullptr) {
    EXPECT_EQ(outcome.code, WEIR_INVALID_ARGUMENT) << what;
    EXPECT_EQ(outcome.message, row.error) << what;
    return;
  }
  ASSERT_EQ(outcome.code, WEIR_OK) << what << ": " << outcome.message;
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    EXPECT_EQ(Numbers(outcome.outputs[i]), row.outputs[i].numbers) << what << ", output " << i;
  }
}

template <size_t n>
void ExpectAll(const Row (&rows)[n]) {
  for (const Row& row : rows) {
    for (const uint32_t type : {WEIR_UINT8, WEIR_FLOAT16, WEIR_INT32, WEIR_FLOAT64, WEIR_COMPLEX128}) {
      for (const uint32_t index_type : {WEIR_INT32, WEIR_INT64}) {
        for (const bool in_place : {false, true}) Expect(row, type, index_type, {.in_place = in_place});
      }
    }
  }
}

TEST(Arrays, FillsAndRanges) {
  const Row rows[] = {
      {"Fill", {}, {V({2, 3}), E({}, {7})}, {E({2, 3}, {7, 7, 7, 7, 7, 7})}},
      {"Fill", {}, {V({}), E({}, {7})}, {E({}, {7})}},
      {"Fill", {}, {V({2, 0}), E({}, {7})}, {E({2, 0}, {})}},
      {"Fill", {}, {V({2}), E({2}, {7, 8})}, {E({2}, {})}, "value must be a scalar, got shape [2]"},
      {"ZerosLike", {}, {E({3}, {1, 2, 3})}, {E({3}, {0, 0, 0})}},
      {"ZerosLike", {}, {E({0}, {})}, {E({0}, {})}},
      {"OnesLike", {}, {E({2, 2}, {5, 6, 7, 8})}, {E({2, 2}, {1, 1, 1, 1})}},
  };
  ExpectAll(rows);
  for (const uint32_t type : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_INT32, WEIR_INT64}) {
    const auto range = [&](double start, double limit, double delta, std::vector<double> wanted) {
      const std::vector<Value> in = {AsType({start}, {}, type), AsType({limit}, {}, type), AsType({delta}, {}, type)};
      const Outcome outcome =
          Kernels().Call("Range", {{"Tidx", Type(type)}}, in, {Blank(type, {static_cast<int64_t>(wanted.size())})});
      ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
      EXPECT_EQ(Numbers(outcome.outputs[0]), wanted);
    };
    range(3, 18, 3, {3, 6, 9, 12, 15});
    range(3, 1, -1, {3, 2});
    range(3, 3, 1, {});
  }
}

TEST(Arrays, RangeRoundsAsTensorFlowDoes) {
  const Outcome outcome = Kernels().Call("Range", {{"Tidx", Type(WEIR_FLOAT32)}},
                                         {Scalar(0.0f), Scalar(1.0f), Scalar(0.1f)}, {Blank(WEIR_FLOAT32, {10})});
  ASSERT_EQ(outcome.code, WEIR_OK);
  EXPECT_EQ(Elements<float>(outcome.outputs[0])[9], 0.90000004f);
}

TEST(Arrays, Permutations) {
  const Row rows[] = {
      {"Transpose", {}, {Counted({2, 3}), V({1, 0})}, {E({3, 2}, {0, 3, 1, 4, 2, 5})}},
      {"Transpose", {}, {Counted({2, 2, 3}), V({0, 2, 1})}, {E({2, 3, 2}, {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11})}},
      {"Transpose", {}, {Counted({2, 2, 3}), V({2, 0, 1})}, {E({3, 2, 2}, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11})}},
      {"Transpose", {}, {Counted({2, 3}), V({0, 1})}, {Counted({2, 3})}},
      {"Transpose", {}, {E({}, {4}), V({})}, {E({}, {4})}},
      {"Transpose", {}, {E({0, 3}, {}), V({1, 0})}, {E({3, 0}, {})}},
      {"Transpose", {}, {Counted({2, 3}), V({0, 2})}, {E({2, 3}, {})}, "2 is out of range [0 .. 2)"},
      {"Transpose", {}, {Counted({2, 3}), V({0, 0})}, {E({2, 2}, {})}, "1 is missing from {0,0}."},
      {"Transpose",
       {},
       {Counted({2, 3}), V({0})},
       {E({2}, {})},
       "transpose expects a vector of size 2. But input(1) is a vector of size 1"},
      {"ReverseV2", {}, {Counted({2, 3}), V({1})}, {E({2, 3}, {2, 1, 0, 5, 4, 3})}},
      {"ReverseV2", {}, {Counted({2, 3}), V({-2})}, {E({2, 3}, {3, 4, 5, 0, 1, 2})}},
      {"ReverseV2", {}, {Counted({2, 3}), V({0, 1})}, {E({2, 3}, {5, 4, 3, 2, 1, 0})}},
      {"ReverseV2", {}, {Counted({2, 1, 2}), V({1})}, {Counted({2, 1, 2})}},
      {"ReverseV2", {}, {E({2, 0}, {}), V({0, 1})}, {E({2, 0}, {})}},
      {"ReverseV2", {}, {Counted({4}), V({1})}, {E({4}, {})}, "'axis'[0] = 1 is out of valid range [0, 0"},
      {"ReverseV2", {}, {Counted({4}), V({0, -1})}, {E({4}, {})}, "axis 0 specified more than once."},
  };
  ExpectAll(rows);
}

TEST(Arrays, InvertedPermutations) {
  const Row rows[] = {
      {"InvertPermutation", {}, {V({2, 0, 1})}, {V({1, 2, 0})}},
      {"InvertPermutation", {}, {V({})}, {V({})}},
      {"InvertPermutation", {}, {V({0, 2})}, {V({0, 0})}, "2 is not between 0 and 2"},
      {"InvertPermutation", {}, {V({0, -1})}, {V({0, 0})}, "-1 is not between 0 and 2"},
      {"InvertPermutation", {}, {V({0, 0})}, {V({0, 0})}, "0 is duplicated in the input."},
      {"InvertPermutation", {}, {I({1, 1}, {0})}, {I({1, 1}, {0})}, "invert_permutation expects a 1D vector."},
  };
  for (const Row& row : rows) {
    for (const uint32_t type : {WEIR_INT32, WEIR_INT64}) Expect(row, type, type, {});
  }
}

/// Large enough for several blocks along both axes, and cut by none of them.
TEST(Arrays, LargeTransposesInEverySize) {
  const int64_t rows = 67, columns = 45;
  for (const uint32_t type : {WEIR_INT16, WEIR_FLOAT32, WEIR_INT64, WEIR_COMPLEX128}) {
    std::vector<double> numbers, wanted;
    for (int64_t i = 0; i < 2 * rows * columns; ++i) numbers.push_back(static_cast<double>(i));
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < 2; ++k) {
        for (int64_t r = 0; r < rows; ++r) wanted.push_back(static_cast<double>((k * rows + r) * columns + c));
      }
    }
    const Outcome outcome = Kernels().Call("Transpose", {{"T", Type(type)}},
                                           {AsType(numbers, {2, rows, columns}, type), Of<int32_t>({3}, {2, 0, 1})},
                                           {Blank(type, {columns, 2, rows})});
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    EXPECT_EQ(Numbers(outcome.outputs[0]), wanted) << type;
  }
}

TEST(Arrays, JoinedAndTakenApart) {
  const Row rows[] = {
      {"ConcatV2", {}, {Counted({2, 1}), E({2, 2}, {7, 8, 9, 10}), N(1)}, {E({2, 3}, {0, 7, 8, 1, 9, 10})}},
      {"ConcatV2", {}, {Counted({1, 2}), E({2, 2}, {7, 8, 9, 10}), N(-2)}, {E({3, 2}, {0, 1, 7, 8, 9, 10})}},
      {"ConcatV2", {}, {Counted({2}), E({0}, {}), N(0)}, {E({2}, {0, 1})}},
      {"ConcatV2",
       {},
       {Counted({2}), Counted({2}), N(1)},
       {E({4}, {})},
       "ConcatOp : Expected concatenating dimensions in the range [-1, 1), but got 1"},
      {"ConcatV2",
       {},
       {Counted({2, 1}), Counted({3, 1}), N(1)},
       {E({2, 2}, {})},
       "ConcatOp : Dimension 0 in both shapes must be equal: shape[0] = [2,1] vs. shape[1] = [3,1]"},
      {"ConcatV2",
       {},
       {Counted({2}), Counted({2, 1}), N(0)},
       {E({4}, {})},
       "ConcatOp : Ranks of all input tensors should match: shape[0] = [2] vs. shape[1] = [2,1]"},
      {"Concat", {}, {N(0), Counted({2}), E({3}, {7, 8, 9})}, {E({5}, {0, 1, 7, 8, 9})}},
      {"Pack", {{"axis", Number(1)}}, {Counted({2}), E({2}, {7, 8})}, {E({2, 2}, {0, 7, 1, 8})}},
      {"Pack", {{"axis", Number(-2)}}, {Counted({2}), E({2}, {7, 8})}, {E({2, 2}, {0, 1, 7, 8})}},
      {"Pack", {}, {E({}, {4}), E({}, {5}), E({}, {6})}, {E({3}, {4, 5, 6})}},
      {"Pack",
       {},
       {Counted({2}), Counted({3})},
       {E({2, 2}, {})},
       "Shapes of all inputs must match: values[0].shape = [2] != values[1].shape = [3]"},
      {"Pack",
       {},
       {Counted({1}), E({}, {1})},
       {E({}, {})},
       "Shapes of all inputs must match: values[0].shape = [1] != values[1].shape = []"},
      {"Pack", {{"axis", Number(2)}}, {Counted({2})}, {E({2, 1}, {})}, "axis = 2 not in [-2, 2)"},
      {"Split", {}, {N(1), Counted({2, 4})}, {E({2, 2}, {0, 1, 4, 5}), E({2, 2}, {2, 3, 6, 7})}},
      {"Split", {}, {N(-2), Counted({2, 2})}, {E({1, 2}, {0, 1}), E({1, 2}, {2, 3})}},
      {"Split",
       {},
       {N(2), Counted({2, 2})},
       {E({1, 2}, {}), E({1, 2}, {})},
       "-input rank(-2) <= split_dim < input rank (2), but got 2"},
      {"SplitV", {}, {Counted({5}), V({3, -1, 0}), N(0)}, {E({3}, {0, 1, 2}), E({2}, {3, 4}), E({0}, {})}},
      {"Unpack", {{"axis", Number(1)}}, {Counted({2, 2})}, {E({2}, {0, 2}), E({2}, {1, 3})}},
      {"Unpack", {}, {E({0, 2}, {})}, {}},
  };
  ExpectAll(rows);
}

TEST(Arrays, PiecesThatDoNotMakeUpTheWholeAreRefused) {
  Attributes attributes = {{"T", Type(WEIR_FLOAT32)}};
  const Outcome refused = Kernels().Call("Split", attributes, {Scalar<int32_t>(0), Of<float>({4}, {1, 2, 3, 4})},
                                         {Blank(WEIR_FLOAT32, {2}), Blank(WEIR_FLOAT32, {3})});
  EXPECT_EQ(refused.code, WEIR_INTERNAL);
  EXPECT_EQ(refused.message, "pieces of 20 bytes in a row do not make up 16 bytes of [4] along axis 0");
}

TEST(Arrays, Slices) {
  const Row rows[] = {
      {"Slice", {}, {Counted({3, 3}), V({1, 0}), V({2, 2})}, {E({2, 2}, {3, 4, 6, 7})}},
      {"Slice", {}, {Counted({3, 3}), V({1, 1}), V({-1, -1})}, {E({2, 2}, {4, 5, 7, 8})}},
      {"Slice", {}, {Counted({3}), V({0}), V({-1})}, {Counted({3})}},
      {"Slice", {}, {Counted({3}), V({3}), V({0})}, {E({0}, {})}},
      {"Slice", {}, {Counted({3}), V({4}), V({0})}, {E({0}, {})}, "Expected begin[0] in [0, 3], but got 4"},
      {"Slice", {}, {Counted({3}), V({1}), V({3})}, {E({3}, {})}, "Expected size[0] in [0, 2], but got 3"},
      {"Slice", {}, {Counted({3}), V({1}), V({-2})}, {E({3}, {})}, "Expected size[0] in [0, 2], but got -2"},
      {"Slice",
       {},
       {Counted({3}), V({0, 0}), V({1, 1})},
       {E({1}, {})},
       "Expected begin and size arguments to be 1-D tensors of size 1, but got shapes [2] and [2] instead."},
  };
  ExpectAll(rows);
}

TEST(Arrays, StridedSlicesAndTheirMasks) {
  const Row rows[] = {
      {"StridedSlice", {}, {Counted({6}), V({1}), V({6}), V({2})}, {E({3}, {1, 3, 5})}},
      {"StridedSlice", {}, {Counted({6}), V({-1}), V({-100}), V({-2})}, {E({3}, {5, 3, 1})}},
      {"StridedSlice", {}, {Counted({6}), V({4}), V({2}), V({1})}, {E({0}, {})}},
      {"StridedSlice", {{"begin_mask", Number(1)}}, {Counted({6}), V({3}), V({2}), V({1})}, {E({2}, {0, 1})}},
      {"StridedSlice", {{"end_mask", Number(1)}}, {Counted({6}), V({1}), V({0}), V({-1})}, {E({2}, {1, 0})}},
      {"StridedSlice",
       {{"begin_mask", Number(3)}, {"end_mask", Number(3)}},
       {Counted({2, 2}), V({0, 0}), V({0, 0}), V({-1, 1})},
       {E({2, 2}, {2, 3, 0, 1})}},
      {"StridedSlice",
       {{"begin_mask", Number(1)}, {"end_mask", Number(1)}},
       {Counted({4}), V({0}), V({0}), V({1})},
       {Counted({4})}},
      {"StridedSlice",
       {{"ellipsis_mask", Number(2)}, {"shrink_axis_mask", Number(1)}},
       {Counted({2, 3, 4}), V({1, 0, 1}), V({2, 0, 3}), V({1, 1, 1})},
       {E({3, 2}, {13, 14, 17, 18, 21, 22})}},
      {"StridedSlice",
       {{"new_axis_mask", Number(1)}},
       {Counted({3}), V({0, 1}), V({0, 3}), V({1, 1})},
       {E({1, 2}, {1, 2})}},
      {"StridedSlice",
       {{"new_axis_mask", Number(1)}, {"shrink_axis_mask", Number(1)}},
       {Counted({3}), V({1, 1}), V({3, 2}), V({1, 1})},
       {E({1, 1}, {1})}},
      {"StridedSlice",
       {{"ellipsis_mask", Number(1)}, {"new_axis_mask", Number(2)}},
       {Counted({2, 2}), V({0, 0}), V({0, 0}), V({1, 1})},
       {E({2, 2, 1}, {0, 1, 2, 3})}},
      {"StridedSlice",
       {{"shrink_axis_mask", Number(1)}, {"begin_mask", Number(1)}},
       {Counted({3}), V({2}), V({0}), V({1})},
       {E({}, {2})}},
      {"StridedSlice", {}, {Counted({2, 2}), V({}), V({}), V({})}, {Counted({2, 2})}},
      {"StridedSlice",
       {{"shrink_axis_mask", Number(1)}},
       {Counted({3}), V({-5}), V({0}), V({1})},
       {E({}, {})},
       "slice index -2 of dimension 0 out of bounds."},
      {"StridedSlice",
       {},
       {Counted({6}), V({5, 1}), V({0, 2}), V({-2, 1})},
       {E({}, {})},
       "Index out of range using input dim 1; input has only 1 dims"},
      {"StridedSlice", {}, {E({}, {1}), V({0}), V({1}), V({1})}, {E({}, {})}, "Attempting to slice scalar input."},
      {"StridedSlice", {}, {Counted({6}), V({0}), V({1}), V({0})}, {E({1}, {})}, "strides[0] must be non-zero"},
      {"StridedSlice",
       {{"ellipsis_mask", Number(3)}},
       {Counted({6}), V({0, 0}), V({1, 1}), V({1, 1})},
       {E({1}, {})},
       "Multiple ellipses in slice spec not allowed"},
      {"StridedSliceGrad", {}, {V({6}), V({1}), V({6}), V({2}), E({3}, {7, 8, 9})}, {E({6}, {0, 7, 0, 8, 0, 9})}},
      {"StridedSliceGrad", {}, {V({3}), V({2}), V({-9}), V({-1}), E({3}, {7, 8, 9})}, {E({3}, {9, 8, 7})}},
      {"StridedSliceGrad",
       {{"shrink_axis_mask", Number(2)}},
       {V({2, 2}), V({0, 1}), V({2, 2}), V({1, 1}), E({2}, {7, 8})},
       {E({2, 2}, {0, 7, 0, 8})}},
      {"StridedSliceGrad",
       {},
       {V({6}), V({1}), V({6}), V({2}), E({2}, {7, 8})},
       {E({6}, {})},
       "shape of dy was [2] instead of [3]"},
  };
  ExpectAll(rows);
}

/// Bounds and strides at the ends of their type neither overflow nor divide badly.
TEST(Arrays, ExtremeStrides) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  const auto slice = [](int64_t begin, int64_t end, int64_t stride, int64_t count) {
    return Kernels().Call(
        "StridedSlice", {},
        {Of<float>({3}, {1, 2, 3}), Of<int64_t>({1}, {begin}), Of<int64_t>({1}, {end}), Of<int64_t>({1}, {stride})},
        {Blank(WEIR_FLOAT32, {count})});
  };
  EXPECT_EQ(Numbers(slice(kLeast, kMost, kMost, 1).outputs[0]), std::vector<double>{1});
  EXPECT_EQ(Numbers(slice(kMost, kLeast, kLeast, 1).outputs[0]), std::vector<double>{3});
  EXPECT_EQ(Numbers(slice(kLeast, kMost, 1, 3).outputs[0]), (std::vector<double>{1, 2, 3}));
}

/// Extents beside an extent of 0 may have any product.
TEST(Arrays, HugeExtentsOfEmptyArrays) {
  const int64_t huge = int64_t{1} << 62;
  const Value empty = Blank(WEIR_FLOAT32, {0});
  Value wide = empty;
  wide.dims = {huge, 0, 4};
  const Value perm = Of<int32_t>({3}, {1, 2, 0}), axes = Of<int32_t>({2}, {0, 2}), twice = Of<int64_t>({3}, {1, 2, 1});
  Value transposed = empty, tiled = empty, sliced = empty;
  transposed.dims = {0, 4, huge};
  tiled.dims = wide.dims;
  sliced.dims = {huge - 1, 0, 2};
  EXPECT_EQ(Kernels().Call("Transpose", {}, {wide, perm}, {transposed}).code, WEIR_OK);
  EXPECT_EQ(Kernels().Call("ReverseV2", {}, {wide, axes}, {wide}).code, WEIR_OK);
  EXPECT_EQ(Kernels().Call("Tile", {}, {wide, twice}, {tiled}).code, WEIR_OK);
  const std::vector<Value> bounds = {Of<int64_t>({3}, {1, 0, 0}), Of<int64_t>({3}, {huge, 0, 4}),
                                     Of<int64_t>({3}, {1, 1, 2})};
  EXPECT_EQ(Kernels().Call("StridedSlice", {}, {wide, bounds[0], bounds[1], bounds[2]}, {sliced}).code, WEIR_OK);
}

TEST(Arrays, Repetitions) {
  const Row rows[] = {
      {"Tile", {}, {Counted({2, 2}), V({2, 2})}, {E({4, 4}, {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3})}},
      {"Tile", {}, {Counted({2}), V({1})}, {Counted({2})}},
      {"Tile", {}, {Counted({2}), V({0})}, {E({0}, {})}},
      {"Tile", {}, {E({}, {3}), V({})}, {E({}, {3})}},
      {"Tile", {}, {Counted({1, 2}), V({3, 1})}, {E({3, 2}, {0, 1, 0, 1, 0, 1})}},
      {"Tile", {}, {Counted({2}), V({-1})}, {E({2}, {})}, "Expected multiples[0] >= 0, but got -1"},
      {"Tile",
       {},
       {Counted({2}), V({1, 1})},
       {E({2}, {})},
       "Expected multiples argument to be a vector of length 1 but got length 2"},
      {"BroadcastTo", {}, {Counted({3}), V({2, 3})}, {E({2, 3}, {0, 1, 2, 0, 1, 2})}},
      {"BroadcastTo", {}, {Counted({2, 1}), V({2, 3})}, {E({2, 3}, {0, 0, 0, 1, 1, 1})}},
      {"BroadcastTo", {}, {E({}, {5}), V({2, 2})}, {E({2, 2}, {5, 5, 5, 5})}},
      {"BroadcastTo", {}, {E({1}, {5}), V({0})}, {E({0}, {})}},
      {"BroadcastTo", {}, {Counted({2}), V({2})}, {Counted({2})}},
      {"BroadcastTo", {}, {Counted({2}), V({3})}, {E({3}, {})}, "Incompatible shapes: [2] vs. [3]"},
      {"Pad", {}, {Counted({2, 2}), I({2, 2}, {1, 0, 0, 2})}, {E({3, 4}, {0, 0, 0, 0, 0, 1, 0, 0, 2, 3, 0, 0})}},
      {"Pad", {}, {Counted({2}), I({1, 2}, {0, 0})}, {Counted({2})}},
      {"Pad", {}, {E({0}, {}), I({1, 2}, {1, 2})}, {E({3}, {0, 0, 0})}},
      {"Pad", {}, {Counted({2}), I({1, 2}, {-1, 0})}, {E({1}, {})}, "Paddings must be non-negative: -1 0"},
  };
  ExpectAll(rows);
}

TEST(Arrays, ArithmeticOnShapes) {
  const Row rows[] = {
      {"BroadcastArgs", {}, {V({2, 1, 3}), V({4, 1})}, {V({2, 4, 3})}},
      {"BroadcastArgs", {}, {V({}), V({})}, {V({})}},
      {"BroadcastArgs", {}, {V({0, 1}), V({1, 5})}, {V({0, 5})}},
      {"BroadcastArgs", {}, {V({2}), V({3})}, {V({0})}, "Incompatible shapes: [2] vs. [3]"},
      {"BroadcastGradientArgs", {}, {V({2, 3}), V({3})}, {V({}), V({0})}},
      {"BroadcastGradientArgs", {}, {V({1, 1}), V({1})}, {V({0, 1}), V({0, 1})}},
      {"BroadcastGradientArgs", {}, {V({2, 1, 3}), V({1, 4, 1})}, {V({1}), V({0, 2})}},
      {"BroadcastGradientArgs", {}, {V({0, 1}), V({1, 5})}, {V({1}), V({0})}},
      {"BroadcastGradientArgs", {}, {V({}), V({2, 2})}, {V({0, 1}), V({})}},
      {"BroadcastGradientArgs", {}, {V({1, 2}), V({1, 2})}, {V({}), V({})}},
      {"BroadcastGradientArgs", {}, {V({2}), V({3})}, {V({}), V({})}, "Incompatible shapes: [2] vs. [3]"},
      {"ConcatOffset", {}, {N(1), V({2, 3}), V({2, 4}), V({2, 0})}, {V({0, 0}), V({0, 3}), V({0, 7})}},
      {"ConcatOffset", {}, {N(-1), V({2, 3}), V({2, 4})}, {V({0, 0}), V({0, 3})}},
      {"ConcatOffset", {}, {N(2), V({2, 3}), V({2, 4})}, {V({0, 0}), V({0, 0})}, "Concat dim is out of range: 2 vs. 2"},
      {"ConcatOffset",
       {},
       {N(1), V({2, 3}), V({3, 4})},
       {V({0, 0}), V({0, 0})},
       "All dimensions except 1 must match. Input 1 has shape [3 4] and doesn't match input 0 with shape [2 3]."},
      {"ConcatOffset",
       {},
       {N(1), V({2, 3}), V({3})},
       {V({0, 0}), V({0})},
       "input 1 should contain 2 elements, but got 1"},
  };
  for (const Row& row : rows) {
    for (const uint32_t type : {WEIR_INT32, WEIR_INT64}) Expect(row, type, type, {});
  }
}

TEST(Arrays, BitcastKeepsTheBytes) {
  const Attributes attributes = {{"T", Type(WEIR_FLOAT32)}, {"type", Type(WEIR_UINT8)}};
  for (const bool in_place : {false, true}) {
    const Outcome outcome = Kernels().Call("Bitcast", attributes, {Of<float>({2}, {1, 2})}, {Blank(WEIR_UINT8, {2, 4})},
                                           {.in_place = in_place});
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    EXPECT_EQ(Elements<uint8_t>(outcome.outputs[0]), (std::vector<uint8_t>{0, 0, 128, 63, 0, 0, 0, 64}));
  }
  const Outcome refused = Kernels().Call("Bitcast", attributes, {Of<float>({2}, {1, 2})}, {Blank(WEIR_UINT8, {4})});
  EXPECT_EQ(refused.code, WEIR_INVALID_ARGUMENT);
}

/// What steers a kernel has to be there when it is prepared; else the core waits until it is.
TEST(Arrays, UnknownSteeringOperandsAreNotGuessed) {
  const Outcome outcome = Kernels().Call("Transpose", {}, {Of<float>({2}, {1, 2}), Of<int32_t>({1}, {0})},
                                         {Blank(WEIR_FLOAT32, {2})}, {.constants = false});
  EXPECT_EQ(outcome.code, WEIR_UNIMPLEMENTED);
  EXPECT_EQ(outcome.message, "the value of input 1 must be known");
  for (const auto& [op, mask] : std::initializer_list<std::pair<const char*, uint64_t>>{{"Transpose", 2},
                                                                                        {"ReverseV2", 2},
                                                                                        {"ConcatV2", 2},
                                                                                        {"Concat", 1},
                                                                                        {"Split", 1},
                                                                                        {"SplitV", 6},
                                                                                        {"Slice", 6},
                                                                                        {"StridedSlice", 14},
                                                                                        {"StridedSliceGrad", 15},
                                                                                        {"Tile", 2},
                                                                                        {"BroadcastTo", 2},
                                                                                        {"Pad", 2},
                                                                                        {"Fill", 1},
                                                                                        {"GatherV2", 4},
                                                                                        {"OneHot", 2},
                                                                                        {"UnsortedSegmentSum", 4},
                                                                                        {"ConcatOffset", 3},
                                                                                        {"BroadcastArgs", 3},
                                                                                        {"BroadcastGradientArgs", 3},
                                                                                        {"Range", 7},
                                                                                        {"RandomUniform", 1},
                                                                                        {"Gather", 0},
                                                                                        {"DynamicStitch", 0}}) {
    const weir_kernel* kernel = Kernels().Find(op, {});
    ASSERT_NE(kernel, nullptr) << op;
    EXPECT_EQ(kernel->host_inputs, mask) << op;
  }
}

}  // namespace
}  // namespace weir::sdk::test
