#include "core/tensor/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace weir {
namespace {

TEST(HostAllocatorTest, AlignedAndWritable) {
  for (const uint64_t bytes : {0u, 1u, 63u, 64u, 65u, 1000000u, (4u << 20) + 1, 9u << 20}) {
    const Result<std::shared_ptr<Buffer>> buffer = HostAllocator().Allocate(bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ((*buffer)->bytes(), bytes);
    ASSERT_NE((*buffer)->host(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*buffer)->host()) % kBufferAlignment, 0u);
    std::memset((*buffer)->host(), 7, bytes);
    EXPECT_EQ((*buffer)->memory().host, (*buffer)->host());
    EXPECT_EQ((*buffer)->memory().struct_size, sizeof(weir_buf));
  }
}

TEST(HostAllocatorTest, MoreThanTheMachineHasIsRefused) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (const uint64_t bytes : {uint64_t{1} << 50, uint64_t{1} << 63, kMost - 63, kMost}) {
    const Result<std::shared_ptr<Buffer>> buffer = HostAllocator().Allocate(bytes);
    ASSERT_FALSE(buffer.ok());
    EXPECT_EQ(buffer.status().code(), Code::kResourceExhausted);
    EXPECT_NE(buffer.status().message().find(std::to_string(bytes)), std::string::npos);
    EXPECT_FALSE(FitsHostMemory(bytes));
  }
  EXPECT_TRUE(FitsHostMemory(1 << 20));
}

TEST(HostAllocatorTest, SmallBuffersCrossThreadsThatEnd) {
  std::vector<std::shared_ptr<Buffer>> buffers;
  const auto take = [&buffers] {
    for (int i = 0; i < 200; ++i) {
      buffers.push_back(*HostAllocator().Allocate(4));
      std::memset(buffers.back()->host(), i, 4);
    }
  };
  for (int round = 0; round < 3; ++round) {
    std::thread(take).join();
    for (size_t i = 0; i < buffers.size(); ++i) EXPECT_EQ(buffers[i]->host()[3], std::byte(i)) << i;
    if (round == 1) {
      std::thread([&buffers] { buffers.clear(); }).join();
    } else {
      buffers.clear();
    }
    take();
    for (size_t i = 0; i < buffers.size(); ++i) EXPECT_EQ(buffers[i]->host()[3], std::byte(i)) << i;
    std::thread([&buffers] { buffers.clear(); }).join();
  }
}

TEST(HostAllocatorTest, SmallBuffersOutliveTheThreadsCache) {
  std::thread([] {
    static thread_local std::shared_ptr<Buffer> last;  // destroyed after objects created later
    last = *HostAllocator().Allocate(4);
    (void)HostAllocator().Allocate(4);
  }).join();
}

TEST(WrapHostMemoryTest, KeepsTheOwner) {
  auto owner = std::make_shared<int>(42);
  const std::weak_ptr<int> watch = owner;
  int* data = owner.get();
  std::shared_ptr<Buffer> buffer = WrapHostMemory(data, sizeof(int), std::move(owner));
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(reinterpret_cast<int*>(buffer->host()), data);
  EXPECT_TRUE(buffer->lent());
  EXPECT_FALSE((*HostAllocator().Allocate(4))->lent());
  buffer.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(WrapHostMemoryTest, OwnerMayBeNull) {
  int value = 3;
  EXPECT_EQ(*reinterpret_cast<int*>(WrapHostMemory(&value, sizeof(value), nullptr)->host()), 3);
}

}  // namespace
}  // namespace weir
