// Devices whose kernels refuse operands, and ops that run on the host if a device has no kernel.
#include <set>

#include "core/device/error_record.h"
#include "core/device/stand_in.h"
#include "tests/unit/place/cost_fixture.h"

namespace weir::place {
namespace {

/// Supports matrices of at most 8 rows.
int32_t AtMost8Rows(const weir_prep_args* args, weir_error* error) {
  return args->inputs[0]->shape.dims[0] > 8 ? device::Report(error, WEIR_UNIMPLEMENTED, "more than 8 rows") : WEIR_OK;
}

TEST_F(CostTest, SupportsIsCalledForRequestedDevicesToo) {
  Register("Sqrt", "cpu");
  Register("Sqrt", "gpu").supports = AtMost8Rows;
  const std::vector<testing::NodeLine> nodes = {kX, {"s", "Sqrt", {"x"}, kFloat, "/device:GPU:1"}};
  const auto small = Explained(nodes, {"s"}, 8);
  ASSERT_TRUE(small.ok()) << small.status().ToString();
  EXPECT_EQ(DeviceOf(*small, "s"), "GPU:1") << ToText(*small);
  const auto large = Explained(nodes, {"s"}, 9);
  ASSERT_TRUE(large.ok()) << large.status().ToString();
  EXPECT_EQ(DeviceOf(*large, "s"), "CPU:0") << ToText(*large);
  EXPECT_NE(Node(*large, "s").note.find("kernel Sqrt of test_gpu: more than 8 rows"), std::string::npos)
      << Node(*large, "s").note;
  EXPECT_NE(ToText(*large).find("more than 8 rows"), std::string::npos) << ToText(*large);
  PlaceOptions options;
  options.allow_soft_placement = false;
  const auto hard = Explained(nodes, {"s"}, 9, options);
  ASSERT_FALSE(hard.ok());
  const std::string text = hard.status().message();
  for (const char* part : {"'/device:GPU:1'", "kernel Sqrt of test_gpu: more than 8 rows",
                           "the nearest request that can be met is '/device:CPU:0'", "allow_soft_placement = true"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

std::set<const weir_device*> asked_with;

int32_t KeepHandle(const weir_prep_args* args, weir_error*) {
  asked_with.insert(args->device);
  return WEIR_OK;
}

TEST_F(CostTest, APluginNeverGetsTheHandleOfAnotherProcessesDevice) {
  device::DeviceDescription far = device::Describe(*devices_.all()[1]);
  far.info.name.task = 1;
  devices_.Add(device::MakeStandIn(far));
  const device::Device& stand_in = *devices_.all().back();
  EXPECT_TRUE(stand_in.info().stand_in);
  Register("Sqrt", "gpu").supports = KeepHandle;
  records_.back().estimate = [](const weir_prep_args* args, const weir_profile*, weir_cost* cost, weir_error*) {
    asked_with.insert(args->device);
    cost->flops = 1e6;
    return int32_t{WEIR_OK};
  };
  for (const char* device : {"/task:1/device:GPU:0", "/task:0/device:GPU:0", ""}) {
    const auto placed = Explained({kX, {"s", "Sqrt", {"x"}, kFloat, device}}, {"s"}, 8);
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  }
  const Result<weir_device*> handle = devices_.all().back()->Open();
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  EXPECT_FALSE(asked_with.contains(*handle));
  EXPECT_TRUE(asked_with.contains(nullptr));
  EXPECT_GT(asked_with.size(), 1u) << "devices of this process are asked with their handles";
}

TEST_F(CostTest, AKernelOfTheHostServesDevicesWithoutTheirOwn) {
  kernels_.AddHost("CheckNumerics", [](kernel::BuiltinCall&) { return Status(); });
  const auto check = [&](const char* device) {
    const std::vector<testing::NodeLine> nodes = {
        kX, {"c", "CheckNumerics", {"x"}, {{"T", DType::kFloat}, {"message", std::string("m")}}, device}};
    const auto placed = Explained(nodes, {"c"}, 8);
    EXPECT_TRUE(placed.ok()) << placed.status().ToString();
    return placed.ok() ? DeviceOf(*placed, "c") : "";
  };
  EXPECT_EQ(check("/device:GPU:0"), "GPU:0");
  EXPECT_EQ(check("/device:CPU:0"), "CPU:0");
  Register("CheckNumerics", "gpu");
  EXPECT_EQ(check("/device:GPU:0"), "GPU:0");
  EXPECT_EQ(check("/device:CPU:0"), "CPU:0") << "the host's kernel beside the device's own";
}

}  // namespace
}  // namespace weir::place
