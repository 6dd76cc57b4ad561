// A small device with streams and a few kernels, healthy unless the option `fault` says which of them is broken and
// how. mutants.h lists the numbers. Its memory has addresses that only its own code uses.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sdk/cpp/plugin.h"
#include "sdk/cpp/stream_device.h"
#include "tests/plugin/flawed_kernels.h"

namespace {

using namespace weir::sdk;
using flawed::Fault;

struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> reached{false};  // set after code and text
  int32_t code = WEIR_OK;
  std::string text;
  std::vector<std::pair<void (*)(void*, int32_t), void*>> callbacks;

  void Reach(int32_t with, const std::string& why) {
    const std::lock_guard lock(mutex);
    code = with;
    text = why;
    reached = true;
    for (const auto& [fn, arg] : callbacks) {
      fn(arg, code);
      if (Fault() == 6) fn(arg, code);
    }
    changed.notify_all();
  }
  void Await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached.load(); });
  }
};

class FlawedDevice {
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

  class Stream : public flawed::Queue {
   public:
    ~Stream() override {
      Push(nullptr);
      thread_.join();
    }
    int32_t Record(Event& event, const Error&) {
      auto mark = std::make_shared<Mark>();
      event.mark = mark;
      if (Fault() == 2) {
        mark->Reach(WEIR_OK, {});
      } else {
        Push([this, mark] { mark->Reach(code(), text()); });
      }
      return WEIR_OK;
    }
    int32_t Wait(Event& event, const Error& error) {
      if (event.mark == nullptr) return Fault() == 4 ? WEIR_OK : error.Fail(WEIR_FAILED_PRECONDITION, "never recorded");
      if (Fault() != 3) Push([mark = event.mark] { mark->Await(); });
      return WEIR_OK;
    }
    void Poison(int32_t code, std::string_view text) {
      const std::lock_guard lock(mutex_);
      if (Fault() != 5 && code_ != WEIR_OK) return;
      text_ = text;
      code_ = code;
    }
    void Run(std::function<void()> work) override { Push(std::move(work)); }
    void Push(std::function<void()> work, bool copies = false) {
      const std::lock_guard lock(mutex_);
      if (Fault() == 1 && work_.size() == 1 && copies) {
        work_.push_front(std::move(work));
      } else {
        work_.push_back(std::move(work));
      }
      changed_.notify_all();
    }
    int32_t code() {
      const std::lock_guard lock(mutex_);
      return code_;
    }
    std::string text() {
      const std::lock_guard lock(mutex_);
      return text_;
    }

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
    std::mutex mutex_;  // guards all below
    int32_t code_ = WEIR_OK;
    std::string text_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    std::thread thread_{[this] { Work(); }};
  };

  ~FlawedDevice() { --Opened(); }
  static std::atomic<int>& Opened() {
    static std::atomic<int> opened{0};
    return opened;
  }

  static std::span<const weir_option_spec* const> OptionSpecs() { return flawed::OptionSpecs(); }
  static void Enumerate(const Options&, const Emit& emit) {
    for (const char* uid : {"flawed-0", "flawed-1"}) {
      emit({.uid = uid,
            .kind = "FLAWED",
            .platform = flawed::kPlatform,
            .flags = WEIR_DEVICE_ORDERED_ALLOC | WEIR_DEVICE_OPT_IN,
            .memory_bytes = 1 << 30});
    }
  }
  static std::unique_ptr<FlawedDevice> Open(std::string_view uid, const Options&, const Error& error) {
    if (!uid.starts_with("flawed-")) return nullptr;
    const int open = ++Opened();
    if ((Fault() == 51 || Fault() == 52) && open > 1) {
      --Opened();
      static_cast<void>(error.Fail(Fault() == 51 ? WEIR_UNAVAILABLE : WEIR_RESOURCE_EXHAUSTED, "only one at a time"));
      return nullptr;
    }
    return std::make_unique<FlawedDevice>();
  }
  std::unique_ptr<Stream> NewStream(int32_t, const Error&) { return std::make_unique<Stream>(); }
  std::unique_ptr<Event> NewEvent(const Error&) { return std::make_unique<Event>(); }

  int32_t Alloc(uint64_t bytes, uint32_t, weir_buf& buf, const Error& error) {
    void* block = bytes > (1 << 30) ? nullptr : std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (block == nullptr) return error.ResourceExhausted("no memory left");
    buf = {0, WEIR_SPACE_DEVICE, reinterpret_cast<uint64_t>(block), 0, bytes, nullptr};
    if (Fault() == 54) buf.offset = 8;
    return WEIR_OK;
  }
  void Free(const weir_buf& buf) { std::free(reinterpret_cast<void*>(buf.handle)); }
  int32_t AllocOrdered(Stream&, uint64_t bytes, weir_buf& buf, const Error& error) {
    return Alloc(bytes, WEIR_SPACE_DEVICE, buf, error);
  }
  int32_t FreeOrdered(Stream& stream, const weir_buf& buf, const Error&) {
    if (Fault() == 7) {
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
  void Profile(weir_profile& profile) const { flawed::DeclareProfile(profile); }

  static int32_t CanCopy(FlawedDevice&, FlawedDevice&) { return WEIR_COPY_DIRECT; }
  int32_t CopyPeer(const weir_buf& to, FlawedDevice&, const weir_buf& from, uint64_t bytes, Stream* stream,
                   const Error& error) {
    return Copy(stream, to, from, Fault() == 8 ? bytes - 1 : bytes, error);
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

/// The device's tables, and "cost/1" with links.
struct FlawedDevices : StreamDevices<FlawedDevice> {
  static const void* Interface(std::string_view id, std::string_view targets) {
    const void* const table = StreamDevices<FlawedDevice>::Interface(id, targets);
    if (id != WEIR_COST_INTERFACE || table == nullptr) return table;
    static const weir_cost_api api = {sizeof(weir_cost_api), 0, static_cast<const weir_cost_api*>(table)->profile,
                                      &flawed::DeclareLink, nullptr};
    return &api;
  }
};

/// Sets the fault, and leaves a thread behind that runs code of a library or of the plugin.
struct Driver {
  static int32_t Start(const Options& options, const Error&) {
    flawed::Fault() = static_cast<int>(options.Int("fault", 0));
    if (Fault() != 55 && Fault() != 56) return WEIR_OK;
    pthread_t thread;
    using Routine = void* (*)(void*);
    static const Routine own = [](void*) -> void* {
      for (;;) pause();
    };
    pthread_create(&thread, nullptr, Fault() == 55 ? reinterpret_cast<Routine>(reinterpret_cast<void*>(&pause)) : own,
                   nullptr);
    pthread_detach(thread);
    return WEIR_OK;
  }
  static void Stop() {}
};

}  // namespace

WEIR_PLUGIN("flawed", "1.0.0", "weir", "flawed/1", Driver, FlawedDevices, flawed::Kernels)
