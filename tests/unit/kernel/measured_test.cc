// Times of kernels from runs, and their files.
#include "core/kernel/measured.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace weir::kernel {
namespace {

TEST(MeasuredCosts, F298_MediansOfSamplesAreKeptAndReadBack) {
  MeasuredCosts costs;
  for (const double ns : {100.0, 300.0, 200.0, 5000.0, 250.0}) costs.Add("CPU x", "MatMul a", ns, 50);
  costs.SetDevice("CPU x", {{"kernels_eigen", "0.1.0"}}, 12);
  for (const uint64_t bytes : {0, 1000, 2000})
    costs.AddTransfer("CPU:0->GPU:0", bytes, 700 + 0.5 * static_cast<double>(bytes));
  const auto read = MeasuredCosts::Parse(costs.ToJson(), "file");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->ToJson(), costs.ToJson());
  const MeasuredTime* const time = read->Find("CPU x", "MatMul a");
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->n, 5);
  EXPECT_EQ(time->median_ns, 250);
  EXPECT_EQ(time->mad_ns, 50);
  EXPECT_EQ(time->min_ns, 100);
  EXPECT_EQ(time->last_ns, 250);
  EXPECT_EQ(read->Factor("CPU x", "MatMul"), 5);
  EXPECT_EQ(read->Factor("CPU x", "Neg"), 0);
  EXPECT_EQ(read->GapNs("CPU x"), 12);
  const auto link = read->FindLink("CPU:0->GPU:0");
  ASSERT_TRUE(link);
  EXPECT_NEAR(link->latency_ns, 700, 1e-6);
  EXPECT_NEAR(link->bytes_per_ns, 2, 1e-9);
  EXPECT_FALSE(read->FindLink("GPU:0->CPU:0"));
}

TEST(MeasuredCosts, F298_FewSamplesAndTimesThatAreNoneDoNotCount) {
  MeasuredCosts costs;
  costs.Add("CPU x", "Neg a", 10, 0);
  costs.Add("CPU x", "Neg a", 10, 0);
  EXPECT_EQ(costs.Find("CPU x", "Neg a"), nullptr) << "two are too few";
  costs.Add("CPU x", "Neg a", std::numeric_limits<double>::quiet_NaN(), 0);
  costs.Add("CPU x", "Neg a", -1, 0);
  costs.Add("CPU x", "Neg a", std::numeric_limits<double>::infinity(), 0);
  EXPECT_EQ(costs.Find("CPU x", "Neg a"), nullptr);
  costs.Add("CPU x", "Neg a", 0, 0);
  ASSERT_NE(costs.Find("CPU x", "Neg a"), nullptr);
  EXPECT_EQ(costs.Factor("CPU x", "Neg"), 0) << "nothing was declared";
}

TEST(MeasuredCosts, F298_LargerOperandsThanAllRecordedOnesAreTold) {
  MeasuredCosts costs;
  for (const char* key : {"MatMul float[32,784] float[784,10] transpose_a=false",
                          "MatMul float[64,784] float[784,10] "
                          "transpose_a=false",
                          "MatMul float[9,9] float[9,9] transpose_a=true", "MatMul2 float[1]",
                          "Conv2D float[1,8,8,1] float[3,3,1,4] strides=[1,2,2,1] padding=SAME", "Neg float[]"}) {
    costs.Add("CPU x", key, 10, 1);
  }
  const auto outgrown = [&](const std::string& key) -> std::string {
    const std::string* const recorded = costs.Outgrown("CPU x", key);
    return recorded == nullptr ? "" : *recorded;
  };
  EXPECT_EQ(outgrown("MatMul float[65,784] float[784,10] transpose_a=false"),
            "MatMul float[64,784] float[784,10] transpose_a=false");
  EXPECT_EQ(outgrown("MatMul float[64,784] float[784,10] transpose_a=false"), "");
  EXPECT_EQ(outgrown("MatMul float[33,784] float[784,10] transpose_a=false"), "") << "64 rows were recorded";
  EXPECT_EQ(outgrown("MatMul float[65,784] float[784,10] transpose_a=true"),
            "MatMul float[9,9] float[9,9] transpose_a=true");
  EXPECT_EQ(outgrown("MatMul double[65,784] double[784,10] transpose_a=false"), "") << "no double was recorded";
  EXPECT_EQ(outgrown("MatMul2 float[0]"), "");
  EXPECT_EQ(outgrown("Neg float[2]"), "Neg float[]");
  EXPECT_EQ(outgrown("Conv2D float[2,8,8,1] float[3,3,1,4] strides=[1,1,1,1] padding=SAME"), "");
  EXPECT_NE(outgrown("Conv2D float[2,8,8,1] float[3,3,1,4] strides=[1,2,2,1] padding=SAME"), "");
  EXPECT_EQ(costs.Outgrown("GPU y", "Neg float[2]"), nullptr);
}

TEST(MeasuredCosts, F298_MergingKeepsTheTimesWithMoreSamples) {
  MeasuredCosts few, many;
  for (int k = 0; k < 3; ++k) few.Add("CPU x", "Neg a", 10, 1);
  for (int k = 0; k < 9; ++k) many.Add("CPU x", "Neg a", 20, 1);
  for (int k = 0; k < 3; ++k) many.Add("GPU y", "Neg a", 5, 1);
  MeasuredCosts merged = few;
  merged.Merge(many);
  EXPECT_EQ(merged.Find("CPU x", "Neg a")->median_ns, 20);
  EXPECT_EQ(merged.Find("GPU y", "Neg a")->median_ns, 5);
  merged.Merge(few);
  EXPECT_EQ(merged.Find("CPU x", "Neg a")->n, 9);
  EXPECT_EQ(merged.size(), 2u);
}

TEST(MeasuredCosts, F298_DamagedFilesAreErrorsThatNameTheFault) {
  const std::string kernel = R"({"key": "Neg a", "n": 3, "median_ns": 1, "mad_ns": 0, "min_ns": 1, "last_ns": 1,
                                "declared_ns": NUMBER})";
  const auto file = [](const std::string& kernels, const std::string& rest) {
    return R"({"weir_measured": 1, "devices": {"CPU x": {"kernels": [)" + kernels + "]}}" + rest + "}";
  };
  const auto with = [&](const std::string& number) {
    std::string text = kernel;
    return file(text.replace(text.find("NUMBER"), 6, number), "");
  };
  EXPECT_TRUE(MeasuredCosts::Parse(with("0"), "f").ok());
  const std::pair<std::string, std::string> faults[] = {
      {"", "f: not a JSON object"},
      {"[]", "f: not a JSON object"},
      {R"({"weir_measured": 2, "devices": {}})", "\"weir_measured\" is 2; wanted 1"},
      {R"({"weir_calibration": 1})", "\"weir_measured\" is missing"},
      {R"({"weir_measured": 1})", "wanted an object of devices"},
      {with("-1"), "'Neg a': declared_ns is -1; wanted a time from 0"},
      {with("1e999"), "f: "},
      {with("null"), "declared_ns is null"},
      {with("\"1\""), "wanted a time from 0"},
      {with("NaN"), "f: not a JSON object"},
      {file("{}", ""), "a kernel without a key"},
      {file("", R"(, "links": {"CPU:0->GPU:0": [[1]]})"), "[1] is no transfer; wanted [bytes, ns]"},
      {file("", R"(, "links": {"CPU:0->GPU:0": [[1, -5]]})"), "is no transfer"},
  };
  for (const auto& [text, fault] : faults) {
    const auto read = MeasuredCosts::Parse(text, "f");
    EXPECT_EQ(read.status().code(), Code::kInvalidArgument) << text;
    EXPECT_NE(read.status().message().find(fault), std::string::npos) << read.status().ToString();
  }
  EXPECT_FALSE(MeasuredCosts::IsMeasured(R"({"weir_calibration": 1})"));
  EXPECT_TRUE(MeasuredCosts::IsMeasured(R"({"weir_measured": 2})"));
}

}  // namespace
}  // namespace weir::kernel
