#include "core/kernel/roofline.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace weir::kernel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

weir_cost Cost(double flops, double bytes) {
  weir_cost cost{};
  cost.struct_size = sizeof(cost);
  cost.cost_class = WEIR_CLASS_ELEMENTWISE;
  cost.whole_ns = cost.fixed_ns = kNaN;
  cost.flops = flops;
  cost.bytes = bytes;
  return cost;
}

weir_profile Profile() {
  weir_profile profile{};
  profile.struct_size = sizeof(profile);
  profile.peak_flops_per_ns[WEIR_FLOAT32] = 100;
  profile.bandwidth_bytes_per_ns = 10;
  profile.cache_bytes = 1000;
  profile.cache_bandwidth_bytes_per_ns = 50;
  profile.launch_ns = 3;
  profile.compute_efficiency[WEIR_CLASS_ELEMENTWISE] = 0.5;
  profile.memory_efficiency[WEIR_CLASS_ELEMENTWISE] = 0.5;
  return profile;
}

TEST(Roofline, BytesThatFitTheCacheMoveAtItsBandwidth) {
  const weir_profile profile = Profile();
  EXPECT_DOUBLE_EQ(RooflineNs(Cost(0, 1000), &profile, DType::kFloat), 3 + 1000 / 25.0);
  EXPECT_DOUBLE_EQ(RooflineNs(Cost(0, 1001), &profile, DType::kFloat), 3 + 1001 / 5.0);
}

TEST(Roofline, TheSlowerOfArithmeticAndMemoryCounts) {
  const weir_profile profile = Profile();
  EXPECT_DOUBLE_EQ(RooflineNs(Cost(5000, 10), &profile, DType::kFloat), 3 + 5000 / 50.0);
}

TEST(Roofline, AWholeTimeIsTheAnswer) {
  weir_cost cost = Cost(1e9, 1e9);
  cost.whole_ns = 7;
  const weir_profile profile = Profile();
  EXPECT_DOUBLE_EQ(RooflineNs(cost, &profile, DType::kFloat), 7);
}

TEST(Roofline, UnknownFiguresAreAssumed) {
  weir_profile unknown = Profile();
  unknown.peak_flops_per_ns[WEIR_FLOAT32] = unknown.bandwidth_bytes_per_ns = unknown.launch_ns = kNaN;
  unknown.cache_bytes = kNaN;
  for (double& efficiency : unknown.memory_efficiency) efficiency = -1;
  EXPECT_DOUBLE_EQ(RooflineNs(Cost(kNaN, 100), &unknown, DType::kFloat, 20), 20 + 100 / kAssumedBytesPerNs);
  EXPECT_DOUBLE_EQ(RooflineNs(Cost(100, kNaN), nullptr, DType::kFloat, 20), 20 + 100 / kAssumedFlopsPerNs);
}

TEST(Roofline, ARecordDeclaresByItsLargestOperandAndAllBytes) {
  weir_kernel record{};
  record.cost_class = WEIR_CLASS_REDUCE;
  record.flops_per_element = 2;
  const std::vector<OperandSpec> inputs = {{DType::kFloat, Shape::Of({8, 4}), nullptr, false, false}};
  const std::vector<OperandSpec> outputs = {{DType::kFloat, Shape::Of({4}), nullptr, false, false}};
  const weir_cost cost = DeclaredWork(record, inputs, outputs);
  EXPECT_EQ(cost.cost_class, static_cast<uint32_t>(WEIR_CLASS_REDUCE));
  EXPECT_DOUBLE_EQ(cost.flops, 64);
  EXPECT_DOUBLE_EQ(cost.bytes, 36 * 4);
}

}  // namespace
}  // namespace weir::kernel
