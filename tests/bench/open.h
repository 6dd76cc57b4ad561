// Makes a program to measure from a client's graph.
#ifndef WEIR_TESTS_BENCH_OPEN_H_
#define WEIR_TESTS_BENCH_OPEN_H_

#include <memory>

#include "core/client/graph/graph.h"
#include "core/session/session.h"
#include "tests/bench/workloads.h"

namespace weir::bench {

/// Options of a session without constant folding.
session::SessionOptions Unfolded();

/// Takes the finished graph from the client and opens a session on it.
Result<Program> Open(const std::shared_ptr<session::Runtime>& runtime, weir::Graph& client,
                     const session::CallableOptions& call, const session::SessionOptions& options = Unfolded());

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_OPEN_H_
