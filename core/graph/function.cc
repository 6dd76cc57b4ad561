#include "core/graph/function.h"

#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "core/graph/attr_proto.h"
#include "core/graph/op_proto.h"
#include "core/op/function_gradient.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

void AddCallees(const tf::AttrValue& value, std::set<std::string>& callees);

void AddCallees(const tf::NameAttrList& function, std::set<std::string>& callees) {
  callees.insert(function.name());
  for (const auto& [name, value] : function.attr()) AddCallees(value, callees);
}

/// Writes `spec` to `def` under the name `name`.
Status FillDef(const op::FunctionSpec& spec, const std::string& name, tf::FunctionDef& def) {
  def.Clear();
  def.mutable_signature()->set_name(name);
  const auto add = [](tf::OpDef::ArgDef& arg, std::string_view prefix, size_t i, DType type) {
    arg.set_name(fmt::format("{}{}", prefix, i));
    arg.set_type(static_cast<tf::DataType>(type));
  };
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    add(*def.mutable_signature()->add_input_arg(), "a", i, spec.arguments[i]);
  }
  for (size_t i = 0; i < spec.results.size(); ++i) {
    tf::OpDef::ArgDef& result = *def.mutable_signature()->add_output_arg();
    add(result, "r", i, spec.results[i]);
    (*def.mutable_ret())[result.name()] = spec.returns[i];
  }
  for (const op::FunctionSpec::Node& node : spec.nodes) {
    tf::NodeDef& made = *def.add_node_def();
    made.set_name(node.name);
    made.set_op(node.op);
    for (const std::string& input : node.inputs) made.add_input(input);
    for (const auto& [attr, value] : node.attrs) WEIR_TRY(AttrToProto(value, (*made.mutable_attr())[attr]));
  }
  return {};
}

/// Adds the functions named by an attribute. Messages are nested at most proto::kMaxNesting deep.
void AddCallees(const tf::AttrValue& value, std::set<std::string>& callees) {
  if (value.has_func()) AddCallees(value.func(), callees);
  if (!value.has_list()) return;
  for (const tf::NameAttrList& function : value.list().func()) AddCallees(function, callees);
}

Result<std::shared_ptr<const Function>> MakeFunction(const tf::FunctionDef& def) {
  auto function = std::make_shared<Function>();
  if (def.signature().name().empty()) return InvalidArgument("FunctionDefLibrary: a function has no name");
  if (Status status = OpDefFromProto(def.signature(), function->signature); !status.ok()) {
    return status.Append(fmt::format("; in the signature of function '{}'", def.signature().name()));
  }
  function->signature.category = op::Category::kControlFlow;
  function->signature.run_by = op::RunBy::kExecutor;
  function->signature.gradient = [](op::GradContext& g) -> Result<std::vector<op::Grad>> {
    const op::AttrView call = g.attrs();
    return op::GradientOfCall(g, {call.def().name, std::make_shared<const op::AttrList>(call.explicit_values())});
  };
  function->signature.no_gradient.clear();
  std::set<std::string> callees;
  for (const tf::NodeDef& node : def.node_def()) {
    callees.insert(node.op());
    for (const auto& [name, value] : node.attr()) AddCallees(value, callees);
  }
  function->callees.assign(callees.begin(), callees.end());
  WEIR_ASSIGN(function->definition, proto::Serialize(def, "FunctionDef"));
  return std::shared_ptr<const Function>(std::move(function));
}

}  // namespace

const Function* FunctionLibrary::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : functions_[found->second].get();
}

std::string_view FunctionLibrary::GradientOf(std::string_view name) const {
  const auto found = gradients_.find(name);
  return found == gradients_.end() ? std::string_view() : found->second;
}

Status FunctionLibrary::Add(const tf::FunctionDefLibrary& added, const op::OpRegistry& ops) {
  for (const tf::FunctionDef& def : added.function()) {
    WEIR_ASSIGN(std::shared_ptr<const Function> function, MakeFunction(def));
    const std::string& name = function->signature.name;
    if (ops.Find(name) != nullptr) {
      return InvalidArgument("Cannot add function '{}' because an op with the same name already exists.", name);
    }
    if (const Function* known = Find(name)) {
      if (known->definition == function->definition) continue;
      return InvalidArgument("Cannot add function '{}' because a different function with the same name already exists.",
                             name);
    }
    by_name_.emplace(name, functions_.size());
    functions_.push_back(std::move(function));
  }
  for (const tf::GradientDef& gradient : added.gradient()) {
    const auto [known, fresh] = gradients_.try_emplace(gradient.function_name(), gradient.gradient_func());
    if (fresh || known->second == gradient.gradient_func()) continue;
    return InvalidArgument("Cannot assign gradient function '{}' to '{}' because it already has gradient function '{}'",
                           gradient.gradient_func(), gradient.function_name(), known->second);
  }
  for (const tf::RegisteredGradient& gradient : added.registered_gradients()) {
    const auto [known, fresh] =
        registered_gradients_.try_emplace(gradient.registered_op_type(), gradient.gradient_func());
    if (fresh || known->second == gradient.gradient_func()) continue;
    return InvalidArgument("Cannot register a second gradient for op type '{}'", gradient.registered_op_type());
  }
  return {};
}

Status FunctionLibrary::CheckRecursion() const {
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> states(functions_.size(), State::kNew);
  struct Call {
    size_t function;
    size_t next = 0;  // next callee to visit
  };
  std::vector<Call> chain;
  const auto refuse = [&](size_t again) {
    std::string names;
    bool inside = false;
    for (const Call& call : chain) {
      inside = inside || call.function == again;
      if (inside) names += fmt::format("'{}' -> ", functions_[call.function]->signature.name);
    }
    const std::string& name = functions_[again]->signature.name;
    return InvalidArgument("Function '{}' calls itself, which is not supported: {}'{}'. Write it as a loop", name,
                           names, name);
  };
  for (size_t root = 0; root < functions_.size(); ++root) {
    if (states[root] == State::kNew) chain.push_back({root});
    while (!chain.empty()) {
      Call& call = chain.back();
      states[call.function] = State::kOpen;
      const std::vector<std::string>& callees = functions_[call.function]->callees;
      if (call.next == callees.size()) {
        states[call.function] = State::kDone;
        chain.pop_back();
        continue;
      }
      const auto callee = by_name_.find(callees[call.next++]);
      if (callee == by_name_.end()) continue;
      if (states[callee->second] == State::kOpen) return refuse(callee->second);
      if (states[callee->second] == State::kNew) chain.push_back({callee->second});
    }
  }
  return {};
}

Status FunctionLibrary::Merge(std::string_view bytes, const op::OpRegistry& ops) {
  if (bytes.empty()) return {};
  tf::FunctionDefLibrary added;
  WEIR_TRY(proto::ParseBinary(bytes, "FunctionDefLibrary", added));
  FunctionLibrary merged = *this;
  WEIR_TRY(merged.Add(added, ops));
  WEIR_TRY(merged.CheckRecursion());
  *this = std::move(merged);
  return {};
}

Result<std::string> FunctionLibrary::Define(const op::FunctionSpec& function, const op::OpRegistry& ops) {
  if (function.returns.size() != function.results.size()) {
    return InvalidArgument("Function '{}' has {} results and returns {} values", function.name, function.results.size(),
                           function.returns.size());
  }
  tf::FunctionDefLibrary added;
  tf::FunctionDef& def = *added.add_function();
  std::string name = function.name;
  for (int k = 1;; ++k) {
    WEIR_TRY(FillDef(function, name, def));
    const Function* const known = Find(name);
    if (known == nullptr && ops.Find(name) == nullptr) break;
    WEIR_ASSIGN(const std::string definition, proto::Serialize(def, "FunctionDef"));
    if (known != nullptr && known->definition == definition) return name;
    name = fmt::format("{}_{}", function.name, k);
  }
  FunctionLibrary merged = *this;
  WEIR_TRY(merged.Add(added, ops));
  *this = std::move(merged);
  return name;
}

Status FunctionLibrary::WriteTo(tf::FunctionDefLibrary& library) const {
  for (const auto& function : functions_) {
    WEIR_TRY(proto::ParseBinary(function->definition, "FunctionDef", *library.add_function()));
  }
  for (const auto& [function, gradient] : gradients_) {
    tf::GradientDef& def = *library.add_gradient();
    def.set_function_name(function);
    def.set_gradient_func(gradient);
  }
  for (const auto& [op, gradient] : registered_gradients_) {
    tf::RegisteredGradient& def = *library.add_registered_gradients();
    def.set_registered_op_type(op);
    def.set_gradient_func(gradient);
  }
  return {};
}

}  // namespace weir::graph
