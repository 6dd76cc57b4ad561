#include "core/session/plan_file.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/errors.h"
#include "core/device/device_name.h"
#include "core/io/files.h"
#include "core/place/place.h"
#include "core/session/session.h"

namespace weir::session {
namespace {

using Json = nlohmann::json;
using Plan = std::map<std::string, std::string>;

Status AddEntry(const std::string& name, const Json& device, const std::string& source, Plan& plan) {
  if (!device.is_string()) {
    return InvalidArgument("{}: the device of '{}' is {}; wanted a text as \"/device:GPU:0\"", source, name,
                           device.type_name());
  }
  const std::string& text = device.get_ref<const std::string&>();
  if (const Result<device::DeviceName> parsed = device::ParseDeviceName(text); !parsed.ok()) {
    return parsed.status().Prepend(source + ": node '" + name + "': ");
  }
  const auto [entry, fresh] = plan.emplace(name, text);
  if (!fresh && entry->second != text) {
    return InvalidArgument("{}: '{}' has two devices, '{}' and '{}'", source, name, entry->second, text);
  }
  return Status();
}

}  // namespace

Result<Plan> ParsePlan(std::string_view text, const std::string& source) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return InvalidArgument("{}: not JSON", source);
  const Json* nodes = &json;
  if (json.is_object()) {
    const auto found = json.find("nodes");
    if (found == json.end()) return InvalidArgument("{}: wanted a field \"nodes\"", source);
    nodes = &*found;
  }
  Plan plan;
  if (nodes->is_object()) {
    for (const auto& [name, device] : nodes->items()) WEIR_TRY(AddEntry(name, device, source, plan));
    return plan;
  }
  if (!nodes->is_array()) return InvalidArgument("{}: wanted nodes as an object or a list", source);
  for (const Json& node : *nodes) {
    const bool named = node.is_object() && node.contains("name") && node["name"].is_string() && node.contains("device");
    if (!named) return InvalidArgument("{}: wanted nodes with the fields \"name\" and \"device\"", source);
    WEIR_TRY(AddEntry(node["name"], node["device"], source, plan));
  }
  return plan;
}

Result<Plan> ReadPlan(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kMaxBytes));
  return ParsePlan(text, path);
}

Status UsePlanFile(SessionOptions& options) {
  if (options.plan_file.empty()) return Status();
  auto placement = std::make_shared<place::PlaceOptions>();
  if (options.placement != nullptr) *placement = *options.placement;
  WEIR_ASSIGN((options.plan_decides ? placement->plan : placement->candidate), ReadPlan(options.plan_file));
  options.placement = std::move(placement);
  return Status();
}

}  // namespace weir::session
