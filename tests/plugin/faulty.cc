// A synchronous device with kernels that each have one fault or a rare requirement. They ignore the meaning of their
// ops; AddV2 returns its first input.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "sdk/cpp/device.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

std::atomic<bool> lost{false};
std::atomic<bool> reset_needed{false};     // until the device is closed
constexpr const char* kStuck = "stuck-0";  // never opens

class FaultyDevice {
 public:
  static void Enumerate(const Options&, const Emit& emit) {
    emit({.uid = "faulty-0", .kind = "FAULTY", .platform = "faulty/1", .memory_bytes = uint64_t{64} << 20});
    emit({.uid = kStuck,
          .kind = "STUCK",
          .platform = "faulty/1",
          .flags = WEIR_DEVICE_SYNC_ONLY | WEIR_DEVICE_OPT_IN,
          .memory_bytes = uint64_t{64} << 20});
  }
  static std::unique_ptr<FaultyDevice> Open(std::string_view uid, const Options&, const Error&) {
    while (uid == kStuck) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return std::make_unique<FaultyDevice>();
  }
  FaultyDevice() = default;
  FaultyDevice(const FaultyDevice&) = delete;
  FaultyDevice& operator=(const FaultyDevice&) = delete;
  ~FaultyDevice() { reset_needed = false; }
  void* Alloc(uint64_t bytes, uint32_t) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void Free(void* block, uint64_t) { std::free(block); }
  int32_t Health() const {
    if (lost) return WEIR_HEALTH_LOST;
    return reset_needed ? WEIR_HEALTH_RESET_NEEDED : WEIR_HEALTH_OK;
  }
};

struct First {
  template <class T>
  T operator()(T x, T) const {
    return x;
  }
};

struct ThrowsForOne {
  template <class T>
  T operator()(T x) const {
    if (x == 1) throw std::runtime_error("an element is one");
    return x;
  }
};

struct ThrowsForPairs {
  template <class T>
  T operator()(T x, T y) const {
    if (x == y) throw std::runtime_error("a pair of one kind");
    return x;
  }
};

/// Reports the loss in the error record.
struct Lost {
  template <class T>
  int32_t Run(Env& env, View<const T>, View<T>) const {
    env.error().record()->flags |= WEIR_ERROR_DEVICE_LOST;
    return env.error().Fail(WEIR_UNAVAILABLE, "it fell off the bus");
  }
};

/// Reports the loss through Health only.
struct Silent {
  template <class T>
  int32_t Compute(Context& ctx) {
    lost = true;
    return ctx.error().Fail(WEIR_ABORTED, "no answer");
  }
};

/// Leaves the device in a state that only a reset ends.
struct Wedged {
  template <class T>
  int32_t Compute(Context& ctx) {
    reset_needed = true;
    return ctx.error().Fail(WEIR_ABORTED, "the engine hangs");
  }
};

/// Ends with the step, with a code but no text.
struct UntilStopped {
  template <class T>
  int32_t Compute(Context& ctx) {
    for (int i = 0; i < 10000 && !ctx.cancelled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return WEIR_CANCELLED;
  }
};

/// Returns the misalignment of its scratch memory relative to kAlignment.
template <uint64_t kAlignment>
struct Misfit {
  void Prepare(Prep& prep) { prep.Scratch(100, kAlignment); }
  template <class T>
  void Run(View<const T>, View<T> y, Scratch<char> scratch) const {
    y[0] = static_cast<T>(reinterpret_cast<uintptr_t>(scratch.data()) % kAlignment);
  }
};

template <uint64_t kBytes>
struct Huge {
  void Prepare(Prep& prep) { prep.Scratch(kBytes); }
  template <class T>
  void Run(View<const T>, View<T>, Scratch<char>) const {}
};

struct Refuses {
  int32_t Prepare(Prep& prep) { return prep.error().InvalidArgument("prepare refuses"); }
  template <class T>
  void Run(View<const T>, View<T>) const {}
};

struct Breaks {
  int32_t Prepare(Prep&) { throw std::runtime_error("thrown in prepare"); }
  template <class T>
  void Run(View<const T>, View<T>) const {}
};

struct RefusesToBeMade {
  int32_t Prepare(const Node&, const Error& error) { return error.InvalidArgument("create refuses"); }
  template <class T>
  int32_t Compute(Context&) {
    return WEIR_OK;
  }
};

struct Negative {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<T> y;
    return ctx.Output(0, {-5}, &y);
  }
};

void AddKernels(KernelTable& k) {
  constexpr Types<float> kFloat;
  k.Binary<First>("AddV2", kFloat);
  k.Unary<ThrowsForOne>("Square", kFloat);
  k.Binary<ThrowsForPairs>("Mul", kFloat);
  k.Add<Lost>("Exp", kFloat);
  k.Add<Silent>("Log", kFloat);
  k.Add<Wedged>("Neg", kFloat);
  k.Add<UntilStopped>("Round", kFloat);
  k.Add<Misfit<4096>>("Sqrt", kFloat);
  k.Add<Misfit<(1 << 20)>>("Rsqrt", kFloat);
  k.Add<Huge<UINT64_MAX>>("Tanh", kFloat);
  k.Add<Huge<UINT64_MAX - 63>>("Sigmoid", kFloat);
  k.Add<Refuses>("Abs", kFloat);
  k.Add<Breaks>("Sign", kFloat);
  k.Add<RefusesToBeMade>("Floor", kFloat);
  k.Add<Negative>("Ceil", kFloat);
}

}  // namespace

WEIR_PLUGIN("faulty", "1.0.0", "weir", "faulty/1", Devices<FaultyDevice>, Kernels<AddKernels>)
