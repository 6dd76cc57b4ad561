// A progress bar: one line that redraws itself on a terminal, a few plain lines elsewhere.
#ifndef WEIR_CORE_CLIENT_PROGRESS_H_
#define WEIR_CORE_CLIENT_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weir {

/// Where a bar goes, and what that can show.
struct ProgressOutput {
  std::function<void(std::string_view)> write;
  bool terminal = false;  // understands carriage return and "erase to end of line"
  bool color = false;
  int width = 80;

  /// Standard error as it is: a terminal or not, its width; no colour when NO_COLOR is set or TERM is "dumb".
  static ProgressOutput Stderr();
};

/// Counts steps. On a terminal it redraws at most ten times a second; elsewhere it prints a line at every tenth of the
/// way. Single-threaded.
class ProgressBar {
 public:
  /// `total`: number of steps; below 1 counts as 1.
  ProgressBar(std::string label, int64_t total, ProgressOutput output = ProgressOutput::Stderr());
  /// Ends the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` steps of the total are behind; `note` is shown at the end of the line ("loss 0.31").
  void Update(int64_t done, std::string_view note = {});
  /// Shows the last state and ends the line.
  void Finish();

 private:
  std::string Line(std::string_view note) const;

  std::string label_;
  int64_t total_;
  ProgressOutput output_;
  int64_t done_ = 0;
  int64_t printed_tenths_ = 0;
  bool drawn_ = false;
  bool finished_ = false;
  std::string note_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point redrawn_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_PROGRESS_H_
