// A device with slow streams, and dynamic kernels for it: Abs works during its call, Neg on the stream of its call.
// Both return their input; memory has addresses that the host can use.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "sdk/cpp/kernel.h"
#include "sdk/cpp/plugin.h"
#include "sdk/cpp/stream_device.h"

namespace {

using namespace weir::sdk;

class StreamedDevice {
 public:
  class Stream;
  class Event {
   public:
    int32_t Query() { return stream_ == nullptr || stream_->Done(position_) ? WEIR_EVENT_DONE : WEIR_EVENT_PENDING; }
    int32_t Sync(const Error&) {
      if (stream_ != nullptr) stream_->Await(position_);
      return WEIR_OK;
    }
    int32_t OnComplete(void (*fn)(void*, int32_t), void* arg, const Error&) {
      stream_->Push([fn, arg] { fn(arg, WEIR_OK); });
      return WEIR_OK;
    }

   private:
    friend class Stream;
    Stream* stream_ = nullptr;
    uint64_t position_ = 0;
  };

  class Stream {
   public:
    ~Stream() {
      Push(nullptr);
      thread_.join();
    }
    int32_t Record(Event& event, const Error&) {
      const std::lock_guard lock(mutex_);
      event.stream_ = this;
      event.position_ = pushed_;
      return WEIR_OK;
    }
    int32_t Wait(Event& event, const Error&) {
      Push([other = event.stream_, position = event.position_] { other->Await(position); });
      return WEIR_OK;
    }
    void Poison(int32_t, std::string_view) {}
    void Push(std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
      ++pushed_;
      changed_.notify_all();
    }
    bool Done(uint64_t position) {
      const std::lock_guard lock(mutex_);
      return done_ >= position;
    }
    void Await(uint64_t position) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return done_ >= position; });
    }

   private:
    void Work() {
      for (;;) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !work_.empty(); });
        const std::function<void()> next = std::move(work_.front());
        work_.pop_front();
        lock.unlock();
        if (next == nullptr) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        next();
        lock.lock();
        ++done_;
        changed_.notify_all();
      }
    }
    std::mutex mutex_;  // protects all below
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    uint64_t pushed_ = 0, done_ = 0;
    std::thread thread_{[this] { Work(); }};
  };

  static void Enumerate(const Options&, const Emit& emit) {
    emit({.uid = "streamed-0",
          .kind = "STREAMED",
          .platform = "streamed/1",
          .flags = 0,
          .memory_bytes = uint64_t{64} << 20});
  }
  static std::unique_ptr<StreamedDevice> Open(std::string_view, const Options&, const Error&) {
    return std::make_unique<StreamedDevice>();
  }
  std::unique_ptr<Stream> NewStream(int32_t, const Error&) { return std::make_unique<Stream>(); }
  std::unique_ptr<Event> NewEvent(const Error&) { return std::make_unique<Event>(); }
  int32_t Alloc(uint64_t bytes, uint32_t, weir_buf& buf, const Error& error) {
    void* block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (block == nullptr) return error.ResourceExhausted("no memory left");
    std::memset(block, 0xee, bytes);
    buf = {0, WEIR_SPACE_DEVICE, reinterpret_cast<uint64_t>(block), 0, bytes, nullptr};
    return WEIR_OK;
  }
  void Free(const weir_buf& buf) { std::free(reinterpret_cast<void*>(buf.handle)); }
  int32_t Copy(Stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes, const Error&) {
    return Do(stream, [to = At(to), from = At(from), bytes] { std::memmove(to, from, bytes); });
  }
  int32_t Fill(Stream* stream, const weir_buf& to, uint8_t value, uint64_t bytes, const Error&) {
    return Do(stream, [to = At(to), value, bytes] { std::memset(to, value, bytes); });
  }
  static char* At(const weir_buf& buf) {
    return buf.host != nullptr ? static_cast<char*>(buf.host) : reinterpret_cast<char*>(buf.handle + buf.offset);
  }
  static int32_t Do(Stream* stream, std::function<void()> work) {
    stream != nullptr ? stream->Push(std::move(work)) : work();
    return WEIR_OK;
  }
};

/// Copies input 0 to output 0, on `stream` unless it is null.
int32_t Copy(Context& ctx, StreamedDevice::Stream* stream) {
  weir_tensor x{}, y{};
  x.struct_size = y.struct_size = sizeof x;
  if (const int32_t code = HostTable()->input(ctx.get(), 0, &x); code != WEIR_OK) return code;
  const weir_shape shape{x.rank, 0, x.dims};
  const int32_t code = HostTable()->output(ctx.get(), 0, &shape, &y, ctx.error().record());
  if (code != WEIR_OK) return code;
  return StreamedDevice::Do(stream, [from = StreamedDevice::At(x.buf), to = StreamedDevice::At(y.buf),
                                     bytes = x.buf.bytes] { std::memmove(to, from, bytes); });
}

struct AtOnce {
  template <class T>
  int32_t Compute(Context& ctx) {
    return ctx.stream() == nullptr ? Copy(ctx, nullptr) : ctx.error().Fail(WEIR_INTERNAL, "a stream nobody asked for");
  }
};

struct OnStream {
  template <class T>
  int32_t Compute(Context& ctx) {
    auto* const stream = reinterpret_cast<StreamedDevice::Stream*>(ctx.stream());
    if (stream == nullptr || ctx.device() == nullptr) return ctx.error().Fail(WEIR_INTERNAL, "no stream, or no device");
    return Copy(ctx, stream);
  }
};

void AddKernels(KernelTable& k) {
  k.Add<AtOnce>("Abs", Types<float>());
  k.Add<OnStream>("Neg", Types<float>()).Flags(WEIR_KERNEL_STREAM);
}

}  // namespace

WEIR_PLUGIN("streamed", "1.0.0", "weir", "streamed/1", StreamDevices<StreamedDevice>, Kernels<AddKernels>)
