#include "core/config/toml.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/impl/preprocessor.h>
// The parser asserts on malformed files if assertions are enabled and reports errors otherwise, so they are disabled.
#undef TOML_ASSERT
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_ASSERT_ASSUME(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/config/schema.h"

namespace weir::config {
namespace {

// The nesting depth of tables is bounded by the dots in a line; the library parses and frees them recursively.
constexpr size_t kMaxLineBytes = 4096;

Status CheckLines(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes) {
    return InvalidArgument("{}: {} bytes, at most {} are allowed", file, text.size(), kMaxFileBytes);
  }
  int line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kMaxLineBytes) {
      return InvalidArgument("{}:{}: a line of {} bytes, at most {} are allowed", file, line, end - begin,
                             kMaxLineBytes);
    }
    begin = end + 1;
  }
  return {};
}

Result<Value> ListOf(const toml::array& array) {
  std::vector<std::string> texts;
  std::vector<double> numbers;
  for (const toml::node& element : array) {
    if (auto text = element.value_exact<std::string>()) {
      texts.push_back(std::move(*text));
    } else if (element.is_number()) {
      numbers.push_back(*element.value<double>());
    } else {
      return InvalidArgument("wanted an array of strings or of numbers");
    }
  }
  if (!texts.empty() && !numbers.empty()) return InvalidArgument("wanted an array of strings or of numbers, not both");
  if (numbers.empty()) return Value(std::move(texts));
  return Value(std::move(numbers));
}

Result<Value> ValueOf(const toml::node& node) {
  if (const auto value = node.value_exact<bool>()) return Value(*value);
  if (const auto value = node.value_exact<int64_t>()) return Value(*value);
  if (const auto value = node.value_exact<double>()) return Value(*value);
  if (auto value = node.value_exact<std::string>()) return Value(std::move(*value));
  if (const toml::array* array = node.as_array()) return ListOf(*array);
  return InvalidArgument("no key has a date or a time for its value");
}

class TomlReader {
 public:
  TomlReader(const std::string& file, Settings& settings) : file_(file), settings_(settings) {}

  // Visits keys in text order, so that the first fault is reported first.
  Status Table(const toml::table& table, const Path& path) {
    std::vector<std::pair<toml::source_position, const toml::node*>> order;
    std::vector<std::string> names;
    for (const auto& [name, node] : table) {
      order.emplace_back(name.source().begin, &node);
      names.emplace_back(name.str());
    }
    std::vector<size_t> by_place(order.size());
    for (size_t i = 0; i < by_place.size(); ++i) by_place[i] = i;
    std::stable_sort(by_place.begin(), by_place.end(),
                     [&](size_t a, size_t b) { return order[a].first < order[b].first; });
    for (const size_t i : by_place) {
      Path below = path;
      below.push_back(names[i]);
      WEIR_TRY(Node(*order[i].second, std::move(below), order[i].first));
    }
    return {};
  }

 private:
  Status Node(const toml::node& node, Path path, toml::source_position at) {
    const Origin origin{Source::kFile, file_, static_cast<int>(at.line)};
    if (const toml::table* table = node.as_table()) {
      const bool plugin = path.front() == "plugin";
      if (!plugin && !IsTable(path)) {
        const Key* key = FindKey(path);
        const Status fault = key == nullptr
                                 ? UnknownKey(path)
                                 : InvalidArgument("{}: wanted {}, got a table", ToString(path), Wanted(*key));
        return fault.Prepend(origin.ToString() + ": ");
      }
      return Table(*table, path);
    }
    if (const toml::array* array = node.as_array(); array != nullptr && !array->empty() && array->front().is_table()) {
      return Tables(*array, path, at);
    }
    Result<Value> value = ValueOf(node);
    if (!value.ok()) return value.status().Prepend(fmt::format("{}: {}: ", origin.ToString(), ToString(path)));
    return settings_.Set(std::move(path), {std::move(*value), false}, origin);
  }

  Status Tables(const toml::array& array, const Path& path, toml::source_position at) {
    for (size_t i = 0; i < array.size(); ++i) {
      Path below = path;
      below.push_back(std::to_string(i));
      const toml::source_position place = array[i].source().begin;
      WEIR_TRY(Node(array[i], std::move(below), place ? place : at));
    }
    return {};
  }

  const std::string& file_;
  Settings& settings_;
};

}  // namespace

Status ReadToml(std::string_view text, const std::string& file, Settings& settings) {
  WEIR_TRY(CheckLines(text, file));
  const toml::parse_result parsed = toml::parse(text, std::string_view(file));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return InvalidArgument("{}:{}:{}: {}", file, error.source().begin.line, error.source().begin.column,
                           error.description());
  }
  return TomlReader(file, settings).Table(parsed.table(), {});
}

std::optional<Value> ReadTomlValue(std::string_view text) {
  if (text.size() > kMaxLineBytes) return std::nullopt;
  const toml::parse_result parsed = toml::parse(fmt::format("value = {}", text));
  if (!parsed || parsed.table().size() != 1) return std::nullopt;
  Result<Value> value = ValueOf(*parsed.table().get("value"));
  return value.ok() ? std::optional<Value>(std::move(*value)) : std::nullopt;
}

}  // namespace weir::config
