// Printing from inside a step.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// The text that a run of `fetch` writes to stderr.
std::string Said(Session& session, const Fetch& fetch) {
  ::testing::internal::CaptureStderr();
  const Result<Fetched> fetched = session.Run(fetch);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Succeeds(fetched));
  return said;
}

TEST(Print, F389_is_an_identity_that_says_what_passes) {
  Fresh f;
  const Output c = Constant({{1.0f, 2.0f}, {3.0f, 4.5f}}), i = Constant({1, 2, 3, 4, 5});
  const Output shown = Print(c, {c, i}, {.message = "msg: "});
  const Output twice = Print(i, {i}, {.first_n = 2, .summarize = 2});
  EXPECT_EQ(shown.name(), "Print:0");
  EXPECT_EQ(shown.shape().ToTupleString(), "(2, 2)");
  const Result<std::vector<Gradient>> gradients = Gradients({ReduceSum(shown * shown)}, {c});
  ASSERT_TRUE(Succeeds(gradients));
  Session session(f.graph), other(f.graph);
  EXPECT_EQ(Said(session, shown), "msg: [[1 2][3...]...][1 2 3...]\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Values(session, (*gradients)[0].values), (std::vector<double>{2, 4, 6, 9}));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(Said(session, twice), "[1 2...]\n");
  EXPECT_EQ(Said(session, twice), "[1 2...]\n");
  EXPECT_EQ(Said(session, twice), "");
  EXPECT_EQ(Said(other, twice), "[1 2...]\n") << "each session counts for itself";
}

TEST(Print, F389_words_and_tensors_in_one_text) {
  Fresh f;
  const Output c = Constant({{1.0f, 2.0f}, {3.0f, 4.5f}}), i = Constant({1, 2, 3, 4, 5});
  const Variable v({1.0f, 2.0f}, {.name = "v"});
  const Operation all = PrintV2({"x:", c, i, "end"});
  const Operation apart =
      PrintV2({Constant(3), Constant(std::vector<std::string>{"a", "b"})}, {.sep = "/", .end = "E"});
  const Operation alone = PrintV2({Constant("s")}), words = PrintV2({"{} a {}", Constant(1)}), variable = PrintV2({v});
  const Operation out = PrintV2({"out"}, {.output_stream = "stdout"});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  EXPECT_EQ(all.name(), "PrintV2");
  EXPECT_EQ(all.inputs()[0].name(), "StringFormat:0");
  EXPECT_EQ(alone.inputs()[0].op().type(), "Const");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Said(session, all), "x: [[1 2]\n [3 4.5]] [1 2 3 4 5] end\n");
  EXPECT_EQ(Said(session, apart), "3/[\"a\" \"b\"]E");
  EXPECT_EQ(Said(session, alone), "s\n");
  EXPECT_EQ(Said(session, words), "{} a {} 1\n");
  EXPECT_EQ(Said(session, variable), "[1 2]\n");
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(Succeeds(session.Run(out)));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "out\n");
}

}  // namespace
}  // namespace weir::test
