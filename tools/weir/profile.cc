// `weir profile`: files of measured kernel times (core/kernel/calibration.h).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/kernel/calibration.h"
#include "tools/weir/commands.h"
#include "tools/weir/profile_runs.h"

namespace weir::cli {
namespace {

/// One file. Points are keyed by everything but their times.
struct Profile {
  std::string machine;
  std::map<std::string, Json> points;
  Json measured;  // the fields device, plugins and rates, as far as the file has them
};

/// The text of a point without its times, which sorts by op: `MatMul float32 [32,784] [512,784] transpose_b`.
std::string KeyOf(const Json& point) {
  std::string key = fmt::format("{} {}", point["op"].get<std::string>(), point["dtype"].get<std::string>());
  size_t at = 0;
  for (const Json& dims : point["inputs"]) {
    const bool constant = std::ranges::find(point["constant"], Json(at++)) != point["constant"].end();
    key += (constant ? " constant " : " ") + dims.dump();
  }
  std::vector<std::string> flags = point["flags"];
  std::ranges::sort(flags);
  for (const std::string& flag : flags) key += " " + flag;
  return key;
}

Result<Profile> ReadProfile(const std::string& path) {
  WEIR_TRY(kernel::Calibration::Read(path).status());  // all checks
  constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kMaxBytes));
  const Json json = Json::parse(text, nullptr, false);
  Profile profile;
  if (json.contains("machine") && json["machine"].is_string()) profile.machine = json["machine"];
  for (const char* field : {"device", "plugins", "rates"}) {
    if (json.contains(field)) profile.measured[field] = json[field];
  }
  for (const Json& point : json["points"]) {
    Json& kept = profile.points.try_emplace(KeyOf(point), point).first->second;
    kept["ns"].update(point["ns"]);
  }
  return profile;
}

/// "412 us".
std::string TimeText(double ns) {
  if (ns < 1e3) return fmt::format("{:.3g} ns", ns);
  return ns < 1e6 ? fmt::format("{:.3g} us", ns / 1e3) : fmt::format("{:.3g} ms", ns / 1e6);
}

}  // namespace

Status ShowProfile(const ProfileOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const bool of_runs, IsMeasuredFile(options.files.front()));
  if (of_runs) return ShowMeasuredFile(options.files.front(), console, report);
  WEIR_ASSIGN(const Profile profile, ReadProfile(options.files.front()));
  std::set<std::string> plugins;
  for (const auto& [key, point] : profile.points) {
    for (const auto& [plugin, ns] : point["ns"].items()) plugins.insert(plugin);
  }
  std::vector<Cell> headings = {"op"};
  for (const std::string& plugin : plugins) headings.emplace_back(plugin);
  Table table(std::move(headings));
  report["machine"] = profile.machine;
  report["points"] = Json::array();
  for (const auto& [key, point] : profile.points) {
    std::string fastest;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [plugin, ns] : point["ns"].items()) {
      if (ns.get<double>() >= least) continue;
      least = ns;
      fastest = plugin;
    }
    Json row = point;
    row["fastest"] = fastest;
    report["points"].push_back(std::move(row));
    std::vector<Cell> cells = {key};
    for (const std::string& plugin : plugins) {
      const bool has = point["ns"].contains(plugin);
      cells.emplace_back(has ? TimeText(point["ns"][plugin]) : "", plugin == fastest ? Paint::kGood : Paint::kNone);
    }
    table.Add(std::move(cells));
  }
  console.Print(table);
  console.Print(
      fmt::format("{} points{}{}", profile.points.size(), profile.machine.empty() ? "" : " of ", profile.machine));
  return Status();
}

Status MergeProfiles(const ProfileOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const bool of_runs, IsMeasuredFile(options.files.front()));
  if (of_runs) return MergeMeasuredFiles(options, console, report);
  Profile merged;
  std::string from;  // the file that names the machine
  for (const std::string& file : options.files) {
    WEIR_ASSIGN(const Profile profile, ReadProfile(file));
    if (!profile.machine.empty() && !merged.machine.empty() && profile.machine != merged.machine) {
      return InvalidArgument("'{}' is of the machine '{}' and '{}' of '{}'; times of two machines do not compare", from,
                             merged.machine, file, profile.machine);
    }
    if (!profile.machine.empty() && merged.machine.empty()) {
      merged.machine = profile.machine;
      from = file;
    }
    if (!profile.measured.is_null()) merged.measured = profile.measured;
    for (const auto& [key, point] : profile.points) {
      merged.points.try_emplace(key, point).first->second["ns"].update(point["ns"]);
    }
  }
  Json json = {{"weir_calibration", 1}, {"machine", merged.machine}, {"points", Json::array()}};
  for (const auto& [key, point] : merged.points) json["points"].push_back(point);
  if (!merged.measured.is_null()) json.update(merged.measured);
  WEIR_TRY(io::WriteFileAtomically(options.out, json.dump(1) + "\n"));
  report["file"] = options.out;
  report["points"] = merged.points.size();
  console.Print(fmt::format("wrote {} points to {}", merged.points.size(), options.out));
  return Status();
}

Status DiffProfiles(const ProfileOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const bool of_runs, IsMeasuredFile(options.files.front()));
  if (of_runs) return DiffMeasuredFiles(options, console, report);
  WEIR_ASSIGN(const Profile first, ReadProfile(options.files.at(0)));
  WEIR_ASSIGN(const Profile second, ReadProfile(options.files.at(1)));
  std::map<std::pair<std::string, std::string>, std::pair<double, double>> times;  // by point and plugin; 0 = none
  for (const auto& [key, point] : first.points) {
    for (const auto& [plugin, ns] : point["ns"].items()) times[{key, plugin}].first = ns;
  }
  for (const auto& [key, point] : second.points) {
    for (const auto& [plugin, ns] : point["ns"].items()) times[{key, plugin}].second = ns;
  }
  Table table({"op", "plugin", "first", "second", "ratio"});
  report["times"] = Json::array();
  for (const auto& [what, ns] : times) {
    const auto& [key, plugin] = what;
    const auto json = [](double time) { return time > 0 ? Json(time) : Json(nullptr); };
    const auto text = [](double time) { return time > 0 ? TimeText(time) : ""; };
    const double ratio = ns.first > 0 ? ns.second / ns.first : 0;
    report["times"].push_back({{"point", key},
                               {"plugin", plugin},
                               {"first_ns", json(ns.first)},
                               {"second_ns", json(ns.second)},
                               {"ratio", json(ratio)}});
    table.Add({key, plugin, text(ns.first), text(ns.second), ratio > 0 ? fmt::format("{:.2f}", ratio) : ""});
  }
  console.Print(table);
  return Status();
}

}  // namespace weir::cli
