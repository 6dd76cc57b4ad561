// Rows of the report that several files make.
#ifndef WEIR_TESTS_BENCH_ROWS_H_
#define WEIR_TESTS_BENCH_ROWS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/measure.h"
#include "tests/bench/workloads.h"

namespace weir::bench {

/// A row over a program that may not exist; `run` gives a time in the row's unit, or -1 and an error.
void MeasureRuns(int rounds, Result<Program>& program, const std::function<double(Program&, std::string*)>& run,
                 const std::function<double()>& probe, Row* row);

// memory_rows.cc
/// Arenas against what is in use at once, large feeds and fetches, growth over a million runs.
void AddMemoryRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows);
/// A loop variable of 1 MiB.
void AddVectorLoopRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows);
/// From an imported graph of 100,000 nodes to its first result.
void AddFirstRunRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows);

// concurrency_row.cc
/// Runs a frozen network `runs` times on each of four threads over one session. Returns an exit status.
int RunConcurrently(int runs);
/// Futex calls of that, counted by strace over `self` started with `mode` and a number of runs.
void AddConcurrencyRow(const std::string& self, const std::string& mode, std::vector<Row>* rows);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_ROWS_H_
