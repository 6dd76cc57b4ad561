#include "core/graph/known_ints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/op/known_ints.h"
#include "core/tensor/number.h"

namespace weir::graph {
namespace {

using op::Ints;
using op::kMostKnownInts;
using op::kUnknownInt;
using MaybeInts = std::optional<Ints>;

/// The input forwarded as output `e.index`, if there is one.
std::optional<Endpoint> PassedOn(const Node& node, Endpoint e) {
  const auto input = static_cast<size_t>(e.index);
  if (!node.op().traits.passes_value || input >= node.inputs().size()) return std::nullopt;
  return node.inputs()[input];
}

MaybeInts FromTensor(const Tensor& tensor) {
  if (tensor.shape().rank() > 1 || tensor.elements() > static_cast<int64_t>(kMostKnownInts)) return std::nullopt;
  if (tensor.dtype() != DType::kInt32 && tensor.dtype() != DType::kInt64) return std::nullopt;
  Ints ints{tensor.shape().rank() == 0, {}};
  for (int64_t i = 0; i < tensor.elements(); ++i) ints.elements.push_back(ElementAsInt(tensor, i));
  return ints;
}

/// Evaluates endpoints recursively from their inputs, using the rules of the ops. The number of visits is bounded, so
/// that shared subexpressions cannot make the evaluation slow.
class Evaluator {
 public:
  explicit Evaluator(const Definition& graph) : graph_(graph) {}

  MaybeInts Evaluate(Endpoint e) {
    if (e.node < 0 || --visits_left_ < 0 || depth_ >= kMaxDepth) return std::nullopt;
    const DType type = BaseType(graph_.TypeOf(e));
    if (type != DType::kInt32 && type != DType::kInt64) return std::nullopt;
    ++depth_;
    MaybeInts ints = ByRule(graph_.node(e.node), e);
    --depth_;
    if (!ints || ints->elements.size() > kMostKnownInts) return std::nullopt;
    if (type == DType::kInt32) {
      for (int64_t& v : ints->elements) {
        if (v != static_cast<int32_t>(v)) v = kUnknownInt;  // overflows at run time
      }
    }
    return ints;
  }

 private:
  static constexpr int kMaxDepth = 64;

  /// The evaluator as seen by the rule of the node's op.
  class Context : public op::KnownIntsContext {
   public:
    Context(Evaluator& evaluator, const Node& node, Endpoint e) : evaluator_(evaluator), node_(node), asked_(e) {}
    op::AttrView attrs() const override { return node_.attrs(); }
    int num_inputs() const override { return static_cast<int>(node_.inputs().size()); }
    int output() const override { return asked_.index; }
    const PartialShape& output_shape() const override { return evaluator_.graph_.ShapeOf(asked_); }
    const PartialShape& shape(int input) const override {
      static const PartialShape kUnknown;
      const Endpoint from = Input(input);
      return from.node < 0 ? kUnknown : evaluator_.graph_.ShapeOf(from);
    }
    MaybeInts ints(int input) override { return evaluator_.Evaluate(Input(input)); }

   private:
    Endpoint Input(int i) const { return i < num_inputs() ? node_.inputs()[static_cast<size_t>(i)] : Endpoint{}; }

    Evaluator& evaluator_;
    const Node& node_;
    Endpoint asked_;
  };

  MaybeInts ByRule(const Node& node, Endpoint e) {
    const op::Traits& traits = node.op().traits;
    if (traits.universal == op::Universal::kConstant) {
      const Tensor* const tensor = ConstantOf(graph_, e);
      return tensor != nullptr ? FromTensor(*tensor) : std::nullopt;
    }
    if (const std::optional<Endpoint> from = PassedOn(node, e)) return Evaluate(*from);
    if (!traits.known_ints) return std::nullopt;
    Context context(*this, node, e);
    return traits.known_ints(context);
  }

  const Definition& graph_;
  int visits_left_ = 512;
  int depth_ = 0;
};

bool AllKnown(const Ints& ints) { return std::ranges::find(ints.elements, kUnknownInt) == ints.elements.end(); }

}  // namespace

const Tensor* ConstantOf(const Definition& graph, Endpoint e) {
  while (e.node >= 0) {
    const Node& node = graph.node(e.node);
    if (node.op().traits.universal == op::Universal::kConstant) {
      const op::AttrValue* value = node.attrs().Find("value");
      return value != nullptr ? value->get<Tensor>() : nullptr;
    }
    const std::optional<Endpoint> from = PassedOn(node, e);
    if (!from) return nullptr;
    e = *from;
  }
  return nullptr;
}

std::optional<Tensor> KnownTensor(const Definition& graph, Endpoint e) {
  const MaybeInts ints = Evaluator(graph).Evaluate(e);
  if (!ints || !AllKnown(*ints)) return std::nullopt;
  const Shape shape = ints->scalar ? Shape() : Shape::Of({static_cast<int64_t>(ints->elements.size())});
  const bool narrow = BaseType(graph.TypeOf(e)) == DType::kInt32;
  Tensor tensor = narrow ? Tensor::Of<int32_t>(shape, {ints->elements.begin(), ints->elements.end()})
                         : Tensor::Of<int64_t>(shape, ints->elements);
  if (!tensor.valid()) return std::nullopt;
  return tensor;
}

PartialShape KnownShapeValue(const Definition& graph, Endpoint e) {
  const MaybeInts ints = Evaluator(graph).Evaluate(e);
  if (!ints || ints->scalar) return PartialShape();
  std::vector<int64_t> extents = ints->elements;
  for (int64_t& extent : extents) extent = extent < 0 ? -1 : extent;
  Result<PartialShape> shape = PartialShape::Make(extents);
  return shape.ok() ? *shape : PartialShape();
}

}  // namespace weir::graph
