#include "core/device/arena.h"
#include "core/base/errors.h"
#include "core/tensor/buffer.h"
#include "sdk/abi/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace weir::device {
namespace {

// Slabs from the heap, counted; refuses allocations beyond `capacity`, and shifts addresses by `skew`. Thread-safe.
class HeapSource : public SlabSource {
 public:
  explicit HeapSource(uint64_t capacity = ~uint64_t{0}, uint64_t skew = 0) : capacity_(capacity), skew_(skew) {}
  ~HeapSource() override { EXPECT_EQ(held_, 0u) << "slabs were not given back"; }

  Result<weir_buf> AllocateSlab(uint64_t bytes) override {
    if (on_allocate) on_allocate();
    const std::lock_guard<std::mutex> lock(mutex_);
    sizes.push_back(bytes);
    if (bytes > capacity_ - held_) return ResourceExhausted("the card is full");
    weir_buf slab{};
    auto* block = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + skew_ + 63) / 64 * 64));
    slab.handle = reinterpret_cast<uint64_t>(block);
    slab.bytes = bytes;
    slab.host = block + skew_;
    held_ += bytes;
    return slab;
  }
  void FreeSlab(const weir_buf& slab) override {
    if (on_free) on_free();
    const std::lock_guard<std::mutex> lock(mutex_);
    held_ -= slab.bytes;
    std::free(reinterpret_cast<void*>(slab.handle));
  }
  uint64_t held() const { return held_; }

  std::vector<uint64_t> sizes;
  std::function<void()> on_allocate, on_free;  // called first, without a lock

 private:
  std::mutex mutex_;
  uint64_t capacity_;
  uint64_t skew_;
  uint64_t held_ = 0;
};

std::shared_ptr<Arena> MakeArena(const std::shared_ptr<HeapSource>& source, ArenaOptions options) {
  options.device = "/device:TOY:0";
  return Arena::Make(source, options);
}

TEST(Arena, ChunksAreAlignedDisjointAndReused) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {});
  auto a = *arena->Allocate(1);
  auto b = *arena->Allocate(65);
  auto zero = *arena->Allocate(0);
  for (const auto& buffer : {a, b, zero}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->host()) % 64, 0u);
    EXPECT_GE(buffer->bytes(), 1u);
  }
  EXPECT_GE(b->host(), a->host() + 64);
  EXPECT_EQ(arena->use().in_use, 64u + 128u + 64u);
  const std::byte* was = b->host();
  b.reset();
  EXPECT_EQ((*arena->Allocate(128))->host(), was);
  EXPECT_EQ(source->sizes.size(), 1u);
}

// Slabs behind handles: memory without addresses, of which the source knows how much there is.
class HandleSource : public SlabSource {
 public:
  Result<weir_buf> AllocateSlab(uint64_t bytes) override {
    sizes.push_back(bytes);
    return weir_buf{sizeof(weir_buf), WEIR_SPACE_DEVICE, sizes.size(), 0, bytes, nullptr};
  }
  void FreeSlab(const weir_buf&) override {}
  uint64_t LargestSlab() override { return largest; }

  std::vector<uint64_t> sizes;
  uint64_t largest = 0;
};

TEST(Arena, OffsetsKeepTheDeclaredAlignment) {
  auto source = std::make_shared<HandleSource>();
  auto arena = Arena::Make(source, {.device = "/device:TOY:0", .limit_bytes = 1u << 20, .alignment = 512});
  std::vector<std::shared_ptr<Buffer>> kept;
  for (const uint64_t bytes : {1u, 513u, 64u, 0u, 4096u, 700u}) {
    const auto buffer = arena->Allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status().ToString();
    EXPECT_EQ((*buffer)->memory().offset % 512, 0u) << bytes;
    EXPECT_GE((*buffer)->bytes(), bytes);
    if (kept.size() == 2) kept.erase(kept.begin());  // holes, so that later ones lie between others
    kept.push_back(*buffer);
  }
  auto skewed = MakeArena(std::make_shared<HeapSource>(~uint64_t{0}, 64), {.alignment = 256});
  const auto host = skewed->Allocate(10);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*host)->host()) % 256, 0u) << "a plugin that does not align as it declares";
}

TEST(Arena, NoSlabExceedsTheLargestAllocation) {
  auto source = std::make_shared<HandleSource>();
  const auto arena = Arena::Make(
      source, {.device = "/device:TOY:0", .limit_bytes = 1u << 20, .grow = false, .largest_bytes = 64u << 10});
  std::vector<std::shared_ptr<Buffer>> kept;
  for (int i = 0; i < 16; ++i) {
    const auto buffer = arena->Allocate(60u << 10);
    ASSERT_TRUE(buffer.ok()) << i << ": " << buffer.status().ToString();
    kept.push_back(*buffer);
  }
  EXPECT_EQ(source->sizes, std::vector<uint64_t>(16, 64u << 10));
  const auto above = arena->Allocate((64u << 10) + 1);
  EXPECT_EQ(above.status().code(), Code::kResourceExhausted);
  EXPECT_EQ(above.status().message(),
            "OOM when allocating 65537 bytes on /device:TOY:0: more than 65536 bytes, its largest single allocation");
  EXPECT_FALSE(arena->Allocate(60u << 10).ok()) << "all is in use";
}

TEST(Arena, AFirstSlabThatTakesAllTakesWhatThereIs) {
  auto source = std::make_shared<HandleSource>();
  source->largest = 300000;
  const auto arena = Arena::Make(source, {.device = "/device:TOY:0", .limit_bytes = 1u << 20, .grow = false});
  ASSERT_TRUE(arena->Allocate(1000).ok());
  EXPECT_EQ(source->sizes, std::vector<uint64_t>{300000 / 64 * 64});
}

TEST(Arena, TakesTheBestFit) {
  auto arena = MakeArena(std::make_shared<HeapSource>(), {});
  std::vector<std::shared_ptr<Buffer>> holes;
  std::vector<std::shared_ptr<Buffer>> walls;
  for (const uint64_t bytes : {8192u, 1024u, 4096u, 640u}) {
    holes.push_back(*arena->Allocate(bytes));
    walls.push_back(*arena->Allocate(64));
  }
  const std::byte* middle = holes[1]->host();
  const std::byte* large = holes[0]->host();
  holes.clear();
  EXPECT_EQ((*arena->Allocate(700))->host(), middle);
  EXPECT_EQ((*arena->Allocate(5000))->host(), large);
}

TEST(Arena, CoalescesNeighboursInAnyOrder) {
  auto arena = MakeArena(std::make_shared<HeapSource>(), {.initial_bytes = 64 * 1024});
  for (const std::array<int, 3>& order : {std::array{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    std::array<std::shared_ptr<Buffer>, 3> parts;
    for (auto& part : parts) part = *arena->Allocate(16 * 1024);
    for (const int i : order) parts[static_cast<size_t>(i)].reset();
    EXPECT_TRUE(arena->Allocate(64 * 1024).ok());
    EXPECT_EQ(arena->use().reserved, 64u * 1024);
  }
  EXPECT_EQ(arena->use().in_use, 0u);
}

TEST(Arena, F118_GrowthStartsSmallAndDoubles) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.limit_bytes = 1 << 20, .initial_bytes = 4096});
  std::vector<std::shared_ptr<Buffer>> held;
  for (int i = 0; i < 16; ++i) held.push_back(*arena->Allocate(4096));
  EXPECT_EQ(source->sizes, (std::vector<uint64_t>{4096, 8192, 16384, 32768, 65536}));
  held.clear();
  EXPECT_EQ(arena->use().reserved, 126976u) << "an arena does not shrink";
}

TEST(Arena, F310_GrowthFollowsTheNeedAndEmptySlabsGoBack) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.initial_bytes = 4096});
  std::vector<std::shared_ptr<Buffer>> held;
  uint64_t in_use = 0;
  for (int i = 0; i < 200; ++i) {
    held.push_back(*arena->Allocate(4096));
    in_use += 4096;
    const MemoryUse use = arena->use();
    ASSERT_EQ(use.in_use, in_use);
    ASSERT_EQ(use.reserved, source->held());
    ASSERT_LE(use.reserved, 2 * in_use) << "a step of growth never takes more than there is already";
    ASSERT_EQ(use.free_bytes, use.reserved - use.in_use);
  }
  held.resize(100);  // the last slabs are empty now
  const uint64_t before = source->held();
  const uint64_t freed = arena->Trim();
  EXPECT_GT(freed, 0u);
  EXPECT_EQ(source->held(), before - freed);
  EXPECT_EQ(arena->use().reserved, source->held());
  EXPECT_EQ(arena->Trim(), 0u);
  held.clear();
  arena->Trim();
  EXPECT_EQ(source->held(), 0u);
  EXPECT_TRUE(arena->Allocate(4096).ok()) << "it grows again";
}

TEST(Arena, F310_FragmentationIsTold) {
  auto arena = MakeArena(std::make_shared<HeapSource>(), {.limit_bytes = 64 * 1024, .grow = false});
  EXPECT_EQ(arena->use().fragmentation(), 0);
  std::vector<std::shared_ptr<Buffer>> held;
  for (int i = 0; i < 16; ++i) held.push_back(*arena->Allocate(4096));
  for (size_t i = 0; i < held.size(); i += 2) held[i].reset();
  const MemoryUse use = arena->use();
  EXPECT_EQ(use.free_bytes, 32u * 1024);
  EXPECT_EQ(use.free_pieces, 8u);
  EXPECT_EQ(use.largest_free, 4096u);
  EXPECT_EQ(use.fragmentation(), 0.875);
  const std::string text = arena->Allocate(8192).status().message();
  EXPECT_NE(text.find("32768 bytes are in use of a limit of 65536, 65536 are reserved, 32768 of them free in 8 pieces "
                      "of at most 4096, fragmentation 88 %"),
            std::string::npos)
      << text;
}

TEST(Arena, GrowthAndCapCompose) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.limit_bytes = 10240, .initial_bytes = 4096});
  auto first = *arena->Allocate(4096);
  auto second = *arena->Allocate(4096);
  EXPECT_EQ(arena->use().reserved, 10240u) << "the second slab is cut to what the cap leaves";
  const Result<std::shared_ptr<Buffer>> third = arena->Allocate(4096);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.status().code(), Code::kResourceExhausted);
  const std::string& text = third.status().message();
  EXPECT_NE(text.find("4096 bytes on /device:TOY:0"), std::string::npos) << text;
  EXPECT_NE(text.find("8192 bytes are in use of a limit of 10240"), std::string::npos) << text;
  EXPECT_TRUE(arena->Allocate(2048).ok());
}

TEST(Arena, WithoutGrowthTheFirstSlabTakesTheLimit) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.limit_bytes = 1 << 20, .grow = false});
  EXPECT_EQ(source->held(), 0u) << "nothing is taken before the first buffer";
  ASSERT_TRUE(arena->Allocate(64).ok());
  EXPECT_EQ(arena->use().reserved, 1u << 20);
  EXPECT_FALSE(arena->Allocate((1 << 20) + 64).ok());
}

TEST(Arena, ReservesAtMostTheDevicesMemory) {
  auto source = std::make_shared<HeapSource>(300 * 1024);
  auto arena = MakeArena(source, {.limit_bytes = 1 << 20, .grow = false});
  ASSERT_TRUE(arena->Allocate(1000).ok());
  EXPECT_EQ(arena->use().reserved, 256u * 1024);
}

TEST(Arena, FreesEmptySlabsBeforeGivingUp) {
  auto arena = MakeArena(std::make_shared<HeapSource>(), {.limit_bytes = 12288, .initial_bytes = 4096});
  auto first = *arena->Allocate(4096);
  auto second = *arena->Allocate(8192);
  first.reset();
  second.reset();
  EXPECT_TRUE(arena->Allocate(12288).ok()) << "two empty slabs give way to one that is large enough";
  EXPECT_EQ(arena->use().peak, 12288u);
}

TEST(Arena, RefusesAbsurdSizes) {
  auto arena = MakeArena(std::make_shared<HeapSource>(1 << 20), {});
  for (const uint64_t bytes : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 50}) {
    const auto buffer = arena->Allocate(bytes);
    ASSERT_FALSE(buffer.ok());
    EXPECT_EQ(buffer.status().code(), Code::kResourceExhausted);
  }
  EXPECT_TRUE(arena->Allocate(64).ok()) << "and works on";
}

TEST(Arena, AlignsSlabsOfPluginsThatDoNot) {
  auto source = std::make_shared<HeapSource>(~uint64_t{0}, 16);
  auto arena = MakeArena(source, {.initial_bytes = 4096});
  auto buffer = *arena->Allocate(4096);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->host()) % 64, 0u);
  EXPECT_EQ(buffer->memory().offset, 48u) << "handle and offset say the same as the address";
  std::memset(buffer->host(), 1, buffer->bytes());
}

TEST(Arena, UnpooledBuffersAreSlabsOfTheirOwn) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.limit_bytes = 256, .pooled = false});
  auto a = *arena->Allocate(64);
  auto b = *arena->Allocate(128);
  EXPECT_EQ(a->memory().offset, 0u);
  EXPECT_EQ(b->memory().offset, 0u);
  EXPECT_FALSE(arena->Allocate(128).ok());
  a.reset();
  b.reset();
  EXPECT_EQ(source->held(), 0u);
  EXPECT_EQ(arena->use().reserved, 0u);
}

TEST(Arena, BuffersOutliveTheHandle) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {});
  auto buffer = *arena->Allocate(100);
  arena.reset();
  std::memset(buffer->host(), 7, 100);
  EXPECT_GT(source->held(), 0u);
  buffer.reset();
  EXPECT_EQ(source->held(), 0u);
}

// Random sizes and lifetimes: live buffers never overlap, contents stay, and all memory returns to whole slabs.
TEST(Arena, SurvivesRandomUse) {
  auto arena = MakeArena(std::make_shared<HeapSource>(), {.limit_bytes = 64 << 20, .initial_bytes = 1 << 16});
  std::mt19937_64 random(7);
  struct Live {
    std::shared_ptr<Buffer> buffer;
    uint8_t mark;
  };
  std::vector<Live> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() > 200 || (!live.empty() && random() % 2 == 0)) {
      const size_t i = random() % live.size();
      const Live& l = live[i];
      ASSERT_EQ(static_cast<uint8_t>(l.buffer->host()[0]), l.mark);
      ASSERT_EQ(static_cast<uint8_t>(l.buffer->host()[l.buffer->bytes() - 1]), l.mark);
      live[i] = std::move(live.back());
      live.pop_back();
    } else {
      const uint64_t bytes = uint64_t{1} << (random() % 17);
      auto buffer = arena->Allocate(bytes + random() % bytes);
      ASSERT_TRUE(buffer.ok());
      const auto mark = static_cast<uint8_t>(random());
      std::memset((*buffer)->host(), mark, (*buffer)->bytes());
      live.push_back({*buffer, mark});
    }
  }
  live.clear();
  EXPECT_EQ(arena->use().in_use, 0u);
  EXPECT_TRUE(arena->Allocate(arena->use().reserved / 2).ok());
}

// The core holds no lock while it calls a plugin, so other threads continue while a slab is allocated or freed.
TEST(Arena, OthersAllocateAndFreeWhileThePluginAllocates) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.initial_bytes = 4096});
  auto held = *arena->Allocate(1024);
  std::promise<void> entered, leave;
  source->on_allocate = [&] {
    entered.set_value();
    leave.get_future().wait();
  };
  std::thread grower([&] { EXPECT_TRUE(arena->Allocate(1 << 20).ok()); });
  entered.get_future().wait();
  held.reset();
  EXPECT_EQ(arena->use().in_use, 0u);
  EXPECT_TRUE(arena->Allocate(4096).ok()) << "served from the slab that is there";
  leave.set_value();
  grower.join();
  EXPECT_EQ(source->sizes, (std::vector<uint64_t>{4096, 1 << 20}));
}

TEST(Arena, ThePluginMayUseTheArenaWhileItAllocatesAndFrees) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.limit_bytes = 16384, .initial_bytes = 4096});
  int calls = 0;
  source->on_allocate = [&] {
    if (++calls > 1) return;
    EXPECT_TRUE(arena->Allocate(64).ok());
  };
  ASSERT_TRUE(arena->Allocate(4096).ok());
  EXPECT_EQ(calls, 2);
  source->on_allocate = nullptr;
  int freed = 0;
  source->on_free = [&] {
    ++freed;
    EXPECT_EQ(arena->use().in_use, 0u);
  };
  EXPECT_TRUE(arena->Allocate(16384).ok()) << "empty slabs give way";
  EXPECT_EQ(freed, 2);
}

TEST(Arena, AThreadThatFindsNoRoomWaitsForTheSlabThatIsBeingMade) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.limit_bytes = 1 << 20, .grow = false});
  std::promise<void> entered, leave;
  source->on_allocate = [&] {
    entered.set_value();
    leave.get_future().wait();
  };
  std::thread first([&] { EXPECT_TRUE(arena->Allocate(64).ok()); });
  entered.get_future().wait();
  std::promise<void> asking;
  std::thread second([&] {
    asking.set_value();
    EXPECT_TRUE(arena->Allocate(64).ok()) << "the first thread's slab has room for both";
  });
  asking.get_future().wait();
  leave.set_value();
  first.join();
  second.join();
  EXPECT_EQ(source->sizes, (std::vector<uint64_t>{1 << 20}));
}

TEST(Arena, ThreadsStayWithinTheLimitTogether) {
  auto source = std::make_shared<HeapSource>();
  auto arena = MakeArena(source, {.limit_bytes = 1 << 16, .pooled = false});
  std::atomic<uint64_t> most{0};
  source->on_allocate = [&] {
    const uint64_t reserved = arena->use().reserved;
    for (uint64_t seen = most; reserved > seen && !most.compare_exchange_weak(seen, reserved);) {
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena] {
      for (int i = 0; i < 500; ++i) EXPECT_TRUE(arena->Allocate(1 << 14).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, uint64_t{1} << 16);
  EXPECT_EQ(arena->use().reserved, 0u);
}

TEST(Arena, ThreadsShareIt) {
  auto arena = MakeArena(std::make_shared<HeapSource>(), {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      for (int i = 0; i < 2000; ++i) {
        auto buffer = arena->Allocate(static_cast<uint64_t>(64 * (1 + (i * 7 + t) % 40)));
        ASSERT_TRUE(buffer.ok());
        (*buffer)->host()[0] = std::byte{1};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena->use().in_use, 0u);
}

}  // namespace
}  // namespace weir::device
