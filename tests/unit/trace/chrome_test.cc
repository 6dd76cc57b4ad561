#include "core/trace/span.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/trace_rows.h"

namespace weir::trace {
namespace {

using Json = nlohmann::json;

TEST(ChromeTrace, IsValidJsonWithOneRowPerThread) {
  StepTrace step;
  step.step_id = 7;
  step.start_us = 1000;
  step.spans = {{"scope/\"odd\"\n", "MatMul", "/device:CPU:0", 1500, 4000, 0, 64},
                {"b", "Add", "/device:CPU:0", 2000, 2500, 1, 8},
                {"c", "copy", "", 100, 200, 0, 0}};
  StepTrace later = step;
  later.step_id = 8;
  later.start_us = 3000;
  const std::vector<StepTrace> steps = {step, later};
  const Json trace = Json::parse(ChromeTrace(steps), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<std::string, int> phases;
  for (const Json& event : trace["traceEvents"]) ++phases[event["ph"].get<std::string>()];
  EXPECT_EQ(phases["X"], 6);
  EXPECT_EQ(phases["M"], 5 + 3) << "work and tensors of two devices, allocators; three threads";
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != "MatMul" || event["args"]["step"] != 8) continue;
    EXPECT_EQ(event["args"]["name"], "scope/\"odd\"\n");
    EXPECT_DOUBLE_EQ(event["ts"].get<double>(), 2000 + 1.5);
    EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 2.5);
    EXPECT_EQ(event["args"]["output_bytes"], 64);
    return;
  }
  FAIL() << "no such event";
}

TEST(ChromeTrace, F335_WorkTensorsAndMemoryHaveProcessesOfTheirOwn) {
  const std::string cpu = "/job:localhost/replica:0/task:0/device:CPU:0";
  StepTrace step;
  step.spans = {{"a", "Square", cpu, 1000, 2000, 0, 8, {{0, 1, {2}, 8}}},
                {"b", "Neg", cpu, 3000, 4000, 0, 4, {{0, 1, {}, 4}}, {"a", "fed"}},
                {"c", "Neg", cpu, 5000, 6000, 0, 0, {}, {"a"}}};
  const Json trace = Json::parse(ChromeTrace({&step, 1}), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<std::string, int> processes;
  std::map<std::string, std::vector<Json>> by_phase;
  for (const Json& event : trace["traceEvents"]) {
    by_phase[event["ph"].get<std::string>()].push_back(event);
    if (event["name"] == "process_name") processes[event["args"]["name"].get<std::string>()] = event["pid"].get<int>();
  }
  ASSERT_EQ(processes.size(), 3u);
  for (const std::string& name : {cpu + " Compute", cpu + " Tensors", std::string("Allocators")}) {
    EXPECT_TRUE(processes.contains(name)) << name;
  }
  ASSERT_EQ(by_phase["X"].size(), 3u);
  EXPECT_EQ(by_phase["X"][0]["pid"], processes[cpu + " Compute"]);
  ASSERT_EQ(by_phase["s"].size(), 2u) << "from a to b and to c";
  ASSERT_EQ(by_phase["t"].size(), 2u);
  EXPECT_EQ(by_phase["s"][1]["id"], by_phase["t"][1]["id"]);
  EXPECT_NE(by_phase["s"][0]["id"], by_phase["s"][1]["id"]);
  EXPECT_DOUBLE_EQ(by_phase["s"][1]["ts"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(by_phase["t"][1]["ts"].get<double>(), 5);
  for (const char* phase : {"N", "O", "D"}) ASSERT_EQ(by_phase[phase].size(), 2u) << phase;
  EXPECT_EQ(by_phase["N"][0]["name"], "a:0");
  EXPECT_EQ(by_phase["N"][0]["pid"], processes[cpu + " Tensors"]);
  EXPECT_EQ(by_phase["O"][0]["args"]["snapshot"]["shape"], Json({2}));
  EXPECT_DOUBLE_EQ(by_phase["D"][0]["ts"].get<double>(), 6) << "when its last reader has ended";
  EXPECT_DOUBLE_EQ(by_phase["D"][1]["ts"].get<double>(), 4) << "nothing reads it";
  std::vector<int> held;
  for (const Json& event : by_phase["C"]) {
    EXPECT_EQ(event["pid"], processes["Allocators"]);
    held.push_back(event["args"]["bytes"].get<int>());
  }
  EXPECT_EQ(held, (std::vector<int>{8, 12, 8, 0}));
}

TEST(ChromeTrace, F340_SpansThatOverlapInPartHaveDifferentRows) {
  StepTrace step;
  step.spans = {{"waits", "Dequeue", "", 0, 5000, 1},      {"inner", "Add", "", 1000, 2000, 1},
                {"ends later", "Recv", "", 3000, 7000, 1}, {"beside it", "Recv", "", 4000, 8000, 1},
                {"after", "Add", "", 7000, 9000, 1},       {"elsewhere", "Add", "", 3000, 7000, 2}};
  const Json trace = Json::parse(ChromeTrace({&step, 1}), nullptr, false);
  EXPECT_EQ(test::FaultOfRows(trace), "");
  std::map<std::string, int> rows;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") rows[event["args"]["name"].get<std::string>()] = event["tid"].get<int>();
  }
  EXPECT_EQ(rows["inner"], rows["waits"]);
  EXPECT_EQ(rows["after"], rows["waits"]);
  EXPECT_NE(rows["ends later"], rows["waits"]);
  EXPECT_NE(rows["beside it"], rows["ends later"]);
  EXPECT_NE(rows["elsewhere"], rows["waits"]);
}

TEST(ChromeTrace, F336_RunsBesideEachOtherHaveLanes) {
  const auto run = [](int64_t id, int64_t start_us) {
    StepTrace step;
    step.step_id = id;
    step.start_us = start_us;
    step.total_ns = 10000;
    step.spans = {{"a", "Add", "", 1000, 4000, 0}, {"b", "Add", "", 4000, 9000, 0}};
    return step;
  };
  const std::vector<StepTrace> steps = {run(1, 100), run(3, 109), run(2, 104), run(4, 116)};
  const Json trace = Json::parse(ChromeTrace(steps), nullptr, false);
  EXPECT_EQ(test::FaultOfRows(trace), "");
  std::map<int, std::set<int>> rows;  // by run
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") rows[event["args"]["step"].get<int>()].insert(event["tid"].get<int>());
  }
  for (int id = 1; id <= 4; ++id) EXPECT_EQ(rows[id].size(), 1u) << id;
  EXPECT_NE(rows[1], rows[2]) << "2 begins while 1 runs";
  EXPECT_EQ(rows[1], rows[3]) << "begins when 1 has ended, within the microsecond that starts are rounded to";
  EXPECT_EQ(rows[2], rows[4]);
}

TEST(ChromeTrace, F340_TheCheckOfRowsSeesOverlaps) {
  const auto trace = [](int begin, int end, int row) {
    Json first = {{"ph", "X"}, {"ts", 1}, {"dur", 4}, {"pid", 1}, {"tid", 0}, {"args", {{"name", "a"}}}};
    Json second = first;
    second["ts"] = begin;
    second["dur"] = end - begin;
    second["tid"] = row;
    second["args"]["name"] = "b";
    return Json{{"traceEvents", {first, second}}};
  };
  EXPECT_EQ(test::FaultOfRows(trace(2, 6, 0)), "a and b overlap in row 0 of process 1");
  EXPECT_EQ(test::FaultOfRows(trace(0, 2, 0)), "b and a overlap in row 0 of process 1");
  EXPECT_EQ(test::FaultOfRows(trace(2, 6, 1)), "") << "another row";
  EXPECT_EQ(test::FaultOfRows(trace(2, 3, 0)), "") << "within";
  EXPECT_EQ(test::FaultOfRows(trace(5, 6, 0)), "") << "after";
}

TEST(ChromeTrace, F337_MemoryHasOneCounterPerSpace) {
  const std::string gpu = "/device:GPU:0", cpu = "/device:CPU:0";
  StepTrace step;
  step.spans = {{"a", "Square", gpu, 1000, 2000, 0, 20, {{0, 1, {2}, 8, gpu}, {1, 1, {3}, 12, cpu}}},
                {"b", "Neg", gpu, 3000, 4000, 0, 4, {{0, 1, {}, 4, gpu}}, {"a"}},
                {"c", "Neg", cpu, 3000, 4000, 1, 16, {{0, 1, {4}, 16}}}};
  const Json trace = Json::parse(ChromeTrace({&step, 1}), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<std::string, std::vector<int>> held;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "C") held[event["name"].get<std::string>()].push_back(event["args"]["bytes"].get<int>());
  }
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[gpu], (std::vector<int>{8, 0, 4, 0}));
  EXPECT_EQ(held[cpu], (std::vector<int>{12, 0, 16, 0}))
      << "what a device leaves in the memory of the host counts there";
}

TEST(ChromeTrace, OfNothingIsValidToo) {
  const Json trace = Json::parse(ChromeTrace({}), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  EXPECT_TRUE(trace["traceEvents"].empty());
}

}  // namespace
}  // namespace weir::trace
