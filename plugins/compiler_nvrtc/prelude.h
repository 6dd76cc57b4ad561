// The functions that generated source calls, as text. It is CUDA C++ for NVRTC; a host that defines WEIR_FN and the
// four conversions of 16-bit floats compiles it too.
#ifndef WEIR_PLUGINS_COMPILER_NVRTC_PRELUDE_H_
#define WEIR_PLUGINS_COMPILER_NVRTC_PRELUDE_H_

namespace weir::compiler_nvrtc {

/// What only a device has.
inline constexpr const char* kDevicePrelude = R"(#define WEIR_FN __device__ __forceinline__
WEIR_FN float HalfIn(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
WEIR_FN unsigned short HalfOut(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
WEIR_FN float Real32(unsigned int bits) { return __int_as_float((int)bits); }
WEIR_FN double Real64(unsigned long long bits) { return __longlong_as_double((long long)bits); }
WEIR_FN unsigned int Bits32(float x) { return (unsigned int)__float_as_int(x); }
)";

/// Arithmetic with the meaning of TensorFlow's ops. Integers wrap.
inline constexpr const char* kPrelude = R"(typedef unsigned long long Wide;
template <class T> struct IsReal { static const bool value = false; };
template <> struct IsReal<float> { static const bool value = true; };
template <> struct IsReal<double> { static const bool value = true; };
WEIR_FN float BrainIn(unsigned short x) { return Real32((unsigned int)x << 16); }
WEIR_FN unsigned short BrainOut(float value) {
  const unsigned int x = Bits32(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((x >> 16) | 0x40u);
  return (unsigned short)((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}
WEIR_FN float HalfRound(float x) { return HalfIn(HalfOut(x)); }
WEIR_FN float BrainRound(float x) { return BrainIn(BrainOut(x)); }

template <class T> WEIR_FN T Add(T x, T y) {
  if constexpr (IsReal<T>::value) return x + y; else return (T)((Wide)x + (Wide)y);
}
template <class T> WEIR_FN T Sub(T x, T y) {
  if constexpr (IsReal<T>::value) return x - y; else return (T)((Wide)x - (Wide)y);
}
template <class T> WEIR_FN T Mul(T x, T y) {
  if constexpr (IsReal<T>::value) return x * y; else return (T)((Wide)x * (Wide)y);
}
template <class T> WEIR_FN T Neg(T x) {
  if constexpr (IsReal<T>::value) return -x; else return (T)((Wide)0 - (Wide)x);
}
template <class T> WEIR_FN T Identity(T x) { return x; }
template <class T> WEIR_FN T Abs(T x) {
  if constexpr (IsReal<T>::value) return fabs(x); else return x < T(0) ? Neg(x) : x;
}
template <class T> WEIR_FN T Sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }
template <class T> WEIR_FN T Square(T x) { return Mul(x, x); }
template <class T> WEIR_FN T Reciprocal(T x) { return T(1) / x; }
template <class T> WEIR_FN T Sqrt(T x) { return sqrt(x); }
template <class T> WEIR_FN T Rsqrt(T x) { return T(1) / sqrt(x); }
template <class T> WEIR_FN T Floor(T x) { return floor(x); }
template <class T> WEIR_FN T Ceil(T x) { return ceil(x); }
template <class T> WEIR_FN T Round(T x) { if constexpr (IsReal<T>::value) return rint(x); else return x; }
template <class T> WEIR_FN T Exp(T x) { return exp(x); }
template <class T> WEIR_FN T Expm1(T x) { return expm1(x); }
template <class T> WEIR_FN T Log(T x) { return log(x); }
template <class T> WEIR_FN T Log1p(T x) { return log1p(x); }
template <class T> WEIR_FN T Tanh(T x) { return tanh(x); }
template <class T> WEIR_FN T Erf(T x) { return erf(x); }
template <class T> WEIR_FN T Sigmoid(T x) {
  const T e = exp(-fabs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}
template <class T> WEIR_FN T Relu(T x) { return x < T(0) ? T(0) : x; }
template <class T> WEIR_FN T Relu6(T x) { return x < T(0) ? T(0) : x > T(6) ? T(6) : x; }
template <class T> WEIR_FN T Elu(T x) { return x < T(0) ? expm1(x) : x; }
template <class T> WEIR_FN T Selu(T x) {
  return x < T(0) ? T(1.7580993408473768599) * expm1(x) : T(1.0507009873554804934) * x;
}
template <class T> WEIR_FN T Softplus(T x) { return (x < T(0) ? T(0) : x) + log1p(exp(-fabs(x))); }
template <class T> WEIR_FN T Softsign(T x) { return x / (T(1) + fabs(x)); }
template <class T> WEIR_FN T LeakyRelu(T x, T slope) { return x > T(0) ? x : slope * x; }
template <class T> WEIR_FN bool IsFinite(T x) { return x - x == T(0); }
template <class T> WEIR_FN bool IsNan(T x) { return x != x; }
template <class T> WEIR_FN bool IsInf(T x) { return x == x && x - x != T(0); }
WEIR_FN bool LogicalNot(bool x) { return !x; }
template <class T> WEIR_FN T Invert(T x) { return (T)~x; }
template <class T> WEIR_FN unsigned char PopulationCount(T x) {
  unsigned char count = 0;
  Wide bits = (Wide)x;
  for (unsigned int i = 0; i < 8 * sizeof(T); ++i) count = (unsigned char)(count + ((bits >> i) & 1));
  return count;
}

template <class T> WEIR_FN T Div(T x, T y) { return x / y; }
template <class T> WEIR_FN T DivNoNan(T x, T y) { return y == T(0) ? T(0) : x / y; }
template <class T> WEIR_FN T FloorDiv(T x, T y) { return floor(x / y); }
template <class T> WEIR_FN T TruncateDiv(T x, T y) { return trunc(x / y); }
template <class T> WEIR_FN T SquaredDifference(T x, T y) { return Square(Sub(x, y)); }
template <class T> WEIR_FN T Maximum(T x, T y) { return x > y || x != x ? x : y; }
template <class T> WEIR_FN T Minimum(T x, T y) { return x < y || x != x ? x : y; }
template <class T> WEIR_FN T Xlogy(T x, T y) { return x == T(0) ? T(0) : x * log(y); }
template <class T> WEIR_FN T Xlog1py(T x, T y) { return x == T(0) ? T(0) : x * log1p(y); }
template <class T> WEIR_FN T Xdivy(T x, T y) { return x == T(0) ? T(0) : x / y; }
template <class T> WEIR_FN bool Equal(T x, T y) { return x == y; }
template <class T> WEIR_FN bool NotEqual(T x, T y) { return x != y; }
template <class T> WEIR_FN bool Less(T x, T y) { return x < y; }
template <class T> WEIR_FN bool LessEqual(T x, T y) { return x <= y; }
template <class T> WEIR_FN bool Greater(T x, T y) { return x > y; }
template <class T> WEIR_FN bool GreaterEqual(T x, T y) { return x >= y; }
WEIR_FN bool LogicalAnd(bool x, bool y) { return x && y; }
WEIR_FN bool LogicalOr(bool x, bool y) { return x || y; }
template <class T> WEIR_FN T BitwiseAnd(T x, T y) { return (T)(x & y); }
template <class T> WEIR_FN T BitwiseOr(T x, T y) { return (T)(x | y); }
template <class T> WEIR_FN T BitwiseXor(T x, T y) { return (T)(x ^ y); }
template <class T> WEIR_FN int ShiftOf(T by) {
  const int most = 8 * (int)sizeof(T) - 1;
  return by < T(0) ? 0 : by > T(most) ? most : (int)by;
}
template <class T> WEIR_FN T LeftShift(T x, T by) { return (T)((Wide)x << ShiftOf(by)); }
template <class T> WEIR_FN T RightShift(T x, T by) { return (T)(x >> ShiftOf(by)); }

template <class T> WEIR_FN T TanhGrad(T y, T dy) { return dy * (T(1) - y * y); }
template <class T> WEIR_FN T SigmoidGrad(T y, T dy) { return dy * y * (T(1) - y); }
template <class T> WEIR_FN T ReciprocalGrad(T y, T dy) { return dy == T(0) ? T(0) : -dy * y * y; }
template <class T> WEIR_FN T SqrtGrad(T y, T dy) { return dy == T(0) ? T(0) : T(0.5) * dy / y; }
template <class T> WEIR_FN T RsqrtGrad(T y, T dy) { return dy == T(0) ? T(0) : T(-0.5) * (dy * y) * (y * y); }
template <class T> WEIR_FN T ReluGrad(T dy, T x) { return Mul(dy, x > T(0) ? T(1) : T(0)); }
template <class T> WEIR_FN T Relu6Grad(T dy, T x) { return Mul(dy, x > T(0) && x < T(6) ? T(1) : T(0)); }
template <class T> WEIR_FN T EluGrad(T dy, T y) { return y < T(0) ? (y + T(1)) * dy : dy; }
template <class T> WEIR_FN T SeluGrad(T dy, T y) {
  return y < T(0) ? (y + T(1.7580993408473768599)) * dy : dy * T(1.0507009873554804934);
}
template <class T> WEIR_FN T SoftplusGrad(T dy, T x) { return dy / (exp(-x) + T(1)); }
template <class T> WEIR_FN T SoftsignGrad(T dy, T x) {
  const T slope = T(1) + fabs(x);
  return dy / (slope * slope);
}
template <class T> WEIR_FN T LeakyReluGrad(T dy, T x, T slope) { return x > T(0) ? dy : slope * dy; }
template <class T> WEIR_FN T Select(bool which, T x, T y) { return which ? x : y; }
template <class T> WEIR_FN T ClipByValue(T x, T low, T high) {
  const T below = x > high ? high : x;
  return below < low ? low : below;
}

template <class I, class T> WEIR_FN I CutSigned(T x) {
  const T least = sizeof(I) == 8 ? T(-9223372036854775808.0) : T(-2147483648.0);
  return (I)(x >= least && x < -least ? x : least);
}
template <class To, class From> WEIR_FN To Cast(From x) {
  constexpr bool is_signed = To(-1) < To(0);
  if constexpr (!IsReal<From>::value || IsReal<To>::value) {
    return (To)x;
  } else if constexpr (sizeof(To) == 8 && is_signed) {
    return CutSigned<long long>(x);
  } else if constexpr (sizeof(To) == 8) {
    const From half = From(9223372036854775808.0);
    const bool above = x >= half && x < half * From(2);
    const Wide low = (Wide)CutSigned<long long>(above ? x - half : x);
    return (To)(above ? low ^ ((Wide)1 << 63) : low);
  } else if constexpr (sizeof(To) == 4 && is_signed) {
    return CutSigned<int>(x);
  } else if constexpr (sizeof(To) == 4) {
    const From least = From(-2147483648.0);
    return (To)(long long)(x >= least && x < From(4294967296.0) ? x : least);
  } else {
    const int cut = CutSigned<int>(x), bits = 8 * (int)sizeof(To);
    const int most = (1 << (is_signed ? bits - 1 : bits)) - 1, least = is_signed ? -most - 1 : 0;
    return (To)(cut < least ? least : cut > most ? most : cut);
  }
}
template <class From> WEIR_FN bool Truth(From x) { return x != From(0); }
)";

}  // namespace weir::compiler_nvrtc

#endif  // WEIR_PLUGINS_COMPILER_NVRTC_PRELUDE_H_
