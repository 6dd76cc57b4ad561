// The CPU device through its tables, and the SDK's wrapper of devices.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "sdk/abi/cost.h"
#include "sdk/cpp/device.h"
#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk {
namespace {

std::string Text(weir_str s) { return std::string(s.data, s.size); }

struct Seen {
  int count = 0;
  std::string uid, kind, platform;
  uint32_t flags = 0;
  uint64_t memory = 0;
};

void See(void* ctx, const weir_device_record* record) {
  auto& seen = *static_cast<Seen*>(ctx);
  ++seen.count;
  seen.uid = Text(record->uid);
  seen.kind = Text(record->kind);
  seen.platform = Text(record->platform);
  seen.flags = record->flags;
  seen.memory = record->memory_bytes;
}

class CpuTest : public testing::Test {
 protected:
  void SetUp() override {
    api_ = plugin_.Interface<weir_device_api>(WEIR_DEVICE_INTERFACE);
    ASSERT_NE(api_, nullptr);
    ASSERT_EQ(api_->open(Str("cpu-0"), nullptr, 0, &device_, nullptr), WEIR_OK);
  }
  void TearDown() override {
    if (device_ != nullptr) api_->close(device_);
  }

  test::Plugin plugin_{"cpu.so"};
  const weir_device_api* api_ = nullptr;
  weir_device* device_ = nullptr;
};

TEST_F(CpuTest, ReportsOneDevice) {
  Seen seen;
  ASSERT_EQ(api_->enumerate(nullptr, 0, &See, &seen, nullptr), WEIR_OK);
  EXPECT_EQ(seen.count, 1);
  EXPECT_EQ(seen.uid, "cpu-0");
  EXPECT_EQ(seen.kind, "CPU");
  EXPECT_EQ(seen.platform, "cpu");
  EXPECT_EQ(seen.flags, uint32_t{WEIR_DEVICE_SYNC_ONLY | WEIR_DEVICE_UNIFIED_MEMORY});
  EXPECT_GT(seen.memory, uint64_t{1} << 20);
  EXPECT_EQ(api_->health(device_), WEIR_HEALTH_OK);
}

TEST_F(CpuTest, RefusesAnotherUidByName) {
  char text[100];
  weir_error error{sizeof(weir_error), 0, 0, 0, 0, text, sizeof text, 0};
  weir_device* other = nullptr;
  EXPECT_EQ(api_->open(Str("cpu-7"), nullptr, 0, &other, &error), WEIR_NOT_FOUND);
  EXPECT_EQ(std::string(text, error.length), "there is no device 'cpu-7'");
  EXPECT_EQ(other, nullptr);
}

TEST_F(CpuTest, MemoryIsAlignedFilledAndCopied) {
  weir_buf a{}, b{};
  a.struct_size = b.struct_size = sizeof a;
  ASSERT_EQ(api_->alloc(device_, 1000, WEIR_SPACE_DEVICE, &a, nullptr), WEIR_OK);
  ASSERT_EQ(api_->alloc(device_, 1000, WEIR_SPACE_DEVICE, &b, nullptr), WEIR_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.host) % 64, 0u);
  EXPECT_EQ(a.bytes, 1000u);
  ASSERT_EQ(api_->memset(device_, nullptr, &a, 7, 1000, nullptr), WEIR_OK);
  ASSERT_EQ(api_->copy(device_, nullptr, &b, &a, 1000, nullptr), WEIR_OK);
  const auto* bytes = static_cast<const unsigned char*>(b.host);
  EXPECT_EQ(std::vector<unsigned char>(bytes, bytes + 1000), std::vector<unsigned char>(1000, 7));
  EXPECT_EQ(api_->copy(device_, nullptr, &b, &a, 1001, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(api_->memset(device_, nullptr, &a, 7, 1001, nullptr), WEIR_INVALID_ARGUMENT);
  api_->free(device_, &a);
  api_->free(device_, &b);
}

TEST_F(CpuTest, MoreThanTheMachineHasIsRefusedWithTheSize) {
  char text[100];
  weir_error error{sizeof(weir_error), 0, 0, 0, 0, text, sizeof text, 0};
  weir_buf buf{};
  buf.struct_size = sizeof buf;
  EXPECT_EQ(api_->alloc(device_, uint64_t{1} << 60, WEIR_SPACE_DEVICE, &buf, &error), WEIR_RESOURCE_EXHAUSTED);
  EXPECT_NE(std::string(text, error.length).find("1152921504606846976"), std::string::npos);
  uint64_t free_bytes = 0, total = 0, largest = 0;
  ASSERT_EQ(api_->mem_info(device_, WEIR_SPACE_DEVICE, &free_bytes, &total, &largest), WEIR_OK);
  EXPECT_GT(total, 0u);
  EXPECT_LE(free_bytes, total);
}

TEST_F(CpuTest, ProfileHasNoZeroAndNoNegativeRate) {
  const auto* cost = plugin_.Interface<weir_cost_api>(WEIR_COST_INTERFACE);
  ASSERT_NE(cost, nullptr);
  weir_profile profile{};
  profile.struct_size = sizeof profile;
  ASSERT_EQ(cost->profile(device_, &profile, nullptr), WEIR_OK);
  EXPECT_EQ(profile.provenance, uint32_t{WEIR_PROVENANCE_DATASHEET});
  EXPECT_GT(profile.peak_flops_per_ns[WEIR_FLOAT32], profile.peak_flops_per_ns[WEIR_FLOAT64]);
  EXPECT_TRUE(std::isnan(profile.peak_flops_per_ns[WEIR_STRING]));
  for (int i = 0; i < WEIR_CLASS_COUNT; ++i) {
    EXPECT_GT(profile.compute_efficiency[i], 0) << i;
    EXPECT_LE(profile.memory_efficiency[i], 1) << i;
  }
  EXPECT_GT(profile.bandwidth_bytes_per_ns, 0);
}

TEST_F(CpuTest, AnotherInterfaceIsNull) {
  EXPECT_EQ(plugin_.Interface<weir_kernels_api>(WEIR_KERNELS_INTERFACE), nullptr);
  EXPECT_EQ(plugin_.table()->get_interface({nullptr, 0}), nullptr);
}

/// A device whose members throw: no exception may cross the boundary.
struct Thrower {
  static void Enumerate(const Options&, const Emit&) { throw 1; }
  static std::unique_ptr<Thrower> Open(std::string_view uid, const Options& options, const Error& error) {
    if (uid == "refused") {
      (void)error.Fail(WEIR_UNAVAILABLE, "limit ", options.Int("limit", 3), " of ", options.String("mode", "none"));
      return nullptr;
    }
    return std::make_unique<Thrower>();
  }
  void* Alloc(uint64_t, uint32_t) { throw std::bad_alloc(); }
  void Free(void*, uint64_t) { throw 2; }
  int32_t Copy(void*, const void*, uint64_t, const Error& error) { return error.Fail(WEIR_DATA_LOSS, "lost"); }
};

TEST(DeviceWrapper, ExceptionsBecomeCodes) {
  const auto* api = static_cast<const weir_device_api*>(Devices<Thrower>::Interface(WEIR_DEVICE_INTERFACE, ""));
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(Devices<Thrower>::Interface(WEIR_COST_INTERFACE, ""), nullptr);  // it has no profile
  EXPECT_EQ(api->set_options, nullptr);
  EXPECT_EQ(api->enumerate(nullptr, 0, &See, nullptr, nullptr), WEIR_INTERNAL);
  weir_device* device = nullptr;
  ASSERT_EQ(api->open(Str("any"), nullptr, 0, &device, nullptr), WEIR_OK);
  weir_buf buf{};
  EXPECT_EQ(api->alloc(device, 10, WEIR_SPACE_DEVICE, &buf, nullptr), WEIR_RESOURCE_EXHAUSTED);
  api->free(device, &buf);
  buf.bytes = 8;
  EXPECT_EQ(api->copy(device, nullptr, &buf, &buf, 8, nullptr), WEIR_DATA_LOSS);
  api->close(device);
}

TEST(DeviceWrapper, OpenReportsItsOwnErrorAndReadsOptions) {
  const auto* api = static_cast<const weir_device_api*>(Devices<Thrower>::Interface(WEIR_DEVICE_INTERFACE, ""));
  char text[20];
  weir_error error{sizeof(weir_error), 0, 0, 0, 0, text, sizeof text, 0};
  weir_opt options[2] = {{Str("limit"), WEIR_VALUE_INT, 0, {}}, {Str("mode"), WEIR_VALUE_STRING, 0, {}}};
  options[0].value.i = 12345;
  options[1].value.s = Str("a long text that does not fit");
  weir_device* device = nullptr;
  EXPECT_EQ(api->open(Str("refused"), options, 2, &device, &error), WEIR_UNAVAILABLE);
  EXPECT_EQ(std::string(text, error.length), "limit 12345 of a lon");  // cut at the caller's capacity
}

}  // namespace
}  // namespace weir::sdk
