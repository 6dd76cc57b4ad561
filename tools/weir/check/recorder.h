// The protocol by which a child process reports its results to its parent, rule by rule.
#ifndef WEIR_TOOLS_WEIR_CHECK_RECORDER_H_
#define WEIR_TOOLS_WEIR_CHECK_RECORDER_H_

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "tools/weir/check/check.h"

namespace weir::check {

/// The outcome of trying one rule.
class Finding {
 public:
  /// Pass for ok, else fail with the text.
  Finding(const Status& status)  // NOLINT(google-explicit-constructor)
      : verdict(status.ok() ? Verdict::kPass : Verdict::kFail), message(status.message()) {}
  static Finding Skip(std::string why) { return Finding(Verdict::kSkip, std::move(why)); }
  static Finding Warn(std::string why) { return Finding(Verdict::kWarn, std::move(why)); }

  Verdict verdict;
  std::string message;

 private:
  Finding(Verdict what, std::string why) : verdict(what), message(std::move(why)) {}
};

/// Writes to a pipe. A rule is announced before it is tried, so that a crash or a hang can be attributed.
class Recorder {
 public:
  explicit Recorder(int fd) : fd_(fd) {}

  /// Tries a rule: `body()` returns a Status or a Finding. False if the rule failed.
  template <class Body>
  bool Try(std::string_view id, Body&& body) {
    Begin(id);
    try {
      return End(id, Finding(std::forward<Body>(body)()));
    } catch (const std::exception& e) {
      return End(id, Finding(Internal("an exception escaped: {}", e.what())));
    } catch (...) {
      return End(id, Finding(Internal("an exception escaped")));
    }
  }

  void Begin(std::string_view id);
  /// Tells what is about to be tried under the announced rule, for a crash or a hang.
  void Note(std::string_view what);
  bool End(std::string_view id, const Finding& finding);

 private:
  int fd_;
};

/// Runs `body` in a forked child and collects its results. A child that crashes, or reports nothing for the time limit,
/// fails the last announced rule (`first_rule` if none).
std::vector<RuleResult> RunInChild(std::string_view first_rule, int time_limit_ms,
                                   const std::function<void(Recorder&)>& body);

/// In a child, the descriptor of the file that receives its standard output and error.
int CapturedOutput();

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_RECORDER_H_
