// The ops of regions (sdk/abi/compiler.h) that compilers know, with the rules of their operands.
#ifndef WEIR_PLUGINS_FUNCTORS_REGION_OPS_H_
#define WEIR_PLUGINS_FUNCTORS_REGION_OPS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "sdk/abi/compiler.h"
#include "sdk/cpp/status.h"
#include "sdk/cpp/types.h"

namespace weir::functors {

/// Meaning of a node. Where ops of TensorFlow differ only in name, they share one entry.
enum class Op : uint8_t {
  kIdentity,
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kReciprocal,
  kSqrt,
  kRsqrt,
  kFloor,
  kCeil,
  kRound,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kTanh,
  kSigmoid,
  kErf,
  kRelu,
  kRelu6,
  kElu,
  kSelu,
  kSoftplus,
  kSoftsign,
  kLeakyRelu,
  kIsFinite,
  kIsNan,
  kIsInf,
  kLogicalNot,
  kInvert,
  kPopulationCount,
  kCast,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kDivNoNan,
  kFloorDiv,
  kTruncateDiv,
  kFloorMod,
  kTruncateMod,
  kSquaredDifference,
  kMaximum,
  kMinimum,
  kXlogy,
  kXlog1py,
  kXdivy,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kLogicalAnd,
  kLogicalOr,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kLeftShift,
  kRightShift,
  kTanhGrad,
  kSigmoidGrad,
  kReciprocalGrad,
  kSqrtGrad,
  kRsqrtGrad,
  kReluGrad,
  kRelu6Grad,
  kEluGrad,
  kSeluGrad,
  kSoftplusGrad,
  kSoftsignGrad,
  kLeakyReluGrad,
  kSelect,
  kClip,
  kAddN,
  kSum,
  kMean,
  kProd,
  kMax,
  kMin,
  kAll,
  kAny,
};

constexpr bool IsReduction(Op op) { return op >= Op::kSum; }

/// Types of operands and result.
enum class Form : uint8_t {
  kPlain,   // all of one type
  kTest,    // operands of one type; the result is bool
  kCount,   // one integer; the result is uint8
  kCast,    // any two types
  kSelect,  // bool, then two of the result's type
  kBias,    // kPlain; operand 1 is a vector along the channels
  kDivide,  // kPlain; an integer divisor must be a known scalar other than 0, since kernels report others
  kReduce,  // one operand of the result's type, with axes
};

struct OpRule {
  std::string_view name;
  Op op;
  Form form;
  uint32_t operands;  // 0: one or more
  uint64_t dtypes;    // of the operands (kSelect, kCast: of the result)
  double cost;        // in additions of the same type
};

namespace region_internal {

inline constexpr uint64_t kFloat = WEIR_DTYPE_BIT(WEIR_FLOAT32) | WEIR_DTYPE_BIT(WEIR_FLOAT64);
inline constexpr uint64_t kShort = WEIR_DTYPE_BIT(WEIR_FLOAT16) | WEIR_DTYPE_BIT(WEIR_BFLOAT16);
inline constexpr uint64_t kFloating = kFloat | kShort;
inline constexpr uint64_t kSingle = kShort | WEIR_DTYPE_BIT(WEIR_FLOAT32);
inline constexpr uint64_t kSigned =
    WEIR_DTYPE_BIT(WEIR_INT8) | WEIR_DTYPE_BIT(WEIR_INT16) | WEIR_DTYPE_BIT(WEIR_INT32) | WEIR_DTYPE_BIT(WEIR_INT64);
inline constexpr uint64_t kIndex = WEIR_DTYPE_BIT(WEIR_INT32) | WEIR_DTYPE_BIT(WEIR_INT64);
inline constexpr uint64_t kUnsignedInts = WEIR_DTYPE_BIT(WEIR_UINT8) | WEIR_DTYPE_BIT(WEIR_UINT16) |
                                   WEIR_DTYPE_BIT(WEIR_UINT32) | WEIR_DTYPE_BIT(WEIR_UINT64);
inline constexpr uint64_t kInts = kSigned | kUnsignedInts;
inline constexpr uint64_t kReal = kFloating | kInts;
inline constexpr uint64_t kBool = WEIR_DTYPE_BIT(WEIR_BOOL);
inline constexpr uint64_t kAll = kReal | kBool;

inline constexpr OpRule kRules[] = {
    {"Abs", Op::kAbs, Form::kPlain, 1, kFloating | kSigned, 1},
    {"AccumulateNV2", Op::kAddN, Form::kPlain, 0, kReal, 2},
    {"Add", Op::kAdd, Form::kPlain, 2, kReal, 1},
    {"AddN", Op::kAddN, Form::kPlain, 0, kReal, 2},
    {"AddV2", Op::kAdd, Form::kPlain, 2, kReal, 1},
    {"All", Op::kAll, Form::kReduce, 1, kBool, 1},
    {"Any", Op::kAny, Form::kReduce, 1, kBool, 1},
    {"BiasAdd", Op::kAdd, Form::kBias, 2, kReal, 1},
    {"BitwiseAnd", Op::kBitwiseAnd, Form::kPlain, 2, kInts, 1},
    {"BitwiseOr", Op::kBitwiseOr, Form::kPlain, 2, kInts, 1},
    {"BitwiseXor", Op::kBitwiseXor, Form::kPlain, 2, kInts, 1},
    {"Cast", Op::kCast, Form::kCast, 1, kAll, 2},
    {"Ceil", Op::kCeil, Form::kPlain, 1, kFloating, 1},
    {"ClipByValue", Op::kClip, Form::kPlain, 3, kReal, 2},
    {"Div", Op::kDiv, Form::kDivide, 2, kReal, 8},
    {"DivNoNan", Op::kDivNoNan, Form::kPlain, 2, kFloating, 9},
    {"Elu", Op::kElu, Form::kPlain, 1, kFloating, 14},
    {"EluGrad", Op::kEluGrad, Form::kPlain, 2, kFloating, 3},
    {"Equal", Op::kEqual, Form::kTest, 2, kAll, 1},
    {"Erf", Op::kErf, Form::kPlain, 1, kSingle, 30},
    {"Exp", Op::kExp, Form::kPlain, 1, kFloating, 14},
    {"Expm1", Op::kExpm1, Form::kPlain, 1, kFloating, 14},
    {"Floor", Op::kFloor, Form::kPlain, 1, kFloating, 1},
    {"FloorDiv", Op::kFloorDiv, Form::kDivide, 2, kReal, 9},
    {"FloorMod", Op::kFloorMod, Form::kDivide, 2, kInts, 10},
    {"Greater", Op::kGreater, Form::kTest, 2, kReal, 1},
    {"GreaterEqual", Op::kGreaterEqual, Form::kTest, 2, kReal, 1},
    {"Identity", Op::kIdentity, Form::kPlain, 1, kAll, 0},
    {"Inv", Op::kReciprocal, Form::kPlain, 1, kFloating, 8},
    {"InvGrad", Op::kReciprocalGrad, Form::kPlain, 2, kFloating, 4},
    {"Invert", Op::kInvert, Form::kPlain, 1, kInts, 1},
    {"IsFinite", Op::kIsFinite, Form::kTest, 1, kFloating, 2},
    {"IsInf", Op::kIsInf, Form::kTest, 1, kFloating, 2},
    {"IsNan", Op::kIsNan, Form::kTest, 1, kFloating, 1},
    {"LeakyRelu", Op::kLeakyRelu, Form::kPlain, 1, kFloating, 2},
    {"LeakyReluGrad", Op::kLeakyReluGrad, Form::kPlain, 2, kFloating, 2},
    {"LeftShift", Op::kLeftShift, Form::kPlain, 2, kInts, 3},
    {"Less", Op::kLess, Form::kTest, 2, kReal, 1},
    {"LessEqual", Op::kLessEqual, Form::kTest, 2, kReal, 1},
    {"Log", Op::kLog, Form::kPlain, 1, kFloating, 24},
    {"Log1p", Op::kLog1p, Form::kPlain, 1, kFloating, 34},
    {"LogicalAnd", Op::kLogicalAnd, Form::kPlain, 2, kBool, 1},
    {"LogicalNot", Op::kLogicalNot, Form::kPlain, 1, kBool, 1},
    {"LogicalOr", Op::kLogicalOr, Form::kPlain, 2, kBool, 1},
    {"Max", Op::kMax, Form::kReduce, 1, kReal, 2},
    {"Maximum", Op::kMaximum, Form::kPlain, 2, kReal, 2},
    {"Mean", Op::kMean, Form::kReduce, 1, kReal, 2},
    {"Min", Op::kMin, Form::kReduce, 1, kReal, 2},
    {"Minimum", Op::kMinimum, Form::kPlain, 2, kReal, 2},
    {"Mod", Op::kTruncateMod, Form::kDivide, 2, kIndex, 9},
    {"Mul", Op::kMul, Form::kPlain, 2, kReal, 1},
    {"Neg", Op::kNeg, Form::kPlain, 1, kFloating | kSigned, 1},
    {"NotEqual", Op::kNotEqual, Form::kTest, 2, kAll, 1},
    {"PopulationCount", Op::kPopulationCount, Form::kCount, 1, kInts, 4},
    {"Prod", Op::kProd, Form::kReduce, 1, kReal, 2},
    {"RealDiv", Op::kDiv, Form::kPlain, 2, kFloating, 8},
    {"Reciprocal", Op::kReciprocal, Form::kPlain, 1, kFloating, 8},
    {"ReciprocalGrad", Op::kReciprocalGrad, Form::kPlain, 2, kFloating, 4},
    {"Relu", Op::kRelu, Form::kPlain, 1, kReal, 1},
    {"Relu6", Op::kRelu6, Form::kPlain, 1, kReal, 2},
    {"Relu6Grad", Op::kRelu6Grad, Form::kPlain, 2, kReal, 3},
    {"ReluGrad", Op::kReluGrad, Form::kPlain, 2, kReal, 2},
    {"RightShift", Op::kRightShift, Form::kPlain, 2, kInts, 3},
    {"Rint", Op::kRound, Form::kPlain, 1, kFloating, 1},
    {"Round", Op::kRound, Form::kPlain, 1, kFloating | kIndex, 1},
    {"Rsqrt", Op::kRsqrt, Form::kPlain, 1, kFloating, 16},
    {"RsqrtGrad", Op::kRsqrtGrad, Form::kPlain, 2, kFloating, 6},
    {"Select", Op::kSelect, Form::kSelect, 3, kAll, 1},
    {"SelectV2", Op::kSelect, Form::kSelect, 3, kAll, 1},
    {"Selu", Op::kSelu, Form::kPlain, 1, kFloating, 16},
    {"SeluGrad", Op::kSeluGrad, Form::kPlain, 2, kFloating, 3},
    {"Sigmoid", Op::kSigmoid, Form::kPlain, 1, kFloating, 22},
    {"SigmoidGrad", Op::kSigmoidGrad, Form::kPlain, 2, kFloating, 3},
    {"Sign", Op::kSign, Form::kPlain, 1, kFloating | kSigned, 2},
    {"Snapshot", Op::kIdentity, Form::kPlain, 1, kAll, 0},
    {"Softplus", Op::kSoftplus, Form::kPlain, 1, kFloating, 48},
    {"SoftplusGrad", Op::kSoftplusGrad, Form::kPlain, 2, kFloating, 24},
    {"Softsign", Op::kSoftsign, Form::kPlain, 1, kFloating, 9},
    {"SoftsignGrad", Op::kSoftsignGrad, Form::kPlain, 2, kFloating, 10},
    {"Sqrt", Op::kSqrt, Form::kPlain, 1, kFloating, 8},
    {"SqrtGrad", Op::kSqrtGrad, Form::kPlain, 2, kFloating, 10},
    {"Square", Op::kSquare, Form::kPlain, 1, kReal, 1},
    {"SquaredDifference", Op::kSquaredDifference, Form::kPlain, 2, kFloating | kIndex, 2},
    {"StopGradient", Op::kIdentity, Form::kPlain, 1, kAll, 0},
    {"Sub", Op::kSub, Form::kPlain, 2, kReal, 1},
    {"Sum", Op::kSum, Form::kReduce, 1, kReal, 2},
    {"Tanh", Op::kTanh, Form::kPlain, 1, kFloating, 24},
    {"TanhGrad", Op::kTanhGrad, Form::kPlain, 2, kFloating, 3},
    {"TruncateDiv", Op::kTruncateDiv, Form::kDivide, 2, kReal, 9},
    {"TruncateMod", Op::kTruncateMod, Form::kDivide, 2, kIndex, 9},
    {"Xdivy", Op::kXdivy, Form::kPlain, 2, kFloating, 9},
    {"Xlog1py", Op::kXlog1py, Form::kPlain, 2, kFloating, 36},
    {"Xlogy", Op::kXlogy, Form::kPlain, 2, kFloating, 26},
};

inline const weir_opt* FindAttr(const weir_region_node& node, std::string_view key, uint32_t type) {
  if (node.attrs == nullptr) return nullptr;
  for (uint64_t i = 0; i < node.attr_count; ++i) {
    if (node.attrs[i].type == type && sdk::ToView(node.attrs[i].key) == key) return &node.attrs[i];
  }
  return nullptr;
}

constexpr bool In(uint64_t dtypes, uint32_t dtype) { return dtype < 64 && (dtypes & WEIR_DTYPE_BIT(dtype)) != 0; }

/// A scalar constant of an integer type other than 0.
inline bool IsKnownDivisor(const weir_region_value& value) {
  if (value.constant == nullptr) return false;
  for (uint32_t i = 0; i < value.shape.rank; ++i) {
    if (value.shape.dims[i] != 1) return false;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, value.constant, sdk::SizeOf(value.dtype));
  return bits != 0;
}

}  // namespace region_internal

/// Null for an op that no compiler knows.
inline const OpRule* FindOp(std::string_view name) {
  using region_internal::kRules;
  const auto* const found = std::lower_bound(std::begin(kRules), std::end(kRules), name,
                                             [](const OpRule& rule, std::string_view n) { return rule.name < n; });
  return found != std::end(kRules) && found->name == name ? found : nullptr;
}

inline bool IsFloating(uint32_t dtype) { return region_internal::In(region_internal::kFloating, dtype); }
inline bool IsInteger(uint32_t dtype) { return region_internal::In(region_internal::kInts, dtype); }
inline bool IsUnsigned(uint32_t dtype) { return region_internal::In(region_internal::kUnsignedInts, dtype); }

/// The attribute, or `otherwise`.
inline double FloatAttr(const weir_region_node& node, std::string_view key, double otherwise) {
  const weir_opt* attr = region_internal::FindAttr(node, key, WEIR_VALUE_FLOAT);
  return attr != nullptr ? attr->value.f : otherwise;
}
inline int64_t IntAttr(const weir_region_node& node, std::string_view key, int64_t otherwise) {
  const weir_opt* attr = region_internal::FindAttr(node, key, WEIR_VALUE_INT);
  if (attr == nullptr) attr = region_internal::FindAttr(node, key, WEIR_VALUE_BOOL);
  return attr != nullptr ? attr->value.i : otherwise;
}
inline std::string_view StringAttr(const weir_region_node& node, std::string_view key, std::string_view otherwise) {
  const weir_opt* attr = region_internal::FindAttr(node, key, WEIR_VALUE_STRING);
  return attr != nullptr ? sdk::ToView(attr->value.s) : otherwise;
}

/// Whether the node's operand types and attributes are those that the rule's code has; else `why` says what is not.
/// `operands` are the node's operands.
inline bool FitsRule(const OpRule& rule, const weir_region_node& node, const weir_region_value* const* operands,
                     std::string* why) {
  using region_internal::In;
  using region_internal::IsKnownDivisor;
  using region_internal::kAll;
  const auto refuse = [&](std::string_view text) {
    *why = std::string(rule.name) + ": " + std::string(text);
    return false;
  };
  const uint32_t count = node.operand_count;
  if (rule.operands == 0 ? count == 0 : count != rule.operands) return refuse("wrong number of operands");
  const uint32_t result = node.result.dtype;
  if (rule.form == Form::kCast) {
    if (!In(kAll, operands[0]->dtype) || !In(kAll, result)) return refuse("no code for the element types");
    return IntAttr(node, "Truncate", 0) == 0 || refuse("no code for Truncate");
  }
  if (rule.form == Form::kSelect) {
    if (operands[0]->dtype != WEIR_BOOL || operands[1]->dtype != result || operands[2]->dtype != result) {
      return refuse("operands of wrong types");
    }
    return In(rule.dtypes, result) || refuse("no code for the element type");
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!In(rule.dtypes, operands[i]->dtype)) return refuse("no code for the element type");
    if (operands[i]->dtype != operands[0]->dtype) return refuse("operands of different types");
  }
  const uint32_t wanted = rule.form == Form::kTest    ? static_cast<uint32_t>(WEIR_BOOL)
                          : rule.form == Form::kCount ? static_cast<uint32_t>(WEIR_UINT8)
                                                      : operands[0]->dtype;
  if (result != wanted) return refuse("a result of the wrong type");
  if (rule.form == Form::kDivide && IsInteger(result) && !IsKnownDivisor(*operands[1])) {
    return refuse("the integer divisor is not a known scalar other than 0");
  }
  if (rule.form == Form::kReduce ? node.axis_count == 0 || node.axes == nullptr : node.axis_count != 0) {
    return refuse("axes are wanted by reductions only");
  }
  return true;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_REGION_OPS_H_
