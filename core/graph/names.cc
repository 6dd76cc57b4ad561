// Names of nodes and of their outputs.
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/graph/definition.h"

namespace weir::graph {
namespace {

enum : uint8_t { kCanStart = 1, kCanFollow = 2 };

/// Where each character may stand in a name. Large graphs have millions of them.
constexpr std::array<uint8_t, 256> kPlaces = [] {
  std::array<uint8_t, 256> places{};
  const auto allow = [&places](std::string_view characters, uint8_t where) {
    for (const char c : characters) places[static_cast<uint8_t>(c)] = where;
  };
  allow("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.", kCanStart | kCanFollow);
  allow("_-/>", kCanFollow);
  return places;
}();

}  // namespace

bool IsValidName(std::string_view name) {
  uint8_t wanted = kCanStart;
  for (const char c : name) {
    if ((kPlaces[static_cast<uint8_t>(c)] & wanted) == 0) return false;
    wanted = c == '>' ? kCanStart : kCanFollow;
  }
  return wanted == kCanFollow;
}

bool IsValidInternalName(std::string_view name) {
  // After a leading underscore any non-leading character may follow.
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

std::string EndpointName(const Definition& graph, Endpoint e) {
  return e.index == 0 ? graph.node(e.node).name() : FullEndpointName(graph, e);
}

std::string FullEndpointName(const Definition& graph, Endpoint e) {
  return fmt::format("{}:{}", graph.node(e.node).name(), e.index);
}

}  // namespace weir::graph
