#include "core/kernel/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/io/files.h"

namespace weir::kernel {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kMaxPoints = 100000;
constexpr uint64_t kMaxFileBytes = 64 << 20;
constexpr size_t kMaxInputs = 64;

/// Null if the field is missing or has another kind.
const Json* Field(const Json& object, const char* name, Json::value_t kind) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) return nullptr;
  const bool integer = kind == Json::value_t::number_unsigned && found->is_number_unsigned();
  return integer || found->type() == kind ? &*found : nullptr;
}

using Settings = std::map<std::string, std::string>;

std::string KeyOf(std::string_view op, DType dtype, const std::vector<std::string>& flags, const Settings& settings,
                  const std::vector<size_t>& constants) {
  std::string key = fmt::format("{} {} {} {}", op, Name(dtype), fmt::join(flags, ","), fmt::join(constants, ","));
  for (const auto& [name, value] : settings) key += fmt::format(" {}={}", name, value);
  return key;
}

bool IsSetting(const op::AttrDef& attr) { return attr.type == "string" || attr.type == "list(int)"; }

/// The text of a setting: of an attribute, or of a point.
Result<std::string> SettingText(const Json& value) {
  if (value.is_string()) return op::AttrValue(value.get<std::string>()).ToString();
  const auto is_integer = [](const Json& element) { return element.is_number_integer(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_integer)) {
    return InvalidArgument("a setting is neither a text nor a list of integers");
  }
  return op::AttrValue(value.get<std::vector<int64_t>>()).ToString();
}

/// Distance of two shapes: the largest ratio of extents as a power of two; infinity if they are not comparable.
double Distance(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return std::numeric_limits<double>::infinity();
  double distance = 0;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) == b.dim(i)) continue;
    if (a.dim(i) == 0 || b.dim(i) == 0) return std::numeric_limits<double>::infinity();
    distance = std::max(distance,
                        std::abs(std::log2(static_cast<double>(a.dim(i))) - std::log2(static_cast<double>(b.dim(i)))));
  }
  return distance;
}

Result<Shape> ParseShape(const Json& dims) {
  if (!dims.is_array() || dims.size() > static_cast<size_t>(kMaxRank)) return InvalidArgument("a shape is no list");
  std::vector<int64_t> extents;
  for (const Json& dim : dims) {
    if (!dim.is_number_integer()) return InvalidArgument("an extent is no integer");
    extents.push_back(dim.get<int64_t>());
  }
  return Shape::Make(extents);
}

bool IsPositive(const Json& figure) {
  return figure.is_number() && figure.get<double>() > 0 && std::isfinite(figure.get<double>());
}

struct Parsed {
  std::string key;
  std::vector<Shape> inputs;
  std::map<std::string, double, std::less<>> ns;
};

Result<Parsed> ParsePoint(const Json& point) {
  const Json* op = Field(point, "op", Json::value_t::string);
  const Json* dtype = Field(point, "dtype", Json::value_t::string);
  const Json* flags = Field(point, "flags", Json::value_t::array);
  const Json* inputs = Field(point, "inputs", Json::value_t::array);
  const Json* constants = Field(point, "constant", Json::value_t::array);
  const Json* ns = Field(point, "ns", Json::value_t::object);
  if (!op || !dtype || !flags || !inputs || !constants || !ns) {
    return InvalidArgument("wanted op and dtype (texts), flags, inputs and constant (lists) and ns (an object)");
  }
  const std::optional<DType> type = ParseDType(dtype->get_ref<const std::string&>());
  if (!type) return InvalidArgument("'{}' is no element type", dtype->get_ref<const std::string&>());
  if (inputs->size() > kMaxInputs) return InvalidArgument("{} inputs, at most {} fit", inputs->size(), kMaxInputs);
  Parsed parsed;
  std::vector<std::string> names;
  for (const Json& flag : *flags) {
    if (!flag.is_string()) return InvalidArgument("a flag is no text");
    names.push_back(flag.get<std::string>());
  }
  std::sort(names.begin(), names.end());
  std::vector<size_t> known;
  for (const Json& input : *constants) {
    if (!input.is_number_unsigned() || input.get<uint64_t>() >= inputs->size()) {
      return InvalidArgument("constant names an input that is not there");
    }
    known.push_back(input.get<size_t>());
  }
  std::sort(known.begin(), known.end());
  for (const Json& dims : *inputs) {
    WEIR_ASSIGN(Shape shape, ParseShape(dims));
    parsed.inputs.push_back(std::move(shape));
  }
  for (const auto& [plugin, time] : ns->items()) {
    if (!IsPositive(time)) {
      return InvalidArgument("the time of {} is not positive", plugin);
    }
    parsed.ns.emplace(plugin, time.get<double>());
  }
  Settings settings;
  if (const auto given = point.find("settings"); given != point.end()) {
    if (!given->is_object()) return InvalidArgument("the settings are no object");
    for (const auto& [name, value] : given->items()) {
      WEIR_ASSIGN(settings[name], SettingText(value));
    }
  }
  parsed.key = KeyOf(op->get_ref<const std::string&>(), *type, names, settings, known);
  return parsed;
}

Result<device::CostFigures> ParseRates(const Json& rates) {
  device::CostFigures figures;
  for (const auto& [name, rate] : rates.items()) {
    if (!IsPositive(rate)) return InvalidArgument("rate {} is not positive", name);
    const auto value = rate.get<double>();
    if (name == "memory") {
      figures.bandwidth_bytes_per_ns = value;
    } else if (name == "cache") {
      figures.cache_bandwidth_bytes_per_ns = value;
    } else if (const std::optional<DType> type = ParseDType(name)) {
      figures.peak_flops_per_ns[static_cast<int>(*type)] = value;
    } else {
      return InvalidArgument("'{}' is no rate: wanted memory, cache or an element type", name);
    }
  }
  return figures;
}

}  // namespace

Result<std::shared_ptr<const Calibration>> Calibration::Parse(std::string_view text, const std::string& source) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidArgument("{}: not a JSON text; `weir profile calibrate` writes one", source);
  const Json* version = Field(json, "weir_calibration", Json::value_t::number_unsigned);
  if (version == nullptr || version->get<uint64_t>() != kVersion) {
    return InvalidArgument("{}: wanted \"weir_calibration\": {}; `weir profile calibrate` writes such a file", source,
                           kVersion);
  }
  const Json* points = Field(json, "points", Json::value_t::array);
  if (points == nullptr) return InvalidArgument("{}: the list \"points\" is missing", source);
  if (points->size() > kMaxPoints) {
    return InvalidArgument("{}: {} points, at most {} are read", source, points->size(), kMaxPoints);
  }
  auto calibration = std::make_shared<Calibration>();
  if (const Json* device = Field(json, "device", Json::value_t::string)) calibration->device_ = *device;
  if (const Json* plugins = Field(json, "plugins", Json::value_t::object)) {
    for (const auto& [name, plugin_version] : plugins->items()) {
      if (!plugin_version.is_string()) return InvalidArgument("{}: the version of {} is no text", source, name);
      calibration->plugins_.emplace(name, plugin_version);
    }
  }
  if (const Json* rates = Field(json, "rates", Json::value_t::object)) {
    Result<device::CostFigures> figures = ParseRates(*rates);
    if (!figures.ok()) return InvalidArgument("{}: {}", source, figures.status().message());
    calibration->rates_ = std::move(*figures);
  }
  for (size_t i = 0; i < points->size(); ++i) {
    Result<Parsed> parsed = ParsePoint((*points)[i]);
    if (!parsed.ok()) return InvalidArgument("{}: point {}: {}", source, i, parsed.status().message());
    calibration->points_.emplace(std::move(parsed->key), Point{std::move(parsed->inputs), std::move(parsed->ns)});
  }
  return std::shared_ptr<const Calibration>(std::move(calibration));
}

Result<std::shared_ptr<const Calibration>> Calibration::Read(const std::string& path) {
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kMaxFileBytes));
  return Parse(text, path);
}

std::vector<double> Calibration::Times(const op::AttrView& attrs, std::span<const OperandSpec> inputs,
                                       std::span<const std::string> plugins) const {
  if (inputs.empty() || points_.empty()) return {};
  std::vector<std::string> flags;
  Settings settings, given_by_fusion;  // the second: those of the fused op only
  for (const op::AttrDef& attr : attrs.def().attrs) {
    const op::AttrValue* const value = attrs.Find(attr.name);
    // Two forms of an empty list have one text.
    if (value == nullptr || value->ToString() == attr.default_value.ToString()) continue;
    if (const bool* const flag = value->get<bool>(); flag != nullptr && *flag) flags.push_back(attr.name);
    if (!IsSetting(attr)) continue;
    const auto gives = [&](const op::FusedExpression& row) {
      return std::ranges::any_of(row.attrs, [&](const auto& own) { return own.first == attr.name; });
    };
    (std::ranges::any_of(attrs.def().computes, gives) ? given_by_fusion : settings)[attr.name] = value->ToString();
  }
  std::sort(flags.begin(), flags.end());
  std::vector<size_t> constants;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value != nullptr) constants.push_back(i);
  }
  Settings all = settings;
  all.insert(given_by_fusion.begin(), given_by_fusion.end());
  const DType dtype = inputs[0].dtype;
  std::vector<double> times = Nearest(KeyOf(attrs.def().name, dtype, flags, all, constants), inputs, plugins);
  const auto& [base, count] = attrs.def().measured_as;
  const auto operands = static_cast<size_t>(count);
  if (!times.empty() || base.empty() || operands >= inputs.size()) return times;
  std::erase_if(constants, [&](size_t i) { return i >= operands; });
  return Nearest(KeyOf(base, dtype, flags, settings, constants), inputs.first(operands), plugins);
}

std::vector<double> Calibration::Nearest(const std::string& key, std::span<const OperandSpec> inputs,
                                         std::span<const std::string> plugins) const {
  const auto [begin, end] = points_.equal_range(key);
  const Point* nearest = nullptr;
  double least = 1;
  for (auto at = begin; at != end; ++at) {
    const Point& point = at->second;
    const bool complete = std::all_of(plugins.begin(), plugins.end(),
                                      [&](const std::string& plugin) { return point.ns.contains(plugin); });
    if (!complete || point.inputs.size() != inputs.size()) continue;
    double distance = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      distance = std::max(distance, Distance(inputs[i].shape, point.inputs[i]));
    if (distance > least || (nearest != nullptr && distance == least)) continue;
    nearest = &point;
    least = distance;
  }
  std::vector<double> times;
  if (nearest != nullptr) {
    for (const std::string& plugin : plugins) times.push_back(nearest->ns.find(plugin)->second);
  }
  return times;
}

}  // namespace weir::kernel
