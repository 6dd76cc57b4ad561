// Stacks that a plan keeps itself give the results of stacks that are resources.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/client/control_flow/control_flow.h"
#include "core/client/gradients/gradients.h"
#include "core/client/graph/graph.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/ops/ops.h"
#include "core/execute/run_stack_internal.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using testing::At;
using testing::MakeGraph;
using testing::NodeLine;

size_t Count(const plan::ExecutionPlan& plan, plan::Opcode opcode) {
  return static_cast<size_t>(std::ranges::count(plan.instructions, opcode, &plan::Instruction::opcode));
}

/// The gradient of `body`, applied n times to a vector x, by x; fed are x and n.
class GradientOfLoop {
 public:
  GradientOfLoop(const Shape& shape, const std::function<Output(Output x, Output v)>& body, int parallelism = 1)
      : shape_(shape) {
    for (const bool resources : {false, true}) {
      weir::Graph client;
      std::vector<std::string> fetches;
      {
        const AsDefault in(client);
        const Output x = weir::Placeholder(DType::kFloat, PartialShape(shape), "x");
        const Output n = weir::Placeholder(DType::kInt32, PartialShape::Of({}), "n");
        const LoopVars exits = WhileLoop([&](const LoopVars& v) { return Less(v[0], n); },
                                         [&](const LoopVars& v) {
                                           return LoopVars{v[0] + 1, body(x, v[1])};
                                         },
                                         {0, x});
        const auto gradients = Gradients({exits[1]}, {x});
        EXPECT_TRUE(gradients.ok() && client.status().ok()) << client.status().ToString();
        if (!gradients.ok()) return;
        fetches = {exits[1].name(), (*gradients)[0].values.name()};
        // The handle of a stack that is fetched may be used by anything.
        for (const Operation& operation : client.Operations()) {
          if (resources && operation.type() == "StackV2") fetches.push_back(operation.output(0).name());
        }
      }
      (resources ? by_resources_ : by_plan_) = std::make_unique<Compiled>(
          std::move(Internals(client).definition),
          std::vector<std::pair<std::string, Shape>>{{"x", shape}, {"n", Shape()}}, fetches, parallelism);
    }
  }

  const plan::ExecutionPlan& plan() const { return by_plan_->runner().plan(); }
  const plan::ExecutionPlan& other() const { return by_resources_->runner().plan(); }

  void Check(int n) {
    Result<Tensor> x = Tensor::Make(DType::kFloat, shape_);
    ASSERT_TRUE(x.ok());
    const auto values = x->mutable_as<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.9f + 0.01f * static_cast<float>(i % 7);
    std::vector<Tensor> mine, theirs;
    const std::vector<Tensor> feeds = {*x, Tensor::Scalar<int32_t>(n)};
    ASSERT_TRUE(by_plan_->Run(feeds, &mine).ok());
    ASSERT_TRUE(by_resources_->Run(feeds, &theirs).ok());
    for (size_t f = 0; f < 2; ++f) EXPECT_TRUE(mine[f].SameBits(theirs[f])) << n << " iterations, fetch " << f;
  }

 private:
  Shape shape_;
  std::unique_ptr<Compiled> by_plan_, by_resources_;
};

TEST(PlannedStacks, GiveTheBitsOfResources) {
  for (const Shape& shape : {Shape(), Shape::Of({2}), Shape::Of({3}), Shape::Of({40, 30}), Shape::Of({0, 4})}) {
    GradientOfLoop loop(shape, [](const Output& x, const Output& v) { return Tanh(v * x) + v; });
    EXPECT_GT(Count(loop.plan(), plan::Opcode::kPush), 0u);
    EXPECT_EQ(Count(loop.plan(), plan::Opcode::kPush), Count(loop.plan(), plan::Opcode::kPop));
    EXPECT_EQ(Count(loop.plan(), plan::Opcode::kCall), 0u) << plan::ToString(loop.plan());
    EXPECT_EQ(Count(loop.other(), plan::Opcode::kPush), 0u);
    for (const int n : {0, 1, 2, 1500, 3}) loop.Check(n);
  }
}

TEST(PlannedStacks, GiveTheBitsOfResourcesUnderConds) {
  GradientOfLoop loop(Shape::Of({5}), [](const Output& x, const Output& v) {
    const Output large = Greater(ReduceSum(v), Constant(4.6f));
    return Cond(large, [&] { return v * Constant(0.9f) * x; }, [&] { return v * v * x; });
  });
  EXPECT_GT(Count(loop.plan(), plan::Opcode::kPop), 0u);
  for (const int n : {0, 1, 9, 40}) loop.Check(n);
}

TEST(PlannedStacks, GiveTheBitsOfResourcesInLoopsInsideLoops) {
  GradientOfLoop loop(Shape::Of({3}), [](const Output& x, const Output& v) {
    return WhileLoop([](const LoopVars& inner) { return Less(inner[0], 3); },
                     [&](const LoopVars& inner) {
                       return LoopVars{inner[0] + 1, Tanh(inner[1] * x)};
                     },
                     {0, v})[1];
  });
  EXPECT_GT(Count(loop.plan(), plan::Opcode::kPop), 0u);
  for (const int n : {0, 1, 2, 30}) loop.Check(n);
}

TEST(PlannedStacks, KeepTheirOrderAmongTasks) {
  GradientOfLoop loop(
      Shape::Of({160, 160}),
      [](const Output& x, const Output& v) { return (MatMul(v, x) + MatMul(x, v)) * Constant(1e-2f); }, 4);
  EXPECT_GT(Count(loop.plan(), plan::Opcode::kPush), 0u);
  for (const int n : {0, 1, 6}) loop.Check(n);
}

/// A loop of five iterations that pushes its counter on a stack of at most `most`; `pops` elements are taken after it.
std::vector<NodeLine> Pushes(int32_t most) {
  const op::AttrList ints = {{"T", DType::kInt32}};
  const auto enter = [](bool constant) {
    return op::AttrList{{"T", DType::kInt32}, {"frame_name", std::string("w")}, {"is_constant", constant}};
  };
  return {testing::Const("most", Tensor::Scalar<int32_t>(most)),
          testing::Const("zero", Tensor::Scalar<int32_t>(0)),
          testing::Const("one", Tensor::Scalar<int32_t>(1)),
          testing::Const("limit", Tensor::Scalar<int32_t>(5)),
          {"s", "StackV2", {"most"}, {{"elem_type", DType::kInt32}}},
          {"es",
           "Enter",
           {"s"},
           {{"T", DType::kResource}, {"frame_name", std::string("w")}, {"is_constant", true}}},
          {"e", "Enter", {"zero"}, enter(false)},
          {"e_one", "Enter", {"one"}, enter(true)},
          {"e_limit", "Enter", {"limit"}, enter(true)},
          {"m", "Merge", {"e", "n"}, {{"T", DType::kInt32}, {"N", int64_t{2}}}},
          {"less", "Less", {"m", "e_limit"}, ints},
          {"go", "LoopCond", {"less"}},
          {"sw", "Switch", {"m", "go"}, ints},
          {"push", "StackPushV2", {"es", "sw:1"}, ints},
          {"next", "AddV2", {"push", "e_one"}, ints},
          {"n", "NextIteration", {"next"}, ints},
          {"x", "Exit", {"sw"}, ints},
          {"pop", "StackPopV2", {"s", "^x"}, {{"elem_type", DType::kInt32}}},
          {"pop2", "StackPopV2", {"s", "^pop"}, {{"elem_type", DType::kInt32}}}};
}

TEST(PlannedStacks, PopTheLastElementFirst) {
  Compiled step(MakeGraph(Pushes(-1)), {}, {"pop", "pop2", "x"});
  ASSERT_EQ(Count(step.runner().plan(), plan::Opcode::kPop), 2u) << plan::ToString(step.runner().plan());
  for (int run = 0; run < 3; ++run) {
    std::vector<Tensor> fetches;
    ASSERT_TRUE(step.Run({}, &fetches).ok());
    EXPECT_EQ(fetches[0].as<int32_t>()[0], 4);
    EXPECT_EQ(fetches[1].as<int32_t>()[0], 3);
  }
}

TEST(PlannedStacks, RefusePushesBeyondTheLimitAndPopsOfNothing) {
  std::vector<Tensor> fetches;
  Compiled small(MakeGraph(Pushes(4)), {}, {"pop"});
  Status status = small.Run({}, &fetches);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("Stack[push] overflowed its max_size (4)"), std::string::npos) << status.ToString();
  std::vector<NodeLine> nodes = Pushes(5);
  nodes[3] = testing::Const("limit", Tensor::Scalar<int32_t>(1));
  Compiled once(MakeGraph(nodes), {}, {"pop", "pop2"});
  ASSERT_EQ(Count(once.runner().plan(), plan::Opcode::kPop), 2u);
  status = once.Run({}, &fetches);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("Stack[pop2] is empty when calling Pop()."), std::string::npos) << status.ToString();
}

TEST(RunStack, GrowsAndGivesBackOnlyLargeMemory) {
  RunStack stack({.bytes = 1 << 20, .most = 40});
  std::vector<std::byte> element(1 << 20);
  for (int i = 0; i < 40; ++i) {
    if (stack.full()) {
      ASSERT_TRUE(stack.Grow(HostAllocator(), "op").ok());
    }
    element.back() = std::byte(i);
    stack.Push(element.data());
  }
  EXPECT_TRUE(stack.full());
  EXPECT_EQ(stack.Grow(HostAllocator(), "op").code(), Code::kInvalidArgument);
  EXPECT_EQ(stack.memory_bytes(), uint64_t{40} << 20);
  for (int i = 40; i-- > 0;) {
    stack.Pop(element.data());
    EXPECT_EQ(element.back(), std::byte(i));
  }
  EXPECT_TRUE(stack.empty());
  stack.Shrink();
  EXPECT_EQ(stack.memory_bytes(), 0u);
  EXPECT_TRUE(stack.full());
  RunStack small({.bytes = 8, .most = -1});
  ASSERT_TRUE(small.Grow(HostAllocator(), "op").ok());
  const uint64_t kept = small.memory_bytes();
  EXPECT_GT(kept, 0u);
  small.Push(element.data());
  small.Shrink();
  EXPECT_EQ(small.memory_bytes(), kept);
  EXPECT_TRUE(small.empty());
}

}  // namespace
}  // namespace weir::execute
