// Stacks that a step keeps to itself.
#ifndef WEIR_CORE_GRAPH_STACKS_H_
#define WEIR_CORE_GRAPH_STACKS_H_

#include <cstdint>
#include <vector>

#include "core/graph/step_graph.h"

namespace weir::graph {

/// A stack whose handle reaches nothing but pushes and pops of its element type, so that every element that is popped
/// was pushed by one of `pushes`. Node ids ascend.
struct PrivateStack {
  NodeId make = -1;
  int64_t most = -1;  // elements at a time; negative: unlimited
  std::vector<NodeId> pushes;
  std::vector<NodeId> pops;
};

/// Empty for a step without loops, where a stack has no use. Handles are followed through Switch, Enter and Identity.
std::vector<PrivateStack> FindPrivateStacks(const StepGraph& step);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_STACKS_H_
