#include "core/client/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/device/device_name.h"
#include "core/op/deduce.h"
#include "core/op/vendor_ops.h"

namespace weir {
namespace {

thread_local std::vector<Graph*> default_stack;

/// The program-wide graph and the ones that it replaced, whose outputs may still be around.
struct ProgramGraphs {
  std::mutex mutex;  // protects graphs
  std::vector<std::unique_ptr<Graph>> graphs;
};

ProgramGraphs& Program() {
  static ProgramGraphs program;
  return program;
}

/// How many inputs each argument takes, given how many there are in all; empty when that cannot be told.
std::vector<size_t> CountsOf(const op::OpDef& def, const OperationSpec& spec) {
  return op::InputCounts(def, spec.inputs.size(), spec.attrs);
}

/// The operations whose references an operation takes: it runs where they live.
std::vector<Operation> TakenByReference(const op::OpDef& def, const OperationSpec& spec) {
  std::vector<Operation> taken;
  const bool any = std::ranges::any_of(def.inputs, [](const op::ArgDef& arg) { return arg.is_ref; });
  if (!any) return taken;
  const std::vector<size_t> counts = CountsOf(def, spec);
  size_t next = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    for (const size_t end = next + counts[i]; next < end && next < spec.inputs.size(); ++next) {
      if (def.inputs[i].is_ref) taken.push_back(spec.inputs[next].op());
    }
  }
  return taken;
}

/// The attributes of `spec` completed by what follows from the inputs' types.
op::AttrList DeduceAttrs(const op::OpDef& def, const OperationSpec& spec) {
  std::vector<DType> types;
  for (const Output& input : spec.inputs) types.push_back(input.dtype());
  return op::Deduce(def, types, spec.attrs);
}

/// A type that the attribute does not allow; `parameter` is what the user gave it for.
Status CheckAllowed(const op::OpDef& def, const std::string& attr, const std::string& parameter, DType type) {
  const op::AttrDef* const known = def.FindAttr(attr);
  if (known == nullptr || known->type != "type" || Contains(known->allowed_types, type)) return Status();
  std::vector<DType> order = {DType::kBfloat16, DType::kHalf, DType::kFloat, DType::kDouble};  // as TensorFlow has it
  for (uint32_t i = 1; i < 64; ++i) {
    if (std::ranges::find(order, static_cast<DType>(i)) == order.end()) order.push_back(static_cast<DType>(i));
  }
  std::string allowed;
  for (const DType each : order) {
    if (Contains(known->allowed_types, each)) allowed += (allowed.empty() ? "" : ", ") + NumpyName(each);
  }
  return InvalidArgument("Value passed to parameter '{}' has DataType {} not in list of allowed values: {}", parameter,
                         NumpyName(type), allowed);
}

/// The inputs of a list, which are of one type: `wanted`, unless that is kInvalid.
Status CheckListTypes(const op::OpDef& def, const op::ArgDef& arg, std::span<const Output> inputs, DType wanted) {
  std::set<DType> different;
  std::string types;
  for (const Output& input : inputs) {
    different.insert(BaseType(input.dtype()));
    types += (types.empty() ? "" : ", ") + std::string(NumpyName(BaseType(input.dtype())));
  }
  const bool as_wanted = wanted == DType::kInvalid || different.empty() || different == std::set<DType>{wanted};
  if (as_wanted && different.size() < 2) return Status();
  const std::string known = wanted == DType::kInvalid ? "" : std::string(NumpyName(wanted));
  const std::string why = known.empty() ? "don't all match."
                          : arg.dtype != DType::kInvalid
                              ? "do not match expected type " + known + "."
                              : "do not match type " + known + " inferred from earlier arguments.";
  return InvalidArgument("Tensors in list passed to '{}' of '{}' Op have types [{}] that {}", arg.name, def.name, types,
                         why);
}

/// Inputs whose types the definition does not allow together, in the words of TensorFlow's Python client.
Status CheckInputTypes(const op::OpDef& def, const OperationSpec& spec) {
  std::map<std::string, std::pair<DType, std::string>> seen;  // type attribute -> type and the argument that has it
  const std::vector<size_t> counts = CountsOf(def, spec);
  size_t next = 0;
  for (const auto& [name, value] : spec.attrs) {
    if (const DType* const type = value.get<DType>()) WEIR_TRY(CheckAllowed(def, name, name, *type));
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    const op::ArgDef& arg = def.inputs[i];
    if (!arg.number_attr.empty()) {
      const auto known = seen.find(arg.type_attr);
      const DType wanted = known != seen.end() ? known->second.first : BaseType(arg.dtype);
      const std::span<const Output> rest = std::span(spec.inputs).subspan(std::min(next, spec.inputs.size()));
      WEIR_TRY(CheckListTypes(def, arg, rest.first(std::min(counts[i], rest.size())), wanted));
    }
    for (const size_t end = next + counts[i]; next < end && next < spec.inputs.size(); ++next) {
      const DType dtype = BaseType(spec.inputs[next].dtype());
      if (arg.dtype != DType::kInvalid && dtype != BaseType(arg.dtype)) {
        return InvalidArgument("Input '{}' of '{}' Op has type {} that does not match expected type of {}.", arg.name,
                               def.name, NumpyName(dtype), NumpyName(BaseType(arg.dtype)));
      }
      if (arg.type_attr.empty()) continue;
      WEIR_TRY(CheckAllowed(def, arg.type_attr, arg.name, dtype));
      const auto [first, fresh] = seen.emplace(arg.type_attr, std::pair(dtype, arg.name));
      if (!fresh && first->second.first != dtype) {
        return InvalidArgument("Input '{}' of '{}' Op has type {} that does not match type {} of argument '{}'.",
                               arg.name, def.name, NumpyName(dtype), NumpyName(first->second.first),
                               first->second.second);
      }
    }
  }
  return Status();
}

/// The id of an input, or of a control input, that an error kept from being made; -1 when there is none.
graph::NodeId FailedInput(Graph& graph, const OperationSpec& spec) {
  const auto failed = [&](const Graph* from, graph::NodeId id) { return from == &graph && id < -1; };
  for (const Output& input : spec.inputs) {
    if (failed(input.graph(), input.endpoint().node)) return input.endpoint().node;
  }
  for (const Operation& control : spec.control_inputs) {
    if (failed(control.graph(), control.id())) return control.id();
  }
  for (const ControlScope& scope : Internals(graph).control_stack) {
    if (scope.failed < -1) return scope.failed;
  }
  return -1;
}

}  // namespace

std::string Format(const std::source_location& where) {
  std::string_view file = where.file_name();
  const size_t slash = file.find_last_of('/');
  if (slash != std::string_view::npos) {
    const size_t folder = file.find_last_of('/', slash - 1);
    file.remove_prefix(folder == std::string_view::npos ? 0 : folder + 1);
  }
  return fmt::format("{}:{}", file, where.line());
}

Graph::Graph() : internals_(std::make_unique<GraphInternals>(*this)) {}
Graph::~Graph() = default;

Graph& Graph::Default() {
  if (!default_stack.empty()) return *default_stack.back();
  ProgramGraphs& program = Program();
  const std::lock_guard<std::mutex> lock(program.mutex);
  if (program.graphs.empty()) program.graphs.push_back(std::make_unique<Graph>());
  return *program.graphs.back();
}

Status Graph::ResetDefault() {
  if (!default_stack.empty()) {
    return FailedPrecondition(
        "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit "
        "the nesting and create a new graph.");
  }
  ProgramGraphs& program = Program();
  const std::lock_guard<std::mutex> lock(program.mutex);
  program.graphs.push_back(std::make_unique<Graph>());
  return Status();
}

Operation Graph::Add(const OperationSpec& spec) {
  GraphInternals& in = *internals_;
  const std::string origin = Format(in.origin.value_or(spec.where));
  const auto fail = [&](const Status& status) {
    (void)Fail(
        status.Append(" (" + origin + ")").WithNode(std::string(spec.name.empty() ? spec.op : spec.name), origin));
    return Operation::Absent(*this);
  };
  if (const graph::NodeId failed = FailedInput(*this, spec); failed < -1) return Operation(this, failed);
  graph::NodeSpec node;
  for (const Output& input : spec.inputs) {
    if (!input.exists()) return fail(InvalidArgument("None values not supported."));
    if (input.graph() != this) {
      return fail(InvalidArgument("{} must be from the same graph as {}.", input.ToString(),
                                  input == spec.inputs[0] ? "the default graph" : spec.inputs[0].ToString()));
    }
    node.inputs.push_back(input.endpoint());
  }
  if (finalized()) return fail(FailedPrecondition("Graph is finalized and cannot be modified."));
  (void)op::FindOrLoad(in.definition.ops(), spec.op);
  const Result<const op::OpDef*> def = in.definition.ops().Get(spec.op);
  if (!def.ok()) return fail(def.status());
  if (const Status types = CheckInputTypes(**def, spec); !types.ok()) return fail(types);
  for (const Operation& control : spec.control_inputs) {
    if (!control.exists())
      return fail(InvalidArgument("Control input must be an Operation, a Tensor, or a Variable: None"));
    if (control.graph() != this) return fail(InvalidArgument("{} is no operation of this graph.", control.ToString()));
  }
  for (const auto& [name, value] : spec.attrs) {
    if (const PartialShape* const shape = value.get<PartialShape>(); shape != nullptr && !shape->valid()) {
      return fail(shape->Check());
    }
  }
  Result<std::string> name = in.names.ForOperation(spec.name.empty() ? spec.op : spec.name);
  if (!name.ok()) return fail(name.status());
  if (in.definition.Find(*name) != nullptr) return fail(InvalidArgument("Duplicate node name in graph: '{}'", *name));
  node.name = std::move(*name);
  node.op = *def;
  node.attrs = DeduceAttrs(**def, spec);
  in.ApplyAttrScopes(**def, node.attrs);
  std::vector<Operation> beside = in.colocation_stack;
  const std::vector<Operation> taken = TakenByReference(**def, spec);
  beside.insert(beside.end(), taken.begin(), taken.end());
  JoinGroups(beside, node.attrs);
  node.origin = origin;
  for (const Operation& control : spec.control_inputs) node.control_inputs.push_back(control.id());
  std::vector<graph::NodeId> sources;
  for (const graph::Endpoint& input : node.inputs) sources.push_back(input.node);
  const std::vector<graph::NodeId> asked = in.ControlInputsFor(sources);
  node.control_inputs.insert(node.control_inputs.end(), asked.begin(), asked.end());
  std::sort(node.control_inputs.begin(), node.control_inputs.end());
  node.control_inputs.erase(std::unique(node.control_inputs.begin(), node.control_inputs.end()),
                            node.control_inputs.end());
  if (const Status adapted = in.control_flow.Adapt(node); !adapted.ok()) return fail(adapted);
  const Result<graph::Node*> added = in.definition.Add(std::move(node));
  if (!added.ok()) return fail(added.status());
  in.control_flow.Note((*added)->id());
  in.NoteUnderControl((*added)->id());
  const Operation operation(this, (*added)->id());
  in.Place(operation, beside, !taken.empty());
  return operation;
}

const Status& Graph::status() const { return internals_->status; }
void Graph::Finalize() { internals_->definition.Finalize(); }
bool Graph::finalized() const { return internals_->definition.finalized(); }
void Graph::PreventFeeding(const Output& tensor) { internals_->unfeedable.insert(tensor.endpoint()); }
bool Graph::IsFeedable(const Output& tensor) const { return !internals_->unfeedable.contains(tensor.endpoint()); }
std::vector<CollectionEntry>& Graph::CollectionRef(const std::string& key) { return internals_->collections.Ref(key); }
const std::vector<std::string>& Graph::CollectionKeys() const { return internals_->collections.keys(); }

bool Graph::IsFetchable(const Operation& operation) const {
  return internals_->control_flow.IsFetchable(operation.id());
}

Result<Output> Graph::TensorByName(std::string_view name) {
  constexpr std::string_view kForm = "Tensor names must be of the form \"<op_name>:<output_index>\".";
  if (name.find(':') == std::string_view::npos) {
    if (internals_->definition.Find(name) != nullptr) {
      return InvalidArgument("The name '{}' refers to an Operation, not a Tensor. {}", name, kForm);
    }
    return InvalidArgument("The name '{}' looks like an (invalid) Operation name, not a Tensor. {}{}", name, kForm,
                           NearestHint(name, internals_->definition.Names()));
  }
  const Result<graph::InputName> parsed = graph::ParseInputName(name);
  if (!parsed.ok() || parsed->control || parsed->node.find(':') != std::string_view::npos) {
    return InvalidArgument("The name '{}' looks a like a Tensor name, but is not a valid one. {}", name, kForm);
  }
  const graph::Node* node = internals_->definition.Find(parsed->node);
  if (node == nullptr) {
    return NotFound(
        "The name '{}' refers to a Tensor which does not exist. The operation, '{}', does not exist in the "
        "graph.{}",
        name, parsed->node, NearestHint(parsed->node, internals_->definition.Names()));
  }
  if (parsed->index >= node->num_outputs()) {
    return NotFound(
        "The name '{}' refers to a Tensor which does not exist. The operation, '{}', exists but only has {} "
        "outputs.",
        name, parsed->node, node->num_outputs());
  }
  return Output(this, {node->id(), parsed->index});
}

Result<Operation> Graph::OperationByName(std::string_view name) {
  if (const graph::Node* node = internals_->definition.Find(name)) return Operation(this, node->id());
  if (name.find(':') != std::string_view::npos) {
    return InvalidArgument("Name '{}' appears to refer to a Tensor, not a Operation.", name);
  }
  return NotFound("The name '{}' refers to an Operation not in the graph.{}", name,
                  NearestHint(name, internals_->definition.Names()));
}

Result<std::variant<Output, Operation>> Graph::ElementByName(std::string_view name) {
  if (name.find(':') != std::string_view::npos) {
    WEIR_ASSIGN(const Output tensor, TensorByName(name));
    return std::variant<Output, Operation>(tensor);
  }
  WEIR_ASSIGN(const Operation operation, OperationByName(name));
  return std::variant<Output, Operation>(operation);
}

std::vector<Operation> Graph::Operations() {
  std::vector<Operation> all;
  for (graph::NodeId id = 0; id < internals_->definition.num_nodes(); ++id) all.emplace_back(this, id);
  return all;
}

std::string Graph::name_scope() const {
  const std::string& path = internals_->names.current();
  return path.substr(0, path.empty() ? 0 : path.size() - 1);
}

CollectionEntry::CollectionEntry(std::vector<CollectionEntry> values)
    : list(std::make_shared<std::vector<CollectionEntry>>(std::move(values))) {}

CollectionEntry CollectionEntry::Object(std::any object) {
  CollectionEntry entry;
  entry.object = std::move(object);
  return entry;
}

bool Graph::CanModify(const std::source_location& where) {
  if (finalized()) {
    (void)Fail(FailedPrecondition("Graph is finalized and cannot be modified. ({})",
                                  Format(internals_->origin.value_or(where))));
  }
  return !finalized();
}

void Graph::AddToCollection(const std::string& key, CollectionEntry entry, std::source_location where) {
  if (CanModify(where)) internals_->collections.Add(key, std::move(entry));
}

void Graph::ClearCollection(const std::string& key, std::source_location where) {
  if (CanModify(where)) internals_->collections.Clear(key);
}

void Graph::AddToCollections(const std::vector<std::string>& keys, const CollectionEntry& entry,
                             std::source_location where) {
  std::set<std::string_view> seen;
  for (const std::string& key : keys) {
    if (seen.insert(key).second) AddToCollection(key, entry, where);
  }
}

std::vector<CollectionEntry> Graph::GetCollection(const std::string& key, CollectionScope scope) {
  const std::vector<CollectionEntry>* all = internals_->collections.Find(key);
  if (all == nullptr) return {};
  if (!scope) return *all;
  const Result<NameFilter> filter = NameFilter::Make(*scope);
  if (!filter.ok()) {
    (void)Fail(filter.status());
    return {};
  }
  std::vector<CollectionEntry> wanted;
  for (const CollectionEntry& entry : *all) {
    const std::string name = entry.name();
    if (!name.empty() && (*filter)(name)) wanted.push_back(entry);
  }
  return wanted;
}

AsDefault::AsDefault(Graph& graph, Nesting nesting) : graph_(graph), nesting_(nesting) {
  default_stack.push_back(&graph);
}

AsDefault::~AsDefault() {
  const auto own = std::find(default_stack.rbegin(), default_stack.rend(), &graph_);
  if (own != default_stack.rbegin() && nesting_ == Nesting::kEnforced) {
    (void)graph_.Fail(FailedPrecondition("Nesting violated for default stack of Graph objects"));
  }
  if (own != default_stack.rend()) default_stack.erase(std::next(own).base());
}

NameScope::NameScope(std::string_view name, Graph& graph) : graph_(graph) {
  Result<std::string> path = Internals(graph).names.Enter(name);
  if (path.ok()) {
    path_ = std::move(*path);
    return;
  }
  (void)graph.Fail(path.status());
  opened_ = false;
  path_ = *Internals(graph).names.Enter(
      Internals(graph).names.current());  // stays where it is, so that leaving is balanced
}

NameScope::~NameScope() { Internals(graph_).names.Leave(); }

ControlDependencies::ControlDependencies(std::vector<Dependency> inputs, Graph& graph) : graph_(graph) {
  ControlScope scope;
  for (const Dependency& input : inputs) {
    const Operation& operation = input.operation();
    if (operation.graph() == &graph && operation.id() < -1) {
      scope.failed = operation.id();
    } else if (!operation.exists()) {
      (void)graph.Fail(InvalidArgument("Control input must be an Operation, a Tensor, or a Variable: None"));
    } else if (operation.graph() != &graph) {
      (void)graph.Fail(
          InvalidArgument("{} must be from the same graph as the operations that wait for it.", operation.ToString()));
    } else if (std::ranges::find(scope.inputs, operation) == scope.inputs.end()) {
      scope.inputs.push_back(operation);
    }
  }
  Internals(graph).control_stack.push_back(std::move(scope));
}

struct ControlDependencies::Outside {
  explicit Outside(GraphInternals& graph)
      : controls(std::exchange(graph.control_stack, {})), no_context(graph.control_flow, nullptr) {}
  std::vector<ControlScope> controls;
  InContext no_context;
};

ControlDependencies::ControlDependencies(std::nullopt_t, Graph& graph)
    : graph_(graph), outside_(std::make_unique<Outside>(Internals(graph))) {}

ControlDependencies::~ControlDependencies() {
  std::vector<ControlScope>& stack = Internals(graph_).control_stack;
  if (outside_) {
    stack = std::move(outside_->controls);
  } else if (!stack.empty()) {
    stack.pop_back();
  }
}

DeviceScope::DeviceScope(DeviceRequest device, Graph& graph) : graph_(graph) {
  if (const Result<device::DeviceName> name = device::ParseDeviceName(device.name); !name.ok()) {
    (void)graph.Fail(name.status());
    device = DeviceRequest();
  }
  Internals(graph).device_stack.push_back(std::move(device));
}

DeviceScope::~DeviceScope() {
  if (!Internals(graph_).device_stack.empty()) Internals(graph_).device_stack.pop_back();
}

}  // namespace weir
