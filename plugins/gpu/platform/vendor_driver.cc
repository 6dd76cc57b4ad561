// driver.h over the runtimes of CUDA and HIP. The default stream is never used.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "plugins/gpu/platform/driver.h"

namespace weir::gpu::driver {

struct EventObject {
  WEIR_GPU_API(Event_t) event = nullptr;
  int card = 0;
};
struct CaptureObject {
  WEIR_GPU_API(Graph_t) graph = nullptr;
  WEIR_GPU_API(GraphExec_t) executable = nullptr;
};

namespace {

using ErrorCode = WEIR_GPU_API(Error_t);
#if defined(WEIR_GPU_CUDA)
#define WEIR_GPU_ATTRIBUTE(name) cudaDevAttr##name
using Properties = cudaDeviceProp;
#else
#define WEIR_GPU_ATTRIBUTE(name) hipDeviceAttribute##name
using Properties = hipDeviceProp_t;
#endif

constexpr int kMostCards = 64;
std::array<std::atomic<bool>, kMostCards> card_is_lost{};

Outcome Of(ErrorCode code) { return Outcome(static_cast<int>(code)); }
Outcome Set(int card) { return Of(WEIR_GPU_API(SetDevice)(card)); }

// Remembers the loss of a card, which lasts as long as the process.
Outcome Judge(int card, ErrorCode code) {
  const Outcome outcome = Of(code);
  if ((outcome.flags() & WEIR_ERROR_DEVICE_LOST) != 0 && card >= 0 && card < kMostCards) {
    card_is_lost[static_cast<size_t>(card)] = true;
  }
  return outcome;
}

int CardOf(NativeStream stream) {
  int card = 0;
  if (Use(stream).ok()) (void)WEIR_GPU_API(GetDevice)(&card);
  return card;
}

// Calls back when events are reached. One thread polls: the callbacks of the runtimes are dropped after an error.
class Watcher {
 public:
  static Watcher& Get() {
    static Watcher* const watcher = new Watcher;
    return *watcher;
  }
  void Add(EventObject* event, void (*fn)(void*, Outcome), void* arg) {
    const std::lock_guard lock(mutex_);
    pending_.push_back({event, fn, arg});
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
    changed_.notify_all();
  }
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Pending {
    EventObject* event;
    void (*fn)(void*, Outcome);
    void* arg;
  };

  void Loop() {
    using namespace std::chrono_literals;
    int idle = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !pending_.empty(); });
      if (stop_) return;
      std::list<Pending> round;
      round.swap(pending_);
      lock.unlock();
      bool any = false;
      for (auto at = round.begin(); at != round.end();) {
        bool reached = false;
        const Outcome result = Query(at->event, reached);
        if (!reached) {
          ++at;
          continue;
        }
        any = true;
        at->fn(at->arg, result);
        at = round.erase(at);
      }
      idle = any ? 0 : idle + 1;
      if (idle > 100) {
        std::this_thread::sleep_for(50us);
      } else {
        std::this_thread::yield();
      }
      lock.lock();
      pending_.splice(pending_.begin(), round);
    }
  }

  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  std::list<Pending> pending_;
  std::thread thread_;
  bool stop_ = false;
};

double Attribute(decltype(WEIR_GPU_ATTRIBUTE(ClockRate)) which, int card) {
  int value = 0;
  return WEIR_GPU_API(DeviceGetAttribute)(&value, which, card) == WEIR_GPU_API(Success) ? value : 0;
}

std::string Version(int number) {
#if defined(WEIR_GPU_CUDA)
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
#else
  return std::to_string(number / 10000000) + "." + std::to_string(number / 100000 % 100);
#endif
}

// Rates follow from clock and widths, with the operations a multiprocessor does in a clock where they are known.
void SetRates(Card& card, const Properties& properties) {
  const double clock_ghz = Attribute(WEIR_GPU_ATTRIBUTE(ClockRate), card.ordinal) * 1e-6;
  const double units = properties.multiProcessorCount * clock_ghz;
#if defined(WEIR_GPU_CUDA)
  const int major = properties.major, minor = properties.minor;
  const double lanes = major == 8 && minor == 0 ? 64 : 128;
  const bool full_double = minor == 0 && major >= 8 && major <= 10;
  card.float32_flops_per_ns = units * lanes * 2;
  card.float64_flops_per_ns = units * (full_double ? 64 : 2) * 2;
  card.float16_flops_per_ns = units * (major >= 9 ? 2048 : 1024) * 2;
  card.launch_ns = 4000;
#else
  card.float32_flops_per_ns = units * 64 * 2;
  card.float64_flops_per_ns = units * 64 * 2;
  card.float16_flops_per_ns = units * 512 * 2;
  card.launch_ns = 7000;
#endif
  const double memory_ghz = Attribute(WEIR_GPU_ATTRIBUTE(MemoryClockRate), card.ordinal) * 1e-6;
#if defined(WEIR_GPU_CUDA)
  const double bits = Attribute(cudaDevAttrGlobalMemoryBusWidth, card.ordinal);
#else
  const double bits = Attribute(hipDeviceAttributeMemoryBusWidth, card.ordinal);
#endif
  card.bandwidth_bytes_per_ns = memory_ghz * 2 * bits / 8;
  card.cache_bytes = properties.l2CacheSize;
  card.link_bytes_per_ns = 20;
  card.link_latency_ns = 8000;
}

Card Describe(int ordinal, const Properties& properties) {
  Card card;
  card.ordinal = ordinal;
  card.name = properties.name;
  char place[32];
  std::snprintf(place, sizeof place, "%04x:%02x:%02x", static_cast<unsigned>(properties.pciDomainID),
                static_cast<unsigned>(properties.pciBusID), static_cast<unsigned>(properties.pciDeviceID));
  card.uid = place;
#if defined(WEIR_GPU_CUDA)
  card.uid += "/";
  for (const char byte : properties.uuid.bytes) {
    std::snprintf(place, sizeof place, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    card.uid += place;
  }
  card.class_id = card.name + " sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
#else
  card.class_id = card.name + " " + properties.gcnArchName;
#endif
  card.memory_bytes = properties.totalGlobalMem;
  int version = 0;
  if (WEIR_GPU_API(DriverGetVersion)(&version) == WEIR_GPU_API(Success)) card.driver_version = Version(version);
#if defined(WEIR_GPU_CUDA)
  card.copy_engines = std::max(1, properties.asyncEngineCount);
#endif
  SetRates(card, properties);
  return card;
}

}  // namespace

std::span<const weir_option_spec* const> OptionSpecs() { return {}; }

std::vector<Card> Cards(const sdk::Options&, std::string& why) {
  int count = 0;
  if (const ErrorCode code = WEIR_GPU_API(GetDeviceCount)(&count); code != WEIR_GPU_API(Success)) {
    why = WEIR_GPU_API(GetErrorString)(code);
    return {};
  }
  if (count == 0) why = "the driver lists no card";
  std::vector<Card> cards;
  for (int i = 0; i < std::min(count, kMostCards); ++i) {
    Properties properties{};
    if (WEIR_GPU_API(GetDeviceProperties)(&properties, i) == WEIR_GPU_API(Success)) {
      cards.push_back(Describe(i, properties));
    }
  }
  return cards;
}

// The context is created by the first call that needs it.
Outcome Open(int card, const sdk::Options&) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  size_t free_bytes = 0, total_bytes = 0;
  return Judge(card, WEIR_GPU_API(MemGetInfo)(&free_bytes, &total_bytes));
}
void Close(int) {}
void Stop() { Watcher::Get().Stop(); }
bool ResetNeeded(int card) { return card_is_lost[static_cast<size_t>(card)]; }

Outcome Alloc(int card, uint64_t bytes, uint64_t& address) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  void* block = nullptr;
  const Outcome outcome = Judge(card, WEIR_GPU_API(Malloc)(&block, bytes));
  if (!outcome.ok()) (void)WEIR_GPU_API(GetLastError)();
  address = reinterpret_cast<uint64_t>(block);
  return outcome;
}
void Free(int card, uint64_t address) {
  if (Set(card).ok()) (void)WEIR_GPU_API(Free)(reinterpret_cast<void*>(address));
}
Outcome MemInfo(int card, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  size_t available = 0, total = 0;
  const Outcome outcome = Judge(card, WEIR_GPU_API(MemGetInfo)(&available, &total));
  free_bytes = largest_bytes = available;
  total_bytes = total;
  return outcome;
}
Outcome AllocPinned(int card, uint64_t bytes, void*& host) {
  if (const Outcome set = Set(card); !set.ok()) return set;
#if defined(WEIR_GPU_CUDA)
  return Judge(card, cudaHostAlloc(&host, bytes, cudaHostAllocPortable));
#else
  return Judge(card, hipHostMalloc(&host, bytes, hipHostMallocPortable));
#endif
}
void FreePinned(int card, void* host) {
  if (!Set(card).ok()) return;
#if defined(WEIR_GPU_CUDA)
  (void)cudaFreeHost(host);
#else
  (void)hipHostFree(host);
#endif
}
Outcome RegisterHost(int card, void* host, uint64_t bytes) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  return Judge(card, WEIR_GPU_API(HostRegister)(host, bytes, WEIR_GPU_API(HostRegisterPortable)));
}
void UnregisterHost(int card, void* host) {
  if (Set(card).ok()) (void)WEIR_GPU_API(HostUnregister)(host);
}

Outcome NewStream(int card, int priority, NativeStream& stream) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  int least = 0, greatest = 0;  // greater priorities are smaller numbers
  (void)WEIR_GPU_API(DeviceGetStreamPriorityRange)(&least, &greatest);
  const int value = std::clamp(-priority, greatest, least);
  return Judge(card, WEIR_GPU_API(StreamCreateWithPriority)(&stream, WEIR_GPU_API(StreamNonBlocking), value));
}
void DeleteStream(int card, NativeStream stream) {
  if (!Set(card).ok()) return;
  (void)WEIR_GPU_API(StreamSynchronize)(stream);
  (void)WEIR_GPU_API(StreamDestroy)(stream);
}
Outcome SyncStream(NativeStream stream) {
  if (const Outcome used = Use(stream); !used.ok()) return used;
  return Judge(CardOf(stream), WEIR_GPU_API(StreamSynchronize)(stream));
}
Outcome AllocOrdered(int card, NativeStream stream, uint64_t bytes, uint64_t& address) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  void* block = nullptr;
  const Outcome outcome = Judge(card, WEIR_GPU_API(MallocAsync)(&block, bytes, stream));
  address = reinterpret_cast<uint64_t>(block);
  return outcome;
}
Outcome FreeOrdered(int card, NativeStream stream, uint64_t address) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  return Judge(card, WEIR_GPU_API(FreeAsync)(reinterpret_cast<void*>(address), stream));
}

Outcome NewEvent(int card, EventObject*& event) {
  if (const Outcome set = Set(card); !set.ok()) return set;
  auto made = std::make_unique<EventObject>();
  made->card = card;
  const Outcome outcome = Judge(
      card, WEIR_GPU_API(EventCreateWithFlags)(
                &made->event, WEIR_GPU_API(EventDisableTiming) | WEIR_GPU_API(EventBlockingSync)));
  if (outcome.ok()) event = made.release();
  return outcome;
}
void DeleteEvent(EventObject* event) {
  (void)WEIR_GPU_API(EventDestroy)(event->event);
  delete event;
}
Outcome Record(EventObject* event, NativeStream stream) {
  if (const Outcome set = Set(event->card); !set.ok()) return set;
  return Judge(event->card, WEIR_GPU_API(EventRecord)(event->event, stream));
}
Outcome Wait(NativeStream stream, EventObject* event) {
  if (const Outcome used = Use(stream); !used.ok()) return used;
  return Judge(event->card, WEIR_GPU_API(StreamWaitEvent)(stream, event->event, 0));
}
Outcome Query(EventObject* event, bool& reached) {
  const ErrorCode code = WEIR_GPU_API(EventQuery)(event->event);
  reached = code != WEIR_GPU_API(ErrorNotReady);
  if (reached) return Judge(event->card, code);
  (void)WEIR_GPU_API(GetLastError)();
  return {};
}
Outcome Sync(EventObject* event) { return Judge(event->card, WEIR_GPU_API(EventSynchronize)(event->event)); }
Outcome Notify(EventObject* event, void (*fn)(void*, Outcome), void* arg) {
  Watcher::Get().Add(event, fn, arg);
  return {};
}
uint64_t Native(EventObject* event) { return reinterpret_cast<uint64_t>(event->event); }

Outcome CopyAsync(NativeStream stream, Direction direction, void* to, const void* from, uint64_t bytes) {
  const auto kind = direction == Direction::kToDevice ? WEIR_GPU_API(MemcpyHostToDevice)
                    : direction == Direction::kToHost ? WEIR_GPU_API(MemcpyDeviceToHost)
                                                      : WEIR_GPU_API(MemcpyDeviceToDevice);
  const int card = CardOf(stream);
  return Judge(card, WEIR_GPU_API(MemcpyAsync)(to, from, bytes, kind, stream));
}
Outcome CopyPeerAsync(NativeStream stream, int to_card, void* to, int from_card, const void* from, uint64_t bytes) {
  if (const Outcome set = Set(to_card); !set.ok()) return set;
  return Judge(to_card, WEIR_GPU_API(MemcpyPeerAsync)(to, to_card, from, from_card, bytes, stream));
}
bool Peers(int from_card, int to_card) {
  int can = 0;
  if (WEIR_GPU_API(DeviceCanAccessPeer)(&can, to_card, from_card) != WEIR_GPU_API(Success) || can == 0) return false;
  if (!Set(to_card).ok()) return false;
  const ErrorCode code = WEIR_GPU_API(DeviceEnablePeerAccess)(from_card, 0);
  if (code != WEIR_GPU_API(Success)) (void)WEIR_GPU_API(GetLastError)();
  return code == WEIR_GPU_API(Success) || code == WEIR_GPU_API(ErrorPeerAccessAlreadyEnabled);
}

Outcome BeginCapture(NativeStream stream) {
  if (const Outcome used = Use(stream); !used.ok()) return used;
  return Of(WEIR_GPU_API(StreamBeginCapture)(stream, WEIR_GPU_API(StreamCaptureModeThreadLocal)));
}
Outcome EndCapture(NativeStream stream, CaptureObject*& capture) {
  auto made = std::make_unique<CaptureObject>();
  if (const Outcome ended = Of(WEIR_GPU_API(StreamEndCapture)(stream, &made->graph)); !ended.ok()) return ended;
#if defined(WEIR_GPU_CUDA)
  const Outcome ready = Of(cudaGraphInstantiate(&made->executable, made->graph, 0));
#else
  const Outcome ready = Of(hipGraphInstantiate(&made->executable, made->graph, nullptr, nullptr, 0));
#endif
  if (!ready.ok()) {
    (void)WEIR_GPU_API(GraphDestroy)(made->graph);
    return ready;
  }
  capture = made.release();
  return {};
}
Outcome Replay(CaptureObject* capture, NativeStream stream) {
  if (const Outcome used = Use(stream); !used.ok()) return used;
  return Judge(CardOf(stream), WEIR_GPU_API(GraphLaunch)(capture->executable, stream));
}
void DeleteCapture(CaptureObject* capture) {
  (void)WEIR_GPU_API(GraphExecDestroy)(capture->executable);
  (void)WEIR_GPU_API(GraphDestroy)(capture->graph);
  delete capture;
}

}  // namespace weir::gpu::driver
