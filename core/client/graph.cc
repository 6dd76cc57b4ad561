#include "core/client/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/base/nearest.h"
#include "core/client/control_flow_context.h"
#include "core/device/device_name.h"
#include "core/ops/declare_all.h"
#include "core/scope/device_merge.h"

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

/// The catalogue; a fault in it is a bug of weir's that its own tests catch, so an empty one stands in.
const op::OpRegistry& Ops() {
  static const op::OpRegistry kEmpty;
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  return ops.ok() ? **ops : kEmpty;
}

/// How many inputs each argument takes, given how many there are in all; empty when that cannot be told.
std::vector<size_t> CountsOf(const op::OpDef& def, const OperationSpec& spec) {
  const auto given = [&](const std::string& name) -> const op::AttrValue* {
    const auto it = std::find_if(spec.attrs.begin(), spec.attrs.end(), [&](const auto& a) { return a.first == name; });
    return it == spec.attrs.end() ? nullptr : &it->second;
  };
  std::vector<size_t> counts(def.inputs.size(), 1);
  size_t known = 0;
  size_t open = 0;
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const op::ArgDef& arg = def.inputs[i];
    const op::AttrValue* length = arg.number_attr.empty() ? nullptr : given(arg.number_attr);
    const op::AttrValue* types = arg.type_list_attr.empty() ? nullptr : given(arg.type_list_attr);
    if (arg.number_attr.empty() && arg.type_list_attr.empty()) {
      ++known;
    } else if (length != nullptr && length->get<int64_t>() != nullptr) {
      known += counts[i] = static_cast<size_t>(*length->get<int64_t>());
    } else if (types != nullptr && types->get<std::vector<DType>>() != nullptr) {
      known += counts[i] = types->get<std::vector<DType>>()->size();
    } else {
      counts[i] = 0;
      ++open;
    }
  }
  if (open == 0) return counts;
  if (spec.inputs.size() < known || (spec.inputs.size() - known) % open != 0) return {};
  for (size_t i = 0; i < counts.size(); ++i) {
    const op::ArgDef& arg = def.inputs[i];
    const bool listed = !arg.number_attr.empty() || !arg.type_list_attr.empty();
    if (listed && counts[i] == 0) counts[i] = (spec.inputs.size() - known) / open;
  }
  return counts;
}

/// Sets an attribute unless it is there.
void SetDefault(op::AttrList& attrs, const std::string& name, op::AttrValue value) {
  const auto same = [&](const auto& a) { return a.first == name; };
  if (std::none_of(attrs.begin(), attrs.end(), same)) attrs.emplace_back(name, std::move(value));
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
  op::AttrList attrs = spec.attrs;
  const std::vector<size_t> counts = CountsOf(def, spec);
  size_t next = 0;
  for (size_t i = 0; i < counts.size() && next <= spec.inputs.size(); ++i) {
    const op::ArgDef& arg = def.inputs[i];
    const size_t end = std::min(next + counts[i], spec.inputs.size());
    if (!arg.number_attr.empty()) SetDefault(attrs, arg.number_attr, static_cast<int64_t>(counts[i]));
    if (!arg.type_attr.empty() && next < end) SetDefault(attrs, arg.type_attr, BaseType(spec.inputs[next].dtype()));
    if (!arg.type_list_attr.empty()) {
      std::vector<DType> types;
      for (size_t j = next; j < end; ++j) types.push_back(BaseType(spec.inputs[j].dtype()));
      SetDefault(attrs, arg.type_list_attr, std::move(types));
    }
    next = end;
  }
  return attrs;
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

Graph::Graph() : definition_(Ops()), control_flow_(std::make_unique<ControlFlow>(*this)) {}
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

Status Graph::Fail(Status status) {
  if (!status.ok() && status_.ok()) status_ = status;
  return status;
}

Status Graph::TakeStatus() { return std::exchange(status_, Status()); }

void Graph::JoinGroups(const std::vector<Operation>& beside, op::AttrList& attrs) {
  if (beside.empty()) return;
  std::set<std::string> groups;
  for (const Operation& operation : beside) {
    for (std::string& group : ColocationGroups(operation.node())) groups.insert(std::move(group));
  }
  std::erase_if(attrs, [](const auto& attr) { return attr.first == "_class"; });
  attrs.emplace_back("_class", std::vector<std::string>(groups.begin(), groups.end()));
}

Operation Graph::Add(const OperationSpec& spec) {
  const std::string origin = Format(origin_.value_or(spec.where));
  const auto fail = [&](const Status& status) {
    (void)Fail(
        status.Append(" (" + origin + ")").WithNode(std::string(spec.name.empty() ? spec.op : spec.name), origin));
    return Operation::Absent(*this);
  };
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
  const Result<const op::OpDef*> def = definition_.ops().Get(spec.op);
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
  Result<std::string> name = names_.ForOperation(spec.name.empty() ? spec.op : spec.name);
  if (!name.ok()) return fail(name.status());
  if (definition_.Find(*name) != nullptr) return fail(InvalidArgument("Duplicate node name in graph: '{}'", *name));
  node.name = std::move(*name);
  node.op = *def;
  node.attrs = DeduceAttrs(**def, spec);
  ApplyAttrScopes(**def, node.attrs);
  std::vector<Operation> beside = colocation_stack_;
  const std::vector<Operation> taken = TakenByReference(**def, spec);
  beside.insert(beside.end(), taken.begin(), taken.end());
  JoinGroups(beside, node.attrs);
  node.origin = origin;
  for (const Operation& control : spec.control_inputs) node.control_inputs.push_back(control.id());
  std::vector<graph::NodeId> sources;
  for (const graph::Endpoint& input : node.inputs) sources.push_back(input.node);
  const std::vector<graph::NodeId> asked = ControlInputsFor(sources);
  node.control_inputs.insert(node.control_inputs.end(), asked.begin(), asked.end());
  std::sort(node.control_inputs.begin(), node.control_inputs.end());
  node.control_inputs.erase(std::unique(node.control_inputs.begin(), node.control_inputs.end()),
                            node.control_inputs.end());
  if (const Status adapted = control_flow_->Adapt(node); !adapted.ok()) return fail(adapted);
  const Result<graph::Node*> added = definition_.Add(std::move(node));
  if (!added.ok()) return fail(added.status());
  control_flow_->Note((*added)->id());
  NoteUnderControl((*added)->id());
  const Operation operation(this, (*added)->id());
  Place(operation, beside, !taken.empty());
  return operation;
}

std::vector<graph::NodeId> Graph::ControlInputsFor(const std::vector<graph::NodeId>& inputs) const {
  std::vector<graph::NodeId> controls;
  for (const ControlScope& scope : control_stack_) {
    if (std::ranges::any_of(inputs, [&](graph::NodeId input) { return scope.made.contains(input); })) continue;
    for (const Operation& control : scope.inputs) {
      if (std::ranges::find(inputs, control.id()) == inputs.end()) controls.push_back(control.id());
    }
  }
  return controls;
}

void Graph::NoteUnderControl(graph::NodeId node) {
  for (ControlScope& scope : control_stack_) scope.made.insert(node);
}

void Graph::ApplyAttrScopes(const op::OpDef& def, op::AttrList& attrs) const {
  std::set<std::string_view> seen;
  for (auto scope = attr_stack_.rbegin(); scope != attr_stack_.rend(); ++scope) {
    if (seen.insert(scope->first).second && scope->second) SetDefault(attrs, scope->first, *scope->second);
  }
  if (!container_stack_.empty() && !container_stack_.back().empty() && def.stateful && def.FindAttr("container")) {
    SetDefault(attrs, "container", container_stack_.back());
  }
}

std::string Graph::DeviceFor(const Operation& operation, std::string own) {
  for (auto request = device_stack_.rbegin(); request != device_stack_.rend() && !request->clears; ++request) {
    if (request->function) {
      definition_.SetDevice(operation.id(), own);
      own = request->function(operation);
    }
    Result<std::string> merged = scope::MergeDevices(own, request->function ? "" : request->name);
    if (!merged.ok()) {
      (void)Fail(merged.status().WithNode(operation.name(), operation.node().origin()));
      return {};
    }
    own = std::move(*merged);
  }
  return own;
}

std::string Graph::DeviceHere() const {
  std::string device;
  for (auto request = device_stack_.rbegin(); request != device_stack_.rend() && !request->clears; ++request) {
    if (Result<std::string> merged = scope::MergeDevices(device, request->name); merged.ok())
      device = std::move(*merged);
  }
  return device;
}

/// An operation made beside others asks for the device of the innermost of them that has one; one that takes a
/// reference asks for no other.
void Graph::Place(const Operation& operation, const std::vector<Operation>& beside, bool by_reference) {
  std::string device = by_reference ? std::string() : DeviceFor(operation);
  const auto placed =
      std::find_if(beside.rbegin(), beside.rend(), [](const Operation& o) { return !o.device().empty(); });
  if (placed != beside.rend()) device = placed->device();
  definition_.SetDevice(operation.id(), std::move(device));
}

bool Graph::IsFetchable(const Operation& operation) const { return control_flow_->IsFetchable(operation.id()); }

Result<Output> Graph::TensorByName(std::string_view name) {
  constexpr std::string_view kForm = "Tensor names must be of the form \"<op_name>:<output_index>\".";
  if (name.find(':') == std::string_view::npos) {
    if (definition_.Find(name) != nullptr) {
      return InvalidArgument("The name '{}' refers to an Operation, not a Tensor. {}", name, kForm);
    }
    return InvalidArgument("The name '{}' looks like an (invalid) Operation name, not a Tensor. {}{}", name, kForm,
                           NearestHint(name, definition_.Names()));
  }
  const Result<graph::InputName> parsed = graph::ParseInputName(name);
  if (!parsed.ok() || parsed->control || parsed->node.find(':') != std::string_view::npos) {
    return InvalidArgument("The name '{}' looks a like a Tensor name, but is not a valid one. {}", name, kForm);
  }
  const graph::Node* node = definition_.Find(parsed->node);
  if (node == nullptr) {
    return NotFound(
        "The name '{}' refers to a Tensor which does not exist. The operation, '{}', does not exist in the "
        "graph.{}",
        name, parsed->node, NearestHint(parsed->node, definition_.Names()));
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
  if (const graph::Node* node = definition_.Find(name)) return Operation(this, node->id());
  if (name.find(':') != std::string_view::npos) {
    return InvalidArgument("Name '{}' appears to refer to a Tensor, not a Operation.", name);
  }
  return NotFound("The name '{}' refers to an Operation not in the graph.{}", name,
                  NearestHint(name, definition_.Names()));
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
  for (graph::NodeId id = 0; id < definition_.num_nodes(); ++id) all.emplace_back(this, id);
  return all;
}

std::string Graph::name_scope() const {
  const std::string& path = names_.current();
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
    (void)Fail(FailedPrecondition("Graph is finalized and cannot be modified. ({})", Format(origin_.value_or(where))));
  }
  return !finalized();
}

void Graph::AddToCollection(const std::string& key, CollectionEntry entry, std::source_location where) {
  if (CanModify(where)) collections_.Add(key, std::move(entry));
}

void Graph::ClearCollection(const std::string& key, std::source_location where) {
  if (CanModify(where)) collections_.Clear(key);
}

void Graph::AddToCollections(const std::vector<std::string>& keys, const CollectionEntry& entry,
                             std::source_location where) {
  std::set<std::string_view> seen;
  for (const std::string& key : keys) {
    if (seen.insert(key).second) AddToCollection(key, entry, where);
  }
}

std::vector<CollectionEntry> Graph::GetCollection(const std::string& key, CollectionScope scope) {
  const std::vector<CollectionEntry>* all = collections_.Find(key);
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
  Result<std::string> path = graph.names().Enter(name);
  if (path.ok()) {
    path_ = std::move(*path);
    return;
  }
  (void)graph.Fail(path.status());
  opened_ = false;
  path_ = *graph.names().Enter(graph.names().current());  // stays where it is, so that leaving is balanced
}

NameScope::~NameScope() { graph_.names().Leave(); }

ControlDependencies::ControlDependencies(std::vector<Dependency> inputs, Graph& graph) : graph_(graph) {
  ControlScope scope;
  for (const Dependency& input : inputs) {
    const Operation& operation = input.operation();
    if (!operation.exists()) {
      (void)graph.Fail(InvalidArgument("Control input must be an Operation, a Tensor, or a Variable: None"));
    } else if (operation.graph() != &graph) {
      (void)graph.Fail(
          InvalidArgument("{} must be from the same graph as the operations that wait for it.", operation.ToString()));
    } else if (std::ranges::find(scope.inputs, operation) == scope.inputs.end()) {
      scope.inputs.push_back(operation);
    }
  }
  graph.control_stack().push_back(std::move(scope));
}

ControlDependencies::ControlDependencies(std::nullopt_t, Graph& graph)
    : graph_(graph),
      outer_(std::exchange(graph.control_stack(), {})),
      outside_(std::make_unique<InContext>(graph.control_flow(), nullptr)) {}

ControlDependencies::~ControlDependencies() {
  if (outer_) {
    graph_.control_stack() = std::move(*outer_);
  } else if (!graph_.control_stack().empty()) {
    graph_.control_stack().pop_back();
  }
}

DeviceScope::DeviceScope(DeviceRequest device, Graph& graph) : graph_(graph) {
  if (const Result<device::DeviceName> name = device::ParseDeviceName(device.name); !name.ok()) {
    (void)graph.Fail(name.status());
    device = DeviceRequest();
  }
  graph.device_stack().push_back(std::move(device));
}

DeviceScope::~DeviceScope() {
  if (!graph_.device_stack().empty()) graph_.device_stack().pop_back();
}

}  // namespace weir
