// Cast between any two element types, through tiles of the widest type of the source's kind: n types need n loads and n
// stores instead of n * n loops. Pairs common in training have their own loops.
#include <algorithm>
#include <bit>

#include "plugins/functors/cast.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::boolean;

constexpr int64_t kCastTile = 512;

using functors::CastTypeOf;
using functors::Convert;
using functors::int4;
using functors::Kind;
using functors::KindOf;
using functors::uint4;
using functors::Value;

using Loop = void (*)(const void* from, void* to, int64_t n);

template <class S, class D>
void ConvertLoop(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const S*>(from);
  auto* y = static_cast<D*>(to);
  WEIR_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = Convert<D>(Value(x[i]));
}
template <class S>
void LoadLoop(const void* from, void* to, int64_t n) {
  using W = typename CastTypeOf<KindOf<S>()>::Type;
  for (int64_t i = 0; i < n; ++i) static_cast<W*>(to)[i] = static_cast<W>(Value(static_cast<const S*>(from)[i]));
}

template <class T>
void WidenLoop(const void* from, void* to, int64_t n) {
  sdk::Widen(static_cast<const T*>(from), static_cast<float*>(to), n);
}
template <class T>
void NarrowLoop(const void* from, void* to, int64_t n) {
  sdk::Narrow(static_cast<const float*>(from), static_cast<T*>(to), n);
}

/// Load and store functions of one element type.
struct Element {
  Kind kind = Kind::kNone;
  Loop load = nullptr;
  Loop store_signed = nullptr, store_unsigned = nullptr, store_real = nullptr, store_complex = nullptr;
  int mantissa = 52;  // explicit bits of a float
};

template <class T>
Element Make(int mantissa = 52) {
  return {KindOf<T>(),
          &LoadLoop<T>,
          &ConvertLoop<int64_t, T>,
          &ConvertLoop<uint64_t, T>,
          &ConvertLoop<double, T>,
          &ConvertLoop<sdk::complex128, T>,
          mantissa};
}

const Element& ElementOf(uint32_t dtype) {
  static const auto table = [] {
    std::array<Element, 33> t;
    t[WEIR_FLOAT32] = Make<float>(23);
    t[WEIR_FLOAT64] = Make<double>();
    t[WEIR_INT32] = Make<int32_t>();
    t[WEIR_INT64] = Make<int64_t>();
    t[WEIR_BOOL] = Make<boolean>();
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
    t[WEIR_INT8] = t[WEIR_QINT8] = Make<int8_t>();
    t[WEIR_INT16] = t[WEIR_QINT16] = Make<int16_t>();
    t[WEIR_QINT32] = t[WEIR_INT32];
    t[WEIR_UINT8] = t[WEIR_QUINT8] = Make<uint8_t>();
    t[WEIR_UINT16] = t[WEIR_QUINT16] = Make<uint16_t>();
    t[WEIR_UINT32] = Make<uint32_t>();
    t[WEIR_UINT64] = Make<uint64_t>();
    t[WEIR_FLOAT16] = Make<sdk::half>(10);
    t[WEIR_BFLOAT16] = Make<sdk::bfloat16>(7);
    t[WEIR_COMPLEX64] = Make<sdk::complex64>();
    t[WEIR_COMPLEX128] = Make<sdk::complex128>();
    t[WEIR_FLOAT8_E5M2] = Make<sdk::float8_e5m2>(2);
    t[WEIR_FLOAT8_E4M3FN] = Make<sdk::float8_e4m3fn>(3);
    t[WEIR_INT4] = Make<int4>();
    t[WEIR_UINT4] = Make<uint4>();
#endif
    return t;
  }();
  return table[dtype < table.size() ? dtype : 0];
}

/// The direct loop of a pair of types; null if there is none.
Loop DirectLoop(uint32_t from, uint32_t to) {
  struct Pair {
    uint32_t from, to;
    Loop loop;
  };
  static constexpr Pair kPairs[] = {
    {WEIR_FLOAT32, WEIR_FLOAT64, &ConvertLoop<float, double>},
    {WEIR_FLOAT64, WEIR_FLOAT32, &ConvertLoop<double, float>},
    {WEIR_FLOAT32, WEIR_INT32, &ConvertLoop<float, int32_t>},
    {WEIR_INT32, WEIR_FLOAT32, &ConvertLoop<int32_t, float>},
    {WEIR_INT64, WEIR_FLOAT32, &ConvertLoop<int64_t, float>},
    {WEIR_FLOAT32, WEIR_INT64, &ConvertLoop<float, int64_t>},
    {WEIR_INT32, WEIR_INT64, &ConvertLoop<int32_t, int64_t>},
    {WEIR_INT64, WEIR_INT32, &ConvertLoop<int64_t, int32_t>},
    {WEIR_BOOL, WEIR_FLOAT32, &ConvertLoop<boolean, float>},
    {WEIR_BOOL, WEIR_INT32, &ConvertLoop<boolean, int32_t>},
    {WEIR_FLOAT32, WEIR_BOOL, &ConvertLoop<float, boolean>},
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
    {WEIR_UINT8, WEIR_FLOAT32, &ConvertLoop<uint8_t, float>},
    {WEIR_FLOAT32, WEIR_FLOAT16, &NarrowLoop<sdk::half>},
    {WEIR_FLOAT16, WEIR_FLOAT32, &WidenLoop<sdk::half>},
    {WEIR_FLOAT32, WEIR_BFLOAT16, &NarrowLoop<sdk::bfloat16>},
    {WEIR_BFLOAT16, WEIR_FLOAT32, &WidenLoop<sdk::bfloat16>},
#endif
  };
  for (const Pair& pair : kPairs) {
    if (pair.from == from && pair.to == to) return pair.loop;
  }
  return nullptr;
}

bool IsFloat8(uint32_t dtype) { return dtype == WEIR_FLOAT8_E5M2 || dtype == WEIR_FLOAT8_E4M3FN; }
bool IsInt4(uint32_t dtype) { return dtype == WEIR_INT4 || dtype == WEIR_UINT4; }
bool IsInteger(uint32_t dtype) {
  const Kind kind = ElementOf(dtype).kind;
  return (kind == Kind::kSigned || kind == Kind::kUnsigned) && dtype != WEIR_BOOL;
}

bool Supported(uint32_t from, uint32_t to) {
  if (ElementOf(from).kind == Kind::kNone || ElementOf(to).kind == Kind::kNone) return false;
  if (IsInt4(from) || IsInt4(to)) return IsInteger(from) && IsInteger(to);
  const bool complex = ElementOf(from).kind == Kind::kComplex || ElementOf(to).kind == Kind::kComplex;
  return !(complex && (IsFloat8(from) || IsFloat8(to)));
}

/// Clears the mantissa bits beyond the narrower float's, so that the conversion truncates instead of rounding.
void CutMantissa(double* x, int64_t n, int mantissa) {
  const uint64_t mask = ~((uint64_t{1} << (52 - mantissa)) - 1);
  for (int64_t i = 0; i < n; ++i) x[i] = std::bit_cast<double>(std::bit_cast<uint64_t>(x[i]) & mask);
}

struct Cast {
  Loop direct = nullptr;
  Loop load = nullptr, store = nullptr;
  int64_t from_bytes = 0, to_bytes = 0;
  int cut_to = 52;

  int32_t Prepare(sdk::Prep& prep) {
    const uint32_t from = prep.input(0).dtype, to = prep.output(0).dtype;
    if (!Supported(from, to)) return prep.error().Unimplemented("Cast of type ", from, " to ", to, " is not supported");
    from_bytes = sdk::SizeOf(from);
    to_bytes = sdk::SizeOf(to);
    const Element &source = ElementOf(from), &target = ElementOf(to);
    const bool cut = prep.node().Bool("Truncate") && source.kind == Kind::kReal && target.kind == Kind::kReal;
    if (cut) cut_to = target.mantissa;
    direct = cut ? nullptr : DirectLoop(from, to);
    load = source.load;
    store = source.kind == Kind::kSigned     ? target.store_signed
            : source.kind == Kind::kUnsigned ? target.store_unsigned
            : source.kind == Kind::kReal     ? target.store_real
                                             : target.store_complex;
    if (from_bytes == to_bytes) prep.MayAlias(0, 0);
    return WEIR_OK;
  }

  void Run(sdk::AnyInput input, sdk::AnyOutput output) const {
    const auto* x = static_cast<const char*>(input.data());
    auto* y = static_cast<char*>(output.data());
    const int64_t n = output.size();
    if (direct != nullptr) return direct(x, y, n);
    alignas(64) char tile[kCastTile * sizeof(sdk::complex128)];
    for (int64_t i = 0; i < n; i += kCastTile) {
      const int64_t count = std::min(kCastTile, n - i);
      load(x + i * from_bytes, tile, count);
      if (cut_to < 52) CutMantissa(reinterpret_cast<double*>(tile), count, cut_to);
      store(tile, y + i * to_bytes, count);
    }
  }
};

}  // namespace

void AddCast(sdk::KernelTable& k) {
  sdk::Kernel& kernel = k.Add<Cast>("Cast").Class(WEIR_CLASS_ELEMENTWISE);
  uint64_t dtypes = 0;
  for (uint32_t dtype = 0; dtype <= WEIR_UINT2; ++dtype) {
    if (ElementOf(dtype).kind != Kind::kNone) dtypes |= WEIR_DTYPE_BIT(dtype);
  }
  kernel.types.push_back({sdk::Str("SrcT"), dtypes});
  kernel.types.push_back({sdk::Str("DstT"), dtypes});
}

}  // namespace weir::kernels_eigen
