// Ops of the discrete Fourier transform along the last one to three axes: their checks and extents.
#ifndef WEIR_PLUGINS_FUNCTORS_FOURIER_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_FOURIER_PLAN_H_

#include <array>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Complex numbers to complex ones; real ones to the lower half of the frequencies; and back.
enum class FourierKind : uint8_t { kComplex, kToHalf, kFromHalf };

/// One transform of `axes` axes takes lengths[0..3) elements; the arrays hold `in` and `out` elements along them. The
/// leading axes are of extent 1 where there are fewer than three.
struct FourierPlan {
  int axes = 1;
  FourierKind kind = FourierKind::kComplex;
  bool inverse = false;
  bool empty = false;  // the input has no elements, and the lengths may be arbitrarily large
  std::array<int64_t, 3> lengths{}, in{}, out{};

  int32_t Read(const sdk::Prep& prep) {
    const weir_shape &from = prep.shape(0), &to = prep.output(0).shape;
    const auto rank = static_cast<int64_t>(from.rank);
    if (rank < axes) {
      return prep.error().InvalidArgument("Input must have rank of at least ", axes, " but got: ", from);
    }
    lengths = in = out = {1, 1, 1};
    for (int i = 0; i < axes; ++i) {
      const auto at = static_cast<size_t>(3 - axes + i);
      in[at] = from.dims[rank - axes + i];
      out[at] = to.dims[rank - axes + i];
      lengths[at] = in[at];
    }
    empty = HasNoElements(from);
    return kind == FourierKind::kComplex ? int32_t{WEIR_OK} : ReadLengths(prep);
  }

  /// Elements along the last axis that transforms of the other axes work on.
  int64_t Columns() const {
    return kind == FourierKind::kFromHalf ? lengths[2] / 2 + 1 : kind == FourierKind::kToHalf ? out[2] : lengths[2];
  }

 private:
  int32_t ReadLengths(const sdk::Prep& prep) {
    std::vector<int64_t> given;
    if (const int32_t code = Steering(prep, 1, &given); code != WEIR_OK) return code;
    if (static_cast<int>(given.size()) != axes || prep.shape(1).rank != 1) {
      return prep.error().InvalidArgument("fft_length must have shape [", axes, "]");
    }
    for (int i = 0; i < axes; ++i) {
      const auto at = static_cast<size_t>(3 - axes + i);
      lengths[at] = given[static_cast<size_t>(i)];
      if (lengths[at] < 0) {
        return prep.error().InvalidArgument("fft_length[", i, "] must >= 0, but got: ", lengths[at]);
      }
      const bool half = kind == FourierKind::kFromHalf && i == axes - 1;
      const int64_t least = half ? lengths[at] / 2 + 1 : lengths[at];
      if (in[at] != 0 && in[at] < least) {
        return prep.error().InvalidArgument("Input dimension ", prep.shape(0).rank - static_cast<uint32_t>(axes - i),
                                            " must have length of at least ", least, " but got: ", in[at]);
      }
    }
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_FOURIER_PLAN_H_
