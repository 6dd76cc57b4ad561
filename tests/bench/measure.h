// Timing for the benchmarks: rounds of measurement and limit probe, medians, the machine.
#ifndef WEIR_TESTS_BENCH_MEASURE_H_
#define WEIR_TESTS_BENCH_MEASURE_H_

#include <functional>
#include <string>
#include <vector>

namespace weir::bench {

/// One line of the report. Times are in `unit`, per `per`.
struct Row {
  std::string id;
  std::string what;
  std::string unit;
  double measured = 0;  // median over rounds
  double fastest = 0;   // best round
  std::string limit_what;
  double limit = 0;   // median of the probe, taken in the same rounds
  double gate = 0;    // upper limit for a change; 0 = none
  std::string error;  // the reason if there is no figure
  double goal = 0;    // the figure to reach; 0 = none

  bool failed() const { return !error.empty(); }
  bool missed() const { return !failed() && gate != 0 && measured > gate; }
};

/// Runs `work` and `probe` in turn for `rounds` rounds; each returns its time in the row's unit. A negative time is a
/// failure and ends the row with `error`.
void Measure(int rounds, const std::function<double()>& work, const std::function<double()>& probe, Row* row);

/// Wall time in ns of one call.
double TimeNs(const std::function<void()>& call);
double Median(std::vector<double> values);

/// Prints the lines of `missed` to standard error. Returns the exit status: 1 if there are any, else 0.
int TellMissed(const std::vector<std::string>& missed);

/// CPU model, cores, kernel, compiler.
std::string Machine();

/// A markdown table, and JSON with the same content.
std::string Markdown(const std::vector<Row>& rows);
std::string JsonText(const std::vector<Row>& rows);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_MEASURE_H_
