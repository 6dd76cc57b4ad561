#include "core/runtime/completion.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace weir::runtime {
namespace {

TEST(Completion, RunsOnceWithItsArgument) {
  std::vector<Status> got;
  Completion done([&got, only = std::make_unique<int>(1)](Result<std::vector<Tensor>> made) {
    got.push_back(made.status());
    EXPECT_EQ((*made).size(), size_t{1});
  });
  EXPECT_TRUE(static_cast<bool>(done));
  done(std::vector<Tensor>{Tensor::Scalar<float>(2)});
  EXPECT_FALSE(static_cast<bool>(done));
  done(Internal("a second time"));
  ASSERT_EQ(got.size(), size_t{1});
  EXPECT_TRUE(got[0].ok());
}

TEST(Completion, MovesAndIsCalledFromWhereItWent) {
  int calls = 0;
  OneShot<int> first([&calls](Result<int> value) { calls += *value; });
  OneShot<int> second(std::move(first));
  first(100);  // NOLINT(bugprone-use-after-move): it is empty
  second(7);
  EXPECT_EQ(calls, 7);
}

TEST(Completion, DroppedItSaysSo) {
  std::vector<Code> got;
  const auto note = [&got](Result<int> value) { got.push_back(value.status().code()); };
  { const OneShot<int> dropped(note); }
  OneShot<int> overwritten(note);
  overwritten = OneShot<int>(note);
  overwritten(1);
  EXPECT_EQ(got, (std::vector<Code>{Code::kInternal, Code::kInternal, Code::kOk}));
}

}  // namespace
}  // namespace weir::runtime
