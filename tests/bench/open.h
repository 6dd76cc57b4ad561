// From a client's graph to a program to measure.
#ifndef WEIR_TESTS_BENCH_OPEN_H_
#define WEIR_TESTS_BENCH_OPEN_H_

#include <memory>

#include "core/client/graph.h"
#include "tests/bench/workloads.h"

namespace weir::bench {

/// A session in which nothing is folded.
session::SessionOptions Unfolded();

/// Takes the finished graph out of the client's hands and opens a session on it.
Result<Program> Open(const std::shared_ptr<session::Runtime>& runtime, weir::Graph& client,
                     const session::CallableOptions& call, const session::SessionOptions& options = Unfolded());

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_OPEN_H_
