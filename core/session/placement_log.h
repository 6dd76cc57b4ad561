// What a session tells of its placements, and to whom.
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
#include "core/plan/plan.h"
#include "core/session/session.h"

namespace weir::session {

/// Thread-safe.
class PlacementLog {
 public:
  /// Unavailable when the file of the options cannot be written.
  static Result<std::unique_ptr<PlacementLog>> Open(const SessionOptions& options);

  /// Of a plan that is about to run: one line in TensorFlow's form for each of Explanation::written that is new or has
  /// moved; warnings that are new; the summary, to standard error only where there is a choice of `devices`, and once.
  void Add(const plan::ExecutionPlan& plan, const place::Explanation& explanation, size_t devices);

  /// Where the nodes of all plans are, in the order in which they came first; the latest plan counts.
  Placement placement() const;

  /// Names of the devices that plans have nodes on, sorted.
  std::vector<std::string> UsedDevices() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };

  explicit PlacementLog(const SessionOptions& options) : callback_(options.placement_log) {}
  void Tell(const std::string& lines, const std::string& summary, bool summary_to_stderr);

  const std::function<void(const std::string& lines)> callback_;
  std::unique_ptr<std::FILE, Close> file_;
  mutable std::mutex mutex_;                             // protects all below, and that lines stay together
  std::unordered_map<std::string, std::string> logged_;  // node -> device
  std::set<std::string> warned_;
  std::set<std::string> summarized_;
  std::set<std::string> used_;
  Placement placed_;
  std::unordered_map<std::string, size_t> placed_at_;  // node -> its place in placed_
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PLACEMENT_LOG_H_
