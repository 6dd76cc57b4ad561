// Builders of neural network ops: activations, bias, softmax and its losses.
#ifndef WEIR_CORE_CLIENT_NN_OPS_H_
#define WEIR_CORE_CLIENT_NN_OPS_H_

#include <string_view>

#include "core/client/unary_op.h"

namespace weir {

inline constexpr UnaryOp Relu{"Relu"};
inline constexpr UnaryOp Tanh{"Tanh"};
inline constexpr UnaryOp Sigmoid{"Sigmoid"};
/// exp(x) / sum(exp(x)) along the last axis of a matrix.
inline constexpr UnaryOp Softmax{"Softmax"};
inline constexpr UnaryOp LogSoftmax{"LogSoftmax"};

/// value: [.., channels] + bias: [channels].
Output BiasAdd(const Operand& value, const Operand& bias, std::string_view name = "BiasAdd",
               Where where = Where::current());

/// Cross entropy of softmax(logits) against distributions, by row. labels, logits: [batch, classes] -> [batch].
/// Gradients flow to both.
Output SoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits,
                                     std::string_view name = "softmax_cross_entropy_with_logits",
                                     Where where = Where::current());

/// The same against class numbers. labels: int32 or int64 [batch], in [0, classes).
Output SparseSoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits,
                                           std::string_view name = "SparseSoftmaxCrossEntropyWithLogits",
                                           Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_NN_OPS_H_
