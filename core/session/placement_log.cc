#include "core/session/placement_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/kernel/host.h"

namespace weir::session {

Result<std::unique_ptr<std::FILE, PlacementLog::Close>> PlacementLog::OpenFile(const std::string& path) {
  std::unique_ptr<std::FILE, Close> file;
  if (path.empty()) return file;
  file.reset(std::fopen(path.c_str(), "a"));
  if (!file) return Unavailable("the placement log {} cannot be written: {}", path, std::strerror(errno));
  return file;
}

Result<std::unique_ptr<PlacementLog>> PlacementLog::Open(const SessionOptions& options) {
  std::unique_ptr<PlacementLog> log(new PlacementLog(options));
  WEIR_ASSIGN(log->file_, OpenFile(options.placement_log_file));
  WEIR_ASSIGN(log->explain_file_, OpenFile(options.explain_file));
  return log;
}

void PlacementLog::Add(const Program& program, place::Explanation explanation, size_t devices) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string lines;
  for (const std::string& warning : explanation.warnings) {
    if (warned_.insert(warning).second) lines += "weir: placement: " + warning + "\n";
  }
  for (const plan::ExecutionPlan* const plan : program.plans()) {
    for (const plan::PlacedNode& node : plan->placed_nodes) {
      if (!used_.contains(node.device)) used_.emplace(node.device);
    }
  }
  for (const place::WrittenNode& node : explanation.written) {
    if (!log_devices_) break;
    std::string& logged = logged_[node.name];
    if (logged == node.device) continue;
    logged = node.device;
    lines += fmt::format("{}: ({}): {}\n", node.name, node.op, node.device);
  }
  std::string report = explain_ == SessionOptions::Explain::kNone  ? ""
                       : explain_ == SessionOptions::Explain::kAll ? ToText(explanation)
                                                                   : explanation.summary + "\n";
  const bool told =
      devices > 1 || explain_ == SessionOptions::Explain::kAll || kernel::HostTable().enabled(WEIR_LOG_INFO) != 0;
  const bool fresh = told && !report.empty() && !explanation.placed.empty() && reported_.insert(report).second;
  plans_.push_back(std::move(explanation.placed));
  if (plans_.size() > kMostPlans) MergePlans();
  if (explain_file_) {
    std::fputs(Legible(report).c_str(), explain_file_.get());
    std::fflush(explain_file_.get());
    report.clear();
  }
  Tell(lines, report, fresh && !report.empty());
}

void PlacementLog::Note(const std::string& line) {
  if (line.empty() || explain_ == SessionOptions::Explain::kNone) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Tell("", line + "\n", true);
}

void PlacementLog::Tell(const std::string& lines, const std::string& report, bool report_to_stderr) {
  if (callback_) callback_(lines + report);
  if (!file_ && (callback_ || (lines.empty() && !report_to_stderr))) return;
  if (!file_) return WarnOnStderr(report_to_stderr ? lines + "weir: " + report : lines);
  std::fputs(Legible(lines + report).c_str(), file_.get());
  std::fflush(file_.get());
}

void PlacementLog::MergePlans() const {
  for (const std::vector<place::PlacedOp>& plan : plans_) {
    for (const place::PlacedOp& node : plan) {
      const auto [at, fresh] = placed_at_.try_emplace(node.name, placed_.size());
      if (fresh) placed_.emplace_back();
      placed_[at->second] = {node.name, std::string(node.op), std::string(node.device),
                             std::string(place::Name(node.reason))};
    }
  }
  plans_.clear();
}

Placement PlacementLog::placement() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  MergePlans();
  return placed_;
}

std::string ToText(const Placement& placement) {
  std::string text;
  for (const PlacedNode& node : placement) {
    text += fmt::format("{} ({}): {}  {}\n", node.node, node.op, node.device, node.reason);
  }
  return text;
}

namespace {

std::string InJson(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

std::string ToJson(const Placement& placement) {
  std::string json;
  for (const PlacedNode& node : placement) {
    json += fmt::format(R"({}{{"name": {}, "op": {}, "device": {}, "reason": {}}})", json.empty() ? "\n" : ",\n",
                        InJson(node.node), InJson(node.op), InJson(node.device), InJson(node.reason));
  }
  return "[" + json + "\n]\n";
}

std::vector<std::string> PlacementLog::UsedDevices() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {used_.begin(), used_.end()};
}

}  // namespace weir::session
