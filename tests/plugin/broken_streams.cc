// A small device with streams, broken in one way per -DBREAK=n; 0 is healthy.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sdk/cpp/plugin.h"
#include "sdk/cpp/stream_device.h"

#ifndef BREAK
#define BREAK 0
#endif

namespace {

using namespace weir::sdk;

struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  int32_t code = WEIR_OK;
  std::string text;
  std::vector<std::pair<void (*)(void*, int32_t), void*>> callbacks;

  void Reach(int32_t with, const std::string& why) {
    const std::lock_guard lock(mutex);
    reached = true;
    code = with;
    text = why;
    for (const auto& [fn, arg] : callbacks) {
      fn(arg, code);
      if (BREAK == 6) fn(arg, code);
    }
    changed.notify_all();
  }
  void Await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached; });
  }
};

class BrokenDevice {
 public:
  class Event {
   public:
    int32_t Query() {
      return mark == nullptr ? WEIR_EVENT_FAILED : mark->reached ? WEIR_EVENT_DONE : WEIR_EVENT_PENDING;
    }
    int32_t Sync(const Error& error) {
      if (mark == nullptr) return error.Fail(WEIR_FAILED_PRECONDITION, "the event was never recorded");
      mark->Await();
      return mark->code == WEIR_OK ? WEIR_OK : error.Fail(mark->code, mark->text);
    }
    int32_t OnComplete(void (*fn)(void*, int32_t), void* arg, const Error&) {
      const std::lock_guard lock(mark->mutex);
      if (mark->reached) {
        fn(arg, mark->code);
      } else {
        mark->callbacks.emplace_back(fn, arg);
      }
      return WEIR_OK;
    }
    std::shared_ptr<Mark> mark;
  };

  class Stream {
   public:
    ~Stream() {
      Push(nullptr);
      thread_.join();
    }
    int32_t Record(Event& event, const Error&) {
      auto mark = std::make_shared<Mark>();
      event.mark = mark;
      if (BREAK == 2) {
        mark->Reach(WEIR_OK, {});
      } else {
        Push([this, mark] { mark->Reach(code_, text_); });
      }
      return WEIR_OK;
    }
    int32_t Wait(Event& event, const Error& error) {
      if (event.mark == nullptr) return BREAK == 4 ? WEIR_OK : error.Fail(WEIR_FAILED_PRECONDITION, "never recorded");
      if (BREAK != 3) Push([mark = event.mark] { mark->Await(); });
      return WEIR_OK;
    }
    void Poison(int32_t code, std::string_view text) {
      if (BREAK != 5 && code_ != WEIR_OK) return;
      text_ = text;
      code_ = code;
    }
    void Push(std::function<void()> work, bool copies = false) {
      const std::lock_guard lock(mutex_);
      if (BREAK == 1 && work_.size() == 1 && copies) {
        work_.push_front(std::move(work));
      } else {
        work_.push_back(std::move(work));
      }
      changed_.notify_all();
    }
    int32_t code() const { return code_; }
    const std::string& text() const { return text_; }

   private:
    void Work() {
      while (true) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !work_.empty(); });
        const std::function<void()> next = std::move(work_.front());
        work_.pop_front();
        lock.unlock();
        if (next == nullptr) return;
        next();
      }
    }
    std::atomic<int32_t> code_{WEIR_OK};
    std::string text_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    std::thread thread_{[this] { Work(); }};
  };

  explicit BrokenDevice(std::string_view) {}
  static void Enumerate(const Options&, const Emit& emit) {
    for (const char* uid : {"broken-0", "broken-1"}) {
      emit({.uid = uid,
            .kind = "TOY",
            .platform = "toy/2",
            .flags = WEIR_DEVICE_ORDERED_ALLOC,
            .memory_bytes = 1 << 30});
    }
  }
  static std::unique_ptr<BrokenDevice> Open(std::string_view uid, const Options&, const Error&) {
    return uid.starts_with("broken-") ? std::make_unique<BrokenDevice>(uid) : nullptr;
  }
  std::unique_ptr<Stream> NewStream(int32_t, const Error&) { return std::make_unique<Stream>(); }
  std::unique_ptr<Event> NewEvent(const Error&) { return std::make_unique<Event>(); }

  int32_t Alloc(uint64_t bytes, uint32_t, weir_buf& buf, const Error& error) {
    void* block = bytes > (1 << 30) ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (block == nullptr) return error.ResourceExhausted("no memory left");
    buf = {0, WEIR_SPACE_DEVICE, reinterpret_cast<uint64_t>(block), 0, bytes, nullptr};
    return WEIR_OK;
  }
  void Free(const weir_buf& buf) { std::free(reinterpret_cast<void*>(buf.handle)); }
  int32_t AllocOrdered(Stream&, uint64_t bytes, weir_buf& buf, const Error& error) {
    return Alloc(bytes, WEIR_SPACE_DEVICE, buf, error);
  }
  int32_t FreeOrdered(Stream& stream, const weir_buf& buf, const Error&) {
    if (BREAK == 7) {
      std::memset(At(buf), 0xee, buf.bytes);
    } else {
      stream.Push([this, buf] { Free(buf); });
    }
    return WEIR_OK;
  }
  int32_t Copy(Stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes, const Error& error) {
    return Do(
        stream, [to = At(to), from = At(from), bytes] { std::memmove(to, from, bytes); }, error);
  }
  int32_t Fill(Stream* stream, const weir_buf& to, uint8_t value, uint64_t bytes, const Error& error) {
    return Do(
        stream, [to = At(to), value, bytes] { std::memset(to, value, bytes); }, error);
  }
  static int32_t CanCopy(BrokenDevice&, BrokenDevice&) { return WEIR_COPY_DIRECT; }
  int32_t CopyPeer(const weir_buf& to, BrokenDevice&, const weir_buf& from, uint64_t bytes, Stream* stream,
                   const Error& error) {
    return Copy(stream, to, from, BREAK == 8 ? bytes - 1 : bytes, error);
  }

 private:
  static char* At(const weir_buf& buf) {
    return buf.host != nullptr ? static_cast<char*>(buf.host) : reinterpret_cast<char*>(buf.handle + buf.offset);
  }
  static int32_t Do(Stream* stream, std::function<void()> work, const Error& error) {
    if (stream == nullptr) {
      work();
      return WEIR_OK;
    }
    if (stream->code() != WEIR_OK) return error.Fail(stream->code(), stream->text());
    stream->Push(std::move(work), true);
    return WEIR_OK;
  }
};

}  // namespace

WEIR_PLUGIN("broken_streams", "1.0.0", "weir", "", StreamDevices<BrokenDevice>)
