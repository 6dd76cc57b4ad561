#include "core/session/placement_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "core/base/legible.h"

namespace weir::session {

Result<std::unique_ptr<PlacementLog>> PlacementLog::Open(const SessionOptions& options) {
  std::unique_ptr<PlacementLog> log(new PlacementLog(options));
  if (options.placement_log_file.empty()) return log;
  log->file_.reset(std::fopen(options.placement_log_file.c_str(), "a"));
  if (!log->file_) {
    return Unavailable("the placement log {} cannot be written: {}", options.placement_log_file, std::strerror(errno));
  }
  return log;
}

void PlacementLog::Add(const plan::ExecutionPlan& plan, const place::Explanation& explanation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string lines;
  for (const std::string& warning : explanation.warnings) {
    if (warned_.insert(warning).second) lines += "weir: placement: " + warning + "\n";
  }
  for (const plan::PlacedNode& node : plan.placed_nodes) {
    used_.emplace(node.device);
  }
  for (const place::WrittenNode& node : explanation.written) {
    std::string& logged = logged_[node.name];
    if (logged == node.device) continue;
    logged = node.device;
    lines += fmt::format("{}: ({}): {}\n", node.name, node.op, node.device);
  }
  Tell(lines, explanation.summary + "\n");
}

void PlacementLog::Tell(const std::string& lines, const std::string& summary) {
  if (callback_) callback_(lines + summary);
  if (!file_ && (callback_ || lines.empty())) return;
  if (!file_) return WarnOnStderr(lines);
  std::fputs(Legible(lines + summary).c_str(), file_.get());
  std::fflush(file_.get());
}

std::vector<std::string> PlacementLog::UsedDevices() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {used_.begin(), used_.end()};
}

}  // namespace weir::session
