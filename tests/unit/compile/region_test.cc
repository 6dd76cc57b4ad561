// Regions as data: text, parts, convexity.
#include "core/compile/region.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/compile/region_view.h"

namespace weir::compile {
namespace {

RegionValue Floats(Shape shape) { return {DType::kFloat, std::move(shape), Tensor()}; }

/// i0 -> n0 Neg -> n1 Square -> n2 AddV2(n1, n0) -> n3 Mul(n2, i1); outputs n1, n3.
Region Diamond() {
  Region region;
  const Shape shape = Shape::Of({2, 3});
  region.inputs = {Floats(shape), {DType::kFloat, Shape(), Tensor::Scalar<float>(0.5f)}};
  region.nodes = {{"Neg", {0}, {{"T", DType::kFloat}}, {}, Floats(shape), 10},
                  {"Square", {2}, {{"T", DType::kFloat}}, {}, Floats(shape), 20},
                  {"AddV2", {3, 2}, {{"T", DType::kFloat}}, {}, Floats(shape)},
                  {"Mul", {4, 1}, {{"T", DType::kFloat}}, {}, Floats(shape), 40}};
  region.outputs = {3, 5};
  return region;
}

TEST(Regions, F021_the_text_tells_all_that_code_depends_on) {
  const Region region = Diamond();
  EXPECT_EQ(ToString(region),
            "i0 1 [2,3]\ni1 1 [] = 0000003f\nn0 Neg(i0) T=DT_FLOAT -> 1 [2,3]\nn1 Square(n0) T=DT_FLOAT -> 1 [2,3]\n"
            "n2 AddV2(n1, n0) T=DT_FLOAT -> 1 [2,3]\nn3 Mul(n2, i1) T=DT_FLOAT -> 1 [2,3]\noutputs n1 n3\n");
  Region other = Diamond();
  other.inputs[1].constant = Tensor::Scalar<float>(0.25f);
  EXPECT_NE(ToString(other), ToString(region));
  other = Diamond();
  other.deterministic = true;
  EXPECT_NE(ToString(other), ToString(region));
  other = Diamond();
  other.nodes[0].kernel_ns = 11;
  EXPECT_EQ(ToString(other), ToString(region));
}

TEST(Regions, F021_a_set_with_a_way_through_others_is_not_convex) {
  const Region region = Diamond();
  EXPECT_TRUE(IsConvex(region, std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_TRUE(IsConvex(region, std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(IsConvex(region, std::vector<uint32_t>{0, 1}));
  EXPECT_FALSE(IsConvex(region, std::vector<uint32_t>{0, 2}));
  EXPECT_FALSE(IsConvex(region, std::vector<uint32_t>{0, 3}));
  EXPECT_FALSE(IsConvex(region, std::vector<uint32_t>{1, 3}));
}

TEST(Regions, F021_a_part_has_the_values_that_others_use_as_outputs) {
  const Region region = Diamond();
  const Part part = Choose(region, std::vector<uint32_t>{1, 2});
  EXPECT_EQ(part.inputs, (std::vector<uint32_t>{2}));
  EXPECT_EQ(ToString(part.region),
            "i0 1 [2,3]\nn0 Square(i0) T=DT_FLOAT -> 1 [2,3]\nn1 AddV2(n0, i0) T=DT_FLOAT -> 1 [2,3]\noutputs n0 n1\n");
  EXPECT_EQ(ToString(Choose(region, std::vector<uint32_t>{0, 1, 2, 3}).region), ToString(region));
  EXPECT_EQ(KernelNanoseconds(region, std::vector<uint32_t>{0, 1, 2}), 30);
}

TEST(Regions, F021_plugins_see_values_attributes_and_constants) {
  Region region = Diamond();
  region.nodes[3].attrs = {{"a", int64_t{7}}, {"b", true}, {"c", 0.5f}, {"d", std::string("x")}};
  region.nodes[3].axes = {1};
  const RegionView view(region);
  const weir_region& seen = *view.get();
  ASSERT_EQ(seen.input_count, 2u);
  ASSERT_EQ(seen.node_count, 4u);
  EXPECT_EQ(seen.inputs[0]->constant, nullptr);
  ASSERT_NE(seen.inputs[1]->constant, nullptr);
  EXPECT_EQ(*static_cast<const float*>(seen.inputs[1]->constant), 0.5f);
  EXPECT_EQ(seen.nodes[1]->result.shape.rank, 2u);
  EXPECT_EQ(seen.nodes[1]->result.shape.dims[1], 3);
  EXPECT_EQ(seen.nodes[0]->attrs[0].type, static_cast<uint32_t>(WEIR_VALUE_DTYPE));
  const weir_region_node& last = *seen.nodes[3];
  ASSERT_EQ(last.attr_count, 4u);
  EXPECT_EQ(last.attrs[0].value.i, 7);
  EXPECT_EQ(last.attrs[1].value.i, 1);
  EXPECT_EQ(last.attrs[2].value.f, 0.5);
  EXPECT_EQ(std::string(last.attrs[3].value.s.data, last.attrs[3].value.s.size), "x");
  ASSERT_EQ(last.axis_count, 1u);
  EXPECT_EQ(last.axes[0], 1);
  EXPECT_EQ(seen.nodes[0]->axes, nullptr);
}

}  // namespace
}  // namespace weir::compile
