// Softmax and LogSoftmax over the last dimension, in float.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "plugins/kernels_onednn/families.h"
#include "plugins/kernels_onednn/library.h"
#include "plugins/kernels_onednn/primitive.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_onednn {
namespace {

[[gnu::always_inline]] inline bool AnyNonFinite(const float* x, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    found |= (bits & kExponent) == kExponent ? 1 : 0;
  }
  return found != 0;
}

/// True if there is a NaN or an infinity. Every call of the kernels uses it, so it must be cheap compared with oneDNN's
/// own code.
#if defined(__x86_64__)
[[gnu::target("avx2")]] bool AnyNonFiniteByAvx2(const float* x, int64_t n) { return AnyNonFinite(x, n); }
bool HasNonFinite(const float* x, int64_t n) {
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  return avx2 ? AnyNonFiniteByAvx2(x, n) : AnyNonFinite(x, n);
}
#else
bool HasNonFinite(const float* x, int64_t n) { return AnyNonFinite(x, n); }
#endif

/// True if the softmax of the row is undefined: the row has a NaN or +infinity, or all its elements are -infinity.
bool HasNoValue(const float* row, int64_t classes) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < classes; ++i) {
    if (!(row[i] < std::numeric_limits<float>::infinity())) return true;
    largest = std::max(largest, row[i]);
  }
  return largest == -std::numeric_limits<float>::infinity();
}

template <bool kLog>
struct Softmax {
  int64_t rows = 0, classes = 0;
  Primitive primitive;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (shape.rank < 1) return prep.error().InvalidArgument("logits must have >= 1 dimension, got ", shape);
    classes = shape.dims[shape.rank - 1];
    rows = classes == 0 ? 0 : sdk::SizeOf(shape) / classes;
    prep.MayAlias(0, 0);
    if (rows == 0) return WEIR_OK;
    if (const int32_t code = LoadOneDnn(prep.error()); code != WEIR_OK) return code;
    const OneThread one;
    const dnnl_dims_t dims = {rows, classes};
    dnnl_memory_desc_t data;
    dnnl_softmax_desc_t desc;
    const auto describe = kLog ? OneDnn().dnnl_logsoftmax_forward_desc_init : OneDnn().dnnl_softmax_forward_desc_init;
    if (OneDnn().dnnl_memory_desc_init_by_tag(&data, 2, dims, dnnl_f32, dnnl_ab) != dnnl_success ||
        describe(&desc, dnnl_forward_inference, &data, 1) != dnnl_success) {
      return prep.error().Unimplemented("oneDNN takes no softmax of this shape");
    }
    if (const int32_t code = primitive.Make(&desc, {DNNL_ARG_SRC, DNNL_ARG_DST}, prep.error()); code != WEIR_OK) {
      return code;
    }
    if (primitive.scratch_bytes() != 0) prep.Scratch(primitive.scratch_bytes());
    return WEIR_OK;
  }

  int32_t Run(sdk::Env& env, sdk::View<const float> logits, sdk::View<float> out, sdk::Scratch<char> scratch) const {
    if (rows == 0) return WEIR_OK;
    const std::vector<int64_t> lost = RowsWithoutValue(logits.data());  // `out` may alias the logits
    const OneThread one;
    const int32_t code = primitive.Run({logits.data(), out.data(), scratch.data()}, env.error());
    for (const int64_t row : lost) {
      std::fill_n(out.data() + row * classes, classes, std::numeric_limits<float>::quiet_NaN());
    }
    return code;
  }

  /// Rows whose result is NaN throughout. oneDNN returns numbers for some elements of such rows.
  std::vector<int64_t> RowsWithoutValue(const float* logits) const {
    std::vector<int64_t> lost;
    if (!HasNonFinite(logits, rows * classes)) return lost;
    for (int64_t row = 0; row < rows; ++row) {
      if (HasNoValue(logits + row * classes, classes)) lost.push_back(row);
    }
    return lost;
  }

  /// Fitted to runs on AVX-512 cores; narrower ones are slower.
  static sdk::Cost Estimate(const sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    const double elements = static_cast<double>(prep.size(0));
    const double classes = shape.rank > 0 ? static_cast<double>(shape.dims[shape.rank - 1]) : 1;
    const double rows = classes > 0 ? elements / classes : 0;
    return {.flops = 15 * elements, .bytes = 8 * elements, .whole_ns = 1000 + 45 * rows + 0.62 * elements};
  }
};

}  // namespace

void AddSoftmax(sdk::KernelTable& k) {
  k.Add<Softmax<false>>("Softmax").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Add<Softmax<true>>("LogSoftmax").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_ELEMENTWISE, 15);
}

}  // namespace weir::kernels_onednn
