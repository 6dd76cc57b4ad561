// Every op of the gradient rows, and its gradient, on the asynchronous device: the bits that the CPU gives.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/client/gradients.h"
#include "core/client/session.h"
#include "tests/ops/gradient_rows.h"
#include "tests/support/async_plugins.h"

namespace weir {
namespace {

/// The row's output and its gradients by all inputs of type double.
Result<std::vector<Output>> Build(const testing::GradientRow& row, Graph& graph, Feeds* feeds) {
  const AsDefault in(graph);
  std::vector<Output> inputs, xs;
  for (const auto& input : row.inputs) {
    if (input.fixed || input.value.dtype() != DType::kDouble) {
      inputs.push_back(Operand(Literal(input.value)).In(graph));
      continue;
    }
    OperationSpec spec;
    spec.op = "Placeholder";
    spec.attrs = {{"dtype", input.value.dtype()}, {"shape", PartialShape(input.value.shape())}};
    inputs.push_back(graph.Add(spec).output(0));
    feeds->emplace_back(inputs.back(), Literal(input.value));
    xs.push_back(inputs.back());
  }
  OperationSpec spec;
  spec.op = row.op;
  spec.inputs = inputs;
  spec.attrs = row.attrs;
  std::vector<Output> fetches = {graph.Add(spec).output(row.output)};
  WEIR_TRY(graph.status());
  WEIR_ASSIGN(const std::vector<Gradient> gradients, Gradients({fetches[0]}, xs));
  for (const Gradient& gradient : gradients) {
    if (gradient.exists()) fetches.push_back(gradient.values);
  }
  WEIR_TRY(graph.status());
  return fetches;
}

Status Compare(const testing::GradientRow& row, const std::shared_ptr<session::Runtime>& runtime) {
  Graph graph;
  Feeds feeds;
  WEIR_ASSIGN(const std::vector<Output> fetches, Build(row, graph, &feeds));
  session::SessionOptions on_cpu, on_async;
  on_cpu.default_device = "CPU:0";
  on_async.default_device = "ASYNC:0";
  on_cpu.constant_folding = on_async.constant_folding = false;
  Session cpu(graph, on_cpu, runtime), async(graph, on_async, runtime);
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
  for (const testing::GradientRow& row : testing::GradientRows()) {
    const Status status = Compare(row, *runtime);
    EXPECT_TRUE(status.ok()) << row.op << ": " << status.ToString();
  }
  EXPECT_GT(plugins_.Counts().operations, testing::GradientRows().size()) << "the work ran somewhere else";
}

}  // namespace
}  // namespace weir
