#include "core/plugin/options.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/base/nearest.h"
#include "core/config/schema.h"
#include "core/config/value.h"
#include "core/kernel/host.h"

namespace weir::plugin {
namespace {

using config::Given;
using config::Origin;
using config::Source;
using config::Value;
using kernel::Text;

// The option that passes `plugins.isa` to a plugin whose kernels select their instructions themselves.
constexpr std::string_view kIsaOption = "isa";

std::optional<Value> DefaultOf(const weir_option_spec& spec) {
  switch (spec.type) {
    case WEIR_VALUE_INT:
      return Value(spec.default_value.value.i);
    case WEIR_VALUE_FLOAT:
      return Value(spec.default_value.value.f);
    case WEIR_VALUE_BOOL:
      return Value(spec.default_value.value.i != 0);
    case WEIR_VALUE_STRING:
      return Value(std::string(Text(spec.default_value.value.s)));
    default:
      return std::nullopt;
  }
}

bool InRange(const weir_option_spec& spec, const Value& value) {
  if (spec.struct_size < sizeof(weir_option_spec) || spec.has_range == 0) return true;
  double number = 0;
  if (const int64_t* i = std::get_if<int64_t>(&value)) {
    number = static_cast<double>(*i);
  } else if (const double* f = std::get_if<double>(&value)) {
    number = *f;
  } else {
    return true;
  }
  return number >= spec.minimum && number <= spec.maximum;
}

std::string Wanted(const weir_option_spec& spec) {
  const char* type = spec.type == WEIR_VALUE_INT     ? "an integer"
                     : spec.type == WEIR_VALUE_FLOAT ? "a number"
                     : spec.type == WEIR_VALUE_BOOL  ? "true or false"
                                                     : "a string";
  if (spec.struct_size < sizeof(weir_option_spec) || spec.has_range == 0) return type;
  return fmt::format("{} from {} to {}", type, spec.minimum, spec.maximum);
}

// Checks that the plugin's declaration of an option is usable.
Status CheckSpec(const weir_option_spec& spec, const Value& standard) {
  const std::string_view key = Text(spec.key);
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  if (key.empty() || !std::all_of(key.begin(), key.end(), fits)) {
    return FailedPrecondition("its option '{}': a key has letters, digits and '_', '-', '.' only", LegibleLine(key));
  }
  const bool ranged = spec.struct_size >= sizeof(weir_option_spec) && spec.has_range != 0;
  if (ranged && !(spec.minimum <= spec.maximum)) {
    return FailedPrecondition("its option '{}' has no values: they go from {} to {}", key, spec.minimum, spec.maximum);
  }
  if (InRange(spec, standard)) return {};
  return FailedPrecondition("its option '{}': wanted {}, but its default is {}", key, Wanted(spec),
                            config::Describe(standard));
}

Status UnknownOption(const std::string& plugin, const std::string& key, const Origin& origin,
                     const std::vector<PluginOption>& known) {
  std::vector<std::string_view> names;
  for (const PluginOption& option : known) names.push_back(option.key);
  std::string listed;
  for (const std::string_view name : names) listed += (listed.empty() ? "" : ", ") + std::string(name);
  return InvalidArgument("{}: plugin '{}' has no option '{}'{}; it has {}", origin.ToString(), plugin, key,
                         NearestHint(key, names), listed.empty() ? "none" : listed);
}

}  // namespace

std::string VariableOf(std::string_view plugin, std::string_view key) {
  std::string name = fmt::format("WEIR_{}_{}", plugin, key);
  for (char& c : name) {
    const auto code = static_cast<unsigned char>(c);
    c = std::isalnum(code) != 0 ? static_cast<char>(std::toupper(code)) : '_';
  }
  return name;
}

Result<std::shared_ptr<const PluginOptions>> PluginOptions::Resolve(const weir_plugin& plugin,
                                                                    const config::Config& config) {
  auto made = std::make_shared<PluginOptions>();
  const std::string name(Text(plugin.name));
  for (uint64_t i = 0; plugin.options != nullptr && i < plugin.option_count; ++i) {
    const weir_option_spec* spec = plugin.options[i];
    if (spec == nullptr || spec->struct_size < offsetof(weir_option_spec, minimum)) continue;
    std::optional<Value> standard = DefaultOf(*spec);
    if (!standard) continue;
    WEIR_TRY(CheckSpec(*spec, *standard));
    made->all_.push_back({std::string(Text(spec->key)), std::string(Text(spec->doc)), std::move(*standard),
                          Origin{.source = Source::kPlugin}});
    made->specs_.push_back(spec);
  }
  static const std::map<std::string, config::PluginSetting> kNoTable;
  const auto found = config.plugin.find(name);
  std::map<std::string, config::PluginSetting> table = found == config.plugin.end() ? kNoTable : found->second;
  for (size_t i = 0; i < made->all_.size(); ++i) {
    PluginOption& option = made->all_[i];
    const std::string variable = VariableOf(name, option.key);
    const auto set = config.environment.find(variable);
    config::PluginSetting setting;
    if (const auto entry = table.find(option.key); entry != table.end()) {
      setting = entry->second;
      table.erase(entry);
    } else if (set != config.environment.end()) {
      setting = {{set->second, true}, {Source::kEnvironment, variable}};
    } else if (option.key == kIsaOption && std::holds_alternative<std::string>(option.value)) {
      const auto origin = config.origins.find("plugins.isa");
      setting = {{config.plugins.isa.value(), false}, origin == config.origins.end() ? option.origin : origin->second};
    } else {
      continue;
    }
    std::optional<Value> value = config::ReadLike(setting.given, option.value);
    if (!value || !InRange(*made->specs_[i], *value)) {
      return InvalidArgument("{}: plugin.{}.{}: wanted {}, got {}", setting.origin.ToString(), name, option.key,
                             Wanted(*made->specs_[i]), config::Describe(value ? *value : setting.given.value));
    }
    option.value = std::move(*value);
    option.origin = setting.origin;
  }
  if (!table.empty()) return UnknownOption(name, table.begin()->first, table.begin()->second.origin, made->all_);
  return std::shared_ptr<const PluginOptions>(std::move(made));
}

std::vector<weir_opt> PluginOptions::View() const {
  std::vector<weir_opt> options;
  for (size_t i = 0; i < all_.size(); ++i) {
    weir_opt option = specs_[i]->default_value;
    option.key = specs_[i]->key;
    option.type = specs_[i]->type;
    const Value& value = all_[i].value;
    if (const bool* b = std::get_if<bool>(&value)) option.value.i = *b ? 1 : 0;
    if (const int64_t* n = std::get_if<int64_t>(&value)) option.value.i = *n;
    if (const double* f = std::get_if<double>(&value)) option.value.f = *f;
    if (const std::string* s = std::get_if<std::string>(&value)) option.value.s = kernel::ViewOf(std::string_view(*s));
    options.push_back(option);
  }
  return options;
}

Status PluginOptions::CheckSame(const PluginOptions& other) const {
  for (size_t i = 0; i < all_.size() && i < other.all_.size(); ++i) {
    if (all_[i].value == other.all_[i].value) continue;
    return InvalidArgument(
        "{}: option '{}'{} is {}, but the plugin was started with {} in this process, and that cannot change",
        other.all_[i].origin.ToString(), all_[i].key, all_[i].key == kIsaOption ? " (plugins.isa)" : "",
        config::ToToml(other.all_[i].value), config::ToToml(all_[i].value));
  }
  return {};
}

}  // namespace weir::plugin
