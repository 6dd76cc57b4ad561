// Creating, reshaping, splitting, joining and indexing arrays: values, names and errors. Numbers are rows of the
// feature list.
#include <algorithm>
#include <numeric>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Numbers = std::vector<double>;

/// 0, 1, 2 … as a constant.
Output Counted(const Shape& shape) {
  std::vector<int32_t> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  return Constant(Tensor::Of<int32_t>(shape, values));
}

std::string ShapeIs(const Output& value) { return value.shape().ToTupleString(); }

TEST(ArrayOps, F132_rank_shape_and_size) {
  Fresh f;
  const Output x = Constant({{1, 2, 3}, {4, 5, 6}}), open = Placeholder(DType::kFloat, PartialShape::Of({-1, 2}), "p");
  const Output rank = RankOf(x), shape = ShapeOf(x), size = SizeOf(x);
  for (const Output& known : {rank, shape, size}) {
    EXPECT_EQ(known.op().type(), "Const");
    EXPECT_EQ(known.dtype(), DType::kInt32);
  }
  EXPECT_EQ(ShapeIs(x), "(2, 3)");
  const Output later = SizeOf(open);
  EXPECT_EQ(later.op().type(), "Size");
  Session session(f.graph);
  EXPECT_EQ(Value(session, rank), 2);
  EXPECT_EQ(Values(session, shape), (Numbers{2, 3}));
  EXPECT_EQ(Value(session, size), 6);
  EXPECT_EQ(Value(session, later, {{open, {{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}}}), 6);
}

TEST(ArrayOps, F134_casts) {
  Fresh f;
  const Output whole = Constant({1, 2, 3}), real = Cast(whole, DType::kFloat);
  EXPECT_EQ(real.dtype(), DType::kFloat);
  const size_t before = NodeNames(f.graph).size();
  EXPECT_EQ(Cast(whole, DType::kInt32), whole);
  EXPECT_EQ(NodeNames(f.graph).size(), before);
  const Output x = Placeholder(DType::kFloat);
  const Output cut = Cast(x, DType::kInt32), flag = Cast(x, DType::kBool);
  Session session(f.graph);
  EXPECT_EQ(Values(session, real), (Numbers{1, 2, 3}));
  EXPECT_EQ(Values(session, cut, {{x, {1.7f, -1.7f}}}), (Numbers{1, -1}));
  EXPECT_EQ(Values(session, flag, {{x, {0.0f, -0.5f, 2.0f}}}), (Numbers{0, 1, 1}));
}

TEST(ArrayOps, F134_casts_to_bytes_wrap) {
  Fresh f;
  const Output i = Placeholder(DType::kInt32), byte = Cast(i, DType::kUint8);
  Session session(f.graph);
  const Feeds feeds = {{i, {300, 7}}};
  const std::string error = session.Run(byte, feeds).status().message();
  if (error.find("No OpKernel was registered") != std::string::npos) GTEST_SKIP() << "short element type lists";
  EXPECT_EQ(Values(session, byte, feeds), (Numbers{44, 7}));
}

TEST(ArrayOps, F135_constants_of_a_given_shape) {
  Fresh f;
  const Output whole = Constant({1, 2, 3, 4, 5, 6}, Shape{2, 3}, DType::kInvalid, "whole");
  const Output filled = Constant(1, Shape{10}), continued = Constant({1, 2}, Shape{2, 3});
  const Output flat = Constant({{1, 2}, {3, 4}}, Shape{4}), reals = Constant({1, 2, 3}, Shape{3, 2}, DType::kFloat);
  const Output texts = Constant({"a", "b"}, Shape{3}), flags = Constant({true, false}, Shape{3});
  const Output nothing = Constant(1, Shape{0, 2}), zeros = Constant(Literal(), Shape{2});
  EXPECT_EQ(whole.name() + ShapeIs(whole), "whole:0(2, 3)");
  EXPECT_EQ(filled.dtype(), DType::kInt32);
  EXPECT_EQ(reals.dtype(), DType::kFloat);
  EXPECT_EQ(ShapeIs(nothing), "(0, 2)");
  Session session(f.graph);
  using Numbers = std::vector<double>;
  EXPECT_EQ(Values(session, whole), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Values(session, filled), Numbers(10, 1));
  EXPECT_EQ(Values(session, continued), (Numbers{1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(Values(session, flat), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(Values(session, reals), (Numbers{1, 2, 3, 3, 3, 3}));
  const Result<Fetched> shown = session.Run(texts);
  ASSERT_TRUE(Succeeds(shown));
  const auto words = shown->tensor().as<std::string>();
  EXPECT_EQ(std::vector<std::string>(words.begin(), words.end()), (std::vector<std::string>{"a", "b", "b"}));
  EXPECT_EQ(Values(session, flags), (Numbers{1, 0, 0}));
  EXPECT_EQ(Values(session, zeros), (Numbers{0, 0}));
  EXPECT_EQ(Values(session, nothing), Numbers());
  EXPECT_FALSE(Constant({1, 2, 3}, Shape{2}).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Too many elements provided. Needed at most 2, but received 3"));
  Constant({1.5, 2.0}, Shape{2}, DType::kInt32);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Expected int32, got 1.5 of type 'float' instead."));
  Constant(1, Shape{-1});
  EXPECT_EQ(f.graph.TakeStatus().code(), Code::kInvalidArgument);
}

TEST(ArrayOps, F135_types_of_constants) {
  Fresh f;
  EXPECT_EQ(Constant(3.0).dtype(), DType::kFloat);
  EXPECT_EQ(Constant(3).dtype(), DType::kInt32);
  EXPECT_EQ(Constant(int64_t{1} << 31).dtype(), DType::kInt64);
  EXPECT_EQ(Constant(true).dtype(), DType::kBool);
  EXPECT_EQ(Constant("a").dtype(), DType::kString);
  Constant(3.0, DType::kInt32);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Expected int32, got 3.0 of type 'float' instead."));
}

TEST(ArrayOps, F136_reshape) {
  Fresh f;
  const Output t = Constant(Tensor::Of<int32_t>(Shape::Of({3, 2, 3}), {1, 1, 1, 2, 2, 2, 3, 3, 3,  //
                                                                       4, 4, 4, 5, 5, 5, 6, 6, 6}));
  const Output rows = Reshape(t, {-1, 9});
  EXPECT_EQ(ShapeIs(rows), "(2, 9)");
  const Output x = Placeholder(DType::kFloat), to = Placeholder(DType::kInt32), y = Reshape(x, to);
  Session session(f.graph);
  EXPECT_EQ(Values(session, rows), (Numbers{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6}));
  const Literal six({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  EXPECT_TRUE(Fails(session.Run(y, {{x, six}, {to, {4, 4}}}), Code::kInvalidArgument,
                    "Input to reshape is a tensor with 6 values, but the requested shape has 16"));
  EXPECT_TRUE(Fails(session.Run(y, {{x, six}, {to, {-1, 4}}}), Code::kInvalidArgument,
                    "Input to reshape is a tensor with 6 values, but the requested shape requires a multiple of 4"));
  Reshape(t, {4, 4});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Cannot reshape a tensor with 18 elements to shape [4,4] (16 elements)"));
}

TEST(ArrayOps, F137_concat) {
  Fresh f;
  const Output a = Constant({{1, 2, 3}, {4, 5, 6}}), b = Constant({{7, 8, 9}, {10, 11, 12}});
  const Output down = Concat({a, b}, 0), across = Concat({a, b}, 1), last = Concat({a, b}, -1);
  const Output old = BuildOp("Concat", {Constant(1), a, b}, {{"N", int64_t{2}}}).output(0);
  EXPECT_EQ(down.op().type(), "ConcatV2");
  ASSERT_TRUE(old.exists()) << f.error();
  Session session(f.graph);
  EXPECT_EQ(Values(session, down), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  for (const Output& each : {across, last, old}) {
    EXPECT_EQ(Values(session, each), (Numbers{1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12})) << each.op().type();
    EXPECT_EQ(ShapeIs(each), "(2, 6)");
  }
  Concat({Constant({{1}, {2}, {3}}), Constant({{1}, {2}})}, 1);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Dimension 0 in both shapes must be equal, but are 3 and 2. Shapes are [3] and [2]."));
}

TEST(ArrayOps, F138_squeeze) {
  Fresh f;
  const Output x = Zeros(Shape::Of({1, 2, 1, 3, 1, 1}));
  EXPECT_EQ(ShapeIs(Squeeze(x)), "(2, 3)");
  EXPECT_EQ(ShapeIs(Squeeze(x, {2, 4})), "(1, 2, 3, 1)");
  Session session(f.graph);
  const Result<Fetched> got = session.Run(Squeeze(x, {2, 4}));
  ASSERT_TRUE(Succeeds(got));
  EXPECT_EQ(got->tensor().shape(), Shape::Of({1, 2, 3, 1}));
  Squeeze(Zeros(Shape::Of({2, 1})), {0});
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Can not squeeze dim[0], expected a dimension of 1, got 2"));
}

TEST(ArrayOps, F139_split) {
  Fresh f;
  const Output value = Counted(Shape::Of({5, 30}));
  const std::vector<Output> equal = Split(value, 3, 1), given = SplitV(value, {4, 15, 11}, 1);
  ASSERT_EQ(equal.size(), 3u);
  ASSERT_EQ(given.size(), 3u);
  Session session(f.graph);
  const int starts[] = {0, 4, 19};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(equal[i].name(), "split:" + std::to_string(i));
    EXPECT_EQ(ShapeIs(equal[i]), "(5, 10)");
    EXPECT_EQ(Values(session, equal[i])[10], 30 + 10 * static_cast<double>(i)) << "the second row begins here";
    EXPECT_EQ(ShapeIs(given[i]), (std::vector<std::string>{"(5, 4)", "(5, 15)", "(5, 11)"})[i]);
    EXPECT_EQ(Values(session, given[i])[0], starts[i]);
  }
  const std::vector<Output> axis_first = Split(1, 3, value);
  ASSERT_EQ(axis_first.size(), 3u);
  EXPECT_EQ(axis_first[2].name(), "split_2:2");
  EXPECT_EQ(Values(session, axis_first[1]), Values(session, equal[1]));
  Split(value, 4, 1);
  const Status uneven = f.graph.TakeStatus();
  EXPECT_TRUE(Fails(uneven, Code::kInvalidArgument, "Dimension size must be evenly divisible by 4 but is 30"));
  EXPECT_TRUE(
      Fails(uneven, Code::kInvalidArgument, "Number of ways to split should evenly divide the split dimension"));
}

TEST(ArrayOps, F140_expand_dims) {
  Fresh f;
  const Output two = Zeros(Shape::Of({2})), three = Zeros(Shape::Of({2, 3, 5}));
  EXPECT_EQ(ShapeIs(ExpandDims(two, 0)), "(1, 2)");
  EXPECT_EQ(ShapeIs(ExpandDims(two, 1)), "(2, 1)");
  EXPECT_EQ(ShapeIs(ExpandDims(two, -1)), "(2, 1)");
  EXPECT_EQ(ShapeIs(ExpandDims(three, 0)), "(1, 2, 3, 5)");
  EXPECT_EQ(ShapeIs(ExpandDims(three, 2)), "(2, 3, 1, 5)");
  EXPECT_EQ(ShapeIs(ExpandDims(three, 3)), "(2, 3, 5, 1)");
  Session session(f.graph);
  const Result<Fetched> got = session.Run(ExpandDims(three, 2));
  ASSERT_TRUE(Succeeds(got));
  EXPECT_EQ(got->tensor().shape(), Shape::Of({2, 3, 1, 5}));
  ExpandDims(three, 4);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "dim 4 not in the interval [-4, 3]."));
}

TEST(ArrayOps, F141_F142_F143_slices) {
  Fresh f;
  const Output two = Constant({{1, 2, 3}, {4, 5, 6}}), three = Counted(Shape::Of({2, 3, 4}));
  const Output open = Counted(Shape::Of({3, 5}));
  const Output row = Slice(two, {1, 0}, {1, 2}), block = Slice(three, {1, 0, 0}, {1, 2, 3});
  const Output rest = Slice(open, {1, 2}, {-1, 2});
  const Output x = Placeholder(DType::kInt32), begin = Placeholder(DType::kInt32), size = Placeholder(DType::kInt32);
  const Output any = Slice(x, begin, size);
  EXPECT_EQ(ShapeIs(row), "(1, 2)");
  EXPECT_EQ(ShapeIs(rest), "(2, 2)");
  Session session(f.graph);
  EXPECT_EQ(Values(session, row), (Numbers{4, 5}));
  EXPECT_EQ(Values(session, block), (Numbers{12, 13, 14, 16, 17, 18}));
  EXPECT_EQ(Values(session, rest), (Numbers{7, 8, 12, 13}));
  EXPECT_TRUE(Fails(session.Run(any, {{x, {{1, 2}, {3, 4}}}, {begin, {0, 0}}, {size, {3, 1}}}), Code::kInvalidArgument,
                    "Expected size[0] in [0, 2], but got 3"));
}

TEST(ArrayOps, F144_stack) {
  Fresh f;
  const Output a = Constant({1, 4}), b = Constant({2, 5}), c = Constant({3, 6});
  const Output rows = Stack({a, b, c}), columns = Stack({a, b, c}, 1);
  EXPECT_EQ(rows.name(), "stack:0");
  EXPECT_EQ(rows.op().type(), "Pack");
  EXPECT_EQ(ShapeIs(columns), "(2, 3)");
  Session session(f.graph);
  EXPECT_EQ(Values(session, rows), (Numbers{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Values(session, columns), (Numbers{1, 2, 3, 4, 5, 6}));
  Stack({a, Constant({1, 2, 3})});
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
            "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3].\n\tFrom merging "
            "shape 0 with other shapes."));
}

TEST(ArrayOps, F145_F146_ranges_and_rows) {
  Fresh f;
  const Output tens = Range(0, 10) * 10 + 1, down = Range(5, 0, -2), real = Range(0.0f, 1.0f, 0.5f);
  const Output picked = Gather(tens, {1, 5, 9});
  EXPECT_EQ(tens.dtype(), DType::kInt32);
  EXPECT_EQ(real.dtype(), DType::kFloat);
  EXPECT_EQ(picked.op().type(), "GatherV2");
  const Output at = Placeholder(DType::kInt32), any = Gather(tens, at);
  Session session(f.graph);
  EXPECT_EQ(Values(session, tens), (Numbers{1, 11, 21, 31, 41, 51, 61, 71, 81, 91}));
  EXPECT_EQ(Values(session, down), (Numbers{5, 3, 1}));
  EXPECT_EQ(Values(session, real), (Numbers{0, 0.5}));
  EXPECT_EQ(Values(session, picked), (Numbers{11, 51, 91}));
  for (const int outside : {12, -1}) {
    EXPECT_TRUE(Fails(session.Run(any, {{at, {outside}}}), Code::kInvalidArgument,
                      "indices[0] = " + std::to_string(outside) + " is not in [0, 10)"));
  }
  Range(0, 3, 0);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Requires delta != 0"));
  Range(3, 0);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Requires start <= limit when delta > 0: 3/0"));
}

TEST(ArrayOps, F149_indices_beside_labels) {
  Fresh f;
  const Output labels = Placeholder(DType::kInt32, PartialShape::Of({6}), "labels");
  const Output pairs = Concat({ExpandDims(Range(0, 6), 1), ExpandDims(labels, 1)}, 1);
  Session session(f.graph);
  EXPECT_EQ(Values(session, pairs, {{labels, {0, 2, 3, 6, 7, 9}}}), (Numbers{0, 0, 1, 2, 2, 3, 3, 6, 4, 7, 5, 9}));
}

TEST(ArrayOps, F151_shapes_that_a_run_knows) {
  Fresh f;
  const Output images = Placeholder(DType::kFloat, PartialShape::Of({-1, 227, 227, 3}), "images");
  const Output shape = ShapeOf(images), wide = ShapeOf(images, DType::kInt64);
  const Output batch = StridedSlice(shape, {0}, {1}, {1}, {.shrink_axis_mask = 1, .name = "strided_slice"});
  EXPECT_EQ(ShapeIs(images), "(?, 227, 227, 3)");
  EXPECT_EQ(shape.name(), "Shape:0");
  EXPECT_EQ(shape.dtype(), DType::kInt32);
  EXPECT_EQ(wide.dtype(), DType::kInt64);
  EXPECT_EQ(ShapeIs(batch), "()");
  Session session(f.graph);
  const Feeds feeds = {{images, *Tensor::Make(DType::kFloat, Shape::Of({4, 227, 227, 3}))}};
  EXPECT_EQ(Value(session, batch, feeds), 4);
  EXPECT_EQ(Values(session, wide, feeds), (Numbers{4, 227, 227, 3}));
}

TEST(ArrayOps, F152_transpose) {
  Fresh f;
  const Output x = Counted(Shape::Of({2, 3, 2}));
  const Output swapped = Transpose(x, {1, 0, 2}), reversed = Transpose(x);
  EXPECT_EQ(ShapeIs(swapped), "(3, 2, 2)");
  EXPECT_EQ(ShapeIs(reversed), "(2, 3, 2)");
  const Output perm = Placeholder(DType::kInt32, PartialShape::Of({3}), "perm"), any = Transpose(x, perm);
  Session session(f.graph);
  EXPECT_EQ(Values(session, swapped), (Numbers{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
  EXPECT_EQ(Values(session, reversed), (Numbers{0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11}));
  EXPECT_TRUE(Fails(session.Run(any, {{perm, {1, 1, 0}}}), Code::kInvalidArgument, "2 is missing from {1,1,0}"));
  EXPECT_FALSE(Transpose(x, {1, 0}).exists());
  EXPECT_EQ(f.graph.TakeStatus().code(), Code::kInvalidArgument);
}

TEST(ArrayOps, F153_random_integers) {
  Fresh f;
  const Output draws = RandomUniform({1000}, -3, 4, {.dtype = DType::kInt32, .seed = 7});
  const Output wide = RandomUniform({50}, 0, 0x1p53, {.dtype = DType::kInt64, .seed = 1, .name = "wide"});
  EXPECT_EQ(draws.dtype(), DType::kInt32);
  EXPECT_EQ(draws.op().type(), "RandomUniformInt");
  EXPECT_EQ(draws.name(), "random_uniform:0");
  Numbers first;
  {
    Session session(f.graph);
    first = Values(session, draws);
    EXPECT_EQ(*std::ranges::min_element(first), -3);
    EXPECT_EQ(*std::ranges::max_element(first), 3) << "maxval is not drawn";
    EXPECT_NE(Values(session, draws), first) << "a second run of the op gives the next numbers";
    const Numbers large = Values(session, wide);
    EXPECT_GT(*std::ranges::max_element(large), 0x1p40);
  }
  Session again(f.graph);
  EXPECT_EQ(Values(again, draws), first) << "the same seed gives the same numbers in each session";
}

TEST(ArrayOps, F153_random_tensors_of_each_kind) {
  Fresh f;
  const Output uniform = RandomUniform({4, 100}, -2, 6, {.dtype = DType::kDouble, .seed = 1});
  const Output unit = RandomUniform({400}, 0, std::nullopt, {.seed = 1});
  const Output normal = RandomNormal({400}, 5, 2, {.seed = 2});
  EXPECT_EQ(uniform.shape().ToString(), "[4,100]");
  EXPECT_EQ(uniform.dtype(), DType::kDouble);
  Session session(f.graph);
  for (const double x : Values(session, uniform)) EXPECT_TRUE(x >= -2 && x < 6) << x;
  for (const double x : Values(session, unit)) EXPECT_TRUE(x >= 0 && x < 1) << x;
  double sum = 0;
  for (const double x : Values(session, normal)) sum += x;
  EXPECT_NEAR(sum / 400, 5, 0.5);
  EXPECT_EQ(Values(session, Zeros({2, 3}, DType::kInt32)), Numbers(6, 0));
}

TEST(ArrayOps, F153_seeds_are_tensorflows) {
  Fresh f;
  const Output uniform = RandomUniform({3}, -1, 1, {.seed = 7}), normal = RandomNormal({3}, 0, 1, {.seed = 7});
  Session session(f.graph);
  const Numbers wanted = {-0.03211808, 0.01240611, -0.4897124}, bell = {-0.04694568, -1.2039024, 1.1668352};
  const Numbers even = Values(session, uniform), drawn = Values(session, normal);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(even[i], wanted[i], 1e-6);
    EXPECT_NEAR(drawn[i], bell[i], 1e-6);
  }
}

TEST(ArrayOps, F153_integers_need_an_upper_bound) {
  Fresh f;
  for (const DType type : {DType::kInt32, DType::kInt64}) {
    EXPECT_FALSE(RandomUniform({2}, 0, std::nullopt, {.dtype = type}).exists());
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                      "Must specify maxval for integer dtype " + NumpyName(type)));
  }
  RandomUniform({2}, 0, 2.5, {.dtype = DType::kInt32});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Expected int32, got 2.5 of type 'float' instead."));
  RandomUniform({2}, 0, 0x1p31, {.dtype = DType::kInt32});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Expected int32, got"));
  const Output empty = RandomUniform({2}, 3, 3, {.dtype = DType::kInt32});
  Session session(f.graph);
  EXPECT_TRUE(Fails(session.Run(empty), Code::kInvalidArgument, "Need minval < maxval, got 3 >= 3"));
}

}  // namespace
}  // namespace weir::test
