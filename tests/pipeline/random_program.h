// Random scalar programs, for tests of steps that are cut.
#ifndef WEIR_TESTS_PIPELINE_RANDOM_PROGRAM_H_
#define WEIR_TESTS_PIPELINE_RANDOM_PROGRAM_H_

#include <cstdint>
#include <random>
#include <vector>

#include "core/client/graph/graph_internal.h"
#include "core/client/weir.h"
#include "core/graph/endpoint.h"
#include "core/graph/graph_def.h"

namespace weir {

/// Scalar programs with nested conds and loops, fed by "x".
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed), in_(graph_) {
    Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
    std::vector<Output> values = {x, x * 0.5f};
    Grow(values, 6, 2);
    for (size_t i = 0; i < 3; ++i) fetches_.push_back(values[values.size() - 1 - i]);
  }
  Status status() const { return graph_.status(); }
  const graph::Definition& graph() { return Internals(graph_).definition; }
  const std::vector<Output>& fetches() const { return fetches_; }

 private:
  uint32_t Dice(uint32_t sides) { return static_cast<uint32_t>(random_() % sides); }
  Output Any(const std::vector<Output>& values) { return values[Dice(static_cast<uint32_t>(values.size()))]; }

  /// Adds `count` values, with conds and loops nested at most `depth` deep.
  void Grow(std::vector<Output>& values, int count, int depth) {
    for (int i = 0; i < count; ++i) values.push_back(Value(values, depth));
  }
  Output Inner(std::vector<Output> values, int depth) {
    Grow(values, 2, depth - 1);
    return values.back();
  }
  Output Value(const std::vector<Output>& values, int depth) {
    const Output a = Any(values), b = Any(values);
    switch (depth > 0 ? Dice(6) : Dice(3)) {
      case 0:
        return a + b * 0.25f;
      case 1:
        return Tanh(a - b);
      case 2:
        return a * 0.75f + 0.125f;
      case 3:
      case 4:
        return Cond(
            Less(a, b), [&] { return Inner(values, depth); }, [&] { return Inner(values, depth); });
      default: {
        const int rounds = static_cast<int>(Dice(4));
        const LoopVars last = WhileLoop([&](const LoopVars& v) { return Less(v[0], rounds); },
                                        [&](const LoopVars& v) {
                                          std::vector<Output> inside = values;
                                          inside.push_back(v[1]);
                                          return LoopVars{v[0] + 1, Inner(inside, depth) * 0.5f + v[1]};
                                        },
                                        {0, a});
        return last.empty() ? a : last[1];
      }
    }
  }

  std::mt19937 random_;
  Graph graph_;
  AsDefault in_;
  std::vector<Output> fetches_;
};

}  // namespace weir

#endif  // WEIR_TESTS_PIPELINE_RANDOM_PROGRAM_H_
