// Graphs to measure, and their limit probes.
#ifndef WEIR_TESTS_BENCH_WORKLOADS_H_
#define WEIR_TESTS_BENCH_WORKLOADS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/session/session.h"

namespace weir::bench {

/// A graph with a session and a callable on it.
struct Program {
  std::unique_ptr<graph::Definition> graph;
  std::unique_ptr<session::Session> session;
  session::CallableHandle call = 0;
  std::vector<Tensor> feeds;
  session::CallableOptions names;  // feeds, fetches and targets of `call`

  /// ns per run over `runs` runs by callable; -1 and `error` on failure.
  double RunNs(int runs, std::string* error);
  /// The same by names.
  double RunByNameNs(int runs, std::string* error);
  /// The report of one run by names.
  Result<session::RunReport> Report();

 private:
  std::vector<session::Feed> NamedFeeds() const;
};

/// x -> op -> op … `length` times, with the second operand of binary ops a constant 1; feeds a scalar.
Result<Program> Chain(const std::shared_ptr<session::Runtime>& runtime, const std::string& op, DType dtype, int length);

/// The digits network: 64-32-10, softmax cross entropy, gradient descent, batch of 32. `training` fetches nothing and
/// runs the update; else it fetches the predictions.
Result<Program> Digits(const std::shared_ptr<session::Runtime>& runtime, bool training);

/// A while_loop of `iterations` (fed) over a counter and a scalar float, with a body of one addition, or of ten
/// multiplications and additions; fetches the float.
enum class LoopBody { kScalar, kTenOps };
Result<Program> Loop(const std::shared_ptr<session::Runtime>& runtime, int iterations, LoopBody body);
/// A loop of `outer` iterations, each a loop of `inner` with a scalar body.
Result<Program> NestedLoop(const std::shared_ptr<session::Runtime>& runtime, int outer, int inner);
/// `length` conds in sequence, x = x < i ? x + 1 : x * 0.5, from a fed scalar.
Result<Program> CondChain(const std::shared_ptr<session::Runtime>& runtime, int length);

/// A while_loop of `iterations` over a counter and a vector of `bytes` bytes, x = x * 0.5; fetches the vector.
Result<Program> VectorLoop(const std::shared_ptr<session::Runtime>& runtime, int iterations, int64_t bytes);
/// y = -x over a vector of `bytes` bytes that is fed.
Result<Program> OneOp(const std::shared_ptr<session::Runtime>& runtime, int64_t bytes);
/// Feeds `count` vectors of `bytes` bytes and fetches each through an Identity; 0 = runs an op that does nothing.
Result<Program> Identities(const std::shared_ptr<session::Runtime>& runtime, int count, int64_t bytes);

/// A GraphDef of `nodes` nodes: 16 placeholders or constants, then additions of two earlier nodes.
std::string LargeGraphDef(int nodes, const op::OpRegistry& ops, bool fed = false);

// Limits, in ns.

/// Time per call through a function pointer that the compiler cannot resolve.
double IndirectCallNs(int calls);
/// The same, with one float addition in memory per call.
double IndirectAddNs(int calls);
/// Total time for hashing `names` distinct names into an index and finding each twice.
double NameIndexNs(int names);
/// Total time for multiplying an array of floats by a constant, into another array or in place.
enum class Pass { kOver, kInPlace };
double ScaleNs(int64_t floats, int repeats, Pass pass);
/// Total time for starting a process that does nothing.
double StartProcessNs(const std::string& program, const std::string& argument);
/// Total time for the multiplications and additions of the products of one digits step, in registers.
double DigitsProductsNs(int repeats);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_WORKLOADS_H_
