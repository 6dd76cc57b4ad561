// The file of a tracer: which runs are in it, its size, what it is while runs are under way.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Json = nlohmann::json;
using session::Tracer;
using session::TracerOptions;

constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:CPU:0";

/// A step with one span that makes `bytes`.
trace::StepTrace StepOf(int64_t id, int64_t start_us, const std::string& node = "a", uint64_t bytes = 8) {
  trace::StepTrace step;
  step.step_id = id;
  step.start_us = start_us;
  step.total_ns = 10000;
  step.spans = {{node, "Square", kDevice, 1000, 2000, 0, bytes, {{0, 1, {2}, bytes}}}};
  return step;
}

Json Parsed(const std::string& path) {
  Json json = Json::parse(ReadText(path), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << ReadText(path);
  return json;
}

/// The steps whose work is in the file, in its order.
std::vector<int> Steps(const Json& trace) {
  std::vector<int> steps;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") steps.push_back(event["args"]["step"].get<int>());
  }
  return steps;
}

std::vector<int> StepsWritten(TracerOptions options, int runs) {
  const TemporaryFolder folder;
  options.path = folder / "trace.json";
  const Result<std::shared_ptr<Tracer>> tracer = Tracer::Open(options);
  EXPECT_TRUE(tracer.ok()) << tracer.status().ToString();
  if (!tracer.ok()) return {};
  for (int i = 0; i < runs; ++i) {
    const Tracer::Run run = (*tracer)->Begin();
    (*tracer)->End(run, run.traced() ? StepOf(i, i * 100) : trace::StepTrace());
  }
  EXPECT_TRUE((*tracer)->Close().ok());
  EXPECT_EQ((*tracer)->counts().runs, runs);
  return Steps(Parsed(options.path));
}

TEST(Tracer, F339_AScheduleSaysWhichRunsAreWritten) {
  EXPECT_EQ(StepsWritten({.active = 3}, 4), (std::vector<int>{0, 1, 2, 3})) << "cycles without gaps";
  EXPECT_EQ(StepsWritten({.active = 2, .repeat = 1}, 5), (std::vector<int>{0, 1}));
  EXPECT_EQ(StepsWritten({.skip = 3, .active = 1, .repeat = 1}, 6), (std::vector<int>{3}));
  EXPECT_EQ(StepsWritten({.skip = 1, .wait = 1, .warmup = 1, .active = 2, .repeat = 2}, 12),
            (std::vector<int>{3, 4, 7, 8}));
  EXPECT_EQ(StepsWritten({.wait = 9, .active = 1}, 25), (std::vector<int>{9, 19})) << "every tenth";
  EXPECT_EQ(StepsWritten({.wait = INT64_MAX, .warmup = INT64_MAX, .active = INT64_MAX}, 3), (std::vector<int>{}));
}

TEST(Tracer, F339_WarmupRunsRecordTimesThatAreLeftOut) {
  const TemporaryFolder folder;
  const auto tracer = *Tracer::Open({.path = folder / "t.json", .wait = 1, .warmup = 1, .active = 1});
  EXPECT_FALSE(tracer->Begin().traced());
  const Tracer::Run warm = tracer->Begin(), active = tracer->Begin();
  EXPECT_EQ(warm.phase, Tracer::Phase::kWarmup);
  EXPECT_TRUE(warm.traced()) << "recording costs the same as in the runs that count";
  EXPECT_EQ(active.phase, Tracer::Phase::kActive);
  tracer->End(warm, StepOf(1, 100));
  tracer->End(active, StepOf(2, 200));
  EXPECT_EQ(Steps(Parsed(folder / "t.json")), (std::vector<int>{2}));
}

TEST(Tracer, F339_WrongSchedulesAndPathsAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](TracerOptions options) {
    options.path = folder / "t.json";
    return Tracer::Open(options).status();
  };
  EXPECT_EQ(refusal({.skip = -1}).message(), "skip of a trace is -1, wanted 0 or more");
  EXPECT_EQ(refusal({.repeat = -2}).message(), "repeat of a trace is -2, wanted 0 or more");
  EXPECT_EQ(refusal({.active = 0}).message(), "active of a trace is 0, wanted 1 or more");
  EXPECT_EQ(Tracer::Open({.path = folder / "missing/t.json"}).status().code(), Code::kNotFound);
}

TEST(Tracer, F339_TheFileIsValidAfterEachStep) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json";
  const auto tracer = *Tracer::Open({.path = path, .active = 1});
  EXPECT_TRUE(Parsed(path)["traceEvents"].empty());
  for (int i = 0; i < 3; ++i) {
    tracer->End(tracer->Begin(), StepOf(i, i * 100));
    const Json trace = Parsed(path);
    EXPECT_EQ(Steps(trace).size(), static_cast<size_t>(i) + 1) << "written as runs end";
    EXPECT_EQ(trace["weir"]["written"], i + 1);
  }
  EXPECT_TRUE(tracer->Close().ok());
  EXPECT_FALSE(tracer->Begin().traced()) << "closed";
  EXPECT_EQ(Steps(Parsed(path)).size(), 3u);
}

TEST(Tracer, F339_AFileStaysBelowItsLimit) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json";
  constexpr uint64_t kLimit = 4096;
  const auto tracer = *Tracer::Open({.path = path, .active = 1, .limit_bytes = kLimit});
  int traced = 0;
  for (int i = 0; i < 100; ++i) {
    const Tracer::Run run = tracer->Begin();
    traced += run.traced() ? 1 : 0;
    tracer->End(run, StepOf(i, i * 100));
    ASSERT_LE(ReadText(path).size(), kLimit) << i;
  }
  EXPECT_TRUE(tracer->Close().ok());
  EXPECT_LE(ReadText(path).size(), kLimit);
  const Json trace = Parsed(path);
  const Tracer::Counts counts = tracer->counts();
  EXPECT_GT(counts.written, 0);
  EXPECT_EQ(counts.dropped, 1);
  EXPECT_EQ(traced, counts.written + 1) << "no run is traced in vain behind the first that does not fit";
  EXPECT_EQ(Steps(trace).size(), static_cast<size_t>(counts.written));
  EXPECT_EQ(trace["weir"]["runs"], 100);
  EXPECT_EQ(trace["weir"]["dropped"], 1);
}

TEST(Tracer, F339_NamesOfAnyBytesGiveValidJson) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"quote\" back\\slash", "line\nbreak\ttab", std::string("zero\0in", 7),
                                          "not \xff\xfe utf8",   "cut \xe2\x82",     "euro \xe2\x82\xac",
                                          "long \xc0\xaf",       "high \xed\xa0\x80"};
  const auto tracer = *Tracer::Open({.path = folder / "t.json", .active = 1});
  for (const std::string& name : names) tracer->End(tracer->Begin(), StepOf(0, 0, name));
  EXPECT_TRUE(tracer->Close().ok());
  std::vector<std::string> read;
  const Json trace = Parsed(folder / "t.json");
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") read.push_back(event["args"]["name"].get<std::string>());
  }
  ASSERT_EQ(read.size(), names.size());
  for (const size_t kept : {0u, 1u, 2u, 5u}) EXPECT_EQ(read[kept], names[kept]);
  EXPECT_EQ(read[3], "not \xef\xbf\xbd\xef\xbf\xbd utf8");
  EXPECT_EQ(read[4], "cut \xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(read[6], "long \xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(read[7], "high \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Tracer, F336_RunsBesideEachOtherShareOneFile) {
  const TemporaryFolder folder;
  const auto tracer = *Tracer::Open({.path = folder / "t.json", .active = 1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&tracer, t] {
      for (int i = 0; i < 25; ++i) tracer->End(tracer->Begin(), StepOf(t * 25 + i, 1000 * (i + 1)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(tracer->Close().ok());
  const Json trace = Parsed(folder / "t.json");
  EXPECT_EQ(trace["weir"]["written"], 100);
  std::vector<int> steps = Steps(trace);
  std::sort(steps.begin(), steps.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(steps[static_cast<size_t>(i)], i);
}

TEST(Tracer, F337_CountersOfRunsBesideEachOtherAreSummed) {
  const TemporaryFolder folder;
  const auto tracer = *Tracer::Open({.path = folder / "t.json", .active = 1});
  const Tracer::Run first = tracer->Begin(), second = tracer->Begin();
  const int64_t begin = first.start_us + 1000;
  const auto step = [&](int64_t id, const char* node, uint64_t bytes) {
    trace::StepTrace made = StepOf(id, begin, node, bytes);
    made.spans.push_back({"reader", "Neg", kDevice, 5000, 6000, 0, 0, {}, {node}});
    return made;
  };
  tracer->End(first, step(1, "a", 8));
  tracer->End(second, step(2, "b", 16));
  EXPECT_TRUE(tracer->Close().ok());
  std::vector<int> held;
  std::vector<double> at;
  const Json trace = Parsed(folder / "t.json");
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], kDevice) << "a counter of each memory, not of each value";
    held.push_back(event["args"]["bytes"].get<int>());
    at.push_back(event["ts"].get<double>());
  }
  EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
  ASSERT_FALSE(held.empty());
  EXPECT_EQ(*std::max_element(held.begin(), held.end()), 24) << "of both runs";
  EXPECT_EQ(held.back(), 0);
}

TEST(Tracer, F336_AnAttachedSessionWritesItsRunsAndCalls) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {2}, "x");
  const Output y = Add(Square(x, "square"), x, "y");
  const TemporaryFolder folder;
  const auto tracer = *Tracer::Open({.path = folder / "t.json", .skip = 1, .active = 1});
  Session session(f.graph), other(f.graph);
  Trace(session, tracer);
  Trace(other, tracer);
  const Feeds feeds = {{x, {1.0f, 2.0f}}};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Succeeds(session.Run(y, feeds)));
  EXPECT_TRUE(Succeeds(other.Run(y, feeds)));
  Result<Callable> call = session.MakeCallable(y, {x});
  ASSERT_TRUE(Succeeds(call));
  session::RunReport report;
  EXPECT_TRUE(Succeeds((*call)({{3.0f, 4.0f}}, {}, &report)));
  EXPECT_FALSE(report.trace.spans.empty()) << "whoever wants a report gets it";
  EXPECT_FALSE(session.Run("missing:0", {}).ok());
  Trace(session, nullptr);
  EXPECT_TRUE(Succeeds(session.Run(y, feeds)));
  EXPECT_TRUE(tracer->Close().ok());
  const Json trace = Parsed(folder / "t.json");
  EXPECT_GE(trace["weir"]["runs"], 5);
  int adds = 0;
  for (const Json& event : trace["traceEvents"])
    adds += event["ph"] == "X" && event["args"]["name"] == "y" && event["name"] != "fetch" ? 1 : 0;
  EXPECT_EQ(adds, 2 + 1 + 1) << "two of the first three runs, one of the other session, the call";
}

TEST(Tracer, F337_AGraphOfManyValuesHasOneCounterOfAMemory) {
  Fresh f;
  Output sum = Placeholder(DType::kFloat, {64}, "x");
  for (int i = 0; i < 50; ++i) sum = Tanh(sum) * 0.5f;
  const TemporaryFolder folder;
  const auto tracer = *Tracer::Open({.path = folder / "t.json", .active = 1});
  ConfigProto config;
  config.graph_options.optimizer_options.opt_level = "L0";
  Session session(f.graph, config);
  Trace(session, tracer);
  EXPECT_TRUE(Succeeds(session.Run(sum, {{"x:0", Tensor::Of<float>({64}, std::vector<float>(64, 1))}})));
  EXPECT_TRUE(tracer->Close().ok());
  std::set<std::string> counters;
  int values = 0, held = 0, most = 0;
  const Json trace = Parsed(folder / "t.json");
  for (const Json& event : trace["traceEvents"]) {
    values += event["ph"] == "N" ? 1 : 0;
    if (event["ph"] != "C") continue;
    counters.insert(event["name"].get<std::string>());
    held = event["args"]["bytes"].get<int>();
    most = std::max(most, held);
  }
  EXPECT_GE(values, 50);
  EXPECT_EQ(counters, std::set<std::string>{kDevice});
  EXPECT_EQ(held, 0) << "at the end";
  EXPECT_GE(most, 64 * 4);
  EXPECT_LT(most, 64 * 4 * 10) << "values end with their last readers";
}

TEST(Tracer, F339_APathThatEndsInPftraceHasPerfettosFormat) {
  const TemporaryFolder folder;
  const auto tracer = *Tracer::Open({.path = folder / "t.pftrace", .active = 1, .limit_bytes = 2000});
  for (int i = 0; i < 50; ++i) {
    tracer->End(tracer->Begin(), StepOf(i, i * 100));
    ASSERT_LE(ReadText(folder / "t.pftrace").size(), 2000u);
  }
  EXPECT_TRUE(tracer->Close().ok());
  const std::string text = ReadText(folder / "t.pftrace");
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text[0], '\x0a') << "a packet of a trace";
  EXPECT_NE(text.find(std::string(kDevice) + " Compute"), std::string::npos);
  EXPECT_GT(tracer->counts().written, 0);
  EXPECT_EQ(tracer->counts().dropped, 1);
}

}  // namespace
}  // namespace weir::test
