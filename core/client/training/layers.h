// Layers.
#ifndef WEIR_CORE_CLIENT_TRAINING_LAYERS_H_
#define WEIR_CORE_CLIENT_TRAINING_LAYERS_H_

#include <functional>
#include <optional>
#include <string_view>

#include "core/client/ops/ops.h"
#include "core/client/variables/variable_scope.h"

namespace weir {

/// Relu, Tanh, Softmax … or any function of a value; none by default.
using Activation = std::function<Output(const Operand& x, std::string_view name, Where where)>;

struct DenseOptions {
  bool use_bias = true;
  Initializer kernel_initializer = {};  // empty = Glorot uniform
  Initializer bias_initializer = {};    // empty = zeros
  bool trainable = true;
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  std::optional<Reuse> reuse = {};  // kYes, kAuto: the layer of exactly that name
};

/// activation(x · kernel + bias). x: [batch, features], features known -> [batch, units]. Variables: `name/kernel`
/// [features, units], `name/bias` [units] in the current variable scope; names are made unique.
Output Dense(const Operand& x, int units, const Activation& activation = {}, std::string_view name = "dense",
             const DenseOptions& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_LAYERS_H_
