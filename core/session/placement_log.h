// Logs and reports of a session's placements.
#ifndef WEIR_CORE_SESSION_PLACEMENT_LOG_H_
#define WEIR_CORE_SESSION_PLACEMENT_LOG_H_

#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/place/explanation.h"
#include "core/session/program.h"
#include "core/session/session.h"

namespace weir::session {

/// Thread-safe.
class PlacementLog {
 public:
  /// Unavailable if a file that the options name cannot be written.
  static Result<std::unique_ptr<PlacementLog>> Open(const SessionOptions& options);

  /// Logs a step that is about to run: with log_device_placement, a line in TensorFlow's format for each node of
  /// Explanation::written that is new or has moved; warnings that are new; the report that SessionOptions::explain asks
  /// for. Standard error gets each report once; the summary of a session with one device, which had no choice, only at
  /// log level info or below (kernel::SetLogLevel).
  void Add(const Program& program, place::Explanation explanation, size_t devices);

  /// Logs a line, unless it is empty, where summaries go.
  void Note(const std::string& line);

  /// The devices of the nodes of all plans in order of first appearance; for each node the latest plan.
  Placement placement() const;

  /// Names of devices with nodes, sorted.
  std::vector<std::string> UsedDevices() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };

  explicit PlacementLog(const SessionOptions& options)
      : callback_(options.placement_log), explain_(options.explain), log_devices_(options.log_device_placement) {}
  static constexpr size_t kMostPlans = 16;
  /// Merges plans_ into placed_. Call under mutex_.
  void MergePlans() const;
  void Tell(const std::string& lines, const std::string& report, bool report_to_stderr);
  static Result<std::unique_ptr<std::FILE, Close>> OpenFile(const std::string& path);

  const std::function<void(const std::string& lines)> callback_;
  const SessionOptions::Explain explain_;
  const bool log_devices_;
  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<std::FILE, Close> explain_file_;
  mutable std::mutex mutex_;                             // protects all below and keeps lines together
  std::unordered_map<std::string, std::string> logged_;  // node -> device
  std::set<std::string> warned_;
  std::set<std::string> reported_;  // on standard error
  std::set<std::string, std::less<>> used_;
  /// By plan, merged only when a report is requested, so that a plan costs little. At most kMostPlans.
  mutable std::vector<std::vector<place::PlacedOp>> plans_;
  mutable Placement placed_;                                   // of the plans merged so far
  mutable std::unordered_map<std::string, size_t> placed_at_;  // node -> its index in placed_
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PLACEMENT_LOG_H_
