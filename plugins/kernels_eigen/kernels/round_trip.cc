// Numbers as after quantisation and back: rounded to numbers at equal distances.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/quantized_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// Attributes of the op, and the axis whose slices have ranges of their own.
struct RoundTrip {
  bool is_signed = true, given = false, narrow = false, half_up = false;
  int64_t bits = 8;
  int64_t outer = 1, slices = 1, inner = 1;

  int32_t CheckBits(const sdk::Error& error, int64_t number) const {
    if (number > 0 && number < (is_signed ? 62 : 63)) return WEIR_OK;
    return error.InvalidArgument("num_bits is out of range: ", number, " with signed_input_ ", is_signed ? 1 : 0);
  }

  /// `array`: the input with slices; inputs from array + 1 on are the range, unless `ranges` is 0.
  int32_t Plan(Prep& prep, uint32_t array, uint32_t ranges) {
    const sdk::Node& node = prep.node();
    const sdk::Error& error = prep.error();
    is_signed = node.Bool("signed_input", true);
    given = node.Bool("range_given", ranges > 0 && prep.inputs() == 4);
    narrow = node.Bool("narrow_range", false);
    half_up = node.String("round_mode") == "HALF_UP";
    bits = node.Int("num_bits", 8);
    const weir_shape& shape = prep.shape(array);
    const int64_t axis = node.Int("axis", -1), rank = shape.rank;
    if (axis < -1) return error.InvalidArgument("Axis should be at least -1. Found ", axis);
    if (axis >= rank) return error.InvalidArgument("Shape must be at least rank ", axis + 1, " but is rank ", rank);
    if (axis >= 0) slices = shape.dims[axis];
    if (HasNoElements(shape)) {
      outer = 0;
    } else {
      for (int64_t i = 0; i < rank; ++i) {
        if (i != axis) (i < axis ? outer : inner) *= shape.dims[i];
      }
    }
    for (uint32_t i = 1; i <= ranges; ++i) {
      const weir_shape& range = prep.shape(array + i);
      const char* name = i == 1 ? "input_min" : "input_max";
      if (axis < 0 ? range.rank == 0 : range.rank == 1 && range.dims[0] == slices) continue;
      return error.InvalidArgument(name, " has shape ", range, ", wanted ", axis < 0 ? "a scalar" : "a vector of ",
                                   axis < 0 ? "" : "one number per slice: ", slices);
    }
    prep.MayAlias(0, 0);
    return CheckBits(error, bits);
  }

  /// Integers and numbers of one range.
  template <class T>
  struct Grid {
    T low, high, scale, step;
  };

  template <class T>
  Grid<T> GridOf(T low, T high, int64_t number) const {
    const int64_t most_integer = is_signed ? (int64_t{1} << (number - 1)) - 1 : (int64_t{1} << number) - 1;
    const int64_t least_integer = !is_signed ? 0 : -most_integer - (narrow ? 0 : 1);
    const auto least = static_cast<T>(least_integer), most = static_cast<T>(most_integer);
    const T none = std::numeric_limits<T>::max();
    const T below = least * low > 0 ? least / low : none;
    const T above = most * high > 0 ? most / high : none;
    Grid<T> grid{low, high, above, T(0)};
    if (below < above) {
      grid.scale = below;
      grid.step = low / least;
      grid.high = most * grid.step;
    } else {
      grid.step = high / most;
      grid.low = least * grid.step;
    }
    return grid;
  }

  template <class T>
  T Rounded(const Grid<T>& grid, T x) const {
    const T limited = given ? std::max(std::min(x, grid.high), grid.low) : x;
    const T scaled = limited * grid.scale;
    return (half_up ? std::floor(scaled + T(0.5)) : std::nearbyint(scaled)) * grid.step;
  }

  /// Rounds `x`; the range of slice s is range(s, &low, &high) if it is given, else that of its elements.
  template <class T, class Range>
  int32_t Round(const sdk::Env& env, View<const T> x, View<T> y, int64_t number, Range&& range) const {
    if (const int32_t code = CheckBits(env.error(), number); code != WEIR_OK) return code;
    for (int64_t s = 0; s < slices; ++s) {
      T low = 0, high = 0;
      if (given) {
        range(s, &low, &high);
        if (low > high) {
          return env.error().InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
        }
      } else if (outer > 0) {
        low = high = x[s * inner];
        ForElements(s, [&](int64_t i) {
          if (x[i] < low) low = x[i];
          if (x[i] > high) high = x[i];
        });
      }
      if (outer == 0) continue;
      const Grid<T> grid = GridOf(low, high, number);
      ForElements(s, [&](int64_t i) { y[i] = Rounded(grid, x[i]); });
    }
    return WEIR_OK;
  }

  template <class Body>
  void ForElements(int64_t slice, Body&& body) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t begin = (o * slices + slice) * inner;
      for (int64_t i = begin; i < begin + inner; ++i) body(i);
    }
  }
};

/// QuantizeAndDequantize: the range is in attributes.
struct RoundTripByAttrs : RoundTrip {
  double low = 0, high = 0;

  int32_t Prepare(Prep& prep) {
    low = prep.node().Float("input_min", 0);
    high = prep.node().Float("input_max", 0);
    return Plan(prep, 0, 0);
  }
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> x, View<T> y) const {
    return Round<T>(env, x, y, bits, [&](int64_t, T* l, T* h) {
      *l = static_cast<T>(low);
      *h = static_cast<T>(high);
    });
  }
};

struct RoundTripByInputs : RoundTrip {
  int32_t Prepare(Prep& prep) { return Plan(prep, 0, 2); }
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> x, View<const T> low, View<const T> high, View<T> y) const {
    return Round<T>(env, x, y, bits, [&](int64_t s, T* l, T* h) {
      *l = low[s];
      *h = high[s];
    });
  }
};

struct RoundTripOfBits : RoundTrip {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(3).rank != 0) return prep.error().InvalidArgument("num_bits must be a scalar, got ", prep.shape(3));
    return Plan(prep, 0, 2);
  }
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> x, View<const T> low, View<const T> high, HostIntegers number,
              View<T> y) const {
    return Round<T>(env, x, y, number[0], [&](int64_t s, T* l, T* h) {
      *l = low[s];
      *h = high[s];
    });
  }
};

struct RoundTripGrad : RoundTrip {
  int32_t Prepare(Prep& prep) {
    if (!sdk::SameShape(prep.shape(0), prep.shape(1))) {
      return prep.error().InvalidArgument("gradient and input must be the same size");
    }
    return Plan(prep, 1, 2);
  }
  template <class T>
  void Run(View<const T> dy, View<const T> x, View<const T> low, View<const T> high, View<T> dx, View<T> dlow,
           View<T> dhigh) const {
    for (int64_t s = 0; s < slices; ++s) {
      const T least = low[s], most = high[s];
      dlow[s] = dhigh[s] = T(0);
      ForElements(s, [&](int64_t i) {
        const T value = x[i];
        dx[i] = value >= least && value <= most ? dy[i] : T(0);
      });
    }
  }
};

}  // namespace

void AddRoundTrip(sdk::KernelTable& k) {
  const auto add = [&](sdk::Kernel& kernel) { kernel.Class(WEIR_CLASS_ELEMENTWISE, 6); };
  add(k.Add<RoundTripByAttrs>("QuantizeAndDequantize", kFloat));
  add(k.Add<RoundTripByInputs>("QuantizeAndDequantizeV2", kFloat));
  add(k.Add<RoundTripOfBits>("QuantizeAndDequantizeV3", kFloat));
  add(k.Add<RoundTripByInputs>("QuantizeAndDequantizeV4", kFloat));
  add(k.Add<RoundTripGrad>("QuantizeAndDequantizeV4Grad", kFloat));
}

}  // namespace weir::kernels_eigen
