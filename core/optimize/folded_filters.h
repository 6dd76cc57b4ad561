// The filters that FoldIntoFilters made for a session, so that the plans of one graph share them.
#ifndef WEIR_CORE_OPTIMIZE_FOLDED_FILTERS_H_
#define WEIR_CORE_OPTIMIZE_FOLDED_FILTERS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "core/tensor/tensor.h"

namespace weir::optimize {

/// Knows scaled filters as long as somebody holds them; keeps none alive. Thread-safe.
class FoldedFilters {
 public:
  /// The tensor that Keep was given for that filter, the same constant, and an equal scale; not valid if there is none.
  Tensor Find(const Tensor& filter, const std::vector<double>& scale) const;
  /// `made`, or the tensor that another thread has given first.
  Tensor Keep(const Tensor& filter, const std::vector<double>& scale, const Tensor& made);
  /// The number of tensors that are still held.
  size_t size() const;

 private:
  struct Entry {
    std::weak_ptr<Buffer> filter;
    const std::byte* begin;  // of the filter
    Shape shape;
    DType dtype;
    std::vector<double> scale;
    std::weak_ptr<Buffer> made;
  };
  Tensor FindLocked(const Tensor& filter, const std::vector<double>& scale) const;

  mutable std::mutex mutex_;  // protects all below
  std::vector<Entry> entries_;
};

}  // namespace weir::optimize

#endif  // WEIR_CORE_OPTIMIZE_FOLDED_FILTERS_H_
