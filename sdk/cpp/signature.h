// Parameters of a kernel's Run function as data, read from its type; kernel.h documents each parameter.
#ifndef WEIR_SDK_CPP_SIGNATURE_H_
#define WEIR_SDK_CPP_SIGNATURE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sdk/cpp/context.h"
#include "sdk/cpp/views.h"

namespace weir::sdk::internal {

enum class Param {
  kEnv,
  kInput,
  kHostInput,
  kInputList,
  kHostInputList,
  kRead,
  kWrite,
  kOutput,
  kOutputList,
  kScratch
};

/// The kind of a parameter of Run, and the bytes of its elements (0 = any type).
template <Param kValue, uint32_t kElementBytes = 0>
struct Stands {
  static constexpr Param kKind = kValue;
  static constexpr uint32_t kBytes = kElementBytes;
};

template <class P>
struct ParamOf;
template <>
struct ParamOf<Env&> : Stands<Param::kEnv> {};
template <>
struct ParamOf<const Env&> : Stands<Param::kEnv> {};
template <>
struct ParamOf<Integers> : Stands<Param::kInput> {};
template <>
struct ParamOf<HostIntegers> : Stands<Param::kHostInput> {};
template <>
struct ParamOf<AnyInput> : Stands<Param::kInput> {};
template <>
struct ParamOf<AnyOutput> : Stands<Param::kOutput> {};
template <>
struct ParamOf<AnyInputs> : Stands<Param::kInputList> {};
template <>
struct ParamOf<AnyOutputs> : Stands<Param::kOutputList> {};
template <>
struct ParamOf<AnyVariable> : Stands<Param::kRead> {};
template <class T>
struct ParamOf<View<T>> : Stands<std::is_const_v<T> ? Param::kInput : Param::kOutput, sizeof(T)> {};
template <class T>
struct ParamOf<Host<const T>> : Stands<Param::kHostInput, sizeof(T)> {};
template <class T>
struct ParamOf<Variable<T>> : Stands<std::is_const_v<T> ? Param::kRead : Param::kWrite, sizeof(T)> {};
template <class T>
struct ParamOf<Views<T>> : Stands<std::is_const_v<T> ? Param::kInputList : Param::kOutputList, sizeof(T)> {};
template <class T>
struct ParamOf<HostViews<const T>> : Stands<Param::kHostInputList, sizeof(T)> {};
template <class T>
struct ParamOf<Scratch<T>> : Stands<Param::kScratch> {};
template <class T>
struct ParamOf<Buffer<T>> : Stands<std::is_const_v<T> ? Param::kInput : Param::kOutput, ElementBytes<T>()> {};
template <class T>
struct ParamOf<Buffers<T>> : Stands<std::is_const_v<T> ? Param::kInputList : Param::kOutputList, ElementBytes<T>()> {};
template <class T>
struct ParamOf<VariableBuffer<T>> : Stands<std::is_const_v<T> ? Param::kRead : Param::kWrite, ElementBytes<T>()> {};
template <>
struct ParamOf<ScratchBuffer> : Stands<Param::kScratch> {};

constexpr bool IsInputList(Param p) { return p == Param::kInputList || p == Param::kHostInputList; }
constexpr bool IsInput(Param p) {
  return p == Param::kInput || p == Param::kHostInput || p == Param::kRead || p == Param::kWrite || IsInputList(p);
}
constexpr bool IsOutputList(Param p) { return p == Param::kOutputList; }
constexpr bool IsOutput(Param p) { return p == Param::kOutput || p == Param::kOutputList; }

/// Parameters of a Run function as data: all that prepare needs, independent of the types.
struct ParamList {
  const Param* kinds;
  const uint32_t* bytes;  // of an element; 0 = any type
  uint32_t count;

  template <class Test>
  constexpr uint32_t Count(Test test, size_t end) const {
    uint32_t n = 0;
    for (size_t i = 0; i < end; ++i) n += test(kinds[i]) ? 1 : 0;
    return n;
  }
  template <class Test>
  constexpr uint32_t Count(Test test) const {
    return Count(test, count);
  }
  /// Bits of the input arguments of kind `a` or `b`.
  constexpr uint64_t Mask(Param a, Param b) const {
    uint64_t mask = 0;
    uint32_t argument = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!IsInput(kinds[i])) continue;
      if (kinds[i] == a || kinds[i] == b) mask |= uint64_t{1} << argument;
      ++argument;
    }
    return mask;
  }
};

/// Parameters of a Run function, read from its type.
template <class R, bool kConstRun, class... P>
struct Signature {
  static constexpr bool kConst = kConstRun;
  static constexpr size_t kCount = sizeof...(P);
  static constexpr std::array<Param, sizeof...(P)> kKinds = {ParamOf<P>::kKind...};
  static constexpr std::array<uint32_t, sizeof...(P)> kBytes = {ParamOf<P>::kBytes...};
  static constexpr ParamList kParams = {kKinds.data(), kBytes.data(), sizeof...(P)};
};

template <class F>
struct SignatureOf;
template <class R, class K, class... P>
struct SignatureOf<R (K::*)(P...)> {
  using Type = Signature<R, false, P...>;
};
template <class R, class K, class... P>
struct SignatureOf<R (K::*)(P...) const> {
  using Type = Signature<R, true, P...>;
};
template <class R, class... P>
struct SignatureOf<R (*)(P...)> {
  using Type = Signature<R, true, P...>;
};

// Not constexpr: nvcc compiles constexpr functions for the device too, where K::Run does not exist.
template <class K, class... T>
auto RunOf() {
  if constexpr (sizeof...(T) == 0) {
    return &K::Run;
  } else {
    return &K::template Run<T...>;
  }
}

}  // namespace weir::sdk::internal

#endif  // WEIR_SDK_CPP_SIGNATURE_H_
