// Learning rates by the global step. Values are TensorFlow's: rate 0.1, 10 steps, decay 0.9.
#include "core/client/training/learning_rate_decay.h"

#include <gtest/gtest.h>

#include "tests/unit/client/fresh.h"

namespace weir {
namespace {

using namespace test;

constexpr int64_t kSteps[] = {0, 1, 5, 10, 11, 20, 21};

using Schedule = std::function<Output(const Output& step)>;

/// The rates at kSteps; the name of the value goes to `name`.
std::vector<double> RatesOf(const Schedule& schedule, std::string* name = nullptr) {
  Fresh f;
  const Output step = Placeholder(DType::kInt64, {}, "step");
  const Output rate = schedule(step);
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  if (name != nullptr) *name = rate.op().name();
  Session session(f.graph);
  std::vector<double> rates;
  for (const int64_t at : kSteps) rates.push_back(Value(session, rate, {{step, at}}));
  return rates;
}

void ExpectRates(const Schedule& schedule, const std::vector<double>& wanted, const std::string& named) {
  std::string name;
  const std::vector<double> rates = RatesOf(schedule, &name);
  EXPECT_EQ(name, named);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(rates[i], wanted[i], 2e-7) << "step " << kSteps[i];
}

TEST(LearningRateDecay, F193_exponential) {
  const Schedule smooth = [](const Output& step) { return ExponentialDecay(0.1, step, 10, 0.9); };
  ExpectRates(smooth, {.1, .0989519, .0948683, .09, .0890567, .081, .0801511}, "ExponentialDecay");
  const Schedule stairs = [](const Output& step) { return ExponentialDecay(0.1, step, 10, 0.9, {.staircase = true}); };
  ExpectRates(stairs, {.1, .1, .1, .09, .09, .081, .081}, "ExponentialDecay");
  Fresh f;
  ExponentialDecay(0.1, Placeholder(DType::kInt64, {}, "s"), 10, 0.9);
  EXPECT_EQ(NodeNames(f.graph),
            (std::vector<std::string>{"s", "ExponentialDecay/initial_learning_rate", "ExponentialDecay/Cast/x",
                                      "ExponentialDecay/Cast", "ExponentialDecay/Cast_1/x", "ExponentialDecay/Cast_2",
                                      "ExponentialDecay/truediv", "ExponentialDecay/Pow", "ExponentialDecay"}));
}

TEST(LearningRateDecay, F193_F374_natural_exponential_and_inverse_time) {
  const Schedule natural = [](const Output& step) { return NaturalExpDecay(0.1, step, 10, 0.9); };
  ExpectRates(natural, {.1, .0913931, .0637628, .0406570, .0371577, .0165299, .0151072}, "ExponentialDecay");
  const Schedule stairs = [](const Output& step) { return NaturalExpDecay(0.1, step, 10, 0.9, {.staircase = true}); };
  ExpectRates(stairs, {.1, .1, .1, .0406570, .0406570, .0165299, .0165299}, "ExponentialDecay");
  const Schedule inverse = [](const Output& step) { return InverseTimeDecay(0.1, step, 10, 0.9); };
  ExpectRates(inverse, {.1, .0917431, .0689655, .0526316, .0502513, .0357143, .0346021}, "InverseTimeDecay");
}

TEST(LearningRateDecay, F193_F374_polynomial) {
  const auto with = [](PolynomialDecayOptions options) -> Schedule {
    options.end_learning_rate = 0.01;
    return [options](const Output& step) { return PolynomialDecay(0.1, step, 10, options); };
  };
  ExpectRates(with({}), {.1, .091, .055, .01, .01, .01, .01}, "PolynomialDecay");
  ExpectRates(with({.power = 2.0}), {.1, .0829, .0325, .01, .01, .01, .01}, "PolynomialDecay");
  ExpectRates(with({.cycle = true}), {.1, .091, .055, .01, .0505, .01, .037}, "PolynomialDecay");
}

TEST(LearningRateDecay, F193_F374_cosines) {
  const Schedule cosine = [](const Output& step) { return CosineDecay(0.1, step, 10); };
  ExpectRates(cosine, {.1, .0975528, .05, 0, 0, 0, 0}, "CosineDecay/Mul_3");
  const Schedule least = [](const Output& step) { return CosineDecay(0.1, step, 10, 0.1); };
  ExpectRates(least, {.1, .0977975, .055, .01, .01, .01, .01}, "CosineDecay/Mul_3");
  const Schedule restarts = [](const Output& step) { return CosineDecayRestarts(0.1, step, 10); };
  ExpectRates(restarts, {.1, .0975528, .05, .1, .0993844, .05, .0421783}, "SGDRDecay");
  const Schedule equal = [](const Output& step) { return CosineDecayRestarts(0.1, step, 10, {.t_mul = 1.0}); };
  ExpectRates(equal, {.1, .0975528, .05, .1, .0975528, .1, .0975528}, "SGDRDecay");
  const Schedule linear = [](const Output& step) { return LinearCosineDecay(0.1, step, 10); };
  ExpectRates(linear, {.1001, .0878975, .0251, .0001, .0001, .0001, .0001}, "LinearCosineDecay");
}

TEST(LearningRateDecay, F193_F374_piecewise_constant_keeps_the_left_value_at_a_boundary) {
  const Schedule pieces = [](const Output& step) { return PiecewiseConstant(step, {10, 20}, {1.0, 0.5, 0.1}); };
  ExpectRates(pieces, {1, 1, 1, 1, .5, .5, .1}, "PiecewiseConstant/case/cond/Merge");
}

TEST(LearningRateDecay, F374_wrong_pieces_are_errors) {
  const auto error = [](DType step, const std::vector<Operand>& boundaries, const std::vector<Operand>& values) {
    Fresh f;
    PiecewiseConstant(Placeholder(step, {}, "x"), boundaries, values);
    return f.graph.status();
  };
  EXPECT_TRUE(Fails(error(DType::kInt64, {10}, {1.0}), Code::kInvalidArgument,
                    "The length of boundaries should be 1 less than the length of values"));
  EXPECT_TRUE(Fails(error(DType::kInt64, {10.0}, {1.0, 0.5}), Code::kInvalidArgument,
                    "Boundaries (<dtype: 'float32'>) must have the same dtype as x (<dtype: 'int64'>)."));
  EXPECT_TRUE(Fails(error(DType::kInt64, {10}, {1.0, 2}), Code::kInvalidArgument,
                    "Values must have elements all with the same dtype (<dtype: 'float32'> vs <dtype: 'int32'>)."));
}

TEST(LearningRateDecay, F193_an_optimiser_takes_the_decaying_rate) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  const Variable step = GetOrCreateGlobalStep();
  const Output rate = ExponentialDecay(0.1, step, 1, 0.5);
  const Operation train = GradientDescentOptimizer(rate).Minimize(Square(w), {.global_step = step});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_NEAR(Value(session, w), 1.6, 1e-6);
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_NEAR(Value(session, w), 1.6 - 0.05 * 3.2, 1e-6);
}

}  // namespace
}  // namespace weir
