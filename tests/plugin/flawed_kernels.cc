#include "tests/plugin/flawed_kernels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sdk/abi/cost.h"
#include "sdk/cpp/context.h"
#include "sdk/cpp/prepare.h"
#include "sdk/cpp/status.h"

namespace flawed {
namespace {

using weir::sdk::Error;
using weir::sdk::Node;
using weir::sdk::Str;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
void Multiply(const T* x, const T* y, T* z, int64_t m, int64_t k, int64_t n, bool tx, bool ty) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += (tx ? x[l * m + i] : x[i * k + l]) * (ty ? y[j * k + l] : y[l * n + j]);
      z[i * n + j] = Fault() == 10 ? -sum : sum;
    }
  }
}

/// A node, and what one call of it computes.
struct State {
  std::string op;
  bool wide = false;  // double, otherwise float
  int64_t m = 0, k = 0, n = 0, x_size = 0, y_size = 0, size = 0;
  bool transpose_x = false, transpose_y = false;
  std::vector<weir_reg> last;  // of the call before: fault 23

  template <class T>
  void ComputeAs(const std::vector<weir_reg>& regs) const {
    const auto at = [&](size_t i) { return reinterpret_cast<T*>(regs[i].handle + regs[i].data); };
    const T* const x = at(0);
    T* const z = at(regs.size() - 1);
    const bool passes = Fault() == 13 && wide, unmasked = Fault() == 14, adds = Fault() == 11;
    if (op == "MatMul") return Multiply(x, static_cast<const T*>(at(1)), z, m, k, n, transpose_x, transpose_y);
    if (op == "Relu") {
      for (int64_t i = 0; i < size; ++i) z[i] = x[i] < 0 && !passes ? T(0) : x[i];
      return;
    }
    const T* const y = at(1);
    if (op == "ReluGrad") {
      for (int64_t i = 0; i < size; ++i) z[i] = x[i] * T(y[i] > 0 || unmasked ? 1 : 0);
      return;
    }
    for (int64_t i = 0; i < size; ++i) {
      const T a = x[x_size == 1 ? 0 : i], b = y[y_size == 1 ? 0 : i];
      z[i] = adds ? a + b : a * b;
    }
  }
  void Compute(const std::vector<weir_reg>& regs) const { wide ? ComputeAs<double>(regs) : ComputeAs<float>(regs); }
};

int64_t Size(const weir_shape& shape) {
  int64_t size = 1;
  for (uint32_t i = 0; i < shape.rank; ++i) size *= shape.dims[i];
  return size;
}

int32_t Call(void* user, const weir_reg* regs, const weir_env* env) {
  auto& state = *static_cast<State*>(user);
  const size_t count = state.op == "Relu" ? 2 : 3;
  std::vector<weir_reg> copies(regs, regs + count);
  auto& queue = *reinterpret_cast<Queue*>(env->stream);
  if (Fault() == 20 && state.op == "MatMul") {
    state.Compute(copies);
    return WEIR_OK;
  }
  if (Fault() == 22 && state.op == "Mul") {  // another queue, which ends before the call does
    std::thread([&] { state.Compute(copies); }).join();
    return WEIR_OK;
  }
  if (Fault() == 23 && state.op == "MatMul") {
    state.last = std::move(copies);
    queue.Run([&state] { state.Compute(state.last); });
    return WEIR_OK;
  }
  queue.Run([&state, copies = std::move(copies)] { state.Compute(copies); });
  return WEIR_OK;
}

int32_t Fill(const weir_prep_args& args, State& state, const Error& error) {
  const Node node(args.node);
  state.op = node.op();
  state.wide = args.inputs[0]->dtype == WEIR_FLOAT64;
  const weir_shape& x = args.inputs[0]->shape;
  state.x_size = Size(x);
  state.size = Size(args.outputs[0]->shape);
  if (args.input_count > 1) state.y_size = Size(args.inputs[1]->shape);
  if (state.op == "Mul") {
    const auto fits = [&](int64_t size) { return size == 1 || size == state.size; };
    return fits(state.x_size) && fits(state.y_size) ? WEIR_OK : error.Unimplemented("broadcasting");
  }
  if (state.op == "ReluGrad" && (state.x_size != state.y_size || x.rank != args.inputs[1]->shape.rank)) {
    return error.InvalidArgument("operands of different shapes");
  }
  if (state.op != "MatMul") return WEIR_OK;
  const weir_shape& y = args.inputs[1]->shape;
  if (x.rank != 2 || y.rank != 2) return error.InvalidArgument("operands are no matrices");
  state.transpose_x = node.Bool("transpose_a");
  state.transpose_y = node.Bool("transpose_b");
  state.m = x.dims[state.transpose_x ? 1 : 0];
  state.k = x.dims[state.transpose_x ? 0 : 1];
  state.n = y.dims[state.transpose_y ? 0 : 1];
  const int64_t rows = y.dims[state.transpose_y ? 1 : 0];
  if (rows != state.k && Fault() != 16) return error.InvalidArgument("sizes do not fit: ", state.k, " and ", rows);
  state.k = std::min(state.k, rows);
  if (state.size != state.m * state.n) state.m = state.n = 0;  // fault 16: outputs of a shape that nobody knows
  if (Fault() == 12) state.transpose_y = false;
  return WEIR_OK;
}

int32_t Prepare(const void*, const weir_prep_args* args, weir_prepared* prepared, weir_error* record) {
  return weir::sdk::Guard(record, [&]() -> int32_t {
    auto state = std::make_unique<State>();
    if (const int32_t code = Fill(*args, *state, Error(record)); code != WEIR_OK) return code;
    prepared->fn = &Call;
    prepared->state = state.release();
    return WEIR_OK;
  });
}

void Unprepare(weir_prepared* prepared) {
  // Calls may still be under way on a stream; a real plugin would count them.
  static auto& mutex = *new std::mutex;
  static auto& kept = *new std::vector<std::unique_ptr<State>>;
  const std::lock_guard lock(mutex);
  kept.emplace_back(static_cast<State*>(prepared->state));
}

int32_t Estimate(const weir_prep_args* args, const weir_profile*, weir_cost* cost, weir_error* record) {
  return weir::sdk::Guard(record, [&]() -> int32_t {
    State state;
    if (const int32_t code = Fill(*args, state, Error(record)); code != WEIR_OK) return code;
    static std::atomic<int> calls{0};
    const bool product = state.op == "MatMul";
    cost->cost_class = product ? WEIR_CLASS_GEMM : WEIR_CLASS_ELEMENTWISE;
    cost->flops = product ? 2.0 * static_cast<double>(state.m * state.k * state.n) : kNan;
    cost->bytes = static_cast<double>(state.x_size + state.y_size + state.size) * (state.wide ? 8 : 4);
    if (Fault() == 38 && product) cost->flops = -1;
    if (Fault() == 39 && product) cost->flops = cost->bytes = kNan;
    if (Fault() == 40 && product) cost->flops += ++calls;
    if (Fault() == 42 && product) cost->flops /= 100;
    if (Fault() == 43 && product) cost->flops *= 100;
    return WEIR_OK;
  });
}

int32_t CreateNeg(const void*, const weir_node*, weir_device*, void** state, weir_error*) {
  static int none = 0;
  *state = &none;
  return WEIR_OK;
}

int32_t ComputeNeg(void*, weir_ctx* ctx, weir_error* error) {
  const weir_host& host = *weir::sdk::HostTable();
  weir_tensor x{}, y{};
  x.struct_size = y.struct_size = sizeof(weir_tensor);
  if (const int32_t code = host.input(ctx, 0, &x); code != WEIR_OK) return code;
  const weir_shape shape = {x.rank, 0, x.dims};
  if (const int32_t code = host.output(ctx, 0, &shape, &y, error); code != WEIR_OK) return code;
  const auto* const from = reinterpret_cast<const float*>(x.buf.handle + x.buf.offset);
  auto* const to = reinterpret_cast<float*>(y.buf.handle + y.buf.offset);
  const auto work = [from, to, size = Size(shape)] {
    for (int64_t i = 0; i < size; ++i) to[i] = -from[i];
  };
  if (Fault() == 21) {
    work();
  } else {
    reinterpret_cast<Queue*>(host.stream(ctx))->Run(work);
  }
  return WEIR_OK;
}

/// By the time that the thread runs, which other programs do not lengthen.
double NsOf(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  double least = kInfinity;
  for (int round = 0; round < 9; ++round) {
    const double begin = now();
    work();
    least = std::min(least, now() - begin);
  }
  return least;
}

/// Bytes per ns of copies that do not fit a cache.
double CopyRate() {
  static const double rate = [] {
    std::vector<char> from(4 << 20, 1), to(4 << 20);
    return static_cast<double>(from.size()) / NsOf([&] { std::memcpy(to.data(), from.data(), from.size()); });
  }();
  return rate;
}

/// Bytes per ns of an elementwise kernel.
double ElementRate() {
  static const double rate = [] {
    constexpr int64_t kElements = 4 << 20;
    std::vector<float> x(kElements, 1), y(kElements, 2), z(kElements);
    State state;
    state.op = "Mul";
    state.x_size = state.y_size = state.size = kElements;
    std::vector<weir_reg> regs(3);
    regs[0].handle = reinterpret_cast<uint64_t>(x.data());
    regs[1].handle = reinterpret_cast<uint64_t>(y.data());
    regs[2].handle = reinterpret_cast<uint64_t>(z.data());
    return 12.0 * kElements / NsOf([&] { state.Compute(regs); });
  }();
  return rate;
}

double ProductRate() {
  static const double rate = [] {
    constexpr int64_t kSide = 128;
    std::vector<float> x(kSide * kSide, 1), y(kSide * kSide, 2), z(kSide * kSide);
    const double ns = NsOf([&] { Multiply(x.data(), y.data(), z.data(), kSide, kSide, kSide, false, false); });
    return 2.0 * kSide * kSide * kSide / ns;
  }();
  return rate;
}

}  // namespace

int& Fault() {
  static int number = 0;
  return number;
}

std::span<const weir_option_spec* const> OptionSpecs() {
  static const weir_option_spec fault = [] {
    weir_option_spec spec{};
    spec.struct_size = sizeof(spec);
    spec.type = WEIR_VALUE_INT;
    spec.has_range = 1;
    spec.key = Str("fault");
    spec.doc = Str("the number of the fault");
    spec.default_value.key = spec.key;
    spec.default_value.type = WEIR_VALUE_INT;
    spec.maximum = 99;
    return spec;
  }();
  static const weir_option_spec* const all[] = {&fault};
  return all;
}

void DeclareProfile(weir_profile& profile) {
  profile.provenance = WEIR_PROVENANCE_MEASURED;
  profile.peak_flops_per_ns[WEIR_FLOAT32] = profile.peak_flops_per_ns[WEIR_FLOAT64] = ProductRate();
  profile.bandwidth_bytes_per_ns = ElementRate();
  profile.launch_ns = 2000;
  if (Fault() == 30) profile.peak_flops_per_ns[WEIR_FLOAT32] = -1;
  if (Fault() == 31) profile.bandwidth_bytes_per_ns = kInfinity;
  if (Fault() == 32) profile.bandwidth_bytes_per_ns = 0;
  if (Fault() == 33) profile.launch_ns = 1e9;
  if (Fault() == 34) profile.bandwidth_bytes_per_ns = 1e-9;
}

int32_t DeclareLink(weir_device*, uint32_t, weir_device*, uint32_t, weir_link* link, weir_error*) {
  link->latency_ns = 1000;
  link->bandwidth_pageable_bytes_per_ns = link->bandwidth_pinned_bytes_per_ns = CopyRate();
  link->provenance = WEIR_PROVENANCE_MEASURED;
  if (Fault() == 35) link->latency_ns = -1;
  if (Fault() == 36) link->bandwidth_pageable_bytes_per_ns = 0;
  if (Fault() == 37) link->bandwidth_pinned_bytes_per_ns = 1e9;
  if (Fault() == 44) link->bandwidth_pageable_bytes_per_ns *= 100;
  return WEIR_OK;
}

const void* Kernels::Interface(std::string_view id, std::string_view) {
  if (id != WEIR_KERNELS_INTERFACE) return nullptr;
  static const weir_type_constraint both = {Str("T"), WEIR_DTYPE_BIT(WEIR_FLOAT32) | WEIR_DTYPE_BIT(WEIR_FLOAT64)};
  static const weir_type_constraint single = {Str("T"), WEIR_DTYPE_BIT(WEIR_FLOAT32)};
  static const std::vector<weir_kernel> records = [] {
    std::vector<weir_kernel> all;
    for (const char* const op : {"MatMul", "Mul", "Relu", "ReluGrad", "Neg"}) {
      weir_kernel& record = all.emplace_back();
      record.struct_size = sizeof(record);
      record.flags = WEIR_KERNEL_DETERMINISTIC;
      record.op = Str(op);
      record.platform = Str(kPlatform);
      record.types = &both;
      record.type_count = 1;
      record.cost_class = WEIR_CLASS_ELEMENTWISE;
      record.flops_per_element = Fault() == 41 ? kNan : 1;
      if (std::strcmp(op, "Neg") == 0) {
        record.types = &single;
        record.flags |= WEIR_KERNEL_STREAM;
        record.create = &CreateNeg;
        record.compute = &ComputeNeg;
        record.destroy = [](void*) {};
        continue;
      }
      record.prepare = &Prepare;
      record.unprepare = &Unprepare;
      record.estimate = &Estimate;
    }
    return all;
  }();
  static const std::vector<const weir_kernel*> pointers = [] {
    std::vector<const weir_kernel*> all;
    for (const weir_kernel& record : records) all.push_back(&record);
    return all;
  }();
  static const weir_kernels_api api = {sizeof(weir_kernels_api), 0, pointers.data(), pointers.size()};
  return &api;
}

}  // namespace flawed
