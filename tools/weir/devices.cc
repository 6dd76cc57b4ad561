#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/session/remote_devices.h"
#include "core/session/runtime.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

struct FlagName {
  uint32_t flag;
  const char* name;
};
constexpr FlagName kFlags[] = {
    {WEIR_DEVICE_SYNC_ONLY, "sync_only"},
    {WEIR_DEVICE_UNIFIED_MEMORY, "unified_memory"},
    {WEIR_DEVICE_MUST_GROW, "must_grow"},
    {WEIR_DEVICE_SELF_POOL, "self_pool"},
    {WEIR_DEVICE_NO_OFFSET, "no_offset"},
    {WEIR_DEVICE_GRAPH_CAPTURE, "graph_capture"},
    {WEIR_DEVICE_PEER, "peer"},
    {WEIR_DEVICE_IMPORT_FD, "import_fd"},
    {WEIR_DEVICE_ORDERED_ALLOC, "ordered_alloc"},
    {WEIR_DEVICE_OPT_IN, "opt_in"},
};

std::vector<std::string> FlagsOf(uint32_t flags) {
  std::vector<std::string> names;
  for (const FlagName& known : kFlags) {
    if ((flags & known.flag) != 0) names.emplace_back(known.name);
  }
  return names;
}

/// True if a calibration file replaces the rates of the plugin's profile. Opens the CPU, no other device.
bool IsMeasured(device::Device& device) {
  const weir_profile* const profile = device.info().kind == "CPU" ? device.profile() : nullptr;
  return profile != nullptr && profile->provenance == WEIR_PROVENANCE_CALIBRATED;
}

/// Where the devices of other processes are, and what the way there costs.
void ShowServers(const session::Runtime& runtime, const Console& console, Json& report) {
  report["remote"] = Json::array();
  if (runtime.remote == nullptr) return;
  Table table({"remote devices", "address", "latency", "bandwidth", "state"});
  for (const session::RemoteServer& server : runtime.remote->servers()) {
    const bool there = server.status.ok();
    Json row = {{"address", server.address}, {"devices", server.task}, {"reached", there}};
    if (there) {
      row["link"] = {{"latency_us", server.latency_us}, {"gbps", server.gbps}, {"measured", true}};
    } else {
      row["error"] = server.status.message();
    }
    report["remote"].push_back(std::move(row));
    table.Add({server.task, server.address, there ? fmt::format("{:.1f} us", server.latency_us) : "",
               there ? fmt::format("{:.2f} GB/s", server.gbps) : "",
               there ? "measured" : std::string(server.status.message())});
  }
  console.Print(table);
}

}  // namespace

Status ShowDevices(const Console& console, Json& report) {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  report["devices"] = Json::array();
  Table table({"device", "kind", "platform", "plugin", "memory", "what", "flags"});
  for (const auto& device : runtime->plugins->devices().all()) {
    const device::DeviceInfo& info = device->info();
    const std::vector<std::string> flags = FlagsOf(info.flags);
    report["devices"].push_back({{"name", device->name()},
                                 {"kind", info.kind},
                                 {"platform", info.platform},
                                 {"plugin", info.plugin},
                                 {"memory_bytes", info.memory_bytes},
                                 {"alignment", info.alignment},
                                 {"largest_allocation", info.largest_allocation},
                                 {"flags", flags},
                                 {"description", info.display_name},
                                 {"measured", IsMeasured(*device)},
                                 {"driver_version", info.driver_version},
                                 {"address", info.elsewhere},
                                 {"uid", info.uid}});
    table.Add({device->name(), info.kind, info.platform, info.plugin, BytesText(static_cast<double>(info.memory_bytes)),
               info.display_name + (IsMeasured(*device) ? ", measured" : ""),
               fmt::format("{}", fmt::join(flags, " "))});
  }
  // A plugin that was built may fail to load, and one that loads may find no hardware.
  report["compiled"] = Json::array();
  report["loaded"] = Json::array();
  for (const plugin::FileReport& file : runtime->plugins->files()) {
    if (file.verdict == plugin::Verdict::kNotAPlugin) continue;
    report["compiled"].push_back(file.name);
    if (file.verdict == plugin::Verdict::kLoaded) report["loaded"].push_back(file.name);
  }
  if (!report["devices"].empty()) {
    console.Print(table);
    ShowServers(*runtime, console, report);
  } else {
    console.Print(fmt::format("no device: no plugin in {} has one; `weir plugins --why` shows the reasons",
                              fmt::join(runtime->plugins->folders(), ", ")));
    for (const plugin::FileReport& file : runtime->plugins->files()) {
      if (file.failed()) console.Print(fmt::format("{}: {}", file.file, file.reason));
    }
  }
  PrintNotes(runtime->plugins->config_notes(), console, report);
  return Status();
}

}  // namespace weir::cli
