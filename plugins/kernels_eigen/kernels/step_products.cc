#include "plugins/kernels_eigen/kernels/step_products.h"

#include <algorithm>
#include <memory>

#include "plugins/kernels_eigen/kernels/packed_product.h"
#include "plugins/kernels_eigen/kernels/panels.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

/// Some rows of a right matrix w [rows, n]: packed once if w is a constant.
struct RowsOfWeights {
  int64_t first = 0, k = 0, n = 0;
  std::shared_ptr<const PackedMatrix> packed;

  /// Rows [first, first + k) of operand `w`.
  int32_t Prepare(sdk::Prep& prep, uint32_t w, int64_t first_row, int64_t rows, int64_t columns) {
    first = first_row;
    k = rows;
    n = columns;
    const weir_tensor* const value = prep.input(w).value;
    if (k == 0 || n == 0 || value == nullptr || value->buf.host == nullptr) return WEIR_OK;
    packed = PackedMatrix::Of(static_cast<const float*>(value->buf.host) + first * n, false, k, n);
    if (packed != nullptr) return WEIR_OK;
    return prep.error().Fail(WEIR_RESOURCE_EXHAUSTED, "no memory for ", PackedMatrix::Bytes(k, n), " bytes");
  }
  uint64_t ScratchBytes(int64_t m) const {
    if (packed != nullptr) return PackedMatrix::ScratchBytes(k, m);
    return static_cast<uint64_t>(ProductScratch(m, k, n)) * sizeof(float);
  }
  /// c [m, n] = a [m, k] times these rows of w, plus `addend`, whose rows are addend_step apart, if that is not null.
  void Multiply(const float* a, const float* w, int64_t m, float* c, const float* addend, int64_t addend_step,
                float* scratch) const {
    if (packed != nullptr) return packed->Multiply(a, k, 1, m, c, scratch, addend, addend_step);
    for (int64_t i = 0; i < m; ++i) {
      addend != nullptr ? std::copy_n(addend + i * addend_step, n, c + i * n) : std::fill_n(c + i * n, n, 0.0f);
    }
    if (k > 0) MultiplyMatrices({a, k, 1}, {w + first * n, n, 1}, m, k, n, c, c, scratch);
  }
};

sdk::Cost CostOfProduct(double m, double k, double n, const weir_profile* profile) {
  constexpr double kShare = 0.9, kBytesPerNs = 18;
  sdk::Cost cost;
  cost.flops = 2 * m * k * n;
  cost.bytes = 4 * (m * k + k * n + m * n);
  const double computing = cost.flops / (kShare * sdk::PeakFlops(profile, WEIR_FLOAT32));
  cost.whole_ns = 150 + std::max(computing, 4 * k * n / kBytesPerNs);
  return cost;
}

/// x [steps, m, k] times the first k rows of w, with a bias in each row if there is one.
struct MatMulOfSteps {
  static constexpr int64_t kPartRows = 64;
  static constexpr double kPartFlops = 4e6;  // ten times the cost of starting a part on another thread
  RowsOfWeights weights;
  int64_t rows = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &x = prep.shape(0), &w = prep.shape(1);
    if (x.rank != 3 || w.rank != 2 || x.dims[2] > w.dims[0]) {
      return prep.error().Unimplemented("wanted x [steps, rows, k] and w [>= k, columns], got ", x, " and ", w);
    }
    if (prep.inputs() > 2 && (prep.shape(2).rank != 1 || prep.shape(2).dims[0] != w.dims[1])) {
      return prep.error().Unimplemented("the bias must have the shape [", w.dims[1], "], got ", prep.shape(2));
    }
    rows = x.dims[1] == 0 ? 0 : x.dims[0] * x.dims[1];
    if (const int32_t code = weights.Prepare(prep, 1, 0, x.dims[2], w.dims[1]); code != WEIR_OK) return code;
    prep.Scratch(weights.ScratchBytes(rows));
    const double flops = 2 * static_cast<double>(rows) * static_cast<double>(weights.k * weights.n);
    prep.Tiles(static_cast<uint64_t>(std::min(static_cast<double>(Parts()), flops / kPartFlops)));
    return WEIR_OK;
  }

  int64_t Parts() const { return (rows + kPartRows - 1) / kPartRows; }

  void Multiply(sdk::Env& env, const float* x, const float* w, const float* bias, float* out, float* scratch) const {
    const auto range = env.Range(Parts());
    const int64_t first = range.first * kPartRows, end = std::min(rows, range.second * kPartRows), n = weights.n;
    if (first >= end || n == 0) return;
    weights.Multiply(x + first * weights.k, w, end - first, out + first * n, bias, 0, scratch);
  }

  void Run(sdk::Env& env, View<const float> x, View<const float> w, View<float> out, sdk::Scratch<char> scratch) const {
    Multiply(env, x.data(), w.data(), nullptr, out.data(), reinterpret_cast<float*>(scratch.data()));
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    const weir_shape &x = prep.shape(0), &w = prep.shape(1);
    if (x.rank != 3 || w.rank != 2) return {};
    return CostOfProduct(static_cast<double>(x.dims[0]) * static_cast<double>(x.dims[1]),
                         static_cast<double>(x.dims[2]), static_cast<double>(w.dims[1]), profile);
  }
};

struct BiasedMatMulOfSteps : MatMulOfSteps {
  void Run(sdk::Env& env, View<const float> x, View<const float> w, View<const float> bias, View<float> out,
           sdk::Scratch<char> scratch) const {
    Multiply(env, x.data(), w.data(), bias.data(), out.data(), reinterpret_cast<float*>(scratch.data()));
  }
};

/// p[t] + h times the last rows of w, for the p of the op above.
struct MatMulOfStep {
  RowsOfWeights weights;
  int64_t m = 0, steps = 0;
  bool of_array = false;  // x was a TensorArray, which has another text for an index that it does not have

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &p = prep.shape(0), &t = prep.shape(1), &h = prep.shape(2), &w = prep.shape(3);
    const bool fits = p.rank == 3 && t.rank == 0 && h.rank == 2 && w.rank == 2 && p.dims[1] == h.dims[0] &&
                      p.dims[2] == w.dims[1] && h.dims[1] <= w.dims[0];
    const sdk::Node& node = prep.node();
    if (!fits || node.Bool("transpose_a") || node.Bool("transpose_b") || node.Int("batch_dims") != 0) {
      return prep.error().Unimplemented("no product of a step with p ", p, ", h ", h, " and w ", w);
    }
    steps = p.dims[0];
    of_array = node.Bool("of_array");
    m = h.dims[0];
    if (const int32_t code = weights.Prepare(prep, 3, w.dims[0] - h.dims[1], h.dims[1], w.dims[1]); code != WEIR_OK) {
      return code;
    }
    prep.Scratch(weights.ScratchBytes(m));
    return WEIR_OK;
  }

  template <class I>
  int32_t Run(sdk::Env& env, View<const float> p, View<const I> t, View<const float> h, View<const float> w,
              View<float> out, sdk::Scratch<char> scratch) const {
    const auto step = static_cast<int64_t>(t[0]);
    if (step < 0 || step >= steps) {
      if (of_array) {
        return env.error().InvalidArgument("Tried to read from index ", step, " but array size is: ", steps);
      }
      return IndexOutOfRange(env.error(), "indices", t.shape(), 0, step, " is not in ", steps);
    }
    if (m == 0 || weights.n == 0) return WEIR_OK;
    weights.Multiply(h.data(), w.data(), m, out.data(), p.data() + step * m * weights.n,
                     weights.n, reinterpret_cast<float*>(scratch.data()));
    return WEIR_OK;
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    const weir_shape &h = prep.shape(2), &w = prep.shape(3);
    if (h.rank != 2 || w.rank != 2) return {};
    return CostOfProduct(static_cast<double>(h.dims[0]), static_cast<double>(h.dims[1]),
                         static_cast<double>(w.dims[1]), profile);
  }
};

}  // namespace

void AddStepProducts(sdk::KernelTable& k) {
  k.Add<MatMulOfSteps>("_MatMulOfSteps").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_GEMM);
  k.Add<BiasedMatMulOfSteps>("_BiasedMatMulOfSteps").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_GEMM);
  k.Add<MatMulOfStep>("_MatMulOfStep", sdk::Attr("Tindices", sdk::Types<int32_t, int64_t>()))
      .Restrict("T", {WEIR_FLOAT32})
      .Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::kernels_eigen
