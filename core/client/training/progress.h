// A progress bar in Keras's form: one line that redraws itself on a terminal, plain lines elsewhere.
#ifndef WEIR_CORE_CLIENT_TRAINING_PROGRESS_H_
#define WEIR_CORE_CLIENT_TRAINING_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

/// Where a bar goes, and what that can show.
struct ProgressOutput {
  std::function<void(std::string_view)> write;
  bool terminal = false;  // understands carriage return and "erase to end of line"
  bool color = false;
  int width = 80;
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;

  /// Standard error as it is: a terminal or not, its width; no colour when NO_COLOR is set or TERM is "dumb".
  static ProgressOutput Stderr();
};

/// Names and values in their order: `{{"loss", 0.55}, {"accuracy", 0.9}}`.
using ProgressMetrics = std::vector<std::pair<std::string, double>>;

/// Counts steps, as "4/4 [==============================] - 0s 1ms/step - loss: 0.5569". On a terminal it redraws at
/// most ten times a second; elsewhere it prints a line at every tenth of the way, but for the last one at most once a
/// second. Single-threaded.
class ProgressBar {
 public:
  /// `label`: a line before the first one, such as "Epoch 1/2"; empty = none. `total`: number of steps; below 1 counts
  /// as 1. `verbose`: 0 = nothing, 1 = as above, 2 = one line at the end, with the time of all steps.
  ProgressBar(std::string label, int64_t total, ProgressOutput output = ProgressOutput::Stderr(), int verbose = 1);
  /// Ends the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` steps of the total are behind; `metrics` are shown at the end of the line.
  void Update(int64_t done, const ProgressMetrics& metrics = {});
  /// Shows the last state and ends the line.
  void Finish();

 private:
  std::string Line() const;
  std::string Summary() const;
  double Share() const;  // of the steps that are behind, up to 1
  /// The time since the start: all of it, and by step; seconds.
  double Elapsed() const;
  double PerStep() const;
  void Print(std::string_view line);

  std::string label_;
  int64_t total_;
  ProgressOutput output_;
  int verbose_;
  int64_t done_ = 0;
  int64_t printed_tenths_ = 0;
  bool drawn_ = false;
  bool finished_ = false;
  ProgressMetrics metrics_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point redrawn_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_PROGRESS_H_
