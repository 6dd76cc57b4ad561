#include "plugins/compiler_llvm/backend/elements.h"

#include <bit>

#include "plugins/compiler_llvm/backend/math.h"
#include "plugins/compiler_llvm/ops.h"
#include "sdk/cpp/types.h"

namespace weir::compiler_llvm {
namespace {

bool IsHalf(uint32_t dtype) { return dtype == WEIR_FLOAT16; }
bool IsBrain(uint32_t dtype) { return dtype == WEIR_BFLOAT16; }

/// The bits of a float whose upper half is the nearest bfloat16; the lower half is arbitrary.
V BrainBits(Ir& ir, V value) {
  V bits = ir.Bits(value);
  V nan = ir.FCmp(LLVMRealUNO, value, value);
  V quiet = ir.Or(bits, ir.Int(bits, 0x400000));
  V odd = ir.And(ir.LShr(bits, ir.Int(bits, 16)), ir.Int(bits, 1));
  return ir.Select(nan, quiet, ir.Add(bits, ir.Add(odd, ir.Int(bits, 0x7fff))));
}

V Zero(Ir& ir, V like) { return Ir::IsReal(like) ? ir.Real(like, 0) : ir.Int(like, 0); }
V One(Ir& ir, V like) { return Ir::IsReal(like) ? ir.Real(like, 1) : ir.Int(like, 1); }

enum class Order { kLess, kLessEqual, kGreater, kGreaterEqual };

V Ordered(Ir& ir, Order order, bool is_unsigned, V x, V y) {
  constexpr LLVMRealPredicate kReal[] = {LLVMRealOLT, LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
  constexpr LLVMIntPredicate kSigned[] = {LLVMIntSLT, LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
  constexpr LLVMIntPredicate kUnsigned[] = {LLVMIntULT, LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
  const auto i = static_cast<size_t>(order);
  if (Ir::IsReal(x)) return ir.FCmp(kReal[i], x, y);
  return ir.ICmp(is_unsigned ? kUnsigned[i] : kSigned[i], x, y);
}

/// The first operand where it is ahead of the second or NaN.
V Extreme(Ir& ir, Order order, bool is_unsigned, V x, V y) {
  V ahead = ir.Select(Ordered(ir, order, is_unsigned, x, y), x, y);
  return Ir::IsReal(x) ? ir.Select(ir.FCmp(LLVMRealUNO, x, x), x, ahead) : ahead;
}

/// Converts a real number to a signed integer of 32 or 64 bits: towards zero, the least value for NaN and out of range.
V CutSigned(Ir& ir, V x, LLVMTypeRef to) {
  const double least = to == ir.i64 ? -9223372036854775808.0 : -2147483648.0;
  V fits = ir.And(ir.FCmp(LLVMRealOGE, x, ir.Real(x, least)), ir.FCmp(LLVMRealOLT, x, ir.Real(x, -least)));
  return ir.Cast(LLVMFPToSI, ir.Select(fits, x, ir.Real(x, least)), to);
}

V RealToInteger(Ir& ir, V x, uint32_t to) {
  LLVMTypeRef type = StoredType(ir, to);
  if (to == WEIR_INT32 || to == WEIR_INT64) return CutSigned(ir, x, type);
  if (to == WEIR_UINT32) {
    const double least = -2147483648.0;
    V fits = ir.And(ir.FCmp(LLVMRealOGE, x, ir.Real(x, least)), ir.FCmp(LLVMRealOLT, x, ir.Real(x, -2 * least)));
    return ir.Cast(LLVMTrunc, ir.Cast(LLVMFPToSI, ir.Select(fits, x, ir.Real(x, least)), ir.i64), type);
  }
  if (to == WEIR_UINT64) {
    const double half = 9223372036854775808.0;
    V above = ir.And(ir.FCmp(LLVMRealOGE, x, ir.Real(x, half)), ir.FCmp(LLVMRealOLT, x, ir.Real(x, 2 * half)));
    V low = CutSigned(ir, ir.Select(above, ir.Sub(x, ir.Real(x, half)), x), type);
    return ir.Select(above, ir.Xor(low, ir.Int(low, uint64_t{1} << 63)), low);
  }
  V cut = CutSigned(ir, x, ir.i32);
  const bool is_unsigned = IsUnsigned(to);
  const int bits = static_cast<int>(sdk::SizeOf(to)) * 8;
  const int64_t most = (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1, least = is_unsigned ? 0 : -most - 1;
  V low = ir.Int(cut, static_cast<uint64_t>(least)), high = ir.Int(cut, static_cast<uint64_t>(most));
  cut = ir.Select(ir.ICmp(LLVMIntSLT, cut, low), low, cut);
  cut = ir.Select(ir.ICmp(LLVMIntSGT, cut, high), high, cut);
  return ir.Cast(LLVMTrunc, cut, type);
}

V CastElement(Ir& ir, V x, uint32_t from, uint32_t to) {
  LLVMTypeRef type = HeldType(ir, to);
  if (to == WEIR_BOOL) {
    if (from == WEIR_BOOL) return x;
    return IsFloating(from) ? ir.FCmp(LLVMRealUNE, x, ir.Real(x, 0)) : ir.ICmp(LLVMIntNE, x, ir.Int(x, 0));
  }
  if (IsFloating(from)) {
    if (IsInteger(to)) return RealToInteger(ir, x, to);
    if (Ir::IsDouble(x) == (to == WEIR_FLOAT64)) return x;
    return ir.Cast(to == WEIR_FLOAT64 ? LLVMFPExt : LLVMFPTrunc, x, type);
  }
  const bool is_unsigned = from == WEIR_BOOL || IsUnsigned(from);
  if (IsFloating(to)) return ir.Cast(is_unsigned ? LLVMUIToFP : LLVMSIToFP, x, type);
  const unsigned have = LLVMGetIntTypeWidth(Ir::ElementOf(x)), want = LLVMGetIntTypeWidth(type);
  if (have == want) return x;
  return ir.Cast(have > want ? LLVMTrunc : is_unsigned ? LLVMZExt : LLVMSExt, x, type);
}

V Unary(Ir& ir, const Node& node, uint32_t from, V x) {
  const bool real = Ir::IsReal(x), is_unsigned = IsUnsigned(from);
  const auto negative = [&] { return Ordered(ir, Order::kLess, is_unsigned, x, Zero(ir, x)); };
  switch (node.op) {
    case Op::kNeg:
      return ir.Neg(x);
    case Op::kAbs:
      return real ? ir.Fabs(x) : ir.Select(negative(), ir.Neg(x), x);
    case Op::kSign: {
      V up = Ordered(ir, Order::kGreater, is_unsigned, x, Zero(ir, x));
      V down = real ? ir.Real(x, -1) : ir.Int(x, ~uint64_t{0});
      return ir.Select(up, One(ir, x), ir.Select(negative(), down, x));  // zeros and NaN are returned unchanged
    }
    case Op::kSquare:
      return ir.Mul(x, x);
    case Op::kReciprocal:
      return ir.Div(One(ir, x), x);
    case Op::kSqrt:
      return ir.Sqrt(x);
    case Op::kRsqrt:
      return ir.Div(One(ir, x), ir.Sqrt(x));
    case Op::kFloor:
      return ir.Call("llvm.floor", {x});
    case Op::kCeil:
      return ir.Call("llvm.ceil", {x});
    case Op::kRound:
      return real ? ir.Call("llvm.nearbyint", {x}) : x;
    case Op::kExp:
      return Exp(ir, x);
    case Op::kExpm1:
      return Expm1(ir, x);
    case Op::kLog:
      return Log(ir, x);
    case Op::kLog1p:
      return Log1p(ir, x);
    case Op::kTanh:
      return Tanh(ir, x);
    case Op::kSigmoid:
      return Sigmoid(ir, x);
    case Op::kErf:
      return Erf(ir, x);
    case Op::kRelu:
      return ir.Select(negative(), Zero(ir, x), x);
    case Op::kRelu6: {
      V six = real ? ir.Real(x, 6) : ir.Int(x, 6);
      V capped = ir.Select(Ordered(ir, Order::kGreater, is_unsigned, x, six), six, x);
      return ir.Select(negative(), Zero(ir, x), capped);
    }
    case Op::kElu:
      return ir.Select(negative(), Expm1(ir, x), x);
    case Op::kSelu: {
      V below = ir.Mul(ir.Real(x, 1.7580993408473768599402175208123), Expm1(ir, x));
      return ir.Select(negative(), below, ir.Mul(ir.Real(x, 1.0507009873554804934193349852946), x));
    }
    case Op::kSoftplus:
      return Softplus(ir, x);
    case Op::kSoftsign:
      return ir.Div(x, ir.Add(One(ir, x), ir.Fabs(x)));
    case Op::kLeakyRelu: {
      V slope = ir.Real(x, Ir::IsDouble(x) ? node.alpha : static_cast<double>(static_cast<float>(node.alpha)));
      return ir.Select(ir.FCmp(LLVMRealOGT, x, Zero(ir, x)), x, ir.Mul(slope, x));
    }
    case Op::kIsFinite:
      return ir.FCmp(LLVMRealOEQ, ir.Sub(x, x), Zero(ir, x));
    case Op::kIsNan:
      return ir.FCmp(LLVMRealUNO, x, x);
    case Op::kIsInf:
      return ir.FCmp(LLVMRealOEQ, ir.Fabs(x), ir.Real(x, __builtin_inf()));
    case Op::kLogicalNot:
    case Op::kInvert:
      return LLVMBuildNot(ir.b, x, "");
    case Op::kPopulationCount: {
      V count = ir.Call("llvm.ctpop", {x});
      return Ir::ElementOf(x) == ir.i8 ? count : ir.Cast(LLVMTrunc, count, ir.i8);
    }
    default:
      return x;  // kIdentity
  }
}

/// Quotients and rests by a known divisor other than 0.
V DivideIntegers(Ir& ir, Op op, bool is_unsigned, V x, V y, int64_t divisor) {
  const bool rest_wanted = op == Op::kFloorMod || op == Op::kTruncateMod;
  if (is_unsigned) return rest_wanted ? LLVMBuildURem(ir.b, x, y, "") : LLVMBuildUDiv(ir.b, x, y, "");
  if (divisor == -1) return rest_wanted ? Zero(ir, x) : ir.Neg(x);
  if (op == Op::kDiv || op == Op::kTruncateDiv) return LLVMBuildSDiv(ir.b, x, y, "");
  V rest = LLVMBuildSRem(ir.b, x, y, "");
  if (op == Op::kTruncateMod) return rest;
  V zero = Zero(ir, x);
  V apart = ir.And(ir.ICmp(LLVMIntNE, rest, zero), ir.ICmp(LLVMIntSLT, ir.Xor(x, y), zero));
  if (op == Op::kFloorMod) return ir.Select(apart, ir.Add(rest, y), rest);
  V quotient = LLVMBuildSDiv(ir.b, x, y, "");
  return ir.Select(apart, ir.Sub(quotient, One(ir, x)), quotient);
}

/// A shift beyond the type's bits shifts by all but one; a negative one does not shift.
V Shifted(Ir& ir, Op op, bool is_unsigned, V x, V by) {
  V most = ir.Int(by, LLVMGetIntTypeWidth(Ir::ElementOf(by)) - 1), zero = Zero(ir, by);
  if (!is_unsigned) by = ir.Select(ir.ICmp(LLVMIntSLT, by, zero), zero, by);
  by = ir.Select(ir.ICmp(LLVMIntUGT, by, most), most, by);
  if (op == Op::kLeftShift) return ir.Shl(x, by);
  return is_unsigned ? ir.LShr(x, by) : LLVMBuildAShr(ir.b, x, by, "");
}

/// Gradients; operands are those of TensorFlow's op.
V Gradient(Ir& ir, const Node& node, bool is_unsigned, V x, V y) {
  V zero = Zero(ir, x), one = One(ir, x);
  switch (node.op) {
    case Op::kTanhGrad:
      return ir.Mul(y, ir.Sub(one, ir.Mul(x, x)));
    case Op::kSigmoidGrad:
      return ir.Mul(ir.Mul(y, x), ir.Sub(one, x));
    // A zero gradient gives zero, even if the function's derivative is infinite.
    case Op::kReciprocalGrad:
      return ir.Select(ir.FCmp(LLVMRealOEQ, y, zero), zero, ir.Mul(ir.Mul(ir.Neg(y), x), x));
    case Op::kSqrtGrad:
      return ir.Select(ir.FCmp(LLVMRealOEQ, y, zero), zero, ir.Div(ir.Mul(ir.Real(x, 0.5), y), x));
    case Op::kRsqrtGrad: {
      V slope = ir.Mul(ir.Mul(ir.Real(x, -0.5), ir.Mul(y, x)), ir.Mul(x, x));
      return ir.Select(ir.FCmp(LLVMRealOEQ, y, zero), zero, slope);
    }
    case Op::kReluGrad:
    case Op::kRelu6Grad: {
      V passes = Ordered(ir, Order::kGreater, is_unsigned, y, zero);
      if (node.op == Op::kRelu6Grad) {
        V six = Ir::IsReal(y) ? ir.Real(y, 6) : ir.Int(y, 6);
        passes = ir.And(passes, Ordered(ir, Order::kLess, is_unsigned, y, six));
      }
      return ir.Mul(x, ir.Select(passes, one, zero));
    }
    case Op::kEluGrad:
      return ir.Select(ir.FCmp(LLVMRealOLT, y, zero), ir.Mul(ir.Add(y, one), x), x);
    case Op::kSeluGrad: {
      V below = ir.Mul(ir.Add(y, ir.Real(x, 1.7580993408473768599402175208123)), x);
      V above = ir.Mul(x, ir.Real(x, 1.0507009873554804934193349852946));
      return ir.Select(ir.FCmp(LLVMRealOLT, y, zero), below, above);
    }
    case Op::kSoftplusGrad:
      return ir.Div(x, ir.Add(Exp(ir, ir.Neg(y)), one));
    case Op::kSoftsignGrad: {
      V slope = ir.Add(one, ir.Fabs(y));
      return ir.Div(x, ir.Mul(slope, slope));
    }
    default: {  // kLeakyReluGrad
      V slope = ir.Real(x, Ir::IsDouble(x) ? node.alpha : static_cast<double>(static_cast<float>(node.alpha)));
      return ir.Select(ir.FCmp(LLVMRealOGT, y, zero), x, ir.Mul(slope, x));
    }
  }
}

V Compare(Ir& ir, Op op, bool is_unsigned, V x, V y) {
  switch (op) {
    case Op::kEqual:
      return Ir::IsReal(x) ? ir.FCmp(LLVMRealOEQ, x, y) : ir.ICmp(LLVMIntEQ, x, y);
    case Op::kNotEqual:
      return Ir::IsReal(x) ? ir.FCmp(LLVMRealUNE, x, y) : ir.ICmp(LLVMIntNE, x, y);
    case Op::kLess:
      return Ordered(ir, Order::kLess, is_unsigned, x, y);
    case Op::kLessEqual:
      return Ordered(ir, Order::kLessEqual, is_unsigned, x, y);
    case Op::kGreater:
      return Ordered(ir, Order::kGreater, is_unsigned, x, y);
    default:
      return Ordered(ir, Order::kGreaterEqual, is_unsigned, x, y);
  }
}

V Binary(Ir& ir, const Node& node, uint32_t from, V x, V y, int64_t divisor) {
  const bool real = Ir::IsReal(x), is_unsigned = IsUnsigned(from);
  switch (node.op) {
    case Op::kAdd:
      return ir.Add(x, y);
    case Op::kSub:
      return ir.Sub(x, y);
    case Op::kMul:
      return ir.Mul(x, y);
    case Op::kDiv:
      return real ? ir.Div(x, y) : DivideIntegers(ir, node.op, is_unsigned, x, y, divisor);
    case Op::kFloorDiv:
      return real ? ir.Call("llvm.floor", {ir.Div(x, y)}) : DivideIntegers(ir, node.op, is_unsigned, x, y, divisor);
    case Op::kTruncateDiv:
      return real ? ir.Call("llvm.trunc", {ir.Div(x, y)}) : DivideIntegers(ir, node.op, is_unsigned, x, y, divisor);
    case Op::kFloorMod:
    case Op::kTruncateMod:
      return DivideIntegers(ir, node.op, is_unsigned, x, y, divisor);
    case Op::kDivNoNan:
      return ir.Select(ir.FCmp(LLVMRealOEQ, y, Zero(ir, y)), Zero(ir, x), ir.Div(x, y));
    case Op::kSquaredDifference: {
      V difference = ir.Sub(x, y);
      return ir.Mul(difference, difference);
    }
    case Op::kMaximum:
      return Extreme(ir, Order::kGreater, is_unsigned, x, y);
    case Op::kMinimum:
      return Extreme(ir, Order::kLess, is_unsigned, x, y);
    case Op::kXlogy:
      return ir.Select(ir.FCmp(LLVMRealOEQ, x, Zero(ir, x)), Zero(ir, x), ir.Mul(x, Log(ir, y)));
    case Op::kXlog1py:
      return ir.Select(ir.FCmp(LLVMRealOEQ, x, Zero(ir, x)), Zero(ir, x), ir.Mul(x, Log1p(ir, y)));
    case Op::kXdivy:
      return ir.Select(ir.FCmp(LLVMRealOEQ, x, Zero(ir, x)), Zero(ir, x), ir.Div(x, y));
    case Op::kLogicalAnd:
    case Op::kBitwiseAnd:
      return ir.And(x, y);
    case Op::kLogicalOr:
    case Op::kBitwiseOr:
      return ir.Or(x, y);
    case Op::kBitwiseXor:
      return ir.Xor(x, y);
    case Op::kLeftShift:
    case Op::kRightShift:
      return Shifted(ir, node.op, is_unsigned, x, y);
    default:
      if (node.op >= Op::kEqual && node.op <= Op::kGreaterEqual) return Compare(ir, node.op, is_unsigned, x, y);
      return Gradient(ir, node, is_unsigned, x, y);
  }
}

}  // namespace

LLVMTypeRef StoredType(const Ir& ir, uint32_t dtype) {
  if (dtype == WEIR_FLOAT32) return ir.f32;
  if (dtype == WEIR_FLOAT64) return ir.f64;
  switch (sdk::SizeOf(dtype)) {
    case 1:
      return ir.i8;
    case 2:
      return ir.i16;
    case 4:
      return ir.i32;
    default:
      return ir.i64;
  }
}

LLVMTypeRef HeldType(const Ir& ir, uint32_t dtype) {
  if (IsHalf(dtype) || IsBrain(dtype)) return ir.f32;
  return dtype == WEIR_BOOL ? ir.i1 : StoredType(ir, dtype);
}

V FromStored(Ir& ir, uint32_t dtype, V stored) {
  if (IsHalf(dtype)) return ir.Cast(LLVMFPExt, ir.Cast(LLVMBitCast, stored, ir.half), ir.f32);
  if (IsBrain(dtype)) {
    V wide = ir.Cast(LLVMZExt, stored, ir.i32);
    return ir.FromBits(ir.Shl(wide, ir.Int(wide, 16)));
  }
  return dtype == WEIR_BOOL ? ir.ICmp(LLVMIntNE, stored, ir.Int(stored, 0)) : stored;
}

V ToStored(Ir& ir, uint32_t dtype, V held) {
  if (IsHalf(dtype)) return ir.Cast(LLVMBitCast, ir.Cast(LLVMFPTrunc, held, ir.half), ir.i16);
  if (IsBrain(dtype)) {
    V bits = ir.Bits(held);
    return ir.Cast(LLVMTrunc, ir.LShr(bits, ir.Int(bits, 16)), ir.i16);
  }
  return dtype == WEIR_BOOL ? ir.Cast(LLVMZExt, held, ir.i8) : held;
}

V Constant(Ir& ir, uint32_t dtype, uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  if (IsHalf(dtype)) {
    return ir.RealOf(ir.f32, static_cast<double>(sdk::internal::FloatFromHalf(static_cast<uint16_t>(bits))));
  }
  if (IsBrain(dtype)) return ir.RealOf(ir.f32, static_cast<double>(std::bit_cast<float>(low << 16)));
  if (dtype == WEIR_FLOAT32) return ir.RealOf(ir.f32, static_cast<double>(std::bit_cast<float>(low)));
  if (dtype == WEIR_FLOAT64) return ir.RealOf(ir.f64, std::bit_cast<double>(bits));
  if (dtype == WEIR_BOOL) return ir.IntOf(ir.i1, (bits & 0xff) != 0 ? 1 : 0);
  return ir.IntOf(StoredType(ir, dtype), bits);
}

V Rounded(Ir& ir, uint32_t dtype, V value) {
  if (IsHalf(dtype)) return ir.Cast(LLVMFPExt, ir.Cast(LLVMFPTrunc, value, ir.half), ir.f32);
  if (!IsBrain(dtype)) return value;
  V bits = BrainBits(ir, value);
  return ir.FromBits(ir.And(bits, ir.Int(bits, 0xffff0000)));
}

V Element(Ir& ir, const Node& node, uint32_t from, const std::vector<V>& operands, int64_t divisor) {
  V value = nullptr;
  switch (node.op) {
    case Op::kCast:
      value = CastElement(ir, operands[0], from, node.dtype);
      break;
    case Op::kSelect:
      return ir.Select(operands[0], operands[1], operands[2]);
    case Op::kClip: {
      const bool is_unsigned = IsUnsigned(from);
      V x = operands[0], low = operands[1], high = operands[2];
      V below = ir.Select(Ordered(ir, Order::kGreater, is_unsigned, x, high), high, x);
      return ir.Select(Ordered(ir, Order::kLess, is_unsigned, below, low), low, below);
    }
    case Op::kAddN:  // rounds once
      value = operands[0];
      for (size_t i = 1; i < operands.size(); ++i) value = ir.Add(value, operands[i]);
      break;
    default:
      value = operands.size() == 1 ? Unary(ir, node, from, operands[0])
                                   : Binary(ir, node, from, operands[0], operands[1], divisor);
  }
  return Ir::IsReal(value) ? Rounded(ir, node.dtype, value) : value;
}

uint32_t LaneDtype(Op op, uint32_t dtype) {
  if (op == Op::kMean && IsInteger(dtype)) return IsUnsigned(dtype) ? WEIR_UINT64 : WEIR_INT64;
  return IsHalf(dtype) || IsBrain(dtype) ? static_cast<uint32_t>(WEIR_FLOAT32) : dtype;
}

uint32_t TotalDtype(Op op, uint32_t dtype) {
  const uint32_t lane = LaneDtype(op, dtype);
  return lane == WEIR_FLOAT32 && (op == Op::kSum || op == Op::kMean) ? static_cast<uint32_t>(WEIR_FLOAT64) : lane;
}

V ToLane(Ir& ir, Op op, uint32_t dtype, V value) {
  return op == Op::kMean && IsInteger(dtype) ? CastElement(ir, value, dtype, LaneDtype(op, dtype)) : value;
}

V LaneToTotal(Ir& ir, Op op, uint32_t dtype, V lane) {
  return TotalDtype(op, dtype) == LaneDtype(op, dtype) ? lane : ir.Cast(LLVMFPExt, lane, ir.f64);
}

namespace {

/// `dtype` is that of a lane or total.
V Start(Ir& ir, Op op, uint32_t dtype, double nothing) {
  LLVMTypeRef type = HeldType(ir, dtype);
  const bool real = dtype == WEIR_FLOAT32 || dtype == WEIR_FLOAT64;
  if (op == Op::kAll) return ir.IntOf(type, 1);
  if (op == Op::kAny) return ir.IntOf(type, 0);
  if (op == Op::kProd) return real ? ir.RealOf(type, 1) : ir.IntOf(type, 1);
  if (op == Op::kSum || op == Op::kMean) return real ? ir.RealOf(type, nothing) : ir.IntOf(type, 0);
  if (real) return ir.RealOf(type, op == Op::kMax ? -__builtin_inf() : __builtin_inf());
  const unsigned bits = LLVMGetIntTypeWidth(type);
  const uint64_t all = ~uint64_t{0} >> (64 - bits), top = uint64_t{1} << (bits - 1);
  if (IsUnsigned(dtype)) return ir.IntOf(type, op == Op::kMax ? 0 : all);
  return ir.IntOf(type, op == Op::kMax ? top : top - 1);
}

}  // namespace

// A sum that begins with -0 is -0 if all its elements are.
V LaneStart(Ir& ir, Op op, uint32_t dtype) { return Start(ir, op, LaneDtype(op, dtype), -0.0); }
V TotalStart(Ir& ir, Op op, uint32_t dtype) { return Start(ir, op, TotalDtype(op, dtype), 0.0); }

V Combine(Ir& ir, Op op, uint32_t dtype, V total, V next) {
  const bool is_unsigned = IsUnsigned(dtype);
  switch (op) {
    case Op::kSum:
    case Op::kMean:
      return ir.Add(total, next);
    case Op::kProd:
      return ir.Mul(total, next);
    case Op::kMax:
      return Extreme(ir, Order::kGreater, is_unsigned, next, total);
    case Op::kMin:
      return Extreme(ir, Order::kLess, is_unsigned, next, total);
    case Op::kAll:
      return ir.And(total, next);
    default:
      return ir.Or(total, next);
  }
}

V Give(Ir& ir, Op op, uint32_t dtype, V total, int64_t count) {
  if (op == Op::kMean) {
    if (IsInteger(dtype)) {
      V n = ir.Int(total, static_cast<uint64_t>(count));
      total = IsUnsigned(dtype) ? LLVMBuildUDiv(ir.b, total, n, "") : LLVMBuildSDiv(ir.b, total, n, "");
      LLVMTypeRef type = StoredType(ir, dtype);
      return type == ir.i64 ? total : ir.Cast(LLVMTrunc, total, type);
    }
    total = ir.Div(total, ir.Real(total, static_cast<double>(count)));
  }
  if (Ir::IsReal(total) && Ir::IsDouble(total) && dtype != WEIR_FLOAT64) total = ir.Cast(LLVMFPTrunc, total, ir.f32);
  return Ir::IsReal(total) ? Rounded(ir, dtype, total) : total;
}

}  // namespace weir::compiler_llvm
