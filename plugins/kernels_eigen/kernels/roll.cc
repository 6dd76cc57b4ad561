// Roll, and Cross.
#include <algorithm>
#include <cstring>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

struct Roll {
  std::vector<int64_t> dims, shifts;  // shifts in [0, extent)
  bool empty = false;

  int32_t Prepare(Prep& prep) {
    const weir_shape &in = prep.shape(0), &shift = prep.shape(1), &axis = prep.shape(2);
    if (in.rank < 1) return prep.error().InvalidArgument("input must be 1-D or higher");
    if (shift.rank > 1) return prep.error().InvalidArgument("shift must be a scalar or a 1-D vector. Found: ", shift);
    if (axis.rank > 1) return prep.error().InvalidArgument("axis must be a scalar or a 1-D vector. Found: ", axis);
    if (!sdk::SameShape(shift, axis)) return prep.error().InvalidArgument("shift and axis must have the same size");
    std::vector<int64_t> by, along;
    if (const int32_t code = Steering(prep, 1, &by); code != WEIR_OK) return code;
    if (const int32_t code = Steering(prep, 2, &along); code != WEIR_OK) return code;
    dims = DimsOf(in);
    shifts.assign(dims.size(), 0);
    for (size_t i = 0; i < along.size(); ++i) {
      const int64_t rank = in.rank, at = along[i] < 0 ? along[i] + rank : along[i];
      if (at < 0 || at >= rank) return prep.error().InvalidArgument("axis ", at, " is out of range");
      const int64_t extent = std::max<int64_t>(dims[static_cast<size_t>(at)], 1);
      int64_t& sum = shifts[static_cast<size_t>(at)];
      sum = (sum + (by[i] % extent + extent) % extent) % extent;
    }
    empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
    return ExpectOutput(prep, 0, dims);
  }

  void Run(AnyInput input, HostIntegers, HostIntegers, AnyOutput output) const {
    if (empty) return;
    Copy(static_cast<const char*>(input.data()), static_cast<char*>(output.data()), 0,
         static_cast<size_t>(output.size()) * sdk::SizeOf(output.dtype()));
  }

 private:
  /// Rolls the axes from `axis` on of an array of that many bytes.
  void Copy(const char* from, char* to, size_t axis, size_t bytes) const {
    if (Still(axis)) {
      std::memcpy(to, from, bytes);
      return;
    }
    const auto extent = static_cast<size_t>(dims[axis]), shift = static_cast<size_t>(shifts[axis]);
    const size_t row = bytes / extent;
    if (Still(axis + 1)) {
      std::memcpy(to + shift * row, from, (extent - shift) * row);
      std::memcpy(to, from + (extent - shift) * row, shift * row);
      return;
    }
    for (size_t i = 0; i < extent; ++i) Copy(from + i * row, to + (i + shift) % extent * row, axis + 1, row);
  }
  /// Nothing moves along the axes from `axis` on.
  bool Still(size_t axis) const {
    return std::all_of(shifts.begin() + static_cast<int64_t>(axis), shifts.end(), [](int64_t s) { return s == 0; });
  }
};

struct Cross {
  int32_t Prepare(Prep& prep) {
    const weir_shape &a = prep.shape(0), &b = prep.shape(1);
    if (!sdk::SameShape(a, b)) {
      return prep.error().InvalidArgument("Both inputs must be of same shape: ", a, " vs. ", b);
    }
    if (a.rank < 1) return prep.error().InvalidArgument("Input must be at least 1D", a);
    if (a.dims[a.rank - 1] != 3) {
      return prep.error().InvalidArgument("Cross-products are only defined for 3-element vectors.");
    }
    return WEIR_OK;
  }
  template <class T>
  void Run(View<const T> a, View<const T> b, View<T> product) const {
    using C = sdk::Compute<T>;
    for (int64_t i = 0, n = product.size(); i + 2 < n; i += 3) {
      C x[3], y[3];
      for (int64_t k = 0; k < 3; ++k) {
        x[k] = static_cast<C>(a[i + k]);
        y[k] = static_cast<C>(b[i + k]);
      }
      for (int64_t k = 0; k < 3; ++k) {
        const int64_t p = (k + 1) % 3, q = (k + 2) % 3;
        product[i + k] = static_cast<T>(Difference(Product(x[p], y[q]), Product(x[q], y[p])));
      }
    }
  }
};

}  // namespace

void AddRoll(sdk::KernelTable& k) {
  k.Add<Roll>("Roll").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<Cross>("Cross", kReal).Class(WEIR_CLASS_ELEMENTWISE, 9);
}

}  // namespace weir::kernels_eigen
