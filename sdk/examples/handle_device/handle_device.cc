// A device whose memory has handles instead of addresses, and whose work runs later in the order of its queue. The
// handles are imitated by numbers that no address of this process has.
#include "queue.h"

#include <chrono>
#include <cstring>

#include "kernels.h"
#include "sdk/cpp/plugin.h"
#include "sdk/cpp/stream_device.h"

namespace handle_device {
namespace {

using weir::sdk::Emit;
using weir::sdk::Error;
using weir::sdk::Options;
using weir::sdk::Str;

constexpr int64_t kDefaultBytes = int64_t{64} << 20;
constexpr uint64_t kAlignment = 256;

weir_option_spec IntOption(std::string_view key, std::string_view doc, int64_t value, double minimum) {
  weir_option_spec spec{};
  spec.struct_size = sizeof spec;
  spec.type = WEIR_VALUE_INT;
  spec.has_range = 1;
  spec.key = Str(key);
  spec.doc = Str(doc);
  spec.default_value.key = spec.key;
  spec.default_value.type = WEIR_VALUE_INT;
  spec.default_value.value.i = value;
  spec.minimum = minimum;
  spec.maximum = double{1u << 30};
  return spec;
}

/// One open device.
class HandleDevice {
 public:
  using Stream = Queue;
  using Event = handle_device::Event;
  static constexpr std::string_view kPlatformAbi = WEIR_HANDLE_PLATFORM;

  HandleDevice(uint64_t capacity, uint64_t largest) : memory_(capacity, largest, kAlignment) {}

  static std::span<const weir_option_spec* const> OptionSpecs() {
    static const weir_option_spec memory =
        IntOption("memory_bytes", "capacity of the device's memory in bytes", kDefaultBytes, 1 << 16);
    static const weir_option_spec largest =
        IntOption("largest_bytes", "largest block in bytes; 0: as large as the memory", 0, 0);
    static const weir_option_spec* const specs[] = {&memory, &largest};
    return specs;
  }

  static void Enumerate(const Options& options, const Emit& emit) {
    emit({.uid = "handle-0",
          .kind = "HANDLE",
          .platform = WEIR_HANDLE_PLATFORM,
          .name = "example with opaque handles",
          .flags = WEIR_DEVICE_MUST_GROW | WEIR_DEVICE_OPT_IN,
          .memory_bytes = static_cast<uint64_t>(options.Int("memory_bytes", kDefaultBytes)),
          .alignment = kAlignment,
          .largest_allocation = static_cast<uint64_t>(options.Int("largest_bytes", 0))});
  }
  static std::unique_ptr<HandleDevice> Open(std::string_view uid, const Options& options, const Error&) {
    if (uid != "handle-0") return nullptr;
    const auto capacity = static_cast<uint64_t>(options.Int("memory_bytes", kDefaultBytes));
    const auto largest = static_cast<uint64_t>(options.Int("largest_bytes", 0));
    return std::make_unique<HandleDevice>(capacity, largest != 0 ? largest : capacity);
  }

  std::unique_ptr<Stream> NewStream(int32_t, const Error&) { return std::make_unique<Queue>(memory_, timeline_); }
  std::unique_ptr<Event> NewEvent(const Error&) { return std::make_unique<Event>(); }

  int32_t Alloc(uint64_t bytes, uint32_t, weir_buf& buf, const Error& error) {
    const uint64_t handle = memory_.Allocate(bytes, error);
    if (handle == 0) return WEIR_RESOURCE_EXHAUSTED;
    // `host` stays null: registers then have the byte offset inside the handle in `data`.
    buf = {0, WEIR_SPACE_DEVICE, handle, 0, bytes, nullptr};
    return WEIR_OK;
  }
  void Free(const weir_buf& buf) { memory_.Free(buf.handle); }
  void MemInfo(uint32_t, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const {
    total_bytes = memory_.capacity();
    free_bytes = total_bytes - memory_.used();
    largest_bytes = std::min(free_bytes, memory_.largest());
  }

  int32_t Copy(Stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes, const Error& error) {
    // Host memory is named by its address, and is read or written when the copy runs: the core keeps it until then.
    std::vector<weir_handle_operand> operands;
    if (to.host == nullptr) operands.push_back({to.handle, to.offset, bytes});
    if (from.host == nullptr) operands.push_back({from.handle, from.offset, bytes});
    auto run = [to = to.host, from = from.host, bytes](void* const* addresses, weir_error*) -> int32_t {
      void* const target = to != nullptr ? to : *addresses++;
      std::memmove(target, from != nullptr ? from : *addresses, bytes);
      return WEIR_OK;
    };
    return Do(stream, "copy", WEIR_ACTIVITY_COPY, operands, std::move(run), error);
  }
  int32_t Fill(Stream* stream, const weir_buf& to, uint8_t value, uint64_t bytes, const Error& error) {
    const weir_handle_operand operand = {to.handle, to.offset, bytes};
    auto run = [value, bytes](void* const* addresses, weir_error*) -> int32_t {
      std::memset(addresses[0], value, bytes);
      return WEIR_OK;
    };
    return Do(stream, "fill", WEIR_ACTIVITY_FILL, {&operand, 1}, std::move(run), error);
  }

  int32_t Native(uint32_t kind, const void* object, uint64_t& value, const Error& error) {
    if (kind == WEIR_NATIVE_STREAM) {
      value = reinterpret_cast<uint64_t>(&static_cast<const Queue*>(object)->native());
    } else if (kind == WEIR_NATIVE_BUFFER) {
      value = static_cast<const weir_buf*>(object)->handle;
    } else if (kind == WEIR_NATIVE_DEVICE) {
      value = 1;
    } else {
      return error.Unimplemented("platform ", kPlatformAbi, " has no native value of kind ", kind);
    }
    return WEIR_OK;
  }

  int32_t StartProfiling(uint32_t kinds, const Error&) {
    timeline_.Start(kinds);
    return WEIR_OK;
  }
  int32_t StopProfiling(const Error&) {
    timeline_.Start(0);
    return WEIR_OK;
  }
  uint64_t DrainActivities(const weir::sdk::EmitActivity& emit) {
    uint64_t lost = 0;
    for (const weir_activity& activity : timeline_.Take(&lost)) emit(activity);
    return lost;
  }
  int32_t ReadClocks(uint64_t& device_ns, uint64_t& host_ns, const Error&) {
    device_ns = Timeline::Now();
    host_ns = static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
    return WEIR_OK;
  }

  void Profile(weir_profile& profile) const {
    profile.provenance = WEIR_PROVENANCE_DATASHEET;
    profile.peak_flops_per_ns[WEIR_FLOAT32] = 2;
    profile.bandwidth_bytes_per_ns = 4;
    profile.launch_ns = 5000;
    profile.sync_wake_ns = 20000;
    profile.queues = 2;
    profile.copy_engines = 1;
  }

 private:
  /// Submits the work, or runs it at once if `stream` is null.
  int32_t Do(Stream* stream, std::string_view name, uint32_t kind, std::span<const weir_handle_operand> operands,
             std::function<int32_t(void* const*, weir_error*)> run, const Error& error) {
    if (stream != nullptr) return stream->Submit(name, kind, operands, std::move(run), error);
    Queue once(memory_, timeline_);
    if (const int32_t code = once.Submit(name, kind, operands, std::move(run), error); code != WEIR_OK) return code;
    return once.Finish(error);
  }

  Memory memory_;
  Timeline timeline_;
};

}  // namespace
}  // namespace handle_device

WEIR_PLUGIN("handle_device", "1.0.0", "weir", WEIR_HANDLE_PLATFORM,
            weir::sdk::StreamDevices<handle_device::HandleDevice>, weir::sdk::Kernels<handle_device::AddKernels>)
