// What the arithmetic of an op is, for rewrites of steps.
#ifndef WEIR_CORE_OPS_ALGEBRA_H_
#define WEIR_CORE_OPS_ALGEBRA_H_

#include <cstdint>
#include <string_view>

#include "core/op/op_def.h"

namespace weir::ops {

enum class Algebra : uint8_t {
  kNone,
  kSum,          // x + y with broadcasting, as kDifference to kQuotient
  kDifference,   // x - y
  kProduct,      // x * y
  kQuotient,     // x / y; rounded towards 0 for integers
  kInvolution,   // f(f(x)) is x, bit by bit
  kCast,         // to the type DstT
  kTranspose,    // by the permutation in input 1
  kReshape,      // to the shape in input 1
  kBiasSum,      // x plus a vector along the channels of data_format
  kBatchNorm,    // FusedBatchNorm: x, scale, offset, mean, variance; is_training, epsilon, data_format
  kConvolution,  // of images and a filter whose last dimension is the channels of the result
  kDepthwise     // the same, the last two dimensions
};

/// kNone for ops that no rewrite knows.
Algebra AlgebraOf(const op::OpDef& op);

/// The op of kBiasSum that rewrites make: inputs x and bias, attributes T and data_format.
inline constexpr std::string_view kBiasSumOp = "BiasAdd";

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_ALGEBRA_H_
