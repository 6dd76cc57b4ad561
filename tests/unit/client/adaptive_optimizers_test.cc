// Optimisers by rule. Values are TensorFlow's: w = 2, loss w², a learning rate of 0.1, after 0, 1 and 2 steps.
#include <gtest/gtest.h>

#include "tests/unit/client/fresh.h"

namespace weir {
namespace {

using namespace test;

struct Course {
  std::vector<double> w;
  std::vector<std::vector<double>> slots;  // by slot
};

/// Two steps of an optimiser on w².
template <class Make>
Course TwoStepsOf(const Make& make, bool resource = false) {
  Fresh f;
  const Variable w(2.0f, {.name = "w", .use_resource = resource});
  auto optimizer = make();
  const Operation train = optimizer.Minimize(Square(w));
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  Course course;
  course.slots.resize(optimizer.SlotNames().size());
  for (int step = 0; step < 3; ++step) {
    course.w.push_back(Value(session, w));
    for (size_t i = 0; i < course.slots.size(); ++i) {
      course.slots[i].push_back(Value(session, optimizer.GetSlot(w, optimizer.SlotNames()[i])));
    }
    EXPECT_TRUE(Succeeds(session.Run(train)));
  }
  return course;
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 2e-6 * std::max(1.0, std::abs(wanted[i])));
}

std::vector<std::string> SlotVariables(Optimizer& optimizer, const Variable& w) {
  std::vector<std::string> names;
  for (const std::string& slot : optimizer.SlotNames()) names.push_back(optimizer.GetSlot(w, slot).name());
  return names;
}

TEST(AdaptiveOptimizers, F191_F373_rms_prop) {
  const Course plain = TwoStepsOf([] { return RMSPropOptimizer(0.1); });
  ExpectNear(plain.w, {2, 1.7470179, 1.5594707});
  ExpectNear(plain.slots[0], {1, 2.5, 3.470829});
  ExpectNear(plain.slots[1], {0, 0.2529822, 0.1875473});
  const Course momentum = TwoStepsOf([] { return RMSPropOptimizer(0.1, {.momentum = 0.9}); });
  ExpectNear(momentum.w, {2, 1.7470179, 1.3317866});
  EXPECT_NEAR(momentum.slots[1][2], 0.4152312, 1e-6);
  const Course centered = TwoStepsOf([] { return RMSPropOptimizer(0.1, {.centered = true}); });
  ExpectNear(centered.w, {2, 1.7385118, 1.53635});
  ExpectNear(centered.slots[0], {1, 2.5, 3.45897});
  ExpectNear(centered.slots[1], {0, 0.4, 0.7077025});
  ExpectNear(centered.slots[2], {0, 0.2614882, 0.2021618});
}

TEST(AdaptiveOptimizers, F191_F373_adadelta) {
  const Course course = TwoStepsOf([] { return AdadeltaOptimizer(0.1); });
  ExpectNear(course.w, {2, 1.9999553, 1.99991});
  ExpectNear(course.slots[0], {0, 0.8, 1.5599647});
  EXPECT_NEAR(course.slots[1][1], 1e-8, 1e-13);
  EXPECT_NEAR(course.slots[1][2], 1.975619e-8, 1e-13);
}

TEST(AdaptiveOptimizers, F191_F373_ftrl) {
  const Course plain = TwoStepsOf([] { return FtrlOptimizer(0.1); });
  ExpectNear(plain.w, {2, 1.742689, 1.6771111});
  ExpectNear(plain.slots[0], {0.1, 16.1, 28.24786});
  ExpectNear(plain.slots[1], {0, -69.925056, -89.136307});
  const Course penalties = TwoStepsOf(
      [] { return FtrlOptimizer(0.1, {.l1_regularization_strength = 0.1, .l2_regularization_strength = 0.1}); });
  ExpectNear(penalties.w, {2, 1.7315658, 1.6664732});
}

TEST(AdaptiveOptimizers, F373_ftrl_with_shrinkage_and_beta) {
  // TensorFlow 2.17: FtrlOptimizer(.1, l2_shrinkage_regularization_strength=.1, beta=.2).
  const Course course =
      TwoStepsOf([] { return FtrlOptimizer(0.1, {.l2_shrinkage_regularization_strength = 0.1, .beta = 0.2}); });
  ExpectNear(course.w, {2, 1.650454044342041, 1.5831605195999146});
}

TEST(AdaptiveOptimizers, F192_F373_adagrad) {
  const Course course = TwoStepsOf([] { return AdagradOptimizer(0.1); });
  ExpectNear(course.w, {2, 1.900311, 1.831543});
  ExpectNear(course.slots[0], {0.1, 16.1, 30.544727});
}

TEST(AdaptiveOptimizers, F192_minimize_counts_the_global_step) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  const Variable step = GetOrCreateGlobalStep();
  AdagradOptimizer adagrad(0.01);
  const Operation train = adagrad.Minimize(Square(w), {.global_step = step});
  EXPECT_EQ(train.name(), "Adagrad");
  EXPECT_EQ(train.type(), "AssignAdd");
  EXPECT_EQ(SlotVariables(adagrad, w), std::vector<std::string>{"w/Adagrad:0"});
  Session session(f.graph);
  Initialize(session);
  for (int i = 1; i <= 2; ++i) {
    ASSERT_TRUE(Succeeds(session.Run(train)));
    if (i == 1) {
      EXPECT_NEAR(Value(session, w), 1.9900311, 1e-6);
    }
    EXPECT_EQ(Value(session, step), i);
  }
}

TEST(AdaptiveOptimizers, F373_proximal_steps) {
  const Course descent = TwoStepsOf([] { return ProximalGradientDescentOptimizer(0.1, 0.1); });
  ExpectNear(descent.w, {2, 1.59, 1.2620001});
  EXPECT_TRUE(descent.slots.empty());
  const Course adagrad = TwoStepsOf([] { return ProximalAdagradOptimizer(0.1, 0.1, 0.1, 0.2); });
  ExpectNear(adagrad.w, {2, 1.8884060382843018, 1.811476469039917});
}

TEST(AdaptiveOptimizers, F373_dual_averaging) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  const Variable step = GetOrCreateGlobalStep();
  AdagradDAOptimizer optimizer(0.1, step, {.l1_regularization_strength = 0.1, .l2_regularization_strength = 0.2});
  const Operation train = optimizer.Minimize(Square(w), {.global_step = step});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  EXPECT_EQ(SlotVariables(optimizer, w), (std::vector<std::string>{"w/AdagradDA:0", "w/AdagradDA_1:0"}));
  Session session(f.graph);
  Initialize(session);
  const double wanted[] = {-0.09671466052532196, -0.08889441192150116};
  for (const double value : wanted) {
    ASSERT_TRUE(Succeeds(session.Run(train)));
    EXPECT_NEAR(Value(session, w), value, 1e-6);
  }
}

TEST(AdaptiveOptimizers, F373_names_of_slots) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  RMSPropOptimizer centered(0.1, {.centered = true});
  centered.Minimize(Square(w));
  EXPECT_EQ(centered.SlotNames(), (std::vector<std::string>{"rms", "mg", "momentum"}));
  EXPECT_EQ(SlotVariables(centered, w), (std::vector<std::string>{"w/RMSProp:0", "w/RMSProp_1:0", "w/RMSProp_2:0"}));
  FtrlOptimizer ftrl(0.1);
  ftrl.Minimize(Square(w));
  EXPECT_EQ(SlotVariables(ftrl, w), (std::vector<std::string>{"w/Ftrl:0", "w/Ftrl_1:0"}));
  FtrlOptimizer named(0.1, {.accum_name = "squares", .linear_name = "sums"});
  named.Minimize(Square(w));
  EXPECT_EQ(SlotVariables(named, w), (std::vector<std::string>{"w/squares:0", "w/sums:0"}));
  AdadeltaOptimizer adadelta;
  adadelta.Minimize(Square(w));
  EXPECT_EQ(SlotVariables(adadelta, w), (std::vector<std::string>{"w/Adadelta:0", "w/Adadelta_1:0"}));
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

TEST(AdaptiveOptimizers, F191_nodes_are_tensorflows) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  RMSPropOptimizer(0.1).Minimize(Square(w));
  FtrlOptimizer(0.1).Minimize(Square(w));
  const std::vector<std::string> names = NodeNames(f.graph);
  for (const char* name :
       {"w/RMSProp/Initializer/ones", "w/RMSProp_1/Initializer/zeros", "RMSProp/learning_rate", "RMSProp/decay",
        "RMSProp/momentum", "RMSProp/epsilon", "RMSProp/update_w/ApplyRMSProp", "w/Ftrl/Initializer/mul",
        "w/Ftrl/Initializer/ones", "Ftrl/l1_regularization_strength", "Ftrl/Maximum", "Ftrl/truediv", "Ftrl/add",
        "Ftrl/beta", "Ftrl/l2_shrinkage_regularization_strength", "Ftrl/learning_rate_power",
        "Ftrl/update_w/ApplyFtrl"}) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
}

TEST(AdaptiveOptimizers, F191_resources_train_as_references_do) {
  const auto same = [](auto make) { ExpectNear(TwoStepsOf(make, true).w, TwoStepsOf(make, false).w); };
  same([] { return AdagradOptimizer(0.1); });
  same([] { return RMSPropOptimizer(0.1); });
  same([] { return RMSPropOptimizer(0.1, {.centered = true}); });
  same([] { return AdadeltaOptimizer(0.1); });
  same([] { return FtrlOptimizer(0.1); });
  same([] { return ProximalGradientDescentOptimizer(0.1, 0.1); });
  same([] { return ProximalAdagradOptimizer(0.1); });
}

TEST(AdaptiveOptimizers, F361_rows_with_adagrad) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable v({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}, {.name = "v", .use_resource = resource});
    const Operation train = AdagradOptimizer(0.1).Minimize(ReduceSum(Gather(v, {0, 0})));
    ASSERT_TRUE(f.graph.status().ok()) << f.error();
    Session session(f.graph);
    Initialize(session);
    for (const double wanted : {0.9012271, 0.8309542}) {
      ASSERT_TRUE(Succeeds(session.Run(train)));
      const std::vector<double> values = Values(session, v);
      EXPECT_NEAR(values[0], wanted, 1e-6);
      EXPECT_EQ(std::vector<double>(values.begin() + 2, values.end()), (std::vector<double>{3, 4, 5, 6}));
    }
  }
}

TEST(AdaptiveOptimizers, F373_rows_move_as_a_dense_gradient_moves_them) {
  const auto rows = [](auto make) {
    Fresh f;
    const Variable dense({1.0f, 2.0f}, {.name = "dense"}), table({{1.0f, 2.0f}, {3.0f, 4.0f}}, {.name = "table"});
    const Operation by_value = make().Minimize(ReduceSum(Square(dense)), {.variables = {dense}});
    const Operation by_rows = make().Minimize(ReduceSum(Square(Gather(table, {0}))), {.variables = {table}});
    ASSERT_TRUE(f.graph.status().ok()) << f.error();
    Session session(f.graph);
    Initialize(session);
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(Succeeds(session.Run({by_value, by_rows})));
    const std::vector<double> values = Values(session, dense), moved = Values(session, table);
    EXPECT_NEAR(moved[0], values[0], 1e-6);
    EXPECT_NEAR(moved[1], values[1], 1e-6);
    EXPECT_EQ(moved[2], 3);
  };
  rows([] { return RMSPropOptimizer(0.1, {.momentum = 0.5}); });
  rows([] { return RMSPropOptimizer(0.1, {.centered = true}); });
  rows([] { return AdadeltaOptimizer(0.1); });
  rows([] { return FtrlOptimizer(0.1); });
  rows([] { return ProximalAdagradOptimizer(0.1); });
}

TEST(AdaptiveOptimizers, F373_arguments_out_of_range_are_errors) {
  const auto error = [](auto make) {
    Fresh f;
    const Variable w(2.0f, {.name = "w"});
    make().Minimize(Square(w));
    return f.graph.status();
  };
  EXPECT_TRUE(Fails(error([] { return AdagradOptimizer(0.1, 0); }), Code::kInvalidArgument,
                    "initial_accumulator_value must be positive: 0"));
  EXPECT_TRUE(Fails(error([] { return FtrlOptimizer(0.1, {.learning_rate_power = 0.5}); }), Code::kInvalidArgument,
                    "learning_rate_power 0.500000 needs to be negative or zero"));
  EXPECT_TRUE(Fails(error([] { return FtrlOptimizer(0.1, {.l1_regularization_strength = -1}); }),
                    Code::kInvalidArgument, "l1_regularization_strength -1.000000 needs to be positive or zero"));
}

}  // namespace
}  // namespace weir
