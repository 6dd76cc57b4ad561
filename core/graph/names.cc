// Names of nodes and of their outputs.
#include <charconv>

#include "core/graph/graph.h"

namespace weir::graph {
namespace {

bool IsLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool CanStart(char c) { return IsLetterOrDigit(c) || c == '.'; }
bool CanFollow(char c) { return CanStart(c) || c == '_' || c == '-' || c == '/'; }

}  // namespace

bool IsValidName(std::string_view name) {
  bool at_start = true;
  for (const char c : name) {
    if (at_start ? !CanStart(c) : !CanFollow(c) && c != '>') return false;
    at_start = c == '>';
  }
  return !at_start;
}

bool IsValidInternalName(std::string_view name) {
  // An underscore may come first, and then anything that may follow.
  if (!name.starts_with('_')) return IsValidName(name);
  std::string tail = "." + std::string(name.substr(1));
  return IsValidName(tail);
}

Result<InputName> ParseInputName(std::string_view text) {
  const auto illegal = [text] { return InvalidArgument("Illegal op input name '{}'", text); };
  size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
  InputName name{text, 0, false};
  if (digits > 0 && digits < text.size() && text[digits - 1] == ':') {
    const std::string_view number = text.substr(digits);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.index);
    if (error != std::errc()) return illegal();
    name.node = text.substr(0, digits - 1);
    if (name.node.starts_with('^')) return illegal();
  } else if (text.starts_with('^')) {
    name.node = text.substr(1);
    name.control = true;
  }
  if (name.node.empty()) return illegal();
  return name;
}

std::string EndpointName(const Graph& graph, Endpoint e) {
  return e.index == 0 ? graph.node(e.node).name() : FullEndpointName(graph, e);
}

std::string FullEndpointName(const Graph& graph, Endpoint e) {
  return fmt::format("{}:{}", graph.node(e.node).name(), e.index);
}

}  // namespace weir::graph
