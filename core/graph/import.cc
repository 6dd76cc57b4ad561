// GraphDef in: from messages to nodes.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/graph/attr_proto.h"
#include "core/graph/function_library.h"
#include "core/graph/graph_def.h"
#include "core/graph/graph_message.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

constexpr int kMaxNodes = 10'000'000;
/// Weir reads graphs of every TensorFlow; the number is only above all of theirs.
constexpr int32_t kConsumerVersion = 1 << 30;
/// Up to this producer an empty shape of a Placeholder means that nothing is known.
constexpr int32_t kLastProducerWithoutScalarPlaceholders = 21;

Status CheckVersions(const tf::VersionDef& versions) {
  if (versions.producer() < 0) {
    return InvalidArgument("GraphDef producer version {} below min producer 0 supported by weir.  Please regenerate "
                           "your graph.",
                           versions.producer());
  }
  if (versions.min_consumer() > kConsumerVersion) {
    return InvalidArgument("GraphDef min consumer version {} above current version {} for weir.  Please upgrade weir.",
                           versions.min_consumer(), kConsumerVersion);
  }
  if (std::ranges::find(versions.bad_consumers(), kConsumerVersion) != versions.bad_consumers().end()) {
    return InvalidArgument("GraphDef disallows consumer version {}.  Please upgrade weir: this version is likely buggy.",
                           kConsumerVersion);
  }
  return {};
}

/// One import. Nodes are known by their position in the file until they are added.
class Importer {
 public:
  Importer(const tf::GraphDef& def, const ImportOptions& options, Graph& graph)
      : def_(def), options_(options), graph_(graph), budget_{options.max_expansion_bytes} {}

  Status Run() {
    WEIR_TRY(CheckVersions(def_.versions()));
    if (def_.node_size() > kMaxNodes) {
      return InvalidArgument("GraphDef has {} nodes, more than the limit of {}", def_.node_size(), kMaxNodes);
    }
    WEIR_TRY(IndexNames());
    WEIR_TRY(ReadInputs());
    WEIR_TRY(Sort());
    WEIR_ASSIGN(std::string library, MergeLibraries(graph_.function_library, def_.library()));
    const int before = graph_.num_nodes();
    if (Status status = AddAll(before); !status.ok()) {
      graph_.Truncate(before);
      return status;
    }
    graph_.function_library = std::move(library);
    MergeVersions(before == 0);
    return {};
  }

 private:
  /// A data input, or a control one (index -1): a node of the file, or (file < 0) one that the graph had before.
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

  const tf::NodeDef& Def(int32_t i) const { return def_.node(i); }
  std::string FullName(std::string_view name) const {
    return options_.prefix.empty() ? std::string(name) : fmt::format("{}/{}", options_.prefix, name);
  }

  Status IndexNames() {
    index_.reserve(static_cast<size_t>(def_.node_size()));
    for (int32_t i = 0; i < def_.node_size(); ++i) {
      const std::string& name = Def(i).name();
      if (!(options_.allow_internal_names ? IsValidInternalName(name) : IsValidName(name))) {
        return InvalidArgument("Node '{}': Node name contains invalid characters", name).WithNode(name);
      }
      if (!index_.emplace(name, i).second) return InvalidArgument("Node '{}' is not unique", name).WithNode(name);
      if (graph_.num_nodes() > 0 && graph_.Find(FullName(name)) != nullptr) {
        return InvalidArgument("Node name '{}' already exists in the Graph", FullName(name)).WithNode(FullName(name));
      }
    }
    return {};
  }

  /// Resolves the input strings of all nodes into one flat list.
  Status ReadInputs() {
    first_input_.reserve(static_cast<size_t>(def_.node_size()) + 1);
    outputs_used_.assign(static_cast<size_t>(def_.node_size()), 0);
    for (int32_t i = 0; i < def_.node_size(); ++i) {
      first_input_.push_back(static_cast<uint32_t>(inputs_.size()));
      bool control_seen = false;
      for (const std::string& text : Def(i).input()) {
        Result<InputName> name = ParseInputName(text);
        if (!name.ok()) {
          return name.status().Append(fmt::format("\n\t [[{{{{node {}}}}}]]", Def(i).name())).WithNode(Def(i).name());
        }
        if (control_seen && !name->control) {
          return InvalidArgument("Node '{}': Control dependencies must come after regular dependencies", Def(i).name())
              .WithNode(Def(i).name());
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
    if (const auto found = index_.find(name.node); found != index_.end()) {
      input.file = found->second;
      int32_t& used = outputs_used_[static_cast<size_t>(input.file)];
      used = std::max(used, input.index < kMaxForeignOutputs ? input.index + 1 : 0);
    } else if (const Node* existing = graph_.Find(name.node)) {
      input.existing = existing->id();
    } else {
      return InvalidArgument("Node '{}': Unknown input node '{}'", Def(user).name(), name.node)
          .WithNode(Def(user).name());
    }
    inputs_.push_back(input);
    return {};
  }

  std::span<const Input> Inputs(int32_t i) const {
    const uint32_t begin = first_input_[static_cast<size_t>(i)];
    return std::span(inputs_).subspan(begin, first_input_[static_cast<size_t>(i) + 1] - begin);
  }

  /// An edge that closes a loop: from a NextIteration into a Merge.
  bool IsBackEdge(const Input& input, int32_t user) const {
    if (input.file < 0 || input.index < 0) return false;
    const std::string& to = Def(user).op();
    if (to != "Merge" && to != "RefMerge") return false;
    const std::string& from = Def(input.file).op();
    return from == "NextIteration" || from == "RefNextIteration";
  }

  /// Depth first from the first node on, inputs before users: a file that is in order keeps its order.
  Status Sort() {
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(static_cast<size_t>(def_.node_size()), kNew);
    struct Frame {
      int32_t node;
      uint32_t next;
    };
    std::vector<Frame> stack;
    order_.reserve(state.size());
    for (int32_t root = 0; root < def_.node_size(); ++root) {
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

  /// `stack` leads from users to inputs; from `again` on it is the cycle.
  template <class Frames>
  Status Cycle(const Frames& stack, int32_t again) const {
    constexpr size_t kNamed = 20;
    size_t length = 0;
    std::vector<std::string_view> names{Def(again).name()};
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame, ++length) {
      if (frame->node == again) break;
      names.push_back(Def(frame->node).name());
    }
    names.push_back(Def(again).name());
    std::string path;
    for (size_t i = 0; i < std::min(names.size(), kNamed); ++i) {
      path += fmt::format("{}'{}'", i == 0 ? "" : " -> ", names[i]);
    }
    if (names.size() > kNamed) path += " -> ...";
    return InvalidArgument("{} nodes in a cycle: {}", length + 1, path).WithNode(std::string(names[0]));
  }

  Status AddAll(int before) {
    graph_.Reserve(before + def_.node_size());
    ids_.assign(static_cast<size_t>(def_.node_size()), -1);
    for (const int32_t i : order_) {
      if (Status status = Add(i); !status.ok()) return status.WithNode(FullName(Def(i).name()));
    }
    for (const BackEdge& edge : back_edges_) {
      WEIR_TRY(graph_.SetInput(ids_[static_cast<size_t>(edge.merge)], edge.input, At(edge.from)));
    }
    return {};
  }

  Endpoint At(const Input& input) const {
    return {input.file < 0 ? input.existing : ids_[static_cast<size_t>(input.file)], input.index};
  }

  Status Add(int32_t i) {
    const tf::NodeDef& def = Def(i);
    NodeSpec spec;
    spec.name = FullName(def.name());
    spec.device = def.device();
    WEIR_ASSIGN(spec.op, FindOp(i));
    const std::span<const Input> inputs = Inputs(i);
    const auto data = static_cast<size_t>(
        std::ranges::find(inputs, -1, &Input::index) - inputs.begin());
    spec.inputs.reserve(data);
    for (size_t k = 0; k < data; ++k) {
      const bool back = IsBackEdge(inputs[k], i);
      if (back) back_edges_.push_back({i, static_cast<int>(k), inputs[k]});
      spec.inputs.push_back(back ? Endpoint{} : At(inputs[k]));
    }
    spec.control_inputs.reserve(inputs.size() - data);
    for (const Input& input : inputs.subspan(data)) spec.control_inputs.push_back(At(input).node);
    WEIR_TRY(ReadAttrs(def, spec));
    WEIR_ASSIGN(const Node* node, graph_.Add(std::move(spec)));
    ids_[static_cast<size_t>(i)] = node->id();
    return {};
  }

  Result<const op::OpDef*> FindOp(int32_t i) {
    const std::string& name = Def(i).op();
    const op::OpDef*& known = ops_[name];
    if (known == nullptr) known = graph_.ops().Find(name);
    if (known == nullptr) {
      if (options_.allow_unknown_ops) return &graph_.AddForeignOp(name, outputs_used_[static_cast<size_t>(i)]);
      return graph_.ops().Get(name).status().Append(fmt::format("\n\t [[{{{{node {}}}}}]]", Def(i).name()));
    }
    if (known->deprecated_since > 0 && def_.versions().producer() >= known->deprecated_since) {
      return Unimplemented("Op {} is not available in GraphDef version {}. It has been removed in version {}.", name,
                           def_.versions().producer(), known->deprecated_since);
    }
    return known;
  }

  Status ReadAttrs(const tf::NodeDef& def, NodeSpec& spec) {
    spec.attrs.reserve(static_cast<size_t>(def.attr_size()));
    for (const auto& [name, proto] : def.attr()) {
      Result<op::AttrValue> value = AttrFromProto(proto, budget_);
      if (!value.ok()) {
        return value.status().Append(
            fmt::format("\n\t for attr '{}'\n\t [[{{{{node {}}}}}]]", name, spec.name));
      }
      spec.attrs.emplace_back(name, std::move(*value));
    }
    std::ranges::sort(spec.attrs, {}, &op::AttrList::value_type::first);
    for (auto& [name, value] : spec.attrs) {
      if (name == "_class" && !options_.prefix.empty()) PrefixColocation(value);
      if (name == "shape" && def.op() == "Placeholder" &&
          def_.versions().producer() <= kLastProducerWithoutScalarPlaceholders) {
        const PartialShape* shape = value.get<PartialShape>();
        if (shape != nullptr && shape->rank() == 0) value = PartialShape();
      }
    }
    return {};
  }

  void PrefixColocation(op::AttrValue& value) const {
    constexpr std::string_view kLocation = "loc:@";
    const auto* classes = value.get<std::vector<std::string>>();
    if (classes == nullptr) return;
    std::vector<std::string> renamed = *classes;
    for (std::string& text : renamed) {
      if (text.starts_with(kLocation)) text.insert(kLocation.size(), options_.prefix + "/");
    }
    value = std::move(renamed);
  }

  void MergeVersions(bool was_empty) {
    const tf::VersionDef& from = def_.versions();
    Versions& to = graph_.versions();
    if (was_empty) to = {from.producer(), 0, {}};
    to.producer = std::min(to.producer, from.producer());
    to.min_consumer = std::max(to.min_consumer, from.min_consumer());
    for (const int32_t bad : from.bad_consumers()) {
      if (std::ranges::find(to.bad_consumers, bad) == to.bad_consumers.end()) to.bad_consumers.push_back(bad);
    }
  }

  static constexpr int32_t kMaxForeignOutputs = 1 << 16;

  const tf::GraphDef& def_;
  const ImportOptions& options_;
  Graph& graph_;
  ExpansionBudget budget_;
  std::unordered_map<std::string_view, int32_t> index_;  // by name, position in the file
  std::vector<uint32_t> first_input_;                    // by node, and one past the last
  std::vector<Input> inputs_;
  std::vector<int32_t> outputs_used_;
  std::vector<int32_t> order_;
  std::vector<NodeId> ids_;
  std::vector<BackEdge> back_edges_;
  std::unordered_map<std::string_view, const op::OpDef*> ops_;
};

}  // namespace

Status GraphFromMessage(const tf::GraphDef& def, const ImportOptions& options, Graph& graph) {
  if (graph.finalized()) return FailedPrecondition("Graph is finalized and cannot be modified.");
  return Importer(def, options, graph).Run();
}

Status ImportGraphDef(std::string_view bytes, const ImportOptions& options, Graph& graph) {
  google::protobuf::ArenaOptions arena_options;
  arena_options.start_block_size = size_t{64} << 10;
  arena_options.max_block_size = size_t{1} << 20;
  google::protobuf::Arena arena(arena_options);
  auto* def = google::protobuf::Arena::CreateMessage<tf::GraphDef>(&arena);
  WEIR_TRY(proto::ParseEither(bytes, "GraphDef", *def));
  return GraphFromMessage(*def, options, graph);
}

Result<Graph> ParseGraph(std::string_view bytes, const op::OpRegistry& ops, const ImportOptions& options) {
  Graph graph(ops);
  WEIR_TRY(ImportGraphDef(bytes, options, graph));
  return graph;
}

}  // namespace weir::graph
