// The op cases on emulated GPUs: every kernel of kernels_gpu_emulated, and the ops as nodes of a graph.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/base/errors.h"
#include "tests/ops/case_run.h"
#include "tests/ops/case_table.h"
#include "tests/support/gpu_plugins.h"

namespace weir::testing {
namespace {

constexpr std::string_view kPlatform = "gpu_emulated/1";

/// Ops whose kernels on a GPU do not report values that the CPU refuses: divisors, exponents, rows, lengths and ranges.
bool ReportsValues(const std::string& op) {
  static const std::set<std::string> silent = {
      "Div",      "DynamicPartition", "DynamicStitch",   "FloorDiv",    "FloorMod",
      "Gather",   "GatherNd",         "GatherV2",        "Mod",         "MaxPoolGradWithArgmax",
      "Pow",      "RealDiv",          "ReverseSequence", "TruncateDiv", "ParallelDynamicStitch",
      "TruncateMod", "SparseToDense",    "Bincount",        "DenseBincount", "HistogramFixedWidth",
      "SparseTensorDenseMatMul", "SparseSoftmaxCrossEntropyWithLogits"};
  constexpr std::string_view kParts[] = {"Scatter",        "Segment",       "SparseApply",
                                         "ResourceGather", "CropAndResize", "QuantizeAndDequantize",
                                         "ProximalAdagrad"};
  for (const std::string_view part : kParts) {
    if (op.find(part) != std::string::npos) return false;
  }
  return !silent.contains(op);
}

class GpuOps : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(folder_.path().empty()) << "the build lacks gpu_emulated";
    const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(folder_.Load({{"devices", "1"}}));
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = *runtime;
    for (const std::shared_ptr<device::Device>& device : runtime_->plugins->devices().all()) {
      if (device->info().platform == kPlatform) gpu_ = device;
    }
    ASSERT_NE(gpu_, nullptr) << "no emulated GPU";
  }

  GpuFolder folder_;
  std::shared_ptr<session::Runtime> runtime_;
  std::shared_ptr<device::Device> gpu_;
};

TEST_F(GpuOps, EveryKernelInEveryMode) {
  std::map<CallMode, int> calls;
  std::set<std::string> ops, declined;
  for (const OpCase& c : OpCases()) {
    for (const kernel::KernelEntry* entry : runtime_->plugins->kernels().Find(c.view(), kPlatform)) {
      const CallMode main = entry->record->prepare != nullptr ? CallMode::kPrepared : CallMode::kDynamic;
      for (const CallMode mode : kCallModes) {
        const Status status = RunKernel(*entry, c, *gpu_, mode);
        if (status.code() == Code::kUnimplemented) {
          if (mode == main && !c.fails) declined.insert(c.text);
          continue;
        }
        ++calls[mode];
        ops.insert(c.def->name);
        const bool silent = c.fails && !ReportsValues(c.def->name) && status.message().starts_with("'OK'");
        EXPECT_TRUE(status.ok() || silent) << c.ToString() << "\n" << Name(mode) << ": " << status.ToString();
      }
    }
  }
  RecordProperty("ops", static_cast<int>(ops.size()));
  for (const auto& [mode, count] : calls) RecordProperty(std::string(Name(mode)), count);
  for (const std::string& text : declined) ADD_FAILURE() << "the kernel declines '" << text << "'";
  EXPECT_GE(ops.size(), 150u);
  for (const CallMode mode : {CallMode::kPrepared, CallMode::kConstants, CallMode::kInPlace}) {
    EXPECT_GE(calls[mode], 300) << Name(mode);
  }
}

TEST_F(GpuOps, EveryKernelHasACase) {
  std::set<std::string> have;
  for (const OpCase& c : OpCases()) have.insert(c.def->name);
  for (const kernel::KernelEntry* entry : runtime_->plugins->kernels().All()) {
    if (std::string_view(entry->record->platform.data, entry->record->platform.size) != kPlatform) continue;
    const std::string op(entry->record->op.data, entry->record->op.size);
    EXPECT_TRUE(have.contains(op)) << op;
  }
}

}  // namespace
}  // namespace weir::testing
