#include "core/kernel/launch.h"
#include "core/base/errors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "core/tensor/buffer.h"
#include "tests/unit/kernel/toy_ops.h"

namespace weir::kernel {
namespace {

/// A device with or without host memory, depending on its flags; handles are addresses.
weir_device_api PlainApi() {
  weir_device_api api{};
  api.struct_size = sizeof(api);
  api.open = [](weir_str, const weir_opt*, uint64_t, weir_device** device, weir_error*) -> int32_t {
    static int opened = 0;
    *device = reinterpret_cast<weir_device*>(&opened);
    return WEIR_OK;
  };
  api.close = [](weir_device*) {};
  api.alloc = [](weir_device*, uint64_t bytes, uint32_t, weir_buf* buf, weir_error*) -> int32_t {
    void* const block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    buf->handle = reinterpret_cast<uint64_t>(block);
    buf->offset = 0;
    buf->bytes = bytes;
    buf->host = block;
    return WEIR_OK;
  };
  api.free = [](weir_device*, const weir_buf* buf) { std::free(buf->host); };
  return api;
}

/// The prepare function of the toy kernel, and every call of its fn.
struct Seen {
  weir_prepared prepared{};
  struct Call {
    uint64_t begin, end;
    std::vector<weir_reg> registers;
  };
  std::vector<Call> calls;
  size_t registers = 0;
  int32_t code = WEIR_OK;
};

class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    device::DeviceInfo info;
    info.name = *device::ParseDeviceName("/job:localhost/replica:0/task:0/device:TOY:0");
    info.platform = "toy";
    info.flags = WEIR_DEVICE_UNIFIED_MEMORY;
    info.memory_bytes = 1 << 20;
    device_ = std::make_unique<device::Device>(info, &api_, nullptr, device::MemoryOptions{});
    record_ = ToyRecord("ToyAdd");
    record_.user = &seen_;
    record_.prepare = [](const void* user, const weir_prep_args*, weir_prepared* prepared, weir_error*) -> int32_t {
      *prepared = static_cast<const Seen*>(user)->prepared;
      prepared->struct_size = sizeof(weir_prepared);
      prepared->fn = [](void* state, const weir_reg* regs, const weir_env* env) -> int32_t {
        Seen& seen = *static_cast<Seen*>(state);
        seen.calls.push_back({env->tile_begin, env->tile_end, {regs, regs + seen.registers}});
        return seen.code;
      };
      prepared->state = const_cast<void*>(user);
      return WEIR_OK;
    };
  }

  /// The toy kernel for two vectors of three floats, in `tiles` tiles.
  std::shared_ptr<const PreparedKernel> Prepared(uint64_t tiles = 1) {
    seen_.prepared.tiles = tiles;
    seen_.registers = seen_.prepared.scratch_bytes > 0 ? 4 : 3;
    const std::vector<OperandSpec> inputs(2, {DType::kFloat, Shape::Of({3})});
    auto made = PreparedKernel::Make(entry_, node_.node(), inputs, outputs_, *device_->Open(), tiles);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return std::move(*made);
  }

  weir_device_api api_ = PlainApi();
  std::unique_ptr<device::Device> device_;
  ToyNode node_{"ToyAdd", {{"T", op::AttrValue(DType::kFloat)}}};
  weir_kernel record_;
  KernelEntry entry_{&record_, "toy", "toy.so", 0};
  Seen seen_;
  std::vector<Tensor> inputs_ = {Tensor::Vector<float>({1, 2, 3}), Tensor::Vector<float>({4, 5, 6})};
  std::vector<OperandSpec> outputs_ = {{DType::kFloat, Shape::Of({3})}};
};

TEST_F(LaunchTest, RegistersAreInputsThenOutputsThenScratch) {
  seen_.prepared.scratch_bytes = 100;
  seen_.prepared.scratch_alignment = 256;
  Launch launch(Prepared(), {.device = device_.get()});
  ASSERT_TRUE(launch.Bind(inputs_, outputs_).ok());
  ASSERT_TRUE(launch.Run().ok());
  ASSERT_EQ(seen_.calls.size(), 1u);
  const std::vector<weir_reg>& regs = seen_.calls[0].registers;
  EXPECT_EQ(regs[0].data, reinterpret_cast<uint64_t>(inputs_[0].raw()));
  EXPECT_EQ(regs[1].data, reinterpret_cast<uint64_t>(inputs_[1].raw()));
  EXPECT_EQ(regs[2].data, reinterpret_cast<uint64_t>(launch.outputs()[0].raw()));
  EXPECT_EQ(regs[2].shape->rank, 1u);
  EXPECT_EQ(regs[2].shape->dims[0], 3);
  EXPECT_EQ(regs[2].dtype, static_cast<uint32_t>(DType::kFloat));
  EXPECT_EQ(regs[3].data % 256, 0u);
  EXPECT_EQ(regs[3].data, reinterpret_cast<uint64_t>(launch.scratch()->host()) + launch.scratch_begin());
  EXPECT_GE(launch.scratch()->bytes(), launch.scratch_begin() + 100);
}

TEST_F(LaunchTest, AliasesShareTheMemoryOfTheirInput) {
  const weir_alias may{0, 0, WEIR_ALIAS_MAY, 0}, must{1, 0, WEIR_ALIAS_MUST, 0};
  seen_.prepared.aliases = &may;
  seen_.prepared.alias_count = 1;
  {
    Launch launch(Prepared(), {.device = device_.get()});
    ASSERT_TRUE(launch.Bind(inputs_, outputs_).ok());
    EXPECT_NE(launch.outputs()[0].raw(), inputs_[0].raw()) << "what MAY be shared is not, unless asked for";
  }
  {
    Launch launch(Prepared(), {.device = device_.get()});
    launch.InPlace(may);
    ASSERT_TRUE(launch.Bind(inputs_, outputs_).ok());
    EXPECT_EQ(launch.outputs()[0].raw(), inputs_[0].raw());
  }
  seen_.prepared.aliases = &must;
  Launch launch(Prepared(), {.device = device_.get()});
  ASSERT_TRUE(launch.Bind(inputs_, outputs_).ok());
  EXPECT_EQ(launch.outputs()[0].raw(), inputs_[1].raw());
}

TEST_F(LaunchTest, AReferenceIsTheFirstInput) {
  outputs_[0].variable = true;
  Launch launch(Prepared(), {.device = device_.get()});
  ASSERT_TRUE(launch.Bind(inputs_, outputs_).ok());
  EXPECT_EQ(launch.outputs()[0].raw(), inputs_[0].raw());
}

TEST_F(LaunchTest, TilesAreCalledAtOnceOrEachWithItsScratch) {
  seen_.prepared.scratch_bytes = 64;
  Launch launch(Prepared(3), {.device = device_.get()});
  ASSERT_TRUE(launch.Bind(inputs_, outputs_).ok());
  ASSERT_TRUE(launch.Run().ok());
  ASSERT_EQ(seen_.calls.size(), 1u);
  EXPECT_EQ(seen_.calls[0].begin, 0u);
  EXPECT_EQ(seen_.calls[0].end, 3u);
  seen_.calls.clear();
  ASSERT_TRUE(launch.Run(Launch::Tiling::kTileByTile).ok());
  ASSERT_EQ(seen_.calls.size(), 3u);
  for (uint64_t tile = 0; tile < 3; ++tile) {
    EXPECT_EQ(seen_.calls[tile].begin, tile);
    EXPECT_EQ(seen_.calls[tile].end, tile + 1);
    EXPECT_EQ(seen_.calls[tile].registers[3].data, seen_.calls[0].registers[3].data + 64 * tile);
  }
}

TEST_F(LaunchTest, AnErrorNamesTheOpAndEndsTheTiles) {
  Launch launch(Prepared(2), {.device = device_.get()});
  ASSERT_TRUE(launch.Bind(inputs_, outputs_).ok());
  seen_.code = WEIR_INVALID_ARGUMENT;
  const Status status = launch.Run(Launch::Tiling::kTileByTile);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("ToyAdd"), std::string::npos) << status.ToString();
  EXPECT_EQ(seen_.calls.size(), 1u);
}

TEST_F(LaunchTest, MemoryComesFromTheAllocatorThatIsGiven) {
  class None : public Allocator {
    Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override { return ResourceExhausted("{} bytes", bytes); }
  } none;
  Launch launch(Prepared(), {.device = device_.get(), .allocator = &none});
  EXPECT_EQ(launch.Bind(inputs_, outputs_).code(), Code::kResourceExhausted);
}

TEST_F(LaunchTest, ADynamicKernelGetsItsDevice) {
  record_.compute = [](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
    weir_tensor z{};
    z.struct_size = sizeof(z);
    const int64_t dims[] = {1};
    const weir_shape shape{1, 0, dims};
    if (HostTable().device(ctx) == nullptr || HostTable().stream(ctx) != nullptr) return WEIR_INTERNAL;
    const int32_t code = HostTable().output(ctx, 0, &shape, &z, error);
    if (code == WEIR_OK) *static_cast<float*>(z.buf.host) = static_cast<float>(HostTable().step_id(ctx));
    return code;
  };
  auto kernel = DynamicKernel::Make(entry_, node_.node(), *device_->Open());
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  const std::vector<DType> types = {DType::kFloat};
  const auto outputs = LaunchDynamic(**kernel, inputs_, types, {.device = device_.get(), .step_id = 7});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_TRUE((*outputs)[0].SameBits(Tensor::Vector<float>({7})));
}

}  // namespace
}  // namespace weir::kernel
