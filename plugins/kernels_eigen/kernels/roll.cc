// Roll, and Cross.
#include <algorithm>
#include <cstring>

#include "plugins/functors/roll_plans.h"
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
using sdk::View;

struct Roll : functors::RollPlan {
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

struct Cross : functors::CrossPlan {
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
