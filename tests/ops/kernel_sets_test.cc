// Kernel sets beside each other: which one runs, and what they do for products. Values of all: tests/ops/cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/client/graph/graph_internal.h"
#include "core/client/ops/build_op.h"
#include "core/client/session/session.h"
#include "core/plan/plan.h"
#include "core/session/session.h"
#include "sdk/cpp/cpu.h"
#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"

extern char** environ;

namespace weir {
namespace {

using Complex = std::complex<double>;

const std::vector<std::string> kSets = {"kernels_eigen", "kernels_onednn", "kernels_openblas"};

/// With these kernel sets and no other; null when none was built.
std::shared_ptr<session::Runtime> With(const std::vector<std::string>& sets) {
  plugin::LoadOptions options;
  options.config.plugins.isa = testing::TestIsa();
  for (const std::string& other : kSets) {
    if (std::ranges::find(sets, other) == sets.end()) options.deny.push_back(other);
  }
  Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
  if (!runtime.ok() || (*runtime)->plugins->kernels().ForOp("MatMul").empty()) return nullptr;
  return *runtime;
}
std::shared_ptr<session::Runtime> Alone(const std::string& set) { return With({set}); }

/// Numbers in [-1, 1] that do not repeat along rows.
Tensor Numbers(DType dtype, const Shape& shape, int seed) {
  Result<Tensor> made = Tensor::Make(dtype, shape);
  EXPECT_TRUE(made.ok());
  Tensor& tensor = *made;
  const auto at = [&](int64_t i, int part) { return std::sin(0.7 * static_cast<double>(i * 2 + part) + seed); };
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto e = static_cast<size_t>(i);
    if (dtype == DType::kFloat) tensor.mutable_as<float>()[e] = static_cast<float>(at(i, 0));
    if (dtype == DType::kDouble) tensor.mutable_as<double>()[e] = at(i, 0);
    if (dtype == DType::kComplex64)
      tensor.mutable_as<std::complex<float>>()[e] = {static_cast<float>(at(i, 0)), static_cast<float>(at(i, 1))};
    if (dtype == DType::kComplex128) tensor.mutable_as<Complex>()[e] = {at(i, 0), at(i, 1)};
  }
  return tensor;
}

void Set(Tensor& tensor, int64_t i, double value) {
  const auto e = static_cast<size_t>(i);
  if (tensor.dtype() == DType::kFloat) tensor.mutable_as<float>()[e] = static_cast<float>(value);
  if (tensor.dtype() == DType::kDouble) tensor.mutable_as<double>()[e] = value;
}

Complex At(const Tensor& tensor, int64_t i) {
  const auto e = static_cast<size_t>(i);
  switch (tensor.dtype()) {
    case DType::kFloat:
      return tensor.as<float>()[e];
    case DType::kDouble:
      return tensor.as<double>()[e];
    case DType::kComplex64:
      return Complex(tensor.as<std::complex<float>>()[e]);
    default:
      return tensor.as<Complex>()[e];
  }
}

struct Row {
  std::string op;
  DType dtype;
  std::vector<Shape> inputs;
  bool transpose_a = false, transpose_b = false;
  bool constant_b = false;
};

op::AttrList AttrsOf(const Row& row) {
  if (row.op == "MatMul") return {{"transpose_a", row.transpose_a}, {"transpose_b", row.transpose_b}};
  if (row.op.starts_with("Batch")) return {{"adj_x", row.transpose_a}, {"adj_y", row.transpose_b}};
  return {};
}

/// A graph of the one node, opened.
struct OneNode {
  std::unique_ptr<graph::Definition> graph;
  std::unique_ptr<session::Session> session;
  std::vector<session::Feed> feeds;
  std::vector<std::string> fetches;

  Result<Tensor> Run() {
    WEIR_ASSIGN(std::vector<Tensor> fetched, session->Run(feeds, fetches, {}));
    return fetched[0];
  }
};

Result<OneNode> Open(const std::shared_ptr<session::Runtime>& runtime, const Row& row,
                     const session::SessionOptions& options = {}) {
  Graph client;
  const AsDefault in(client);
  OneNode node;
  std::vector<Operand> inputs;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const Tensor value = Numbers(row.dtype, row.inputs[i], static_cast<int>(i));
    if (i == 1 && row.constant_b) {
      inputs.push_back(Operand(Literal(value)).In(client));
      continue;
    }
    OperationSpec spec;
    spec.op = "Placeholder";
    spec.attrs = {{"dtype", row.dtype}, {"shape", PartialShape(row.inputs[i])}};
    const Output fed = client.Add(spec).output(0);
    inputs.push_back(fed);
    node.feeds.emplace_back(fed.name(), value);
  }
  const Output y = BuildOp(row.op, inputs, AttrsOf(row)).output(0);
  WEIR_TRY(client.status());
  node.fetches = {y.name()};
  node.graph = std::make_unique<graph::Definition>(std::move(Internals(client).definition));
  WEIR_ASSIGN(node.session, session::Session::Make(runtime, *node.graph, options));
  return node;
}

std::vector<Row> Rows() {
  std::vector<Row> rows;
  const auto product = [&](DType dtype, int64_t m, int64_t n, int64_t k) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        for (const bool constant : {false, true}) {
          rows.push_back({"MatMul",
                          dtype,
                          {a ? Shape::Of({k, m}) : Shape::Of({m, k}), b ? Shape::Of({n, k}) : Shape::Of({k, n})},
                          a,
                          b,
                          constant});
        }
      }
    }
  };
  const int64_t sizes[][3] = {{1, 1, 1},    {1, 7, 5},    {6, 1, 9},    {3, 4, 1},    {2, 3, 0},     {0, 3, 2},
                              {17, 33, 65}, {32, 32, 32}, {64, 48, 31}, {1, 300, 70}, {130, 129, 67}};
  for (const auto& [m, n, k] : sizes) {
    product(DType::kFloat, m, n, k);
    product(DType::kDouble, m, n, k);
  }
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  product(DType::kComplex64, 9, 20, 33);
  product(DType::kComplex128, 9, 20, 33);
#endif
  return rows;
}

class KernelSet : public ::testing::TestWithParam<std::string> {};

TEST_P(KernelSet, FewerRowsThanThreadsStayTogether) {
  const std::shared_ptr<session::Runtime> runtime = Alone(GetParam());
  if (runtime == nullptr) GTEST_SKIP() << GetParam() << " was not built";
  for (const int64_t rows : {1, 3}) {
    const Row row{"MatMul", DType::kFloat, {Shape::Of({rows, 1700}), Shape::Of({1700, 3000})}};
    session::SessionOptions options;
    options.intra_op_parallelism_threads = 4;
    Result<OneNode> node = Open(runtime, row, options);
    ASSERT_TRUE(node.ok()) << node.status().ToString();
    const Result<Tensor> got = node->Run();
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    const Tensor x = Numbers(DType::kFloat, row.inputs[0], 0), y = Numbers(DType::kFloat, row.inputs[1], 1);
    for (const int64_t column : {int64_t{0}, int64_t{1234}, int64_t{2999}}) {
      double wanted = 0;
      for (int64_t k = 0; k < 1700; ++k) wanted += (At(x, (rows - 1) * 1700 + k) * At(y, k * 3000 + column)).real();
      EXPECT_NEAR(At(*got, (rows - 1) * 3000 + column).real(), wanted, 1e-3 * (1 + std::abs(wanted)));
    }
  }
}

/// A variable of ones after one gradient descent step by the row's product.
Result<Tensor> Descended(const std::shared_ptr<session::Runtime>& runtime, const Row& row, const Shape& shape,
                         bool fusion) {
  const op::AttrList type = {{"T", row.dtype}};
  op::AttrList product = AttrsOf(row);
  product.emplace_back("T", row.dtype);
  WEIR_ASSIGN(Tensor ones, Tensor::Make(row.dtype, shape));
  WEIR_ASSIGN(Tensor rate, Tensor::Make(row.dtype, Shape()));
  for (int64_t i = 0; i < ones.elements(); ++i) Set(ones, i, 1);
  Set(rate, 0, 0.5);
  WEIR_ASSIGN(const graph::Definition graph,
              testing::MakeGraph({{"v", "VariableV2", {}, {{"dtype", row.dtype}, {"shape", PartialShape(shape)}}},
                                  testing::Const("ones", ones),
                                  testing::Const("rate", rate),
                                  testing::Placeholder("x", PartialShape(row.inputs[0]), row.dtype),
                                  testing::Placeholder("y", PartialShape(row.inputs[1]), row.dtype),
                                  {"init", "Assign", {"v", "ones"}, type},
                                  {"product", "MatMul", {"x", "y"}, product},
                                  {"step", "ApplyGradientDescent", {"v", "rate", "product"}, type}}));
  session::SessionOptions options;
  options.fusion = fusion;
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph, options));
  const std::vector<std::string> init = {"init"}, step = {"step:0"};
  WEIR_TRY(session->Run({}, {}, init).status());
  const std::vector<session::Feed> feeds = {{"x:0", Numbers(row.dtype, row.inputs[0], 0)},
                                            {"y:0", Numbers(row.dtype, row.inputs[1], 1)}};
  WEIR_ASSIGN(std::vector<Tensor> stepped, session->Run(feeds, step, {}));
  return stepped[0];
}

/// Sets with kernels for fused ops, beside kernels_eigen for the rest.
class FusingSet : public ::testing::TestWithParam<std::string> {};

TEST_P(FusingSet, AStepByAProductIsThatOfTwoOps) {
  const std::shared_ptr<session::Runtime> runtime = With({GetParam(), "kernels_eigen"});
  ASSERT_NE(runtime, nullptr);
  const bool built = !runtime->plugins->kernels().ForOp("_ApplyGradientDescentMatMul").empty();
  if (!built) GTEST_SKIP() << GetParam() << " was not built";
  for (const Row& row : Rows()) {
    if (row.op != "MatMul" || row.constant_b || IsComplex(row.dtype)) continue;
    const Shape shape =
        Shape::Of({row.inputs[0].dim(row.transpose_a ? 1 : 0), row.inputs[1].dim(row.transpose_b ? 0 : 1)});
    const Result<Tensor> fused = Descended(runtime, row, shape, true), apart = Descended(runtime, row, shape, false);
    ASSERT_TRUE(fused.ok() && apart.ok()) << fused.status().ToString() << apart.status().ToString();
    const double tolerance = row.dtype == DType::kFloat ? 1e-5 : 1e-13;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      ASSERT_NEAR(At(*fused, i).real(), At(*apart, i).real(), tolerance) << shape.ToString() << " element " << i;
    }
  }
}

TEST_P(KernelSet, ConcurrentRunsGiveTheSameBits) {
  const std::shared_ptr<session::Runtime> runtime = Alone(GetParam());
  if (runtime == nullptr) GTEST_SKIP() << GetParam() << " was not built";
  for (const Row& row : {Row{"MatMul", DType::kFloat, {Shape::Of({33, 70}), Shape::Of({50, 70})}, false, true},
                         Row{"MatMul", DType::kFloat, {Shape::Of({70, 90}), Shape::Of({90, 70})}},
                         Row{"MatMul", DType::kFloat, {Shape::Of({33, 70}), Shape::Of({70, 50})}, false, false, true},
                         Row{"BatchMatMulV2", DType::kFloat, {Shape::Of({5, 3, 4}), Shape::Of({5, 4, 6})}}}) {
    Result<OneNode> node = Open(runtime, row);
    ASSERT_TRUE(node.ok()) << node.status().ToString();
    const Result<Tensor> alone = node->Run();
    ASSERT_TRUE(alone.ok()) << alone.status().ToString();
    std::vector<std::thread> threads;
    std::vector<int> differing(12, 0);
    for (int t = 0; t < 12; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          const Result<Tensor> got = node->Run();
          const bool same = got.ok() && std::ranges::equal(got->as<float>(), alone->as<float>());
          differing[static_cast<size_t>(t)] += same ? 0 : 1;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(differing, std::vector<int>(12, 0));
  }
}

TEST_P(KernelSet, StartsNoThreadAndLeavesTheEnvironmentAlone) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto environment = [] {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
    return all;
  };
  // Threads that the runtime itself starts are there before the set is used.
  const std::vector<std::string> environment_before = environment();
  const std::shared_ptr<session::Runtime> runtime = Alone(GetParam());
  if (runtime == nullptr) GTEST_SKIP() << GetParam() << " was not built";
  const auto threads_before = threads();
  Result<OneNode> node = Open(runtime, {"MatMul", DType::kFloat, {Shape::Of({200, 200}), Shape::Of({200, 200})}});
  ASSERT_TRUE(node.ok()) << node.status().ToString();
  ASSERT_TRUE(node->Run().ok());
  EXPECT_LE(threads(), threads_before + 1);  // the core's own pool may start with the first run
  EXPECT_EQ(environment(), environment_before);
}

INSTANTIATE_TEST_SUITE_P(All, KernelSet, ::testing::ValuesIn(kSets));
INSTANTIATE_TEST_SUITE_P(All, FusingSet, ::testing::Values("kernels_onednn", "kernels_openblas"));

/// Plugins in the order in which the plan would take their kernels for a product.
std::vector<std::string> Ranked(const session::Runtime& runtime, const Row& row,
                                const kernel::Calibration* calibration) {
  op::AttrList attrs = AttrsOf(row);
  attrs.push_back({"T", row.dtype});
  const op::OpDef* def = runtime.ops->Find(row.op);
  const weir_node node{"product", op::AttrView(*def, attrs), [](int) { return nullptr; }, nullptr, {}};
  std::vector<kernel::OperandSpec> inputs, outputs;
  for (const Shape& shape : row.inputs) inputs.push_back({row.dtype, shape});
  const int64_t m = row.inputs[0].dim(row.transpose_a ? 1 : 0), n = row.inputs[1].dim(row.transpose_b ? 0 : 1);
  outputs.push_back({row.dtype, Shape::Of({m, n})});
  std::vector<std::string> names;
  device::Device& device = *runtime.plugins->devices().all()[0];
  const auto kernels = runtime.plugins->kernels().Find(node.attrs, device.info().platform);
  for (const kernel::KernelEntry* entry : plan::RankKernels(kernels, node, inputs, outputs, device, calibration)) {
    names.push_back(entry->plugin);
  }
  return names;
}

class Ranking : public ::testing::Test {
 protected:
  void SetUp() override {
    plugin::LoadOptions options;
    options.config.plugins.isa = testing::TestIsa();
    Result<std::shared_ptr<session::Runtime>> loaded = session::Runtime::Load(options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    runtime = *loaded;
    if (Ranked(*runtime, square, nullptr).size() != kSets.size()) GTEST_SKIP() << "not all kernel sets were built";
  }
  std::shared_ptr<session::Runtime> runtime;
  const Row square{"MatMul", DType::kFloat, {Shape::Of({256, 256}), Shape::Of({256, 256})}};
};

TEST_F(Ranking, DeclaredCostsPutTheLibrariesWhereTheyWin) {
  const sdk::CpuClass kind = sdk::ThisCpu().Class(testing::TestIsa() == "x86-64-v3" ? sdk::Isa::kV3 : sdk::Isa::kAuto);
  const bool avx512 =
      kind == sdk::CpuClass::kAmdAvx512 || kind == sdk::CpuClass::kAmdZen5 || kind == sdk::CpuClass::kIntelAvx512;
  const std::string best = Ranked(*runtime, square, nullptr)[0];
  if (avx512) {
    EXPECT_EQ(best, "kernels_onednn");
  }
  if (kind == sdk::CpuClass::kAmdAvx2) {
    EXPECT_NE(best, "kernels_onednn");
  }
  const Row small{"MatMul", DType::kFloat, {Shape::Of({32, 32}), Shape::Of({32, 32})}};
  if (avx512) {
    EXPECT_EQ(Ranked(*runtime, small, nullptr)[0], "kernels_openblas");
  }
  const Row tiny{"MatMul", DType::kFloat, {Shape::Of({2, 3}), Shape::Of({3, 2})}};
  EXPECT_EQ(Ranked(*runtime, tiny, nullptr)[0], "kernels_eigen");
}

TEST_F(Ranking, MeasuredTimesWinNearTheirPoint) {
  const Result<std::shared_ptr<const kernel::Calibration>> file = kernel::Calibration::Parse(
      R"({"weir_calibration": 1, "points": [{"op": "MatMul", "dtype": "float32", "flags": [],
          "inputs": [[200, 200], [200, 200]], "constant": [],
          "ns": {"kernels_eigen": 1, "kernels_onednn": 3, "kernels_openblas": 2}}]})",
      "test");
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(Ranked(*runtime, square, file->get()),
            (std::vector<std::string>{"kernels_eigen", "kernels_openblas", "kernels_onednn"}));
  const Row far{"MatMul", DType::kFloat, {Shape::Of({1024, 1024}), Shape::Of({1024, 1024})}};
  EXPECT_EQ(Ranked(*runtime, far, file->get()), Ranked(*runtime, far, nullptr));
}

TEST_F(Ranking, ASessionReadsItsProfileFile) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "weir_calibration_test.json";
  session::SessionOptions options;
  options.profile_file = path.string();
  std::ofstream(path) << "[]";
  EXPECT_EQ(Open(runtime, square, options).status().code(), Code::kInvalidArgument);
  std::ofstream(path) << R"({"weir_calibration": 1, "points": []})";
  EXPECT_TRUE(Open(runtime, square, options).ok());
  std::filesystem::remove(path);
  EXPECT_EQ(Open(runtime, square, options).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace weir
