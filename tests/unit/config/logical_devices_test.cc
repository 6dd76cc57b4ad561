// The devices of a session and their memory.
#include "core/config/logical_devices.h"

#include <gtest/gtest.h>

#include "core/config/toml.h"

namespace weir::config {
namespace {

constexpr uint64_t kMiB = 1048576;

device::DeviceInfo Info(const std::string& kind, const std::string& uid, uint64_t mib, uint32_t flags = 0) {
  device::DeviceInfo info;
  info.kind = kind;
  info.uid = uid;
  info.memory_bytes = mib * kMiB;
  info.flags = flags;
  return info;
}

Result<std::vector<LogicalDevice>> Devices(const std::string& toml, const std::vector<device::DeviceInfo>& infos) {
  Settings settings;
  WEIR_TRY(ReadToml(toml, "weir.toml", settings));
  WEIR_ASSIGN(const Config config, settings.Build());
  std::vector<const device::DeviceInfo*> hardware;
  for (const device::DeviceInfo& info : infos) hardware.push_back(&info);
  return LogicalDevices(config, hardware);
}

std::string Fault(const std::string& toml, const std::vector<device::DeviceInfo>& infos) {
  const auto devices = Devices(toml, infos);
  EXPECT_EQ(devices.status().code(), Code::kInvalidArgument) << toml;
  return devices.status().message();
}

const std::vector<device::DeviceInfo> kGpus = {Info("GPU", "pci-a", 1000), Info("GPU", "pci-b", 2000),
                                               Info("GPU", "pci-c", 3000)};

std::vector<size_t> HardwareOf(const std::vector<LogicalDevice>& devices) {
  std::vector<size_t> hardware;
  for (const LogicalDevice& device : devices) hardware.push_back(device.hardware);
  return hardware;
}

TEST(LogicalDevices, AllOfThemByDefault) {
  const auto devices = Devices("", kGpus);
  ASSERT_TRUE(devices.ok());
  EXPECT_EQ(HardwareOf(*devices), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ((*devices)[0].memory.limit_bytes, 0u);
  EXPECT_EQ((*devices)[1].memory_bytes, 2000 * kMiB);
  EXPECT_FALSE((*devices)[0].memory.allow_growth);
}

TEST(LogicalDevices, VisibleDevicesAreRenumbered) {
  EXPECT_EQ(HardwareOf(*Devices("gpu_options.visible_device_list = \"2,0\"", kGpus)), (std::vector<size_t>{2, 0}));
  EXPECT_EQ(HardwareOf(*Devices("gpu_options.visible_device_list = \"pci-b\"", kGpus)), (std::vector<size_t>{1}));
  EXPECT_EQ(HardwareOf(*Devices("[device.GPU]\nvisible_device_list = \"1\"", kGpus)), (std::vector<size_t>{1}));
  EXPECT_EQ(HardwareOf(*Devices("device_count.GPU = 2", kGpus)), (std::vector<size_t>{0, 1}));
  EXPECT_TRUE(Devices("device_count.GPU = 0", kGpus)->empty());
  // The list applies to GPUs only.
  EXPECT_EQ(Devices("gpu_options.visible_device_list = \"2\"", {Info("NPU", "n", 1)})->size(), 1u);
  EXPECT_NE(
      Fault("gpu_options.visible_device_list = \"0,3\"", kGpus)
          .find("weir.toml:1: gpu_options.visible_device_list: 'visible_device_list' listed an invalid GPU id '3' "
                "but visible device count is 3"),
      std::string::npos);
  EXPECT_NE(Fault("gpu_options.visible_device_list = \"0,0\"", kGpus).find("duplicate entry: 0,0"), std::string::npos);
  EXPECT_NE(Fault("gpu_options.visible_device_list = \"0,x\"", kGpus)
                .find("Could not parse entry in 'visible_device_list': 'x'. visible_device_list = 0,x"),
            std::string::npos);
}

TEST(LogicalDevices, F119_FractionAndCapCompose) {
  const auto limit = [](const std::string& toml) { return (*Devices(toml, kGpus))[1].memory; };
  EXPECT_EQ(limit("gpu_options.per_process_gpu_memory_fraction = 0.4").limit_bytes, 800 * kMiB);
  EXPECT_EQ(limit("gpu_options.per_process_gpu_memory_fraction = 0.4").limit_source,
            "weir.toml:1: gpu_options.per_process_gpu_memory_fraction");
  const std::string both = "gpu_options.per_process_gpu_memory_fraction = 0.4\n[device.\"GPU:1\"]\n";
  EXPECT_EQ(limit(both + "memory_limit_mb = 100").limit_bytes, 100 * kMiB);
  EXPECT_EQ(limit(both + "memory_limit_mb = 1500").limit_bytes, 800 * kMiB);
  EXPECT_EQ(limit(both + "memory_fraction = 0.5").limit_bytes, 1000 * kMiB);
  // A limit above the device's memory changes nothing.
  EXPECT_EQ(limit("device.\"GPU:1\".memory_limit_mb = 2001").limit_bytes, 0u);
  EXPECT_EQ(limit("device.\"GPU:1\".memory_limit_mb = 2001").limit_source, "");
  EXPECT_EQ((*Devices("device.\"GPU:1\".memory_limit_mb = 2001", kGpus))[1].memory_bytes, 2000 * kMiB);
  EXPECT_EQ(limit("device.\"GPU:1\".memory_limit_mb = 1999").limit_bytes, 1999 * kMiB);
  EXPECT_EQ(limit("[device.GPU]\nmemory_fraction = 0.1\n[device.\"GPU:1\"]\nmemory_fraction = 0.2").limit_bytes,
            400 * kMiB);
  EXPECT_EQ((*Devices("gpu_options.per_process_gpu_memory_fraction = 0.4", kGpus))[1].memory_bytes, 800 * kMiB);
  // The CPU is not a GPU.
  const auto cpu =
      Devices("gpu_options = {per_process_gpu_memory_fraction = 0.4, allow_growth = true}", {Info("CPU", "cpu", 100)});
  EXPECT_EQ((*cpu)[0].memory.limit_bytes, 0u);
  EXPECT_FALSE((*cpu)[0].memory.allow_growth);
  EXPECT_EQ((*Devices("device.\"CPU:0\".memory_limit_mb = 7", {Info("CPU", "cpu", 100)}))[0].memory.limit_bytes,
            7 * kMiB);
}

TEST(LogicalDevices, F118_GrowthByDevice) {
  const auto devices = Devices(
      "gpu_options.allow_growth = true\n[device.\"GPU:2\"]\nallow_growth = false\ninitial_memory_mb = 4", kGpus);
  ASSERT_TRUE(devices.ok());
  EXPECT_TRUE((*devices)[0].memory.allow_growth);
  EXPECT_FALSE((*devices)[2].memory.allow_growth);
  EXPECT_EQ((*devices)[2].memory.initial_bytes, 4 * kMiB);
}

TEST(LogicalDevices, FractionAboveOneNeedsUnifiedMemory) {
  const std::string toml =
      "gpu_options = {per_process_gpu_memory_fraction = 1.5, experimental = {use_unified_memory = true}}";
  EXPECT_NE(Fault(toml, kGpus).find("pci-a () has no unified memory"), std::string::npos);
  const auto unified = Devices(toml, {Info("GPU", "u", 100, WEIR_DEVICE_UNIFIED_MEMORY)});
  ASSERT_TRUE(unified.ok());
  EXPECT_EQ((*unified)[0].memory.limit_bytes, 150 * kMiB);
  const auto capped =
      Devices(toml + "\n[device.GPU]\nmemory_limit_mb = 120", {Info("GPU", "u", 100, WEIR_DEVICE_UNIFIED_MEMORY)});
  ASSERT_TRUE(capped.ok());
  EXPECT_EQ((*capped)[0].memory.limit_bytes, 120 * kMiB);
  EXPECT_NE(Fault("gpu_options.per_process_gpu_memory_fraction = 0.5", {Info("GPU", "g", 0)})
                .find("does not say how much memory it has"),
            std::string::npos);
}

TEST(LogicalDevices, VirtualDevices) {
  const auto devices = Devices("[[gpu_options.experimental.virtual_devices]]\nmemory_limit_mb = [100, 300]\n", kGpus);
  ASSERT_TRUE(devices.ok()) << devices.status().message();
  EXPECT_EQ(HardwareOf(*devices), (std::vector<size_t>{0, 0, 1, 2}));
  EXPECT_TRUE((*devices)[1].shared);
  EXPECT_FALSE((*devices)[2].shared);
  EXPECT_EQ((*devices)[1].memory.limit_bytes, 300 * kMiB);
  EXPECT_EQ((*devices)[1].memory_bytes, 300 * kMiB);
  EXPECT_EQ((*devices)[2].memory.limit_bytes, 0u);
  const auto own = Devices("[device.\"TOY:0\"]\nvirtual_memory_limit_mb = [1, 2, 3]", {Info("TOY", "t", 64)});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->size(), 3u);
  EXPECT_NE(
      Fault("[device.\"TOY:0\"]\nvirtual_memory_limit_mb = [60, 5]", {Info("TOY", "t", 64)}).find("in all, but t"),
      std::string::npos);
  EXPECT_NE(Fault("gpu_options.visible_device_list = \"0\"\n"
                  "[[gpu_options.experimental.virtual_devices]]\n[[gpu_options.experimental.virtual_devices]]\n"
                  "memory_limit_mb = [1]",
                  kGpus)
                .find("doesn't match the number of elements in the virtual_devices list"),
            std::string::npos);
}

TEST(LogicalDevices, F018_DeviceCountCutsTheCpu) {
  const auto devices = Devices("device_count.CPU = 3", {Info("CPU", "cpu", 100)});
  ASSERT_TRUE(devices.ok());
  EXPECT_EQ(HardwareOf(*devices), (std::vector<size_t>{0, 0, 0}));
  for (const LogicalDevice& device : *devices) EXPECT_TRUE(device.shared);
  EXPECT_EQ(Devices("device_count.CPU = 1", {Info("CPU", "a", 1), Info("CPU", "b", 1)})->size(), 1u);
}

TEST(LogicalDevices, DeclaredFigures) {
  const auto devices = Devices(
      "[device.GPU]\npeak_gflops.f32 = 10\nmem_gbps = 5\n[device.\"GPU:1\"]\npeak_gflops.f32 = 20\nlaunch_us = 2\n",
      kGpus);
  ASSERT_TRUE(devices.ok());
  EXPECT_EQ((*devices)[0].cost.peak_flops_per_ns.at(static_cast<int>(DType::kFloat)), 10);
  EXPECT_EQ((*devices)[1].cost.peak_flops_per_ns.at(static_cast<int>(DType::kFloat)), 20);
  EXPECT_EQ((*devices)[1].cost.bandwidth_bytes_per_ns, 5);
  EXPECT_EQ((*devices)[1].cost.launch_ns, 2000);
  EXPECT_EQ((*devices)[0].cost.launch_ns, 0);
}

}  // namespace
}  // namespace weir::config
