// `weir graph dot`: a graph in the language of Graphviz.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/place/place.h"
#include "core/session/options.h"
#include "core/session/session.h"
#include "tools/weir/commands.h"
#include "tools/weir/run_request.h"

namespace weir::cli {
namespace {

/// Light fills on which black text can be read, taken in turn.
constexpr std::array<const char*, 8> kFills = {"#a6cee3", "#b2df8a", "#fdbf6f", "#fb9a99",
                                               "#cab2d6", "#ffff99", "#e0c39e", "#d9d9d9"};

std::string QuotedInDot(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

/// The devices of the nodes that such a run places.
Result<std::map<std::string, std::string>> PlacedDevices(const RunCommandOptions& options,
                                                         const graph::Definition& graph) {
  WEIR_ASSIGN(const Request request, MakeRequest(options, graph));
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  session::SessionOptions session_options = session::SessionOptionsFrom(runtime->config);
  session_options.default_device = options.device;
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session,
              session::Session::Make(std::move(runtime), graph, std::move(session_options)));
  WEIR_ASSIGN(const place::Explanation explanation,
              session->ExplainPlacement(request.feeds, request.fetches, options.targets));
  std::map<std::string, std::string> devices;
  for (const place::NodeReport& node : explanation.nodes) devices[node.name] = node.device;
  return devices;
}

/// What each node is coloured by; nodes with an empty text are white.
Result<std::vector<std::string>> ColourKeys(const DotOptions& options, const graph::Definition& graph) {
  std::vector<std::string> keys(static_cast<size_t>(graph.num_nodes()));
  std::map<std::string, std::string> devices;
  if (options.color == "device") {
    WEIR_ASSIGN(devices, PlacedDevices(options.run, graph));
  }
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    const graph::Node& node = graph.node(id);
    std::string& key = keys[static_cast<size_t>(id)];
    if (options.color == "op") key = node.op().name;
    if (options.color == "request") key = node.device();
    if (const auto found = devices.find(std::string(node.name())); found != devices.end()) key = found->second;
  }
  return keys;
}

std::string DotText(const graph::Definition& graph, const std::vector<std::string>& keys) {
  std::map<std::string, size_t> fills;
  for (const std::string& key : keys) {
    if (!key.empty()) fills.emplace(key, 0);
  }
  size_t next = 0;
  for (auto& [key, fill] : fills) fill = next++ % kFills.size();
  std::string text = "digraph weir {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white];\n";
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    const graph::Node& node = graph.node(id);
    const std::string& key = keys[static_cast<size_t>(id)];
    const std::string label = fmt::format("{} ({})", node.name(), node.op().name);
    text += fmt::format("  {} [label={}", QuotedInDot(node.name()), QuotedInDot(label));
    if (!key.empty()) text += fmt::format(", fillcolor=\"{}\", tooltip={}", kFills[fills.at(key)], QuotedInDot(key));
    text += "];\n";
  }
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    const graph::Node& node = graph.node(id);
    for (const graph::Endpoint& input : node.inputs()) {
      text += fmt::format("  {} -> {}", QuotedInDot(graph.node(input.node).name()), QuotedInDot(node.name()));
      text += input.index == 0 ? ";\n" : fmt::format(" [label=\"{}\"];\n", input.index);
    }
    for (const graph::NodeId before : node.control_inputs()) {
      text +=
          fmt::format("  {} -> {} [style=dashed];\n", QuotedInDot(graph.node(before).name()), QuotedInDot(node.name()));
    }
  }
  for (const auto& [key, fill] : fills) {
    text += fmt::format("  // {} {}\n", kFills[fill], OnOneLine(key));
  }
  return text + "}\n";
}

}  // namespace

Status GraphAsDot(const DotOptions& given, const Console& console, Json& report) {
  DotOptions options = given;
  if (options.color.empty()) {
    const char* const set = std::getenv("WEIR_DOT_COLOR");
    options.color = set == nullptr || set[0] == '\0' ? "none" : set;
  }
  const auto& colors = DotColors();
  if (std::ranges::find(colors, options.color) == colors.end()) {
    return InvalidArgument("no colours by '{}'; there are {}", options.color, fmt::join(colors, ", "));
  }
  WEIR_ASSIGN(const graph::Definition graph, ReadGraph(options.run.graph));
  WEIR_ASSIGN(const std::vector<std::string> keys, ColourKeys(options, graph));
  std::string text = DotText(graph, keys);
  report["dot"] = text;
  report["color"] = options.color;
  if (!options.out.empty()) {
    WEIR_TRY(io::WriteFileAtomically(options.out, text));
    console.Print("wrote " + options.out);
    return Status();
  }
  if (text.ends_with('\n')) text.pop_back();
  console.Print(text);
  return Status();
}

const std::vector<std::string>& DotColors() {
  static const auto* const kColors = new std::vector<std::string>{"none", "device", "op", "request"};
  return *kColors;
}

}  // namespace weir::cli
