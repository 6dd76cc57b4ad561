// The op cases on the asynchronous device: every kernel on its streams, and every gradient, which gives the CPU's bits.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/client/session/session.h"
#include "core/client/session/session_interface.h"
#include "tests/ops/case_run.h"
#include "tests/ops/case_table.h"
#include "tests/support/async_plugins.h"
#include "tools/weir/cases/gradient_graph.h"

namespace weir {
namespace {

Status Compare(const testing::OpCase& row, const std::shared_ptr<session::Runtime>& runtime) {
  Graph graph;
  Feeds feeds;
  WEIR_ASSIGN(const std::vector<Output> fetches, cases::AddGradients(row, graph, &feeds));
  session::SessionOptions on_cpu, on_async;
  on_cpu.default_device = "CPU:0";
  on_async.default_device = "ASYNC:0";
  on_cpu.constant_folding = on_async.constant_folding = false;
  Session cpu(graph, InProcess(graph, on_cpu, runtime)), async(graph, InProcess(graph, on_async, runtime));
  WEIR_TRY(cpu.status());
  WEIR_TRY(async.status());
  for (size_t i = 0; i < fetches.size(); ++i) {
    WEIR_ASSIGN(const Tensor wanted, Eval(fetches[i], feeds, &cpu));
    WEIR_ASSIGN(const Tensor got, Eval(fetches[i], feeds, &async));
    if (!got.SameBits(wanted)) {
      return Internal("fetch {}: {} on the device, {} on the CPU", i, got.SummarizeValues(8),
                      wanted.SummarizeValues(8));
    }
  }
  return {};
}

class AsyncOps : public testing::AsyncTest {};

TEST_F(AsyncOps, GiveTheBitsOfTheCpu) {
  plugin::LoadOptions options;
  options.folders = {plugins_.folder()};
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  plugins_.Reset();
  const std::vector<const testing::OpCase*> rows = testing::GradientCases();
  for (const testing::OpCase* row : rows) {
    if (!testing::HasKernels(*row)) continue;
    const Status status = Compare(*row, *runtime);
    EXPECT_TRUE(status.ok()) << row->ToString() << ": " << status.ToString();
  }
  EXPECT_GT(plugins_.Counts().operations, rows.size()) << "the work ran somewhere else";
}

TEST_F(AsyncOps, EveryKernelInEveryModeOnAStream) {
  plugin::LoadOptions options;
  options.folders = {plugins_.folder()};
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  plugins_.Reset();
  std::map<testing::CallMode, int> calls;
  for (const testing::OpCase& c : testing::OpCases()) {
    for (const std::shared_ptr<device::Device>& device : (*runtime)->plugins->devices().all()) {
      if (!device->has_streams() || c.inputs.empty() || c.inputs[0].elements() > 5000) continue;
      for (const kernel::KernelEntry* entry : (*runtime)->plugins->kernels().Find(c.view(), device->info().platform)) {
        for (const testing::CallMode mode : testing::kCallModes) {
          const Status status = testing::RunKernel(*entry, c, *device, mode);
          if (status.code() == Code::kUnimplemented) continue;
          ++calls[mode];
          EXPECT_TRUE(status.ok()) << c.ToString() << "\n" << Name(mode) << ": " << status.ToString();
        }
      }
      break;  // the others are like the first
    }
  }
  for (const testing::CallMode mode : {testing::CallMode::kPrepared, testing::CallMode::kConstants,
                                       testing::CallMode::kInPlace, testing::CallMode::kDynamic}) {
    EXPECT_GE(calls[mode], 10) << Name(mode);
  }
}

}  // namespace
}  // namespace weir
