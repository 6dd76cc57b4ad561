// Plans the loop nest of a region.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_PLAN_H_
#define WEIR_PLUGINS_COMPILER_LLVM_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "plugins/compiler_llvm/ops.h"
#include "plugins/compiler_llvm/program.h"
#include "sdk/abi/compiler.h"

namespace weir::compiler_llvm {

inline constexpr uint32_t kMaxNodes = 256;    // of a region
inline constexpr uint32_t kMaxAccesses = 64;  // inputs and outputs of a region
inline constexpr uint32_t kMaxRank = 16;      // of a value
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

/// A region, or some of its nodes. Value i is input i, then node i - inputs.size().
struct Graph {
  struct Member {
    const weir_region_node* node = nullptr;
    const OpRule* rule = nullptr;
    std::vector<uint32_t> operands;
  };
  std::vector<const weir_region_value*> inputs;
  std::vector<Member> nodes;
  std::vector<uint32_t> outputs;
  std::optional<Loop> loop;

  const weir_region_value& Value(uint32_t value) const {
    return value < inputs.size() ? *inputs[value] : nodes[value - inputs.size()].node->result;
  }
};

/// The whole region. Checks counts, pointers and ops; `why` names the first fault.
std::optional<Graph> ReadRegion(const weir_region& region, std::string* why);

/// Whether the value is one that a nest can hold: a known element type, 1 to kMaxElements elements.
bool IsPlainValue(const weir_region_value& value);

enum class Outputs {
  kChecked,  // the outputs have the shape of the nest, or of its rows
  kAny,      // of an unfinished set of nodes; the program cannot be compiled
};

/// The nest, or `why` the graph has none.
std::optional<Program> PlanNest(const Graph& graph, Outputs outputs, std::string* why);

/// The program of a graph that is a loop. Its values must be scalars, or arrays of one shape whose elements do not
/// depend on each other: no reductions.
std::optional<Program> PlanLoop(const Graph& graph, std::string* why);

/// PlanLoop, or PlanNest with checked outputs.
std::optional<Program> PlanGraph(const Graph& graph, std::string* why);

/// Sets the graph's loop and outputs from those of the region, whose nodes it has.
bool ReadLoop(const weir_region& region, Graph* graph, std::string* why);

/// Elements that the nest visits.
int64_t VisitsOf(const Program& program);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_PLAN_H_
