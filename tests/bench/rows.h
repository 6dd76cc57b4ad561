// Rows of the report, defined in several files.
#ifndef WEIR_TESTS_BENCH_ROWS_H_
#define WEIR_TESTS_BENCH_ROWS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/measure.h"
#include "tests/bench/workloads.h"

namespace weir::bench {

/// A row over a program, which may be an error; `run` returns a time in the row's unit, or -1 and an error.
void MeasureRuns(int rounds, Result<Program>& program, const std::function<double(Program&, std::string*)>& run,
                 const std::function<double()>& probe, Row* row);

// memory_rows.cc
/// Arena size compared with live bytes, large feeds and fetches, growth over a million runs.
void AddMemoryRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows);
/// A loop variable of 1 MiB.
void AddVectorLoopRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows);
/// From an imported graph of 100,000 nodes to its first result.
void AddFirstRunRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows);

// concurrency_row.cc
/// Runs a frozen network `runs` times on each of four threads over one session. Returns an exit status.
int RunConcurrently(int runs);
/// Futex calls of RunConcurrently, counted by strace over `self` started with `mode` and a number of runs.
void AddConcurrencyRow(const std::string& self, const std::string& mode, std::vector<Row>* rows);

/// Runs a program and waits for it. Returns its exit status, -1 if it did not start.
int RunProgram(std::vector<std::string> arguments);

// frame_rows.cc
/// Calls, parts of a step in one process, gradients of loops, ops that wait.
void AddFrameRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows);

// launch_rows.cc
/// Launches on the emulated GPU and on the example with handles, in a runtime of their own.
void AddLaunchRows(std::vector<Row>* rows);

// width_rows.cc
/// Runs 64 chains of 16 adds of 65,536 floats `runs` times on one thread. Returns an exit status.
int RunWide(int runs);
/// Prints the time of two threads relative to one thread on a single core. Returns an exit status.
int RunOnOneCore();
/// Steps of many chains: default sessions compared with one thread, and with two processes, which run `self` with these
/// modes.
struct WidthModes {
  std::string wide;      // RunWide, with a number of runs
  std::string one_core;  // RunOnOneCore
};
void AddWidthRows(const std::shared_ptr<session::Runtime>& runtime, const std::string& self, const WidthModes& modes,
                  std::vector<Row>* rows);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_ROWS_H_
