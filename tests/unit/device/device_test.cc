#include "core/device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/device/error_record.h"

namespace weir::device {
namespace {

// A device whose memory the CPU cannot address: handles are addresses, `host` stays null.
struct Toy {
  inline static std::atomic<int> opened = 0;
  inline static std::atomic<int> closed = 0;
  inline static bool refuse_open = false;
  inline static std::atomic<bool> asleep = false;  // `open` does not return
  inline static std::vector<std::string> options;

  static int32_t Open(weir_str, const weir_opt* options, uint64_t count, weir_device** device, weir_error* error) {
    Toy::options.clear();
    for (uint64_t i = 0; i < count; ++i) Toy::options.emplace_back(options[i].key.data, options[i].key.size);
    while (asleep) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (refuse_open) {
      const std::string_view text = "the driver is asleep";
      std::memcpy(error->message, text.data(), text.size());
      error->length = text.size();
      return WEIR_UNAVAILABLE;
    }
    ++opened;
    *device = reinterpret_cast<weir_device*>(&opened);
    return WEIR_OK;
  }
  static void Close(weir_device*) { ++closed; }
  static int32_t Alloc(weir_device*, uint64_t bytes, uint32_t, weir_buf* buf, weir_error*) {
    buf->handle = reinterpret_cast<uint64_t>(std::malloc(bytes));
    buf->offset = 0;
    buf->bytes = bytes;
    buf->host = nullptr;
    return WEIR_OK;
  }
  static void Free(weir_device*, const weir_buf* buf) { std::free(reinterpret_cast<void*>(buf->handle)); }
  static char* At(const weir_buf* buf) {
    return buf->host != nullptr ? static_cast<char*>(buf->host) : reinterpret_cast<char*>(buf->handle) + buf->offset;
  }
  static int32_t Copy(weir_device*, weir_stream*, const weir_buf* to, const weir_buf* from, uint64_t bytes,
                      weir_error*) {
    std::memcpy(At(to), At(from), bytes);
    return WEIR_OK;
  }
  static int32_t Profile(weir_device*, weir_profile* profile, weir_error*) {
    profile->bandwidth_bytes_per_ns = 20;
    profile->launch_ns = -5;
    profile->cache_bytes = 0;
    return WEIR_OK;
  }
};

weir_device_api ToyApi() {
  weir_device_api api{};
  api.struct_size = sizeof(api);
  api.open = Toy::Open;
  api.close = Toy::Close;
  api.alloc = Toy::Alloc;
  api.free = Toy::Free;
  api.copy = Toy::Copy;
  return api;
}

DeviceInfo ToyInfo(uint32_t flags = 0) {
  DeviceInfo info;
  info.name = *ParseDeviceName("/job:localhost/replica:0/task:0/device:TOY:0");
  info.uid = "toy-0";
  info.kind = "TOY";
  info.platform = "toy";
  info.plugin = "toy";
  info.flags = flags;
  info.memory_bytes = 1 << 20;
  return info;
}

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Toy::opened = Toy::closed = 0;
    Toy::refuse_open = false;
  }
  weir_device_api api_ = ToyApi();
};

TEST_F(DeviceTest, OpensOnceAndClosesAfterTheLastBuffer) {
  std::shared_ptr<Buffer> buffer;
  {
    Device device(ToyInfo(), &api_, nullptr, {});
    EXPECT_EQ(Toy::opened, 0) << "nothing is opened before it is needed";
    EXPECT_EQ(device.memory_use().reserved, 0u);
    buffer = *device.allocator().Allocate(100);
    ASSERT_TRUE(device.Open().ok());
    EXPECT_EQ(Toy::opened, 1);
    EXPECT_EQ(device.memory_use().in_use, 128u);
    EXPECT_EQ(device.memory_use().reserved, 1u << 20) << "without growth the whole capacity is taken";
  }
  EXPECT_EQ(Toy::closed, 0);
  buffer.reset();
  EXPECT_EQ(Toy::closed, 1);
}

TEST_F(DeviceTest, RoundTripThroughDeviceMemory) {
  Device device(ToyInfo(), &api_, nullptr, {.allow_growth = true});
  const Tensor values = Tensor::Vector<float>({1, 2, 3});
  Result<Tensor> there = device.FromHost(values);
  ASSERT_TRUE(there.ok()) << there.status().ToString();
  EXPECT_FALSE(there->on_host());
  Result<Tensor> back = device.ToHost(*there);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->SameBits(values));
  EXPECT_EQ(device.ToHost(values)->raw(), values.raw()) << "what is on the host stays where it is";
  EXPECT_EQ(device.FromHost(Tensor::String("x")).status().code(), Code::kInvalidArgument);
}

TEST_F(DeviceTest, UnifiedMemoryTakesHostTensorsAsTheyAre) {
  Device device(ToyInfo(WEIR_DEVICE_UNIFIED_MEMORY), &api_, nullptr, {});
  const Tensor values = Tensor::Vector<float>({1, 2, 3});
  EXPECT_EQ(device.FromHost(values)->raw(), values.raw());
  ASSERT_TRUE(device.allocator().Allocate(64).ok());
  EXPECT_LT(device.memory_use().reserved, (1u << 20) + 1);
}

TEST_F(DeviceTest, MustGrowStartsSmallByDefault) {
  DeviceInfo info = ToyInfo(WEIR_DEVICE_MUST_GROW);
  info.memory_bytes = uint64_t{1} << 30;
  Device device(info, &api_, nullptr, {});
  ASSERT_TRUE(device.allocator().Allocate(64).ok());
  EXPECT_EQ(device.memory_use().reserved, 1u << 20);
}

TEST_F(DeviceTest, F311_AskingForNameAndMemoryOpensNothing) {
  Device device(ToyInfo(), &api_, nullptr, {});
  EXPECT_EQ(device.info().memory_bytes, ToyInfo().memory_bytes);
  EXPECT_EQ(device.memory_use().reserved, 0u);
  EXPECT_EQ(device.Trim(), 0u);
  EXPECT_FALSE(device.opened());
  EXPECT_EQ(Toy::opened, 0);
  ASSERT_TRUE(device.allocator().Allocate(64).ok());
  EXPECT_TRUE(device.opened());
  EXPECT_EQ(Toy::opened, 1);
}

TEST_F(DeviceTest, LimitNamesTheDevice) {
  Device device(ToyInfo(), &api_, nullptr, {.limit_bytes = 4096});
  const auto buffer = device.allocator().Allocate(8192);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), Code::kResourceExhausted);
  EXPECT_NE(buffer.status().message().find("/job:localhost/replica:0/task:0/device:TOY:0"), std::string::npos);
}

TEST(ErrorRecord, TextsOfPluginsAreReadUpToTheirLength) {
  const auto told = [](std::string_view text, uint64_t length) {
    return CallPlugin("init",
                      [&](weir_error* error) -> int32_t {
                        std::memcpy(error->message, text.data(), text.size());
                        error->length = length;
                        return WEIR_UNAVAILABLE;
                      })
        .message();
  };
  EXPECT_EQ(told("asleep", 6), "asleep");
  EXPECT_EQ(told("", 0), "init failed without a text");
  EXPECT_EQ(told("asleep", 1 << 30), "init failed with a text of 1073741824 bytes where there is room for 1024");
  EXPECT_EQ(told("red \033[31m\nand\tblue\x7f", 19), "red ?[31m\nand\tblue?");
}

TEST_F(DeviceTest, FailedOpenIsKeptWithItsText) {
  Toy::refuse_open = true;
  Device device(ToyInfo(), &api_, nullptr, {});
  for (int i = 0; i < 2; ++i) {
    const Status status = device.Open().status();
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_NE(status.message().find("the driver is asleep"), std::string::npos) << status.message();
    Toy::refuse_open = false;
  }
  EXPECT_EQ(device.allocator().Allocate(1).status().code(), Code::kUnavailable);
}

TEST_F(DeviceTest, AnOpenThatDoesNotEndIsGivenUp) {
  using std::chrono::milliseconds;
  Toy::asleep = true;
  const auto plugin = std::make_shared<int>(0);
  const std::shared_ptr<SharedHardware> hardware = MakeSharedHardware();
  {
    Device first(ToyInfo(), &api_, nullptr, {}, plugin, {.hardware = hardware, .open_limit = milliseconds(20)});
    Device second(ToyInfo(), &api_, nullptr, {}, plugin, {.hardware = hardware, .open_limit = milliseconds(60000)});
    for (Device* device : {&first, &first, &second}) {
      const Status status = device->Open().status();
      EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
      for (const char* part : {"/device:TOY:0 (toy)", "open of device/1", "within 20 ms", "plugins.open_limit_ms"}) {
        EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
      }
    }
    EXPECT_EQ(first.allocator().Allocate(1).status().code(), Code::kDeadlineExceeded);
    EXPECT_TRUE(first.health().ok());
  }
  EXPECT_GT(plugin.use_count(), 1) << "its code still runs";
  Toy::asleep = false;
  for (int i = 0; i < 10000 && plugin.use_count() > 1; ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(plugin.use_count(), 1);
  EXPECT_EQ(Toy::opened, 1);
  EXPECT_EQ(Toy::closed, 1) << "what was opened too late";
}

TEST_F(DeviceTest, OnlySelfPoolDevicesHearOfLimits) {
  {
    Device device(ToyInfo(), &api_, nullptr, {.limit_bytes = 4096});
    ASSERT_TRUE(device.Open().ok());
  }
  EXPECT_TRUE(Toy::options.empty());
  {
    Device device(ToyInfo(WEIR_DEVICE_SELF_POOL), &api_, nullptr, {.limit_bytes = 4096});
    ASSERT_TRUE(device.Open().ok());
  }
  EXPECT_EQ(Toy::options, (std::vector<std::string>{"mem.limit_bytes", "mem.initial_bytes", "mem.allow_growth"}));
}

TEST_F(DeviceTest, ProfileKeepsOnlyKnowledge) {
  weir_cost_api cost{};
  cost.struct_size = sizeof(cost);
  cost.profile = Toy::Profile;
  Device device(ToyInfo(), &api_, &cost, {});
  const weir_profile* profile = device.profile();
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->bandwidth_bytes_per_ns, 20);
  EXPECT_TRUE(std::isnan(profile->launch_ns)) << "negative";
  EXPECT_TRUE(std::isnan(profile->cache_bytes)) << "zero";
  EXPECT_TRUE(std::isnan(profile->peak_flops_per_ns[1])) << "never said";
  Device without(ToyInfo(), &api_, nullptr, {});
  EXPECT_EQ(without.profile(), nullptr);
}

TEST_F(DeviceTest, DeclaredFiguresReplaceThePlugins) {
  weir_cost_api cost{};
  cost.struct_size = sizeof(cost);
  cost.profile = Toy::Profile;
  const CostFigures figures{.peak_flops_per_ns = {{1, 7}, {99, 1}}, .launch_ns = 250};
  Device device(ToyInfo(), &api_, &cost, {}, nullptr, {.cost = figures});
  const weir_profile* profile = device.profile();
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->bandwidth_bytes_per_ns, 20);
  EXPECT_EQ(profile->launch_ns, 250);
  EXPECT_EQ(profile->peak_flops_per_ns[1], 7);
  Device without(ToyInfo(), &api_, nullptr, {}, nullptr, {.cost = figures});
  ASSERT_NE(without.profile(), nullptr);
  EXPECT_EQ(without.profile()->launch_ns, 250);
  EXPECT_TRUE(std::isnan(without.profile()->bandwidth_bytes_per_ns));
}

TEST_F(DeviceTest, LogicalDevicesOpenTheirHardwareOnce) {
  const std::shared_ptr<SharedHardware> hardware = MakeSharedHardware();
  {
    Device first(ToyInfo(), &api_, nullptr, {.limit_bytes = 4096}, nullptr, {.hardware = hardware});
    Device second(ToyInfo(), &api_, nullptr, {.limit_bytes = 8192}, nullptr, {.hardware = hardware});
    EXPECT_EQ(*first.Open(), *second.Open());
    EXPECT_EQ(Toy::opened, 1);
    EXPECT_FALSE(first.allocator().Allocate(8192).ok());
    EXPECT_TRUE(second.allocator().Allocate(8192).ok());
  }
  EXPECT_EQ(Toy::closed, 1);
}

TEST_F(DeviceTest, RequestsBeyondTheWholeLimitSaySo) {
  Device device(ToyInfo(), &api_, nullptr,
                {.limit_bytes = 4096, .limit_source = "weir.toml:3: device.TOY.memory_limit_mb"});
  const std::string text = device.allocator().Allocate(8192).status().message();
  EXPECT_NE(text.find("more than its whole limit of 4096 bytes, set by weir.toml:3: device.TOY.memory_limit_mb"),
            std::string::npos)
      << text;
}

TEST_F(DeviceTest, PluginsOptionsReachOpen) {
  weir_opt option{};
  option.key = {"level", 5};
  DeviceExtras extras;
  extras.options.push_back(option);
  Device device(ToyInfo(WEIR_DEVICE_SELF_POOL), &api_, nullptr, {}, nullptr, extras);
  ASSERT_TRUE(device.Open().ok());
  EXPECT_EQ(Toy::options,
            (std::vector<std::string>{"level", "mem.limit_bytes", "mem.initial_bytes", "mem.allow_growth"}));
}

TEST_F(DeviceTest, CopyChecksRanges) {
  Device device(ToyInfo(), &api_, nullptr, {});
  auto small = *device.allocator().Allocate(64);
  auto large = *device.allocator().Allocate(128);
  EXPECT_TRUE(device.Copy(small->memory(), large->memory(), 64).ok());
  EXPECT_EQ(device.Copy(small->memory(), large->memory(), 128).code(), Code::kInvalidArgument);
}

TEST_F(DeviceTest, F109_NamesCarryTheWorkerAndShortOnesMeanItsFirst) {
  DeviceSet devices;
  for (const char* name : {"/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0",
                           "/job:worker/replica:0/task:1/device:CPU:1", "/job:worker/replica:0/task:1/device:GPU:0"}) {
    DeviceInfo info = ToyInfo();
    info.name = *ParseDeviceName(name);
    devices.Add(std::make_shared<Device>(info, &api_, nullptr, MemoryOptions{}));
    EXPECT_EQ(devices.all().back()->name(), name);
    EXPECT_EQ(devices.Find(name), devices.all().back().get());
  }
  const std::vector<Device*> gpu = devices.Matching(*ParseDeviceName("/job:worker/replica:0/task:1/device:GPU:0"));
  EXPECT_EQ(gpu, std::vector<Device*>{devices.all()[3].get()});
  EXPECT_EQ(devices.Matching(*ParseDeviceName("/cpu:0")),
            (std::vector<Device*>{devices.all()[0].get(), devices.all()[1].get()}));
  EXPECT_EQ(devices.Matching(*ParseDeviceName("/task:1/cpu:0")), std::vector<Device*>{devices.all()[1].get()});
}

TEST_F(DeviceTest, SetFindsByNameAndBySpec) {
  DeviceSet devices;
  for (int i = 0; i < 2; ++i) {
    DeviceInfo info = ToyInfo();
    info.name.id = i;
    devices.Add(std::make_shared<Device>(info, &api_, nullptr, MemoryOptions{}));
  }
  EXPECT_EQ(devices.Find("/job:localhost/replica:0/task:0/device:TOY:1"), devices.all()[1].get());
  EXPECT_EQ(devices.Find("/device:TOY:1"), nullptr) << "only full names";
  EXPECT_EQ(devices.Matching(*ParseDeviceName("/device:TOY:*")).size(), 2u);
  EXPECT_EQ(devices.Matching(*ParseDeviceName("TOY:0")).size(), 1u);
  EXPECT_TRUE(devices.Matching(*ParseDeviceName("/gpu:0")).empty());
}

}  // namespace
}  // namespace weir::device
