// Streams over the tables of a minimal device: the work of the core itself.
#include "core/device/stream.h"
#include "core/tensor/buffer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>

namespace weir::device {
namespace {

// A device whose streams run their work only when they are waited for. Memory has addresses.
struct Lazy {
  struct Mark {
    bool reached = false;
    std::vector<std::pair<void (*)(void*, int32_t), void*>> callbacks;
  };
  struct FakeEvent {
    std::shared_ptr<Mark> mark;
  };
  struct FakeStream {
    std::deque<std::function<void()>> work;
    void Drain() {
      while (!work.empty()) {
        const auto next = std::move(work.front());
        work.pop_front();
        next();
      }
    }
  };
  inline static std::set<FakeStream*> streams;
  inline static int events = 0, waits = 0, most_pending = 0;
  inline static int32_t fail_with = WEIR_OK;
  inline static uint32_t fail_flags = 0;
  inline static int32_t health = WEIR_HEALTH_OK;

  static FakeStream& Of(weir_stream* stream) { return *reinterpret_cast<FakeStream*>(stream); }
  static FakeEvent& Of(weir_event* event) { return *reinterpret_cast<FakeEvent*>(event); }
  static void DrainAll() {
    for (FakeStream* stream : std::set(streams)) stream->Drain();
  }
  static int32_t Push(weir_stream* stream, std::function<void()> work, weir_error* error) {
    if (fail_with != WEIR_OK) {
      if (error != nullptr) error->flags = fail_flags;
      return fail_with;
    }
    Of(stream).work.push_back(std::move(work));
    most_pending = std::max(most_pending, static_cast<int>(Of(stream).work.size()));
    return WEIR_OK;
  }
  static char* At(const weir_buf& buf) {
    return buf.host != nullptr ? static_cast<char*>(buf.host) : reinterpret_cast<char*>(buf.handle) + buf.offset;
  }

  static weir_device_api DeviceApi() {
    weir_device_api api{};
    api.struct_size = sizeof api;
    api.copy = [](weir_device*, weir_stream* stream, const weir_buf* to, const weir_buf* from, uint64_t bytes,
                  weir_error* error) {
      return Push(
          stream, [to = At(*to), from = At(*from), bytes] { std::memcpy(to, from, bytes); }, error);
    };
    api.health = [](weir_device*) { return health; };
    return api;
  }
  static weir_stream_api StreamApi() {
    weir_stream_api api{};
    api.struct_size = sizeof api;
    api.stream_create = [](weir_device*, int32_t, weir_stream** stream, weir_error*) -> int32_t {
      auto* made = new FakeStream;
      streams.insert(made);
      *stream = reinterpret_cast<weir_stream*>(made);
      return WEIR_OK;
    };
    api.stream_destroy = [](weir_device*, weir_stream* stream) {
      Of(stream).Drain();
      streams.erase(&Of(stream));
      delete &Of(stream);
    };
    api.event_create = [](weir_device*, weir_event** event, weir_error*) -> int32_t {
      ++events;
      *event = reinterpret_cast<weir_event*>(new FakeEvent);
      return WEIR_OK;
    };
    api.event_destroy = [](weir_device*, weir_event* event) {
      --events;
      delete &Of(event);
    };
    api.record = [](weir_stream* stream, weir_event* event, weir_error*) -> int32_t {
      const auto mark = Of(event).mark = std::make_shared<Mark>();
      Of(stream).work.push_back([mark] {
        mark->reached = true;
        for (const auto& [fn, arg] : mark->callbacks) fn(arg, WEIR_OK);
      });
      return WEIR_OK;
    };
    api.wait = [](weir_stream* stream, weir_event*, weir_error* error) -> int32_t {
      ++waits;
      return Push(
          stream, [] {}, error);
    };
    api.query = [](weir_event* event) -> int32_t {
      return Of(event).mark->reached ? WEIR_EVENT_DONE : WEIR_EVENT_PENDING;
    };
    api.sync = [](weir_event* event, weir_error*) -> int32_t {
      DrainAll();
      return Of(event).mark->reached ? WEIR_OK : WEIR_INTERNAL;
    };
    api.on_complete = [](weir_event* event, void (*fn)(void*, int32_t), void* arg, weir_error*) -> int32_t {
      Of(event).mark->callbacks.emplace_back(fn, arg);
      return WEIR_OK;
    };
    return api;
  }
};

class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Lazy::waits = Lazy::most_pending = 0;
    Lazy::fail_with = WEIR_OK;
    Lazy::fail_flags = 0;
    Lazy::health = WEIR_HEALTH_OK;
    streams_ =
        Streams::Make(Healthy("lazy:0"), &device_api_, {&stream_api_, nullptr, nullptr, nullptr}, nullptr, false);
    other_ = Streams::Make(Healthy("other:0"), &device_api_, {&other_api_, nullptr, nullptr, nullptr}, nullptr, false);
  }
  void TearDown() override {
    streams_.reset();
    other_.reset();
    EXPECT_EQ(Lazy::events, 0);
    EXPECT_TRUE(Lazy::streams.empty());
  }
  std::shared_ptr<Health> Healthy(const char* name) const {
    return std::make_shared<Health>(name, &device_api_, nullptr);
  }
  static std::shared_ptr<Buffer> Memory(uint64_t bytes) { return *HostAllocator().Allocate(bytes); }

  weir_device_api device_api_ = Lazy::DeviceApi();
  weir_stream_api stream_api_ = Lazy::StreamApi(), other_api_ = Lazy::StreamApi();
  std::shared_ptr<Streams> streams_, other_;
};

TEST_F(StreamTest, ATableWithoutSyncIsIncomplete) {
  StreamApis apis = {&stream_api_, nullptr, nullptr, nullptr};
  EXPECT_TRUE(apis.Complete());
  stream_api_.sync = nullptr;
  EXPECT_FALSE(apis.Complete());
  apis.stream = nullptr;
  EXPECT_FALSE(apis.Complete());
}

TEST_F(StreamTest, OneEventPerPoint) {
  const auto stream = *streams_->Acquire();
  const auto memory = Memory(8);
  ASSERT_TRUE(stream->Copy(memory->memory(), memory->memory(), 4).ok());
  const Event a = *stream->Record(), b = *stream->Record();
  EXPECT_EQ(Lazy::events, 1) << "nothing came between";
  EXPECT_FALSE(a.reached());
  int called = 0;
  ASSERT_TRUE(b.Then([&](const Status& status) { called += status.ok() ? 1 : 100; }).ok());
  ASSERT_TRUE(a.Sync().ok());
  EXPECT_TRUE(b.reached());
  EXPECT_EQ(called, 1);
  EXPECT_TRUE(Event().reached());
}

TEST_F(StreamTest, AnotherPluginsEventIsWaitedForByTheHost) {
  const auto stream = *streams_->Acquire(), other = *other_->Acquire();
  const auto memory = Memory(8);
  ASSERT_TRUE(other->Copy(memory->memory(), memory->memory(), 4).ok());
  const Event event = *other->Record();
  ASSERT_TRUE(stream->Wait(event).ok());
  EXPECT_TRUE(event.reached());
  EXPECT_EQ(Lazy::waits, 0);
}

TEST_F(StreamTest, CopiesBetweenPluginsGoThroughTheHostInChunks) {
  const auto stream = *streams_->Acquire(), other = *other_->Acquire();
  constexpr uint64_t kBytes = (uint64_t{9} << 20) + 5;
  const auto from = Memory(kBytes), to = Memory(kBytes);
  for (uint64_t i = 0; i < kBytes; ++i) from->host()[i] = static_cast<std::byte>(i * 7 + (i >> 16));
  ASSERT_TRUE(stream->CopyFrom(*other, to->memory(), from->memory(), kBytes).ok());
  ASSERT_TRUE(stream->Sync().ok());
  EXPECT_EQ(std::memcmp(from->host(), to->host(), kBytes), 0);
  EXPECT_GE(Lazy::most_pending, 3) << "the source sends chunk after chunk while the target takes the first";
}

TEST_F(StreamTest, TemporariesWithoutOrderedAllocationStayUntilTheirWorkIsDone) {
  const auto stream = *streams_->Acquire();
  std::weak_ptr<Buffer> watch;
  struct Watching : Allocator {
    Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override {
      Result<std::shared_ptr<Buffer>> made = HostAllocator().Allocate(bytes);
      *watch = *made;
      return made;
    }
    std::weak_ptr<Buffer>* watch = nullptr;
  } allocator;
  allocator.watch = &watch;
  {
    const auto temporary = stream->Temporary(64, allocator);
    ASSERT_TRUE(temporary.ok());
    ASSERT_TRUE(stream->Copy((*temporary)->memory(), (*temporary)->memory(), 8).ok());
  }
  EXPECT_FALSE(watch.expired()) << "the copy has not run";
  ASSERT_TRUE(stream->Sync().ok());
  EXPECT_TRUE(watch.expired());
}

/// Page-locked memory, imitated and counted.
struct Pinned {
  inline static int made = 0, freed = 0;
  static weir_memory_api Api() {
    weir_memory_api api{};
    api.struct_size = sizeof api;
    api.pinned_alloc = [](weir_device*, uint64_t bytes, weir_buf* buf, weir_error*) -> int32_t {
      ++made;
      void* const block = std::aligned_alloc(64, bytes);
      *buf = {sizeof(weir_buf), WEIR_SPACE_PINNED, reinterpret_cast<uint64_t>(block), 0, bytes, block};
      return WEIR_OK;
    };
    api.pinned_free = [](weir_device*, const weir_buf* buf) {
      ++freed;
      std::free(buf->host);
    };
    return api;
  }
};

TEST_F(StreamTest, PinnedBlocksAreKeptForLaterSteps) {
  Pinned::made = Pinned::freed = 0;
  const weir_memory_api memory_api = Pinned::Api();
  auto streams = Streams::Make(Healthy("pinned:0"), &device_api_, {&stream_api_, &memory_api}, nullptr, false);
  for (int step = 0; step < 10; ++step) {
    const auto a = streams->Staging(5000), b = streams->Staging(8000);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ((*a)->bytes(), 8192u) << "a size that serves other shapes too";
    EXPECT_NE((*a)->host(), (*b)->host());
  }
  EXPECT_EQ(Pinned::made, 2);
  EXPECT_EQ(Pinned::freed, 0);
  { const auto large = streams->Staging(Streams::kMostPinnedKept + 1); }
  EXPECT_EQ(Pinned::made, 3);
  EXPECT_EQ(Pinned::freed, 1) << "more than is kept";
  streams.reset();
  EXPECT_EQ(Pinned::freed, 3);
}

TEST_F(StreamTest, KeptObjectsAreBounded) {
  const auto stream = *streams_->Acquire();
  const auto memory = Memory(8);
  std::weak_ptr<int> first;
  for (int i = 0; i < 3; ++i) {
    auto owner = std::make_shared<int>(i);
    if (i == 0) first = owner;
    ASSERT_TRUE(stream->Copy(memory->memory(), memory->memory(), 4).ok());
    stream->Keep(std::move(owner), uint64_t{40} << 20);
  }
  EXPECT_TRUE(first.expired()) << "beyond a limit the caller waits";
  ASSERT_TRUE(stream->Sync().ok()) << "the memory outlives the work on it";
}

TEST_F(StreamTest, ALossIsReportedByTheRecordOrByHealth) {
  const auto stream = *streams_->Acquire();
  const auto memory = Memory(8);
  Lazy::fail_with = WEIR_INVALID_ARGUMENT;
  EXPECT_EQ(stream->Copy(memory->memory(), memory->memory(), 4).code(), Code::kInvalidArgument);
  EXPECT_FALSE(stream->failed()) << "a refused call does not end the stream";
  EXPECT_TRUE(streams_->health().ok());
  Lazy::fail_flags = WEIR_ERROR_DEVICE_LOST;
  Lazy::fail_with = WEIR_UNAVAILABLE;
  EXPECT_EQ(stream->Copy(memory->memory(), memory->memory(), 4).code(), Code::kUnavailable);
  EXPECT_TRUE(stream->failed());
  EXPECT_EQ(streams_->Acquire().status().code(), Code::kUnavailable);

  const auto other = *other_->Acquire();
  Lazy::fail_flags = 0;
  Lazy::health = WEIR_HEALTH_LOST;
  EXPECT_FALSE(other->Copy(memory->memory(), memory->memory(), 4).ok());
  EXPECT_EQ(other_->health().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace weir::device
