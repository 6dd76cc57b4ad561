#include "core/tensor/numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/tensor/number.h"

namespace weir {

namespace {

bool IsReal(DType dtype) {
  return dtype == DType::kHalf || dtype == DType::kBfloat16 || dtype == DType::kFloat || dtype == DType::kDouble;
}

}  // namespace

Numbers NumbersOf(const Tensor& tensor) {
  Numbers numbers;
  if (!IsReal(tensor.dtype())) return numbers;
  numbers.elements = tensor.elements();
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < numbers.elements; ++i) {
    const double value = ElementAsDouble(tensor, i);
    numbers.nans += std::isnan(value) ? 1 : 0;
    numbers.infinities += std::isinf(value) ? 1 : 0;
    if (!std::isfinite(value)) continue;
    numbers.min = finite == 0 ? value : std::min(numbers.min, value);
    numbers.max = finite == 0 ? value : std::max(numbers.max, value);
    sum += value;
    ++finite;
  }
  if (finite > 0) numbers.mean = sum / static_cast<double>(finite);
  return numbers;
}

std::string_view Numbers::fault() const {
  if (nans == 0) return infinities == 0 ? "" : "Inf";
  return infinities == 0 ? "NaN" : "Inf and NaN";
}

std::string Describe(const Tensor& tensor, const Numbers& numbers) {
  std::string text = fmt::format("{} {}", Name(tensor.dtype()), tensor.shape().ToString());
  if (numbers.elements == 0) return text;
  text += fmt::format(": min {:g}, max {:g}, mean {:g}", numbers.min, numbers.max, numbers.mean);
  if (numbers.nans > 0) text += fmt::format(", {} NaN", numbers.nans);
  if (numbers.infinities > 0) text += fmt::format(", {} Inf", numbers.infinities);
  return text;
}

}  // namespace weir
