#include "plugins/compiler_llvm/plan.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "sdk/cpp/status.h"
#include "sdk/cpp/types.h"

namespace weir::compiler_llvm {
namespace {

constexpr int64_t kChunk = 16384;     // columns of a unit where rows are longer
constexpr int64_t kWholeRow = 32768;  // columns up to which a row is one unit
constexpr double kCheap = 6;          // a value that costs no more is computed again in a later stage
constexpr uint64_t kMaxScratch = 1 << 26;
constexpr int kReduceLanes = 16;  // the kernels of reductions combine 16 lanes

int64_t SizeOf(const weir_shape& shape) {
  int64_t n = 1;
  for (uint32_t i = 0; i < shape.rank; ++i) n *= shape.dims[i];
  return n;
}

/// The extent at `from_last` dimensions before the last one.
int64_t ExtentAt(const weir_shape& shape, int64_t from_last) {
  return from_last >= 0 && from_last < static_cast<int64_t>(shape.rank) ? shape.dims[shape.rank - 1 - from_last] : 1;
}

/// Bytes of an element in a register of the loop.
uint32_t ComputeBytes(uint32_t dtype) {
  return dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16 ? 4 : sdk::SizeOf(dtype);
}

class Planner {
 public:
  Planner(const Graph& graph, Outputs outputs, std::string* why)
      : graph_(graph), checked_(outputs == Outputs::kChecked), why_(why), inputs_(graph.inputs.size()) {}

  std::optional<Program> Run() {
    if (!CheckShapes() || !Align() || !FindExtents() || !FindColumns() || !MergeAxes()) return std::nullopt;
    MakeInputs();
    if (!MakeNodes() || !MakeOutputs()) return std::nullopt;
    if (checked_) ChooseStashes();
    ChooseUnits();
    return std::move(program_);
  }

 private:
  bool Refuse(std::string_view text) {
    *why_ = text;
    return false;
  }
  bool RefuseNode(const Graph::Member& member, std::string_view text) {
    *why_ = std::string(member.rule->name) + ": " + std::string(text);
    return false;
  }
  uint32_t ValueCount() const { return static_cast<uint32_t>(inputs_ + graph_.nodes.size()); }
  const weir_shape& Shape(uint32_t value) const { return graph_.Value(value).shape; }
  bool IsScalar(uint32_t value) const { return SizeOf(Shape(value)) == 1; }
  bool IsChannelsFirst(const Graph::Member& member) const {
    return member.rule->form == Form::kBias && StringAttr(*member.node, "data_format", "NHWC") == "NCHW";
  }

  bool CheckShapes() {
    for (const Graph::Member& member : graph_.nodes) {
      const weir_shape& result = member.node->result.shape;
      if (member.rule->form == Form::kReduce) {
        if (!CheckReduction(member)) return false;
        continue;
      }
      if (member.rule->form == Form::kBias) {
        const weir_shape &x = Shape(member.operands[0]), &bias = Shape(member.operands[1]);
        if (x.rank < 2 || bias.rank != 1 || bias.dims[0] != x.dims[IsChannelsFirst(member) ? 1 : x.rank - 1]) {
          return RefuseNode(member, "a bias that does not fit");
        }
      }
      const bool aligned = !IsChannelsFirst(member);
      int64_t wanted[kMaxRank];
      std::fill_n(wanted, kMaxRank, 1);
      uint32_t rank = 0;
      for (size_t i = 0; i < (aligned ? member.operands.size() : 1); ++i) {
        const weir_shape& operand = Shape(member.operands[i]);
        rank = std::max(rank, operand.rank);
        for (uint32_t p = 0; p < operand.rank; ++p) {
          const int64_t extent = ExtentAt(operand, p);
          if (extent == 1) continue;
          if (wanted[p] != 1 && wanted[p] != extent) return RefuseNode(member, "operands that do not broadcast");
          wanted[p] = extent;
        }
      }
      if (result.rank != rank) return RefuseNode(member, "a result of another shape");
      for (uint32_t p = 0; p < rank; ++p) {
        if (ExtentAt(result, p) != wanted[p]) return RefuseNode(member, "a result of another shape");
      }
      if (member.rule->name == "Select" && Shape(member.operands[0]).rank != 0 &&
          Shape(member.operands[0]).rank != result.rank) {
        return RefuseNode(member, "a condition that selects rows");
      }
    }
    return true;
  }

  /// The axes are the last ones, the result has the others, or 1 in their place.
  bool CheckReduction(const Graph::Member& member) {
    const weir_shape &from = Shape(member.operands[0]), &to = member.node->result.shape;
    const auto count = static_cast<uint32_t>(member.node->axis_count);
    if (member.node->axis_count > from.rank) return RefuseNode(member, "too many axes");
    const uint32_t kept = from.rank - count;
    for (uint32_t i = 0; i < count; ++i) {
      if (member.node->axes[i] != kept + i) return RefuseNode(member, "axes that are not the last ones");
    }
    if (to.rank != kept && to.rank != from.rank) return RefuseNode(member, "a result of another shape");
    for (uint32_t i = 0; i < to.rank; ++i) {
      if (to.dims[i] != (i < kept ? from.dims[i] : 1)) return RefuseNode(member, "a result of another shape");
    }
    return true;
  }

  /// Finds for each value how many axes of the nest lie behind its last dimension.
  bool Align() {
    struct Edge {
      uint32_t a, b;
      int64_t ahead;  // shift of b - shift of a
    };
    std::vector<Edge> edges;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Graph::Member& member = graph_.nodes[i];
      const auto result = static_cast<uint32_t>(inputs_ + i);
      for (size_t k = 0; k < member.operands.size(); ++k) {
        const uint32_t operand = member.operands[k];
        if (IsScalar(operand)) continue;
        int64_t ahead = 0;
        if (member.rule->form == Form::kReduce) {
          ahead = static_cast<int64_t>(Shape(operand).rank) - member.node->result.shape.rank;
        } else if (k == 1 && IsChannelsFirst(member)) {
          ahead = 2 - static_cast<int64_t>(Shape(result).rank);
        }
        edges.push_back({operand, result, ahead});
      }
    }
    shift_.assign(ValueCount(), 0);
    std::vector<int> component(ValueCount(), -1);
    for (uint32_t start = 0; start < ValueCount(); ++start) {
      if (component[start] >= 0) continue;
      component[start] = static_cast<int>(start);
      int64_t least = 0;
      for (bool again = true; again;) {
        again = false;
        for (const Edge& edge : edges) {
          const bool from = component[edge.a] == component[start], to = component[edge.b] == component[start];
          if (from && to && shift_[edge.b] != shift_[edge.a] + edge.ahead) {
            return Refuse("values whose dimensions do not align");
          }
          if (from == to) continue;
          const uint32_t next = from ? edge.b : edge.a;
          shift_[next] = from ? shift_[edge.a] + edge.ahead : shift_[edge.b] - edge.ahead;
          component[next] = component[start];
          least = std::min(least, shift_[next]);
          again = true;
        }
      }
      for (uint32_t v = 0; v < ValueCount(); ++v) {
        if (component[v] == component[start]) shift_[v] -= least;
      }
    }
    return true;
  }

  /// Extent of the value along the nest's axis `axis`, counted from the last one.
  int64_t Along(uint32_t value, int64_t axis) const { return ExtentAt(Shape(value), axis - shift_[value]); }

  bool FindExtents() {
    for (uint32_t v = 0; v < ValueCount(); ++v) {
      if (IsScalar(v)) continue;
      const int64_t end = shift_[v] + Shape(v).rank;
      if (end > 2 * static_cast<int64_t>(kMaxRank)) return Refuse("too many dimensions");
      if (static_cast<int64_t>(extents_.size()) < end) extents_.resize(static_cast<size_t>(end), 1);
      for (int64_t axis = 0; axis < end; ++axis) {
        const int64_t extent = Along(v, axis);
        int64_t& known = extents_[static_cast<size_t>(axis)];
        if (extent == 1 || extent == known) continue;
        if (known != 1) return Refuse("values of different shapes");
        known = extent;
      }
    }
    int64_t visits = 1;
    for (const int64_t extent : extents_) {
      if (extent > kMaxElements / visits) return Refuse("too many elements");
      visits *= extent;
    }
    return true;
  }

  /// The axes that reductions combine must be the same for all, and the innermost ones.
  bool FindColumns() {
    column_axes_ = 0;
    reduces_ = false;
    for (const Graph::Member& member : graph_.nodes) {
      if (member.rule->form != Form::kReduce || IsTrivial(member)) continue;
      const uint32_t operand = member.operands[0];
      const int64_t begin = shift_[operand], end = begin + static_cast<int64_t>(member.node->axis_count);
      int64_t last = 0;  // one past the outermost reduced axis of more than one element
      for (int64_t axis = 0; axis < end; ++axis) {
        if (extents_[static_cast<size_t>(axis)] == 1) continue;
        if (axis < begin || Along(operand, axis) == 1) {
          return RefuseNode(member, "a reduction that is not along the innermost loop");
        }
        last = axis + 1;
      }
      if (reduces_ && last != column_axes_) return RefuseNode(member, "reductions over different axes");
      reduces_ = true;
      column_axes_ = last;
    }
    return true;
  }

  /// A reduction of single elements.
  bool IsTrivial(const Graph::Member& member) const {
    return SizeOf(Shape(member.operands[0])) == SizeOf(member.node->result.shape);
  }

  bool Advances(uint32_t value, size_t axis) const {
    return !IsScalar(value) && Along(value, static_cast<int64_t>(axis)) != 1;
  }
  bool IsAlike(size_t a, size_t b) const {
    for (uint32_t v = 0; v < ValueCount(); ++v) {
      if (Advances(v, a) != Advances(v, b)) return false;
    }
    return true;
  }

  /// Groups axes along which all values advance alike. The first group is the columns.
  bool MergeAxes() {
    for (size_t axis = 0; axis < extents_.size(); ++axis) {
      if (extents_[axis] == 1) continue;
      const bool border = reduces_ && static_cast<int64_t>(axis) >= column_axes_ && groups_.size() == 1 && !border_;
      if (!groups_.empty() && !border && IsAlike(groups_.back().axis, axis)) {
        groups_.back().extent *= extents_[axis];
        continue;
      }
      if (reduces_ && static_cast<int64_t>(axis) < column_axes_ && !groups_.empty()) {
        return Refuse("a value that varies along some of the reduced axes");
      }
      border_ = border_ || border;
      groups_.push_back({axis, extents_[axis]});
    }
    if (groups_.size() > 9) return Refuse("too many dimensions that broadcast differently");
    program_.reduces = reduces_;
    program_.columns = groups_.empty() ? 1 : groups_[0].extent;
    for (size_t g = groups_.size(); g-- > 1;) program_.rows.push_back(groups_[g].extent);
    return true;
  }

  Access AccessOf(uint32_t value) const {
    Access access{graph_.Value(value).dtype, !groups_.empty() && Advances(value, groups_[0].axis), {}};
    int64_t size = access.column ? program_.columns : 1;
    for (size_t g = 1; g < groups_.size(); ++g) {
      const bool advances = Advances(value, groups_[g].axis);
      access.steps.insert(access.steps.begin(), advances ? size : 0);
      if (advances) size *= groups_[g].extent;
    }
    return access;
  }

  static bool VariesByRow(const Access& access) {
    return std::any_of(access.steps.begin(), access.steps.end(), [](int64_t step) { return step != 0; });
  }

  void MakeInputs() {
    for (uint32_t i = 0; i < inputs_; ++i) {
      Input input;
      input.access = AccessOf(i);
      input.place = {input.access.column, VariesByRow(input.access), 0};
      if (graph_.inputs[i]->constant != nullptr && IsScalar(i)) {
        input.constant = true;
        std::memcpy(&input.bits, graph_.inputs[i]->constant, sdk::SizeOf(input.access.dtype));
      }
      program_.inputs.push_back(std::move(input));
    }
  }

  bool MakeNodes() {
    for (const Graph::Member& member : graph_.nodes) {
      const auto value = static_cast<uint32_t>(inputs_ + program_.nodes.size());
      Node node;
      node.op = member.rule->op;
      node.dtype = member.node->result.dtype;
      node.operands = member.operands;
      node.alpha = FloatAttr(*member.node, "alpha", 0.2);
      const Access access = AccessOf(value);
      node.place = {access.column, VariesByRow(access), 0};
      for (const uint32_t operand : node.operands) {
        node.place.stage = std::max(node.place.stage, program_.PlaceOf(operand).stage);
      }
      if (member.rule->form == Form::kReduce) {
        if (IsTrivial(member)) {
          node.op = Op::kIdentity;
        } else {
          ++node.place.stage;
        }
      }
      program_.nodes.push_back(std::move(node));
    }
    for (const Node& node : program_.nodes) {
      if (node.place.column) program_.stages = std::max(program_.stages, node.place.stage + 1);
      if (IsReduction(node.op)) program_.stages = std::max(program_.stages, node.place.stage);
    }
    return program_.stages <= 8 || Refuse("too many reductions of reductions");
  }

  bool MakeOutputs() {
    for (const uint32_t value : graph_.outputs) {
      Output output{value, AccessOf(value)};
      if (checked_) {
        for (const int64_t step : output.access.steps) {
          if (step == 0) return Refuse("an output that is smaller than the nest");
        }
        if (!output.access.column && !groups_.empty() && !reduces_) {
          return Refuse("an output that is smaller than the nest");
        }
      }
      program_.outputs.push_back(std::move(output));
    }
    return true;
  }

  /// Keeps a value for later stages if it is expensive and an earlier stage computes it anyway.
  void ChooseStashes() {
    const uint64_t padded = (static_cast<uint64_t>(program_.columns) + 63) / 64 * 64;
    std::vector<bool> earlier, needed;
    for (int stage = 1; stage < program_.stages; ++stage) {
      MarkNeeded(program_, stage, RootsOf(program_, stage), &needed);
      const std::vector<bool> frontier = FrontierOf(stage, needed);
      for (uint32_t v = static_cast<uint32_t>(inputs_); v < ValueCount(); ++v) {
        if (!frontier[v] || RecomputeCost(v, stage) <= kCheap) continue;
        for (int made = program_.PlaceOf(v).stage; made < stage; ++made) {
          MarkNeeded(program_, made, RootsOf(program_, made), &earlier);
          if (!earlier[v]) continue;
          const uint64_t bytes = padded * ComputeBytes(program_.DtypeOf(v));
          if (program_.scratch_bytes + bytes > kMaxScratch) break;
          program_.stashes.push_back({v, made, program_.scratch_bytes});
          program_.scratch_bytes += bytes;
          break;
        }
      }
    }
  }

  /// Values of earlier stages that the nodes of `stage` use, or that the stage gives.
  std::vector<bool> FrontierOf(int stage, const std::vector<bool>& needed) const {
    std::vector<bool> frontier(ValueCount(), false);
    const auto mark = [&](uint32_t value) {
      const Place& place = program_.PlaceOf(value);
      if (value >= inputs_ && place.column && place.stage < stage) frontier[value] = true;
    };
    for (const uint32_t root : RootsOf(program_, stage)) mark(root);
    for (uint32_t v = static_cast<uint32_t>(inputs_); v < ValueCount(); ++v) {
      if (!needed[v] || program_.PlaceOf(v).stage != stage || !program_.PlaceOf(v).column) continue;
      for (const uint32_t operand : program_.nodes[v - inputs_].operands) mark(operand);
    }
    return frontier;
  }

  double RecomputeCost(uint32_t value, int stage) const {
    std::vector<bool> needed;
    MarkNeeded(program_, stage, {value}, &needed);
    double cost = 0;
    for (uint32_t v = 0; v < ValueCount(); ++v) {
      if (!needed[v] || !program_.PlaceOf(v).column) continue;
      cost += v < inputs_ ? 0.5 : graph_.nodes[v - inputs_].rule->cost;
    }
    return cost;
  }

  void ChooseUnits() {
    int64_t rows = 1;
    for (const int64_t extent : program_.rows) rows *= extent;
    const int64_t columns = program_.columns;
    program_.chunk = reduces_ || columns <= kWholeRow ? columns : kChunk;
    program_.units = rows * ((columns + program_.chunk - 1) / program_.chunk);
    if (groups_.empty()) return;
    uint32_t widest = 1;
    for (uint32_t v = 0; v < ValueCount(); ++v) {
      if (program_.PlaceOf(v).column) widest = std::max(widest, ComputeBytes(program_.DtypeOf(v)));
    }
    program_.lanes = kReduceLanes;
    if (!reduces_) {
      const auto fitting = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(columns, 64))));
      program_.lanes = std::clamp(64 / static_cast<int>(widest), 2, std::max(2, fitting));
    }
  }

  struct Group {
    size_t axis;  // one of its axes, counted from the last
    int64_t extent;
  };

  const Graph& graph_;
  const bool checked_;
  std::string* const why_;
  const size_t inputs_;
  Program program_;
  std::vector<int64_t> shift_;    // of each value
  std::vector<int64_t> extents_;  // of the nest's axes, innermost first
  std::vector<Group> groups_;     // innermost first
  int64_t column_axes_ = 0;       // number of innermost axes that reductions combine
  bool reduces_ = false;
  bool border_ = false;  // the first group of rows is there
};

}  // namespace

bool IsPlainValue(const weir_region_value& value) {
  if (!IsFloating(value.dtype) && !IsInteger(value.dtype) && value.dtype != WEIR_BOOL) return false;
  if (value.shape.rank > kMaxRank || (value.shape.rank > 0 && value.shape.dims == nullptr)) return false;
  int64_t n = 1;
  for (uint32_t i = 0; i < value.shape.rank; ++i) {
    const int64_t extent = value.shape.dims[i];
    if (extent < 1 || extent > kMaxElements / n) return false;
    n *= extent;
  }
  return true;
}

std::optional<Graph> ReadRegion(const weir_region& region, std::string* why) {
  const auto refuse = [why](std::string text) {
    *why = std::move(text);
    return std::nullopt;
  };
  if (region.node_count == 0 || region.output_count == 0) return refuse("a region without nodes or outputs");
  if (region.node_count > kMaxNodes || region.input_count > kMaxAccesses || region.output_count > kMaxAccesses) {
    return refuse("too many nodes, inputs or outputs");
  }
  if ((region.input_count > 0 && region.inputs == nullptr) || region.nodes == nullptr || region.outputs == nullptr) {
    return refuse("a null array");
  }
  Graph graph;
  for (uint32_t i = 0; i < region.input_count; ++i) {
    if (region.inputs[i] == nullptr || !IsPlainValue(*region.inputs[i])) {
      return refuse("input " + std::to_string(i) + ": no code for its type or shape");
    }
    graph.inputs.push_back(region.inputs[i]);
  }
  for (uint32_t i = 0; i < region.node_count; ++i) {
    const weir_region_node* node = region.nodes[i];
    if (node == nullptr || (node->operand_count > 0 && node->operands == nullptr)) return refuse("a null node");
    const std::string name(sdk::ToView(node->op));
    const OpRule* rule = FindOp(name);
    if (rule == nullptr) return refuse("no code for op '" + name + "'");
    if (!IsPlainValue(node->result)) return refuse(name + ": no code for its type or shape");
    if (node->operand_count > kMaxAccesses) return refuse(name + ": too many operands");
    Graph::Member member{node, rule, {}};
    std::vector<const weir_region_value*> operands;
    for (uint32_t k = 0; k < node->operand_count; ++k) {
      const uint32_t operand = node->operands[k];
      if (operand >= region.input_count + i) return refuse(name + ": an operand that comes later");
      member.operands.push_back(operand);
      operands.push_back(&graph.Value(operand));
    }
    if (!FitsRule(*rule, *node, operands.data(), why)) return std::nullopt;
    graph.nodes.push_back(std::move(member));
  }
  if (region.struct_size > offsetof(weir_region, loop) && region.loop != nullptr) {
    if (!ReadLoop(region, &graph, why)) return std::nullopt;
    return graph;
  }
  for (uint32_t i = 0; i < region.output_count; ++i) {
    const uint32_t output = region.outputs[i];
    if (output < region.input_count || output - region.input_count >= region.node_count) {
      return refuse("an output that is no node");
    }
    graph.outputs.push_back(output);
  }
  return graph;
}

std::optional<Program> PlanNest(const Graph& graph, Outputs outputs, std::string* why) {
  return Planner(graph, outputs, why).Run();
}

int64_t VisitsOf(const Program& program) {
  int64_t visits = program.columns;
  for (const int64_t extent : program.rows) visits *= extent;
  return visits;
}

}  // namespace weir::compiler_llvm
