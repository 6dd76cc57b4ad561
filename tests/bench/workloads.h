// Graphs to measure, and the limit probes that go with them.
#ifndef WEIR_TESTS_BENCH_WORKLOADS_H_
#define WEIR_TESTS_BENCH_WORKLOADS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/session/session.h"

namespace weir::bench {

/// A graph with a session and a callable on it.
struct Program {
  std::unique_ptr<graph::Graph> graph;
  std::unique_ptr<session::Session> session;
  session::CallableHandle call = 0;
  std::vector<Tensor> feeds;
  session::CallableOptions names;  // what `call` feeds, fetches and runs

  /// ns per run over `runs` runs by callable; -1 and `error` on failure.
  double RunNs(int runs, std::string* error);
  /// The same by names.
  double RunByNameNs(int runs, std::string* error);
  /// Of one run by names.
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
/// `length` conds one after the other, x = x < i ? x + 1 : x * 0.5, from the scalar that is fed.
Result<Program> CondChain(const std::shared_ptr<session::Runtime>& runtime, int length);

/// A while_loop of `iterations` over a counter and a vector of `bytes` bytes, x = x * 0.5; fetches the vector.
Result<Program> VectorLoop(const std::shared_ptr<session::Runtime>& runtime, int iterations, int64_t bytes);
/// y = -x over a vector of `bytes` bytes that is fed.
Result<Program> OneOp(const std::shared_ptr<session::Runtime>& runtime, int64_t bytes);
/// Feeds `count` vectors of `bytes` bytes and fetches each by an Identity; 0 = runs an op that does nothing.
Result<Program> Identities(const std::shared_ptr<session::Runtime>& runtime, int count, int64_t bytes);

/// A GraphDef of `nodes` nodes: 16 placeholders or constants, then additions of two earlier nodes.
std::string LargeGraphDef(int nodes, const op::OpRegistry& ops, bool fed = false);

// Limits, in ns.

/// One call through a pointer that the compiler cannot see through, per call.
double IndirectCallNs(int calls);
/// The same with one float addition in memory.
double IndirectAddNs(int calls);
/// Hashing `names` distinct names into an index and finding each twice, whole.
double NameIndexNs(int names);
/// Multiplying so many floats by a constant, from one array into another or where they are, whole.
enum class Pass { kOver, kInPlace };
double ScaleNs(int64_t floats, int repeats, Pass pass);
/// Starting a process that does nothing, whole.
double StartProcessNs(const std::string& program, const std::string& argument);
/// The multiplications and additions in the products of one digits step, in registers, whole.
double DigitsProductsNs(int repeats);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_WORKLOADS_H_
