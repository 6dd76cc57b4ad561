#include "core/base/passes.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir {
namespace {

struct Limit {
  int most = 0;
};

Status Add(const Limit&, int& number) {
  ++number;
  return Status();
}

Status Double(const Limit& limit, int& number) {
  if (2 * number > limit.most) return OutOfRange("{} is too much", 2 * number);
  number *= 2;
  return Status();
}

constexpr Pass<Limit, int> kPasses[] = {{"add", Add}, {"double", Double}, {"add_again", Add}};

std::string Print(int number) { return std::to_string(number); }
Status Accept(int) { return Status(); }

TEST(RunPasses, RunsTheTableInOrderAndReportsEachPass) {
  int number = 1;
  std::vector<std::string> seen;
  PassOptions options;
  options.watch = [&](const PassReport& report) {
    EXPECT_GE(report.ns, 0);
    seen.push_back(std::string(report.stage) + "/" + std::string(report.pass) + " " + report.text());
  };
  ASSERT_TRUE(RunPasses(options, "count", kPasses, Limit{10}, number, Accept, Print).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"count/add 2", "count/double 4", "count/add_again 5"}));
}

TEST(RunPasses, DisabledPassesDoNotRun) {
  int number = 1;
  PassOptions options;
  options.disabled = {"double"};
  ASSERT_TRUE(RunPasses(options, "count", kPasses, Limit{}, number, Accept, Print).ok());
  EXPECT_EQ(number, 3);
}

TEST(RunPasses, TheFirstErrorEndsTheRun) {
  int number = 1;
  const Status status = RunPasses({}, "count", kPasses, Limit{3}, number, Accept, Print);
  EXPECT_EQ(status.message(), "4 is too much");
  EXPECT_EQ(number, 2);
}

TEST(RunPasses, AViolationNamesThePass) {
  int number = 1;
  PassOptions options;
  options.verify = true;
  const auto is_small = [](int of) { return of < 3 ? Status() : Internal("not small"); };
  const Status status = RunPasses(options, "count", kPasses, Limit{10}, number, is_small, Print);
  EXPECT_EQ(status.message(), "after count/double: not small");
  options.verify = false;
  EXPECT_TRUE(RunPasses(options, "count", kPasses, Limit{100}, number, is_small, Print).ok());
}

}  // namespace
}  // namespace weir
