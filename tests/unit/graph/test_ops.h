// A small op registry, and short ways to add nodes, for tests of graphs.
#ifndef WEIR_TESTS_UNIT_GRAPH_TEST_OPS_H_
#define WEIR_TESTS_UNIT_GRAPH_TEST_OPS_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/definition.h"
#include "core/op/registry.h"
#include "core/op/shape_context.h"
#include "core/ops/known_ints.h"

namespace weir::graph {

inline void DeclareTestOps(op::OpRegistry& ops) {
  using op::ShapeContext;
  const auto add = [&ops](std::string_view name) { return ops.Declare(name).NoGradient("of a test"); };
  add("Const")
      .RunsAs(op::Universal::kConstant)
      .Out("output: dtype")
      .Attr("value: tensor")
      .Attr("dtype: type")
      .Shape([](ShapeContext& c) {
        c.set_output(0, c.attrs().TensorAttr("value")->shape());
        return Status();
      });
  const auto declared_shape = [](ShapeContext& c) {
    c.set_output(0, *c.attrs().ShapeAttr("shape"));
    return Status();
  };
  add("Placeholder")
      .RunsAs(op::Universal::kPlaceholder)
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }")
      .Shape(declared_shape);
  add("VariableV2")
      .RunsAs(op::Universal::kVariable)
      .Out("ref: Ref(dtype)")
      .Attr("shape: shape")
      .Attr("dtype: type")
      .Stateful()
      .Shape(declared_shape);
  add("Assign").In("ref: Ref(T)").In("value: T").Out("output_ref: Ref(T)").Attr("T: type").Shape(op::SameAs(1));
  add("VarHandleOp")
      .RunsAs(op::Universal::kVariable)
      .Out("resource: resource")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Stateful()
      .Shape(op::Scalar());
  add("ReadVariableOp").In("resource: resource").Out("value: dtype").Attr("dtype: type").Shape([](ShapeContext& c) {
    Result<PartialShape> held = c.held_shape(0);
    if (held.ok()) c.set_output(0, std::move(*held));
    return held.status();
  });
  const auto one = [&add](std::string_view name) {
    return add(name).In("input: T").Out("output: T").Attr("T: type").Shape(op::SameAs(0));
  };
  for (const char* name : {"Identity", "StopGradient"}) one(name).RunsAs(op::Universal::kForward).PassesValue();
  one("NextIteration").RunsAs(op::Flow::kNextIteration);
  const auto binary = [&add](std::string_view name, op::KnownIntsFn known) {
    add(name)
        .In("x: T")
        .In("y: T")
        .Out("z: T")
        .Attr("T: {float, double, int32, int64}")
        .Shape(op::Broadcast(0, 1))
        .KnownInts(std::move(known));
  };
  binary("AddV2", ops::KnownElementwise<ops::AddInts>);
  binary("Sub", ops::KnownElementwise<ops::SubtractInts>);
  binary("Mul", ops::KnownElementwise<ops::MultiplyInts>);
  binary("FloorDiv", ops::KnownElementwise<ops::FloorQuotient>);
  binary("FloorMod", ops::KnownElementwise<ops::FloorRemainder>);
  binary("Maximum", ops::KnownElementwise<ops::LargerInt>);
  binary("Minimum", ops::KnownElementwise<ops::SmallerInt>);
  add("Merge")
      .RunsAs(op::Flow::kMerge)
      .In("inputs: N*T")
      .Out("output: T")
      .Out("value_index: int32")
      .Attr("T: type")
      .Attr("N: int >= 1")
      .Shape(op::Unknown());
  add("Split2")
      .In("value: T")
      .Out("a: T")
      .Out("b: T")
      .Attr("T: type")
      .Attr("mode: {'x', 'y'} = 'x'")
      .Attr("list: list(int) = []")
      .Shape(op::Unknown());
  add("NoOp").Shape(op::NoOutputs());
  add("Shape")
      .KnownInts(ops::KnownExtents)
      .In("input: T")
      .Out("output: out_type")
      .Attr("T: type")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape([](ShapeContext& c) {
        c.set_output(0, PartialShape::Of({c.input(0).rank()}));
        return Status();
      });
  const auto count = [&add](std::string_view name, op::KnownIntsFn known) {
    add(name).In("input: T").Out("output: int32").Attr("T: type").Shape(op::Scalar()).KnownInts(std::move(known));
  };
  count("Rank", ops::KnownRank);
  count("Size", ops::KnownSize);
  add("Pack")
      .KnownInts(ops::KnownPack)
      .In("values: N*T")
      .Out("output: T")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Attr("axis: int = 0")
      .Shape([](ShapeContext& c) {
        c.set_output(0, PartialShape::Of({c.num_inputs()}));
        return Status();
      });
  add("ConcatV2")
      .KnownInts(ops::KnownConcat)
      .In("values: N*T")
      .In("axis: int32")
      .Out("output: T")
      .Attr("N: int >= 2")
      .Attr("T: type")
      .Shape(op::Unknown());
  add("StridedSlice")
      .KnownInts(ops::KnownStridedSlice)
      .In("input: T")
      .In("begin: int32")
      .In("end: int32")
      .In("strides: int32")
      .Out("output: T")
      .Attr("T: type")
      .Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0")
      .Shape([](ShapeContext& c) {
        c.set_output(0, *c.attrs().Int("shrink_axis_mask") != 0 ? PartialShape(Shape()) : PartialShape::OfRank(1));
        return Status();
      });
  add("Slice")
      .KnownInts(ops::KnownSlice)
      .In("input: T")
      .In("begin: int32")
      .In("size: int32")
      .Out("output: T")
      .Attr("T: type")
      .Shape([](ShapeContext& c) {
        c.set_output(0, PartialShape::OfRank(1));
        return Status();
      });
  add("Cast")
      .In("x: SrcT")
      .Out("y: DstT")
      .Attr("SrcT: type")
      .Attr("DstT: type")
      .Shape(op::SameAs(0))
      .KnownInts(ops::KnownSame);
  const auto reduction = [&add](std::string_view name, op::KnownIntsFn known) {
    add(name)
        .In("input: T")
        .In("axis: int32")
        .Out("output: T")
        .Attr("T: type")
        .Shape(op::Scalar())
        .KnownInts(std::move(known));
  };
  reduction("Prod", ops::KnownTotal<ops::MultiplyInts, 1>);
  reduction("Sum", ops::KnownTotal<ops::AddInts, 0>);
  add("Gather")
      .In("params: T")
      .In("indices: int32")
      .Out("output: T")
      .Attr("T: type")
      .Shape(op::SameAs(1))
      .KnownInts(ops::KnownGather);
  add("Range")
      .In("start: int32")
      .In("limit: int32")
      .In("delta: int32")
      .Out("output: int32")
      .KnownInts(ops::KnownRange)
      .Shape([](ShapeContext& c) {
        c.set_output(0, PartialShape::OfRank(1));
        return Status();
      });
  add("Squeeze").In("input: T").Out("output: T").Attr("T: type").Shape(op::Scalar()).KnownInts(ops::KnownReshaped);
  add("Reshape").In("tensor: T").In("shape: int32").Out("output: T").Attr("T: type").Shape([](ShapeContext& c) {
    WEIR_ASSIGN(PartialShape shape, c.shape_from(1));
    c.set_output(0, std::move(shape));
    return Status();
  });
  add("Fill").In("dims: int32").In("value: T").Out("output: T").Attr("T: type").Shape([](ShapeContext& c) {
    if (c.ints(0) && (*c.ints(0)).empty()) return InvalidArgument("no dims");
    WEIR_ASSIGN(PartialShape shape, c.shape_from(0));
    c.set_output(0, std::move(shape));
    return Status();
  });
}

/// The registry, made once.
inline const op::OpRegistry& TestOps() {
  static const op::OpRegistry* const ops = [] {
    auto* made = new op::OpRegistry;
    DeclareTestOps(*made);
    const Status status = made->Freeze();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return made;
  }();
  return *ops;
}

/// A graph under test; adding nodes must succeed.
struct Builder {
  Definition graph{TestOps()};

  Endpoint Op(const std::string& op, const std::string& name, std::vector<Endpoint> inputs, op::AttrList attrs = {}) {
    NodeSpec spec;
    spec.name = name;
    spec.op = TestOps().Find(op);
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    Result<Node*> node = graph.Add(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status().ToString();
    return {node.ok() ? (*node)->id() : 0, 0};
  }
  Endpoint Const(const std::string& name, const Tensor& value) {
    return Op("Const", name, {}, {{"dtype", value.dtype()}, {"value", value}});
  }
  Endpoint Placeholder(const std::string& name, DType dtype, PartialShape shape = PartialShape()) {
    return Op("Placeholder", name, {}, {{"dtype", dtype}, {"shape", std::move(shape)}});
  }
  /// Adds a node that must be refused.
  Status Refused(NodeSpec spec) {
    const int before = graph.num_nodes();
    Result<Node*> node = graph.Add(std::move(spec));
    EXPECT_FALSE(node.ok());
    EXPECT_EQ(graph.num_nodes(), before);
    return node.status();
  }
  std::string ShapeOf(Endpoint e) const { return graph.ShapeOf(e).ToString(); }
};

}  // namespace weir::graph

#endif  // WEIR_TESTS_UNIT_GRAPH_TEST_OPS_H_
