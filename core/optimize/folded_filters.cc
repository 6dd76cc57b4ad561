#include "core/optimize/folded_filters.h"

#include <utility>

namespace weir::optimize {

Tensor FoldedFilters::Find(const Tensor& filter, const std::vector<double>& scale) const {
  const std::lock_guard lock(mutex_);
  return FindLocked(filter, scale);
}

Tensor FoldedFilters::FindLocked(const Tensor& filter, const std::vector<double>& scale) const {
  for (const Entry& entry : entries_) {
    if (entry.begin != filter.raw() || entry.filter.lock() != filter.buffer()) continue;
    if (entry.dtype != filter.dtype() || entry.shape != filter.shape() || entry.scale != scale) continue;
    std::shared_ptr<Buffer> made = entry.made.lock();
    if (!made) continue;
    Result<Tensor> tensor = Tensor::Over(entry.dtype, entry.shape, std::move(made));
    if (tensor.ok()) return std::move(*tensor);
  }
  return Tensor();
}

Tensor FoldedFilters::Keep(const Tensor& filter, const std::vector<double>& scale, const Tensor& made) {
  const std::lock_guard lock(mutex_);
  if (Tensor known = FindLocked(filter, scale); known.valid()) return known;
  std::erase_if(entries_, [](const Entry& entry) { return entry.made.expired() || entry.filter.expired(); });
  entries_.push_back({filter.buffer(), filter.raw(), filter.shape(), filter.dtype(), scale, made.buffer()});
  return made;
}

size_t FoldedFilters::size() const {
  const std::lock_guard lock(mutex_);
  size_t held = 0;
  for (const Entry& entry : entries_) held += entry.made.expired() ? 0 : 1;
  return held;
}

}  // namespace weir::optimize
