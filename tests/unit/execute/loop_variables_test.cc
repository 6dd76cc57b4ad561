// Large loop variables swap buffers instead of being copied; the results are the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/client/control_flow/control_flow.h"
#include "core/client/graph/graph.h"
#include "core/client/graph/graph_internal.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using Values = std::vector<float>;

constexpr int64_t kElements = 300;

Tensor Filled(float value) { return Tensor::Vector<float>(Values(kElements, value)); }

/// while i < n: (i, v...) = (i + 1, body(v)...) over vectors that are fed as v0, v1, …; all of them are fetched.
class LoopStep {
 public:
  LoopStep(int variables, const std::function<LoopVars(const LoopVars&)>& body) {
    weir::Graph client;
    {
      const AsDefault in(client);
      const Output n = weir::Placeholder(DType::kInt32, PartialShape::Of({}), "n");
      std::vector<Operand> start = {0};
      std::vector<std::pair<std::string, Shape>> feeds = {{"n", Shape()}};
      for (int v = 0; v < variables; ++v) {
        const std::string name = "v" + std::to_string(v);
        start.push_back(weir::Placeholder(DType::kFloat, PartialShape::Of({kElements}), name));
        feeds.emplace_back(name, Shape::Of({kElements}));
      }
      const LoopVars exits = WhileLoop([&](const LoopVars& v) { return Less(v[0], n); },
                                       [&](const LoopVars& v) {
                                         LoopVars next = body(LoopVars(v.begin() + 1, v.end()));
                                         next.insert(next.begin(), v[0] + 1);
                                         return next;
                                       },
                                       start);
      EXPECT_TRUE(client.status().ok()) << client.status().ToString();
      std::vector<std::string> fetches;
      for (size_t v = 1; v < exits.size(); ++v) fetches.push_back(exits[v].name());
      step_ = std::make_unique<Compiled>(std::move(Internals(client).definition), feeds, fetches);
    }
  }

  /// First elements after n iterations; all elements must be equal.
  Values Run(int n, const Values& start) {
    std::vector<Tensor> feeds = {Tensor::Scalar<int32_t>(n)};
    for (const float value : start) feeds.push_back(Filled(value));
    std::vector<Tensor> fetches;
    const Status status = step_->Run(feeds, &fetches);
    EXPECT_TRUE(status.ok()) << status.ToString();
    Values last;
    for (const Tensor& tensor : fetches) {
      last.push_back(tensor.as<float>()[0]);
      EXPECT_TRUE(tensor.SameBits(Filled(last.back())));
    }
    kept_.push_back(fetches);
    return last;
  }

  /// Compares several runs with `next` applied n times; results of earlier runs must not change.
  void Check(const Values& start, const std::function<Values(const Values&)>& next) {
    std::vector<Values> all;
    for (const int n : {0, 1, 2, 3, 8, 1, 0, 7}) {
      Values expected = start;
      for (int i = 0; i < n; ++i) expected = next(expected);
      EXPECT_EQ(Run(n, start), expected) << n << " iterations\n" << plan::ToString(plan());
      all.push_back(expected);
    }
    for (size_t run = 0; run < all.size(); ++run) {
      for (size_t v = 0; v < start.size(); ++v) EXPECT_TRUE(kept_[run][v].SameBits(Filled(all[run][v]))) << run;
    }
  }

  const plan::ExecutionPlan& plan() { return step_->runner().plan(); }
  /// Number of copies of large values inside a loop.
  int Copies() {
    int copies = 0;
    for (size_t i = 0; i < plan().instructions.size(); ++i) {
      const plan::Instruction& at = plan().instructions[i];
      const bool moves = at.opcode == plan::Opcode::kMove || at.opcode == plan::Opcode::kMoveBytes;
      if (!moves || plan().values[plan().slots[at.first_slot].value].shape.elements() < kElements) continue;
      copies += std::any_of(plan().instructions.begin(), plan().instructions.end(), [&](const plan::Instruction& jump) {
        const auto repeat = static_cast<size_t>(&jump - plan().instructions.data());
        return jump.opcode == plan::Opcode::kRepeat && plan().jumps[jump.detail].target <= i && i < repeat;
      });
    }
    return copies;
  }

 private:
  std::unique_ptr<Compiled> step_;
  std::vector<std::vector<Tensor>> kept_;
};

TEST(LoopVariables, ComputedOnesChangePlaces) {
  LoopStep step(2, [](const LoopVars& v) { return LoopVars{v[0] * 2.0f + v[1], v[1] + v[0]}; });
  EXPECT_EQ(step.Copies(), 0) << plan::ToString(step.plan());
  step.Check({1, 2}, [](const Values& v) { return Values{v[0] * 2 + v[1], v[1] + v[0]}; });
}

TEST(LoopVariables, OneBecomesTheOther) {
  LoopStep step(2, [](const LoopVars& v) { return LoopVars{v[1], v[0] + v[1]}; });
  EXPECT_EQ(step.Copies(), 0) << plan::ToString(step.plan());
  step.Check({1, 1}, [](const Values& v) { return Values{v[1], v[0] + v[1]}; });
}

TEST(LoopVariables, InACircle) {
  LoopStep step(4, [](const LoopVars& v) { return LoopVars{v[1], v[2], v[0], v[3] + v[0]}; });
  EXPECT_EQ(step.Copies(), 0) << plan::ToString(step.plan());
  step.Check({1, 2, 3, 0}, [](const Values& v) { return Values{v[1], v[2], v[0], v[3] + v[0]}; });
}

TEST(LoopVariables, TwoBecomeTheSame) {
  LoopStep step(3, [](const LoopVars& v) {
    const Output sum = v[0] + v[1];
    return LoopVars{sum, sum, v[1]};
  });
  EXPECT_LE(step.Copies(), 1) << plan::ToString(step.plan());
  step.Check({1, 2, 3}, [](const Values& v) { return Values{v[0] + v[1], v[0] + v[1], v[1]}; });
}

TEST(LoopVariables, OneThatStaysIsTakenByAnother) {
  LoopStep step(3, [](const LoopVars& v) { return LoopVars{v[1], v[1], v[2] + v[0]}; });
  step.Check({1, 2, 3}, [](const Values& v) { return Values{v[1], v[1], v[2] + v[0]}; });
}

TEST(LoopVariables, ChosenByACond) {
  LoopStep step(2, [](const LoopVars& v) {
    const Output more = Cond(
        Less(ReduceMax(v[0]), 10.0f), [&] { return v[0] + v[1]; }, [&] { return v[1]; });
    return LoopVars{more, v[0]};
  });
  step.Check({1, 2}, [](const Values& v) { return Values{v[0] < 10 ? v[0] + v[1] : v[1], v[0]}; });
}

TEST(LoopVariables, ThroughAnInnerLoop) {
  LoopStep step(2, [](const LoopVars& v) {
    const LoopVars inner = WhileLoop([](const LoopVars& w) { return Less(w[0], 3); },
                                     [](const LoopVars& w) {
                                       return LoopVars{w[0] + 1, w[2], w[1] + w[2]};
                                     },
                                     {0, v[0], v[1]});
    return LoopVars{inner[2], inner[1]};
  });
  EXPECT_EQ(step.Copies(), 2) << "the inner loop's variables enter\n" << plan::ToString(step.plan());
  step.Check({1, 1}, [](Values v) {
    for (int i = 0; i < 3; ++i) v = {v[1], v[0] + v[1]};
    return Values{v[1], v[0]};
  });
}

TEST(LoopVariables, UsesAfterTheLoopGetTheLastValue) {
  weir::Graph client;
  const AsDefault in(client);
  const Output n = weir::Placeholder(DType::kInt32, PartialShape::Of({}), "n");
  const Output x = weir::Placeholder(DType::kFloat, PartialShape::Of({kElements}), "x");
  const LoopVars out = WhileLoop([&](const LoopVars& v) { return Less(v[0], n); },
                                 [](const LoopVars& v) {
                                   return LoopVars{v[0] + 1, v[2], v[1] + v[2]};
                                 },
                                 {0, x, x});
  const Output y = out[1] * 100.0f + out[2];
  Compiled step(std::move(Internals(client).definition), {{"n", Shape()}, {"x", Shape::Of({kElements})}}, {y.name()});
  float a = 1, b = 1;
  for (int iterations = 0; iterations < 8; ++iterations) {
    std::vector<Tensor> fetches;
    ASSERT_TRUE(step.Run({Tensor::Scalar<int32_t>(iterations), Filled(1)}, &fetches).ok());
    EXPECT_TRUE(fetches[0].SameBits(Filled(a * 100 + b))) << iterations;
    b = std::exchange(a, b) + b;
  }
}

}  // namespace
}  // namespace weir::execute
