// A card as a device of weir: memory, copies, streams, costs, capture. One class for CUDA, ROCm and the emulation.
//
// Buffers of device memory have handle 0, and their offset is the address: kernels get addresses as data of their
// registers, and the host, which cannot read them, gets no pointer.
#ifndef WEIR_PLUGINS_GPU_DEVICE_GPU_DEVICE_H_
#define WEIR_PLUGINS_GPU_DEVICE_GPU_DEVICE_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "plugins/gpu/device/stream.h"
#include "plugins/gpu/platform/driver.h"
#include "sdk/cpp/stream_device.h"

namespace weir::gpu {

class GpuDevice {
 public:
  using Stream = gpu::Stream;
  using Event = gpu::Event;
  static constexpr std::string_view kPlatformAbi = WEIR_GPU_PLATFORM;

  static std::span<const weir_option_spec* const> OptionSpecs() { return driver::OptionSpecs(); }
  static void Enumerate(const sdk::Options& options, const sdk::Emit& emit) { (void)EnumerateOr(options, emit); }
  /// The reason if there is no card; else empty.
  static std::string EnumerateOr(const sdk::Options& options, const sdk::Emit& emit);
  static std::unique_ptr<GpuDevice> Open(std::string_view uid, const sdk::Options& options, const sdk::Error& error);
  /// Takes over an opened card.
  explicit GpuDevice(driver::Card card) : card_(std::move(card)) {}
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  std::unique_ptr<Stream> NewStream(int32_t priority, const sdk::Error& error);
  std::unique_ptr<Event> NewEvent(const sdk::Error& error);

  int32_t Alloc(uint64_t bytes, uint32_t space, weir_buf& buf, const sdk::Error& error);
  void Free(const weir_buf& buf);
  void MemInfo(uint32_t space, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const;
  int32_t Copy(Stream* stream, const weir_buf& to, const weir_buf& from, uint64_t bytes, const sdk::Error& error);
  int32_t Fill(Stream* stream, const weir_buf& to, uint8_t value, uint64_t bytes, const sdk::Error& error);
  int32_t AllocOrdered(Stream& stream, uint64_t bytes, weir_buf& buf, const sdk::Error& error);
  int32_t FreeOrdered(Stream& stream, const weir_buf& buf, const sdk::Error& error);
  int32_t AllocPinned(uint64_t bytes, weir_buf& buf, const sdk::Error& error);
  void FreePinned(const weir_buf& buf);
  int32_t RegisterHost(void* host, uint64_t bytes, const sdk::Error& error);
  void UnregisterHost(void* host);
  static int32_t CanCopy(GpuDevice& from, GpuDevice& to);
  int32_t CopyPeer(const weir_buf& to, GpuDevice& source, const weir_buf& from, uint64_t bytes, Stream* stream,
                   const sdk::Error& error);
  int32_t Native(uint32_t kind, const void* object, uint64_t& value, const sdk::Error& error);

  int32_t Health() const;
  /// Guesses from the driver's properties.
  void Profile(weir_profile& profile) const;
  void Link(GpuDevice* peer, weir_link& link) const;

 private:
  /// Calls `enqueue` with the stream, or with a stream of the device's own and waits.
  template <class Enqueue>
  int32_t On(Stream* stream, std::string_view what, const sdk::Error& error, Enqueue&& enqueue);

  const driver::Card card_;
  std::mutex mutex_;               // protects own_, for calls without a stream
  std::unique_ptr<Stream> own_;    // created on first use
};

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_DEVICE_GPU_DEVICE_H_
