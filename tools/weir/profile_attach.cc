// `weir profile attach`: a profiler for a server that runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/errors.h"
#include "core/cluster/server.h"
#include "core/config/settings.h"
#include "core/door/transports.h"
#include "core/io/files.h"
#include "tools/weir/cluster_commands.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

constexpr std::chrono::seconds kAnswerLimit{60};  // beyond the time of the recording
constexpr size_t kShownHolders = 20;

/// The memory of the server's devices and who holds it.
void ShowMemory(const session::MemoryReport& memory, const Console& console, Json& report) {
  const auto text = [](uint64_t bytes) { return BytesText(static_cast<double>(bytes)); };
  Table devices({"device", "in use", "peak", "reserved", "variables", "steps", "free of total"});
  report["memory"] = Json::array();
  for (const session::MemoryReport::OnDevice& on : memory.devices) {
    Json row = {{"device", on.device},         {"in_use", on.all.in_use},   {"peak", on.all.peak},
                {"reserved", on.all.reserved}, {"variables", on.variables}, {"steps", on.steps}};
    if (on.reported) row["device_free"] = on.reported->free;
    if (on.reported) row["device_total"] = on.reported->total;
    report["memory"].push_back(std::move(row));
    devices.Add({on.device, text(on.all.in_use), text(on.all.peak), text(on.all.reserved), text(on.variables),
                 text(on.steps), on.reported ? text(on.reported->free) + " of " + text(on.reported->total) : "-"});
  }
  console.Print(devices);
  report["holders"] = Json::array();
  Table holders({"bytes", "held by", "on"});
  for (size_t i = 0; i < memory.holders.size(); ++i) {
    const session::MemoryReport::Holder& holder = memory.holders[i];
    report["holders"].push_back({{"what", holder.what}, {"device", holder.device}, {"bytes", holder.bytes}});
    if (i < kShownHolders) holders.Add({text(holder.bytes), holder.what, holder.device});
  }
  if (!memory.holders.empty()) console.Print(holders);
}

}  // namespace

Status AttachProfiler(const AttachOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const auto runtime, session::Runtime::For({}));
  WEIR_ASSIGN(const config::Loaded loaded, config::Load(options.sources));
  WEIR_ASSIGN(const config::Config config, loaded.settings.Build());
  const size_t mark = options.address.find("://");
  const std::string scheme = mark == std::string::npos ? "weir" : options.address.substr(0, mark);
  const std::string address = mark == std::string::npos ? options.address : options.address.substr(mark + 3);
  WEIR_ASSIGN(const auto transport, door::TransportOf(scheme, *runtime));
  WEIR_ASSIGN(const cluster::LocalEnd self, cluster::EndFrom(config.cluster, {}, cluster::RandomId()));
  WEIR_ASSIGN(const auto master, transport->ConnectMaster(address, self));
  const cluster::Clock::time_point now = cluster::Clock::now();
  // A server that cannot be reached is told at once.
  WEIR_ASSIGN(const cluster::ServerView view, cluster::AskServer(*master, {}, now + kAnswerLimit));
  const std::chrono::milliseconds time(static_cast<int64_t>(options.seconds * 1000));
  WEIR_ASSIGN(const cluster::ServerProfile profile,
              cluster::ProfileServer(*master, time, cluster::Clock::now() + time + kAnswerLimit));
  report["task"] = view.task.ToString();
  report["address"] = address;
  report["seconds"] = options.seconds;
  report["parts"] = profile.parts;
  report["dropped"] = profile.dropped;
  if (!options.out.empty()) WEIR_TRY(io::WriteFileAtomically(options.out, profile.chrome_trace));
  console.Print(fmt::format("{} at {}, {} s", view.task.ToString(), address, options.seconds));
  if (profile.parts > 0) {
    WEIR_TRY(SummarizeTrace(profile.chrome_trace, options.by,
                            fmt::format("the recording of {} at {}", view.task.ToString(), address), console, report));
  } else {
    report["lines"] = Json::array();
    console.Print("no step ran in this time");
  }
  if (profile.dropped > 0) console.Print(fmt::format("{} parts of steps more did not fit", profile.dropped));
  ShowMemory(profile.memory, console, report);
  return Status();
}

}  // namespace weir::cli
