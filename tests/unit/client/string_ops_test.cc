// Ops on strings, and random numbers by seed, as a program builds them. Values and texts are TensorFlow's.
#include <gtest/gtest.h>

#include "tests/unit/client/fresh.h"

namespace weir {
namespace {

using namespace test;

using Texts = std::vector<std::string>;

Result<Fetched> Evaluate(const Output& value) {
  EXPECT_TRUE(Graph::Default().status().ok()) << Graph::Default().status();
  Session session(*value.graph());
  return session.Run(value);
}

Texts TextsOf(const Output& value) {
  const Result<Fetched> fetched = Evaluate(value);
  EXPECT_TRUE(Succeeds(fetched));
  Texts texts;
  if (!fetched.ok()) return texts;
  const auto strings = fetched->values<std::string>();
  EXPECT_TRUE(Succeeds(strings));
  if (strings.ok()) texts.assign(strings->begin(), strings->end());
  return texts;
}

std::vector<double> NumbersOf(const Output& value) {
  Session session(*value.graph());
  return Values(session, value);
}

Output Op(std::string_view op, const std::vector<Operand>& inputs, op::AttrList attrs = {}, int output = 0) {
  return BuildOp(op, inputs, std::move(attrs)).output(output);
}

TEST(Strings, F395_joins_and_splits) {
  Fresh f;
  EXPECT_EQ(TextsOf(Op("StringJoin", {Constant({"a", "b"}), Constant("x"), Constant({"1", "2"})},
                       {{"N", 3}, {"separator", "-"}})),
            (Texts{"a-x-1", "b-x-2"}));
  const Output lines = Constant({"a b", "c", "", "  d  e "});
  EXPECT_EQ(NumbersOf(Op("StringSplit", {lines, " "}, {}, 0)), (std::vector<double>{0, 0, 0, 1, 1, 0, 3, 0, 3, 1}));
  EXPECT_EQ(TextsOf(Op("StringSplit", {lines, " "}, {}, 1)), (Texts{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(NumbersOf(Op("StringSplit", {lines, " "}, {}, 2)), (std::vector<double>{4, 2}));
  EXPECT_EQ(TextsOf(Op("StringSplit", {Constant({"a,b;c"}), ",;"}, {}, 1)), (Texts{"a", "b", "c"}));
  EXPECT_EQ(TextsOf(Op("StringSplit", {Constant({"a,,b"}), ","}, {{"skip_empty", false}}, 1)), (Texts{"a", "", "b"}));
  EXPECT_EQ(TextsOf(Op("StringSplit", {Constant({"abc"}), ""}, {}, 1)), (Texts{"a", "b", "c"}));
  EXPECT_EQ(TextsOf(Op("StringSplitV2", {Constant({"a, b,c"}), ", "}, {}, 1)), (Texts{"a", "b,c"}));
  const Output grid = Constant({{"a", "b"}, {"c", "d"}});
  EXPECT_EQ(TextsOf(Op("ReduceJoin", {grid, {1}}, {{"separator", "+"}})), (Texts{"a+b", "c+d"}));
  EXPECT_EQ(TextsOf(Op("ReduceJoin", {grid, {0}})), (Texts{"ac", "bd"}));
  EXPECT_EQ(TextsOf(Op("ReduceJoin", {grid, {0, 1}})), (Texts{"acbd"}));
}

TEST(Strings, F395_joins_of_other_shapes_are_errors) {
  Fresh f;
  EXPECT_FALSE(Op("StringJoin", {Constant({"a", "b"}), Constant({"1"})}, {{"N", 2}}).exists());
  EXPECT_TRUE(
      Fails(f.graph.status(), Code::kInvalidArgument, "Dimension 0 in both shapes must be equal, but are 2 and 1"));
}

TEST(Strings, F395_patterns_cases_and_hashes) {
  Fresh f;
  const Output words = Constant({"one two"});
  EXPECT_EQ(TextsOf(Op("RegexReplace", {words, "(\\w+) (\\w+)", "\\2 \\1"})), Texts{"two one"});
  EXPECT_EQ(TextsOf(Op("RegexReplace", {words, "o", "<\\0>"})), Texts{"<o>ne tw<o>"});
  EXPECT_EQ(TextsOf(Op("RegexReplace", {words, "o", "0"}, {{"replace_global", false}})), Texts{"0ne two"});
  EXPECT_TRUE(Fails(Evaluate(Op("RegexReplace", {words, "(", ""})), Code::kInvalidArgument,
                    "Invalid pattern: (, error: missing ): ("));
  EXPECT_EQ(NumbersOf(Cast(Op("RegexFullMatch", {Constant({"abc", "abcd"}), "a.c"}), DType::kInt32)),
            (std::vector<double>{1, 0}));
  EXPECT_EQ(TextsOf(Op("StringUpper", {Constant({"aB"})})), Texts{"AB"});
  EXPECT_EQ(TextsOf(Op("StringLower", {Constant({"aB"})})), Texts{"ab"});
  EXPECT_EQ(TextsOf(Op("StringStrip", {Constant({" a "})})), Texts{"a"});
  const Output letters = Constant({"a", "b"});
  EXPECT_EQ(NumbersOf(Op("StringToHashBucketFast", {letters}, {{"num_buckets", 10}})), (std::vector<double>{9, 2}));
  EXPECT_EQ(NumbersOf(Op("StringToHashBucket", {letters}, {{"num_buckets", 10}})), (std::vector<double>{8, 0}));
  EXPECT_EQ(
      NumbersOf(Op("StringToHashBucketStrong", {letters}, {{"num_buckets", 10}, {"key", std::vector<int64_t>{1, 2}}})),
      (std::vector<double>{6, 4}));
  EXPECT_EQ(NumbersOf(Cast(Equal(letters, Constant({"a", "c"})), DType::kInt32)), (std::vector<double>{1, 0}));
  EXPECT_EQ(TextsOf(Add(letters, Constant("!"))), (Texts{"a!", "b!"}));
  EXPECT_EQ(TextsOf(Unique(Constant({"x", "y", "x"})).values), (Texts{"x", "y"}));
}

TEST(Strings, F395_bytes) {
  Fresh f;
  EXPECT_EQ(TextsOf(Op("EncodeBase64", {Constant({"a?>"})})), Texts{"YT8-"});
  EXPECT_EQ(TextsOf(Op("EncodeBase64", {Constant({"a"})}, {{"pad", true}})), Texts{"YQ=="});
  EXPECT_EQ(TextsOf(Op("DecodeBase64", {Constant({"YT8-"})})), Texts{"a?>"});
  EXPECT_EQ(NumbersOf(Op("DecodeRaw", {Constant({"\x01\x02"})}, {{"out_type", DType::kUint8}})),
            (std::vector<double>{1, 2}));
  EXPECT_TRUE(Fails(Evaluate(Op("DecodeRaw", {Constant({"abc"})}, {{"out_type", DType::kInt16}})),
                    Code::kInvalidArgument,
                    "Input to DecodeRaw has length 3 that is not a multiple of 2, the size of int16"));
  EXPECT_EQ(TextsOf(Op("StringFormat", {Constant({1, 2, 3}), Constant(2.5)},
                       {{"template", "x={} y={}"}, {"placeholder", "{}"}})),
            Texts{"x=[1 2 3] y=2.5"});
}

TEST(Strings, F396_numbers_as_texts) {
  Fresh f;
  const auto text = [](const Operand& number, op::AttrList attrs = {}) {
    return TextsOf(Op("AsString", {number}, std::move(attrs)));
  };
  EXPECT_EQ(text(Constant(3)), Texts{"3"});
  EXPECT_EQ(text(Constant({3.0, 0.1, 1e10, 1e-5, -0.0})),
            (Texts{"3.000000", "0.100000", "10000000000.000000", "0.000010", "-0.000000"}));
  EXPECT_EQ(text(Constant({HUGE_VAL, std::nan("")})), (Texts{"inf", "nan"}));
  EXPECT_EQ(text(Constant(true)), Texts{"true"});
  EXPECT_EQ(text(Constant(3.14159), {{"precision", 2}}), Texts{"3.14"});
  EXPECT_EQ(text(Constant(3.14159), {{"scientific", true}}), Texts{"3.141590e+00"});
  EXPECT_EQ(text(Constant({3.14159, 1e10, 100.0}), {{"shortest", true}}), (Texts{"3.14159", "1e+10", "100"}));
  EXPECT_EQ(text(Constant(3), {{"width", 5}}), Texts{"    3"});
  EXPECT_EQ(text(Constant({3, -14}), {{"width", 5}, {"fill", "0"}}), (Texts{"00003", "-0014"}));
  EXPECT_EQ(text(Constant(3), {{"width", 5}, {"fill", "-"}}), Texts{"3    "});
}

TEST(Strings, F396_wrong_formats_are_errors) {
  const auto error = [](const Literal& number, op::AttrList attrs) {
    Fresh f;
    const Output x = Placeholder(number.dtype(), PartialShape(), "x");
    const Output text = Op("AsString", {x}, std::move(attrs));
    if (!f.graph.status().ok()) return f.graph.status();
    Session session(f.graph);
    return session.Run(text, {{x, number}}).status();
  };
  EXPECT_TRUE(Fails(error(1.0, {{"scientific", true}, {"shortest", true}}), Code::kInvalidArgument,
                    "Cannot select both scientific and shortest notation"));
  EXPECT_TRUE(Fails(error(1, {{"precision", 2}}), Code::kInvalidArgument, "precision not supported for datatype"));
  EXPECT_TRUE(Fails(error(1, {{"fill", "ab"}}), Code::kInvalidArgument, "Fill string must be one or fewer characters"));
  EXPECT_TRUE(Fails(error(1, {{"fill", "q"}}), Code::kInvalidArgument, "Fill argument not supported: \"q\""));
}

TEST(Strings, F396_texts_as_numbers_lengths_and_parts) {
  Fresh f;
  EXPECT_EQ(NumbersOf(Op("StringToNumber", {Constant({"1e3", " 4 "})})), (std::vector<double>{1000, 4}));
  EXPECT_TRUE(Fails(Evaluate(Op("StringToNumber", {Constant({"x"})})), Code::kInvalidArgument,
                    "StringToNumberOp could not correctly convert string: x"));
  EXPECT_EQ(NumbersOf(Op("StringLength", {Constant({"h\xc3\xa9"})})), std::vector<double>{3});
  EXPECT_EQ(NumbersOf(Op("StringLength", {Constant({"h\xc3\xa9"})}, {{"unit", "UTF8_CHAR"}})), std::vector<double>{2});
  EXPECT_EQ(TextsOf(Op("Substr", {Constant({"hello"}), 1, 3})), Texts{"ell"});
  EXPECT_EQ(TextsOf(Op("Substr", {Constant({"hello"}), -3, 2})), Texts{"ll"});
  EXPECT_EQ(TextsOf(Op("Substr", {Constant({"hello"}), 3, 9})), Texts{"lo"});
  EXPECT_TRUE(
      Fails(Evaluate(Op("Substr", {Constant({"hi"}), 3, 1})), Code::kInvalidArgument, "pos 3 out of range for string"));
}

/// Two runs of one value in a new session.
std::vector<double> TwoRuns(const Output& value) {
  Session session(*value.graph());
  std::vector<double> both = Values(session, value);
  const std::vector<double> second = Values(session, value);
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

void ExpectRuns(const Output& value, const std::vector<double>& wanted) {
  const std::vector<double> runs = TwoRuns(value);
  ASSERT_GE(runs.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(runs[i], wanted[i], 2e-7 * std::max(1.0, std::abs(wanted[i])));
}

/// An op with the seeds of an op seed 1, and of the graph's seed if there is one.
Output Seeded(std::string_view op, const std::vector<Operand>& inputs, op::AttrList attrs = {}) {
  const SeedPair seeds = OpSeeds(Graph::Default(), 1);
  attrs.emplace_back("seed", seeds.seed);
  attrs.emplace_back("seed2", seeds.seed2);
  return Op(op, inputs, std::move(attrs));
}

TEST(Seeds, F397_an_op_seed_gives_tensorflows_numbers) {
  Fresh f;
  ExpectRuns(RandomUniform({4}, 0, 1, {.seed = 1}),
             {.23903739, .92039955, .05051243, .49574447, .97840536, .75413013, .79549515, .07647216});
  ExpectRuns(RandomNormal({4}, 0, 1, {.seed = 1}),
             {-.81131822, 1.4845988, .06532937, -2.4427042, -.20888524, .00542188, .31266254, .59985268});
  ExpectRuns(TruncatedNormal({4}, 0, 1, {.seed = 1}), {-.81131822, 1.4845988, .06532937, .0992484});
  ExpectRuns(Seeded("RandomShuffle", {Range(0, 8)}), {7, 4, 5, 2, 3, 0, 6, 1, 3, 6, 4, 7, 5, 2, 1, 0});
  ExpectRuns(Seeded("RandomUniformInt", {{4}, Constant(0), Constant(100)}), {27, 59, 93, 22});
  ExpectRuns(RandomUniform({3}, 0, 1, {.dtype = DType::kDouble, .seed = 1}), {.91229992, .40409975, .68417908});
  ExpectRuns(Seeded("Multinomial", {Constant({{1.0, 1.0, 1.0}}), 6}), {2, 1, 2, 2, 0, 0});
}

TEST(Seeds, F397_a_graph_seed_and_an_op_seed_give_tensorflows_numbers) {
  Fresh f;
  SetRandomSeed(42, f.graph);
  ExpectRuns(RandomUniform({4}, 0, 1, {.seed = 1}),
             {.15012848, .63992536, .81787777, .34572172, .85788667, .3187294, .84358191, .13991392});
  ExpectRuns(RandomNormal({4}, 0, 1, {.seed = 1}), {-1.499947, -1.2420495, .52283144, -.35879248});
  ExpectRuns(Seeded("RandomShuffle", {Range(0, 8)}), {1, 5, 4, 2, 0, 6, 3, 7});
  ExpectRuns(Seeded("RandomUniformInt", {{4}, Constant(0), Constant(100)}), {9, 95, 0, 36});
  ExpectRuns(RandomUniform({3}, 0, 1, {.dtype = DType::kDouble, .seed = 1}), {.20102799, .54302283, .9729557});
  ExpectRuns(Seeded("Multinomial", {Constant({{1.0, 1.0, 1.0}}), 6}), {0, 1, 2, 2, 1, 2});
}

TEST(Seeds, F397_a_graph_seed_alone_counts_nodes) {
  Fresh f;
  SetRandomSeed(42, f.graph);
  ExpectRuns(RandomUniform({4}), {.63789964, .16047871, .19355309, .25280082});
}

TEST(Seeds, F397_ops_of_one_seed_have_positions_of_their_own) {
  Fresh f;
  const Output a = RandomUniform({2}, 0, 1, {.seed = 5}), b = RandomUniform({2}, 0, 1, {.seed = 5});
  Session session(f.graph);
  const std::vector<double> first = Values(session, a);
  EXPECT_NE(Values(session, a), first);
  EXPECT_EQ(Values(session, b), first);
  const Output none = RandomUniform({8});
  Session other(f.graph);
  EXPECT_NE(Values(session, none), Values(other, none));
}

}  // namespace
}  // namespace weir
