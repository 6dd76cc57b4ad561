// Arrays made from scalars or shapes: Fill, ZerosLike, OnesLike, Range, LinSpace.
#include <algorithm>
#include <cstring>

#include "plugins/functors/fill.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;

struct Fill : functors::FillPlan {
  void Run(sdk::HostIntegers, AnyInput value, AnyOutput output) const { FillWith(value.data(), output); }
};

struct ZerosLike {
  void Prepare(sdk::Prep& prep) { prep.MayAlias(0, 0); }
  void Run(AnyInput, AnyOutput y) const {
    const size_t bytes = static_cast<size_t>(y.size()) * sdk::SizeOf(y.dtype());
    if (bytes != 0) std::memset(y.data(), 0, bytes);
  }
};

struct OnesLike {
  void Prepare(sdk::Prep& prep) { prep.MayAlias(0, 0); }
  void Run(AnyInput, AnyOutput y) const {
    const sdk::bits128 one{functors::BitsOfOne(y.dtype()), 0};
    FillWith(&one, y);
  }
};

/// start + i * delta, rounded after each operation; the shape function determines the number of elements.
struct Range {
  template <class T>
  void Run(sdk::Host<const T> start, sdk::Host<const T>, sdk::Host<const T> delta, sdk::View<T> output) const {
    const int64_t n = output.size();
    if (n == 0 || start.size() != 1 || delta.size() != 1) return;
    const T first = start[0], step = delta[0];
    for (int64_t i = 0; i < n; ++i) output[i] = Sum(first, Product(static_cast<T>(i), step));
  }
};

struct LinSpace : functors::LinSpacePlan {
  template <class T>
  void Run(sdk::View<const T> start, sdk::View<const T> stop, sdk::HostIntegers, sdk::View<T> output) const {
    using C = sdk::Compute<T>;
    const int64_t n = output.size();
    const C first = static_cast<C>(start[0]);
    const C step = n > 1 ? (static_cast<C>(stop[0]) - first) / static_cast<C>(n - 1) : C(0);
    for (int64_t i = 0; i < n; ++i) output[i] = static_cast<T>(first + step * static_cast<C>(i));
    if (n > 1) output[n - 1] = stop[0];
  }
};

}  // namespace

void AddFill(sdk::KernelTable& k) {
  k.Add<Fill>("Fill").Restrict("T", kPlainSet | kQuantizedSet | kInt4Set).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<ZerosLike>("ZerosLike").Restrict("T", kPlainSet).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<OnesLike>("OnesLike").Restrict("T", kPlainSet).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Range>("Range", sdk::Attr("Tidx", sdk::Types<float, double, int32_t, int64_t>())).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<LinSpace>("LinSpace", kFloating).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
