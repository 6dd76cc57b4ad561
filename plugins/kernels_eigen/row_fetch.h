// Rows of a large array at random places: fetched ahead, so that their cache misses overlap.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_ROW_FETCH_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_ROW_FETCH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weir::kernels_eigen {

/// How rows are used after they were fetched.
enum class RowUse { kRead, kWrite };

/// Fetches rows of `row` bytes of an array of `whole` bytes. Does nothing for an array that fits into a core's cache,
/// and for rows so long that the hardware's stream detection serves them.
template <RowUse kUse>
class RowFetch {
 public:
  /// Rows between the one that is fetched and the one at work.
  static constexpr int64_t kAhead = 8;

  RowFetch(size_t row, size_t whole) : row_(row > kLongRow ? 0 : whole < kSmallArray ? 0 : row) {}

  explicit operator bool() const { return row_ != 0; }

  /// `row` is the address of a row of the array.
  void operator()(const void* row) const {
    const auto* line = static_cast<const char*>(row);
    for (size_t at = 0; at < row_; at += kLine) __builtin_prefetch(line + at, kUse == RowUse::kWrite ? 1 : 0, 3);
  }

 private:
  static constexpr size_t kLine = 64, kLongRow = 2048, kSmallArray = size_t{1} << 18;
  size_t row_;  // bytes; 0: nothing is fetched
};

/// Copies a row of `size` bytes. A constant size is one or two moves; multiples of 32 bytes up to a KiB need no call.
template <class Size>
void CopyRow(char* to, const char* from, Size size) {
  if constexpr (std::is_same_v<Size, size_t>) {
    if (size % 32 == 0 && size <= 1024) {
      for (size_t at = 0; at < size; at += 32) std::memcpy(to + at, from + at, 32);
      return;
    }
  }
  std::memcpy(to, from, size);
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_ROW_FETCH_H_
