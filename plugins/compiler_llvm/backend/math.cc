#include "plugins/compiler_llvm/backend/math.h"

#include <span>

namespace weir::compiler_llvm {
namespace {

// e^r = 1 + r + r^2 q(r) for |r| <= ln 2 / 2, lowest coefficient first. The float ones are those of
// plugins/functors/exponential.h; the double ones are minimax with an error below 4e-18 of r^2 q.
constexpr double kExpFloat[] = {0.49999993050724617f, 0.16666514791398562f, 0.04166845678740364f, 0.00836941883554774f,
                                0.0013813144504642412f};
constexpr double kExpDouble[] = {0.5000000000000013,     0.166666666666667,     0.04166666666651507,
                                 0.008333333333306924,   0.0013888888947129628, 0.00019841269917970865,
                                 2.4801489804518913e-05, 2.755721579957133e-06, 2.763133546827496e-07,
                                 2.511801231341009e-08};
// log((1 + s) / (1 - s)) = 2 s + s z p(z) with z = s^2 <= 0.0295; minimax, errors below 1e-11 and 3e-18.
constexpr double kLogFloat[] = {0.6666666563729364, 0.4000033728969067, 0.2853716175472426, 0.23585155506546487};
constexpr double kLogDouble[] = {0.6666666666666735,  0.3999999999940699,  0.28571428744261373, 0.2222219836526327,
                                 0.18183575896791054, 0.15313735961933417, 0.14799274612463878};
// erf(x) = x + x p(x^2) for |x| <= 1; minimax, error below 2e-9.
constexpr double kErf[] = {0.12837916591465431,  -0.37612627140440547,   0.11283600211815889,  -0.026854445581508075,
                           0.005189536461939261, -0.0008020845698406905, 7.889119157487838e-05};
// erfc(x) = e^p(x) for 1 <= x <= 4; minimax, error below 3e-11 of the value of erf.
constexpr double kLogErfc[] = {0.00018802588959260618, -1.1295783582274044,    -0.6332200212163689,
                               -0.10841844166005986,   0.025208172115948467,   -0.004204530802016549,
                               0.00044133016104225666, -2.1686327516189576e-05};

V Polynomial(Ir& ir, V x, std::span<const double> coefficients) {
  V sum = ir.Real(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = ir.Fma(sum, x, ir.Real(x, coefficients[i]));
  return sum;
}

/// `limit` where x is below it; NaN stays NaN.
V AtLeast(Ir& ir, V x, double limit) {
  V bound = ir.Real(x, limit);
  return ir.Select(ir.FCmp(LLVMRealOLT, x, bound), bound, x);
}
V AtMost(Ir& ir, V x, double limit) {
  V bound = ir.Real(x, limit);
  return ir.Select(ir.FCmp(LLVMRealOGT, x, bound), bound, x);
}

/// e^x = 2^power (1 + rest).
struct Parts {
  V power, whole, rest;  // an integer, the same as a number, and a number
};

/// For x in the range of the caller's limits; `rest` is NaN for NaN.
Parts Split(Ir& ir, V x) {
  const bool wide = Ir::IsDouble(x);
  // A sum with 1.5 * 2^23 (2^52) has no fraction, and the low bits of the sum are those of the whole number.
  V round = ir.Real(x, wide ? 6755399441055744.0 : 12582912.0);
  V shifted = ir.Fma(x, ir.Real(x, wide ? 1.4426950408889634 : static_cast<double>(1.44269504f)), round);
  V n = ir.Sub(shifted, round);
  // ln 2 in two pieces.
  const double high = wide ? 0.6931471805599453 : 0.693147182464599609375;
  const double low = wide ? 2.3190468138462996e-17 : static_cast<double>(-1.904654290582768e-9f);
  V r = ir.Fma(n, ir.Real(x, -low), ir.Fma(n, ir.Real(x, -high), x));
  V q = wide ? Polynomial(ir, r, kExpDouble) : Polynomial(ir, r, kExpFloat);
  return {ir.Sub(ir.Bits(shifted), ir.Bits(round)), n, ir.Fma(q, ir.Mul(r, r), r)};
}

/// 2^n as a number, for exponents of normal numbers.
V PowerOfTwo(Ir& ir, V n) {
  const bool wide = Ir::ElementOf(n) == ir.i64;
  return ir.FromBits(ir.Shl(ir.Add(n, ir.Int(n, wide ? 1023 : 127)), ir.Int(n, wide ? 52 : 23)));
}

/// x 2^n with one rounding, for n in a range in which 2^(n / 2) is a normal number.
V Scaled(Ir& ir, V x, const Parts& parts) {
  const bool wide = Ir::IsDouble(x);
  if (ir.has_scalef && ir.lanes * (wide ? 64 : 32) == 512) {
    V all = LLVMConstAllOnes(wide ? ir.i8 : ir.i16), current = LLVMConstInt(ir.i32, 4, 0);
    return ir.CallOf(wide ? "llvm.x86.avx512.mask.scalef.pd.512" : "llvm.x86.avx512.mask.scalef.ps.512", {},
                     {x, parts.whole, x, all, current});
  }
  // 2^n may be no normal number, so x is scaled twice, exactly the first time.
  const uint64_t bias = wide ? 1200 : 200;
  V n = parts.power;
  V first = ir.Sub(ir.LShr(ir.Add(n, ir.Int(n, 2 * bias)), ir.Int(n, 1)), ir.Int(n, bias));
  return ir.Mul(ir.Mul(x, PowerOfTwo(ir, first)), PowerOfTwo(ir, ir.Sub(n, first)));
}

/// x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), for normal x > 0.
struct Mantissa {
  V e, f;
};
Mantissa SplitLog(Ir& ir, V x) {
  const bool wide = Ir::IsDouble(x);
  V bits = ir.Bits(x);
  const uint64_t one = wide ? 0x3ff0000000000000 : 0x3f800000, root = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  const unsigned mantissa = wide ? 52 : 23;
  V biased = ir.LShr(ir.Add(bits, ir.Int(bits, one - root)), ir.Int(bits, mantissa));
  V exponent = ir.Sub(biased, ir.Int(bits, wide ? 1023 : 127));
  V scaled = ir.FromBits(ir.Sub(bits, ir.Shl(exponent, ir.Int(bits, mantissa))));
  V e;
  if (wide) {  // AVX2 has no conversion of 64-bit integers
    V round = ir.Real(x, 6755399441055744.0);
    e = ir.Sub(ir.FromBits(ir.Add(ir.Bits(round), exponent)), round);
  } else {
    e = ir.Cast(LLVMSIToFP, exponent, ir.f32);
  }
  return {e, ir.Sub(scaled, ir.Real(x, 1))};
}

/// e ln 2 + log(1 + f) + low, where `low` is small.
V Assemble(Ir& ir, const Mantissa& m, V low) {
  const bool wide = Ir::IsDouble(m.f);
  V s = ir.Div(m.f, ir.Add(ir.Real(m.f, 2), m.f));
  V z = ir.Mul(s, s);
  V r = ir.Mul(z, wide ? Polynomial(ir, z, kLogDouble) : Polynomial(ir, z, kLogFloat));
  V square = ir.Mul(ir.Mul(ir.Real(m.f, 0.5), m.f), m.f);
  // Products of `high` and exponents are exact.
  const double high = wide ? 6.93147180369123816490e-01 : static_cast<double>(6.9313812256e-01f);
  const double rest = wide ? 1.90821492927058770002e-10 : static_cast<double>(9.0580006145e-06f);
  V small = ir.Fma(s, ir.Add(square, r), ir.Fma(m.e, ir.Real(m.e, rest), low));
  return ir.Fma(m.e, ir.Real(m.e, high), ir.Sub(m.f, ir.Sub(square, small)));
}

/// -infinity for 0, NaN below, and what `value` is for others; infinity for infinity.
V WithLogLimits(Ir& ir, V x, V value) {
  V infinity = ir.Real(x, __builtin_inf());
  value = ir.Select(ir.FCmp(LLVMRealOEQ, x, infinity), infinity, value);
  value = ir.Select(ir.FCmp(LLVMRealOEQ, x, ir.Real(x, 0)), ir.Neg(infinity), value);
  // Unordered, so that NaN stays NaN.
  return ir.Select(ir.FCmp(LLVMRealULT, x, ir.Real(x, 0)), ir.Real(x, __builtin_nan("")), value);
}

}  // namespace

V Exp(Ir& ir, V x) {
  const bool wide = Ir::IsDouble(x);
  // Beyond the limits the result is infinite or rounds to 0.
  x = AtMost(ir, AtLeast(ir, x, wide ? -746.0 : -104.0), wide ? 710.0 : 89.0);
  const Parts parts = Split(ir, x);
  return Scaled(ir, ir.Add(ir.Real(x, 1), parts.rest), parts);
}

V Expm1(Ir& ir, V x) {
  const bool wide = Ir::IsDouble(x);
  V limited = AtMost(ir, AtLeast(ir, x, wide ? -100.0 : -80.0), wide ? 710.0 : 89.0);
  const Parts parts = Split(ir, limited);
  // Half of the result, so that the power of two of the largest numbers is finite.
  V half = PowerOfTwo(ir, ir.Sub(parts.power, ir.Int(parts.power, 1)));
  V value = ir.Fma(parts.rest, half, ir.Sub(half, ir.Real(x, 0.5)));
  value = ir.Add(value, value);
  V tiny = ir.FCmp(LLVMRealOLT, ir.Fabs(x), ir.Real(x, wide ? 1e-17 : 1e-9));
  return ir.Select(tiny, x, value);
}

V Log(Ir& ir, V x) {
  const bool wide = Ir::IsDouble(x);
  V least = ir.Real(x, wide ? 2.2250738585072014e-308 : static_cast<double>(1.17549435e-38f));
  V subnormal = ir.FCmp(LLVMRealOLT, x, least);
  V scaled = ir.Select(subnormal, ir.Mul(x, ir.Real(x, wide ? 18014398509481984.0 : 33554432.0)), x);
  Mantissa m = SplitLog(ir, scaled);
  m.e = ir.Select(subnormal, ir.Sub(m.e, ir.Real(x, wide ? 54 : 25)), m.e);
  return WithLogLimits(ir, x, Assemble(ir, m, ir.Real(x, 0)));
}

V Log1p(Ir& ir, V x) {
  V one = ir.Real(x, 1);
  V u = ir.Add(one, x);
  const Mantissa m = SplitLog(ir, u);
  // What the sum lost, relative to the sum.
  V large = ir.FCmp(LLVMRealOGT, x, one);
  V lost = ir.Select(large, ir.Sub(one, ir.Sub(u, x)), ir.Sub(x, ir.Sub(u, one)));
  V value = WithLogLimits(ir, u, Assemble(ir, m, ir.Div(lost, u)));
  V tiny = ir.FCmp(LLVMRealOLT, ir.Fabs(x), ir.Real(x, Ir::IsDouble(x) ? 1e-17 : 1e-9));
  return ir.Select(tiny, x, value);
}

V Tanh(Ir& ir, V x) {
  V t = Expm1(ir, ir.Mul(ir.Real(x, -2), ir.Fabs(x)));
  return ir.CopySign(ir.Div(ir.Neg(t), ir.Add(ir.Real(x, 2), t)), x);
}

V Sigmoid(Ir& ir, V x) {
  V one = ir.Real(x, 1);
  // e^-|x| where it is a normal number, else 0.
  const double least = Ir::IsDouble(x) ? -708.3 : static_cast<double>(-87.33654f);
  V down = ir.Neg(ir.Fabs(x));
  const Parts parts = Split(ir, AtLeast(ir, down, least));
  V e = ir.Mul(ir.Add(one, parts.rest), PowerOfTwo(ir, parts.power));
  e = ir.Select(ir.FCmp(LLVMRealOLT, down, ir.Real(x, least)), ir.Real(x, 0), e);
  V top = ir.Select(ir.FCmp(LLVMRealOLT, x, ir.Real(x, 0)), e, one);
  return ir.Div(top, ir.Add(one, e));
}

V Softplus(Ir& ir, V x) {
  V zero = ir.Real(x, 0);
  V positive = ir.Select(ir.FCmp(LLVMRealOLT, x, zero), zero, x);
  return ir.Add(positive, Log1p(ir, Exp(ir, ir.Neg(ir.Fabs(x)))));
}

V Erf(Ir& ir, V x) {
  V one = ir.Real(x, 1);
  V size = ir.Fabs(x);
  V near = ir.Fma(x, Polynomial(ir, ir.Mul(x, x), kErf), x);
  V limited = AtMost(ir, AtLeast(ir, size, 1), 4);
  V far = ir.CopySign(ir.Sub(one, Exp(ir, Polynomial(ir, limited, kLogErfc))), x);
  return ir.Select(ir.FCmp(LLVMRealOGT, size, one), far, near);
}

}  // namespace weir::compiler_llvm
