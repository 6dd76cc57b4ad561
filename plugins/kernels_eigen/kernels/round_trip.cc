// Numbers as after quantisation and back: rounded to numbers at equal distances.
#include <algorithm>

#include "plugins/functors/round_trip.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/quantized_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::HostIntegers;
using sdk::View;

template <class Plan>
struct RoundTrip : Plan {
  /// Rounds `x`; the range of slice s is range(s, &low, &high) if it is given, else that of its elements.
  template <class T, class Range>
  int32_t Round(const sdk::Env& env, View<const T> x, View<T> y, int64_t number, Range&& range) const {
    if (const int32_t code = this->CheckBits(env.error(), number); code != WEIR_OK) return code;
    for (int64_t s = 0; s < this->slices; ++s) {
      T low = 0, high = 0;
      if (this->given) {
        range(s, &low, &high);
        if (!(low <= high)) {
          return env.error().InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
        }
      } else if (this->outer > 0) {
        low = high = x[s * this->inner];
        ForElements(s, [&](int64_t i) {
          if (x[i] < low) low = x[i];
          if (x[i] > high) high = x[i];
        });
      }
      if (this->outer == 0) continue;
      const auto grid = this->GridOf(low, high, number);
      ForElements(s, [&](int64_t i) { y[i] = this->Rounded(grid, x[i]); });
    }
    return WEIR_OK;
  }

  template <class Body>
  void ForElements(int64_t slice, Body&& body) const {
    for (int64_t o = 0; o < this->outer; ++o) {
      const int64_t begin = (o * this->slices + slice) * this->inner;
      for (int64_t i = begin; i < begin + this->inner; ++i) body(i);
    }
  }
};

/// QuantizeAndDequantize: the range is in attributes.
struct RoundTripByAttrs : RoundTrip<functors::RoundTripByAttrsPlan> {
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> x, View<T> y) const {
    return Round<T>(env, x, y, bits, [&](int64_t, T* l, T* h) {
      *l = static_cast<T>(low);
      *h = static_cast<T>(high);
    });
  }
};

struct RoundTripByInputs : RoundTrip<functors::RoundTripByInputsPlan> {
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> x, View<const T> low, View<const T> high, View<T> y) const {
    return Round<T>(env, x, y, bits, [&](int64_t s, T* l, T* h) {
      *l = low[s];
      *h = high[s];
    });
  }
};

struct RoundTripOfBits : RoundTrip<functors::RoundTripOfBitsPlan> {
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> x, View<const T> low, View<const T> high, HostIntegers number,
              View<T> y) const {
    return Round<T>(env, x, y, number[0], [&](int64_t s, T* l, T* h) {
      *l = low[s];
      *h = high[s];
    });
  }
};

struct RoundTripGrad : RoundTrip<functors::RoundTripGradPlan> {
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
