#include "core/trace/chrome.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

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
  EXPECT_EQ(phases["M"], 2 + 3) << "two processes, three threads";
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

TEST(ChromeTrace, OfNothingIsValidToo) {
  const Json trace = Json::parse(ChromeTrace({}), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  EXPECT_TRUE(trace["traceEvents"].empty());
}

}  // namespace
}  // namespace weir::trace
