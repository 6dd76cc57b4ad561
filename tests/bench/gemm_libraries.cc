#include "tests/bench/gemm_libraries.h"

#include <cblas.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

// Debian 12's OpenBLAS does not know recent cores, so the core type is set as in kernels_openblas. Linked with
// --wrap=getenv.
extern "C" {
char* __real_getenv(const char* name);
char* __wrap_getenv(const char* name) {
  if (std::strcmp(name, "OPENBLAS_CORETYPE") != 0) return __real_getenv(name);
  __builtin_cpu_init();
  return const_cast<char*>(__builtin_cpu_supports("avx512bw") ? "SKYLAKEX" : "HASWELL");
}
void omp_set_num_threads(int threads);
}

namespace weir::bench {
namespace {

using Array = std::shared_ptr<float>;

Array Filled(int64_t elements) {
  const size_t bytes = (static_cast<size_t>(elements) * sizeof(float) + 63) / 64 * 64;
  Array array(static_cast<float*>(std::aligned_alloc(64, bytes)), std::free);
  for (int64_t i = 0; i < elements; ++i) array.get()[i] = static_cast<float>(i % 7) - 3;
  return array;
}

struct Operands {
  Array a, b, c;
};

dnnl_engine_t Engine() {
  static const dnnl_engine_t engine = [] {
    omp_set_num_threads(1);
    dnnl_engine_t made = nullptr;
    dnnl_engine_create(&made, dnnl_cpu, 0);
    return made;
  }();
  return engine;
}

/// A matmul primitive bound to the operands; empty if oneDNN has none. Its objects live as long as the process.
std::function<void()> Primitive(const GemmShape& s, const Operands& x, bool packed) {
  const dnnl_dims_t dims[] = {{s.m, s.k}, {s.k, s.n}, {s.m, s.n}};
  const dnnl_dims_t steps[] = {
      {s.transpose_a ? 1 : s.k, s.transpose_a ? s.m : 1}, {s.transpose_b ? 1 : s.n, s.transpose_b ? s.k : 1}, {s.n, 1}};
  dnnl_memory_desc_t descs[3];
  for (int i = 0; i < 3; ++i) dnnl_memory_desc_init_by_strides(&descs[i], 2, dims[i], dnnl_f32, steps[i]);
  if (packed) dnnl_memory_desc_init_by_tag(&descs[1], 2, dims[1], dnnl_f32, dnnl_format_tag_any);
  dnnl_matmul_desc_t desc;
  dnnl_primitive_desc_t made = nullptr;
  if (dnnl_matmul_desc_init(&desc, &descs[0], &descs[1], nullptr, &descs[2]) != dnnl_success ||
      dnnl_primitive_desc_create(&made, &desc, nullptr, Engine(), nullptr) != dnnl_success) {
    return {};
  }
  const dnnl_memory_desc_t* b_desc = dnnl_primitive_desc_query_md(made, dnnl_query_weights_md, 0);
  // Timing does not depend on the values, so b is not reordered into its layout.
  const Array b = packed ? Filled(static_cast<int64_t>(dnnl_memory_desc_get_size(b_desc) / sizeof(float))) : x.b;
  dnnl_primitive_t primitive = nullptr;
  dnnl_stream_t stream = nullptr;
  std::array<dnnl_exec_arg_t, 3> arguments{
      {{DNNL_ARG_SRC, nullptr}, {DNNL_ARG_WEIGHTS, nullptr}, {DNNL_ARG_DST, nullptr}}};
  dnnl_primitive_create(&primitive, made);
  dnnl_memory_create(&arguments[0].memory, &descs[0], Engine(), x.a.get());
  dnnl_memory_create(&arguments[1].memory, b_desc, Engine(), b.get());
  dnnl_memory_create(&arguments[2].memory, &descs[2], Engine(), x.c.get());
  dnnl_stream_create(&stream, Engine(), dnnl_stream_default_flags);
  return [=, keep = x] {
    dnnl_primitive_execute(primitive, stream, 3, arguments.data());
    (void)keep;
    (void)b;
  };
}

}  // namespace

std::string GemmShape::Name() const {
  return fmt::format("{} x {} x {}{}{}{}", m, k, n, transpose_a ? " a'" : "", transpose_b ? " b'" : "",
                     constant_b ? " const" : "");
}
double GemmShape::Flops() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

std::vector<DirectCall> DirectCalls(const GemmShape& s) {
  const Operands x{Filled(s.m * s.k), Filled(s.k * s.n), Filled(s.m * s.n)};
  const int64_t lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
  std::vector<DirectCall> calls;
  calls.push_back({"openblas", [=] {
                     cblas_sgemm(CblasRowMajor, s.transpose_a ? CblasTrans : CblasNoTrans,
                                 s.transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(s.m),
                                 static_cast<int>(s.n), static_cast<int>(s.k), 1, x.a.get(), static_cast<int>(lda),
                                 x.b.get(), static_cast<int>(ldb), 0, x.c.get(), static_cast<int>(s.n));
                   }});
  if (s.m == 1) {
    calls.push_back({"openblas gemv", [=] {
                       cblas_sgemv(CblasRowMajor, s.transpose_b ? CblasNoTrans : CblasTrans,
                                   static_cast<int>(s.transpose_b ? s.n : s.k),
                                   static_cast<int>(s.transpose_b ? s.k : s.n), 1, x.b.get(), static_cast<int>(ldb),
                                   x.a.get(), 1, 0, x.c.get(), 1);
                     }});
  }
  (void)Engine();
  calls.push_back({"onednn gemm", [=] {
                     dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1, x.a.get(), lda,
                                x.b.get(), ldb, 0, x.c.get(), s.n);
                   }});
  if (auto call = Primitive(s, x, false)) calls.push_back({"onednn matmul", std::move(call)});
  if (auto call = s.constant_b ? Primitive(s, x, true) : nullptr) calls.push_back({"onednn packed", std::move(call)});
  return calls;
}

double ProcessNs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double CallNs(const std::function<void()>& call, double sample_ns) {
  const double begin = ProcessNs();
  call();
  const double first = ProcessNs() - begin;
  const int calls = static_cast<int>(std::clamp(sample_ns / std::max(first, 100.0), 1.0, 20000.0));
  const double start = ProcessNs();
  for (int i = 0; i < calls; ++i) call();
  return (ProcessNs() - start) / calls;
}

}  // namespace weir::bench
