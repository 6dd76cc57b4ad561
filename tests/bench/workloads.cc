#include "tests/bench/workloads.h"

#include <algorithm>
#include <utility>

#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/training/optimizer.h"
#include "core/client/variables/variable_scope.h"
#include "core/graph/graph_def.h"
#include "core/session/session.h"
#include "core/tensor/number.h"
#include "tests/bench/measure.h"
#include "tests/bench/open.h"

namespace weir::bench {

using Client = weir::Graph;

double Program::RunNs(int runs, std::string* error) {
  std::vector<Tensor> fetched;
  Status status;
  const double ns = TimeNs([&] {
    for (int i = 0; i < runs && status.ok(); ++i) status = session->RunCallable(call, feeds, &fetched);
  });
  if (!status.ok()) *error = status.ToString();
  return status.ok() ? ns / runs : -1;
}

double Program::RunByNameNs(int runs, std::string* error) {
  const std::vector<session::Feed> named = NamedFeeds();
  Status status;
  const double ns = TimeNs([&] {
    for (int i = 0; i < runs && status.ok(); ++i) {
      status = session->Run(named, names.fetches, names.targets).status();
    }
  });
  if (!status.ok()) *error = status.ToString();
  return status.ok() ? ns / runs : -1;
}

Result<session::RunReport> Program::Report() {
  session::RunReport report;
  WEIR_TRY(session->Run(NamedFeeds(), names.fetches, names.targets, {}, &report).status());
  return report;
}

std::vector<session::Feed> Program::NamedFeeds() const {
  std::vector<session::Feed> named;
  for (size_t i = 0; i < feeds.size(); ++i) named.emplace_back(names.feeds[i], feeds[i]);
  return named;
}

Result<Program> Chain(const std::shared_ptr<session::Runtime>& runtime, const std::string& op, DType dtype,
                      int length) {
  Client client;
  const AsDefault in(client);
  const Output x = Placeholder(dtype, PartialShape::Of({}), "x");
  WEIR_ASSIGN(const Tensor one, ScalarFrom(dtype, 1));
  const Output step = Operand(Literal(one)).In(client, dtype, "one");
  Output y = x;
  const bool binary = Internals(client).definition.ops().Find(op) != nullptr &&
                      Internals(client).definition.ops().Find(op)->inputs.size() == 2;
  for (int i = 0; i < length; ++i) {
    y = (binary ? BuildOp(op, {y, step}) : BuildOp(op, {y})).output(0);
  }
  WEIR_ASSIGN(Program program, Open(runtime, client, {{x.name()}, {y.name()}, {}}));
  program.feeds = {one};
  return program;
}

Result<Program> Digits(const std::shared_ptr<session::Runtime>& runtime, bool training) {
  Client client;
  const AsDefault in(client);
  SetRandomSeed(1);
  const Output images = Placeholder(DType::kFloat, PartialShape::Of({-1, 64}), "images");
  const Output labels = Placeholder(DType::kInt64, PartialShape::Of({-1}), "labels");
  const Variable w1 = GetVariable("w1", Shape::Of({64, 32}));
  const Variable b1 = GetVariable("b1", Shape::Of({32}), DType::kFloat, ZerosInitializer());
  const Variable w2 = GetVariable("w2", Shape::Of({32, 10}));
  const Variable b2 = GetVariable("b2", Shape::Of({10}), DType::kFloat, ZerosInitializer());
  const Output hidden =
      BuildOp("Relu", {BuildOp("BiasAdd", {BuildOp("MatMul", {images, w1}).output(0), b1}).output(0)}).output(0);
  const Output logits = BuildOp("BiasAdd", {BuildOp("MatMul", {hidden, w2}).output(0), b2}, {}, "logits").output(0);
  const Output losses = BuildOp("SparseSoftmaxCrossEntropyWithLogits", {logits, labels}).output(0);
  const Output loss = BuildOp("Mean", {losses, Operand(Literal({0})).In(client, DType::kInt32)}).output(0);
  GradientDescentOptimizer optimizer(0.1);
  const Operation train = optimizer.Minimize(loss);
  const Operation init = GlobalVariablesInitializer(client);
  session::CallableOptions call;
  if (training) {
    call = {{images.name(), labels.name()}, {}, {train.name()}};
  } else {
    call = {{images.name()}, {logits.name()}, {}};
  }
  const std::string init_name = init.name();
  WEIR_ASSIGN(Program program, Open(runtime, client, call));
  WEIR_TRY(program.session->Run({}, {}, std::vector<std::string>{init_name}).status());
  WEIR_ASSIGN(Tensor batch, Tensor::Make(DType::kFloat, Shape::Of({32, 64})));
  for (int64_t i = 0; i < batch.elements(); ++i)
    batch.mutable_as<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 17) / 17;
  program.feeds = {batch};
  if (training) {
    std::vector<int64_t> classes;
    for (int64_t i = 0; i < 32; ++i) classes.push_back(i % 10);
    program.feeds.push_back(Tensor::Vector<int64_t>(classes));
  }
  return program;
}

Result<Program> OneOp(const std::shared_ptr<session::Runtime>& runtime, int64_t bytes) {
  Client client;
  const AsDefault in(client);
  const Shape shape = Shape::Of({bytes / static_cast<int64_t>(sizeof(float))});
  const Output x = Placeholder(DType::kFloat, PartialShape(shape), "x");
  const Output y = BuildOp("Neg", {x}).output(0);
  WEIR_ASSIGN(Program program, Open(runtime, client, {{x.name()}, {y.name()}, {}}));
  WEIR_ASSIGN(Tensor value, Tensor::Make(DType::kFloat, shape));
  std::fill_n(value.mutable_as<float>().begin(), value.elements(), 1.0f);
  program.feeds = {value};
  return program;
}

Result<Program> Identities(const std::shared_ptr<session::Runtime>& runtime, int count, int64_t bytes) {
  Client client;
  const AsDefault in(client);
  const Shape shape = Shape::Of({bytes / static_cast<int64_t>(sizeof(float))});
  session::CallableOptions call;
  std::vector<Tensor> feeds;
  for (int i = 0; i < count; ++i) {
    const Output x = Placeholder(DType::kFloat, PartialShape(shape), "x" + std::to_string(i));
    call.feeds.push_back(x.name());
    call.fetches.push_back(BuildOp("Identity", {x}).output(0).name());
    WEIR_ASSIGN(Tensor value, Tensor::Make(DType::kFloat, shape));
    std::fill_n(value.mutable_as<float>().begin(), value.elements(), 1.0f);
    feeds.push_back(std::move(value));
  }
  if (count == 0) call.targets.push_back(NoOp().name());
  WEIR_ASSIGN(Program program, Open(runtime, client, call));
  program.feeds = std::move(feeds);
  return program;
}

std::string LargeGraphDef(int nodes, const op::OpRegistry& ops, bool fed) {
  graph::Definition graph(ops);
  for (int i = 0; i < nodes; ++i) {
    graph::NodeSpec spec;
    spec.name = "layer/node_" + std::to_string(i);
    if (i < 16) {
      spec.op = ops.Find(fed ? "Placeholder" : "Const");
      spec.attrs = {{"dtype", DType::kFloat}};
      if (fed) spec.attrs.emplace_back("shape", PartialShape(Shape()));
      if (!fed) spec.attrs.emplace_back("value", Tensor::Scalar<float>(1));
    } else {
      spec.op = ops.Find("AddV2");
      spec.inputs = {{i - 1, 0}, {i - 16, 0}};
      spec.attrs = {{"T", DType::kFloat}};
    }
    if (!graph.Add(std::move(spec)).ok()) return {};
  }
  const Result<std::string> bytes = graph::ExportGraphDef(graph);
  return bytes.ok() ? *bytes : std::string();
}

}  // namespace weir::bench
