#include "core/op/attr_value.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::op {
namespace {

FuncRef Call(std::string name, AttrList attrs) {
  return FuncRef{std::move(name), std::make_shared<const AttrList>(std::move(attrs))};
}

struct Case {
  AttrValue value;
  const char* type;
  const char* text;
};

std::vector<Case> Cases() {
  return {
      {AttrValue("a\"b\n\x01"), "string", "\"a\\\"b\\n\\001\""},
      {AttrValue(-3), "int", "-3"},
      {AttrValue(int64_t{1} << 40), "int", "1099511627776"},
      {AttrValue(0.5f), "float", "0.5"},
      {AttrValue(true), "bool", "true"},
      {AttrValue(DType::kFloat), "type", "DT_FLOAT"},
      {AttrValue(PartialShape::Of({-1, 3})), "shape", "[?,3]"},
      {AttrValue(Tensor::Vector<int32_t>({1, 2})), "tensor", "Tensor<type: int32 shape: [2] values: 1 2>"},
      {AttrValue(Call("f", {{"T", DType::kInt32}})), "func", "f[T=DT_INT32]"},
      {AttrValue(FuncRef{"g", nullptr}), "func", "g[]"},
      {AttrValue(AttrPlaceholder{"T"}), "placeholder", "$T"},
      {AttrValue(EmptyList{}), "list", "[]"},
      {AttrValue(std::vector<std::string>{"a", "b"}), "list(string)", "[\"a\", \"b\"]"},
      {AttrValue(std::vector<int64_t>{1, 2}), "list(int)", "[1, 2]"},
      {AttrValue(std::vector<float>{1.5f}), "list(float)", "[1.5]"},
      {AttrValue(std::vector<bool>{true, false}), "list(bool)", "[true, false]"},
      {AttrValue(std::vector<DType>{DType::kInt8}), "list(type)", "[DT_INT8]"},
      {AttrValue(std::vector<PartialShape>{PartialShape(), Shape()}), "list(shape)", "[<unknown>, []]"},
      {AttrValue(std::vector<Tensor>{Tensor::Scalar(true)}), "list(tensor)",
       "[Tensor<type: bool shape: [] values: 1>]"},
      {AttrValue(std::vector<FuncRef>{{"f", nullptr}}), "list(func)", "[f[]]"},
  };
}

TEST(AttrValueTest, TypeNameAndText) {
  EXPECT_FALSE(AttrValue().set());
  for (const Case& c : Cases()) {
    EXPECT_TRUE(c.value.set());
    EXPECT_EQ(c.value.TypeName(), c.type);
    EXPECT_EQ(c.value.ToString(), c.text);
  }
}

TEST(AttrValueTest, EqualOnlyToItself) {
  const std::vector<Case> cases = Cases();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (size_t j = 0; j < cases.size(); ++j) EXPECT_EQ(cases[i].value == cases[j].value, i == j) << i << " " << j;
  }
  EXPECT_EQ(AttrValue(), AttrValue());
}

TEST(AttrValueTest, EqualityByBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(AttrValue(nan), AttrValue(nan));
  EXPECT_FALSE(AttrValue(0.0f) == AttrValue(-0.0f));
  EXPECT_EQ(AttrValue(Tensor::Scalar(nan)), AttrValue(Tensor::Scalar(nan)));
  EXPECT_FALSE(AttrValue(Tensor::Scalar(0.0f)) == AttrValue(Tensor::Scalar(-0.0f)));
  EXPECT_EQ(AttrValue(Call("f", {})), AttrValue(FuncRef{"f", nullptr}));
  EXPECT_FALSE(AttrValue(Call("f", {{"N", 1}})) == AttrValue(Call("f", {{"N", 2}})));
}

TEST(AttrValueTest, MovesWithoutThrowing) {
  static_assert(std::is_nothrow_move_constructible_v<AttrValue>);
  static_assert(std::is_nothrow_move_assignable_v<AttrValue>);
  AttrValue from(std::string(100, 'x'));
  const AttrValue to = std::move(from);
  EXPECT_EQ(to.get<std::string>()->size(), 100u);
  EXPECT_EQ(to.get<int64_t>(), nullptr);
}

}  // namespace
}  // namespace weir::op
