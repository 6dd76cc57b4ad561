#include "core/config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/config/key_table_internal.h"
#include "core/config/toml.h"
#include "core/device/device_name.h"

namespace weir::config {
namespace {

constexpr std::string_view kStar = "*";
constexpr size_t kMaxVirtualDevices = 1024;
// Tables reserved by the design but unused in this version.
constexpr std::string_view kLaterTables[] = {"cluster", "cluster_def"};

Path Pattern(const Key& key) {
  Path names;
  std::string_view rest = key.path;
  while (true) {
    const size_t dot = rest.find('.');
    names.emplace_back(rest.substr(0, dot));
    if (dot == std::string_view::npos) return names;
    rest.remove_prefix(dot + 1);
  }
}

// True if `path` matches a prefix of `pattern`.
bool Follows(const Path& path, const Path& pattern) {
  if (path.size() > pattern.size()) return false;
  for (size_t i = 0; i < path.size(); ++i) {
    if (pattern[i] != kStar && pattern[i] != path[i]) return false;
  }
  return true;
}

// An example name for the key's star.
std::string_view ExampleName(const Key& key) {
  switch (key.star) {
    case Star::kIndex:
      return "0";
    case Star::kDevice:
      return "GPU:0";
    case Star::kLink:
      return "CPU:0->GPU:0";
    case Star::kName:
      return "NAME";
  }
  return "NAME";
}

struct Row {
  const Key* key;
  Path pattern;
};

const std::vector<Row>& Rows() {
  static const auto* const rows = [] {
    auto* made = new std::vector<Row>;
    for (const Key& key : Schema()) made->push_back({&key, Pattern(key)});
    return made;
  }();
  return *rows;
}

// The names in `config` for the first star of a pattern.
std::vector<std::string> Entries(const Config& config, std::string_view table) {
  std::vector<std::string> names;
  const auto add = [&names](const auto& map) {
    for (const auto& [name, value] : map) names.push_back(name);
  };
  if (table == "device_count") add(config.device_count);
  if (table == "placement.pin") add(config.placement.pin);
  if (table == "placement.alias") add(config.placement.alias);
  if (table == "device") add(config.device);
  if (table == "link") add(config.link);
  if (table == "gpu_options.experimental.virtual_devices") {
    for (size_t i = 0; i < config.gpu_options.experimental.virtual_devices.size(); ++i)
      names.push_back(std::to_string(i));
  }
  return names;
}

// Canonical device part of a name such as "gpu:0"; nullopt if invalid.
std::optional<std::string> DevicePart(std::string_view text) {
  if (text.find('/') != std::string_view::npos) return std::nullopt;
  const Result<device::DeviceName> name = device::ParseDeviceName("/device:" + std::string(text));
  if (!name.ok() || !name->type) return std::nullopt;
  return *name->type + (name->id ? ":" + std::to_string(*name->id) : "");
}

std::optional<std::string> LinkName(std::string_view text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return std::nullopt;
  const std::optional<std::string> from = DevicePart(text.substr(0, arrow));
  const std::optional<std::string> to = DevicePart(text.substr(arrow + 2));
  if (!from || !to) return std::nullopt;
  return *from + "->" + *to;
}

// `as` is the parsed value of a text from a variable or the command line, if it could be parsed.
Status WrongValue(const Key& key, const Path& path, const Given& given, const std::optional<Value>& as = {}) {
  return InvalidArgument("{}: wanted {}, got {}", ToString(path), Wanted(key), Describe(as ? *as : given.value));
}

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    items.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

std::optional<bool> ReadAs(const Given& given, std::type_identity<bool>) {
  if (const bool* value = std::get_if<bool>(&given.value)) return *value;
  if (!given.text) return std::nullopt;
  const std::string& text = std::get<std::string>(given.value);
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

std::optional<int64_t> ReadAs(const Given& given, std::type_identity<int64_t>) {
  if (const int64_t* value = std::get_if<int64_t>(&given.value)) return *value;
  return given.text ? ParseNumber<int64_t>(std::get<std::string>(given.value)) : std::nullopt;
}

std::optional<double> ReadAs(const Given& given, std::type_identity<double>) {
  if (const double* value = std::get_if<double>(&given.value)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&given.value)) return static_cast<double>(*value);
  return given.text ? ParseNumber<double>(std::get<std::string>(given.value)) : std::nullopt;
}

std::optional<std::string> ReadAs(const Given& given, std::type_identity<std::string>) {
  const std::string* value = std::get_if<std::string>(&given.value);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::vector<std::string>> ReadAs(const Given& given, std::type_identity<std::vector<std::string>>) {
  if (given.text) {
    const std::string& text = std::get<std::string>(given.value);
    return text.starts_with('[') ? std::nullopt : std::optional(SplitList(text));  // not a valid TOML array
  }
  if (const auto* value = std::get_if<std::vector<std::string>>(&given.value)) return *value;
  const auto* numbers = std::get_if<std::vector<double>>(&given.value);
  return numbers != nullptr && numbers->empty() ? std::optional(std::vector<std::string>()) : std::nullopt;
}

std::optional<std::vector<double>> ReadAs(const Given& given, std::type_identity<std::vector<double>>) {
  if (const auto* value = std::get_if<std::vector<double>>(&given.value)) return *value;
  std::vector<double> numbers;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&given.value)) {
    return texts->empty() ? std::optional(numbers) : std::nullopt;  // an empty array matches both types
  }
  if (!given.text) return std::nullopt;
  for (const std::string& item : SplitList(std::get<std::string>(given.value))) {
    const std::optional<double> number = ParseNumber<double>(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// Text may be in TOML syntax; strings need no quotes and lists no brackets.
template <class T>
std::optional<T> Read(const Given& given) {
  if (given.text) {
    const std::optional<Value> value = ReadTomlValue(std::get<std::string>(given.value));
    if (value) {
      const bool quoted = std::holds_alternative<std::string>(*value);
      if (std::optional<T> read = ReadAs({*value, quoted}, std::type_identity<T>())) return read;
    }
  }
  return ReadAs(given, std::type_identity<T>());
}

// The type as which a field of type T is read.
template <class T>
struct ReadType {
  using type = T;
};
template <>
struct ReadType<int32_t> {
  using type = int64_t;
};
template <>
struct ReadType<std::optional<bool>> {
  using type = bool;
};
template <class T>
struct ReadType<Member<T>> : ReadType<T> {};

template <class T>
bool InBounds(const Key& key, const T& value) {
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
    const auto number = static_cast<double>(value);
    return number >= key.minimum && number <= key.maximum;  // false for NaN
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return std::all_of(value.begin(), value.end(), [&](double v) { return InBounds(key, v); });
  } else if constexpr (std::is_same_v<T, std::string>) {
    return key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), value) != key.choices.end();
  } else {
    return true;
  }
}

// The row's path with stars replaced: by names of `path` as long as it matches, so that only the rest counts as a
// difference; then by examples.
Path Resembling(const Row& row, const Path& path) {
  Path like = row.pattern;
  bool agrees = true;
  for (size_t i = 0; i < like.size(); ++i) {
    agrees = agrees && i < path.size() && (like[i] == kStar || like[i] == path[i]);
    if (like[i] == kStar) like[i] = agrees ? path[i] : std::string(ExampleName(*row.key));
  }
  return like;
}

Value DefaultOf(const Key& key, const Path& path) {
  Config fresh;
  return Load(key.field(fresh, path));
}

}  // namespace

std::span<const Key> Schema() {
  static const auto* const table = new std::vector<Key>(MakeKeyTable());
  return *table;
}

const Key* FindKey(const Path& path) {
  for (const Row& row : Rows()) {
    if (path.size() == row.pattern.size() && Follows(path, row.pattern)) return row.key;
  }
  return nullptr;
}

bool IsTable(const Path& path) {
  return std::any_of(Rows().begin(), Rows().end(),
                     [&](const Row& row) { return path.size() < row.pattern.size() && Follows(path, row.pattern); });
}

Status UnknownKey(const Path& path) {
  if (std::find(std::begin(kLaterTables), std::end(kLaterTables), path.front()) != std::end(kLaterTables)) {
    return Unimplemented("{}: this version of weir runs in one process; leave '{}' out", ToString(path), path.front());
  }
  std::vector<std::string> known;
  std::vector<std::string> elsewhere;  // keys in other tables with the same last name
  std::vector<std::string> misspelt;   // keys in other tables with a similar last name
  for (const Row& row : Rows()) {
    const Path like = Resembling(row, path);
    known.push_back(ToString(like));
    if (path.size() < like.size()) {
      known.push_back(ToString(Path(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(path.size()))));
    }
    if (like.size() == path.size() || row.pattern.back() == kStar) continue;
    if (like.back() == path.back()) elsewhere.push_back(ToString(like));
    if (!NearestNames(path.back(), {like.back()}).empty()) misspelt.push_back(ToString(like));
  }
  if (!elsewhere.empty()) {
    return InvalidArgument("unknown key '{}'; there is '{}'", ToString(path), fmt::join(elsewhere, "' and '"));
  }
  std::string hint = NearestHint(ToString(path), std::vector<std::string_view>(known.begin(), known.end()));
  if (hint.empty() && !misspelt.empty()) hint = fmt::format(" (nearest: '{}')", fmt::join(misspelt, "', '"));
  return InvalidArgument("unknown key '{}'{}; `weir config show --effective` lists all keys", ToString(path), hint);
}

Result<Path> CheckedPath(const Key& key, Path path) {
  const Path pattern = Pattern(key);
  const auto star = static_cast<size_t>(std::find(pattern.begin(), pattern.end(), kStar) - pattern.begin());
  if (star == pattern.size()) return path;
  std::string& name = path[star];
  if (key.star == Star::kIndex) {
    const std::optional<size_t> index = ParseNumber<size_t>(name);
    if (!index || *index >= kMaxVirtualDevices) {
      return InvalidArgument("{}: '{}' is not an index from 0 to {}", ToString(path), name, kMaxVirtualDevices - 1);
    }
    name = std::to_string(*index);
  } else if (key.star == Star::kDevice) {
    const std::optional<std::string> part = DevicePart(name);
    if (!part) return InvalidArgument("{}: '{}' is no device, as GPU:0, or kind, as GPU", ToString(path), name);
    name = *part;
  } else if (key.star == Star::kLink) {
    const std::optional<std::string> link = LinkName(name);
    if (!link) return InvalidArgument("{}: '{}' is no link, as CPU:0->GPU:0", ToString(path), name);
    name = *link;
  } else if (name.empty()) {
    return InvalidArgument("{}: an empty name", ToString(path));
  }
  return path;
}

Status Store(const Key& key, const Path& path, const Given& given, Config& config) {
  return std::visit(
      [&]<class T>(T* member) -> Status {
        const auto value = Read<typename ReadType<T>::type>(given);
        if (!value) return WrongValue(key, path, given);
        if (!InBounds(key, *value)) return WrongValue(key, path, given, Value(*value));
        if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, Member<int32_t>>) {
          if (*value != static_cast<int64_t>(static_cast<int32_t>(*value))) return WrongValue(key, path, given);
          *member = static_cast<int32_t>(*value);
        } else {
          *member = *value;
        }
        const Value standard = DefaultOf(key, path);
        if (key.effect == Effect::kNotYet && Load(member) != standard) {
          return Unimplemented("{} = {}: this version of weir does not do that; leave the key out or set it to {}",
                               ToString(path), ToToml(Load(member)), ToToml(standard));
        }
        return {};
      },
      key.field(config, path));
}

std::optional<Value> ReadLike(const Given& given, const Value& like) {
  return std::visit(
      [&]<class T>(const T&) -> std::optional<Value> {
        std::optional<T> value = Read<T>(given);
        return value ? std::optional<Value>(std::move(*value)) : std::nullopt;
      },
      like);
}

Value Load(Field field) {
  return std::visit(
      []<class T>(const T* member) -> Value {
        if constexpr (std::is_same_v<T, std::optional<bool>>) {
          return member->value_or(false);
        } else {
          return typename ReadType<T>::type{*member};
        }
      },
      field);
}

std::string Wanted(const Key& key) {
  Config fresh;
  Path path = Pattern(key);
  for (std::string& name : path) {
    if (name == kStar) name = "0";
  }
  const auto range = [&key](std::string what) {
    if (std::isfinite(key.minimum)) what += fmt::format(" from {}", key.minimum);
    if (std::isfinite(key.maximum) && key.maximum < 1e9) what += fmt::format(" to {}", key.maximum);
    return what;
  };
  return std::visit(
      [&]<class T>(const T*) -> std::string {
        using Type = typename ReadType<T>::type;
        if constexpr (std::is_same_v<Type, bool>) return "true or false";
        if constexpr (std::is_same_v<Type, int64_t>) return range("an integer");
        if constexpr (std::is_same_v<Type, double>) return range("a number");
        if constexpr (std::is_same_v<Type, std::vector<double>>) return range("an array of numbers");
        if constexpr (std::is_same_v<Type, std::vector<std::string>>) return "an array of strings";
        if (key.choices.empty()) return "a string";
        std::string text = "one of";
        for (const std::string_view choice : key.choices)
          text += fmt::format("{} \"{}\"", text.back() == '"' ? "," : "", choice);
        return text;
      },
      key.field(fresh, path));
}

void ForEachField(Config& config, const std::function<void(const Key&, const Path&, Field)>& visit) {
  for (const Row& row : Rows()) {
    const auto star = std::find(row.pattern.begin(), row.pattern.end(), kStar);
    if (star == row.pattern.end()) {
      visit(*row.key, row.pattern, row.key->field(config, row.pattern));
      continue;
    }
    const Path table(row.pattern.begin(), star);
    for (const std::string& name : Entries(config, ToString(table))) {
      Path path = row.pattern;
      path[table.size()] = name;
      if (path.back() != kStar) {
        visit(*row.key, path, row.key->field(config, path));
        continue;
      }
      // The only nested table with user-chosen names: peaks by element type.
      for (auto& [type, peak] : config.device[name].peak_gflops) {
        path.back() = type;
        visit(*row.key, path, &peak);
      }
    }
  }
}

std::string EnvironmentName(const Key& key) {
  if (key.path.find(kStar) != std::string_view::npos) return "";
  std::string name = "WEIR_";
  for (const char c : key.path) {
    name += c == '.' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

Result<Path> ParsePath(std::string_view text) {
  Path path;
  size_t at = 0;
  while (true) {
    std::string name;
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
      const size_t end = text.find(text[at], at + 1);
      if (end == std::string_view::npos)
        return InvalidArgument("'{}': the quote in column {} is not closed", text, at + 1);
      name = text.substr(at + 1, end - at - 1);
      at = end + 1;
      if (at < text.size() && text[at] != '.') return InvalidArgument("'{}': wanted '.' in column {}", text, at + 1);
    } else {
      const size_t end = std::min(text.find('.', at), text.size());
      name = text.substr(at, end - at);
      if (name.empty() || name.find_first_of("\"' ") != std::string::npos) {
        return InvalidArgument("'{}': wanted a name in column {}", text, at + 1);
      }
      at = end;
    }
    path.push_back(std::move(name));
    if (at >= text.size()) return path;
    ++at;  // the dot
  }
}

}  // namespace weir::config
