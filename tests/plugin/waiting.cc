// Kernels that wait: for each other, for a thread of their own, for the end of the step; and one that says where its
// operands lie. What they mean for their ops does not matter, only that those which wait give their input back. AddV2
// and Less are what they are, but declare a millisecond, so that whoever runs ops beside each other does so with them.
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

/// Ends when another one has begun; gives up after 10 s.
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

/// Says that it is done from a thread of its own, after its call has returned.
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

/// Ends when the step does; gives up after 10 s.
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

/// In tiles, each of which keeps its elements in its scratch for a while; a negative element fails its tile.
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

/// A tile for each element.
struct TileEach {
  int64_t n = 0;

  int32_t Prepare(Prep& prep) {
    n = prep.size(0);
    prep.Tiles(static_cast<uint64_t>(n));
    return WEIR_OK;
  }
  static Cost Estimate(const Prep&) { return {.whole_ns = 1e6}; }
};

/// An update of a variable that takes 20 us for each element.
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

/// Where the tile of each element begins.
struct TileOf : TileEach {
  template <class T>
  void Run(Env& env, View<const T>, View<T> y) const {
    const auto [begin, end] = env.Range(n);
    std::fill(y.data() + begin, y.data() + end, static_cast<T>(begin));
  }
};

/// The addresses of its input and its output, as the output's first two elements.
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

/// Element by element; operands have one shape.
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
  k.Add<UntilCancelled>("Exp", Types<float>());
  k.Add<Fails>("Log", Types<float>());
  k.Unary<Addresses>("Round", Types<int64_t>());
}

}  // namespace

WEIR_PLUGIN("waiting", "1.0.0", "weir", "cpu", Kernels<AddKernels>)
