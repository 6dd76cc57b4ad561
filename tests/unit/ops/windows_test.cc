// Layouts, paddings and extents of sliding windows.
#include <gtest/gtest.h>

#include "core/op/registry.h"
#include "core/op/shape_context.h"
#include "core/ops/windows.h"

namespace weir::ops::test {
namespace {

using Sides = std::vector<std::array<int64_t, 2>>;

/// An op with the attributes of windows.
const op::OpDef& WindowOp() {
  static const op::OpRegistry* const ops = [] {
    auto* made = new op::OpRegistry;
    made->Declare("Window")
        .Out("output: float")
        .Attr("strides: list(int) = [1, 1, 1, 1]")
        .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'} = 'SAME'")
        .Attr("explicit_paddings: list(int) = []")
        .Attr("data_format: string = 'NHWC'")
        .Shape(op::Scalar())
        .NoGradient("it is a test");
    return made;
  }();
  return *ops->Find("Window");
}

std::string ErrorOf(const Status& status) { return std::string(status.message()); }

TEST(Windows, FormatsNameTheAxes) {
  const auto axes = [](const char* format, int spatial) {
    const op::AttrList attrs = {{"data_format", format}};
    return ImageAxesOf(op::AttrView(WindowOp(), attrs), spatial);
  };
  const Result<ImageAxes> last = axes("NHWC", 2), first = axes("NCDHW", 3);
  ASSERT_TRUE(last.ok() && first.ok());
  EXPECT_EQ(last->Shape(1, {2, 3}, 4), (PartialShape{1, 2, 3, 4}));
  EXPECT_EQ(first->Shape(1, {2, -1, 4}, 5), (PartialShape{1, 5, 2, -1, 4}));
  EXPECT_EQ(ErrorOf(axes("NDHWC", 2).status()), "Invalid data format string: NDHWC");
  EXPECT_EQ(ErrorOf(axes("NHWC", 3).status()), "Invalid data format string: NHWC");
  EXPECT_TRUE(ErrorOf(axes("NCHW_VECT_C", 2).status()).starts_with("data_format NCHW_VECT_C"));
}

TEST(Windows, PaddingsAreReadByAxis) {
  const auto paddings = [](const char* padding, std::vector<int64_t> given, bool channels_first) {
    const op::AttrList attrs = {{"padding", padding}, {"explicit_paddings", std::move(given)}};
    return WindowPaddings::Of(op::AttrView(WindowOp(), attrs), {.channels_first = channels_first});
  };
  const Result<WindowPaddings> last = paddings("EXPLICIT", {0, 0, 1, 2, 3, 4, 0, 0}, false);
  const Result<WindowPaddings> first = paddings("EXPLICIT", {0, 0, 0, 0, 1, 2, 3, 4}, true);
  ASSERT_TRUE(last.ok() && first.ok());
  EXPECT_EQ(last->sides, (Sides{{1, 2}, {3, 4}}));
  EXPECT_EQ(first->sides, last->sides);
  EXPECT_EQ(last->kind, WindowPadding::kExplicit);
  const Result<WindowPaddings> same = paddings("SAME", {}, false);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->sides, (Sides{{0, 0}, {0, 0}}));
  EXPECT_EQ(ErrorOf(paddings("SAME", {0}, false).status()),
            "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  EXPECT_EQ(ErrorOf(paddings("EXPLICIT", {0, 0, 1, 2}, false).status()),
            "explicit_paddings attribute must contain 8 values, but got: 4");
  EXPECT_EQ(ErrorOf(paddings("EXPLICIT", {0, 0, 1, -2, 3, 4, 0, 0}, false).status()),
            "All elements of explicit_paddings must be nonnegative");
  EXPECT_EQ(ErrorOf(paddings("EXPLICIT", {0, 0, 1, 2, 3, 4, 0, 0}, true).status()),
            "Nonzero explicit padding in the batch or depth dimensions is not supported");
  EXPECT_EQ(ErrorOf(paddings("EXPLICIT", {0, 1, 1, 2, 3, 4, 0, 0}, false).status()),
            "Nonzero explicit padding in the batch or depth dimensions is not supported");
}

TEST(Windows, ExtentsFollowFromPaddingAndStep) {
  const auto extent = [](int64_t input, int64_t window, WindowStep step, WindowPadding padding,
                         std::array<int64_t, 2> sides = {0, 0}) {
    const Result<int64_t> places = WindowedExtent(input, window, step, padding, sides);
    return places.ok() ? std::to_string(*places) : ErrorOf(places.status());
  };
  constexpr auto kSame = WindowPadding::kSame, kValid = WindowPadding::kValid, kGiven = WindowPadding::kExplicit;
  constexpr int64_t kMost = INT64_MAX;
  EXPECT_EQ(extent(7, 3, {1, 1}, kSame), "7");
  EXPECT_EQ(extent(7, 3, {2, 1}, kSame), "4");
  EXPECT_EQ(extent(7, -1, {2, 5}, kSame), "4");
  EXPECT_EQ(extent(-1, 3, {2, 1}, kSame), "-1");
  EXPECT_EQ(extent(7, 3, {1, 1}, kValid), "5");
  EXPECT_EQ(extent(7, 3, {2, 1}, kValid), "3");
  EXPECT_EQ(extent(7, 3, {1, 3}, kValid), "1");
  EXPECT_EQ(extent(7, -1, {1, 3}, kValid), "-1");
  EXPECT_EQ(extent(7, 3, {1, 1}, kGiven, {2, 1}), "8");
  EXPECT_EQ(extent(2, 3, {1, 1}, kValid), "Negative dimension size caused by subtracting 3 from 2");
  EXPECT_EQ(extent(7, 0, {1, 2}, kValid), "Negative dimension size caused by subtracting 1 from 0");
  EXPECT_EQ(extent(7, 3, {0, 1}, kSame), "Stride must be > 0, but got 0");
  EXPECT_EQ(extent(7, 3, {-2, 1}, kSame), "Stride must be > 0, but got -2");
  EXPECT_EQ(extent(7, 3, {1, 0}, kSame), "Dilation rate must be >= 1, but got 0");
  EXPECT_EQ(extent(kMost, 3, {kMost, 1}, kSame), "1");
  EXPECT_TRUE(extent(kMost, 3, {1, 1}, kGiven, {1, 1}).starts_with("Dimension size overflow"));
  EXPECT_TRUE(extent(7, kMost, {1, 3}, kValid).starts_with("Negative dimension size caused by overflow"));
}

TEST(Windows, ListsHaveAnElementPerAxis) {
  const op::AttrList attrs = {{"strides", std::vector<int64_t>{1, 2, 1}}};
  EXPECT_EQ(ErrorOf(PerAxis(op::AttrView(WindowOp(), attrs), "strides", {}, "MaxPool", "stride").status()),
            "MaxPool requires the stride attribute to contain 4 values, but got: 3");
  const op::AttrList none;
  const auto strides = PerAxis(op::AttrView(WindowOp(), none), "strides", {}, "MaxPool", "stride");
  ASSERT_TRUE(strides.ok());
  const WindowPaddings valid{WindowPadding::kValid, {{0, 0}, {0, 0}}};
  const auto extents = WindowedExtents({}, {1, 7, -1, 2}, {3, 3}, *strides, {1, 2, 1, 1}, valid);
  ASSERT_TRUE(extents.ok());
  EXPECT_EQ(*extents, (std::vector<int64_t>{3, -1}));
}

}  // namespace
}  // namespace weir::ops::test
