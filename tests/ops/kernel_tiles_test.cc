// Kernels that run in tiles: the tiles give the bits of one call, whatever their number and order.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/launch.h"
#include "core/kernel/prepared.h"
#include "core/session/session.h"
#include "sdk/cpp/types.h"
#include "tests/support/test_device.h"

namespace weir {
namespace {

/// A gradient of a convolution by its filter.
struct Gradient {
  std::string op;
  DType dtype;
  std::vector<int64_t> x, filter, y;
  std::vector<int64_t> strides, dilations;
  std::string padding = "SAME", format;
};

std::vector<Gradient> Gradients() {
  const std::string op = "Conv2DBackpropFilter";
  const std::vector<int64_t> one = {1, 1, 1, 1}, two = {1, 2, 2, 1};
  std::vector<Gradient> all = {
      {op, DType::kFloat, {2, 12, 12, 64}, {3, 3, 64, 40}, {2, 12, 12, 40}, one, one, "SAME", "NHWC"},
      {op, DType::kFloat, {4, 30, 30, 3}, {7, 7, 3, 48}, {4, 15, 15, 48}, two, one, "SAME", "NHWC"},
      {op, DType::kFloat, {2, 14, 14, 6}, {5, 5, 6, 270}, {2, 10, 10, 270}, one, one, "VALID", "NHWC"},
      {op, DType::kFloat, {20, 14, 14, 6}, {5, 5, 6, 16}, {20, 10, 10, 16}, one, one, "VALID", "NHWC"},
      {op, DType::kFloat, {36, 28, 28, 1}, {5, 5, 1, 6}, {36, 28, 28, 6}, one, one, "SAME", "NHWC"},
      {op, DType::kFloat, {4, 10, 10, 130}, {1, 1, 130, 90}, {4, 10, 10, 90}, one, one, "SAME", "NHWC"},
      {op, DType::kFloat, {3, 12, 12, 32}, {3, 3, 32, 40}, {3, 12, 12, 40}, one, {1, 1, 2, 1}, "SAME", "NHWC"},
      {op, DType::kFloat, {2, 50, 12, 12}, {3, 3, 50, 40}, {2, 40, 12, 12}, one, one, "SAME", "NCHW"},
      {op, DType::kFloat, {2, 130, 12, 12}, {1, 1, 130, 140}, {2, 140, 12, 12}, one, one, "SAME", "NCHW"},
      {op, DType::kFloat, {4, 16, 16, 24}, {3, 3, 8, 60}, {4, 16, 16, 60}, one, one, "SAME", "NHWC"},
      {op, DType::kDouble, {4, 16, 16, 24}, {3, 3, 8, 60}, {4, 16, 16, 60}, one, one, "SAME", "NHWC"},
      {"Conv3DBackpropFilterV2",
       DType::kFloat,
       {2, 6, 6, 6, 16},
       {3, 3, 3, 16, 24},
       {2, 6, 6, 6, 24},
       {1, 1, 1, 1, 1},
       {1, 1, 1, 1, 1},
       "SAME",
       "NDHWC"}};
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  all.push_back({op, DType::kHalf, {2, 12, 12, 40}, {3, 3, 40, 40}, {2, 12, 12, 40}, one, one, "SAME", "NHWC"});
  all.push_back({op, DType::kBfloat16, {4, 10, 10, 130}, {1, 1, 130, 90}, {4, 10, 10, 90}, one, one, "SAME", "NHWC"});
#endif
  return all;
}

Shape ShapeOf(const std::vector<int64_t>& dims) {
  const Result<Shape> shape = Shape::Make(dims);
  EXPECT_TRUE(shape.ok());
  return *shape;
}

/// Numbers in [-1, 1] that no tile finds alike, with all their bits.
Tensor Numbers(DType dtype, const std::vector<int64_t>& dims) {
  Result<Tensor> made = Tensor::Make(dtype, ShapeOf(dims));
  EXPECT_TRUE(made.ok());
  for (int64_t i = 0; i < made->elements(); ++i) {
    const auto e = static_cast<size_t>(i);
    const double number = std::sin(0.7 * static_cast<double>(i));
    if (dtype == DType::kFloat) made->mutable_as<float>()[e] = static_cast<float>(number);
    if (dtype == DType::kDouble) made->mutable_as<double>()[e] = number;
    if (dtype == DType::kHalf)
      reinterpret_cast<sdk::half*>(made->mutable_raw())[i] = sdk::half(static_cast<float>(number));
    if (dtype == DType::kBfloat16)
      reinterpret_cast<sdk::bfloat16*>(made->mutable_raw())[i] = sdk::bfloat16(static_cast<float>(number));
  }
  return *made;
}

class KernelTiles : public ::testing::Test {
 protected:
  void SetUp() override {
    plugin::LoadOptions options;
    options.config.plugins.isa = testing::TestIsa();
    options.deny = {"kernels_onednn", "kernels_openblas"};
    Result<std::shared_ptr<session::Runtime>> loaded = session::Runtime::Load(options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    runtime = *loaded;
    device = runtime->plugins->devices().all()[0].get();
  }

  Result<std::unique_ptr<kernel::PreparedKernel>> Prepare(const Gradient& g, uint64_t max_tiles) {
    const op::AttrList attrs = {{"T", g.dtype},
                                {"strides", g.strides},
                                {"dilations", g.dilations},
                                {"padding", g.padding},
                                {"data_format", g.format},
                                {"use_cudnn_on_gpu", true},
                                {"explicit_paddings", std::vector<int64_t>()}};
    const op::OpDef* def = runtime->ops->Find(g.op);
    const weir_node node{"gradient", op::AttrView(*def, attrs), [](int) { return nullptr; }, nullptr, {}};
    const auto rank = static_cast<int64_t>(g.x.size());
    const std::vector<kernel::OperandSpec> inputs = {
        {g.dtype, ShapeOf(g.x)}, {DType::kInt32, Shape::Of({rank}), nullptr, false, true}, {g.dtype, ShapeOf(g.y)}};
    const std::vector<kernel::OperandSpec> outputs = {{g.dtype, ShapeOf(g.filter)}};
    const auto kernels = runtime->plugins->kernels().Find(node.attrs, device->info().platform);
    if (kernels.empty()) return NotFound("no kernel of {}", g.op);
    WEIR_ASSIGN(weir_device* const handle, kernel::HandleToAsk(*device));
    return kernel::PreparedKernel::Make(*kernels[0], node, inputs, outputs, handle, max_tiles);
  }

  /// The result of calls of `together` tiles, the last ones first.
  Tensor Run(const Gradient& g, const kernel::PreparedKernel& kernel, uint64_t together) {
    const Tensor x = Numbers(g.dtype, g.x), y = Numbers(g.dtype, g.y);
    Tensor sizes = *Tensor::Make(DType::kInt32, Shape::Of({static_cast<int64_t>(g.filter.size())}));
    for (size_t i = 0; i < g.filter.size(); ++i) sizes.mutable_as<int32_t>()[i] = static_cast<int32_t>(g.filter[i]);
    Tensor filter = Numbers(g.dtype, g.filter);  // none of them may stay
    const Tensor* const operands[] = {&x, &sizes, &y, &filter};
    std::vector<weir_reg> registers;
    std::vector<weir_shape> shapes;
    shapes.reserve(4);
    for (const Tensor* operand : operands) {
      shapes.push_back({static_cast<uint32_t>(operand->shape().rank()), 0, operand->shape().dims().data()});
      registers.push_back(kernel::RegisterOf(*operand, &shapes.back()));
    }
    const Tensor scratch =
        *Tensor::Make(DType::kInt8, Shape::Of({static_cast<int64_t>(kernel.reserved_scratch_bytes() + 1)}));
    if (kernel.scratch_bytes() > 0) registers.push_back(kernel::RegisterOf(scratch, &shapes.back()));
    for (uint64_t end = kernel.tiles(); end > 0;) {
      const uint64_t begin = end > together ? end - together : 0;
      const Status status = kernel::CallTiles(kernel, registers, begin, end, *device);
      EXPECT_TRUE(status.ok()) << status.ToString();
      end = begin;
    }
    return filter;
  }

  std::shared_ptr<session::Runtime> runtime;
  device::Device* device = nullptr;
};

TEST_F(KernelTiles, GradientsOfFiltersHaveTheBitsOfOneCall) {
  for (const Gradient& g : Gradients()) {
    const std::string name = g.op + " of " + ShapeOf(g.x).ToString() + " by " + ShapeOf(g.filter).ToString();
    const auto whole = Prepare(g, 1);
    ASSERT_TRUE(whole.ok()) << name << ": " << whole.status().ToString();
    ASSERT_EQ((*whole)->tiles(), 1u);
    const Tensor wanted = Run(g, **whole, 1);
    for (const uint64_t most : {2u, 3u, 16u}) {
      const auto tiled = Prepare(g, most);
      ASSERT_TRUE(tiled.ok()) << name << ": " << tiled.status().ToString();
      EXPECT_GE((*tiled)->tiles(), 2u) << name << ", at most " << most;
      EXPECT_LE((*tiled)->tiles(), most) << name;
      for (const uint64_t together : {1u, 2u}) {
        EXPECT_TRUE(Run(g, **tiled, together).SameBits(wanted)) << name << ", " << (*tiled)->tiles() << " tiles";
      }
    }
  }
}

TEST_F(KernelTiles, ASmallGradientHasNone) {
  const std::vector<int64_t> one = {1, 1, 1, 1};
  const Gradient small{
      "Conv2DBackpropFilter", DType::kFloat, {2, 8, 8, 16}, {3, 3, 16, 16}, {2, 8, 8, 16}, one, one, "SAME", "NHWC"};
  const auto kernel = Prepare(small, 16);
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  EXPECT_EQ((*kernel)->tiles(), 1u);
}

}  // namespace
}  // namespace weir
