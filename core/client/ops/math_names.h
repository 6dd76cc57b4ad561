// The names of TensorFlow's module tf.math: the same builders as in namespace weir.
#ifndef WEIR_CORE_CLIENT_OPS_MATH_NAMES_H_
#define WEIR_CORE_CLIENT_OPS_MATH_NAMES_H_

#include "core/client/ops/array_extra_ops.h"
#include "core/client/ops/nn_ops.h"
#include "core/client/ops/ops.h"

namespace weir::math {

using weir::Abs;
using weir::Add;
using weir::AddN;
using weir::ArgMax;
using weir::ArgMin;
using weir::Ceil;
using weir::Cumprod;
using weir::Cumsum;
using weir::Divide;
using weir::DivNoNan;
using weir::Equal;
using weir::Exp;
using weir::Expm1;
using weir::Floor;
using weir::FloorDiv;
using weir::FloorMod;
using weir::Greater;
using weir::GreaterEqual;
using weir::InTopK;
using weir::L2Normalize;
using weir::Less;
using weir::LessEqual;
using weir::Log;
using weir::Log1p;
using weir::LogicalAnd;
using weir::LogicalNot;
using weir::LogicalOr;
using weir::LogSoftmax;
using weir::Maximum;
using weir::Minimum;
using weir::Multiply;
using weir::Negative;
using weir::NotEqual;
using weir::Pow;
using weir::Reciprocal;
using weir::ReduceAll;
using weir::ReduceAny;
using weir::ReduceMax;
using weir::ReduceMean;
using weir::ReduceMin;
using weir::ReduceProd;
using weir::ReduceSum;
using weir::Round;
using weir::Rsqrt;
using weir::Sigmoid;
using weir::Sign;
using weir::Softmax;
using weir::Softplus;
using weir::Softsign;
using weir::Sqrt;
using weir::Square;
using weir::SquaredDifference;
using weir::Subtract;
using weir::Tanh;
using weir::TopK;

/// Elementwise functions that only this module has.
inline constexpr UnaryOp Acos{"Acos"}, Acosh{"Acosh"}, Asin{"Asin"}, Asinh{"Asinh"}, Atan{"Atan"}, Atanh{"Atanh"},
    Cos{"Cos"}, Cosh{"Cosh"}, Digamma{"Digamma"}, Erf{"Erf"}, Erfc{"Erfc"}, IsFinite{"IsFinite"}, IsInf{"IsInf"},
    IsNan{"IsNan"}, Lgamma{"Lgamma"}, Rint{"Rint"}, Sin{"Sin"}, Sinh{"Sinh"}, Tan{"Tan"};
inline constexpr BinaryOp Atan2{"Atan2"}, Xdivy{"Xdivy"}, Xlogy{"Xlogy"};

}  // namespace weir::math

#endif  // WEIR_CORE_CLIENT_OPS_MATH_NAMES_H_
