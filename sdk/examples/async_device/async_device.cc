// A complete device with streams: memory accessible only through copies, queues that run in parallel with the host, and
// events between them. It detects incorrect use, see order.h. Its kernels come from kernel sets for platform "async/1"
// (async_platform.h).
#include <cstring>

#include "sdk/cpp/plugin.h"
#include "sdk/cpp/stream_device.h"
#include "async_platform.h"
#include "hardware.h"
#include "order.h"
#include "stream.h"

namespace async_device {
namespace {

using weir::sdk::Emit;
using weir::sdk::Error;
using weir::sdk::Options;
using weir::sdk::Str;

/// One open device.
class AsyncDevice {
 public:
  using Stream = async_device::Stream;
  using Event = async_device::Event;
  static constexpr std::string_view kPlatformAbi = WEIR_ASYNC_PLATFORM;

  explicit AsyncDevice(Hardware& hardware) : hardware_(hardware) {}
  ~AsyncDevice() { hardware_.Unhang(); }

  static std::span<const weir_option_spec* const> OptionSpecs() { return Hardware::OptionSpecs(); }

  static void Enumerate(const Options& options, const Emit& emit) {
    for (int64_t i = 0; i < options.Int("devices", 2); ++i) {
      const std::string uid = "async-" + std::to_string(i);
      emit({.uid = uid,
            .class_id = "async",
            .kind = "ASYNC",
            .platform = WEIR_ASYNC_PLATFORM,
            .name = "asynchronous example",
            .flags = WEIR_DEVICE_MUST_GROW | WEIR_DEVICE_ORDERED_ALLOC | WEIR_DEVICE_PEER | WEIR_DEVICE_OPT_IN,
            .memory_bytes = Hardware::Of(uid).capacity()});
    }
  }
  static std::unique_ptr<AsyncDevice> Open(std::string_view uid, const Options& options, const Error&) {
    if (!uid.starts_with("async-")) return nullptr;
    Hardware& hardware = Hardware::Of(uid);
    hardware.Revive();
    hardware.Configure(options);
    return std::make_unique<AsyncDevice>(hardware);
  }

  std::unique_ptr<Stream> NewStream(int32_t, const Error& error) {
    if (!Alive(error)) return nullptr;
    return std::make_unique<Stream>(hardware_);
  }
  std::unique_ptr<Event> NewEvent(const Error&) { return std::make_unique<Event>(); }

  int32_t Alloc(uint64_t bytes, uint32_t, weir_buf& buf, const Error& error) {
    const std::shared_ptr<Block> block = hardware_.Allocate(bytes);
    if (block == nullptr) return error.ResourceExhausted(hardware_.uid(), ": no memory left for ", bytes, " bytes");
    buf = {0, WEIR_SPACE_DEVICE, block->handle(), 0, bytes, nullptr};
    return WEIR_OK;
  }
  void Free(const weir_buf& buf) {
    const std::shared_ptr<Block> block = hardware_.Remove(buf.handle);
    if (block == nullptr) return Journal::Get().Race("memory is freed that is not allocated");
    if (const std::string race = Order::Get().Free(block->number()); !race.empty()) Journal::Get().Race(race);
  }
  int32_t AllocOrdered(Stream& stream, uint64_t bytes, weir_buf& buf, const Error& error) {
    if (const int32_t code = Alloc(bytes, WEIR_SPACE_DEVICE, buf, error); code != WEIR_OK) return code;
    const Access all{hardware_.Find(buf.handle)->number(), 0, bytes, true};
    (void)Order::Get().Enqueue(stream.number(), "alloc on a stream", {&all, 1});
    return WEIR_OK;
  }
  int32_t FreeOrdered(Stream& stream, const weir_buf& buf, const Error& error) {
    const std::shared_ptr<Block> block = hardware_.Remove(buf.handle);
    if (block == nullptr) return error.InvalidArgument("memory is freed that is not allocated");
    const std::string race = Order::Get().FreeOn(stream.number(), block->number());
    if (race.empty()) return WEIR_OK;
    Journal::Get().Race(race);
    return error.Fail(WEIR_INTERNAL, race);
  }
  void MemInfo(uint32_t, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const {
    total_bytes = hardware_.capacity();
    free_bytes = largest_bytes = total_bytes - hardware_.allocated();
  }

  int32_t Copy(Stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes, const Error& error) {
    return Move(stream, to, hardware_, from, bytes, error);
  }
  static int32_t CanCopy(AsyncDevice&, AsyncDevice&) { return WEIR_COPY_DIRECT; }
  int32_t CopyPeer(const weir_buf& to, AsyncDevice& source, const weir_buf& from, uint64_t bytes, Stream* stream,
                   const Error& error) {
    return Move(stream, to, source.hardware_, from, bytes, error);
  }
  int32_t Fill(Stream* stream, const weir_buf& to, uint8_t value, uint64_t bytes, const Error& error) {
    Place place;
    if (const int32_t code = Find(hardware_, to, bytes, true, place, error); code != WEIR_OK) return code;
    auto run = [place, value, bytes](weir_error*) {
      std::memset(place.address, value, bytes);
      return WEIR_OK;
    };
    return Do(stream, "fill", {&place.access, 1}, 0, std::move(run), error);
  }

  int32_t Health() const { return hardware_.lost() ? WEIR_HEALTH_LOST : WEIR_HEALTH_OK; }
  void SetOptions(const Options& options) { hardware_.Configure(options); }

  int32_t Native(uint32_t kind, const void* object, uint64_t& value, const Error& error) {
    if (kind != WEIR_NATIVE_STREAM) return error.Unimplemented("only streams have a native value here");
    value = reinterpret_cast<uint64_t>(&static_cast<const Stream*>(object)->queue());
    return WEIR_OK;
  }

  void Profile(weir_profile& profile) const {
    profile.provenance = WEIR_PROVENANCE_DATASHEET;
    profile.peak_flops_per_ns[WEIR_FLOAT32] = 40;
    profile.peak_flops_per_ns[WEIR_FLOAT64] = 20;
    profile.bandwidth_bytes_per_ns = 20;
    profile.launch_ns = 5000;
    profile.issue_gap_ns = 500;
    profile.sync_wake_ns = 20000;
    profile.queues = 4;
    profile.copy_engines = 1;
  }

 private:
  /// One side of a copy.
  struct Place {
    std::shared_ptr<Block> block;  // null in host memory
    char* address = nullptr;
    Access access;
  };

  bool Alive(const Error& error) const {
    if (!hardware_.lost()) return true;
    (void)Fault{WEIR_UNAVAILABLE, WEIR_ERROR_DEVICE_LOST, "device '" + hardware_.uid() + "' is lost"}.Tell(error);
    return false;
  }

  static int32_t Find(Hardware& hardware, const weir_buf& buf, uint64_t bytes, bool writes, Place& place,
                      const Error& error) {
    if (buf.host != nullptr) {
      place.address = static_cast<char*>(buf.host);
      const auto begin = reinterpret_cast<uint64_t>(buf.host);
      place.access = {0, begin, begin + bytes, writes};
      return WEIR_OK;
    }
    place.block = hardware.Find(buf.handle);
    if (place.block == nullptr) {
      const std::string text = "a copy uses memory that is not " + hardware.uid() + "'s, or was freed";
      Journal::Get().Race(text);
      return error.InvalidArgument(text);
    }
    if (buf.offset > place.block->bytes() || bytes > place.block->bytes() - buf.offset) {
      return error.InvalidArgument("bytes ", buf.offset, " to ", buf.offset + bytes, " of a block of ",
                                   place.block->bytes());
    }
    place.address = place.block->base() + buf.offset;
    place.access = {place.block->number(), buf.offset, buf.offset + bytes, writes};
    return WEIR_OK;
  }

  int32_t Move(Stream* stream, const weir_buf& to, Hardware& source, const weir_buf& from, uint64_t bytes,
               const Error& error) {
    Place target, origin;
    if (const int32_t code = Find(hardware_, to, bytes, true, target, error); code != WEIR_OK) return code;
    if (const int32_t code = Find(source, from, bytes, false, origin, error); code != WEIR_OK) return code;
    const Access accesses[] = {origin.access, target.access};
    auto run = [target, origin, bytes](weir_error*) {
      std::memmove(target.address, origin.address, bytes);
      return WEIR_OK;
    };
    const bool down = target.block == nullptr, up = origin.block == nullptr;
    const char* const name = down ? "copy to the host" : up ? "copy from the host" : "copy";
    return Do(stream, name, accesses, bytes, std::move(run), error);
  }

  /// Enqueues the operation, or runs it at once if `stream` is null.
  int32_t Do(Stream* stream, const char* name, std::span<const Access> accesses, uint64_t copied,
             std::function<int32_t(weir_error*)> run, const Error& error) {
    if (stream != nullptr) return stream->Enqueue(name, accesses, copied, std::move(run), error);
    if (InCallback()) {
      const std::string text = std::string(name) + " without a stream inside an on_complete callback";
      Journal::Get().Misuse(text);
      return error.Fail(WEIR_FAILED_PRECONDITION, text);
    }
    if (const std::string race = Order::Get().OnHost(name, accesses); !race.empty()) {
      Journal::Get().Race(race);
      return error.Fail(WEIR_INTERNAL, race);
    }
    if (const Fault fault = hardware_.Begin(copied)) return fault.Tell(error);
    return run(error.record());
  }

  Hardware& hardware_;
};

/// The control table of async_platform.h.
struct Control {
  static constexpr uint32_t kKind = 0;
  static const void* Interface(std::string_view id, std::string_view) {
    if (id != WEIR_ASYNC_CONTROL_INTERFACE) return nullptr;
    static const weir_async_control control = {sizeof(weir_async_control), 0, &Configure, &Counts, &FirstFault, &Reset};
    return &control;
  }

 private:
  static int32_t Configure(weir_str uid, const weir_opt* options, uint64_t count, weir_error* record) noexcept {
    return weir::sdk::Guard(record, [&]() -> int32_t {
      if (Hardware::Configure(weir::sdk::ToView(uid), Options(options, count))) return WEIR_OK;
      return Error(record).Fail(WEIR_NOT_FOUND, "there is no device '", uid, "'");
    });
  }
  static void Counts(weir_async_counts* counts) noexcept {
    (void)weir::sdk::Guard(nullptr, [&] {
      Journal::Get().Read(counts);
      return WEIR_OK;
    });
  }
  static uint64_t FirstFault(char* text, uint64_t capacity) noexcept {
    uint64_t size = 0;
    (void)weir::sdk::Guard(nullptr, [&] {
      const std::string fault = Journal::Get().first_fault();
      size = fault.size();
      std::memcpy(text, fault.data(), std::min<uint64_t>(size, capacity));
      return WEIR_OK;
    });
    return size;
  }
  static void Reset() noexcept { Journal::Get().Reset(); }
};

}  // namespace
}  // namespace async_device

WEIR_PLUGIN("async_device", "1.0.0", "weir", "", weir::sdk::StreamDevices<async_device::AsyncDevice>,
            async_device::Control)
