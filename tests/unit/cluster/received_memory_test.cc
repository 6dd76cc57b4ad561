// Memory of tensors that arrive: kept for the next step, within limits.
#include "core/cluster/received_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/cluster/wire_tensors.h"

namespace weir::cluster {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

std::shared_ptr<Buffer> Take(ReceivedMemory& memory, uint64_t bytes) {
  Result<std::shared_ptr<Buffer>> made = memory.Allocate(bytes);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : nullptr;
}

ReceivedMemory::Options Keeping(uint64_t most, std::chrono::milliseconds idle = std::chrono::hours(1)) {
  return {.from_bytes = kMib, .most_kept_bytes = most, .idle = idle};
}

TEST(ReceivedMemory, F249_ABlockServesTheNextTensorOfItsSize) {
  const auto memory = ReceivedMemory::Make(Keeping(64 * kMib));
  std::shared_ptr<Buffer> first = Take(*memory, 8 * kMib);
  const void* const at = first->host();
  std::memset(first->host(), 7, first->bytes());
  EXPECT_EQ(memory->kept_bytes(), 0u);
  first.reset();
  EXPECT_EQ(memory->kept_bytes(), 8 * kMib);
  const std::shared_ptr<Buffer> larger = Take(*memory, 9 * kMib), smaller = Take(*memory, 4 * kMib);
  EXPECT_NE(larger->host(), at);
  EXPECT_NE(smaller->host(), at) << "most of the block would be wasted";
  const std::shared_ptr<Buffer> second = Take(*memory, 8 * kMib - 100);
  EXPECT_EQ(second->host(), at);
  EXPECT_EQ(second->bytes(), 8 * kMib - 100);
  EXPECT_EQ(memory->kept_bytes(), 0u);
}

TEST(ReceivedMemory, SmallBlocksAndThoseBeyondTheLimitAreNotKept) {
  const auto memory = ReceivedMemory::Make(Keeping(16 * kMib));
  for (const uint64_t bytes : {kMib - 1, 17 * kMib}) {
    Take(*memory, bytes).reset();
    EXPECT_EQ(memory->kept_bytes(), 0u) << bytes;
  }
}

TEST(ReceivedMemory, TheOldestBlocksMakeRoom) {
  const auto memory = ReceivedMemory::Make(Keeping(16 * kMib));
  std::vector<std::shared_ptr<Buffer>> blocks;
  for (const uint64_t bytes : {6 * kMib, 7 * kMib, 8 * kMib}) blocks.push_back(Take(*memory, bytes));
  const void* const last = blocks[2]->host();
  for (std::shared_ptr<Buffer>& block : blocks) block.reset();
  EXPECT_EQ(memory->kept_bytes(), 15 * kMib);
  EXPECT_EQ(Take(*memory, 8 * kMib)->host(), last);
}

TEST(ReceivedMemory, IdleBlocksAreFreed) {
  const auto memory = ReceivedMemory::Make(Keeping(64 * kMib, std::chrono::milliseconds(20)));
  for (int round = 0; round < 2; ++round) {
    std::shared_ptr<Buffer> one = Take(*memory, 2 * kMib), other = Take(*memory, 3 * kMib);
    one.reset();
    other.reset();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (memory->kept_bytes() > 0 && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(memory->kept_bytes(), 0u) << round;
  }
}

TEST(ReceivedMemory, BuffersOutliveTheirOwner) {
  std::shared_ptr<Buffer> last;
  {
    const auto memory = ReceivedMemory::Make(Keeping(64 * kMib, std::chrono::milliseconds(1)));
    last = Take(*memory, 2 * kMib);
    Take(*memory, 2 * kMib).reset();
  }
  std::memset(last->host(), 1, last->bytes());
}

TEST(ReceivedMemory, BlocksAreNeverSharedByTwo) {
  const auto memory = ReceivedMemory::Make(Keeping(16 * kMib, std::chrono::milliseconds(1)));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::shared_ptr<Buffer> block = Take(*memory, kMib + static_cast<uint64_t>(t) * 64);
        auto* const bytes = reinterpret_cast<unsigned char*>(block->host());
        std::memset(bytes, t + 1, 4096);
        std::this_thread::yield();
        for (int b = 0; b < 4096; ++b) wrong += bytes[b] != t + 1 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ReceivedMemory, F249_ATensorArrivesWhereTheLastOneWas) {
  const std::vector<TensorHead> heads = {{DType::kFloat, Shape{int64_t{2} << 20}}};
  const uint64_t size = 8 * kMib;
  const std::byte* before = nullptr;
  for (int step = 0; step < 3; ++step) {
    Result<IncomingTensors> incoming =
        IncomingTensors::Make(heads, std::span(&size, 1), std::make_shared<ByteBudget>(64 * kMib));
    ASSERT_TRUE(incoming.ok()) << incoming.status();
    std::byte* const at = incoming->to(0);
    std::memset(at, step, size);
    const Result<std::vector<Tensor>> came = incoming->Take();
    ASSERT_TRUE(came.ok()) << came.status();
    EXPECT_EQ((*came)[0].raw(), at);
    if (step > 0 && WEIR_SANITIZER_KIND == 0) {
      EXPECT_EQ(at, before) << step;
    }
    before = at;
  }
}

}  // namespace
}  // namespace weir::cluster
