#include "plugins/gpu/device/gpu_device.h"

#include <utility>

#include "sdk/cpp/plugin.h"

namespace weir::gpu {
namespace {

constexpr uint64_t kAlignment = 256;

void* At(const weir_buf& buf) { return reinterpret_cast<void*>(buf.handle + buf.offset); }

weir_buf OnDevice(uint64_t address, uint64_t bytes) { return {0, WEIR_SPACE_DEVICE, 0, address, bytes, nullptr}; }

void Set(double& to, double value) {
  if (value > 0) to = value;
}

}  // namespace

std::string GpuDevice::EnumerateOr(const sdk::Options& options, const sdk::Emit& emit) {
  std::string why;
  for (const driver::Card& card : driver::Cards(options, why)) {
    emit({.uid = card.uid,
          .class_id = card.class_id,
          .kind = "GPU",
          .platform = WEIR_GPU_PLATFORM,
          .name = card.name,
          .driver_version = card.driver_version,
          .flags = card.flags | WEIR_DEVICE_PEER | WEIR_DEVICE_GRAPH_CAPTURE,
          .memory_bytes = card.memory_bytes,
          .alignment = kAlignment,
          .numa_node = card.numa_node});
  }
  return why;
}

std::unique_ptr<GpuDevice> GpuDevice::Open(std::string_view uid, const sdk::Options& options,
                                           const sdk::Error& error) {
  std::string why;
  std::vector<driver::Card> cards = driver::Cards(options, why);
  for (driver::Card& card : cards) {
    if (card.uid != uid) continue;
    const Outcome opened = driver::Open(card.ordinal, options);
    if (opened.ok()) return std::make_unique<GpuDevice>(std::move(card));
    (void)opened.Tell(error, "card '" + card.uid + "' cannot be opened");
    return nullptr;
  }
  (void)error.Fail(WEIR_UNAVAILABLE, "card '", uid, "' was listed and is gone", why.empty() ? "" : ": ",
                   std::string_view(why));
  return nullptr;
}

GpuDevice::~GpuDevice() {
  own_.reset();
  driver::Close(card_.ordinal);
}

std::unique_ptr<Stream> GpuDevice::NewStream(int32_t priority, const sdk::Error& error) {
  NativeStream native = nullptr;
  if (driver::NewStream(card_.ordinal, priority, native).Tell(error, "stream") != WEIR_OK) return nullptr;
  return std::make_unique<Stream>(card_.ordinal, native);
}

std::unique_ptr<Event> GpuDevice::NewEvent(const sdk::Error& error) {
  driver::EventObject* native = nullptr;
  if (driver::NewEvent(card_.ordinal, native).Tell(error, "event") != WEIR_OK) return nullptr;
  return std::make_unique<Event>(native);
}

template <class Enqueue>
int32_t GpuDevice::On(Stream* stream, std::string_view what, const sdk::Error& error, Enqueue&& enqueue) {
  if (stream != nullptr) return stream->Do(what, error, [&] { return enqueue(stream->native()); });
  const std::lock_guard lock(mutex_);
  if (own_ == nullptr) own_ = NewStream(0, error);
  if (own_ == nullptr) return WEIR_UNAVAILABLE;
  return own_->Do(what, error, [&] {
    const Outcome outcome = enqueue(own_->native());
    return outcome.ok() ? driver::SyncStream(own_->native()) : outcome;
  });
}

int32_t GpuDevice::Alloc(uint64_t bytes, uint32_t space, weir_buf& buf, const sdk::Error& error) {
  if (space == WEIR_SPACE_PINNED) return AllocPinned(bytes, buf, error);
  if (space != WEIR_SPACE_DEVICE) return error.Unimplemented("only device memory and pinned memory");
  uint64_t address = 0;
  if (const Outcome made = driver::Alloc(card_.ordinal, bytes, address); !made.ok()) {
    if (made.code() != WEIR_RESOURCE_EXHAUSTED) return made.Tell(error, "alloc");
    uint64_t free_bytes = 0, total_bytes = 0, largest_bytes = 0;
    (void)driver::MemInfo(card_.ordinal, free_bytes, total_bytes, largest_bytes);
    (void)made.Tell(error, "");
    return error.ResourceExhausted("no ", bytes, " bytes of memory on ", card_.name, " (", free_bytes, " of ",
                                   total_bytes, " are free)");
  }
  buf = OnDevice(address, bytes);
  return WEIR_OK;
}

void GpuDevice::Free(const weir_buf& buf) {
  if (buf.host != nullptr) return FreePinned(buf);
  driver::Free(card_.ordinal, buf.handle + buf.offset);
}

void GpuDevice::MemInfo(uint32_t, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const {
  (void)driver::MemInfo(card_.ordinal, free_bytes, total_bytes, largest_bytes);
}

int32_t GpuDevice::Copy(Stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes,
                        const sdk::Error& error) {
  if (to.host != nullptr && from.host != nullptr) {
    return error.InvalidArgument("a copy from host memory to host memory");
  }
  const auto direction = to.host != nullptr     ? driver::Direction::kToHost
                         : from.host != nullptr ? driver::Direction::kToDevice
                                                : driver::Direction::kWithin;
  void* const target = to.host != nullptr ? to.host : At(to);
  const void* const source = from.host != nullptr ? from.host : At(from);
  return On(stream, "copy", error,
            [&](NativeStream on) { return driver::CopyAsync(on, direction, target, source, bytes); });
}

int32_t GpuDevice::Fill(Stream* stream, const weir_buf& to, uint8_t value, uint64_t bytes, const sdk::Error& error) {
  return On(stream, "fill", error, [&](NativeStream on) { return gpu::Fill(on, At(to), value, bytes); });
}

int32_t GpuDevice::AllocOrdered(Stream& stream, uint64_t bytes, weir_buf& buf, const sdk::Error& error) {
  return stream.Do("alloc on a stream", error, [&] {
    uint64_t address = 0;
    const Outcome made = driver::AllocOrdered(card_.ordinal, stream.native(), bytes, address);
    if (made.ok()) buf = OnDevice(address, bytes);
    return made;
  });
}

int32_t GpuDevice::FreeOrdered(Stream& stream, const weir_buf& buf, const sdk::Error& error) {
  return stream.Do("free on a stream", error, [&] {
    return driver::FreeOrdered(card_.ordinal, stream.native(), buf.handle + buf.offset);
  });
}

int32_t GpuDevice::AllocPinned(uint64_t bytes, weir_buf& buf, const sdk::Error& error) {
  void* host = nullptr;
  const Outcome made = driver::AllocPinned(card_.ordinal, bytes, host);
  if (!made.ok()) return made.Tell(error, "pinned memory");
  buf = {0, WEIR_SPACE_PINNED, reinterpret_cast<uint64_t>(host), 0, bytes, host};
  return WEIR_OK;
}

void GpuDevice::FreePinned(const weir_buf& buf) {
  driver::FreePinned(card_.ordinal, reinterpret_cast<void*>(buf.handle));
}

int32_t GpuDevice::RegisterHost(void* host, uint64_t bytes, const sdk::Error& error) {
  return driver::RegisterHost(card_.ordinal, host, bytes).Tell(error, "register host memory");
}

void GpuDevice::UnregisterHost(void* host) { driver::UnregisterHost(card_.ordinal, host); }

int32_t GpuDevice::CanCopy(GpuDevice& from, GpuDevice& to) {
  if (from.card_.ordinal == to.card_.ordinal) return WEIR_COPY_DIRECT;
  return driver::Peers(from.card_.ordinal, to.card_.ordinal) ? WEIR_COPY_DIRECT : WEIR_COPY_NO;
}

int32_t GpuDevice::CopyPeer(const weir_buf& to, GpuDevice& source, const weir_buf& from, uint64_t bytes,
                            Stream* stream, const sdk::Error& error) {
  return On(stream, "copy between cards", error, [&](NativeStream on) {
    return driver::CopyPeerAsync(on, card_.ordinal, At(to), source.card_.ordinal, At(from), bytes);
  });
}

int32_t GpuDevice::Native(uint32_t kind, const void* object, uint64_t& value, const sdk::Error& error) {
  switch (kind) {
    case WEIR_NATIVE_DEVICE:
      value = static_cast<uint64_t>(card_.ordinal);
      return WEIR_OK;
    case WEIR_NATIVE_STREAM:
      value = reinterpret_cast<uint64_t>(static_cast<const Stream*>(object)->native());
      return WEIR_OK;
    case WEIR_NATIVE_EVENT:
      value = driver::Native(static_cast<const Event*>(object)->native());
      return WEIR_OK;
    case WEIR_NATIVE_BUFFER: {
      const auto& buf = *static_cast<const weir_buf*>(object);
      value = buf.host != nullptr ? reinterpret_cast<uint64_t>(buf.host) : buf.handle + buf.offset;
      return WEIR_OK;
    }
    default:
      return error.Unimplemented("the card's primary context is used; it has no value of its own here");
  }
}

int32_t GpuDevice::Health() const {
#if defined(WEIR_GPU_EMULATED)
  return driver::ResetNeeded(card_.ordinal) ? WEIR_HEALTH_RESET_NEEDED : WEIR_HEALTH_OK;
#else
  // The primary context serves the kernel sets too, so it is not reset while the process lives.
  return driver::ResetNeeded(card_.ordinal) ? WEIR_HEALTH_LOST : WEIR_HEALTH_OK;
#endif
}

void GpuDevice::Profile(weir_profile& profile) const {
  profile.provenance = WEIR_PROVENANCE_UNKNOWN;
  Set(profile.peak_flops_per_ns[WEIR_FLOAT32], card_.float32_flops_per_ns);
  Set(profile.peak_flops_per_ns[WEIR_FLOAT64], card_.float64_flops_per_ns);
  Set(profile.peak_flops_per_ns[WEIR_FLOAT16], card_.float16_flops_per_ns);
  Set(profile.peak_flops_per_ns[WEIR_BFLOAT16], card_.float16_flops_per_ns);
  for (const uint32_t dtype : {WEIR_INT32, WEIR_UINT32, WEIR_INT16, WEIR_UINT16, WEIR_INT8, WEIR_UINT8}) {
    Set(profile.peak_flops_per_ns[dtype], card_.float32_flops_per_ns / 2);
  }
  for (const uint32_t dtype : {WEIR_INT64, WEIR_UINT64}) {
    Set(profile.peak_flops_per_ns[dtype], card_.float32_flops_per_ns / 8);
  }
  Set(profile.bandwidth_bytes_per_ns, card_.bandwidth_bytes_per_ns);
  Set(profile.cache_bytes, card_.cache_bytes);
  Set(profile.cache_bandwidth_bytes_per_ns, 3 * card_.bandwidth_bytes_per_ns);
  Set(profile.launch_ns, card_.launch_ns);
  Set(profile.issue_gap_ns, card_.launch_ns / 4);
  Set(profile.sync_wake_ns, 2 * card_.launch_ns);
  // A card is busy once each of its lanes has a few elements: work of about the time of a launch.
  Set(profile.half_saturation_flops, card_.launch_ns * card_.float32_flops_per_ns / 2);
  Set(profile.half_saturation_bytes, card_.launch_ns * card_.bandwidth_bytes_per_ns / 2);
  profile.queues = 4;
  profile.copy_engines = static_cast<uint32_t>(card_.copy_engines);
}

void GpuDevice::Link(GpuDevice* peer, weir_link& link) const {
  const bool direct = peer != nullptr && driver::Peers(card_.ordinal, peer->card_.ordinal);
  link.flags = peer == nullptr || direct ? 1 : 0;
  link.latency_ns = card_.link_latency_ns * (direct ? 0.5 : 1);
  link.bandwidth_pinned_bytes_per_ns = card_.link_bytes_per_ns * (direct ? 2 : 1);
  link.bandwidth_pageable_bytes_per_ns = card_.link_bytes_per_ns * (direct ? 2 : 0.4);
  link.max_concurrent = static_cast<uint32_t>(card_.copy_engines);
  link.provenance = WEIR_PROVENANCE_UNKNOWN;
}

namespace {

/// The slots that sdk/cpp/stream_device.h leaves empty: links, capture, registered memory, current contexts.
struct Tables : sdk::StreamDevices<GpuDevice> {
  using Base = sdk::StreamDevices<GpuDevice>;

  static void Stop() { driver::Stop(); }

  static const void* Interface(std::string_view id, std::string_view targets) {
    const void* const table = Base::Interface(id, targets);
#if defined(WEIR_GPU_EMULATED)
    if (id == WEIR_EMULATED_COUNTS_INTERFACE) return driver::EmulatedCounts();
#endif
    if (id == WEIR_DEVICE_INTERFACE) {
      static const weir_device_api api = WithReason(*static_cast<const weir_device_api*>(table));
      return &api;
    }
    if (id == WEIR_STREAM_INTERFACE) {
      static const weir_stream_api api = WithCapture(*static_cast<const weir_stream_api*>(table));
      return &api;
    }
    if (id == WEIR_MEMORY_INTERFACE) {
      static const weir_memory_api api = WithMore(*static_cast<const weir_memory_api*>(table));
      return &api;
    }
    if (id == WEIR_COST_INTERFACE) {
      static const weir_cost_api api = WithLinks(*static_cast<const weir_cost_api*>(table));
      return &api;
    }
    return table;
  }
  static int32_t Start(const sdk::Options&, const sdk::Error&) { return WEIR_OK; }

 private:
  static GpuDevice& Of(weir_device* device) { return *reinterpret_cast<GpuDevice*>(device); }
  static Stream& Of(weir_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
  static driver::CaptureObject* Of(weir_capture* capture) { return reinterpret_cast<driver::CaptureObject*>(capture); }

  // Without cards, success comes with a text that says why.
  static weir_device_api WithReason(weir_device_api api) {
    api.enumerate = [](const weir_opt* options, uint64_t count, void (*emit)(void*, const weir_device_record*),
                       void* ctx, weir_error* error) noexcept {
      return sdk::Guard(error, [&]() -> int32_t {
        const std::string why = GpuDevice::EnumerateOr(sdk::Options(options, count), sdk::Emit(emit, ctx));
        if (why.empty()) return WEIR_OK;
        return sdk::Error(error).Fail(WEIR_OK, WEIR_GPU_NAME, ": ", std::string_view(why));
      });
    };
    return api;
  }

  static weir_stream_api WithCapture(weir_stream_api api) {
    api.capture_begin = [](weir_stream* stream, weir_error* error) noexcept {
      return sdk::Guard(error, [&] {
        return Of(stream).Do("begin of a capture", sdk::Error(error),
                             [&] { return driver::BeginCapture(Of(stream).native()); });
      });
    };
    api.capture_end = [](weir_stream* stream, weir_capture** capture, weir_error* error) noexcept {
      return sdk::Guard(error, [&] {
        return Of(stream).Do("end of a capture", sdk::Error(error), [&] {
          driver::CaptureObject* made = nullptr;
          const Outcome ended = driver::EndCapture(Of(stream).native(), made);
          *capture = reinterpret_cast<weir_capture*>(made);
          return ended;
        });
      });
    };
    api.capture_launch = [](weir_capture* capture, weir_stream* stream, weir_error* error) noexcept {
      return sdk::Guard(error, [&] {
        return Of(stream).Do("launch of a capture", sdk::Error(error),
                             [&] { return driver::Replay(Of(capture), Of(stream).native()); });
      });
    };
    api.capture_free = [](weir_capture* capture) noexcept {
      (void)sdk::Guard(nullptr, [&] {
        driver::DeleteCapture(Of(capture));
        return WEIR_OK;
      });
    };
    return api;
  }

  static weir_memory_api WithMore(weir_memory_api api) {
    api.register_host = [](weir_device* device, void* host, uint64_t bytes, weir_error* error) noexcept {
      return sdk::Guard(error, [&] { return Of(device).RegisterHost(host, bytes, sdk::Error(error)); });
    };
    api.unregister_host = [](weir_device* device, void* host) noexcept {
      (void)sdk::Guard(nullptr, [&] {
        Of(device).UnregisterHost(host);
        return WEIR_OK;
      });
    };
    api.granularity = [](weir_device*, uint32_t, uint64_t* unit, uint64_t* alignment) noexcept -> int32_t {
      *unit = *alignment = kAlignment;
      return WEIR_OK;
    };
    return api;
  }

  static weir_cost_api WithLinks(weir_cost_api api) {
    api.link = [](weir_device* device, uint32_t, weir_device* peer, uint32_t, weir_link* link,
                  weir_error* error) noexcept -> int32_t {
      if (link->struct_size < sizeof(weir_link)) {
        return sdk::Error(error).InvalidArgument("the link record is too small");
      }
      return sdk::Guard(error, [&] {
        Of(device).Link(peer == nullptr ? nullptr : &Of(peer), *link);
        return WEIR_OK;
      });
    };
    return api;
  }
};

}  // namespace
}  // namespace weir::gpu

WEIR_PLUGIN(WEIR_GPU_NAME, "1.0.0", "weir", "", weir::gpu::Tables)
