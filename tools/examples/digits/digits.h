// The handwritten digits: images of 8x8 with their classes, read from a CSV file.
#ifndef WEIR_TOOLS_EXAMPLES_DIGITS_DIGITS_H_
#define WEIR_TOOLS_EXAMPLES_DIGITS_DIGITS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::digits {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

struct Digit {
  std::array<float, kPixels> pixels;  // 0 to 1
  int64_t label = 0;
};

/// Some digits as input tensors of the network.
struct Batch {
  Tensor images;  // float [n, 64]
  Tensor labels;  // int64 [n]
};

class Digits {
 public:
  /// Reads lines of 64 numbers 0 to 16 and the class. InvalidArgument naming file and line for anything else.
  static Result<Digits> Load(const std::string& path);

  int size() const { return static_cast<int>(digits_.size()); }
  /// Shuffles the digits; equal seeds give equal orders on every machine.
  void Shuffle(uint32_t seed);
  /// Moves the last `count` digits into a separate set.
  Digits TakeLast(int count);
  /// Digits [begin, end), limited to those that exist.
  Batch Slice(int begin, int end) const;
  Batch All() const { return Slice(0, size()); }

 private:
  std::vector<Digit> digits_;
};

}  // namespace weir::digits

#endif  // WEIR_TOOLS_EXAMPLES_DIGITS_DIGITS_H_
