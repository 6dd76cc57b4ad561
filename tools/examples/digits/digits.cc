#include "tools/examples/digits/digits.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <random>
#include <string_view>
#include <utility>

#include "core/base/errors.h"

namespace weir::digits {
namespace {

constexpr float kMaxInk = 16;

/// One line of 65 numbers.
Result<Digit> ParseLine(std::string_view line) {
  Digit digit;
  for (int column = 0; column <= kPixels; ++column) {
    int value = -1;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    const int limit = column < kPixels ? static_cast<int>(kMaxInk) : kClasses - 1;
    const bool more = rest != line.data() + line.size() && *rest == ',';
    if (error != std::errc() || value < 0 || value > limit || more != (column < kPixels)) {
      return InvalidArgument("column {}: wanted a number from 0 to {}, got '{}'", column + 1, limit,
                             line.substr(0, 12));
    }
    if (column < kPixels) digit.pixels[static_cast<size_t>(column)] = static_cast<float>(value) / kMaxInk;
    digit.label = value;
    if (more) line.remove_prefix(static_cast<size_t>(rest + 1 - line.data()));
  }
  return digit;
}

}  // namespace

Result<Digits> Digits::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound("{}: no such file", path);
  Digits all;
  std::string line;
  std::getline(file, line);  // names of the columns
  for (int number = 2; std::getline(file, line); ++number) {
    Result<Digit> digit = ParseLine(line);
    if (!digit.ok()) return digit.status().Prepend(path + ":" + std::to_string(number) + ": ");
    all.digits_.push_back(*digit);
  }
  return all;
}

void Digits::Shuffle(uint32_t seed) {
  std::mt19937 random(seed);  // the standard defines its numbers, unlike those of std::shuffle
  for (size_t i = digits_.size(); i > 1; --i) std::swap(digits_[i - 1], digits_[random() % i]);
}

Digits Digits::TakeLast(int count) {
  const size_t keep = digits_.size() - std::min(digits_.size(), static_cast<size_t>(std::max(count, 0)));
  Digits last;
  last.digits_.assign(digits_.begin() + static_cast<std::ptrdiff_t>(keep), digits_.end());
  digits_.resize(keep);
  return last;
}

Batch Digits::Slice(int begin, int end) const {
  begin = std::clamp(begin, 0, size());
  end = std::clamp(end, begin, size());
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  for (int i = begin; i < end; ++i) {
    const Digit& digit = digits_[static_cast<size_t>(i)];
    pixels.insert(pixels.end(), digit.pixels.begin(), digit.pixels.end());
    labels.push_back(digit.label);
  }
  return {Tensor::Of<float>(Shape::Of({end - begin, kPixels}), pixels), Tensor::Vector<int64_t>(labels)};
}

}  // namespace weir::digits
