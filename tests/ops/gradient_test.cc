// Every gradient against finite differences of its op, through a session with the plugins that are there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/base/errors.h"
#include "core/client/gradients/gradients.h"
#include "core/client/ops/build_op.h"
#include "core/client/session/session.h"
#include "core/ops/declare_all.h"
#include "core/tensor/number.h"
#include "tests/ops/case_table.h"
#include "tools/weir/cases/case_values.h"

namespace weir {
namespace {

/// loss = sum(op(inputs) * weights), and its gradients by the differentiable inputs.
struct Problem {
  Graph graph;
  std::vector<Output> inputs;     // all
  std::vector<size_t> variables;  // positions of the differentiable ones
  Output loss;
  std::vector<Gradient> gradients;
};

Status Build(const testing::OpCase& row, Problem* p) {
  const AsDefault in(p->graph);
  std::vector<Output> xs;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const Tensor& value = row.inputs[i];
    if (!row.DifferentiatedBy(i)) {
      p->inputs.push_back(Operand(Literal(value)).In(p->graph));
      continue;
    }
    OperationSpec spec;
    spec.op = "Placeholder";
    spec.attrs = {{"dtype", value.dtype()}, {"shape", PartialShape(value.shape())}};
    p->inputs.push_back(p->graph.Add(spec).output(0));
    p->variables.push_back(i);
    xs.push_back(p->inputs.back());
  }
  OperationSpec spec;
  spec.op = row.def->name;
  spec.inputs = p->inputs;
  spec.attrs = row.attrs;
  const Operation op = p->graph.Add(spec);
  WEIR_TRY(p->graph.status());
  Output y = BuildOp("Cast", {op.output(row.output)}, {{"DstT", DType::kDouble}}).output(0);
  // Extents that depend on values are those of the case's output.
  Shape shape = row.outputs.empty() ? Shape() : row.outputs[static_cast<size_t>(row.output)].shape();
  if (row.outputs.empty()) {
    WEIR_ASSIGN(shape, y.shape().ToShape());
  }
  WEIR_ASSIGN(Tensor weights, Tensor::Make(DType::kDouble, shape));
  for (int64_t i = 0; i < weights.elements(); ++i)
    weights.mutable_as<double>()[static_cast<size_t>(i)] = 0.5 + std::fmod(0.37 * static_cast<double>(i), 1.0);
  y = BuildOp("Mul", {y, Operand(Literal(weights)).In(p->graph)}).output(0);
  const Output flat = BuildOp("Reshape", {y, Operand(Literal(Tensor::Vector<int32_t>({-1}))).In(p->graph)}).output(0);
  p->loss = BuildOp("Sum", {flat, Operand(Literal(Tensor::Vector<int32_t>({0}))).In(p->graph)}).output(0);
  WEIR_ASSIGN(p->gradients, Gradients({p->loss}, xs));
  return p->graph.status();
}

/// Rows of IndexedSlices added up into the shape of the input.
Result<std::vector<double>> Dense(Session& session, const Gradient& gradient, const Feeds& feeds, const Shape& shape) {
  std::vector<double> sums(static_cast<size_t>(shape.elements()), 0.0);
  WEIR_ASSIGN(const Tensor values, Eval(gradient.values, feeds, &session));
  if (!gradient.sparse()) {
    if (!(values.shape() == shape))
      return InvalidArgument("gradient of shape {}, wanted {}", values.shape().ToString(), shape.ToString());
    for (int64_t i = 0; i < values.elements(); ++i) sums[static_cast<size_t>(i)] = ElementAsDouble(values, i);
    return sums;
  }
  WEIR_ASSIGN(const Tensor indices, Eval(gradient.indices, feeds, &session));
  const int64_t width = shape.elements() / shape.dim(0);
  for (int64_t r = 0; r < indices.elements(); ++r) {
    for (int64_t c = 0; c < width; ++c)
      sums[static_cast<size_t>(ElementAsInt(indices, r) * width + c)] += ElementAsDouble(values, r * width + c);
  }
  return sums;
}

/// The loss with `by` added to element i of differentiable input v.
Result<double> MovedLoss(const Problem& p, Session& session, const Feeds& feeds, size_t v, const Tensor& x, int64_t i,
                         double by) {
  WEIR_ASSIGN(Tensor moved, x.Clone());
  testing::SetNumber(moved, i, ElementAsDouble(x, i) + by);
  Feeds changed = feeds;
  changed[v].second = Literal(moved);
  WEIR_ASSIGN(const Tensor loss, Eval(p.loss, changed, &session));
  return *loss.scalar<double>();
}

/// Differences of a function with the rounding error of `single` precision or double: of fourth or second order.
Result<double> Slope(const Problem& p, Session& session, const Feeds& feeds, size_t v, const Tensor& x, int64_t i,
                     bool single) {
  const double step = single ? 1e-2 : 1e-5;
  const auto across = [&](double by) -> Result<double> {
    WEIR_ASSIGN(const double after, MovedLoss(p, session, feeds, v, x, i, by));
    WEIR_ASSIGN(const double before, MovedLoss(p, session, feeds, v, x, i, -by));
    return after - before;
  };
  WEIR_ASSIGN(const double near, across(step));
  if (!single) return near / (2 * step);
  WEIR_ASSIGN(const double far, across(2 * step));
  return (8 * near - far) / (12 * step);
}

Status Check(const testing::OpCase& row) {
  Problem p;
  WEIR_TRY(Build(row, &p));
  Session session(p.graph);
  WEIR_TRY(session.status());
  Feeds feeds;
  for (const size_t i : p.variables) feeds.emplace_back(p.inputs[i], row.inputs[i]);
  const bool cast = row.def->name == "Cast";
  bool single = cast || row.signature.outputs[static_cast<size_t>(row.output)] == DType::kFloat;
  for (const size_t i : p.variables) single = single || row.inputs[i].dtype() == DType::kFloat;
  const double absolute = single && !cast ? 5e-4 : 1e-6, relative = cast ? 1e-4 : single ? 2e-3 : 1e-5;
  for (size_t v = 0; v < p.variables.size(); ++v) {
    const Tensor& x = row.inputs[p.variables[v]];
    // None means that nothing flows back, which the differences have to confirm.
    std::vector<double> symbolic(static_cast<size_t>(x.elements()), 0.0);
    if (p.gradients[v].exists()) {
      WEIR_ASSIGN(symbolic, Dense(session, p.gradients[v], feeds, x.shape()));
    }
    for (int64_t i = 0; i < x.elements(); ++i) {
      WEIR_ASSIGN(const double numeric, Slope(p, session, feeds, v, x, i, single));
      const double got = symbolic[static_cast<size_t>(i)];
      if (std::abs(numeric - got) > absolute + relative * std::abs(numeric)) {
        return InvalidArgument("input {} element {}: gradient {}, by differences {}", p.variables[v], i, got, numeric);
      }
    }
  }
  return Status();
}

TEST(OpGradients, AgreeWithFiniteDifferences) {
  for (const testing::OpCase* row : testing::GradientCases()) {
    if (!testing::HasKernels(*row)) continue;
    const Status status = Check(*row);
    EXPECT_TRUE(status.ok()) << row->ToString() << ": " << status.ToString();
  }
}

TEST(OpGradients, EveryOpWithAGradientHasARow) {
  // State, random ops, and ops whose gradient is an error or hands rows to a variable, have tests of their own. The op
  // of the gradient of MaxPool3DGradGrad takes no double, and gradients pass through roundings, optionals, complex
  // numbers and Fourier transforms: tests/unit/ops/gradients.txt has them.
  const std::set<std::string> elsewhere = {"PreventGradient",
                                           "ReadVariableOp",
                                           "ResourceGather",
                                           "ResourceGatherNd",
                                           "Conj",
                                           "Complex",
                                           "Real",
                                           "Imag",
                                           "ComplexAbs",
                                           "Angle",
                                           "FloorDiv",
                                           "SparseMatMul",
                                           "MaxPool3DGradGrad",
                                           "RandomGamma",
                                           "StatelessRandomGammaV2",
                                           "StatelessRandomGammaV3",
                                           "StatelessParameterizedTruncatedNormal"};
  const auto of_arrays = [](const op::OpDef& op) {  // tests/unit/client/tensor_array_test.cc
    return op.name.starts_with("TensorArray") || op.name.starts_with("TensorList");
  };
  const auto passes = [](const op::OpDef& op) {
    return op.name.starts_with("QuantizeAndDequantize") || op.name.starts_with("Optional");
  };
  const auto of_spectra = [](const op::OpDef& op) {  // of complex numbers
    return op.name.find("FFT") != op.name.npos;
  };
  const auto of_functions = [](const op::OpDef& op) {  // tests/unit/client: theirs are those of the bodies
    return std::ranges::any_of(op.attrs,
                               [](const op::AttrDef& attr) { return attr.type.find("func") != attr.type.npos; });
  };
  std::set<std::string> have;
  for (const testing::OpCase* row : testing::GradientCases()) have.insert(row->def->name);
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  ASSERT_TRUE(ops.ok());
  for (const op::OpDef* op : (*ops)->All()) {
    const bool covered = !op->gradient || have.contains(op->name) || elsewhere.contains(op->name) || of_arrays(*op) ||
                         passes(*op) || of_spectra(*op) || of_functions(*op);
    EXPECT_TRUE(covered) << op->name;
  }
}

}  // namespace
}  // namespace weir
