// What the gradient function of an op sees of the node that is differentiated.
#ifndef WEIR_CORE_CLIENT_GRADIENTS_DIFFERENTIATION_INTERNAL_H_
#define WEIR_CORE_CLIENT_GRADIENTS_DIFFERENTIATION_INTERNAL_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/gradients/gradients.h"
#include "core/client/ops/operand.h"
#include "core/op/grad_context.h"

namespace weir {

/// A node whose further attributes follow from its inputs.
Operation AddOp(Graph& graph, std::string_view op, std::vector<Output> inputs, op::AttrList attrs = {},
                std::string_view name = {}, const Where& where = Where::current());

/// A dense tensor from rows: a sum of the rows of each index. Dense ones stay, and so do those that do not exist.
Output Densify(Graph& graph, const Gradient& gradient);

/// Nodes are added in the current scopes and context. In a gradient loop, what a shape query says of forward values is
/// kept instead of the values (QueryForward).
class Differentiation final : public op::GradContext {
 public:
  /// `dy`: one for each output. `source`: the gradients that it is one of.
  Differentiation(Graph& graph, const Operation& forward, std::vector<Gradient> dy, std::string source,
                  const Where& where)
      : graph_(graph),
        forward_(forward),
        attrs_(forward.node().attrs()),
        dy_(std::move(dy)),
        source_(std::move(source)),
        where_(where) {}

  const op::AttrView& attrs() const override { return attrs_; }
  int num_inputs() const override { return static_cast<int>(forward_.node().inputs().size()); }
  int num_outputs() const override { return forward_.num_outputs(); }
  op::Value X(int i) override;
  op::Value Y(int i) override;
  op::Value Dy(int i) override;
  op::Grad DyAsIs(int i) override;
  bool HasDy(int i) const override { return dy_[static_cast<size_t>(i)].exists(); }
  DType TypeOf(op::Value v) const override { return v.exists() ? ToOutput(v).dtype() : DType::kInvalid; }
  PartialShape ShapeOf(op::Value v) const override { return v.exists() ? ToOutput(v).shape() : PartialShape(); }
  const Tensor* ConstantOf(op::Value v) override;
  op::Value Apply(std::string_view op, std::initializer_list<op::Value> inputs, op::AttrList attrs) override;
  op::Value ApplyList(std::string_view op, const std::vector<op::Value>& inputs, op::AttrList attrs) override;
  std::vector<op::Value> ApplyAll(std::string_view op, const std::vector<op::Value>& inputs,
                                  op::AttrList attrs) override;
  op::Value Const(const Tensor& value) override;
  DType GradTypeOf(op::Value v) const override;
  Result<std::string> Define(const op::FunctionSpec& function) override;
  std::string source() const override { return source_; }
  Status status() const override { return graph_.status(); }

  Output ToOutput(op::Value v) const { return v.exists() ? Output(&graph_, {v.node, v.index}) : Output(); }

 private:
  std::vector<Output> Build(std::string_view op, const std::vector<op::Value>& inputs, op::AttrList attrs);
  std::vector<Output> Query(std::string_view op, const std::vector<Output>& values, const op::AttrView& attrs);
  Output OrFail(Result<Output> value);

  Graph& graph_;
  Operation forward_;
  op::AttrView attrs_;
  std::vector<Gradient> dy_;
  std::string source_;
  Where where_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRADIENTS_DIFFERENTIATION_INTERNAL_H_
