// `weir profile record` and `clear`, and the other commands for files of times from runs (core/kernel/measured.h).
#include "tools/weir/profile_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/session/options.h"
#include "core/session/profiles.h"
#include "core/session/session.h"
#include "tools/weir/run_request.h"

namespace weir::cli {
namespace {

using kernel::MeasuredCosts;

std::string NsText(double ns) {
  if (ns < 1e3) return fmt::format("{:.3g} ns", ns);
  return ns < 1e6 ? fmt::format("{:.3g} us", ns / 1e3) : fmt::format("{:.3g} ms", ns / 1e6);
}

/// Adds `costs` to the file; a damaged one is replaced.
Status AddTo(const std::string& path, const MeasuredCosts& costs) {
  MeasuredCosts all;
  const Result<MeasuredCosts> before = MeasuredCosts::Read(path);
  if (before.ok()) all = *before;
  all.Merge(costs);
  return io::WriteFileAtomically(path, all.ToJson());
}

/// The part of `costs` that is about one kind of device; transfers go with each.
MeasuredCosts Part(const MeasuredCosts& costs, const std::string& fingerprint) {
  nlohmann::json json = nlohmann::json::parse(costs.ToJson());
  for (auto device = json["devices"].begin(); device != json["devices"].end();) {
    device = device.key() == fingerprint ? std::next(device) : json["devices"].erase(device);
  }
  const Result<MeasuredCosts> part = MeasuredCosts::Parse(json.dump(), fingerprint);
  return part.ok() ? *part : MeasuredCosts();
}

}  // namespace

Status RecordProfile(const ProfileOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const graph::Definition graph, ReadGraph(options.run.graph));
  WEIR_ASSIGN(const Request request, MakeRequest(options.run, graph));
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  session::SessionOptions session_options = session::SessionOptionsFrom(runtime->config);
  session_options.default_device = options.run.device;
  // The command's own output says where nodes are; several devices are worth a line of the session.
  session_options.profile_file.clear();  // declared times, beside which the new ones are kept
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session,
              session::Session::Make(std::move(runtime), graph, std::move(session_options)));
  for (const std::string& init : options.run.inits) {
    WEIR_TRY(session->Run(request.feeds, {}, std::span(&init, 1)).status());
  }
  WEIR_ASSIGN(const session::StepMeasurement measured,
              session->MeasureStep(request.feeds, request.fetches, options.run.targets, options.run.runs));
  WEIR_ASSIGN(const MeasuredCosts costs, MeasuredCosts::Parse(measured.profile, "the measurement"));
  std::vector<std::string> files;
  if (!options.out.empty()) {
    WEIR_TRY(AddTo(options.out, costs));
    files.push_back(options.out);
  }
  for (const auto& [fingerprint, device] : costs.devices()) {
    if (!options.out.empty()) break;
    const std::string path = session::MeasuredPath(fingerprint, io::CacheUse::kWrite);
    if (path.empty()) return FailedPrecondition("there is no cache folder of this user; name a file with --out");
    WEIR_TRY(AddTo(path, Part(costs, fingerprint)));
    files.push_back(path);
  }
  report["files"] = files;
  report["times"] = costs.size();
  report["runs"] = measured.runs;
  report["step_us"] = static_cast<double>(measured.step_ns) / 1e3;
  report["predicted_us"] = static_cast<double>(measured.predicted_ns) / 1e3;
  console.Print(fmt::format("measured {}/step over {} runs, predicted {}",
                            NsText(static_cast<double>(measured.step_ns)), measured.runs,
                            NsText(static_cast<double>(measured.predicted_ns))));
  for (const std::string& file : files) console.Print(fmt::format("wrote {} times to {}", costs.size(), file));
  if (files.empty()) console.Print("no kernel was measured: none has known shapes");
  return Status();
}

Status ClearProfiles(const ProfileOptions& /*options*/, const Console& console, Json& report) {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  std::set<std::string> paths;
  for (const auto& device : runtime->plugins->devices().all()) {
    paths.insert(session::MeasuredPath(kernel::FingerprintOf(device->info()), io::CacheUse::kRead));
    paths.insert(session::ProfilePath(device->info().display_name, io::CacheUse::kRead));
  }
  report["removed"] = Json::array();
  for (const std::string& path : paths) {
    if (path.empty() || std::remove(path.c_str()) != 0) continue;
    report["removed"].push_back(path);
    console.Print("removed " + path);
  }
  if (report["removed"].empty()) console.Print("there is no profile of the devices here");
  return Status();
}

Result<bool> IsMeasuredFile(const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kMostBytes));
  return MeasuredCosts::IsMeasured(text);
}

Status ShowMeasuredFile(const std::string& path, const Console& console, Json& report) {
  WEIR_ASSIGN(const MeasuredCosts costs, MeasuredCosts::Read(path));
  report["devices"] = Json::array();
  for (const auto& [name, device] : costs.devices()) {
    Table table({"kernel", "n", "median", "spread", "least", "declared"});
    Json kernels = Json::array();
    for (const auto& [key, time] : device.kernels) {
      kernels.push_back(
          {{"key", key}, {"n", time.n}, {"median_ns", time.median_ns}, {"declared_ns", time.declared_ns}});
      table.Add({key, std::to_string(time.n), NsText(time.median_ns), NsText(time.mad_ns), NsText(time.min_ns),
                 time.declared_ns > 0 ? NsText(time.declared_ns) : ""});
    }
    report["devices"].push_back({{"device", name}, {"gap_ns", device.gap_ns}, {"kernels", std::move(kernels)}});
    console.Print(fmt::format("{}, {} between two kernels", name, NsText(device.gap_ns)));
    console.Print(table);
  }
  report["links"] = Json::array();
  for (const auto& [name, transfers] : costs.transfers()) {
    const auto fit = costs.FindLink(name);
    report["links"].push_back({{"link", name}, {"transfers", transfers.size()}});
    console.Print(fmt::format(
        "{}: {} transfers{}", name, transfers.size(),
        fit ? fmt::format(", latency {}, {:.3g} bytes per ns", NsText(fit->latency_ns), fit->bytes_per_ns) : ""));
  }
  return Status();
}

Status MergeMeasuredFiles(const ProfileOptions& options, const Console& console, Json& report) {
  MeasuredCosts all;
  for (const std::string& file : options.files) {
    WEIR_ASSIGN(const MeasuredCosts costs, MeasuredCosts::Read(file));
    all.Merge(costs);
  }
  WEIR_TRY(io::WriteFileAtomically(options.out, all.ToJson()));
  report["file"] = options.out;
  report["times"] = all.size();
  console.Print(fmt::format("wrote {} times to {}", all.size(), options.out));
  return Status();
}

Status DiffMeasuredFiles(const ProfileOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const MeasuredCosts first, MeasuredCosts::Read(options.files.at(0)));
  WEIR_ASSIGN(const MeasuredCosts second, MeasuredCosts::Read(options.files.at(1)));
  std::map<std::pair<std::string, std::string>, std::pair<double, double>> times;  // by device and key; 0 = none
  for (const auto& [name, device] : first.devices()) {
    for (const auto& [key, time] : device.kernels) times[{name, key}].first = time.median_ns;
  }
  for (const auto& [name, device] : second.devices()) {
    for (const auto& [key, time] : device.kernels) times[{name, key}].second = time.median_ns;
  }
  Table table({"kernel", "device", "first", "second", "ratio"});
  report["times"] = Json::array();
  for (const auto& [what, ns] : times) {
    const double ratio = ns.first > 0 ? ns.second / ns.first : 0;
    report["times"].push_back({{"device", what.first},
                               {"kernel", what.second},
                               {"first_ns", ns.first > 0 ? Json(ns.first) : Json(nullptr)},
                               {"second_ns", ns.second > 0 ? Json(ns.second) : Json(nullptr)}});
    table.Add({what.second, what.first, ns.first > 0 ? NsText(ns.first) : "", ns.second > 0 ? NsText(ns.second) : "",
               ratio > 0 ? fmt::format("{:.2f}", ratio) : ""});
  }
  console.Print(table);
  return Status();
}

}  // namespace weir::cli
