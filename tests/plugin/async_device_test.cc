// The asynchronous example device through the core's wrappers: order, events, memory, faults, and detected misuse.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/base/errors.h"
#include "core/device/error_record.h"
#include "core/device/stream.h"
#include "core/ops/declare_all.h"
#include "core/plugin/catalogue.h"
#include "core/tensor/buffer.h"
#include "tests/support/async_plugins.h"

namespace weir::plugin {
namespace {

using device::Device;
using device::Event;
using device::Stream;
using device::Streams;
using testing::AsyncPlugins;

weir_buf HostRange(void* data, uint64_t bytes) { return {sizeof(weir_buf), WEIR_SPACE_HOST, 0, 0, bytes, data}; }

weir_buf Part(const Buffer& buffer, uint64_t begin, uint64_t bytes) {
  weir_buf part = buffer.memory();
  part.offset += begin;
  part.bytes = bytes;
  return part;
}

class AsyncDeviceTest : public testing::AsyncTest {
 protected:
  void SetUp() override {
    LoadOptions options;
    options.folders = {plugins_.folder()};
    catalogue_ = Catalogue::Load(**ops::Catalogue(), options);
    testing::AsyncTest::SetUp();
    for (int i = 0; i < 2; ++i) {
      device_[i] = catalogue_->devices().Find("/job:localhost/replica:0/task:0/device:ASYNC:" + std::to_string(i));
      ASSERT_NE(device_[i], nullptr);
      const Result<Streams*> streams = device_[i]->streams();
      ASSERT_TRUE(streams.ok()) << streams.status().ToString();
      ASSERT_NE(*streams, nullptr);
      streams_[i] = *streams;
    }
  }
  std::unique_ptr<Stream> Open(int device = 0) {
    Result<std::unique_ptr<Stream>> stream = streams_[device]->Acquire();
    EXPECT_TRUE(stream.ok()) << stream.status().ToString();
    return stream.ok() ? std::move(*stream) : nullptr;
  }
  std::shared_ptr<Buffer> Memory(uint64_t bytes, int device = 0) {
    Result<std::shared_ptr<Buffer>> buffer = device_[device]->allocator().Allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    return buffer.ok() ? *buffer : nullptr;
  }

  // Work of a test: calls `run` on the stream's thread with the range's address.
  struct Work {
    std::function<void(void*)> run;
    int32_t code = WEIR_OK;
  };
  Status Launch(
      Stream& stream, const char* name, const weir_buf& range, uint32_t access,
      std::function<void(void*)> run = [](void*) {}, int32_t code = WEIR_OK) {
    const auto* queue = reinterpret_cast<const weir_async_queue*>(stream.native());
    const weir_async_range ranges[] = {{range.handle, range.offset, range.bytes, access, 0}};
    weir_async_launch launch{};
    launch.struct_size = sizeof launch;
    launch.range_count = 1;
    launch.ranges = ranges;
    launch.name = {name, std::strlen(name)};
    launch.run = [](void* arg, void* const* addresses, weir_error* error) -> int32_t {
      auto& work = *static_cast<Work*>(arg);
      work.run(addresses[0]);
      if (work.code != WEIR_OK && error->message != nullptr) {
        error->length = std::min<uint64_t>(8, error->capacity);
        std::memcpy(error->message, "no luck!", error->length);
      }
      return work.code;
    };
    launch.drop = [](void* arg) { delete static_cast<Work*>(arg); };
    launch.arg = new Work{std::move(run), code};
    device::ErrorRecord record;
    const Status status = record.ToStatus(queue->launch(queue->stream, &launch, record.get()), name);
    stream.Launched();
    if (!status.ok()) stream.Refused(status, record.get()->flags);
    return status;
  }

  std::unique_ptr<Catalogue> catalogue_;
  Device* device_[2] = {};
  Streams* streams_[2] = {};
};

// Blocks a stream's thread until the test opens the gate.
class Gate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST_F(AsyncDeviceTest, TwoDevicesWithMemoryThatTheHostCannotName) {
  EXPECT_NE(streams_[0], streams_[1]);
  const auto buffer = Memory(64);
  EXPECT_EQ(buffer->host(), nullptr);
  EXPECT_EQ(buffer->memory().handle >> 48, 0xA5A5u) << "no address of this machine";
}

TEST_F(AsyncDeviceTest, CopiesRunInOrderWhileTheHostGoesOn) {
  const auto stream = Open();
  const auto buffer = Memory(1024);
  std::vector<uint8_t> up(1024), down(1024);
  std::iota(up.begin(), up.end(), uint8_t{1});
  Gate gate;
  ASSERT_TRUE(Launch(*stream, "gate", Part(*buffer, 0, 1024), WEIR_ASYNC_WRITE, [&](void*) { gate.Pass(); }).ok());
  ASSERT_TRUE(stream->Copy(Part(*buffer, 0, 1024), HostRange(up.data(), 1024), 1024).ok());
  ASSERT_TRUE(stream->Copy(HostRange(down.data(), 1024), Part(*buffer, 0, 1024), 1024).ok());
  const Result<Event> event = stream->Record();
  ASSERT_TRUE(event.ok());
  EXPECT_FALSE(event->reached()) << "the stream stands at the gate";
  std::atomic<int> called{0};
  ASSERT_TRUE(event->Then([&](const Status& status) { called += status.ok() ? 1 : 100; }).ok());
  EXPECT_EQ(called, 0);
  gate.Open();
  ASSERT_TRUE(stream->Sync().ok());
  EXPECT_TRUE(event->reached());
  while (called == 0) std::this_thread::yield();  // the callback may run on another thread, after Sync has returned
  EXPECT_EQ(called, 1);
  EXPECT_EQ(down, up);
  streams_[0]->Release(Open());
}

TEST_F(AsyncDeviceTest, AnEventOrdersTwoStreams) {
  const auto a = Open(), b = Open();
  const auto buffer = Memory(64);
  Gate gate;
  int seen = 0;
  ASSERT_TRUE(Launch(*a, "write", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE, [&](void* at) {
                gate.Pass();
                *static_cast<int*>(at) = 42;
              }).ok());
  ASSERT_TRUE(b->Wait(*a->Record()).ok());
  ASSERT_TRUE(
      Launch(*b, "read", Part(*buffer, 0, 64), WEIR_ASYNC_READ, [&](void* at) { seen = *static_cast<int*>(at); }).ok());
  gate.Open();
  ASSERT_TRUE(b->Sync().ok());
  EXPECT_EQ(seen, 42);
}

TEST_F(AsyncDeviceTest, WaitsThatAreImpliedCostNothing) {
  const auto a = Open(), b = Open(), c = Open();
  const auto buffer = Memory(64);
  ASSERT_TRUE(Launch(*a, "write", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE).ok());
  const Event first = *a->Record();
  ASSERT_TRUE(b->Wait(first).ok());
  EXPECT_EQ(plugins_.Counts().waits, 1u);
  ASSERT_TRUE(b->Wait(first).ok());
  ASSERT_TRUE(a->Wait(first).ok());
  EXPECT_EQ(plugins_.Counts().waits, 1u) << "known already, and the stream's own";
  ASSERT_TRUE(c->Wait(*b->Record()).ok());
  ASSERT_TRUE(c->Wait(first).ok());
  EXPECT_EQ(plugins_.Counts().waits, 2u) << "b had waited for it";
  ASSERT_TRUE(Launch(*c, "read", Part(*buffer, 0, 64), WEIR_ASYNC_READ).ok());
  ASSERT_TRUE(Launch(*a, "more", Part(*buffer, 0, 0), WEIR_ASYNC_READ).ok());
  ASSERT_TRUE(b->Wait(*a->Record()).ok());
  EXPECT_EQ(plugins_.Counts().waits, 3u) << "a later point is another one";
  for (Stream* stream : {a.get(), b.get(), c.get()}) EXPECT_TRUE(stream->Sync().ok());
}

TEST_F(AsyncDeviceTest, AReadThatNothingOrdersIsARaceNamingBoth) {
  const auto a = Open(), b = Open();
  const auto buffer = Memory(256);
  ASSERT_TRUE(Launch(*a, "producer", Part(*buffer, 0, 128), WEIR_ASYNC_WRITE).ok());
  ASSERT_TRUE(Launch(*b, "elsewhere", Part(*buffer, 128, 128), WEIR_ASYNC_READ).ok());
  const Status race = Launch(*b, "consumer", Part(*buffer, 64, 128), WEIR_ASYNC_READ);
  EXPECT_EQ(race.code(), Code::kInternal);
  EXPECT_NE(race.message().find("'consumer' reads"), std::string::npos) << race.message();
  EXPECT_NE(race.message().find("'producer' wrote"), std::string::npos) << race.message();
  EXPECT_TRUE(b->failed());
  EXPECT_EQ(b->Sync().code(), Code::kInternal);
  EXPECT_EQ(plugins_.Counts().races, 1u);
  EXPECT_TRUE(a->Sync().ok()) << "the other stream goes on";
  plugins_.Reset();
}

TEST_F(AsyncDeviceTest, AWriteUnderAReaderIsARace) {
  const auto a = Open(), b = Open();
  const auto buffer = Memory(64);
  ASSERT_TRUE(Launch(*a, "reader", Part(*buffer, 0, 64), WEIR_ASYNC_READ).ok());
  const Status race = Launch(*b, "writer", Part(*buffer, 32, 8), WEIR_ASYNC_WRITE);
  EXPECT_NE(race.message().find("'reader' reads"), std::string::npos) << race.message();
  EXPECT_EQ(plugins_.Counts().races, 1u);
  ASSERT_TRUE(a->Sync().ok());
  plugins_.Reset();
}

TEST_F(AsyncDeviceTest, WorkThatTheHostWaitedForIsOrdered) {
  const auto a = Open(), b = Open();
  const auto buffer = Memory(64);
  ASSERT_TRUE(Launch(*a, "write", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE).ok());
  ASSERT_TRUE(a->Sync().ok());
  EXPECT_TRUE(Launch(*b, "rewrite", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE).ok());
  ASSERT_TRUE(b->Sync().ok());
  std::vector<uint8_t> down(64);
  const Status copied = device_[0]->Copy(HostRange(down.data(), 64), Part(*buffer, 0, 64), 64);
  EXPECT_TRUE(copied.ok()) << copied.ToString();
  ASSERT_TRUE(Launch(*a, "write", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE).ok());
  const Status race = device_[0]->Copy(HostRange(down.data(), 64), Part(*buffer, 0, 64), 64);
  EXPECT_NE(race.message().find("'copy to the host' reads"), std::string::npos) << race.message();
  ASSERT_TRUE(a->Sync().ok());
  plugins_.Reset();
}

TEST_F(AsyncDeviceTest, TemporariesLiveInStreamOrder) {
  const auto a = Open(), b = Open();
  const uint64_t before = plugins_.Counts().allocated;
  Result<std::shared_ptr<Buffer>> buffer = a->Temporary(4096, device_[0]->allocator());
  ASSERT_TRUE(buffer.ok()) << buffer.status().ToString();
  EXPECT_EQ(plugins_.Counts().allocated, before + 4096);
  const weir_buf range = Part(**buffer, 0, 4096);
  ASSERT_TRUE(Launch(*a, "use", range, WEIR_ASYNC_WRITE).ok());
  buffer->reset();
  EXPECT_EQ(plugins_.Counts().allocated, before);
  EXPECT_EQ(plugins_.Counts().races, 0u) << "the free comes after the use";
  ASSERT_TRUE(a->Sync().ok());
  EXPECT_FALSE(Launch(*b, "late", range, WEIR_ASYNC_READ).ok()) << "used after it was freed";
  EXPECT_EQ(plugins_.Counts().races, 1u);
  plugins_.Reset();
}

TEST_F(AsyncDeviceTest, ATemporaryOfOneStreamIsNotReadyForAnother) {
  const auto a = Open(), b = Open();
  Result<std::shared_ptr<Buffer>> buffer = a->Temporary(64, device_[0]->allocator());
  ASSERT_TRUE(buffer.ok());
  EXPECT_FALSE(Launch(*b, "stranger", Part(**buffer, 0, 64), WEIR_ASYNC_WRITE).ok());
  EXPECT_NE(plugins_.FirstFault().find("'alloc on a stream' wrote"), std::string::npos) << plugins_.FirstFault();
  plugins_.Reset();
}

TEST_F(AsyncDeviceTest, MemoryFreedUnderItsUsersIsARace) {
  const auto stream = Open();
  Gate gate;
  {
    Result<std::shared_ptr<Buffer>> other = stream->Temporary(64, device_[0]->allocator());
    ASSERT_TRUE(other.ok());
    const auto b = Open();
    ASSERT_TRUE(b->Wait(*stream->Record()).ok());
    ASSERT_TRUE(Launch(*b, "user", Part(**other, 0, 64), WEIR_ASYNC_READ, [&](void*) { gate.Pass(); }).ok());
    other->reset();
    EXPECT_NE(plugins_.FirstFault().find("'user' reads"), std::string::npos) << plugins_.FirstFault();
    gate.Open();
    ASSERT_TRUE(b->Sync().ok()) << "the memory itself outlives the user";
  }
  ASSERT_TRUE(stream->Sync().ok());
  plugins_.Reset();
}

TEST_F(AsyncDeviceTest, WaitingForAnUnrecordedEventPoisons) {
  const auto stream = Open();
  // The wrappers cannot express this, so the table is called directly.
  const std::string id = WEIR_STREAM_INTERFACE;
  const auto* const api =
      static_cast<const weir_stream_api*>(plugins_.device_plugin()->get_interface({id.data(), id.size()}));
  const Result<weir_device*> handle = device_[0]->Open();
  ASSERT_TRUE(handle.ok());
  weir_event* event = nullptr;
  ASSERT_EQ(api->event_create(*handle, &event, nullptr), WEIR_OK);
  device::ErrorRecord record;
  EXPECT_EQ(api->wait(stream->handle(), event, record.get()), WEIR_FAILED_PRECONDITION);
  EXPECT_NE(record.get()->flags & WEIR_ERROR_STREAM_POISONED, 0u);
  EXPECT_NE(api->sync(event, nullptr), WEIR_OK);
  EXPECT_EQ(stream->Sync().code(), Code::kFailedPrecondition);
  EXPECT_EQ(plugins_.Counts().misuses, 1u);
  api->event_destroy(*handle, event);
  plugins_.Reset();
}

TEST_F(AsyncDeviceTest, FailedWorkPoisonsItsStreamAndThoseThatWait) {
  const auto a = Open(), b = Open();
  const auto buffer = Memory(64);
  bool ran = false;
  Gate gate;
  ASSERT_TRUE(Launch(
                  *a, "bad", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE, [&](void*) { gate.Pass(); }, WEIR_OUT_OF_RANGE)
                  .ok());
  ASSERT_TRUE(Launch(*a, "next", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE, [&](void*) { ran = true; }).ok());
  const Event event = *a->Record();
  ASSERT_TRUE(b->Wait(event).ok());
  ASSERT_TRUE(Launch(*b, "reader", Part(*buffer, 0, 64), WEIR_ASYNC_READ, [&](void*) { ran = true; }).ok());
  Status told;
  Gate called;
  ASSERT_TRUE(event
                  .Then([&](const Status& status) {
                    told = status;
                    called.Open();
                  })
                  .ok());
  gate.Open();
  const Status failed = a->Sync();
  EXPECT_EQ(failed.code(), Code::kOutOfRange);
  EXPECT_NE(failed.message().find("no luck!"), std::string::npos) << failed.message();
  EXPECT_EQ(b->Sync().code(), Code::kOutOfRange);
  called.Pass();
  EXPECT_EQ(told.code(), Code::kOutOfRange);
  EXPECT_FALSE(ran);
  EXPECT_EQ(a->Copy(Part(*buffer, 0, 8), Part(*buffer, 8, 8), 8).code(), Code::kOutOfRange) << "the first one wins";
}

TEST_F(AsyncDeviceTest, DevicesOfOnePluginCopyDirectly) {
  const auto a = Open(0), b = Open(1);
  const auto source = Memory(512, 0), target = Memory(512, 1);
  std::vector<uint8_t> up(512, 7), down(512);
  ASSERT_TRUE(a->Copy(Part(*source, 0, 512), HostRange(up.data(), 512), 512).ok());
  const uint64_t operations = plugins_.Counts().operations;
  ASSERT_TRUE(b->CopyFrom(*a, Part(*target, 0, 512), Part(*source, 0, 512), 512).ok());
  ASSERT_TRUE(a->Fill(Part(*source, 0, 512), 0, 512).ok()) << "the source may be written again";
  ASSERT_TRUE(b->Copy(HostRange(down.data(), 512), Part(*target, 0, 512), 512).ok());
  ASSERT_TRUE(b->Sync().ok());
  ASSERT_TRUE(a->Sync().ok());
  EXPECT_EQ(down, up);
  EXPECT_GE(plugins_.Counts().operations, operations + 3);
}

TEST_F(AsyncDeviceTest, LosingTheDeviceFailsOnlyItsUsers) {
  const auto stream = Open(0), other = Open(1);
  const auto buffer = Memory(64, 0), survivor = Memory(64, 1);
  plugins_.Configure("async-0", {{"lose_at", 1}});
  ASSERT_TRUE(Launch(*stream, "first", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE).ok());
  (void)Launch(*stream, "second", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE);
  const Status lost = stream->Sync();
  EXPECT_EQ(lost.code(), Code::kUnavailable);
  EXPECT_NE(lost.message().find("is lost"), std::string::npos) << lost.message();
  EXPECT_EQ(streams_[0]->health().code(), Code::kUnavailable);
  EXPECT_EQ(streams_[0]->Acquire().status().code(), Code::kUnavailable);
  EXPECT_TRUE(Launch(*other, "fine", Part(*survivor, 0, 64), WEIR_ASYNC_WRITE).ok());
  EXPECT_TRUE(other->Sync().ok());
  EXPECT_TRUE(streams_[1]->health().ok());
}

TEST_F(AsyncDeviceTest, AllocationsThatFailAreResourceExhausted) {
  plugins_.Configure("async-1", {{"fail_alloc", 1}});
  const auto stream = Open(1);
  const Result<std::shared_ptr<Buffer>> temporary = stream->Temporary(64, device_[1]->allocator());
  EXPECT_EQ(temporary.status().code(), Code::kResourceExhausted);
  EXPECT_NE(device_[1]->allocator().Allocate(uint64_t{1} << 30).status().code(), Code::kOk);
  plugins_.Configure("async-1", {{"fail_alloc", 0}});
  EXPECT_TRUE(stream->Temporary(64, device_[1]->allocator()).ok());
}

TEST_F(AsyncDeviceTest, APoisonedStreamSkipsPendingWork) {
  const auto stream = Open();
  const auto buffer = Memory(64);
  Gate begun, gate;
  bool ran = false;
  ASSERT_TRUE(Launch(*stream, "running", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE, [&](void*) {
                begun.Open();
                gate.Pass();
              }).ok());
  ASSERT_TRUE(Launch(*stream, "queued", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE, [&](void*) { ran = true; }).ok());
  begun.Pass();
  stream->Poison(Cancelled("the step was cancelled"));
  gate.Open();
  EXPECT_EQ(stream->Sync().code(), Code::kCancelled);
  EXPECT_FALSE(ran);
}

TEST_F(AsyncDeviceTest, StreamsAndEventsArePooled) {
  auto stream = Open();
  weir_stream* const handle = stream->handle();
  streams_[0]->Release(std::move(stream));
  stream = Open();
  EXPECT_EQ(stream->handle(), handle);
  const auto buffer = Memory(64);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Launch(*stream, "work", Part(*buffer, 0, 64), WEIR_ASYNC_WRITE).ok());
    const Result<Event> event = stream->Record();
    ASSERT_TRUE(event.ok());
    ASSERT_TRUE(event->Sync().ok());
  }
  streams_[0]->Release(std::move(stream));
}

TEST_F(AsyncDeviceTest, SharedMemoryIsOrderedBetweenRunsThatDoNotKnowEachOther) {
  const auto a = Open(), b = Open(), c = Open();
  const auto buffer = Memory(64);
  const weir_buf all = Part(*buffer, 0, 64);
  device::SharedMemoryUse use;
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(use.BeforeWrite(*a).ok());
    ASSERT_TRUE(Launch(*a, "update", all, WEIR_ASYNC_WRITE).ok());
    ASSERT_TRUE(use.AfterWrite(*a).ok());
    for (Stream* reader : {b.get(), c.get()}) {
      ASSERT_TRUE(use.BeforeRead(*reader).ok());
      ASSERT_TRUE(Launch(*reader, "read", all, WEIR_ASYNC_READ).ok());
      ASSERT_TRUE(use.AfterRead(*reader).ok());
    }
  }
  ASSERT_TRUE(use.BeforeWrite(*a).ok());
  ASSERT_TRUE(Launch(*a, "last", all, WEIR_ASYNC_WRITE).ok());
  for (Stream* stream : {a.get(), b.get(), c.get()}) EXPECT_TRUE(stream->Sync().ok());
}

}  // namespace
}  // namespace weir::plugin
