// How tensors store their elements on a device. Kernels compute in a few types C and convert when they load and store,
// so that n element types need a few instances of a kernel instead of n.
#ifndef WEIR_PLUGINS_GPU_KERNELS_STORAGE_H_
#define WEIR_PLUGINS_GPU_KERNELS_STORAGE_H_

#include <cstdint>
#include <type_traits>

#include "plugins/functors/scalar.h"
#include "plugins/gpu/platform/platform.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {

using functors::Complex128;
using functors::Complex64;

/// Elements of the computed type itself.
template <class T>
struct Exact {
  using C = T;
  WEIR_HD C Load(const char* from, int64_t i) const { return reinterpret_cast<const T*>(from)[i]; }
  WEIR_HD void Store(char* to, int64_t i, C x) const { reinterpret_cast<T*>(to)[i] = x; }
};

/// half, or bfloat16 if `brain`.
struct Float16 {
  using C = float;
  bool brain = false;
  WEIR_HD C Load(const char* from, int64_t i) const {
    const uint16_t bits = reinterpret_cast<const uint16_t*>(from)[i];
    return brain ? functors::FloatOfBrain(bits) : functors::FloatOfHalf(bits);
  }
  WEIR_HD void Store(char* to, int64_t i, C x) const {
    reinterpret_cast<uint16_t*>(to)[i] = brain ? functors::BrainOfFloat(x) : functors::HalfOfFloat(x);
  }
};

/// Real numbers of any floating type, computed in double.
struct AnyFloat {
  using C = double;
  uint32_t dtype = WEIR_INVALID;
  WEIR_HD C Load(const char* from, int64_t i) const {
    if (dtype == WEIR_FLOAT32) return reinterpret_cast<const float*>(from)[i];
    if (dtype == WEIR_FLOAT64) return reinterpret_cast<const double*>(from)[i];
    return Float16{dtype == WEIR_BFLOAT16}.Load(from, i);
  }
  WEIR_HD void Store(char* to, int64_t i, C x) const {
    if (dtype == WEIR_FLOAT32) {
      reinterpret_cast<float*>(to)[i] = static_cast<float>(x);
    } else if (dtype == WEIR_FLOAT64) {
      reinterpret_cast<double*>(to)[i] = x;
    } else {
      Float16{dtype == WEIR_BFLOAT16}.Store(to, i, static_cast<float>(x));
    }
  }
};

/// Complex numbers of floats, or of doubles if `wide`.
struct AnyComplex {
  using C = Complex128;
  bool wide = false;

  template <class View>
  static AnyComplex Of(const View& view) {
    return {view.dtype() == WEIR_COMPLEX128};
  }
  WEIR_HD C Load(const char* from, int64_t i) const {
    return wide ? reinterpret_cast<const Complex128*>(from)[i] : C(reinterpret_cast<const Complex64*>(from)[i]);
  }
  WEIR_HD void Store(char* to, int64_t i, C x) const {
    if (wide) {
      reinterpret_cast<Complex128*>(to)[i] = x;
    } else {
      reinterpret_cast<Complex64*>(to)[i] = Complex64(x);
    }
  }
};

/// Integers of any width. The low bits of sums and products do not depend on the width; uint64 is loaded as the int64
/// with its bits.
struct Integer {
  using C = int64_t;
  uint32_t dtype = WEIR_INVALID;
  WEIR_HD C Load(const char* from, int64_t i) const {
    switch (dtype) {
      case WEIR_INT32:
        return reinterpret_cast<const int32_t*>(from)[i];
      case WEIR_INT8:
        return reinterpret_cast<const int8_t*>(from)[i];
      case WEIR_INT16:
        return reinterpret_cast<const int16_t*>(from)[i];
      case WEIR_UINT8:
        return reinterpret_cast<const uint8_t*>(from)[i];
      case WEIR_UINT16:
        return reinterpret_cast<const uint16_t*>(from)[i];
      case WEIR_UINT32:
        return reinterpret_cast<const uint32_t*>(from)[i];
      default:
        return reinterpret_cast<const int64_t*>(from)[i];
    }
  }
  WEIR_HD void Store(char* to, int64_t i, C x) const {
    switch (dtype) {
      case WEIR_INT8:
      case WEIR_UINT8:
        reinterpret_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(x);
        return;
      case WEIR_INT16:
      case WEIR_UINT16:
        reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(x);
        return;
      case WEIR_INT32:
      case WEIR_UINT32:
        reinterpret_cast<uint32_t*>(to)[i] = static_cast<uint32_t>(x);
        return;
      default:
        reinterpret_cast<int64_t*>(to)[i] = x;
    }
  }
};

/// Any byte but 0 is true.
struct Boolean {
  using C = bool;
  WEIR_HD C Load(const char* from, int64_t i) const { return from[i] != 0; }
  WEIR_HD void Store(char* to, int64_t i, C x) const { to[i] = x ? 1 : 0; }
};

/// Sets of element types, or-ed.
enum Kinds : unsigned {
  kFloats = 1,      // half, bfloat16, float, double
  kIntegers = 2,    // all integers
  kUnsigned64 = 4,  // with kIntegers: uint64 is computed in its own type
  kComplexes = 8,
  kBools = 16,
  kWide = 32,  // of the floats only float and double
};

constexpr uint64_t DTypes(std::initializer_list<uint32_t> dtypes) {
  uint64_t set = 0;
  for (const uint32_t dtype : dtypes) set |= WEIR_DTYPE_BIT(dtype);
  return set;
}
inline constexpr uint64_t kFloatBits = DTypes({WEIR_FLOAT32, WEIR_FLOAT64});
#if defined(WEIR_KERNEL_DTYPES_SHORT)
inline constexpr bool kShort = true;
inline constexpr uint64_t k16BitBits = 0, kComplexBits = 0;
#else
inline constexpr bool kShort = false;
inline constexpr uint64_t k16BitBits = DTypes({WEIR_FLOAT16, WEIR_BFLOAT16}),
                          kComplexBits = DTypes({WEIR_COMPLEX64, WEIR_COMPLEX128});
#endif
inline constexpr uint64_t kSignedBits = DTypes({WEIR_INT8, WEIR_INT16, WEIR_INT32, WEIR_INT64});
inline constexpr uint64_t kUnsignedBits = DTypes({WEIR_UINT8, WEIR_UINT16, WEIR_UINT32, WEIR_UINT64});
inline constexpr uint64_t kIndexBits = DTypes({WEIR_INT32, WEIR_INT64});
inline constexpr uint64_t kBoolBits = DTypes({WEIR_BOOL});
inline constexpr uint64_t kFloatingBits = kFloatBits | k16BitBits;
inline constexpr uint64_t kRealBits = kFloatingBits | kSignedBits | kUnsignedBits;
inline constexpr uint64_t kNumberBits = kRealBits | kComplexBits;

/// The types of a set of kinds.
constexpr uint64_t BitsOf(unsigned kinds) {
  return ((kinds & kFloats) != 0 ? ((kinds & kWide) != 0 ? kFloatBits : kFloatingBits) : 0) |
         ((kinds & kIntegers) != 0 ? kSignedBits | kUnsignedBits : 0) | ((kinds & kComplexes) != 0 ? kComplexBits : 0) |
         ((kinds & kBools) != 0 ? kBoolBits : 0);
}

/// Returns body(storage) for an element type of the kinds; false for others.
template <unsigned kKinds, class Body>
bool WithStorage(uint32_t dtype, Body&& body) {
  if constexpr ((kKinds & kFloats) != 0) {
    if (dtype == WEIR_FLOAT32) return body(Exact<float>()), true;
    if (dtype == WEIR_FLOAT64) return body(Exact<double>()), true;
    if constexpr (!kShort && (kKinds & kWide) == 0) {
      if (dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16) return body(Float16{dtype == WEIR_BFLOAT16}), true;
    }
  }
  if constexpr ((kKinds & kIntegers) != 0) {
    if constexpr ((kKinds & kUnsigned64) != 0) {
      if (dtype == WEIR_UINT64) return body(Exact<uint64_t>()), true;
    }
    if (((kSignedBits | kUnsignedBits) & WEIR_DTYPE_BIT(dtype)) != 0) return body(Integer{dtype}), true;
  }
  if constexpr ((kKinds & kComplexes) != 0 && !kShort) {
    if (dtype == WEIR_COMPLEX64) return body(Exact<Complex64>()), true;
    if (dtype == WEIR_COMPLEX128) return body(Exact<Complex128>()), true;
  }
  if constexpr ((kKinds & kBools) != 0) {
    if (dtype == WEIR_BOOL) return body(Boolean()), true;
  }
  return false;
}

/// Stores a result in the storage of the operands, or a truth value as a bool.
template <class S, class R>
WEIR_HD void Put(const S& storage, char* to, int64_t i, R x) {
  if constexpr (std::is_same_v<R, bool>) {
    Boolean().Store(to, i, x);
  } else {
    storage.Store(to, i, x);
  }
}

/// Device memory of any element type, as bytes.
template <class View>
Ptr<const char> From(const View& view) {
  return Ptr<const char>(static_cast<const char*>(static_cast<const void*>(view.data())));
}
template <class View>
Ptr<char> To(const View& view) {
  return Ptr<char>(static_cast<char*>(static_cast<void*>(view.data())));
}

/// Adds a kernel whose Run<E> uses the addresses of its variables only: one instance serves all types of `attr`.
template <class K>
sdk::Kernel& AddForVariables(sdk::KernelTable& k, std::string_view op, const char* attr, uint64_t dtypes) {
  static constexpr uint32_t kAnySize[16] = {};
  sdk::Kernel& kernel = k.Add<K>(op, sdk::Attr(attr, sdk::Types<uint8_t>()));
  std::vector<sdk::internal::Variant>& variants = kernel.Variants();
  sdk::internal::Variant variant = variants[0];
  const auto& typed = *static_cast<const sdk::internal::RunForm*>(variant.data);
  static const sdk::internal::RunForm form = {typed.fn, {typed.params.kinds, kAnySize, typed.params.count}};
  variant.data = &form;
  variants.clear();
  kernel.summary.dtypes[0] = dtypes;
  for (uint32_t dtype = 0; dtype < 64; ++dtype) {
    if ((dtypes & WEIR_DTYPE_BIT(dtype)) == 0) continue;
    variant.dtypes[0] = dtype;
    variants.push_back(variant);
  }
  return kernel;
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_STORAGE_H_
