// A short form of a million runs: memory does not grow with the number of runs.
#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

TEST(Soak, RunsLeaveNothingBehind) {
#if WEIR_SANITIZER_KIND != 0
  GTEST_SKIP() << "a sanitizer's allocator counts otherwise";
#endif
  const op::AttrList type = {{"T", DType::kFloat}};
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({64})}};
  Compiled step(testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({64})),
                                    {"v", "VariableV2", {}, variable},
                                    {"start", "Assign", {"v", "x"}, type},
                                    {"add", "AssignAdd", {"start", "x"}, type},
                                    {"y", "Square", {"add"}, type},
                                    {"n", "Neg", {"y"}, type}}),
                {{"x", Shape::Of({64})}}, {"n"});
  const std::vector<Tensor> feeds = {Tensor::Vector<float>(std::vector<float>(64, 3))};
  std::vector<Tensor> fetches;
  const auto allocated = [] { return mallinfo2().uordblks; };
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(step.Run(feeds, &fetches).ok());
  const size_t before = allocated();
  constexpr int kRuns = 300000;
  for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(step.Run(feeds, &fetches).ok());
  EXPECT_LT(allocated(), before + kRuns) << "less than a byte for each run; other threads of the process come and go";
  EXPECT_EQ(fetches[0].as<float>()[0], -36);
}

}  // namespace
}  // namespace weir::execute
