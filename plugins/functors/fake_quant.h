// Fake quantisation: the grid of numbers, checks of the ops.
#ifndef WEIR_PLUGINS_FUNCTORS_FAKE_QUANT_H_
#define WEIR_PLUGINS_FUNCTORS_FAKE_QUANT_H_

#include <cmath>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

/// The attributes num_bits and narrow_range: the integers of the grid.
struct GridInts {
  float least = 0, most = 255;

  int32_t Read(const sdk::Prep& prep) {
    const int64_t bits = prep.node().Int("num_bits", 8);
    if (bits < 2 || bits > 16) {
      return prep.error().InvalidArgument("num_bits must be between 2 and 16, inclusive");
    }
    least = prep.node().Bool("narrow_range", false) ? 1 : 0;
    most = static_cast<float>((1 << bits) - 1);
    return WEIR_OK;
  }
};

/// Numbers at equal distances, one of which is 0.
struct FakeGrid {
  float least = 0, most = 0, step = 0;
  bool nothing = false;  // the range is [0, 0]

  /// The grid nearest to [low, high].
  WEIR_HD FakeGrid(const GridInts& ints, float low, float high) {
    nothing = low == 0 && high == 0;
    step = (high - low) / (ints.most - ints.least);
    const float zero = ints.least - low / step;
    const float place = zero < ints.least ? ints.least : zero > ints.most ? ints.most : std::round(zero);
    least = (ints.least - place) * step;
    most = (ints.most - place) * step;
  }
  WEIR_HD bool Holds(float x) const { return x >= least && x <= most; }
  /// The number nearest to x.
  WEIR_HD float Round(float x) const {
    if (nothing) return 0;
    const float inverse = 1 / step, zero = std::floor(-least * inverse + 0.5f);
    const float below = most < x ? most : x, limited = below < least ? least : below;
    return std::floor((limited - least) * inverse - zero + 0.5f) * step;
  }
};

/// Inputs 0 and 1 of one shape.
inline int32_t ExpectSame(const sdk::Prep& prep) {
  if (sdk::SameShape(prep.shape(0), prep.shape(1))) return WEIR_OK;
  return prep.error().InvalidArgument("gradient and input must be the same size, but have shapes ", prep.shape(0),
                                      " and ", prep.shape(1));
}

struct RangeAttrs {
  GridInts ints;
  float low = 0, high = 0;

  int32_t Read(const sdk::Prep& prep) {
    low = static_cast<float>(prep.node().Float("min", -6));
    high = static_cast<float>(prep.node().Float("max", 6));
    if (!(low < high)) {
      return prep.error().InvalidArgument("min has to be smaller than max, was: ", low, " >= ", high);
    }
    return ints.Read(prep);
  }
};

struct FakeQuantArgsPlan : RangeAttrs {
  int32_t Prepare(sdk::Prep& prep) {
    prep.MayAlias(0, 0);
    return Read(prep);
  }
};

struct FakeQuantArgsGradPlan : RangeAttrs {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = Read(prep); code != WEIR_OK) return code;
    prep.MayAlias(0, 0);
    prep.MayAlias(1, 0);
    return ExpectSame(prep);
  }
};

/// The range is inputs `at` and `at` + 1: scalars, or vectors with an element per channel.
struct RangeInputs {
  GridInts ints;
  int64_t channels = 1, rows = 0;

  int32_t Plan(sdk::Prep& prep, uint32_t at, bool per_channel) {
    const sdk::Error& error = prep.error();
    if (const int32_t code = ints.Read(prep); code != WEIR_OK) return code;
    const weir_shape& shape = prep.shape(at - 1);
    if (per_channel && shape.rank < 1) return error.InvalidArgument("inputs must be at least rank 1, got ", shape);
    if (per_channel) channels = shape.dims[shape.rank - 1];
    for (uint32_t i = 0; i < 2; ++i) {
      const weir_shape& range = prep.shape(at + i);
      const char* name = i == 0 ? "min" : "max";
      const uint32_t rank = per_channel ? 1 : 0;
      if (range.rank != rank) {
        return error.InvalidArgument("`", name, "` must be rank ", rank, " but is rank ", range.rank);
      }
      if (per_channel && range.dims[0] != channels) {
        return error.InvalidArgument(name, " has incorrect size, expected ", channels, " was ", range.dims[0]);
      }
    }
    const int64_t size = prep.size(at - 1);
    rows = size == 0 ? 0 : size / channels;
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

template <bool kPerChannel>
struct FakeQuantVarsPlan : RangeInputs {
  int32_t Prepare(sdk::Prep& prep) { return Plan(prep, 1, kPerChannel); }
};

template <bool kPerChannel>
struct FakeQuantVarsGradPlan : RangeInputs {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = ExpectSame(prep); code != WEIR_OK) return code;
    return Plan(prep, 2, kPerChannel);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_FAKE_QUANT_H_
