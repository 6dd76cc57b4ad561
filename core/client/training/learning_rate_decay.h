// Learning rates that fall with the global step, under TensorFlow's names. Each is a scalar of the learning rate's type
// and can be the learning rate of an optimiser.
#ifndef WEIR_CORE_CLIENT_TRAINING_LEARNING_RATE_DECAY_H_
#define WEIR_CORE_CLIENT_TRAINING_LEARNING_RATE_DECAY_H_

#include <string_view>
#include <vector>

#include "core/client/ops/ops.h"

namespace weir {

struct DecayOptions {
  bool staircase = false;  // the rate falls only after whole multiples of decay_steps
  std::string_view name = {};
};

/// learning_rate * decay_rate ^ (global_step / decay_steps). Node: `ExponentialDecay`.
Output ExponentialDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                        const Operand& decay_rate, const DecayOptions& options = {}, Where where = Where::current());
/// learning_rate * exp(-decay_rate * global_step / decay_steps). Node: `ExponentialDecay`.
Output NaturalExpDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                       const Operand& decay_rate, const DecayOptions& options = {}, Where where = Where::current());
/// learning_rate / (1 + decay_rate * global_step / decay_steps). Node: `InverseTimeDecay`.
Output InverseTimeDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                        const Operand& decay_rate, const DecayOptions& options = {}, Where where = Where::current());

/// values[0] up to and including step boundaries[0], values[1] up to boundaries[1], …, then the last value. A boundary
/// of type int32 fits an int64 step. InvalidArgument unless there is one value more than boundaries, all values are of
/// one type, and all boundaries of the type of `x`. Node: `PiecewiseConstant/case/cond/Merge`.
Output PiecewiseConstant(const Operand& x, const std::vector<Operand>& boundaries, const std::vector<Operand>& values,
                         std::string_view name = "PiecewiseConstant", Where where = Where::current());

struct PolynomialDecayOptions {
  Operand end_learning_rate = 0.0001;
  Operand power = 1.0;
  bool cycle = false;  // begins again from a lower rate after each multiple of decay_steps
  std::string_view name = "PolynomialDecay";
};
/// (learning_rate - end) * (1 - global_step / decay_steps) ^ power + end; `end` after decay_steps.
Output PolynomialDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                       const PolynomialDecayOptions& options = {}, Where where = Where::current());

/// Half a cosine from learning_rate to alpha * learning_rate in decay_steps. Source: Loshchilov and Hutter 2017.
Output CosineDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                   double alpha = 0, std::string_view name = "CosineDecay", Where where = Where::current());

struct CosineRestartOptions {
  Operand t_mul = 2.0;  // each period is so many times as long as the one before
  Operand m_mul = 1.0;  // and begins with so much of its rate
  Operand alpha = 0.0;  // least rate, as a fraction of learning_rate
  std::string_view name = "SGDRDecay";
};
/// Half cosines that begin again, the first after first_decay_steps.
Output CosineDecayRestarts(const Operand& learning_rate, const Operand& global_step, const Operand& first_decay_steps,
                           const CosineRestartOptions& options = {}, Where where = Where::current());

struct LinearCosineOptions {
  Operand num_periods = 0.5;
  Operand alpha = 0.0;
  Operand beta = 0.001;
  std::string_view name = "LinearCosineDecay";
};
/// learning_rate * ((alpha + linear) * cosine + beta), where linear falls from 1 to 0 in decay_steps. Source: Bello et
/// al. 2017.
Output LinearCosineDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                         const LinearCosineOptions& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_LEARNING_RATE_DECAY_H_
