// `weir model show`: what a graph wants as input, what it gives, and a command line that runs it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/graph/definition.h"
#include "tools/weir/commands.h"
#include "tools/weir/literal.h"
#include "tools/weir/run_files.h"
#include "tools/weir/run_request.h"

namespace weir::cli {
namespace {

/// Nodes that the request runs.
std::set<graph::NodeId> NodesNeeded(const graph::Definition& graph, const Request& request,
                                    const RunCommandOptions& options) {
  std::vector<graph::NodeId> open;
  const auto add = [&](const std::string& name) {
    if (const graph::Node* node = graph.Find(name.substr(0, name.find(':'))); node != nullptr)
      open.push_back(node->id());
  };
  for (const std::string& name : request.fetches) add(name);
  for (const std::string& name : options.targets) add(name);
  std::set<graph::NodeId> needed;
  while (!open.empty()) {
    const graph::NodeId id = open.back();
    open.pop_back();
    if (id < 0 || !needed.insert(id).second) continue;
    for (const graph::Endpoint& input : graph.node(id).inputs()) open.push_back(input.node);
    for (const graph::NodeId input : graph.node(id).control_inputs()) open.push_back(input);
  }
  return needed;
}

struct ModelValue {
  std::string name;
  DType dtype;
  PartialShape shape;
  bool required = true;  // of inputs: there is no default
};

/// Zeros of the shape, with 1 for extents that are not known: "1x784xf32=0".
std::string ZerosFor(const ModelValue& input) {
  std::string text;
  for (int i = 0; input.shape.has_rank() && i < input.shape.rank(); ++i) {
    text += fmt::format("{}x", std::max<int64_t>(input.shape.dim(i), input.shape.dim(i) < 0 ? 1 : 0));
  }
  const char* const zero = input.dtype == DType::kBool ? "false" : input.dtype == DType::kString ? "\"\"" : "0";
  return text + ShortName(input.dtype) + "=" + zero;
}

Json JsonOf(const ModelValue& value) {
  Json json = {{"name", value.name}, {"dtype", Name(value.dtype)}, {"shape", nullptr}};
  if (!value.shape.has_rank()) return json;
  json["shape"] = Json::array();
  for (int i = 0; i < value.shape.rank(); ++i) {
    json["shape"].push_back(value.shape.dim(i) < 0 ? Json(nullptr) : Json(value.shape.dim(i)));
  }
  return json;
}

ModelValue ModelValueAt(const graph::Definition& graph, std::string name, graph::Endpoint endpoint) {
  const graph::Node& node = graph.node(endpoint.node);
  return {std::move(name), BaseType(graph.TypeOf(endpoint)), node.output_shapes()[static_cast<size_t>(endpoint.index)]};
}

}  // namespace

Status ShowModel(const RunCommandOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const graph::Definition graph, ReadGraph(options.graph));
  WEIR_ASSIGN(const Request request, MakeRequest(options, graph));
  std::string line = "weir run " + ShellQuoted(options.graph);
  Table table({"", "name", "dtype", "shape", ""});
  report["inputs"] = Json::array();
  for (const graph::NodeId id : NodesNeeded(graph, request, options)) {
    const graph::Node& node = graph.node(id);
    if (node.op().traits.universal != op::Universal::kPlaceholder) continue;
    ModelValue input = ModelValueAt(graph, std::string(node.name()), {id, 0});
    input.required = node.inputs().empty();
    Json json = JsonOf(input);
    json["required"] = input.required;
    report["inputs"].push_back(std::move(json));
    table.Add({"input", input.name, Name(input.dtype), input.shape.ToString(), input.required ? "" : "has a default"});
    if (input.required) line += " --feed " + ShellQuoted(input.name + "=" + ZerosFor(input));
  }
  report["outputs"] = Json::array();
  for (const std::string& name : request.fetches) {
    const size_t colon = name.find(':');
    const graph::Node& node = *graph.Find(name.substr(0, colon));
    const int index = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
    const ModelValue output = ModelValueAt(graph, name, {node.id(), index});
    report["outputs"].push_back(JsonOf(output));
    table.Add({"output", name, Name(output.dtype), output.shape.ToString(), ""});
    line += " --fetch " + ShellQuoted(name);
  }
  for (const std::string& target : options.targets) line += " --target " + ShellQuoted(target);
  report["command"] = line;
  console.Print(table);
  console.Print(line);
  return Status();
}

}  // namespace weir::cli
