// Traces of programs: rows, processes, flows and values.
#include <nlohmann/json.hpp>
#include <set>

#include "core/client/containers/queue.h"
#include "core/trace/span.h"
#include "tests/support/trace_rows.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Json = nlohmann::json;

/// A trace of three runs.
Json Traced(Session& session, const Fetch& fetch, const Feeds& feeds = {}) {
  std::vector<trace::StepTrace> steps;
  for (int i = 0; i < 3; ++i) {
    session::RunOptions options;
    options.trace = true;
    session::RunReport report;
    EXPECT_TRUE(Succeeds(session.Run(fetch, feeds, options, &report)));
    steps.push_back(std::move(report.trace));
  }
  Json trace = Json::parse(trace::ChromeTrace(steps), nullptr, false);
  EXPECT_TRUE(trace.is_object());
  return trace;
}

int CountOf(const Json& trace, const std::string& phase, const std::string& name = {}) {
  int count = 0;
  for (const Json& event : trace["traceEvents"]) {
    count += event["ph"] == phase && (name.empty() || event["name"] == name) ? 1 : 0;
  }
  return count;
}

ConfigProto Threads(int count, int cpus = 1) {
  ConfigProto config;
  config.inter_op_parallelism_threads = count;
  config.device_count["CPU"] = cpus;
  config.graph_options.optimizer_options.opt_level = "L0";
  return config;
}

TEST(Trace, F340_RowsOfWideGraphsHaveNoPartialOverlaps) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {64, 64}, "x");
  std::vector<Operand> chains;
  for (int i = 0; i < 8; ++i) {
    const DeviceScope on(i % 2 == 0 ? "/cpu:0" : "/cpu:1");
    chains.emplace_back(MatMul(Tanh(MatMul(x, x)), x));
  }
  const Output sum = AddN(chains);
  const Feeds feeds = {{x, Tensor::Of<float>({64, 64}, std::vector<float>(4096, 0.01f))}};
  for (const int threads : {1, 4}) {
    Session session(f.graph, Threads(threads, 2));
    const Json trace = Traced(session, sum, feeds);
    EXPECT_GE(CountOf(trace, "X", "MatMul"), 3 * 9);
    EXPECT_EQ(FaultOfRows(trace), "") << threads;
  }
}

TEST(Trace, F340_RowsOfLoopsAndTrainingHaveNoPartialOverlaps) {
  Fresh f;
  const Variable w({{0.5f, 0.1f}, {0.2f, 0.3f}}, {.name = "w"});
  const LoopVars loop = WhileLoop([](const LoopVars& v) { return v[0] < 6; },
                                  [&](const LoopVars& v) {
                                    return LoopVars{v[0] + 1, Tanh(MatMul(v[1], w))};
                                  },
                                  {0, Zeros(Shape{2, 2}) + 0.5f});
  const Operation train = GradientDescentOptimizer(0.1).Minimize(ReduceSum(loop[1]));
  for (const int threads : {1, 4}) {
    Session session(f.graph, Threads(threads));
    Initialize(session);
    const Json trace = Traced(session, train);
    EXPECT_GT(CountOf(trace, "X"), 0);
    EXPECT_EQ(FaultOfRows(trace), "") << threads;
  }
}

// Several ops wait at a time for what others enqueue, and end on the threads of these.
TEST(Trace, F340_RowsOfOpsThatWaitHaveNoPartialOverlaps) {
  Fresh f;
  FIFOQueue queue(16, {DType::kFloat});
  std::vector<Operand> taken;
  for (int i = 0; i < 6; ++i) taken.emplace_back(queue.Dequeue()[0]);
  const Output sum = AddN(taken);
  const Output slow = ReduceSum(MatMul(Ones(Shape{128, 128}), Placeholder(DType::kFloat, {128, 128}, "x")));
  std::vector<Groupable> put;
  for (int i = 0; i < 6; ++i) put.emplace_back(queue.Enqueue({slow}));
  const Operation all = Group(put);
  for (const int threads : {1, 4}) {
    Session session(f.graph, Threads(threads));
    const Json trace = Traced(session, Fetch::List{sum, all},
                              {{"x:0", Tensor::Of<float>({128, 128}, std::vector<float>(128 * 128, 1))}});
    EXPECT_GE(CountOf(trace, "X"), 3 * 12);
    EXPECT_EQ(FaultOfRows(trace), "") << threads;
  }
}

TEST(Trace, F335_AProgramWritesATraceForChrome) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {2}, "x");
  const Output y = Add(Square(x, "square"), x, "y");
  Session session(f.graph, Threads(1));
  const Json trace = Traced(session, y, {{x, {1.0f, 2.0f}}});
  std::set<std::string> processes, phases;
  for (const Json& event : trace["traceEvents"]) {
    phases.insert(event["ph"].get<std::string>());
    if (event["name"] == "process_name") processes.insert(event["args"]["name"].get<std::string>());
  }
  const std::string cpu = "/job:localhost/replica:0/task:0/device:CPU:0";
  for (const std::string& name : {cpu + " Compute", cpu + " Tensors", std::string("Allocators")}) {
    EXPECT_TRUE(processes.contains(name)) << name;
  }
  for (const char* phase : {"M", "X", "s", "t", "N", "O", "D", "C"}) EXPECT_TRUE(phases.contains(phase)) << phase;
  EXPECT_GE(CountOf(trace, "s", "square"), 3) << "to y, in each run";
  EXPECT_EQ(CountOf(trace, "N", "y:0"), 3);
}

}  // namespace
}  // namespace weir::test
