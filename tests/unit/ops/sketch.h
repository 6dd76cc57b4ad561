// A gradient context without a client: it checks the types of every node that a gradient emits, infers its shapes, and
// can write the result as a formula.
#ifndef WEIR_TESTS_UNIT_OPS_SKETCH_H_
#define WEIR_TESTS_UNIT_OPS_SKETCH_H_

#include <deque>
#include <string>
#include <vector>

#include "core/op/function_gradient.h"
#include "core/op/grad_context.h"
#include "tests/unit/ops/row.h"

namespace weir::ops::test {

enum class Flow { kFirstOutput, kAllOutputs };

/// The node of `row`, whose inputs print as x0, x1 …, outputs as y0 …, gradients as dy0 … (no digit if there is only
/// one). The registry and the row outlive it.
class Sketch : public op::GradContext {
 public:
  Sketch(const op::OpRegistry& ops, const Row& row, Flow flow);

  const op::AttrView& attrs() const override { return attrs_; }
  int num_inputs() const override { return static_cast<int>(xs_.size()); }
  int num_outputs() const override { return static_cast<int>(ys_.size()); }
  op::Value X(int i) override { return xs_[i]; }
  op::Value Y(int i) override { return ys_[i]; }
  op::Value Dy(int i) override { return dys_[i]; }
  bool HasDy(int i) const override { return i == 0 || flow_ == Flow::kAllOutputs; }
  DType TypeOf(op::Value v) const override;
  PartialShape ShapeOf(op::Value v) const override;
  const Tensor* ConstantOf(op::Value v) override;
  op::Value Apply(std::string_view op, std::initializer_list<op::Value> inputs, op::AttrList attrs = {}) override;
  op::Value ApplyList(std::string_view op, const std::vector<op::Value>& inputs, op::AttrList attrs = {}) override;
  std::vector<op::Value> ApplyAll(std::string_view op, const std::vector<op::Value>& inputs,
                                  op::AttrList attrs = {}) override;
  op::Value Const(const Tensor& value) override;
  Result<std::string> Define(const op::FunctionSpec& function) override { return function.name; }
  Status status() const override { return status_; }

  /// "Mul(dy, Const)" … with constants by value; "-" for none.
  std::string Formula(op::Value v) const;

 private:
  struct Node {
    std::string text;  // without the output index
    std::vector<DType> types;
    std::vector<PartialShape> shapes;
    Tensor constant;             // valid if the only output is known
    PartialShape partial_value;  // known elements of an integer vector
    op::HeldValue held;          // known type and shape of the variable behind a handle
  };

  op::Value Leaf(std::string text, DType type, PartialShape shape);
  Result<Node> Emit(const op::OpDef& def, const std::vector<op::Value>& inputs, op::AttrList attrs) const;
  /// Derives type attributes from the inputs; InvalidArgument if two inputs disagree.
  Status InferTypes(const op::OpDef& def, const std::vector<op::Value>& inputs, op::AttrList& attrs) const;

  const op::OpRegistry& ops_;
  op::AttrView attrs_;
  Flow flow_;
  std::deque<Node> nodes_;
  std::vector<op::Value> xs_, ys_, dys_;
  Status status_;
};

}  // namespace weir::ops::test

#endif  // WEIR_TESTS_UNIT_OPS_SKETCH_H_
