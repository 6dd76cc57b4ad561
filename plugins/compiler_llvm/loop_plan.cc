// Loops of scalars and of arrays of one shape.
#include <algorithm>
#include <bit>

#include "plugins/compiler_llvm/plan.h"

namespace weir::compiler_llvm {
namespace {

constexpr int64_t kMostColumns = 16384;  // more elements are worth a pass of their own in each iteration
constexpr int64_t kFewNodes = 4;

bool IsAlike(const weir_region_value& a, const weir_region_value& b) {
  return a.dtype == b.dtype && a.shape.rank == b.shape.rank &&
         std::equal(a.shape.dims, a.shape.dims + a.shape.rank, b.shape.dims);
}

}  // namespace

bool ReadLoop(const weir_region& region, Graph* graph, std::string* why) {
  const auto refuse = [why](const char* text) {
    *why = text;
    return false;
  };
  const weir_region_loop& given = *region.loop;
  const auto values = static_cast<uint32_t>(graph->inputs.size() + graph->nodes.size());
  if (given.struct_size < sizeof given || given.next == nullptr || given.most_iterations == 0)
    return refuse("an incomplete loop");
  if (given.variable_count == 0 || given.variable_count > region.input_count ||
      given.variable_count != region.output_count) {
    return refuse("a loop whose variables are not its first inputs and its outputs");
  }
  if (given.condition >= values || graph->Value(given.condition).dtype != WEIR_BOOL) {
    return refuse("a loop whose condition is no bool");
  }
  Loop loop{{given.next, given.next + given.variable_count}, given.condition, given.most_iterations};
  for (uint32_t i = 0; i < given.variable_count; ++i) {
    if (region.outputs[i] != i) return refuse("a loop whose outputs are not its variables");
    if (loop.next[i] >= values || !IsAlike(graph->Value(loop.next[i]), graph->Value(i))) {
      return refuse("a variable whose next value has another type or shape");
    }
    if (graph->Value(i).constant != nullptr) return refuse("a variable that is a constant");
    graph->outputs.push_back(i);
  }
  graph->loop = std::move(loop);
  return true;
}

std::optional<Program> PlanLoop(const Graph& graph, std::string* why) {
  const auto refuse = [why](const char* text) {
    *why = text;
    return std::nullopt;
  };
  std::optional<Program> program = PlanNest(graph, Outputs::kAny, why);
  if (!program) return std::nullopt;
  if (program->stages > 1 || program->reduces) return refuse("a reduction in a loop");
  if (!program->rows.empty()) return refuse("a loop over arrays of different shapes");
  if (program->columns > kMostColumns) return refuse("a loop over long arrays");
  if (program->PlaceOf(graph.loop->condition).column) return refuse("a condition of several elements");
  program->chunk = program->columns;
  program->units = 1;
  if (program->lanes > 1) {
    // The results of an iteration are waited for: several vectors do that at once.
    const int64_t vectors = static_cast<int64_t>(graph.nodes.size()) <= kFewNodes ? 4 : 2;
    const auto fitting = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(program->columns)));
    program->lanes = static_cast<int>(std::max<int64_t>(2, std::min(vectors * program->lanes, fitting)));
  }
  program->loop = graph.loop;
  return program;
}

std::optional<Program> PlanGraph(const Graph& graph, std::string* why) {
  return graph.loop ? PlanLoop(graph, why) : PlanNest(graph, Outputs::kChecked, why);
}

}  // namespace weir::compiler_llvm
