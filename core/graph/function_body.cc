#include "core/graph/function_body.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/attr_proto.h"
#include "core/graph/frames.h"
#include "core/graph/graph_def.h"
#include "core/op/function_gradient.h"
#include "core/op/op_names.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

/// Limit on the memory that constants of one body may need beyond the bytes of the definition.
constexpr uint64_t kMaxExpansionBytes = uint64_t{256} << 20;

/// Replaces placeholders in attributes by their values.
class AttrBinder {
 public:
  explicit AttrBinder(op::AttrView call) : call_(call) {}

  Status Bind(tf::NodeDef& node) const {
    for (auto& [name, value] : *node.mutable_attr()) {
      if (Status status = Bind(value); !status.ok()) {
        return status.Append(fmt::format("\n\t [[{{{{node {}}}}}]]", node.name()));
      }
    }
    return {};
  }

 private:
  Status Bind(tf::AttrValue& value) const {
    if (value.value_case() == tf::AttrValue::kPlaceholder) {
      const op::AttrValue* bound = call_.Find(value.placeholder());
      if (bound == nullptr) {
        return InvalidArgument("Failed to bind all placeholders: the call gives no attr '{}'", value.placeholder());
      }
      return AttrToProto(*bound, value);
    }
    if (value.has_func()) return Bind(*value.mutable_func());
    if (!value.has_list()) return {};
    for (tf::NameAttrList& function : *value.mutable_list()->mutable_func()) WEIR_TRY(Bind(function));
    return {};
  }
  Status Bind(tf::NameAttrList& function) const {
    for (auto& [name, value] : *function.mutable_attr()) WEIR_TRY(Bind(value));
    return {};
  }

  op::AttrView call_;
};

/// Converts a FunctionDef to a GraphDef, with arguments as Placeholders and inputs as "node:output", and imports it.
class BodyBuilder {
 public:
  BodyBuilder(const Definition& caller, const Function& function, op::AttrView attrs)
      : caller_(caller),
        function_(function),
        attrs_(attrs),
        body_{.function = &function, .graph = Definition(caller.ops())} {
    body_.graph.SetFunctions(caller.shared_functions());
  }

  Result<std::unique_ptr<const FunctionBody>> Run() {
    WEIR_TRY(proto::ParseBinary(function_.definition, "FunctionDef", def_));
    for (const op::AttrDef& declared : function_.signature.attrs) {
      if (attrs_.Has(declared.name)) continue;
      return NotFound("Attr {} is not found from {}", declared.name, op::Summarize(function_.signature));
    }
    WEIR_TRY(op::Validate(attrs_));
    WEIR_ASSIGN(body_.signature, op::Expand(attrs_));
    WEIR_TRY(AddArguments());
    WEIR_TRY(AddNodes());
    DropForeignColocations();
    for (size_t i = 0; i < static_cast<size_t>(def_.node_def_size()); ++i) {
      WEIR_TRY(AddInputs(def_.node_def(static_cast<int>(i)), *nodes_[i]));
    }
    WEIR_TRY(Import());
    WEIR_TRY(FindResults());
    MarkResultsOfArguments();
    return std::make_unique<const FunctionBody>(std::move(body_));
  }

 private:
  /// An output argument of a node, or a function argument: `count` values starting at output `first`.
  struct Values {
    std::string name;
    int first = 0;
    int count = 0;
  };
  struct Named {
    bool is_argument = false;
    std::vector<Values> outputs;
  };

  /// Name of the Placeholder for value `index` of an argument; numbered if the argument has several values.
  static std::string ArgumentName(const std::string& name, int index, int count) {
    return count == 1 ? name : fmt::format("{}/_{}", name, index);
  }

  Status AddArguments() {
    size_t flat = 0;
    for (size_t i = 0; i < function_.signature.inputs.size(); ++i) {
      const std::string& name = function_.signature.inputs[i].name;
      const int count = body_.signature.input_counts[i];
      named_[name] = {true, {{name, 0, count}}};
      for (int k = 0; k < count; ++k, ++flat) {
        tf::NodeDef& node = *graph_.add_node();
        node.set_name(ArgumentName(name, k, count));
        node.set_op(op::kPlaceholderOp);
        (*node.mutable_attr())["dtype"].set_type(static_cast<tf::DataType>(body_.signature.inputs[flat]));
      }
    }
    return {};
  }

  Status AddNodes() {
    const AttrBinder binder(attrs_);
    for (const tf::NodeDef& def : def_.node_def()) {
      tf::NodeDef& node = *graph_.add_node();
      node.set_name(def.name());
      node.set_op(def.op());
      node.set_device(def.device());
      *node.mutable_attr() = def.attr();
      WEIR_TRY(binder.Bind(node));
      nodes_.push_back(&node);
      const auto [named, fresh] = named_.try_emplace(def.name());
      if (!fresh) return InvalidArgument("Node '{}' is not unique", def.name());
      WEIR_TRY(ListOutputs(node, named->second.outputs));
    }
    return {};
  }

  /// Removes the parts "loc:@x" of `_class` whose x is no node of the body, which TensorFlow ignores in functions: its
  /// gradients of loops name nodes of the loop itself.
  void DropForeignColocations() {
    constexpr std::string_view kLocation = "loc:@";
    const auto is_foreign = [&](std::string_view text) {
      if (!text.starts_with(kLocation)) return false;
      const auto found = named_.find(text.substr(kLocation.size()));
      if (found == named_.end()) return true;
      return found->second.is_argument && found->second.outputs[0].count != 1;
    };
    for (tf::NodeDef* const node : nodes_) {
      const auto attr = node->mutable_attr()->find("_class");
      if (attr == node->mutable_attr()->end() || !attr->second.has_list()) continue;
      auto& names = *attr->second.mutable_list()->mutable_s();
      names.erase(std::remove_if(names.begin(), names.end(), is_foreign), names.end());
    }
  }

  Status ListOutputs(const tf::NodeDef& node, std::vector<Values>& outputs) const {
    const op::OpDef* op = caller_.ops().Find(node.op());
    if (const Function* called = caller_.functions().Find(node.op()); op == nullptr && called != nullptr) {
      op = &called->signature;
    }
    if (op == nullptr) return AtNode(caller_.ops().Get(node.op()).status(), node);
    op::AttrList attrs;
    ExpansionBudget budget{kMaxExpansionBytes};
    for (const auto& [name, value] : node.attr()) {
      if (value.has_tensor() || value.list().tensor_size() > 0) continue;  // does not determine any output type
      Result<op::AttrValue> attr = AttrFromProto(value, budget);
      if (!attr.ok()) return AtNode(attr.status().Append(fmt::format("\n\t for attr '{}'", name)), node);
      attrs.emplace_back(name, std::move(*attr));
    }
    const Result<op::Signature> signature = op::Expand(op::AttrView(*op, attrs));
    if (!signature.ok()) return AtNode(signature.status(), node);
    int first = 0;
    for (size_t i = 0; i < op->outputs.size(); ++i) {
      outputs.push_back({op->outputs[i].name, first, signature->output_counts[i]});
      first += signature->output_counts[i];
    }
    return {};
  }

  Status AddInputs(const tf::NodeDef& def, tf::NodeDef& node) const {
    for (const std::string& input : def.input()) {
      if (input.starts_with('^')) {
        WEIR_TRY(AddControl(input.substr(1), node));
        continue;
      }
      const Result<std::vector<std::string>> values = Resolve(input);
      if (!values.ok()) return AtNode(values.status(), def);
      for (const std::string& value : *values) node.add_input(value);
    }
    return {};
  }

  Status AddControl(const std::string& name, tf::NodeDef& node) const {
    const auto found = named_.find(name);
    if (found == named_.end()) return AtNode(InvalidArgument("input ^{} is not found", name), node);
    if (!found->second.is_argument) {
      node.add_input("^" + name);
    } else if (const int count = found->second.outputs[0].count; count > 0) {
      node.add_input("^" + ArgumentName(name, 0, count));
    }
    return {};
  }

  static Status AtNode(const Status& status, const tf::NodeDef& node) {
    return status.Append(fmt::format("\n\t [[{{{{node {}}}}}]]", node.name()));
  }

  /// GraphDef inputs for "arg", "arg:1", "node:out" or "node:out:1": a single value, or all values of an argument.
  Result<std::vector<std::string>> Resolve(std::string_view text) const {
    const Status unknown = InvalidArgument("input {} is not found", text);
    const size_t colon = text.find(':');
    const auto found = named_.find(text.substr(0, colon));
    if (found == named_.end()) return unknown;
    const auto& [name, named] = *found;
    std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    const Values* values = nullptr;
    if (named.is_argument) {
      values = named.outputs.data();
    } else {
      const std::string_view output = rest.substr(0, rest.find(':'));
      const auto at = std::ranges::find(named.outputs, output, &Values::name);
      if (at == named.outputs.end()) return unknown;
      values = &*at;
      rest = output.size() == rest.size() ? std::string_view() : rest.substr(output.size() + 1);
    }
    int first = 0;
    int count = values->count;
    if (!rest.empty()) {
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), first);
      if (error != std::errc() || end != rest.data() + rest.size() || first < 0 || first >= count) return unknown;
      count = 1;
    }
    std::vector<std::string> inputs;
    for (int i = first; i < first + count; ++i) {
      inputs.push_back(named.is_argument ? ArgumentName(name, i, values->count)
                                         : fmt::format("{}:{}", name, values->first + i));
    }
    return inputs;
  }

  Status Import() {
    graph_.mutable_versions()->set_producer(caller_.versions().producer);
    WEIR_ASSIGN(const std::string bytes, proto::Serialize(graph_, "GraphDef"));
    const ImportOptions options{.allow_internal_names = true, .max_expansion_bytes = kMaxExpansionBytes};
    return ImportGraphDef(bytes, options, body_.graph);
  }

  Status FindResults() {
    for (size_t i = 0; i < function_.signature.outputs.size(); ++i) {
      const std::string& name = function_.signature.outputs[i].name;
      const auto value = def_.ret().find(name);
      if (value == def_.ret().end()) return InvalidArgument("Return {} missing.", name);
      const Result<std::vector<std::string>> inputs = Resolve(value->second);
      if (!inputs.ok()) return InvalidArgument("Return {} -> {} is not found.", name, value->second);
      if (static_cast<int>(inputs->size()) != body_.signature.output_counts[i]) {
        return InvalidArgument("Return {} -> {} has {} tensors, wanted {}", name, value->second, inputs->size(),
                               body_.signature.output_counts[i]);
      }
      for (const std::string& input : *inputs) {
        WEIR_ASSIGN(const InputName parsed, ParseInputName(input));
        const Endpoint result{body_.graph.Find(parsed.node)->id(), parsed.index};
        const DType wanted = body_.signature.outputs[body_.results.size()];
        if (BaseType(body_.graph.TypeOf(result)) != wanted) {
          return InvalidArgument("Invalid ret types {} : {} vs. {}", name, Name(wanted),
                                 Name(body_.graph.TypeOf(result)));
        }
        body_.results.push_back(result);
      }
    }
    for (const auto& [name, node] : def_.control_ret()) {
      const Node* const found = body_.graph.Find(node);
      if (found == nullptr) {
        return InvalidArgument("Control return '{}' names node '{}', which is not found", name, node);
      }
      body_.control_results.push_back(found->id());
    }
    std::ranges::sort(body_.control_results);
    return {};
  }

  void MarkResultsOfArguments() {
    std::vector<bool> reached(static_cast<size_t>(body_.graph.num_nodes()), false);
    std::fill_n(reached.begin(), body_.num_arguments(), true);
    const auto is_reached = [&](NodeId id) { return id >= 0 && reached[static_cast<size_t>(id)]; };
    for (NodeId id = static_cast<NodeId>(body_.num_arguments()); id < body_.graph.num_nodes(); ++id) {
      const Node& node = body_.graph.node(id);
      // A call may return a constant regardless of its arguments.
      if (node.op().run_by == op::RunBy::kExecutor && FlowOf(node) == Flow::kPlain) continue;
      reached[static_cast<size_t>(id)] =
          std::ranges::any_of(node.inputs(), [&](const Endpoint& input) { return is_reached(input.node); }) ||
          std::ranges::any_of(node.control_inputs(), is_reached);
    }
    for (const Endpoint& result : body_.results) body_.result_of_arguments.push_back(is_reached(result.node));
  }

  const Definition& caller_;
  const Function& function_;
  op::AttrView attrs_;
  FunctionBody body_;
  tf::FunctionDef def_;
  tf::GraphDef graph_;
  std::vector<tf::NodeDef*> nodes_;  // of graph_, by position in def_
  std::map<std::string, Named, std::less<>> named_;
};

}  // namespace

const Function* FunctionBodies::Find(std::string_view name) const {
  const Function* const function = graph_.functions().Find(name);
  return function != nullptr ? function : defined_.Find(name);
}

Result<std::string> FunctionBodies::Define(const op::FunctionSpec& function) {
  op::FunctionSpec spec = function;
  for (int k = 1; graph_.functions().Find(spec.name) != nullptr; ++k)
    spec.name = fmt::format("{}_{}", function.name, k);
  return defined_.Define(spec, graph_.ops());
}

Result<const FunctionBody*> FunctionBodies::Get(const op::FuncRef& ref) {
  const Function* const function = Find(ref.name);
  if (function == nullptr) return NotFound("Function {} is not defined.", ref.name);
  op::AttrList attrs;
  for (const op::AttrDef& declared : function->signature.attrs) {
    if (!ref.attrs) break;
    const auto given = std::ranges::find(*ref.attrs, declared.name, &op::AttrList::value_type::first);
    if (given != ref.attrs->end()) attrs.push_back(*given);
  }
  std::vector<Made>& all = made_[function];
  const auto known = std::ranges::find(all, attrs, &Made::attrs);
  if (known != all.end()) return known->body.get();
  auto body = BodyBuilder(graph_, *function, op::AttrView(function->signature, attrs)).Run();
  if (!body.ok()) return body.status().Append(fmt::format("\n\t In function '{}'", ref.name));
  all.push_back({std::move(attrs), std::move(*body)});
  return all.back().body.get();
}

}  // namespace weir::graph
