#include <fmt/format.h>

#include "core/op/grad_context.h"

#include <gtest/gtest.h>

#include "core/tensor/number.h"

namespace weir::op {
namespace {

/// Records the nodes that a gradient emits; every value has the type `type`.
class Recorder final : public GradContext {
 public:
  explicit Recorder(DType type) : type_(type) {}

  const AttrView& attrs() const override { return view_; }
  int num_inputs() const override { return 2; }
  int num_outputs() const override { return 1; }
  Value X(int i) override { return {i, 0}; }
  Value Y(int i) override { return {10 + i, 0}; }
  Value Dy(int i) override { return {20 + i, 0}; }
  bool HasDy(int) const override { return true; }
  DType TypeOf(Value) const override { return type_; }
  PartialShape ShapeOf(Value) const override { return {}; }
  const Tensor* ConstantOf(Value) override { return nullptr; }
  Value Apply(std::string_view op, std::initializer_list<Value> inputs, AttrList attrs) override {
    return ApplyList(op, std::vector<Value>(inputs), std::move(attrs));
  }
  Value ApplyList(std::string_view op, const std::vector<Value>& inputs, AttrList attrs) override {
    return ApplyAll(op, inputs, std::move(attrs))[0];
  }
  std::vector<Value> ApplyAll(std::string_view op, const std::vector<Value>& inputs, AttrList) override {
    std::string line(op);
    for (const Value v : inputs) line += fmt::format(" {}:{}", v.node, v.index);
    log.push_back(line);
    const int node = 99 + static_cast<int>(log.size());
    return {{node, 0}, {node, 1}};
  }
  Value Const(const Tensor& value) override {
    constant = value;
    return {50, 0};
  }
  Status status() const override { return {}; }

  std::vector<std::string> log;
  Tensor constant;

 private:
  DType type_;
  OpDef def_;
  AttrList attrs_;
  AttrView view_{def_, attrs_};
};

using Lines = std::vector<std::string>;

// F183: the Reshape of the second input must be the second Reshape of the scope for all shapes.
TEST(GradContextTest, UnbroadcastEmitsTensorFlowsNodes) {
  Recorder g(DType::kFloat);
  const std::vector<Grad> grads = g.Unbroadcast({30, 0}, {31, 0});
  EXPECT_EQ(g.log, (Lines{"Shape 0:0", "Shape 1:0", "BroadcastGradientArgs 100:0 101:0", "Sum 30:0 102:0",
                          "Reshape 103:0 100:0", "Sum 31:0 102:1", "Reshape 105:0 101:0"}));
  ASSERT_EQ(grads.size(), 2u);
  EXPECT_EQ(grads[0].values.node, 104);
  EXPECT_EQ(grads[1].values.node, 106);
}

TEST(GradContextTest, UnbroadcastPassesEmptyOn) {
  Recorder g(DType::kFloat);
  const std::vector<Grad> grads = g.Unbroadcast({}, {31, 0});
  ASSERT_EQ(grads.size(), 2u);
  EXPECT_FALSE(grads[0].exists());
  EXPECT_TRUE(grads[1].exists());
}

TEST(GradContextTest, ConjOnlyForComplex) {
  Recorder real(DType::kFloat);
  EXPECT_EQ(real.Conj({3, 0}).node, 3);
  EXPECT_TRUE(real.log.empty());
  Recorder complex(DType::kComplex64);
  EXPECT_EQ(complex.Conj({3, 0}).node, 100);
  EXPECT_EQ(complex.log, Lines{"Conj 3:0"});
  EXPECT_FALSE(complex.Conj({}).exists());
}

TEST(GradContextTest, ConstLikeTakesTheType) {
  for (const DType type : {DType::kFloat, DType::kHalf, DType::kInt64, DType::kComplex128, RefType(DType::kDouble)}) {
    Recorder g(type);
    EXPECT_TRUE(g.ConstLike({1, 0}, 2.0).exists());
    EXPECT_EQ(g.constant.dtype(), BaseType(type));
    EXPECT_EQ(ElementAsDouble(g.constant, 0), 2.0);
  }
  Recorder text(DType::kString);
  text.ConstLike({1, 0}, 2.0);
  EXPECT_FALSE(text.constant.valid());
  EXPECT_FALSE(text.ConstLike({}, 2.0).exists());
}

TEST(GradTest, Kinds) {
  EXPECT_FALSE(Grad::None().exists());
  EXPECT_TRUE(Grad(Value{1, 0}).exists());
  EXPECT_FALSE(Grad(Value{1, 0}).sparse());
  EXPECT_TRUE(Grad::Slices({1, 0}, {2, 0}, {3, 0}).sparse());
  EXPECT_EQ(One({4, 1}).at(0).values.index, 1);
}

}  // namespace
}  // namespace weir::op
