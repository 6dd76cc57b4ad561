// Numbers as after quantisation and back: their grids, checks of the ops.
#ifndef WEIR_PLUGINS_FUNCTORS_ROUND_TRIP_H_
#define WEIR_PLUGINS_FUNCTORS_ROUND_TRIP_H_

#include <cmath>
#include <limits>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

/// Attributes of the op, and the axis whose slices have ranges of their own.
struct RoundTripPlan {
  bool is_signed = true, given = false, narrow = false, half_up = false;
  int64_t bits = 8;
  int64_t outer = 1, slices = 1, inner = 1;

  int32_t CheckBits(const sdk::Error& error, int64_t number) const {
    if (number > 0 && number < (is_signed ? 62 : 63)) return WEIR_OK;
    return error.InvalidArgument("num_bits is out of range: ", number, " with signed_input_ ", is_signed ? 1 : 0);
  }

  /// `array`: the input with slices; inputs from array + 1 on are the range, unless `ranges` is 0.
  int32_t Plan(sdk::Prep& prep, uint32_t array, uint32_t ranges) {
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
  WEIR_HD Grid<T> GridOf(T low, T high, int64_t number) const {
    const int64_t most_integer = is_signed ? (int64_t{1} << (number - 1)) - 1 : (int64_t{1} << number) - 1;
    const int64_t least_integer = !is_signed ? 0 : -most_integer - (narrow ? 0 : 1);
    const auto least = static_cast<T>(least_integer), most = static_cast<T>(most_integer);
    constexpr T none = std::numeric_limits<T>::max();
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
  WEIR_HD static T Limited(const Grid<T>& grid, T x) {
    const T below = grid.high < x ? grid.high : x;
    return below < grid.low ? grid.low : below;
  }
  template <class T>
  WEIR_HD T Rounded(const Grid<T>& grid, T x) const {
    const T limited = given ? Limited(grid, x) : x;
    const T scaled = limited * grid.scale;
    return (half_up ? std::floor(scaled + T(0.5)) : std::nearbyint(scaled)) * grid.step;
  }
};

/// QuantizeAndDequantize: the range is in attributes.
struct RoundTripByAttrsPlan : RoundTripPlan {
  double low = 0, high = 0;

  int32_t Prepare(sdk::Prep& prep) {
    low = prep.node().Float("input_min", 0);
    high = prep.node().Float("input_max", 0);
    return Plan(prep, 0, 0);
  }
};

struct RoundTripByInputsPlan : RoundTripPlan {
  int32_t Prepare(sdk::Prep& prep) { return Plan(prep, 0, 2); }
};

struct RoundTripOfBitsPlan : RoundTripPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (prep.shape(3).rank != 0) return prep.error().InvalidArgument("num_bits must be a scalar, got ", prep.shape(3));
    return Plan(prep, 0, 2);
  }
};

struct RoundTripGradPlan : RoundTripPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (!sdk::SameShape(prep.shape(0), prep.shape(1))) {
      return prep.error().InvalidArgument("gradient and input must be the same size");
    }
    return Plan(prep, 1, 2);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_ROUND_TRIP_H_
