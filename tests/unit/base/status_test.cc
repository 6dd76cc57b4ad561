#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weir {
namespace {

TEST(StatusTest, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
}

TEST(StatusTest, ErrorCarriesCodeAndText) {
  const Status status = NotFound("no {} in {}", "x", 3);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.ToString(), "NOT_FOUND: no x in 3");
}

TEST(StatusTest, OkCodeNeverMakesAnError) { EXPECT_TRUE(Status(Code::kOk, "text").ok()); }

TEST(StatusTest, CodeNames) {
  const struct {
    Code code;
    const char* name;
  } kCases[] = {{Code::kOk, "OK"},
                {Code::kInvalidArgument, "INVALID_ARGUMENT"},
                {Code::kResourceExhausted, "RESOURCE_EXHAUSTED"},
                {Code::kDataLoss, "DATA_LOSS"},
                {Code::kUnauthenticated, "UNAUTHENTICATED"},
                {static_cast<Code>(99), "CODE_99"},
                {static_cast<Code>(-1), "CODE_-1"}};
  for (const auto& c : kCases) EXPECT_EQ(CodeName(c.code), c.name);
}

TEST(StatusTest, FirstNodeWins) {
  const Status inner = InvalidArgument("bad").WithNode("inner", "model.cc:3");
  const Status outer = inner.WithNode("outer", "model.cc:9");
  EXPECT_EQ(outer.node(), "inner");
  EXPECT_EQ(outer.where(), "model.cc:3");
  EXPECT_TRUE(Status().WithNode("n").ok());
}

TEST(StatusTest, PrependAndAppendKeepNodeAndCode) {
  const Status status = Aborted("core").WithNode("n").Prepend("before ").Append(" after");
  EXPECT_EQ(status.message(), "before core after");
  EXPECT_EQ(status.node(), "n");
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_TRUE(Status().Prepend("x").ok());
  EXPECT_TRUE(Status().Append("x").ok());
}

TEST(ResultTest, HoldsValueOrError) {
  const Result<int> good(3);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 3);
  EXPECT_TRUE(good.status().ok());
  const Result<int> bad(OutOfRange("over"));
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), Code::kOutOfRange);
}

TEST(ResultTest, TheValueOfAnErrorIsTheDefaultOne) {
  Result<std::string> text(NotFound("gone"));
  EXPECT_EQ(*text, "");
  EXPECT_EQ(text->size(), 0u);
  *text = "written";
  EXPECT_FALSE(text.ok());
  EXPECT_EQ(*Result<int>(NotFound("gone")), 0);
  EXPECT_EQ(*Result<std::unique_ptr<int>>(NotFound("gone")), nullptr);
}

TEST(ResultTest, ComparesWithValues) {
  EXPECT_EQ(Result<int>(3), 3);
  EXPECT_NE(Result<int>(3), 4);
  EXPECT_NE(Result<int>(NotFound("gone")), 0) << "an error has no value";
}

TEST(ResultTest, ConvertsAsItsValueDoes) {
  const Result<double> wide = Result<int>(3);
  EXPECT_EQ(wide, 3.0);
  EXPECT_EQ(Result<double>(Result<int>(NotFound("gone"))).status().code(), Code::kNotFound);
}

TEST(ResultTest, OkStatusWithoutValueIsAnError) { EXPECT_EQ(Result<int>(Status()).status().code(), Code::kInternal); }

Result<std::unique_ptr<int>> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("{} is odd", n);
  return std::make_unique<int>(n / 2);
}

Result<int> Quarter(int n) {
  WEIR_ASSIGN(const std::unique_ptr<int> half, Half(n));
  WEIR_ASSIGN(const std::unique_ptr<int> quarter, Half(*half));
  return *quarter;
}

Status CheckQuarter(int n) {
  WEIR_TRY(Quarter(n).status());
  return {};
}

TEST(ResultTest, MacrosPropagate) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
  EXPECT_TRUE(CheckQuarter(4).ok());
  EXPECT_EQ(CheckQuarter(5).message(), "5 is odd");
}

}  // namespace
}  // namespace weir
