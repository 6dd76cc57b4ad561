// Kernels for another plugin's device whose memory has handles: what they need of it comes through native/1 and the
// platform's header. The two files are never linked to each other.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sdk/cpp/kernel.h"
#include "sdk/cpp/native.h"
#include "sdk/cpp/plugin.h"
#include "../handle_device/submit.h"

namespace {

using namespace weir::sdk;
using handle_device::Submit;

/// A prepared kernel: it gets the queue as the native stream of its call.
struct Exponential {
  int32_t Prepare(Prep& prep) {
    // The device's own number shows that the other plugin has this ABI; a driver's context would be fetched like this.
    uint64_t number = 0;
    const NativeDevice native(prep.device(), WEIR_HANDLE_PLATFORM);
    return native.Get(WEIR_NATIVE_DEVICE, prep.device(), &number, prep.error());
  }
  int32_t Run(Env& env, Buffer<const float> x, Buffer<float> y) const {
    auto run = [n = x.size()](const float* from, float* to) {
      for (int64_t i = 0; i < n; ++i) to[i] = std::exp(from[i]);
    };
    return Submit(env.native_stream(), "Exp", env.error(), run, x, y);
  }
};

/// Fails after its call has returned: the queue is poisoned, and the core reports the node by the queue's mark.
struct Check {
  std::string message;

  void Prepare(Prep& prep) { message = prep.node().String("message"); }
  int32_t Run(Env& env, Buffer<const float> x, Buffer<float> y) const {
    auto run = [n = x.size(), text = message](const Error& error, const float* from, float* to) -> int32_t {
      for (int64_t i = 0; i < n; ++i) {
        if (std::isnan(from[i])) return error.InvalidArgument(text, " : Tensor had NaN values");
        if (std::isinf(from[i])) return error.InvalidArgument(text, " : Tensor had Inf values");
        to[i] = from[i];
      }
      return WEIR_OK;
    };
    return Submit(env.native_stream(), "CheckNumerics", env.error(), run, x, y);
  }
};

/// A dynamic kernel: how many rows the result has is known when the queue has come to its operand.
struct Positions {
  int32_t Prepare(const Node&, weir_device* device, const Error& error) {
    return NativeDevice(device, WEIR_HANDLE_PLATFORM).Check(error);
  }
  int32_t Compute(Context& ctx) {
    Buffer<const void> condition;
    if (const int32_t code = ctx.Input(0, &condition); code != WEIR_OK) return code;
    const uint32_t rank = condition.rank();
    const std::vector<int64_t> dims(condition.shape().dims, condition.shape().dims + rank);
    auto found = std::make_shared<std::vector<int64_t>>();
    auto read = [dims, n = condition.size(), found](const void* elements) {
      for (int64_t i = 0; i < n; ++i) {
        if (!static_cast<const bool*>(elements)[i]) continue;
        const size_t row = found->size();
        found->resize(row + dims.size());
        for (size_t d = dims.size(), rest = static_cast<size_t>(i); d-- > 0;) {
          (*found)[row + d] = static_cast<int64_t>(rest % static_cast<size_t>(dims[d]));
          rest /= static_cast<size_t>(dims[d]);
        }
      }
    };
    if (const int32_t code = Submit(ctx.native_stream(), "Where", ctx.error(), read, condition); code != WEIR_OK) {
      return code;
    }
    const auto* queue = reinterpret_cast<const weir_handle_queue*>(ctx.native_stream());
    if (const int32_t code = queue->finish(queue->queue, ctx.error().record()); code != WEIR_OK) return code;
    const int64_t shape[] = {rank == 0 ? 0 : static_cast<int64_t>(found->size() / rank), rank};
    Buffer<int64_t> rows;
    if (const int32_t code = ctx.Output(0, weir_shape{2, 0, shape}, &rows); code != WEIR_OK) return code;
    auto write = [found](int64_t* to) { std::copy(found->begin(), found->end(), to); };
    return Submit(ctx.native_stream(), "Where", ctx.error(), write, rows);
  }
};

void AddKernels(KernelTable& k) {
  k.Add<Exponential>("Exp").Restrict("T", {WEIR_FLOAT32});
  k.Add<Check>("CheckNumerics").Restrict("T", {WEIR_FLOAT32});
  k.Add<Positions>("Where").Restrict("T", {WEIR_BOOL}).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_GATHER);
}

}  // namespace

WEIR_PLUGIN("handle_kernels", "1.0.0", "weir", WEIR_HANDLE_PLATFORM, Kernels<AddKernels>)
