// Ops that a plugin brings (sdk/examples/op_set): in imported graphs, by name from the client, and in gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/client/extra.h"
#include "core/client/session/session_interface.h"
#include "core/kernel/vendor_ops.h"
#include "core/op/vendor_ops.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir {
namespace {

float SoftCap(float x, float limit) { return limit * x / (limit + std::abs(x)); }

class VendorOps : public ::testing::Test {
 protected:
  void SetUp() override {
    plugin::LoadOptions options;
    options.folders = {WEIR_VENDOR_OPS, WEIR_PLUGINS};
    Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
  }
  std::shared_ptr<session::Runtime> runtime_;
};

TEST_F(VendorOps, AreListedWithTheirPluginAndKernels) {
  const op::OpDef* const def = runtime_->ops->Find("SoftCap");
  ASSERT_NE(def, nullptr);
  EXPECT_EQ(op::Summarize(*def),
            "Op<name=SoftCap; signature=x:T -> y:T; attr=T:type,allowed=[DT_FLOAT, DT_DOUBLE]; "
            "attr=limit:float,default=1>");
  EXPECT_EQ(op::OwnerOfOp("SoftCap"), "soft_cap");
  EXPECT_EQ(op::OwnerOfOp("MatMul"), "");
  EXPECT_TRUE(def->gradient);
  const std::vector<const op::OpDef*> all = runtime_->ops->All();
  EXPECT_NE(std::ranges::find(all, def), all.end());
  EXPECT_EQ(runtime_->plugins->kernels().ForOp("SoftCap").size(), 1u);
}

TEST_F(VendorOps, RunInImportedGraphs) {
  const Result<graph::Definition> graph =
      testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({2, 3})),
                          {"y", "SoftCap", {"x"}, {{"T", DType::kFloat}, {"limit", 2.0f}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const Result<std::unique_ptr<session::Session>> session = session::Session::Make(runtime_, *graph, {});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<float> in = {-3, -0.5f, 0, 0.25f, 1, 100};
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Of<float>(Shape::Of({2, 3}), in)}};
  const auto got = (*session)->Run(feeds, std::vector<std::string>{"y:0"}, {});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ((*got)[0].shape(), Shape::Of({2, 3}));
  for (size_t i = 0; i < in.size(); ++i) EXPECT_FLOAT_EQ((*got)[0].as<float>()[i], SoftCap(in[i], 2));
}

TEST_F(VendorOps, RefuseANodeInTheShapeFunctionsWords) {
  const Result<graph::Definition> graph =
      testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({2})),
                          {"y", "SoftCap", {"x"}, {{"T", DType::kFloat}, {"limit", -2.0f}}}});
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), Code::kInvalidArgument);
  EXPECT_NE(graph.status().message().find("limit must be positive, got -2"), std::string::npos)
      << graph.status().ToString();
  const Result<graph::Definition> ints =
      testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({2}), DType::kInt32),
                          {"y", "SoftCap", {"x"}, {{"T", DType::kInt32}}}});
  EXPECT_EQ(ints.status().code(), Code::kInvalidArgument) << "the type is not allowed";
}

TEST_F(VendorOps, HaveGradientsFromTheClient) {
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({4}));
  const Output y = BuildOp("SoftCap", {x}, {{"limit", 1.5f}}).output(0);
  const Output squares = BuildOp("Mul", {y, y}).output(0);
  const auto gradients = Gradients({squares}, {x});
  ASSERT_TRUE(gradients.ok()) << gradients.status().ToString();
  EXPECT_EQ(y.shape(), PartialShape::Of({4}));
  Session session(graph, InProcess(graph, {}, runtime_));
  const std::vector<float> at = {-2, -0.25f, 0.5f, 3};
  const auto got = session.Run(Fetch::List{(*gradients)[0].values}, {{x, at}});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  for (size_t i = 0; i < at.size(); ++i) {
    constexpr float kStep = 1e-2f;
    const auto square = [](float of) { return SoftCap(of, 1.5f) * SoftCap(of, 1.5f); };
    const float slope = (square(at[i] + kStep) - square(at[i] - kStep)) / (2 * kStep);
    EXPECT_NEAR((*got)[0].tensor().as<float>()[i], slope, 2e-3f) << at[i];
  }
}

weir_str Of(const char* text) { return {text, std::strlen(text)}; }

TEST_F(VendorOps, FaultyDefinitionsAreListedAndTheOthersStay) {
  const auto shape = [](const void*, const weir_shape_args*, void (*)(void*, uint32_t, const weir_shape*), void*,
                        weir_error*) -> int32_t { return WEIR_OK; };
  static weir_str float_in = Of("x: float"), unknown_in = Of("x: Q");
  const auto record = [&](const char* name, const weir_str* input) {
    weir_op op{};
    op.struct_size = sizeof op;
    op.name = Of(name);
    op.inputs = input;
    op.input_count = 1;
    op.shape = shape;
    return op;
  };
  static weir_op ops[] = {record("MatMul", &float_in), record("VendorBad", &unknown_in), record("lower", &float_in),
                          record("VendorGood", &float_in), record("VendorGood", &float_in)};
  static const weir_op* const records[] = {&ops[0], &ops[1], &ops[2], &ops[3], &ops[4], nullptr};
  static const weir_ops_api api = {sizeof(weir_ops_api), 0, records, 6};
  const std::vector<std::string> faults = kernel::DeclareVendorOps(&api, "test", *runtime_->ops);
  ASSERT_EQ(faults.size(), 5u);
  EXPECT_EQ(faults[0], "op 'MatMul' exists");
  EXPECT_NE(faults[1].find("op 'VendorBad'"), std::string::npos) << faults[1];
  EXPECT_EQ(faults[2], "op 'lower': wanted an upper-case letter, then letters and digits");
  EXPECT_EQ(faults[3], "op 'VendorGood' exists");
  EXPECT_EQ(faults[4], "a record of ops/1 is too short, or has no shape function");
  const op::OpDef* const good = runtime_->ops->Find("VendorGood");
  ASSERT_NE(good, nullptr);
  EXPECT_EQ(good->no_gradient, "plugin test has none");
  EXPECT_EQ(runtime_->ops->Find("VendorBad"), nullptr);
  EXPECT_EQ(kernel::DeclareVendorOps(&api, "test", *runtime_->ops), faults) << "a table is declared once";
}

}  // namespace
}  // namespace weir
