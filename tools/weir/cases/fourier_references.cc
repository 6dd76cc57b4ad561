#include "tools/weir/cases/fourier_references.h"

#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "core/tensor/number.h"
#include "tools/weir/cases/case_values.h"

namespace weir::cases {
namespace {

using Wave = std::complex<double>;

/// The transform of the n elements x[0], x[step], …; `roots` are those of all `n * step` elements.
std::vector<Wave> Transformed(const Wave* x, size_t n, size_t step, const std::vector<Wave>& roots) {
  size_t parts = 2;
  while (parts < n && n % parts != 0) ++parts;
  if (n == 1) return {x[0]};
  const size_t rest = n / parts;
  std::vector<std::vector<Wave>> of_parts;
  for (size_t p = 0; p < parts; ++p) of_parts.push_back(Transformed(x + p * step, rest, parts * step, roots));
  std::vector<Wave> y(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t p = 0; p < parts; ++p) y[k] += of_parts[p][k % rest] * roots[p * k % n * step];
  }
  return y;
}

/// Extents of an array of rank 1 to 3 and more along its last three axes, with ones in front.
std::vector<int64_t> LastExtents(const Shape& shape, int axes) {
  std::vector<int64_t> dims(3, 1);
  for (int i = 0; i < axes; ++i) dims[static_cast<size_t>(2 - i)] = shape.dim(shape.rank() - 1 - i);
  return dims;
}

struct Waves {
  std::vector<int64_t> dims;
  std::vector<Wave> data;

  size_t At(int64_t a, int64_t b, int64_t c) const { return static_cast<size_t>((a * dims[1] + b) * dims[2] + c); }

  /// Transforms along one axis; backwards without the division.
  void Along(size_t axis, bool backwards) {
    const auto n = static_cast<size_t>(dims[axis]);
    size_t step = 1;
    for (size_t i = axis + 1; i < 3; ++i) step *= static_cast<size_t>(dims[i]);
    std::vector<Wave> roots(n), line(n);
    for (size_t i = 0; i < n; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      roots[i] = {std::cos(angle), backwards ? std::sin(angle) : -std::sin(angle)};
    }
    for (size_t first = 0; first < data.size(); ++first) {
      if (first / step % n != 0) continue;
      for (size_t i = 0; i < n; ++i) line[i] = data[first + i * step];
      const std::vector<Wave> to = Transformed(line.data(), n, 1, roots);
      for (size_t i = 0; i < n; ++i) data[first + i * step] = to[i];
    }
  }
};

}  // namespace

bool FourierReference(const OpCase& c, Tensor& y) {
  const std::string& op = c.def->name;
  const size_t at = op.find("FFT");
  if (at == std::string::npos || at > 2 || y.elements() == 0) return false;
  const int axes = op.ends_with("2D") ? 2 : op.ends_with("3D") ? 3 : 1;
  const bool backwards = op.starts_with("I"), half = at > 0 && op[at - 1] == 'R';
  const std::vector<int64_t> in = LastExtents(c.inputs[0].shape(), axes), out = LastExtents(y.shape(), axes);
  std::vector<int64_t> lengths = in;
  for (int i = 0; half && i < axes; ++i) {
    lengths[static_cast<size_t>(3 - axes + i)] = ElementAsInt(c.inputs[1], i);
  }
  const int64_t points = lengths[0] * lengths[1] * lengths[2];
  const int64_t batch = y.elements() / (out[0] * out[1] * out[2]);
  for (int64_t k = 0; k < batch; ++k) {
    Waves waves{lengths, std::vector<Wave>(static_cast<size_t>(points))};
    const auto source = [&](int64_t a, int64_t b, int64_t i) {
      return ElementAsComplex(c.inputs[0], ((k * in[0] + a) * in[1] + b) * in[2] + i);
    };
    const bool mirrored = half && backwards;
    const int64_t known = mirrored ? lengths[2] / 2 + 1 : lengths[2];
    for (int64_t i = 0; i < points; ++i) {
      const int64_t e = i % lengths[2], b = i / lengths[2] % lengths[1], a = i / lengths[2] / lengths[1];
      if (e < known) {
        waves.data[static_cast<size_t>(i)] = source(a, b, e);
        continue;
      }
      // The upper frequencies of real numbers are conjugates of the lower ones.
      waves.data[static_cast<size_t>(i)] =
          std::conj(source((lengths[0] - a) % lengths[0], (lengths[1] - b) % lengths[1], lengths[2] - e));
    }
    for (size_t axis = 0; axis < 3; ++axis) waves.Along(axis, backwards);
    for (int64_t i = 0; i < out[0] * out[1] * out[2]; ++i) {
      const int64_t e = i % out[2], b = i / out[2] % out[1], a = i / out[2] / out[1];
      const Wave value = waves.data[waves.At(a, b, e)];
      SetNumber(y, k * out[0] * out[1] * out[2] + i, backwards ? value / static_cast<double>(points) : value);
    }
  }
  return true;
}

}  // namespace weir::cases
