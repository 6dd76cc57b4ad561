// Arrays made from scalars or shapes: Fill, ZerosLike, OnesLike, Range.
#include <algorithm>
#include <bit>
#include <cstring>

#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;

/// Fills `to` with copies of the element at `value`.
void FillWith(const void* value, const AnyOutput& to) {
  const int64_t n = to.size();
  ForBytes(sdk::SizeOf(to.dtype()), [&](auto element) {
    std::memcpy(&element, value, sizeof element);
    auto* elements = static_cast<decltype(element)*>(to.data());
    std::fill(elements, elements + n, element);
  });
}

struct Fill {
  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    if (prep.size(1) != 1) return prep.error().InvalidArgument("value must be a scalar, got shape ", prep.shape(1));
    return ExpectOutput(prep, 0, dims);
  }
  void Run(sdk::HostIntegers, AnyInput value, AnyOutput output) const { FillWith(value.data(), output); }
};

struct ZerosLike {
  void Prepare(sdk::Prep& prep) { prep.MayAlias(0, 0); }
  void Run(AnyInput, AnyOutput y) const {
    const size_t bytes = static_cast<size_t>(y.size()) * sdk::SizeOf(y.dtype());
    if (bytes != 0) std::memset(y.data(), 0, bytes);
  }
};

/// The bytes of 1, or of true.
sdk::bits128 One(uint32_t dtype) {
  switch (dtype) {
    case WEIR_FLOAT16:
      return {0x3c00, 0};
    case WEIR_BFLOAT16:
      return {0x3f80, 0};
    case WEIR_FLOAT32:
    case WEIR_COMPLEX64:
      return {std::bit_cast<uint32_t>(1.0f), 0};
    case WEIR_FLOAT64:
    case WEIR_COMPLEX128:
      return {std::bit_cast<uint64_t>(1.0), 0};
    default:
      return {1, 0};
  }
}

struct OnesLike {
  void Prepare(sdk::Prep& prep) { prep.MayAlias(0, 0); }
  void Run(AnyInput, AnyOutput y) const {
    const sdk::bits128 one = One(y.dtype());
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

}  // namespace

void AddFill(sdk::KernelTable& k) {
  k.Add<Fill>("Fill").Restrict("T", kPlainSet | kQuantizedSet | kInt4Set).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<ZerosLike>("ZerosLike").Restrict("T", kPlainSet).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<OnesLike>("OnesLike").Restrict("T", kPlainSet).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Range>("Range", sdk::Attr("Tidx", sdk::Types<float, double, int32_t, int64_t>())).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
