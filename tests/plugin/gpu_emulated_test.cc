// Emulated GPUs through the core's wrappers: memory that the host cannot read, queues, kernels of both shapes, capture,
// injected faults, and what hides cards. Numbers are feature rows.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "core/device/error_record.h"
#include "core/device/stream.h"
#include "core/ops/declare_all.h"
#include "core/plugin/catalogue.h"
#include "core/tensor/buffer.h"
#include "plugins/gpu/platform/platform.h"
#include "sdk/abi/plugin.h"
#include "tests/support/gpu_plugins.h"

namespace weir::plugin {
namespace {

using device::Device;
using device::Event;
using device::Stream;
using device::Streams;
using testing::GpuFolder;
using testing::GpuOptions;

weir_buf HostRange(void* data, uint64_t bytes) { return {sizeof(weir_buf), WEIR_SPACE_HOST, 0, 0, bytes, data}; }

template <class T>
T* AddressOf(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.memory().handle + buffer.memory().offset);
}

struct AddFunctor {
  gpu::Ptr<const float> x, y;
  gpu::Ptr<float> z;
  WEIR_GPU_FN void operator()(int64_t i) const { z[i] = x[i] + y[i]; }
};

struct RowSum {
  gpu::Ptr<const float> x;
  gpu::Ptr<float> y;
  int64_t width;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    float* const sums = block.template Shared<float>(0);
    block.ForEachThread([&](int t) {
      sums[t] = 0;
      for (int64_t i = t; i < width; i += block.threads()) sums[t] += x[block.index() * width + i];
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t < half) sums[t] += sums[t + half];
      });
    }
    block.ForEachThread([&](int t) {
      if (t == 0) y[block.index()] = sums[0];
    });
  }
};

class EmulatedGpuTest : public ::testing::Test {
 protected:
  void TearDown() override {
    streams_[0] = streams_[1] = nullptr;
    catalogue_.reset();
  }
  void Load(const GpuOptions& options = {}, const config::Config& config = {}) {
    folder_ = std::make_unique<GpuFolder>();
    ASSERT_FALSE(folder_->path().empty()) << "the plugins are not built";
    catalogue_ = Catalogue::Load(**ops::Catalogue(), folder_->Load(options, config));
    for (int i = 0; i < 2; ++i) device_[i] = Named("GPU:" + std::to_string(i));
  }
  void Open(const GpuOptions& options = {}) {
    ASSERT_NO_FATAL_FAILURE(Load(options));
    for (int i = 0; i < 2; ++i) {
      ASSERT_NE(device_[i], nullptr);
      const Result<Streams*> streams = device_[i]->streams();
      ASSERT_TRUE(streams.ok()) << streams.status().ToString();
      ASSERT_NE(*streams, nullptr);
      streams_[i] = *streams;
    }
  }
  Device* Named(const std::string& name) const {
    return catalogue_->devices().Find("/job:localhost/replica:0/task:0/device:" + name);
  }
  const FileReport* Report() const {
    for (const FileReport& file : catalogue_->files()) {
      if (file.name == "gpu_emulated") return &file;
    }
    return nullptr;
  }
  std::unique_ptr<Stream> NewStream(int device = 0) {
    Result<std::unique_ptr<Stream>> stream = streams_[device]->Acquire();
    EXPECT_TRUE(stream.ok()) << stream.status().ToString();
    return stream.ok() ? std::move(*stream) : nullptr;
  }
  std::shared_ptr<Buffer> Memory(uint64_t bytes, int device = 0) {
    Result<std::shared_ptr<Buffer>> buffer = device_[device]->allocator().Allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    return buffer.ok() ? *buffer : nullptr;
  }
  static gpu::NativeStream Native(const Stream& stream) {
    return reinterpret_cast<gpu::NativeStream>(stream.native());
  }
  std::shared_ptr<Buffer> Upload(Stream& stream, std::vector<float>& values, int device = 0) {
    const std::shared_ptr<Buffer> buffer = Memory(values.size() * sizeof(float), device);
    EXPECT_TRUE(
        stream.Copy(buffer->memory(), HostRange(values.data(), values.size() * 4), values.size() * 4).ok());
    return buffer;
  }
  std::vector<float> Download(Stream& stream, const Buffer& from, size_t n) {
    std::vector<float> values(n, -1);
    EXPECT_TRUE(stream.Copy(HostRange(values.data(), n * 4), from.memory(), n * 4).ok());
    EXPECT_TRUE(stream.Sync().ok());
    return values;
  }

  std::unique_ptr<GpuFolder> folder_;
  std::unique_ptr<Catalogue> catalogue_;
  Device* device_[2] = {};
  Streams* streams_[2] = {};
};

TEST_F(EmulatedGpuTest, CardsAreListedWithoutBeingOpenedAndAreUsedOnlyWhenNamed) {
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "2"}, {"memory_mb", "64"}, {"speed", "1,0.5"}}));
  for (const Device* device : device_) {
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->info().platform, "gpu_emulated/1");
    EXPECT_EQ(device->info().memory_bytes, uint64_t{64} << 20);
    EXPECT_NE(device->info().flags & WEIR_DEVICE_OPT_IN, 0u);
    EXPECT_FALSE(device->host_memory());
    EXPECT_FALSE(device->opened());
  }
  EXPECT_NE(device_[0]->info().class_id, device_[1]->info().class_id) << "cards of unequal speed are not alike";
  EXPECT_EQ(device_[0]->profile()->bandwidth_bytes_per_ns, 2 * device_[1]->profile()->bandwidth_bytes_per_ns);
  EXPECT_EQ(device_[0]->profile()->provenance, uint32_t{WEIR_PROVENANCE_UNKNOWN}) << "guesses until calibrated";
  const Result<weir_link> up = device_[0]->Link(WEIR_SPACE_DEVICE, nullptr, WEIR_SPACE_HOST);
  const Result<weir_link> across = device_[0]->Link(WEIR_SPACE_DEVICE, device_[1], WEIR_SPACE_DEVICE);
  ASSERT_TRUE(up.ok() && across.ok());
  EXPECT_LT(up->bandwidth_pageable_bytes_per_ns, up->bandwidth_pinned_bytes_per_ns);
  EXPECT_GT(across->bandwidth_pinned_bytes_per_ns, up->bandwidth_pinned_bytes_per_ns);
}

TEST_F(EmulatedGpuTest, F117_TheEnvironmentHidesCardsAndRenumbersThem) {
  setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "3"}}));
  EXPECT_EQ(device_[0]->info().uid, "emulated-2");
  EXPECT_EQ(device_[1]->info().uid, "emulated-0");
  EXPECT_EQ(Named("GPU:2"), nullptr);
  setenv("CUDA_VISIBLE_DEVICES", "emulated-1,7,0", 1);
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "3"}}));
  EXPECT_EQ(device_[0]->info().uid, "emulated-1");
  EXPECT_EQ(device_[1], nullptr) << "an unknown entry ends the list";
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  ASSERT_NO_FATAL_FAILURE(Load());
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(device_[0], nullptr);
  ASSERT_NE(Report(), nullptr);
  EXPECT_EQ(Report()->verdict, Verdict::kNoDevices);
  EXPECT_EQ(Report()->reason, "gpu_emulated: CUDA_VISIBLE_DEVICES = '-1' hides all cards");
  setenv("HIP_VISIBLE_DEVICES", "1", 1);
  ASSERT_NO_FATAL_FAILURE(Load());
  unsetenv("HIP_VISIBLE_DEVICES");
  EXPECT_EQ(device_[0]->info().uid, "emulated-1");
  EXPECT_EQ(device_[1], nullptr);
}

TEST_F(EmulatedGpuTest, NoCardsIsASuccessWithAReason) {
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "0"}}));
  ASSERT_NE(Report(), nullptr);
  EXPECT_EQ(Report()->verdict, Verdict::kNoDevices);
  EXPECT_EQ(Report()->reason, "gpu_emulated: the option 'devices' is 0");
}

TEST_F(EmulatedGpuTest, BytesComeBackAsTheyWent) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto stream = NewStream(), other = NewStream(1);
  for (const size_t n : {1u, 3u, 1000u, 70001u}) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 1.0f);
    const auto here = Upload(*stream, values);
    const auto second = Memory(n * 4), there = Memory(n * 4, 1);
    ASSERT_TRUE(stream->Copy(second->memory(), here->memory(), n * 4).ok());
    ASSERT_TRUE(other->CopyFrom(*stream, there->memory(), second->memory(), n * 4).ok());
    EXPECT_EQ(Download(*other, *there, n), values);
    ASSERT_TRUE(stream->Fill(here->memory(), 0, n * 4 - 1).ok());
    const std::vector<float> filled = Download(*stream, *here, n);
    EXPECT_EQ(std::accumulate(filled.begin(), filled.end() - 1, 0.0f), 0);
  }
}

TEST_F(EmulatedGpuTest, KernelsRunOnTheirStreamAlsoInBlocks) {
  ASSERT_NO_FATAL_FAILURE(Open({{"latency_us", "2000"}}));
  const auto stream = NewStream(), second = NewStream();
  std::vector<float> xs(6 * 100), ys(6 * 100, 0.5f);
  std::iota(xs.begin(), xs.end(), 0.0f);
  const auto x = Upload(*stream, xs), y = Upload(*stream, ys), z = Memory(xs.size() * 4), sums = Memory(6 * 4);
  // On a busy machine this thread may be kept from its work for longer than a launch takes, but not every time.
  Event added;
  bool returned_before = false;
  for (int i = 0; i < 100 && !returned_before; ++i) {
    ASSERT_TRUE(gpu::Launch(Native(*stream), 600,
                            AddFunctor{AddressOf<float>(*x), AddressOf<float>(*y), AddressOf<float>(*z)})
                    .ok());
    stream->Launched();
    const Result<Event> recorded = stream->Record();
    ASSERT_TRUE(recorded.ok());
    added = *recorded;
    returned_before = !added.reached();
  }
  EXPECT_TRUE(returned_before) << "a launch returns before its work is done";
  ASSERT_TRUE(second->Wait(added).ok());
  ASSERT_TRUE(gpu::LaunchBlocks(Native(*second), 6, 32, 32 * sizeof(float),
                                RowSum{AddressOf<float>(*z), AddressOf<float>(*sums), 100})
                  .ok());
  second->Launched();
  const std::vector<float> got = Download(*second, *sums, 6);
  for (size_t row = 0; row < 6; ++row) {
    EXPECT_EQ(got[row], static_cast<float>(row) * 10000 + 4950 + 50) << row;
  }
  EXPECT_EQ(gpu::LaunchBlocks(Native(*second), 1, 2000, 0, RowSum{}).code(), WEIR_INVALID_ARGUMENT);
  EXPECT_TRUE(gpu::Launch(Native(*second), 0, AddFunctor{}).ok()) << "nothing is enqueued";
  EXPECT_TRUE(stream->Sync().ok());
}

TEST_F(EmulatedGpuTest, TheHostCannotReadDeviceMemory) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto buffer = Memory(4096);
  EXPECT_EQ(buffer->host(), nullptr);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        folder_.reset();  // the process that dies has its own
        const volatile float value = *AddressOf<const volatile float>(*buffer);
        (void)value;
        _exit(0);
      },
      "");
}

TEST_F(EmulatedGpuTest, MemoryThatWentBackIsOutOfReachOfKernels) {
  ASSERT_NO_FATAL_FAILURE(Open());
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        folder_.reset();
        const auto stream = NewStream();
        float* const address = AddressOf<float>(*Memory(uint64_t{1} << 20));
        device_[0]->Trim();
        (void)gpu::Launch(Native(*stream), 4, AddFunctor{address, address, address});
        stream->Launched();
        (void)stream->Sync();
        _exit(0);
      },
      "");
}

TEST_F(EmulatedGpuTest, AllocationsFailFromTheChosenOneOnAndSayWhatIsFree) {
  ASSERT_NO_FATAL_FAILURE(Open({{"fail_alloc_at", "0"}, {"fault_device", "1"}, {"memory_mb", "16"}}));
  EXPECT_NE(Memory(64), nullptr);
  const Result<std::shared_ptr<Buffer>> none = device_[1]->allocator().Allocate(64);
  EXPECT_EQ(none.status().code(), Code::kResourceExhausted);
  EXPECT_NE(none.status().message().find("on emulated GPU ("), std::string::npos) << none.status().message();
  const Result<std::shared_ptr<Buffer>> large = device_[0]->allocator().Allocate(uint64_t{17} << 20);
  EXPECT_EQ(large.status().code(), Code::kResourceExhausted);
}

TEST_F(EmulatedGpuTest, ALostCardFailsItsOwnStreamsOnly) {
  ASSERT_NO_FATAL_FAILURE(Open({{"lose_at", "2"}, {"fault_device", "0"}}));
  const auto stream = NewStream(), waiting = NewStream(1), healthy = NewStream(1);
  std::vector<float> values(64, 1.0f);
  const auto here = Upload(*stream, values), there = Upload(*healthy, values, 1);
  for (int i = 0; i < 3; ++i) {
    (void)gpu::Launch(Native(*stream), 64,
                      AddFunctor{AddressOf<float>(*here), AddressOf<float>(*here), AddressOf<float>(*here)});
    stream->Launched();
  }
  const Result<Event> event = stream->Record();
  ASSERT_TRUE(event.ok());
  const Status lost = event->Sync();
  EXPECT_EQ(lost.code(), Code::kUnavailable) << lost.ToString();
  EXPECT_NE(lost.message().find("device is lost"), std::string::npos) << lost.message();
  EXPECT_TRUE(device_[0]->reset_needed());
  EXPECT_EQ(device_[0]->health().code(), Code::kUnavailable);
  (void)waiting->Wait(*event);
  EXPECT_FALSE(waiting->Sync().ok()) << "what it waited for was not done";
  EXPECT_TRUE(device_[1]->health().ok()) << device_[1]->health().ToString();
  EXPECT_EQ(Download(*healthy, *there, 64), values);
}

TEST_F(EmulatedGpuTest, ACardThatVanishesAfterItWasListedIsAnErrorOfItsOpening) {
  ASSERT_NO_FATAL_FAILURE(Load({{"vanish", "true"}, {"fault_device", "1"}}));
  EXPECT_TRUE(device_[0]->Open().ok());
  const Status gone = device_[1]->Open().status();
  EXPECT_EQ(gone.code(), Code::kUnavailable) << gone.ToString();
  EXPECT_NE(gone.message().find("card 'emulated-1' cannot be opened: no such device"), std::string::npos)
      << gone.message();
}

TEST_F(EmulatedGpuTest, ACaptureDoesAgainWhatItRecordedAlsoOfStreamsThatJoined) {
  ASSERT_NO_FATAL_FAILURE(Open());
  void* const library = dlopen((folder_->path() + "/gpu_emulated.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto query = reinterpret_cast<weir_plugin_query_fn>(dlsym(library, WEIR_PLUGIN_QUERY_SYMBOL));
  const std::string_view id = WEIR_STREAM_INTERFACE;
  const auto* const api = static_cast<const weir_stream_api*>(
      query(WEIR_ABI_MAJOR, WEIR_ABI_MINOR)->get_interface({id.data(), id.size()}));
  ASSERT_TRUE(WEIR_HAS(api, capture_begin) && WEIR_HAS(api, capture_end) && WEIR_HAS(api, capture_launch) &&
              WEIR_HAS(api, capture_free));
  const auto stream = NewStream(), side = NewStream();
  std::vector<float> values(10, 1.0f);
  const auto x = Upload(*stream, values), y = Upload(*stream, values);
  ASSERT_TRUE(stream->Sync().ok());
  const auto add = [&](Stream& on, const Buffer& to) {
    EXPECT_TRUE(
        gpu::Launch(Native(on), 10, AddFunctor{AddressOf<float>(*x), AddressOf<float>(*y), AddressOf<float>(to)}).ok());
    on.Launched();
  };
  device::ErrorRecord record;
  ASSERT_EQ(api->capture_begin(stream->handle(), record.get()), WEIR_OK);
  add(*stream, *x);  // x = x + y
  ASSERT_TRUE(side->Wait(*stream->Record()).ok());
  add(*side, *y);  // y = x + y
  ASSERT_TRUE(stream->Wait(*side->Record()).ok());
  weir_capture* capture = nullptr;
  ASSERT_EQ(api->capture_end(stream->handle(), &capture, record.get()), WEIR_OK);
  EXPECT_EQ(Download(*stream, *x, 10), values) << "nothing has run yet";
  for (const auto& [first, second] : {std::pair<float, float>{2, 3}, {5, 8}}) {
    ASSERT_EQ(api->capture_launch(capture, stream->handle(), record.get()), WEIR_OK);
    stream->Launched();
    EXPECT_EQ(Download(*stream, *x, 10), std::vector<float>(10, first));
    EXPECT_EQ(Download(*stream, *y, 10), std::vector<float>(10, second));
  }
  api->capture_free(capture);
}

TEST_F(EmulatedGpuTest, MemoryIsTakenAtOnceUnlessItMayGrow) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  ASSERT_NO_FATAL_FAILURE(Load({{"memory_mb", "64"}}));
  EXPECT_NE(Memory(100), nullptr);
  EXPECT_GE(device_[0]->memory_use().reserved, 32 * kMiB);
  EXPECT_EQ(device_[1]->memory_use().reserved, 0u) << "nobody uses it";
  config::Config growing;
  growing.gpu_options.allow_growth = true;
  ASSERT_NO_FATAL_FAILURE(Load({{"memory_mb", "64"}}, growing));
  EXPECT_NE(Memory(100), nullptr);
  EXPECT_LE(device_[0]->memory_use().reserved, kMiB);
  EXPECT_NE(Memory(40 * kMiB), nullptr);
  device_[0]->Trim();
  EXPECT_EQ(device_[0]->memory_use().reserved, 0u) << "empty regions go back";
}

TEST_F(EmulatedGpuTest, FractionsAndCapsHoldAndAreNamedInErrors) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  config::Config half;
  half.gpu_options.per_process_gpu_memory_fraction = 0.5;
  half.device["GPU:1"].memory_limit_mb = 1;
  ASSERT_NO_FATAL_FAILURE(Load({{"memory_mb", "64"}}, half));
  EXPECT_NE(Memory(31 * kMiB), nullptr);
  const Status large = device_[0]->allocator().Allocate(33 * kMiB).status();
  EXPECT_EQ(large.code(), Code::kResourceExhausted);
  EXPECT_NE(large.message().find("per_process_gpu_memory_fraction"), std::string::npos) << large.message();
  const Status capped = device_[1]->allocator().Allocate(2 * kMiB).status();
  EXPECT_EQ(capped.code(), Code::kResourceExhausted);
  EXPECT_NE(capped.message().find("memory_limit_mb"), std::string::npos) << capped.message();
  EXPECT_NE(Memory(kMiB / 2, 1), nullptr) << "what fits still fits";
}

TEST_F(EmulatedGpuTest, VirtualDevicesShareACardAndCannotExceedIt) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  config::Config cut;
  cut.gpu_options.visible_device_list = "1";
  cut.gpu_options.experimental.virtual_devices = {{.memory_limit_mb = {16, 8}}};
  ASSERT_NO_FATAL_FAILURE(Load({{"memory_mb", "32"}}, cut));
  for (const Device* device : device_) {
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->info().uid, "emulated-1");
  }
  EXPECT_NE(Memory(12 * kMiB), nullptr);
  EXPECT_EQ(device_[1]->allocator().Allocate(12 * kMiB).status().code(), Code::kResourceExhausted);
  EXPECT_NE(Memory(4 * kMiB, 1), nullptr);
  const auto fault = [&](const config::Config& config) {
    Load({{"memory_mb", "32"}}, config);
    return catalogue_->config_faults().empty() ? std::string() : catalogue_->config_faults()[0].message();
  };
  cut.gpu_options.experimental.virtual_devices = {{.memory_limit_mb = {30, 8}}};
  EXPECT_NE(fault(cut).find("but emulated-1 (emulated GPU) has 33554432"), std::string::npos) << fault(cut);
  config::Config unknown;
  unknown.gpu_options.visible_device_list = "0,5";
  EXPECT_NE(fault(unknown).find("invalid GPU id '5' but visible device count is 2"), std::string::npos);
  config::Config beyond;
  beyond.gpu_options.per_process_gpu_memory_fraction = 1.5;
  EXPECT_NE(fault(beyond).find("has no unified memory, so the maximum is 1"), std::string::npos) << fault(beyond);
}

TEST(GpuNumbers, StoredNumbersHaveTheSameBitsAsOnTheHost) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    sdk::half h;
    sdk::bfloat16 b;
    h.bits = b.bits = static_cast<uint16_t>(bits);
    const float wide_h = gpu::Wide(h), wide_b = gpu::Wide(b);
    ASSERT_EQ(std::bit_cast<uint32_t>(wide_h), std::bit_cast<uint32_t>(static_cast<float>(h))) << bits;
    ASSERT_EQ(std::bit_cast<uint32_t>(wide_b), std::bit_cast<uint32_t>(static_cast<float>(b))) << bits;
    for (const float nearby : {wide_h, wide_b, wide_h * 1.0004883f, wide_b * 1.0039f}) {
      ASSERT_EQ(gpu::Narrow<sdk::half>(nearby).bits, sdk::half(nearby).bits) << nearby;
      ASSERT_EQ(gpu::Narrow<sdk::bfloat16>(nearby).bits, sdk::bfloat16(nearby).bits) << nearby;
    }
  }
}

}  // namespace
}  // namespace weir::plugin
