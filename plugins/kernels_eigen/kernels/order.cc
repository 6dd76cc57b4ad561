// NthElement, LowerBound and UpperBound.
#include <algorithm>

#include "plugins/functors/counting_plans.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

struct NthElement {
  int64_t n = 0, row = 0;
  bool reverse = false;

  int32_t Prepare(Prep& prep) {
    reverse = prep.node().Bool("reverse");
    const weir_shape& in = prep.shape(0);
    if (prep.shape(1).rank != 0) {
      return prep.error().InvalidArgument("N must be scalar but has rank ", prep.shape(1).rank);
    }
    if (const int32_t code = Steering(prep, 1, "n", &n); code != WEIR_OK) return code;
    if (n < 0) return prep.error().InvalidArgument("n must be non-negative but is ", n);
    if (in.rank < 1) return prep.error().InvalidArgument("Input must be at least rank 1 but is rank 0");
    row = in.dims[in.rank - 1];
    if (row <= n) return prep.error().InvalidArgument("Input must have last dimension > n = ", n);
    const int32_t code = ExpectOutput(prep, 0, {in.dims, in.dims + in.rank - 1});
    if (code != WEIR_OK) return code;
    prep.Scratch(HasNoElements(in) ? 64 : static_cast<uint64_t>(row) * sdk::SizeOf(prep.input(0).dtype));
    return WEIR_OK;
  }
  template <class T>
  void Run(View<const T> input, HostIntegers, View<T> values, sdk::Scratch<char> scratch) const {
    using C = sdk::Compute<T>;
    T* const sorted = reinterpret_cast<T*>(scratch.data());
    // NaN counts as larger than every number, so that there is an order.
    const auto less = [](T a, T b) {
      const C x = static_cast<C>(a), y = static_cast<C>(b);
      return x < y || (x == x && y != y);
    };
    const int64_t at = reverse ? row - 1 - n : n;
    for (int64_t i = 0, rows = values.size(); i < rows; ++i) {
      std::copy_n(input.data() + i * row, row, sorted);
      std::nth_element(sorted, sorted + at, sorted + row, less);
      values[i] = sorted[at];
    }
  }
};

template <bool kUpper>
struct Bound : functors::BoundPlan {
  template <class T, class O>
  void Run(View<const T> sorted, View<const T> values, View<O> output) const {
    using C = sdk::Compute<T>;
    if (values_row == 0) return;
    const auto less = [](T a, T b) { return static_cast<C>(a) < static_cast<C>(b); };
    for (int64_t i = 0, n = output.size(); i < n; ++i) {
      const T* const begin = sorted.data() + i / values_row * row;
      const T* const place = kUpper ? std::upper_bound(begin, begin + row, values[i], less)
                                    : std::lower_bound(begin, begin + row, values[i], less);
      output[i] = static_cast<O>(place - begin);
    }
  }
};

}  // namespace

void AddOrder(sdk::KernelTable& k) {
  k.Add<NthElement>("NthElement", kReal).Class(WEIR_CLASS_SORT);
  k.Add<Bound<false>>("LowerBound", kReal, sdk::Attr("out_type", kIndex)).Class(WEIR_CLASS_SORT);
  k.Add<Bound<true>>("UpperBound", kReal, sdk::Attr("out_type", kIndex)).Class(WEIR_CLASS_SORT);
}

}  // namespace weir::kernels_eigen
