#include "core/config/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/config/schema.h"

namespace weir::config {
namespace {

constexpr size_t kWidth = 120;

constexpr std::string_view kIntroduction =
    R"(# Every key of weir, commented out, with its default. Copy the keys you need into a file of your own:
#   /etc/weir/weir.toml, ~/.config/weir/weir.toml ($XDG_CONFIG_HOME), or the file named by WEIR_CONFIG or --config.
# Sources, highest priority first: the program's options, --set a.b=c, files (a later one of the list above overrides an
# earlier one), the environment variable named with each key, values declared by plugins, the defaults below.
# `weir config show --effective` prints the values in force and their sources. Unknown keys and wrong types are errors.
# ConfigProto's keys have ConfigProto's meaning.
)";

// An example for the star in a path.
std::string Example(const Key& key, std::string_view table) {
  if (table == "placement.pin") return "^tower_0/";
  if (table == "placement.alias") return "FAST";
  if (table.ends_with("peak_gflops")) return "f32";
  if (key.star == Star::kLink) return "CPU:0->GPU:0";
  if (key.star == Star::kDevice) return key.path.ends_with("visible_device_list") ? "NPU" : "GPU:0";
  return "CPU";
}

// The key's path with stars replaced by examples; arrays of tables keep their star.
Path ExamplePath(const Key& key) {
  Path path;
  std::string_view rest = key.path;
  while (true) {
    const size_t dot = rest.find('.');
    std::string name(rest.substr(0, dot));
    if (name == "*" && key.star != Star::kIndex) name = Example(key, ToString(path));
    path.push_back(std::move(name));
    if (dot == std::string_view::npos) return path;
    rest.remove_prefix(dot + 1);
  }
}

std::string Header(const Path& path) {
  Path table(path.begin(), path.end() - 1);
  if (table.empty()) return "";
  if (table.back() != "*") return fmt::format("[{}]", ToString(table));
  table.pop_back();
  return fmt::format("[[{}]]", ToString(table));
}

std::string ExampleValue(const Key& key, Path path) {
  std::replace(path.begin(), path.end(), std::string("*"), std::string("0"));
  if (path.size() > 1 && path[1] == "pin") return "\"/device:GPU:0\"";
  if (path.size() > 1 && path[1] == "alias") return R"(["/device:GPU:0", "/device:CPU:0"])";
  Config fresh;
  const Value value = Load(key.field(fresh, path));
  return path.front() == "device_count" ? "1" : ToToml(value);
}

std::string Wrapped(std::string text) {
  std::string lines;
  while (text.size() + 2 > kWidth) {
    const size_t blank = text.rfind(' ', kWidth - 2);
    lines += "# " + text.substr(0, blank) + "\n";
    text.erase(0, blank + 1);
  }
  return lines + "# " + text + "\n";
}

std::string About(const Key& key) {
  std::string text(key.doc);
  const std::string wanted = Wanted(key);
  text += fmt::format(" ({}{})", wanted, EnvironmentName(key).empty() ? "" : "; " + EnvironmentName(key));
  if (key.effect == Effect::kHint) text += " Accepted, without effect.";
  if (key.effect == Effect::kNotYet) text += " Not in this version: only the default is accepted.";
  return Wrapped(std::move(text));
}

}  // namespace

std::string Document() {
  std::string text(kIntroduction);
  std::string header;
  for (const Key& key : Schema()) {
    const Path path = ExamplePath(key);
    if (const std::string next = Header(path); next != header) {
      header = next;
      text += fmt::format("\n#{}\n", header);
    } else {
      text += "\n";
    }
    text += About(key) + fmt::format("#{} = {}\n", QuotedName(path.back()), ExampleValue(key, path));
  }
  text += R"(
# A table for each plugin, with its options; `weir config show --effective` lists them. The environment variables
# WEIR_<PLUGIN>_<KEY>, in capitals, set them too.
#[plugin.NAME]
)";
  return text;
}

std::vector<Shown> List(const Config& config, Show show) {
  std::vector<Shown> list;
  Config readable = config;
  ForEachField(readable, [&](const Key& key, const Path& path, Field field) {
    const std::string name = ToString(path);
    const auto origin = config.origins.find(name);
    const bool named = key.path.find('*') != std::string_view::npos;  // an entry without an origin does not exist
    if (origin == config.origins.end() && (show == Show::kSet || named)) return;
    list.push_back({name, Load(field), origin == config.origins.end() ? Origin().ToString() : origin->second.ToString(),
                    key.effect});
  });
  for (const auto& [plugin, table] : config.plugin) {
    for (const auto& [key, setting] : table) {
      list.push_back({ToString({"plugin", plugin, key}), setting.given.value, setting.origin.ToString()});
    }
  }
  return list;
}

}  // namespace weir::config
