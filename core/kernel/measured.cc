#include "core/kernel/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/errors.h"
#include "core/io/files.h"

namespace weir::kernel {
namespace {

using Json = nlohmann::json;

constexpr int kMeasuredVersion = 1;
constexpr size_t kMostTimes = 100'000;

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// False if the field is missing or no finite number from 0.
bool ReadTime(const Json& object, const char* name, double* out) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return false;
  *out = found->get<double>();
  return std::isfinite(*out) && *out >= 0;
}

Status ReadKernel(const Json& json, const std::string& where, MeasuredDevice& device) {
  if (!json.is_object() || !json.contains("key") || !json["key"].is_string()) {
    return InvalidArgument("{}: a kernel without a key", where);
  }
  const std::string key = json["key"];
  MeasuredTime time;
  if (!json.contains("n") || !json["n"].is_number_unsigned()) {
    return InvalidArgument("{}: '{}': wanted n as a number of samples", where, key);
  }
  time.n = json["n"].get<int64_t>();
  for (const auto& [name, field] :
       {std::pair("median_ns", &time.median_ns), std::pair("mad_ns", &time.mad_ns), std::pair("min_ns", &time.min_ns),
        std::pair("last_ns", &time.last_ns), std::pair("declared_ns", &time.declared_ns)}) {
    if (ReadTime(json, name, field)) continue;
    return InvalidArgument("{}: '{}': {} is {}; wanted a time from 0", where, key, name,
                           json.contains(name) ? json[name].dump() : "missing");
  }
  device.kernels[key] = time;
  return Status();
}

Status ReadDevice(const Json& json, const std::string& where, MeasuredDevice& device) {
  if (!json.is_object()) return InvalidArgument("{}: wanted an object", where);
  if (const auto plugins = json.find("plugins"); plugins != json.end() && plugins->is_object()) {
    for (const auto& [name, version] : plugins->items()) {
      if (!version.is_string()) return InvalidArgument("{}: the version of plugin '{}' is no text", where, name);
      device.plugins[name] = version;
    }
  }
  if (json.contains("gap_ns") && !ReadTime(json, "gap_ns", &device.gap_ns)) {
    return InvalidArgument("{}: gap_ns is {}; wanted a time from 0", where, json["gap_ns"].dump());
  }
  const auto kernels = json.find("kernels");
  if (kernels == json.end() || !kernels->is_array()) return InvalidArgument("{}: wanted a list of kernels", where);
  for (const Json& kernel : *kernels) WEIR_TRY(ReadKernel(kernel, where, device));
  return Status();
}

std::string_view OpOf(std::string_view key) { return key.substr(0, key.find(' ')); }

/// A key without the extents of its operands, and the number of their elements.
struct Extents {
  std::string rest;
  double elements = 0;
};

/// The elements of an operand such as "float[32,784]"; nullopt if the word is none.
std::optional<double> ElementsOf(std::string_view word) {
  const size_t open = word.find('[');
  if (open == 0 || open == std::string_view::npos || !word.ends_with(']')) return std::nullopt;
  if (word.substr(0, open).find('=') != std::string_view::npos) return std::nullopt;  // an attribute
  double elements = 1, extent = 0;
  for (const char c : word.substr(open + 1)) {
    if (c >= '0' && c <= '9') {
      extent = extent * 10 + (c - '0');
      continue;
    }
    if (c != ',' && c != ']') return std::nullopt;
    if (word[word.size() - 2] != '[') elements *= std::exchange(extent, 0);
  }
  return elements;
}

Extents ExtentsOf(std::string_view key) {
  Extents extents;
  bool operands = true;
  for (size_t at = key.find(' '); at != std::string_view::npos;) {
    const size_t next = key.find(' ', at + 1);
    const std::string_view word = key.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    const std::optional<double> elements = operands ? ElementsOf(word) : std::nullopt;
    operands = elements.has_value();
    extents.elements += elements.value_or(0);
    extents.rest += ' ';
    extents.rest += elements ? word.substr(0, word.find('[')) : word;
    at = next;
  }
  return extents;
}

}  // namespace

bool MeasuredCosts::IsMeasured(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() && json.contains("weir_measured");
}

Result<MeasuredCosts> MeasuredCosts::Parse(std::string_view text, const std::string& source) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return InvalidArgument("{}: not a JSON object", source);
  const auto version = json.find("weir_measured");
  if (version == json.end() || *version != kMeasuredVersion) {
    return InvalidArgument("{}: \"weir_measured\" is {}; wanted {}", source,
                           version == json.end() ? "missing" : version->dump(), kMeasuredVersion);
  }
  MeasuredCosts costs;
  const auto devices = json.find("devices");
  if (devices == json.end() || !devices->is_object()) return InvalidArgument("{}: wanted an object of devices", source);
  for (const auto& [name, device] : devices->items()) {
    WEIR_TRY(ReadDevice(device, fmt::format("{}: device '{}'", source, name), costs.devices_[name]));
  }
  if (costs.size() > kMostTimes) return InvalidArgument("{}: {} times; at most {}", source, costs.size(), kMostTimes);
  const auto links = json.find("links");
  if (links == json.end()) return costs;
  if (!links->is_object()) return InvalidArgument("{}: wanted an object of links", source);
  for (const auto& [name, transfers] : links->items()) {
    if (!transfers.is_array() || transfers.size() > kMostTransfers) {
      return InvalidArgument("{}: link '{}': wanted a list of at most {} transfers", source, name, kMostTransfers);
    }
    for (const Json& transfer : transfers) {
      const bool pair =
          transfer.is_array() && transfer.size() == 2 && transfer[0].is_number() && transfer[1].is_number();
      const double bytes = pair ? transfer[0].get<double>() : -1;
      const double ns = pair ? transfer[1].get<double>() : -1;
      if (!(std::isfinite(bytes) && bytes >= 0 && std::isfinite(ns) && ns >= 0)) {
        return InvalidArgument("{}: link '{}': {} is no transfer; wanted [bytes, ns]", source, name, transfer.dump());
      }
      costs.transfers_[name].emplace_back(bytes, ns);
    }
  }
  return costs;
}

Result<MeasuredCosts> MeasuredCosts::Read(const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kMostBytes));
  return Parse(text, path);
}

std::string MeasuredCosts::ToJson() const {
  Json json = {{"weir_measured", kMeasuredVersion}, {"devices", Json::object()}, {"links", Json::object()}};
  for (const auto& [name, device] : devices_) {
    Json kernels = Json::array();
    for (const auto& [key, time] : device.kernels) {
      kernels.push_back({{"key", key},
                         {"n", time.n},
                         {"median_ns", time.median_ns},
                         {"mad_ns", time.mad_ns},
                         {"min_ns", time.min_ns},
                         {"last_ns", time.last_ns},
                         {"declared_ns", time.declared_ns}});
    }
    json["devices"][name] = {{"plugins", device.plugins}, {"gap_ns", device.gap_ns}, {"kernels", std::move(kernels)}};
  }
  for (const auto& [name, transfers] : transfers_) json["links"][name] = transfers;
  return json.dump(1) + "\n";
}

void MeasuredCosts::Add(const std::string& device, const std::string& key, double ns, double declared_ns) {
  if (!std::isfinite(ns) || ns < 0) return;
  MeasuredTime& time = devices_[device].kernels[key];
  std::vector<double>& samples = samples_[device][key];
  if (samples.empty() && time.n > 0) {
    samples.assign(static_cast<size_t>(std::min<int64_t>(time.n, kMostSamples / 2)), time.median_ns);
  }
  if (samples.size() == kMostSamples) samples.erase(samples.begin());
  samples.push_back(ns);
  time.min_ns = time.n == 0 ? ns : std::min(time.min_ns, ns);
  ++time.n;
  time.last_ns = ns;
  time.median_ns = MedianOf(samples);
  std::vector<double> distances;
  for (const double sample : samples) distances.push_back(std::fabs(sample - time.median_ns));
  time.mad_ns = MedianOf(std::move(distances));
  if (std::isfinite(declared_ns) && declared_ns > 0) time.declared_ns = declared_ns;
}

void MeasuredCosts::AddTransfer(const std::string& link, uint64_t bytes, double ns) {
  if (!std::isfinite(ns) || ns < 0) return;
  auto& transfers = transfers_[link];
  if (transfers.size() == kMostTransfers) transfers.erase(transfers.begin());
  transfers.emplace_back(static_cast<double>(bytes), ns);
}

void MeasuredCosts::SetDevice(const std::string& device, std::map<std::string, std::string> plugins, double gap_ns) {
  devices_[device].plugins = std::move(plugins);
  devices_[device].gap_ns = std::isfinite(gap_ns) && gap_ns > 0 ? gap_ns : 0;
}

void MeasuredCosts::Merge(const MeasuredCosts& other) {
  for (const auto& [name, device] : other.devices_) {
    MeasuredDevice& mine = devices_[name];
    mine.plugins = device.plugins;
    mine.gap_ns = device.gap_ns;
    for (const auto& [key, time] : device.kernels) {
      const auto [kept, fresh] = mine.kernels.emplace(key, time);
      if (fresh || time.n < kept->second.n) continue;
      kept->second = time;
      samples_[name].erase(key);
    }
  }
  for (const auto& [link, transfers] : other.transfers_) {
    for (const auto& [bytes, ns] : transfers) AddTransfer(link, static_cast<uint64_t>(bytes), ns);
  }
}

const MeasuredTime* MeasuredCosts::Find(const std::string& device, const std::string& key) const {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return nullptr;
  const auto time = found->second.kernels.find(key);
  return time == found->second.kernels.end() || time->second.n < kEnough ? nullptr : &time->second;
}

double MeasuredCosts::Factor(const std::string& device, std::string_view op) const {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return 0;
  std::vector<double> ratios;
  for (const auto& [key, time] : found->second.kernels) {
    if (time.n >= kEnough && time.declared_ns > 0 && OpOf(key) == op)
      ratios.push_back(time.median_ns / time.declared_ns);
  }
  return MedianOf(std::move(ratios));
}

const std::string* MeasuredCosts::Outgrown(const std::string& device, const std::string& key) const {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return nullptr;
  const Extents asked = ExtentsOf(key);
  const std::string op = std::string(OpOf(key)) + ' ';
  const std::string* largest = nullptr;
  double most = 0;
  const auto& kernels = found->second.kernels;
  for (auto at = kernels.lower_bound(op); at != kernels.end() && at->first.starts_with(op); ++at) {
    const Extents recorded = ExtentsOf(at->first);
    if (recorded.rest != asked.rest) continue;
    if (recorded.elements >= asked.elements) return nullptr;
    if (largest != nullptr && recorded.elements <= most) continue;
    largest = &at->first;
    most = recorded.elements;
  }
  return largest;
}

double MeasuredCosts::GapNs(const std::string& device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? 0 : found->second.gap_ns;
}

std::optional<MeasuredCosts::Link> MeasuredCosts::FindLink(const std::string& link) const {
  const auto found = transfers_.find(link);
  if (found == transfers_.end() || found->second.size() < kEnough) return std::nullopt;
  const auto& transfers = found->second;
  const auto n = static_cast<double>(transfers.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [bytes, ns] : transfers) {
    x += bytes / n;
    y += ns / n;
  }
  for (const auto& [bytes, ns] : transfers) {
    xx += (bytes - x) * (bytes - x);
    xy += (bytes - x) * (ns - y);
  }
  Link fit;
  const double slope = xx > 0 ? xy / xx : 0;  // ns per byte
  if (slope > 0) fit.bytes_per_ns = 1 / slope;
  fit.latency_ns = std::max(y - std::max(slope, 0.0) * x, 0.0);
  return fit;
}

size_t MeasuredCosts::size() const {
  size_t count = 0;
  for (const auto& [name, device] : devices_) count += device.kernels.size();
  return count;
}

std::string FingerprintOf(const device::DeviceInfo& device) {
  const std::string& what = device.display_name.empty() ? device.class_id : device.display_name;
  return fmt::format("{} {}{}{}", device.kind, what, device.driver_version.empty() ? "" : " driver ",
                     device.driver_version);
}

std::string MeasuredKey(const op::AttrView& attrs, std::span<const OperandSpec> inputs) {
  std::string key = attrs.def().name;
  for (const OperandSpec& input : inputs) {
    key += fmt::format(" {}{}", Name(input.dtype), input.shape.ToString());
  }
  for (const op::AttrDef& attr : attrs.def().attrs) {
    const bool counts = attr.type == "bool" || attr.type == "int" || attr.type == "list(int)" || attr.type == "string";
    const op::AttrValue* const value = counts ? attrs.Find(attr.name) : nullptr;
    if (value == nullptr || attr.name == "shared_name" || attr.name == "container") continue;
    key += fmt::format(" {}={}", attr.name, value->ToString());
  }
  return key;
}

}  // namespace weir::kernel
