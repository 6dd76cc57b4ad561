// Products of a matrix with a constant one, which is packed once into the order in which the innermost loop reads it.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PACKED_PRODUCT_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PACKED_PRODUCT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace weir::kernels_eigen {

/// A [k, n] matrix of floats in panels (panels.h). Immutable; shared by all kernels that were prepared for equal
/// matrices.
class PackedMatrix {
 public:
  /// Packs op(b), of which `b` is the transpose if `transposed`, or finds it packed already. Matrices count as equal if
  /// shape and a hash of 128 bits over all elements are. Null if there is no memory. Thread-safe.
  static std::shared_ptr<const PackedMatrix> Of(const float* b, bool transposed, int64_t k, int64_t n);
  /// The same of b, without Multiply: the caller multiplies so many rows at once. The sum of `depths` is k.
  static std::shared_ptr<const PackedMatrix> InParts(const float* b, std::span<const int64_t> depths, int64_t n);
  ~PackedMatrix();
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  /// c [m, n] = a times this matrix, plus `addend` if that is not null (panels.h), for an a [m, k] whose elements
  /// (i, p) are at a[i * row_step + p * depth_step]; one of the steps is 1. k > 0. The order of the sums depends on k
  /// alone, see kPanelDepth. `scratch` has ScratchBytes(k, m).
  void Multiply(const float* a, int64_t row_step, int64_t depth_step, int64_t m, float* c, float* scratch,
                const float* addend = nullptr, int64_t addend_step = 0) const;
  static uint64_t ScratchBytes(int64_t k, int64_t m);

  /// As PackPanels packs it, or PackRows part by part.
  const float* panels() const { return elements_; }
  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  /// True if at least three quarters of the columns of the panels of an n-column matrix are its own.
  static bool FillsPanels(int64_t n);
  /// Bytes of one with these extents.
  static uint64_t Bytes(int64_t k, int64_t n);

 private:
  PackedMatrix() = default;
  /// One of that form, filled by pack(its elements).
  static std::shared_ptr<const PackedMatrix> Make(std::string form, const float* b, int64_t k, int64_t n,
                                                  const std::function<void(float*)>& pack);

  int64_t k_ = 0, n_ = 0;
  float* elements_ = nullptr;
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PACKED_PRODUCT_H_
