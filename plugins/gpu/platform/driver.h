// The driver's interface for the device plugin: calls that CUDA, HIP and the emulation share. Addresses are numbers;
// `card` is the driver's ordinal. Functions are thread-safe unless a stream is used by two threads at once. Functions
// that take a card or a stream make its card the current one of the calling thread.
#ifndef WEIR_PLUGINS_GPU_PLATFORM_DRIVER_H_
#define WEIR_PLUGINS_GPU_PLATFORM_DRIVER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/gpu/platform/platform.h"
#include "sdk/cpp/options.h"

namespace weir::gpu::driver {

struct EventObject;
struct CaptureObject;

/// Properties of a card that the driver reports without a context.
struct Card {
  int ordinal = 0;
  std::string uid;       // stable: UUID or PCI address
  std::string class_id;  // equal for interchangeable cards
  std::string name;
  std::string driver_version;
  uint64_t memory_bytes = 0;
  int numa_node = -1;
  int copy_engines = 1;
  uint32_t flags = 0;  // WEIR_DEVICE_*
  // Peak rates for the cost profile; 0 = unknown.
  double float32_flops_per_ns = 0;
  double float64_flops_per_ns = 0;
  double float16_flops_per_ns = 0;
  double bandwidth_bytes_per_ns = 0;
  double cache_bytes = 0;
  double launch_ns = 0;
  double link_bytes_per_ns = 0;
  double link_latency_ns = 0;
};

std::span<const weir_option_spec* const> OptionSpecs();
/// Creates no context. Without cards, `why` tells the reason; a missing driver is such a reason, not an error.
std::vector<Card> Cards(const sdk::Options& options, std::string& why);
/// Creates the card's context; calls nest. `options`: those of the schema.
Outcome Open(int card, const sdk::Options& options);
void Close(int card);
/// Ends the driver's own threads; no other call follows.
void Stop();
/// True if the card fails until Open is called again after the last Close.
bool ResetNeeded(int card);

Outcome Alloc(int card, uint64_t bytes, uint64_t& address);
void Free(int card, uint64_t address);
Outcome MemInfo(int card, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes);
Outcome AllocPinned(int card, uint64_t bytes, void*& host);
void FreePinned(int card, void* host);
Outcome RegisterHost(int card, void* host, uint64_t bytes);
void UnregisterHost(int card, void* host);

Outcome NewStream(int card, int priority, NativeStream& stream);
/// Waits for the stream's work.
void DeleteStream(int card, NativeStream stream);
Outcome SyncStream(NativeStream stream);
Outcome AllocOrdered(int card, NativeStream stream, uint64_t bytes, uint64_t& address);
Outcome FreeOrdered(int card, NativeStream stream, uint64_t address);

Outcome NewEvent(int card, EventObject*& event);
void DeleteEvent(EventObject* event);
Outcome Record(EventObject* event, NativeStream stream);
Outcome Wait(NativeStream stream, EventObject* event);
/// `reached` is true after failures too; the result is that of the work before the event.
Outcome Query(EventObject* event, bool& reached);
Outcome Sync(EventObject* event);
/// Calls fn once, with the result of the work before the event, on a thread of the driver or the calling one.
Outcome Notify(EventObject* event, void (*fn)(void* arg, Outcome result), void* arg);
uint64_t Native(EventObject* event);

enum class Direction { kToDevice, kToHost, kWithin };
Outcome CopyAsync(NativeStream stream, Direction direction, void* to, const void* from, uint64_t bytes);
/// `stream` belongs to `to_card`.
Outcome CopyPeerAsync(NativeStream stream, int to_card, void* to, int from_card, const void* from, uint64_t bytes);
/// True if to_card reads from_card's memory directly; enables it on first use.
bool Peers(int from_card, int to_card);

#if defined(WEIR_GPU_EMULATED)
const weir_emulated_counts* EmulatedCounts();
#endif
Outcome BeginCapture(NativeStream stream);
Outcome EndCapture(NativeStream stream, CaptureObject*& capture);
Outcome Replay(CaptureObject* capture, NativeStream stream);
void DeleteCapture(CaptureObject* capture);

}  // namespace weir::gpu::driver

#endif  // WEIR_PLUGINS_GPU_PLATFORM_DRIVER_H_
