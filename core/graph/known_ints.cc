#include "core/graph/known_ints.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/number.h"

namespace weir::graph {
namespace {

/// An element that does not follow from the graph; no integer of a model that matters here is that small.
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();

/// A scalar (one element) or a vector.
struct Ints {
  bool scalar = false;
  std::vector<int64_t> elements;
};
using MaybeInts = std::optional<Ints>;

MaybeInts ScalarInt(int64_t value) { return Ints{true, {value}}; }

bool AllKnown(const Ints& ints) { return std::ranges::find(ints.elements, kUnknown) == ints.elements.end(); }

bool IsPassedOn(std::string_view op) {
  return op == "Identity" || op == "StopGradient" || op == "PreventGradient" || op == "Snapshot";
}

MaybeInts FromTensor(const Tensor& tensor) {
  if (tensor.shape().rank() > 1 || tensor.elements() > kMaxRank) return std::nullopt;
  if (tensor.dtype() != DType::kInt32 && tensor.dtype() != DType::kInt64) return std::nullopt;
  Ints ints{tensor.shape().rank() == 0, {}};
  for (int64_t i = 0; i < tensor.elements(); ++i) ints.elements.push_back(ElementAsInt(tensor, i));
  return ints;
}

/// One element of a binary operation on known operands.
int64_t Combine(std::string_view op, int64_t a, int64_t b) {
  int64_t out = kUnknown;
  if (op == "Maximum") return std::max(a, b);
  if (op == "Minimum") return std::min(a, b);
  if (op == "FloorDiv" || op == "FloorMod") {
    if (b == 0 || b == -1) return kUnknown;
    const int64_t remainder = a % b;
    const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
    return op == "FloorDiv" ? a / b - (adjust ? 1 : 0) : remainder + (adjust ? b : 0);
  }
  const bool overflow = op == "Mul"   ? __builtin_mul_overflow(a, b, &out)
                        : op == "Sub" ? __builtin_sub_overflow(a, b, &out)
                                      : __builtin_add_overflow(a, b, &out);
  return overflow ? kUnknown : out;
}

/// Evaluates endpoints by walking backwards; every visit costs one of a fixed number, so that shared subexpressions
/// cannot make the walk long.
class Evaluator {
 public:
  explicit Evaluator(const Graph& graph) : graph_(graph) {}

  MaybeInts Evaluate(Endpoint e) {
    if (e.node < 0 || --visits_left_ < 0 || depth_ >= kMaxDepth) return std::nullopt;
    const DType type = BaseType(graph_.TypeOf(e));
    if (type != DType::kInt32 && type != DType::kInt64) return std::nullopt;
    ++depth_;
    MaybeInts ints = Dispatch(graph_.node(e.node), e);
    --depth_;
    if (!ints || ints->elements.size() > static_cast<size_t>(kMaxRank)) return std::nullopt;
    if (type == DType::kInt32) {
      for (int64_t& v : ints->elements) {
        if (v != static_cast<int32_t>(v)) v = kUnknown;  // wraps at run time
      }
    }
    return ints;
  }

 private:
  static constexpr int kMaxDepth = 64;

  using Rule = MaybeInts (Evaluator::*)(const Node&, Endpoint);
  struct Entry {
    std::string_view op;
    Rule rule;
  };

  MaybeInts Dispatch(const Node& node, Endpoint e) {
    static constexpr auto kRules = std::to_array<Entry>({
        {"Const", &Evaluator::Constant},
        {"Cast", &Evaluator::PassOn},
        {"Identity", &Evaluator::PassOn},
        {"StopGradient", &Evaluator::PassOn},
        {"PreventGradient", &Evaluator::PassOn},
        {"Shape", &Evaluator::ShapeOf},
        {"ShapeN", &Evaluator::ShapeOf},
        {"Rank", &Evaluator::RankOf},
        {"Size", &Evaluator::SizeOfInput},
        {"Pack", &Evaluator::Pack},
        {"ConcatV2", &Evaluator::Concat},
        {"StridedSlice", &Evaluator::Strided},
        {"Slice", &Evaluator::Slice},
        {"ExpandDims", &Evaluator::Reform},
        {"Squeeze", &Evaluator::Reform},
        {"Reshape", &Evaluator::Reform},
        {"Add", &Evaluator::Binary},
        {"AddV2", &Evaluator::Binary},
        {"Sub", &Evaluator::Binary},
        {"Mul", &Evaluator::Binary},
        {"Maximum", &Evaluator::Binary},
        {"Minimum", &Evaluator::Binary},
        {"FloorDiv", &Evaluator::Binary},
        {"FloorMod", &Evaluator::Binary},
        {"Prod", &Evaluator::Reduce},
        {"Sum", &Evaluator::Reduce},
        {"Gather", &Evaluator::Gather},
        {"GatherV2", &Evaluator::Gather},
        {"Range", &Evaluator::Range},
    });
    const auto found = std::ranges::find(kRules, std::string_view(node.op().name), &Entry::op);
    return found != kRules.end() ? (this->*found->rule)(node, e) : std::nullopt;
  }

  MaybeInts Input(const Node& node, size_t i) {
    return i < node.inputs().size() ? Evaluate(node.inputs()[i]) : std::nullopt;
  }
  /// A scalar, or a vector of one element, that is known.
  std::optional<int64_t> Single(const Node& node, size_t i) {
    const MaybeInts ints = Input(node, i);
    if (!ints || ints->elements.size() != 1 || ints->elements[0] == kUnknown) return std::nullopt;
    return ints->elements[0];
  }
  const PartialShape* InputShape(const Node& node, size_t i) const {
    if (i >= node.inputs().size() || node.inputs()[i].node < 0) return nullptr;
    return &graph_.ShapeOf(node.inputs()[i]);
  }

  MaybeInts Constant(const Node&, Endpoint e) {
    const Tensor* tensor = ConstantOf(graph_, e);
    return tensor != nullptr ? FromTensor(*tensor) : std::nullopt;
  }

  MaybeInts PassOn(const Node& node, Endpoint) { return Input(node, 0); }

  MaybeInts ShapeOf(const Node& node, Endpoint e) {
    const PartialShape* shape = InputShape(node, static_cast<size_t>(e.index));
    if (shape == nullptr || !shape->has_rank()) return std::nullopt;
    Ints ints;
    for (const int64_t extent : shape->dims()) ints.elements.push_back(extent < 0 ? kUnknown : extent);
    return ints;
  }

  MaybeInts RankOf(const Node& node, Endpoint) {
    const PartialShape* shape = InputShape(node, 0);
    return shape != nullptr && shape->has_rank() ? ScalarInt(shape->rank()) : std::nullopt;
  }

  MaybeInts SizeOfInput(const Node& node, Endpoint) {
    const PartialShape* shape = InputShape(node, 0);
    return shape != nullptr && shape->fully_defined() && shape->elements() >= 0 ? ScalarInt(shape->elements())
                                                                                : std::nullopt;
  }

  MaybeInts Pack(const Node& node, Endpoint) {
    Ints ints;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const PartialShape* shape = InputShape(node, i);
      if (shape == nullptr || shape->rank() != 0 || i >= static_cast<size_t>(kMaxRank)) return std::nullopt;
      const MaybeInts element = Input(node, i);
      ints.elements.push_back(element && element->elements.size() == 1 ? element->elements[0] : kUnknown);
    }
    return ints;
  }

  MaybeInts Concat(const Node& node, Endpoint) {
    Ints ints;
    for (size_t i = 0; i + 1 < node.inputs().size(); ++i) {
      const PartialShape* shape = InputShape(node, i);
      if (shape == nullptr || shape->rank() != 1) return std::nullopt;
      if (const MaybeInts part = Input(node, i)) {
        ints.elements.insert(ints.elements.end(), part->elements.begin(), part->elements.end());
      } else if (shape->dim(0) >= 0 && shape->dim(0) <= kMaxRank) {
        ints.elements.insert(ints.elements.end(), static_cast<size_t>(shape->dim(0)), kUnknown);
      } else {
        return std::nullopt;
      }
      if (ints.elements.size() > static_cast<size_t>(kMaxRank)) return std::nullopt;
    }
    return ints;
  }

  MaybeInts Strided(const Node& node, Endpoint) {
    const MaybeInts from = Input(node, 0);
    const std::optional<int64_t> begin = Single(node, 1), end = Single(node, 2), stride = Single(node, 3);
    if (!from || from->scalar || !begin || !end || !stride || *stride == 0) return std::nullopt;
    const auto mask = [&](std::string_view name) {
      const op::AttrValue* value = node.attrs().Find(name);
      const int64_t* bits = value != nullptr ? value->get<int64_t>() : nullptr;
      return bits != nullptr && (*bits & 1) != 0;
    };
    if (mask("ellipsis_mask") || mask("new_axis_mask")) return std::nullopt;
    const auto length = static_cast<int64_t>(from->elements.size());
    const auto from_end = [&](int64_t i) { return i < 0 ? i + length : i; };
    if (mask("shrink_axis_mask")) {
      if (mask("begin_mask")) return std::nullopt;
      const int64_t at = from_end(*begin);
      return at >= 0 && at < length ? ScalarInt(from->elements[static_cast<size_t>(at)]) : std::nullopt;
    }
    const int64_t least = *stride > 0 ? 0 : -1;
    const int64_t most = *stride > 0 ? length : length - 1;
    const int64_t first =
        mask("begin_mask") ? (*stride > 0 ? 0 : length - 1) : std::clamp(from_end(*begin), least, most);
    const int64_t last = mask("end_mask") ? (*stride > 0 ? length : -1) : std::clamp(from_end(*end), least, most);
    const int64_t step = std::clamp<int64_t>(*stride, -length - 1, length + 1);
    Ints ints;
    for (int64_t i = first; step > 0 ? i < last : i > last; i += step) {
      ints.elements.push_back(from->elements[static_cast<size_t>(i)]);
    }
    return ints;
  }

  MaybeInts Slice(const Node& node, Endpoint) {
    const MaybeInts from = Input(node, 0);
    const std::optional<int64_t> begin = Single(node, 1), size = Single(node, 2);
    if (!from || from->scalar || !begin || !size) return std::nullopt;
    const auto length = static_cast<int64_t>(from->elements.size());
    if (*begin < 0 || *begin > length || *size < -1 || *size > length - *begin) return std::nullopt;
    const auto first = from->elements.begin() + *begin;
    return Ints{false, {first, *size < 0 ? from->elements.end() : first + *size}};
  }

  /// Ops that change between a scalar and a vector of one element, or nothing.
  MaybeInts Reform(const Node& node, Endpoint e) {
    MaybeInts ints = Input(node, 0);
    const PartialShape& shape = graph_.ShapeOf(e);
    if (!ints || shape.rank() < 0 || shape.rank() > 1 || (shape.rank() == 0 && ints->elements.size() != 1)) {
      return std::nullopt;
    }
    ints->scalar = shape.rank() == 0;
    return ints;
  }

  MaybeInts Binary(const Node& node, Endpoint) {
    const MaybeInts a = Input(node, 0), b = Input(node, 1);
    if (!a || !b) return std::nullopt;
    const size_t na = a->elements.size(), nb = b->elements.size();
    if (na != nb && na != 1 && nb != 1) return std::nullopt;
    Ints ints{a->scalar && b->scalar, {}};
    const size_t n = na == 1 ? nb : na;
    for (size_t i = 0; i < n; ++i) {
      const int64_t x = a->elements[na == 1 ? 0 : i], y = b->elements[nb == 1 ? 0 : i];
      ints.elements.push_back(x == kUnknown || y == kUnknown ? kUnknown : Combine(node.op().name, x, y));
    }
    return ints;
  }

  /// Over all elements of a vector: whatever the axes say, there is only one.
  MaybeInts Reduce(const Node& node, Endpoint e) {
    const MaybeInts from = Input(node, 0);
    if (!from || from->scalar || graph_.ShapeOf(e).rank() != 0) return std::nullopt;
    int64_t total = node.op().name == "Prod" ? 1 : 0;
    for (const int64_t v : from->elements) {
      total =
          total == kUnknown || v == kUnknown ? kUnknown : Combine(node.op().name == "Prod" ? "Mul" : "Add", total, v);
    }
    return ScalarInt(total);
  }

  MaybeInts Gather(const Node& node, Endpoint) {
    const MaybeInts from = Input(node, 0), indices = Input(node, 1);
    if (!from || from->scalar || !indices) return std::nullopt;
    Ints ints{indices->scalar, {}};
    for (const int64_t i : indices->elements) {
      if (i == kUnknown) {
        ints.elements.push_back(kUnknown);
      } else if (i < 0 || i >= static_cast<int64_t>(from->elements.size())) {
        return std::nullopt;
      } else {
        ints.elements.push_back(from->elements[static_cast<size_t>(i)]);
      }
    }
    return ints;
  }

  MaybeInts Range(const Node& node, Endpoint) {
    const std::optional<int64_t> start = Single(node, 0), limit = Single(node, 1), delta = Single(node, 2);
    if (!start || !limit || !delta || *delta == 0) return std::nullopt;
    Ints ints;
    for (int64_t v = *start; *delta > 0 ? v < *limit : v > *limit;) {
      if (ints.elements.size() >= static_cast<size_t>(kMaxRank)) return std::nullopt;
      ints.elements.push_back(v);
      if (__builtin_add_overflow(v, *delta, &v)) break;
    }
    return ints;
  }

  const Graph& graph_;
  int visits_left_ = 512;
  int depth_ = 0;
};

}  // namespace

const Tensor* ConstantOf(const Graph& graph, Endpoint e) {
  while (e.node >= 0) {
    const Node& node = graph.node(e.node);
    if (node.op().name == "Const") {
      const op::AttrValue* value = node.attrs().Find("value");
      return value != nullptr ? value->get<Tensor>() : nullptr;
    }
    if (!IsPassedOn(node.op().name) || node.inputs().empty()) return nullptr;
    e = node.inputs()[0];
  }
  return nullptr;
}

std::optional<Tensor> KnownTensor(const Graph& graph, Endpoint e) {
  const MaybeInts ints = Evaluator(graph).Evaluate(e);
  if (!ints || !AllKnown(*ints)) return std::nullopt;
  const Shape shape = ints->scalar ? Shape() : Shape::Of({static_cast<int64_t>(ints->elements.size())});
  const bool narrow = BaseType(graph.TypeOf(e)) == DType::kInt32;
  Tensor tensor = narrow ? Tensor::Of<int32_t>(shape, {ints->elements.begin(), ints->elements.end()})
                         : Tensor::Of<int64_t>(shape, ints->elements);
  if (!tensor.valid()) return std::nullopt;
  return tensor;
}

PartialShape KnownShapeValue(const Graph& graph, Endpoint e) {
  const MaybeInts ints = Evaluator(graph).Evaluate(e);
  if (!ints || ints->scalar) return PartialShape();
  std::vector<int64_t> extents = ints->elements;
  for (int64_t& extent : extents) extent = extent < 0 ? -1 : extent;
  Result<PartialShape> shape = PartialShape::Make(extents);
  return shape.ok() ? *shape : PartialShape();
}

}  // namespace weir::graph
