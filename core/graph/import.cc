// GraphDef import: from messages to nodes.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/attr_proto.h"
#include "core/graph/graph_def.h"
#include "core/graph/graph_view.h"
#include "core/graph/inference.h"
#include "core/graph/large_graph.h"
#include "core/graph/origins.h"
#include "core/op/vendor_ops.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

/// The TensorFlow version whose semantics import follows: 2.17. Graphs of later versions are accepted unless they
/// forbid it.
constexpr int32_t kConsumerVersion = 1882;
/// Up to this producer version an empty shape of a Placeholder means an unknown shape.
constexpr int32_t kLastProducerWithoutScalarPlaceholders = 21;

Status CheckVersions(const Versions& versions) {
  if (versions.producer < 0) {
    return InvalidArgument(
        "GraphDef producer version {} below min producer 0 supported by weir.  Please regenerate "
        "your graph.",
        versions.producer);
  }
  if (versions.min_consumer > kConsumerVersion) {
    return InvalidArgument("GraphDef min consumer version {} above current version {} for weir.  Please upgrade weir.",
                           versions.min_consumer, kConsumerVersion);
  }
  if (std::ranges::find(versions.bad_consumers, kConsumerVersion) != versions.bad_consumers.end()) {
    return InvalidArgument(
        "GraphDef disallows consumer version {}.  Please upgrade weir: this version is likely buggy.",
        kConsumerVersion);
  }
  return {};
}

/// One import. Nodes are identified by their position in the file until they are added.
class Importer {
 public:
  Importer(const GraphView& view, const ImportOptions& options, Definition& graph)
      : view_(view), options_(options), graph_(graph), attrs_(options.max_expansion_bytes, options.owner) {}

  Status Run() {
    WEIR_TRY(CheckVersions(view_.versions));
    WEIR_TRY(IndexNames());
    WEIR_TRY(SettleClashes());
    const std::shared_ptr<const FunctionLibrary> known = graph_.shared_functions();
    WEIR_ASSIGN(std::shared_ptr<const FunctionLibrary> functions, MergeFunctions(known));
    FindOps(*functions);
    WEIR_TRY(ReadInputs());
    WEIR_TRY(Sort());
    WEIR_ASSIGN(origins_, ReadOrigins(view_.debug_info));
    graph_.SetFunctions(std::move(functions));
    const int before = graph_.num_nodes();
    if (Status status = AddAll(before); !status.ok()) {
      graph_.Truncate(before);
      graph_.SetFunctions(known);
      return status;
    }
    MergeVersions(before == 0);
    return {};
  }

 private:
  /// A data input, or a control input (index -1): a node of the file, or (file < 0) a node already in the graph.
  struct Input {
    int32_t file = -1;
    NodeId existing = -1;
    int32_t index = 0;
  };
  struct BackEdge {
    int32_t merge;
    int input;
    Input from;
  };

  int32_t size() const { return static_cast<int32_t>(view_.nodes.size()); }
  const NodeView& Def(int32_t i) const { return view_.nodes[static_cast<size_t>(i)]; }
  std::string_view NameOf(int32_t i) const { return Def(i).name; }
  std::string FullName(std::string_view name) const {
    return options_.prefix.empty() ? std::string(name) : fmt::format("{}/{}", options_.prefix, name);
  }
  /// Name in the graph of a node of the file.
  std::string FullName(int32_t i) const {
    const auto renamed = renamed_.find(i);
    return renamed == renamed_.end() ? FullName(NameOf(i)) : renamed->second;
  }

  Status IndexNames() {
    index_.Reserve(size());
    for (int32_t i = 0; i < size(); ++i) {
      const std::string_view name = NameOf(i);
      if (!(options_.allow_internal_names ? IsValidInternalName(name) : IsValidName(name))) {
        return InvalidArgument("Node '{}': Node name contains invalid characters", name).WithNode(std::string(name));
      }
      if (Position(name) >= 0) return InvalidArgument("Node '{}' is not unique", name).WithNode(std::string(name));
      index_.Insert(name, i);
    }
    return {};
  }

  /// Returns `known` extended by the functions of the file.
  Result<std::shared_ptr<const FunctionLibrary>> MergeFunctions(const std::shared_ptr<const FunctionLibrary>& known) {
    if (view_.library.empty()) return known;
    auto merged = std::make_shared<FunctionLibrary>(*known);
    WEIR_TRY(merged->Merge(view_.library, graph_.ops()));
    return std::shared_ptr<const FunctionLibrary>(std::move(merged));
  }

  void FindOps(const FunctionLibrary& functions) {
    std::unordered_map<std::string_view, const op::OpDef*> known;
    op_of_.reserve(view_.nodes.size());
    for (const NodeView& node : view_.nodes) {
      const auto [found, fresh] = known.try_emplace(node.op);
      if (fresh) found->second = graph_.ops().Find(node.op);
      const Function* const function = found->second == nullptr ? functions.Find(node.op) : nullptr;
      if (function != nullptr) found->second = &function->signature;
      if (found->second == nullptr && !options_.allow_unknown_ops) {
        found->second = op::FindOrLoad(graph_.ops(), node.op);
      }
      op_of_.push_back(found->second);
    }
  }

  /// Resolves clashes with node names and name prefixes of the graph.
  Status SettleClashes() {
    if (graph_.num_nodes() == 0) return {};
    std::unordered_set<std::string> folders;
    for (NodeId id = 0; options_.rename_taken && id < graph_.num_nodes(); ++id) {
      const std::string& name = graph_.node(id).name();
      if (!name.starts_with(options_.prefix)) continue;
      for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
        folders.insert(name.substr(0, at));
      }
    }
    const auto taken = [&](const std::string& name) { return graph_.Find(name) != nullptr || folders.contains(name); };
    for (int32_t i = 0; i < size(); ++i) {
      const std::string name = FullName(NameOf(i));
      if (!taken(name)) continue;
      if (!options_.rename_taken) {
        return InvalidArgument("Node name '{}' already exists in the Graph", name).WithNode(name);
      }
      int k = 1;
      while (taken(fmt::format("{}_{}", name, k)) || Position(fmt::format("{}_{}", NameOf(i), k)) >= 0) ++k;
      renamed_.emplace(i, fmt::format("{}_{}", name, k));
    }
    return {};
  }

  /// Position of a name in the file, or -1.
  int32_t Position(std::string_view name) const {
    return index_.Find(name, [this](int32_t i) { return NameOf(i); });
  }

  /// Resolves the input strings of all nodes to one flat list.
  Status ReadInputs() {
    first_input_.reserve(view_.nodes.size() + 1);
    inputs_.reserve(view_.inputs.size());
    outputs_used_.assign(view_.nodes.size(), 0);
    for (int32_t i = 0; i < size(); ++i) {
      first_input_.push_back(static_cast<uint32_t>(inputs_.size()));
      bool control_seen = false;
      for (const std::string_view text : view_.InputsOf(static_cast<size_t>(i))) {
        Result<InputName> name = ParseInputName(text);
        if (!name.ok()) {
          return AtNode(name.status(), NameOf(i));
        }
        if (control_seen && !name->control) {
          return InvalidArgument("Node '{}': Control dependencies must come after regular dependencies", NameOf(i))
              .WithNode(std::string(NameOf(i)));
        }
        control_seen = name->control;
        WEIR_TRY(Resolve(i, *name));
      }
    }
    first_input_.push_back(static_cast<uint32_t>(inputs_.size()));
    return {};
  }

  Status Resolve(int32_t user, const InputName& name) {
    Input input{-1, -1, name.control ? -1 : name.index};
    input.file = Position(name.node);
    if (input.file >= 0) {
      int32_t& used = outputs_used_[static_cast<size_t>(input.file)];
      used = std::max(used, input.index < kMaxForeignOutputs ? input.index + 1 : 0);
    } else if (const Node* existing = graph_.Find(name.node)) {
      input.existing = existing->id();
    } else {
      return InvalidArgument("Node '{}': Unknown input node '{}'", NameOf(user), name.node)
          .WithNode(std::string(NameOf(user)));
    }
    inputs_.push_back(input);
    return {};
  }

  std::span<const Input> Inputs(int32_t i) const {
    const uint32_t begin = first_input_[static_cast<size_t>(i)];
    return std::span(inputs_).subspan(begin, first_input_[static_cast<size_t>(i) + 1] - begin);
  }

  op::Flow FlowOf(int32_t i) const {
    const op::OpDef* const op = op_of_[static_cast<size_t>(i)];
    return op == nullptr ? op::Flow::kPlain : op->traits.flow;
  }

  /// True for an edge that closes a loop: from a NextIteration into a Merge.
  bool IsBackEdge(const Input& input, int32_t user) const {
    if (input.file < 0 || input.index < 0) return false;
    return FlowOf(user) == op::Flow::kMerge && FlowOf(input.file) == op::Flow::kNextIteration;
  }

  /// Topological sort by depth-first search in file order, inputs before users: a sorted file keeps its order.
  Status Sort() {
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(view_.nodes.size(), kNew);
    struct Frame {
      int32_t node;
      uint32_t next;
    };
    std::vector<Frame> stack;
    order_.reserve(state.size());
    for (int32_t root = 0; root < size(); ++root) {
      if (state[static_cast<size_t>(root)] == kDone) continue;
      stack.push_back({root, 0});
      state[static_cast<size_t>(root)] = kOpen;
      while (!stack.empty()) {
        Frame& frame = stack.back();
        const std::span<const Input> inputs = Inputs(frame.node);
        if (frame.next == inputs.size()) {
          state[static_cast<size_t>(frame.node)] = kDone;
          order_.push_back(frame.node);
          stack.pop_back();
          continue;
        }
        const Input& input = inputs[frame.next++];
        if (input.file < 0 || IsBackEdge(input, frame.node)) continue;
        uint8_t& from = state[static_cast<size_t>(input.file)];
        if (from == kOpen) return Cycle(stack, input.file);
        if (from == kNew) {
          from = kOpen;
          stack.push_back({input.file, 0});
        }
      }
    }
    return {};
  }

  /// Reports a cycle. `stack` leads from users to inputs; the cycle starts at `again`.
  template <class Frames>
  Status Cycle(const Frames& stack, int32_t again) const {
    constexpr size_t kNamed = 20;
    size_t length = 0;
    std::vector<std::string_view> names{NameOf(again)};
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame, ++length) {
      if (frame->node == again) break;
      names.push_back(NameOf(frame->node));
    }
    names.push_back(NameOf(again));
    std::string path;
    for (size_t i = 0; i < std::min(names.size(), kNamed); ++i) {
      path += fmt::format("{}'{}'", i == 0 ? "" : " -> ", names[i]);
    }
    if (names.size() > kNamed) path += " -> ...";
    return InvalidArgument("{} nodes in a cycle: {}", length + 1, path).WithNode(std::string(names[0]));
  }

  Status AddAll(int before) {
    graph_.Reserve(before + size());
    ids_.assign(view_.nodes.size(), -1);
    for (const int32_t i : order_) {
      Status status = Add(i, "");
      if (status.code() == Code::kInvalidArgument && options_.allow_unknown_ops) {
        // If only the shapes of its inputs do not fit, it is an error of steps that need it.
        if (const Status unfit = Add(i, status.message()); unfit.ok()) status = Status();
      }
      if (!status.ok()) return status.WithNode(FullName(i));
    }
    for (const BackEdge& edge : back_edges_) {
      WEIR_TRY(graph_.SetInput(ids_[static_cast<size_t>(edge.merge)], edge.input, At(edge.from)));
    }
    return {};
  }

  Endpoint At(const Input& input) const {
    return {input.file < 0 ? input.existing : ids_[static_cast<size_t>(input.file)], input.index};
  }

  /// `unfit`: the error of a try before, for kUnfitAttr, or empty.
  Status Add(int32_t i, std::string_view unfit) {
    NodeSpec spec;
    spec.name = FullName(i);
    spec.device = Def(i).device;
    if (!origins_.empty()) {
      const auto origin = origins_.find(std::string(NameOf(i)));
      if (origin != origins_.end()) spec.origin = origin->second;
    }
    WEIR_ASSIGN(spec.op, FindOp(i));
    const std::span<const Input> inputs = Inputs(i);
    const auto data = static_cast<size_t>(std::ranges::find(inputs, -1, &Input::index) - inputs.begin());
    spec.inputs.reserve(data);
    for (size_t k = 0; k < data; ++k) {
      const bool back = IsBackEdge(inputs[k], i);
      if (back && unfit.empty()) back_edges_.push_back({i, static_cast<int>(k), inputs[k]});
      spec.inputs.push_back(back ? Endpoint{} : At(inputs[k]));
    }
    spec.control_inputs.reserve(inputs.size() - data);
    for (const Input& input : inputs.subspan(data)) spec.control_inputs.push_back(At(input).node);
    WEIR_TRY(ReadAttrs(i, spec));
    if (!unfit.empty()) spec.attrs.emplace_back(kUnfitAttr, op::AttrValue(std::string(unfit)));
    WEIR_ASSIGN(const Node* node, graph_.Add(std::move(spec)));
    ids_[static_cast<size_t>(i)] = node->id();
    return ChargeOutputs(*node);
  }

  /// Charges the outputs to the budget: a number in an attribute can mean any number of them.
  Status ChargeOutputs(const Node& node) {
    const auto outputs = static_cast<uint64_t>(node.num_outputs());
    if (outputs <= kFreeOutputs) return {};
    uint64_t& left = attrs_.budget().bytes;
    if (outputs * sizeof(PartialShape) > left) {
      return ResourceExhausted("Node '{}' has {} outputs: more memory than the {} bytes that may be added", node.name(),
                               outputs, left);
    }
    left -= outputs * sizeof(PartialShape);
    return {};
  }

  Result<const op::OpDef*> FindOp(int32_t i) {
    const std::string_view name = Def(i).op;
    const op::OpDef* const known = op_of_[static_cast<size_t>(i)];
    if (known == nullptr) {
      if (options_.allow_unknown_ops) return &graph_.AddForeignOp(name, outputs_used_[static_cast<size_t>(i)]);
      return AtNode(graph_.ops().Get(name).status(), NameOf(i));
    }
    if (known->deprecated_since > 0 && view_.versions.producer >= known->deprecated_since) {
      return Unimplemented("Op {} is not available in GraphDef version {}. It has been removed in version {}.", name,
                           view_.versions.producer, known->deprecated_since);
    }
    return known;
  }

  Status ReadAttrs(int32_t i, NodeSpec& spec) {
    const std::span<const NodeView::Attr> attrs = view_.AttrsOf(static_cast<size_t>(i));
    spec.attrs.reserve(attrs.size());
    for (const NodeView::Attr& attr : attrs) {
      op::AttrValue& value = spec.attrs.emplace_back(attr.name, op::AttrValue()).second;
      if (Status status = attrs_.Read(attr.value, value); !status.ok()) {
        return AtNode(status.Append(fmt::format("\n\t for attr '{}'", attr.name)), spec.name);
      }
    }
    for (auto& [name, value] : spec.attrs) {
      if (name == kBesideAttr) {
        WEIR_ASSIGN(value, FromBeside(spec, value));
        name = "value";
      }
      if (name == "_class") {
        WEIR_TRY(CheckColocation(i, value));
        if (!options_.prefix.empty() || !renamed_.empty()) RenameColocation(value);
      }
      if (name == "shape" && spec.op->traits.universal == op::Universal::kPlaceholder &&
          view_.versions.producer <= kLastProducerWithoutScalarPlaceholders) {
        const PartialShape* shape = value.get<PartialShape>();
        if (shape != nullptr && shape->rank() == 0) value = PartialShape();
      }
    }
    return {};
  }

  /// The value of a constant that lies beside the file.
  Result<op::AttrValue> FromBeside(const NodeSpec& spec, const op::AttrValue& name) const {
    const auto* const text = name.get<std::string>();
    const auto is_value = [](const auto& attr) { return attr.first == "value"; };
    if (text == nullptr || spec.op->traits.universal != op::Universal::kConstant ||
        std::ranges::any_of(spec.attrs, is_value)) {
      return AtNode(InvalidArgument("'{}' is a text, of constants without 'value'", kBesideAttr), spec.name);
    }
    if (!options_.constants) {
      return AtNode(InvalidArgument("its value '{}' lies beside the graph, in a file that was not given", *text),
                    spec.name);
    }
    Result<Tensor> value = options_.constants(*text);
    if (!value.ok()) return AtNode(value.status(), spec.name);
    return op::AttrValue(std::move(*value));
  }

  static constexpr std::string_view kLocation = "loc:@";

  /// Checks that the file, or the graph that it extends, has the nodes named by `_class`.
  Status CheckColocation(int32_t i, const op::AttrValue& value) const {
    const auto* classes = value.get<std::vector<std::string>>();
    if (classes == nullptr) return {};
    for (const std::string_view text : *classes) {
      if (!text.starts_with(kLocation) || Position(text.substr(kLocation.size())) >= 0) continue;
      if (options_.prefix.empty() && graph_.Find(text.substr(kLocation.size())) != nullptr) continue;
      return InvalidArgument("Node '{}' expects to be colocated with unknown node '{}'", NameOf(i),
                             text.substr(kLocation.size()))
          .WithNode(std::string(NameOf(i)));
    }
    return {};
  }

  void RenameColocation(op::AttrValue& value) const {
    const auto* classes = value.get<std::vector<std::string>>();
    if (classes == nullptr) return;
    std::vector<std::string> renamed = *classes;
    for (std::string& text : renamed) {
      if (!text.starts_with(kLocation)) continue;
      const std::string node = text.substr(kLocation.size());
      text = std::string(kLocation) + FullName(Position(node));
    }
    value = std::move(renamed);
  }

  void MergeVersions(bool was_empty) {
    const Versions& from = view_.versions;
    Versions& to = graph_.versions();
    if (was_empty) to = {from.producer, 0, {}};
    to.producer = std::min(to.producer, from.producer);
    to.min_consumer = std::max(to.min_consumer, from.min_consumer);
    for (const int32_t bad : from.bad_consumers) {
      if (std::ranges::find(to.bad_consumers, bad) == to.bad_consumers.end()) to.bad_consumers.push_back(bad);
    }
  }

  static constexpr int32_t kMaxForeignOutputs = 1 << 12;
  static constexpr uint64_t kFreeOutputs = 64;

  /// Appends TensorFlow's tail of a node error.
  static Status AtNode(const Status& status, std::string_view name) {
    return status.Append(fmt::format("\n\t [[{{{{node {}}}}}]]", name)).WithNode(std::string(name));
  }

  const GraphView& view_;
  const ImportOptions& options_;
  Definition& graph_;
  AttrReader attrs_;
  NameIndex index_;  // positions in the file
  std::unordered_map<int32_t, std::string> renamed_;
  std::vector<uint32_t> first_input_;  // by node, and one past the last
  std::vector<Input> inputs_;
  std::vector<int32_t> outputs_used_;
  std::vector<int32_t> order_;
  std::vector<NodeId> ids_;
  std::vector<BackEdge> back_edges_;
  std::unordered_map<std::string, std::string> origins_;  // by name in the file
  std::vector<const op::OpDef*> op_of_;                   // by node; null if the registry has none
};

}  // namespace

Status ImportGraphDef(std::string_view bytes, const ImportOptions& options, Definition& graph) {
  if (graph.finalized()) return FailedPrecondition("Graph is finalized and cannot be modified.");
  if (!proto::LooksLikeText(bytes)) {
    WEIR_ASSIGN(const GraphView view, ViewGraph(bytes));
    return Importer(view, options, graph).Run();
  }
  tf::GraphDef def;
  WEIR_TRY(proto::ParseText(bytes, "GraphDef", def));
  WEIR_ASSIGN(const std::string binary, proto::Serialize(def, "GraphDef"));
  WEIR_ASSIGN(const GraphView view, ViewGraph(binary));
  ImportOptions copying = options;
  copying.owner = nullptr;
  return Importer(view, copying, graph).Run();
}

Result<Definition> ParseGraph(std::string_view bytes, const op::OpRegistry& ops, const ImportOptions& options) {
  Definition graph(ops);
  WEIR_TRY(ImportGraphDef(bytes, options, graph));
  return graph;
}

}  // namespace weir::graph
