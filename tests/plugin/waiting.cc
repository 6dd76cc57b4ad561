// Kernels that wait: for each other, for their own thread, for the end of the step; and kernels that report the
// addresses of their operands. They ignore the meaning of their ops; those that wait return their input. AddV2 and Less
// compute their ops, but declare a millisecond, so that they are worth threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>

#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;
using namespace std::chrono_literals;

std::mutex mutex;
std::condition_variable changed;
int arrived = 0;
int met = 0;

int32_t Copy(Context& ctx) {
  View<const float> x;
  View<float> y;
  if (const int32_t code = ctx.Input(0, &x); code != WEIR_OK) return code;
  if (const int32_t code = ctx.Output(0, x.shape(), &y); code != WEIR_OK) return code;
  std::copy_n(x.data(), x.size(), y.data());
  return WEIR_OK;
}

/// Ends when another call has begun; gives up after 10 s.
struct Meet {
  template <class T>
  int32_t Compute(Context& ctx) {
    std::unique_lock<std::mutex> lock(mutex);
    const int mine = ++arrived;
    if (mine % 2 == 0) {
      met = mine;
      changed.notify_all();
    } else if (!changed.wait_for(lock, 10s, [&] { return met > mine; })) {
      return ctx.error().Fail(WEIR_ABORTED, "nobody came");
    }
    return Copy(ctx);
  }
};

/// Completes from its own thread, after its call has returned.
struct Later {
  template <class T>
  int32_t Compute(Context& ctx) {
    if (const int32_t code = Copy(ctx); code != WEIR_OK) return code;
    std::thread([raw = ctx.get()] {
      std::this_thread::sleep_for(2ms);
      HostTable()->done(raw, WEIR_OK, {});
    }).detach();
    return WEIR_OK;
  }
};

/// Completes with an error.
struct LaterFails {
  template <class T>
  int32_t Compute(Context& ctx) {
    std::thread([raw = ctx.get()] { HostTable()->done(raw, WEIR_DATA_LOSS, Str("the far end is gone")); }).detach();
    return WEIR_OK;
  }
};

/// Completes when `cancel` reports the end of the step.
struct WhenTold {
  template <class T>
  int32_t Compute(Context& ctx) {
    return Copy(ctx);
  }
  static void Cancel(void*, weir_ctx* ctx) { HostTable()->done(ctx, WEIR_CANCELLED, {}); }
};

/// Completes after 300 ms, and ignores `cancel`.
struct Deaf {
  template <class T>
  int32_t Compute(Context& ctx) {
    const int32_t code = Copy(ctx);
    std::thread([raw = ctx.get()] {
      std::this_thread::sleep_for(300ms);
      HostTable()->done(raw, WEIR_OK, {});
    }).detach();
    return code;
  }
};

struct Never {
  template <class T>
  int32_t Compute(Context& ctx) {
    return Copy(ctx);
  }
};

struct Twice {
  template <class T>
  int32_t Compute(Context& ctx) {
    const int32_t code = Copy(ctx);
    for (int i = 0; i < 2; ++i) HostTable()->done(ctx.get(), WEIR_OK, {});
    return code;
  }
};

/// Fails if another call of its state has not completed.
struct Alone {
  std::atomic<int> running{0};

  template <class T>
  int32_t Compute(Context& ctx) {
    if (const int32_t code = Copy(ctx); code != WEIR_OK) return code;
    const int32_t code = running.fetch_add(1) == 0 ? WEIR_OK : WEIR_INTERNAL;
    std::thread([this, raw = ctx.get(), code] {
      std::this_thread::sleep_for(200us);
      running.fetch_sub(1);
      HostTable()->done(raw, code, Str("two calls at once"));
    }).detach();
    return WEIR_OK;
  }
};

/// Ends with the step; gives up after 10 s.
struct UntilCancelled {
  template <class T>
  int32_t Compute(Context& ctx) {
    for (int i = 0; i < 10000 && !ctx.cancelled(); ++i) std::this_thread::sleep_for(1ms);
    return ctx.cancelled() ? Copy(ctx) : ctx.error().Fail(WEIR_ABORTED, "nobody ended the step");
  }
};

struct Fails {
  template <class T>
  int32_t Compute(Context& ctx) {
    return ctx.error().Fail(WEIR_OUT_OF_RANGE, "this op fails");
  }
};

/// Runs in tiles; each tile keeps its elements in its scratch memory for a while. A negative element fails its tile.
struct InTiles {
  int64_t n = 0;

  int32_t Prepare(Prep& prep) {
    n = prep.size(0);
    prep.Tiles(static_cast<uint64_t>(n));
    prep.Scratch(static_cast<uint64_t>(n) * sizeof(float));
    return WEIR_OK;
  }
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<T> y, Scratch<char> scratch) const {
    const auto [begin, end] = env.Range(n);
    T* const kept = reinterpret_cast<T*>(scratch.data());
    std::copy(x.data() + begin, x.data() + end, kept);
    std::this_thread::sleep_for(200us);
    std::copy(kept, kept + (end - begin), y.data() + begin);
    const bool bad = std::any_of(kept, kept + (end - begin), [](T value) { return value < 0; });
    return bad ? env.error().Fail(WEIR_OUT_OF_RANGE, "a negative element") : WEIR_OK;
  }
  static Cost Estimate(const Prep& prep) { return {.bytes = 8.0 * static_cast<double>(prep.size(0)), .whole_ns = 1e6}; }
};

/// Runs one tile per element.
struct TileEach {
  int64_t n = 0;

  int32_t Prepare(Prep& prep) {
    n = prep.size(0);
    prep.Tiles(static_cast<uint64_t>(n));
    return WEIR_OK;
  }
  static Cost Estimate(const Prep&) { return {.whole_ns = 1e6}; }
};

/// Updates a variable, 20 us per element.
struct UpdateInTiles : TileEach {
  template <class T>
  void Run(Env& env, Variable<T> variable, View<const T> x) const {
    const auto [begin, end] = env.Range(n);
    for (int64_t i = begin; i < end; ++i) {
      std::this_thread::sleep_for(20us);
      variable.data()[i] += x[i];
    }
  }
};

/// Returns the first element of each element's tile.
struct TileOf : TileEach {
  template <class T>
  void Run(Env& env, View<const T>, View<T> y) const {
    const auto [begin, end] = env.Range(n);
    std::fill(y.data() + begin, y.data() + end, static_cast<T>(begin));
  }
};

/// Returns the addresses of its input and its output, as the output's first two elements.
struct Addresses {
  template <class T>
  T operator()(T x) const {
    return x;
  }
  static void Array(const int64_t* x, int64_t* y, int64_t n) {
    if (n > 0) y[0] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(x));
    if (n > 1) y[1] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y));
  }
};

/// Elementwise; operands have the same shape.
template <class F, class Result>
struct Slow {
  int64_t n = 0;

  void Prepare(Prep& prep) { n = prep.size(0); }
  template <class T>
  void Run(Env&, View<const T> x, View<const T> y,
           View<std::conditional_t<std::is_void_v<Result>, T, Result>> z) const {
    for (int64_t i = 0; i < n; ++i) z[i] = F()(x[i], y[i]);
  }
  static Cost Estimate(const Prep&) { return {.whole_ns = 1e6}; }
};

void AddKernels(KernelTable& k) {
  k.Add<Slow<std::plus<>, void>>("AddV2", Types<float, int32_t>());
  k.Add<Slow<std::less<>, bool>>("Less", Types<int32_t>());
  k.Add<InTiles>("Sqrt", Types<float>());
  k.Add<TileOf>("Rsqrt", Types<float>());
  k.Add<UpdateInTiles>("AssignAdd", Types<float>());
  k.Add<Meet>("Square", Types<float>());
  k.Add<Meet>("Neg", Types<float>());
  k.Add<Later>("Abs", Types<float>()).Flags(WEIR_KERNEL_ASYNC);
  k.Add<LaterFails>("Sign", Types<float>()).Flags(WEIR_KERNEL_ASYNC);
  k.Add<WhenTold>("Tanh", Types<float>()).Flags(WEIR_KERNEL_ASYNC).record.cancel = &WhenTold::Cancel;
  k.Add<Deaf>("Sigmoid", Types<float>()).Flags(WEIR_KERNEL_ASYNC);
  k.Add<Never>("Ceil", Types<float>()).Flags(WEIR_KERNEL_ASYNC);
  k.Add<Twice>("Floor", Types<float>()).Flags(WEIR_KERNEL_ASYNC);
  k.Add<Alone>("Reciprocal", Types<float>()).Flags(WEIR_KERNEL_ASYNC | WEIR_KERNEL_STATEFUL);
  k.Add<UntilCancelled>("Exp", Types<float>());
  k.Add<Fails>("Log", Types<float>());
  k.Unary<Addresses>("Round", Types<int64_t>());
}

}  // namespace

WEIR_PLUGIN("waiting", "1.0.0", "weir", "cpu", Kernels<AddKernels>)
