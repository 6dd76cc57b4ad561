#include "tests/bench/gemm_graphs.h"

#include <utility>

#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/training/optimizer.h"
#include "core/client/variables/variable_scope.h"
#include "core/session/session.h"
#include "tests/bench/open.h"

namespace weir::bench {
namespace {

using Client = weir::Graph;

constexpr int64_t kLayers[] = {784, 512, 512, 10};

Result<Tensor> Filled(const Shape& shape) {
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(DType::kFloat, shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.mutable_as<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 7) / 7 - 0.4f;
  return tensor;
}

}  // namespace

Result<Program> OneProduct(const std::shared_ptr<session::Runtime>& runtime, const GemmShape& s,
                           const std::string& profile_file) {
  Client client;
  const AsDefault in(client);
  const Shape a_shape = s.transpose_a ? Shape::Of({s.k, s.m}) : Shape::Of({s.m, s.k});
  const Shape b_shape = s.transpose_b ? Shape::Of({s.n, s.k}) : Shape::Of({s.k, s.n});
  WEIR_ASSIGN(const Tensor a_value, Filled(a_shape));
  WEIR_ASSIGN(const Tensor b_value, Filled(b_shape));
  const Output a = Placeholder(DType::kFloat, PartialShape(a_shape), "a");
  const Output b =
      s.constant_b ? Operand(Literal(b_value)).In(client) : Placeholder(DType::kFloat, PartialShape(b_shape), "b");
  const Output c =
      BuildOp("MatMul", {a, b}, {{"transpose_a", s.transpose_a}, {"transpose_b", s.transpose_b}}).output(0);
  session::SessionOptions options;
  options.profile_file = profile_file;
  session::CallableOptions call{{a.name()}, {c.name()}, {}};
  if (!s.constant_b) call.feeds.push_back(b.name());
  WEIR_ASSIGN(Program program, Open(runtime, client, call, options));
  program.feeds = {a_value};
  if (!s.constant_b) program.feeds.push_back(b_value);
  return program;
}

Result<Program> MlpStep(const std::shared_ptr<session::Runtime>& runtime, int64_t batch, Training training) {
  Client client;
  const AsDefault in(client);
  SetRandomSeed(1);
  const Output images = Placeholder(DType::kFloat, PartialShape::Of({-1, kLayers[0]}), "images");
  const Output labels = Placeholder(DType::kInt32, PartialShape::Of({-1}), "labels");
  Output h = images;
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    const Variable weights = GetVariable("w" + number, Shape::Of({kLayers[i], kLayers[i + 1]}));
    const Variable bias = GetVariable("b" + number, Shape::Of({kLayers[i + 1]}), DType::kFloat, ZerosInitializer());
    h = BuildOp("BiasAdd", {BuildOp("MatMul", {h, weights}).output(0), bias}).output(0);
    if (i < 2) h = BuildOp("Relu", {h}).output(0);
  }
  const Output losses = BuildOp("SparseSoftmaxCrossEntropyWithLogits", {h, labels}).output(0);
  const Output loss = BuildOp("Mean", {losses, Operand(Literal({0})).In(client, DType::kInt32)}).output(0);
  std::string train;
  if (training == Training::kAdam) {
    AdamOptimizer optimizer(0.001);
    train = optimizer.Minimize(loss).name();
  } else {
    GradientDescentOptimizer optimizer(0.01);
    train = optimizer.Minimize(loss).name();
  }
  const std::string init = GlobalVariablesInitializer(client).name();
  WEIR_ASSIGN(Program program, Open(runtime, client, {{images.name(), labels.name()}, {loss.name()}, {train}}, {}));
  WEIR_TRY(program.session->Run({}, {}, std::vector<std::string>{init}).status());
  WEIR_ASSIGN(const Tensor pixels, Filled(Shape::Of({batch, kLayers[0]})));
  std::vector<int32_t> classes;
  for (int64_t i = 0; i < batch; ++i) classes.push_back(static_cast<int32_t>(i % 10));
  program.feeds = {pixels, Tensor::Vector<int32_t>(classes)};
  return program;
}

Result<Program> FrozenMlp(const std::shared_ptr<session::Runtime>& runtime, int64_t batch) {
  Client client;
  const AsDefault in(client);
  const Output images = Placeholder(DType::kFloat, PartialShape::Of({-1, kLayers[0]}), "images");
  Output h = images;
  for (int i = 0; i < 3; ++i) {
    WEIR_ASSIGN(const Tensor weights, Filled(Shape::Of({kLayers[i], kLayers[i + 1]})));
    WEIR_ASSIGN(const Tensor bias, Filled(Shape::Of({kLayers[i + 1]})));
    h = BuildOp("MatMul", {h, Operand(Literal(weights)).In(client)}).output(0);
    h = BuildOp("BiasAdd", {h, Operand(Literal(bias)).In(client)}).output(0);
    if (i < 2) h = BuildOp("Relu", {h}).output(0);
  }
  WEIR_ASSIGN(Program program, Open(runtime, client, {{images.name()}, {h.name()}, {}}, {}));
  WEIR_ASSIGN(const Tensor pixels, Filled(Shape::Of({batch, kLayers[0]})));
  program.feeds = {pixels};
  return program;
}

std::vector<GemmShape> MlpProducts(int64_t batch) {
  std::vector<GemmShape> products;
  for (int i = 0; i < 3; ++i) {
    const int64_t in = kLayers[i], out = kLayers[i + 1];
    products.push_back({batch, out, in});
    products.push_back({in, out, batch, true, false});
    if (i > 0) products.push_back({batch, in, out, false, true});
  }
  return products;
}

int64_t MlpParameters() {
  int64_t parameters = 0;
  for (int i = 0; i < 3; ++i) parameters += (kLayers[i] + 1) * kLayers[i + 1];
  return parameters;
}

}  // namespace weir::bench
