// Copies of boxes of elements between arrays with arbitrary steps, used by transpose, slice, tile and pad.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STRIDED_COPY_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STRIDED_COPY_H_

#include <cstdint>
#include <vector>

namespace weir::kernels_eigen {

/// A planned copy. Steps and offsets count elements; a step of 0 repeats an element, a negative one runs backwards.
class StridedCopy {
 public:
  /// A box of `dims` from an array with `from` steps to one with `to` steps, starting at the offsets. Every element
  /// read or written must exist, and none may be written twice. `bytes` is the size of an element: 1, 2, 4, 8 or 16.
  void Plan(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
            uint32_t bytes, int64_t from_offset = 0, int64_t to_offset = 0);

  /// True if it copies one dense block from start to start.
  bool dense() const { return count_ == 1 && dims_[0].from == 1 && dims_[0].to == 1 && !from_offset_ && !to_offset_; }

  void Run(const void* from, void* to) const {
    if (run_ != nullptr && !(from == to && dense())) run_(*this, from, to);
  }

 private:
  struct Dim {
    int64_t n, from, to;
  };
  // Every extent is at least 2 and an array has less than 2^63 elements, so this is enough.
  static constexpr uint32_t kMaxDims = 64;

  void Arrange();
  template <class E>
  static void Copy(const StridedCopy& plan, const void* from, void* to);

  void (*run_)(const StridedCopy& plan, const void* from, void* to) = nullptr;  // null: nothing to do
  uint32_t count_ = 0;                                                          // at least 1 if run_ is set
  int64_t from_offset_ = 0, to_offset_ = 0;
  Dim dims_[kMaxDims] = {};  // innermost first
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_STRIDED_COPY_H_
