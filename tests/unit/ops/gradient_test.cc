// Gradient functions: the formulas of gradients.txt; and for every row of shapes.txt, the emitted nodes are well typed
// and have the inputs' shapes.
#include <fmt/format.h>

#include <gtest/gtest.h>

#include <set>

#include "core/ops/declare_all.h"
#include "tests/unit/ops/sketch.h"

namespace weir::ops::test {
namespace {

Result<std::vector<op::Grad>> Differentiate(const Row& row, Sketch& sketch) {
  WEIR_TRY(sketch.status());
  WEIR_ASSIGN(std::vector<op::Grad> grads, row.def->gradient(sketch));
  WEIR_TRY(sketch.status());
  return grads;
}

TEST(Gradients, FormulasAreThoseOfTheTable) {
  for (const Row& row : TableRows(Ops(), "gradients.txt")) {
    ASSERT_TRUE(row.def->gradient) << row.text;
    Sketch sketch(Ops(), row, row.text.find("dy1") != std::string::npos ? Flow::kAllOutputs : Flow::kFirstOutput);
    const Result<std::vector<op::Grad>> grads = Differentiate(row, sketch);
    ASSERT_TRUE(grads.ok()) << row.text << "\n" << grads.status().ToString();
    std::vector<std::string> got;
    for (const op::Grad& grad : *grads) {
      got.push_back(grad.sparse() ? fmt::format("slices {} {} {}", sketch.Formula(grad.values),
                                                sketch.Formula(grad.indices), sketch.Formula(grad.dense_shape))
                                  : sketch.Formula(grad.values));
    }
    EXPECT_EQ(got, row.expected) << row.text;
  }
}

void CheckGrad(const Row& row, int i, const op::Grad& grad, const Sketch& sketch) {
  if (!grad.exists()) return;
  const DType input = BaseType(row.signature.inputs[i]);
  if (input != DType::kResource) {
    EXPECT_EQ(sketch.TypeOf(grad.values), input) << row.text << ", input " << i;
  }
  if (grad.sparse()) {
    EXPECT_TRUE(IsInteger(sketch.TypeOf(grad.indices))) << row.text;
    EXPECT_TRUE(IsInteger(sketch.TypeOf(grad.dense_shape))) << row.text;
    return;
  }
  const PartialShape& wanted = input == DType::kResource ? row.inputs[i].held.shape : row.inputs[i].shape;
  const PartialShape got = sketch.ShapeOf(grad.values);
  EXPECT_TRUE(got.CompatibleWith(wanted))
      << row.text << ", input " << i << ": " << got.ToString() << " from " << sketch.Formula(grad.values);
}

TEST(Gradients, AreWellTypedAndShapedLikeTheInputs) {
  std::set<std::string> checked;
  for (const Row& row : TableRows(Ops(), "shapes.txt")) {
    if (!row.def->gradient || (!row.expected.empty() && row.expected[0].starts_with("error"))) continue;
    checked.insert(row.def->name);
    if (row.def->name == "PreventGradient") continue;  // its gradient is an error
    for (Flow flow : {Flow::kFirstOutput, Flow::kAllOutputs}) {
      Sketch sketch(Ops(), row, flow);
      const Result<std::vector<op::Grad>> grads = Differentiate(row, sketch);
      ASSERT_TRUE(grads.ok()) << row.text << "\n" << grads.status().ToString();
      ASSERT_EQ(grads->size(), row.inputs.size()) << row.text;
      for (size_t i = 0; i < grads->size(); ++i) CheckGrad(row, static_cast<int>(i), (*grads)[i], sketch);
    }
  }
  const std::set<std::string> in_cases = OpsWithCases();  // checked there by numbers
  for (const op::OpDef* def : Ops().All()) {
    EXPECT_TRUE(!def->gradient || checked.contains(def->name) || in_cases.contains(def->name)) << def->name;
  }
}

TEST(Gradients, PreventedOnesAreErrorsWithTheReason) {
  const Result<Row> row = ParseRow(Ops(), "PreventGradient message='not_yet' : [2] -> ");
  ASSERT_TRUE(row.ok()) << row.status().ToString();
  Sketch sketch(Ops(), *row, Flow::kFirstOutput);
  const Result<std::vector<op::Grad>> grads = Differentiate(*row, sketch);
  ASSERT_FALSE(grads.ok());
  EXPECT_NE(grads.status().message().find("Gradient explicitly disabled. Reason: not_yet"), std::string::npos);
}

TEST(Gradients, ErrorsOfEmittedNodesAreReported) {
  const Result<Row> row = ParseRow(Ops(), "Tanh : [2] -> ");
  ASSERT_TRUE(row.ok()) << row.status().ToString();
  Sketch sketch(Ops(), *row, Flow::kFirstOutput);
  EXPECT_FALSE(sketch.Apply("MatMul", {sketch.X(0), sketch.Dy(0)}).exists());
  EXPECT_EQ(sketch.status().message(), "MatMul: Shape must be rank 2 but is rank 1");
  EXPECT_FALSE(sketch.Neg(sketch.X(0)).exists());
}

}  // namespace
}  // namespace weir::ops::test
