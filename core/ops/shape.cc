// Shape ops: queries, changes of shape over the same elements, and broadcasting.
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/known_ints.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"
#include "core/tensor/number.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;
using op::Universal;
using op::Value;

constexpr int64_t kInt32Limit = std::numeric_limits<int32_t>::max();

Tensor IntTensor(DType type, const Shape& shape, std::span<const int64_t> values) {
  if (type == DType::kInt64) return Tensor::Of<int64_t>(shape, {values.begin(), values.end()});
  return Tensor::Of<int32_t>(shape, std::vector<int32_t>(values.begin(), values.end()));
}

bool HasAllExtents(const PartialShape& shape) { return shape.fully_defined() && shape.elements() >= 0; }

/// The first extent that `type` cannot represent, as checked by TensorFlow's kernels; -1 if there is none.
int TooLarge(const PartialShape& shape, DType type) {
  for (int i = 0; type == DType::kInt32 && i < shape.rank(); ++i) {
    if (shape.dim(i) >= kInt32Limit) return i;
  }
  return -1;
}

Result<Tensor> ShapeAnswer(const PartialShape& shape, int /*index*/, DType type) {
  if (!HasAllExtents(shape)) return Tensor();
  if (const int i = TooLarge(shape, type); i >= 0) {
    return InvalidArgument("Shape output type is 32-bit  but dim {} is {}", i, shape.dim(i));
  }
  return IntTensor(type, Shape::Of({shape.rank()}), shape.dims());
}

Result<Tensor> ShapeNAnswer(const PartialShape& shape, int index, DType type) {
  if (!HasAllExtents(shape)) return Tensor();
  if (const int i = TooLarge(shape, type); i >= 0) {
    return InvalidArgument("ShapeN output type is 32-bit but shape {} dim {} is {}", index, i, shape.dim(i));
  }
  return IntTensor(type, Shape::Of({shape.rank()}), shape.dims());
}

Result<Tensor> SizeAnswer(const PartialShape& shape, int /*index*/, DType type) {
  if (!HasAllExtents(shape)) return Tensor();
  if (type == DType::kInt32 && shape.elements() >= kInt32Limit) {
    return InvalidArgument("Number of elements was larger than representable by 32-bit output type");
  }
  return IntTensor(type, Shape(), std::vector<int64_t>{shape.elements()});
}

Result<Tensor> RankAnswer(const PartialShape& shape, int /*index*/, DType type) {
  return shape.has_rank() ? IntTensor(type, Shape(), std::vector<int64_t>{shape.rank()}) : Tensor();
}

Status ReshapeRefusal(const Status& inferred, std::span<const Tensor> inputs) {
  const Tensor& wanted = inputs[1];
  if (wanted.raw() == nullptr) return inferred;
  int64_t elements = 1, open = 0;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const int64_t extent = ElementAsInt(wanted, i);
    if (extent == -1 && ++open == 1) continue;
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return inferred;
  }
  return InvalidArgument("Input to reshape is a tensor with {} values, but the requested shape {} {}",
                         inputs[0].elements(), open > 0 && elements > 0 ? "requires a multiple of" : "has", elements);
}

Status EnsuredShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape wanted, c.attrs().ShapeAttr("shape"));
  Result<PartialShape> both = c.input(0).Merge(wanted);
  if (!both.ok() && c.input(0).fully_defined()) {
    return InvalidArgument("Shape of tensor {} is not compatible with expected shape {}.", c.input(0).ToString(),
                           wanted.ToString());
  }
  WEIR_ASSIGN(PartialShape shape, std::move(both));
  c.set_output(0, std::move(shape));
  return Status();
}

Status ShapeVectors(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, RankVector(c.input(i)));
  return Status();
}

/// The known extents of Reshape's target; -1 means to be inferred.
Result<PartialShape> ReshapeTarget(const ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 1).status());
  const std::optional<std::vector<int64_t>> sizes = c.ints(1);
  if (!sizes) return c.shape_from(1);
  int open = -1;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const int64_t size = (*sizes)[i];
    if (size < -1) return InvalidArgument("Invalid value in tensor used for shape: {}", size);
    if (size != -1) continue;
    if (open >= 0) return InvalidArgument("Only one input size may be -1, not both {} and {}", open, i);
    open = static_cast<int>(i);
  }
  return PartialShape::Make(*sizes);
}

/// Product of the known extents, number of unknown ones, and position `open` of the last unknown one. `nonzero` is the
/// product without zeros.
struct Extents {
  int64_t known = 1;
  int64_t nonzero = 1;
  int unknown = 0;
  int open = -1;
};

Result<Extents> Measure(const PartialShape& shape) {
  Extents e;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) < 0) {
      ++e.unknown;
      e.open = i;
      continue;
    }
    WEIR_ASSIGN(e.known, MultiplyDims(e.known, shape.dim(i)));
    if (shape.dim(i) != 0) {
      WEIR_ASSIGN(e.nonzero, MultiplyDims(e.nonzero, shape.dim(i)));
    }
  }
  return e;
}

Status ReshapeShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape out, ReshapeTarget(c));
  c.set_output(0, out);
  if (!out.has_rank() || !c.input(0).has_rank()) return Status();
  WEIR_ASSIGN(const Extents from, Measure(c.input(0)));
  WEIR_ASSIGN(const Extents to, Measure(out));
  if (from.unknown == 0 && to.unknown == 0) {
    if (from.known == to.known) return Status();
    return InvalidArgument("Cannot reshape a tensor with {} elements to shape {} ({} elements)", from.known,
                           out.ToString(), to.known);
  }
  if (from.unknown == 1 && to.unknown == 0 && from.known > 0) return DivideDims(to.known, from.known).status();
  if (from.unknown > 0 || to.unknown > 1) return Status();
  if (to.known == 0) {  // any extent fits; TensorFlow uses the quotient of the non-zero extents, rounded down
    c.set_output(0, Replaced(std::move(out), to.open, from.nonzero / to.nonzero));
    return Status();
  }
  WEIR_ASSIGN(const int64_t rest, DivideDims(from.known, to.known));
  c.set_output(0, Replaced(std::move(out), to.open, rest));
  return Status();
}

/// Inputs 2 and 3 are the ends of a range, which the op passes on.
Status QuantizedReshapeShape(ShapeContext& c) {
  for (int i = 2; i < 4; ++i) {
    WEIR_TRY(c.WithRank(i, 0).status());
    c.set_output(i - 1, PartialShape(Shape()));
  }
  return ReshapeShape(c);
}

Status ExpandDimsShape(ShapeContext& c) {
  const int rank = c.input(0).rank();
  const std::optional<std::vector<int64_t>> dim = c.ints(1);
  if (dim && dim->size() != 1) return InvalidArgument("'dim' input must be a tensor with a single value");
  if (!dim || rank < 0) {
    c.set_output(0, MaybeRank(rank < 0 ? -1 : rank + 1));
    return Status();
  }
  int64_t at = dim->front();
  if (at < -rank - 1 || at > rank) {
    return InvalidArgument("dim {} not in the interval [{}, {}].", at, -rank - 1, rank);
  }
  if (at < 0) at += rank + 1;
  const int split = static_cast<int>(at);
  WEIR_ASSIGN(const PartialShape head, Join(Span(c.input(0), 0, split), VectorOf(1)));
  WEIR_ASSIGN(PartialShape out, Join(head, Span(c.input(0), split)));
  c.set_output(0, std::move(out));
  return Status();
}

/// Flags of the axes in the attribute; empty if the attribute is.
Result<std::vector<bool>> SqueezedAxes(const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> named(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -rank || axes[i] >= rank) {
      return InvalidArgument("squeeze_dims[{}] not in [{},{}).", i, -rank, rank);
    }
    named[static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = true;
  }
  return named;
}

Status SqueezeShape(ShapeContext& c) {
  WEIR_ASSIGN(const std::vector<int64_t> axes, c.attrs().Ints("squeeze_dims"));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return Status();
  WEIR_ASSIGN(const std::vector<bool> named, SqueezedAxes(axes, in.rank()));
  std::vector<int64_t> kept;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t dim = in.dim(i);
    if (axes.empty()) {
      if (dim < 0) return Status();
      if (dim != 1) kept.push_back(dim);
      continue;
    }
    if (!named[static_cast<size_t>(i)]) {
      kept.push_back(dim);
    } else if (dim != 1 && dim >= 0) {
      return InvalidArgument("Can not squeeze dim[{}], expected a dimension of 1, got {}", i, dim);
    }
  }
  WEIR_ASSIGN(PartialShape out, PartialShape::Make(kept));
  c.set_output(0, std::move(out));
  return Status();
}

Status BitcastShape(ShapeContext& c) {
  WEIR_ASSIGN(const DType from, c.attrs().Type("T"));
  WEIR_ASSIGN(const DType to, c.attrs().Type("type"));
  const auto in_size = static_cast<int64_t>(SizeOf(from)), out_size = static_cast<int64_t>(SizeOf(to));
  if (in_size == 0 || out_size == 0) {
    return InvalidArgument("Cannot bitcast types {} to {} because of their sizes", Name(from), Name(to));
  }
  PartialShape out = c.input(0);
  if (!out.has_rank()) return Status();
  if (in_size < out_size) {
    WEIR_TRY(ToRankAtLeast(out, 1).status());
    const int64_t last = out.dim(out.rank() - 1), wanted = out_size / in_size;
    if (last >= 0 && last != wanted) {
      return InvalidArgument("Cannot bitcast from {} to {} due to shape. {} does not match {}",
                             static_cast<uint32_t>(from), static_cast<uint32_t>(to), last, wanted);
    }
    out = Span(out, 0, out.rank() - 1);
  } else if (in_size > out_size) {
    WEIR_ASSIGN(out, Join(out, VectorOf(in_size / out_size)));
  }
  c.set_output(0, std::move(out));
  return Status();
}

Status BroadcastToShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape out, c.shape_from(1));
  const PartialShape& in = c.input(0);
  if (out.has_rank() && in.has_rank()) {
    WEIR_TRY(ToRankAtMost(in, out.rank()).status());
    for (int i = 0; i < in.rank(); ++i) {
      const int64_t dim = in.dim(i);
      const int at = out.rank() - in.rank() + i;
      if (dim < 0 || dim == 1) continue;
      WEIR_ASSIGN(const int64_t merged, op::MergeDim(dim, out.dim(at)));
      out.set_dim(at, merged);
    }
  }
  c.set_output(0, std::move(out));
  return Status();
}

Status BroadcastArgsShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape a, c.WithRank(0, 1));
  WEIR_ASSIGN(const PartialShape b, c.WithRank(1, 1));
  const bool known = a.fully_defined() && b.fully_defined();
  c.set_output(0, VectorOf(known ? std::max(a.dim(0), b.dim(0)) : -1));
  return Status();
}

/// Number of axes over which each side of a broadcast is summed; InvalidArgument if the shapes do not broadcast.
Result<std::pair<int64_t, int64_t>> ReducedAxes(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::pair<int64_t, int64_t> axes{0, 0};
  if (a == b) return axes;
  const size_t rank = std::max(a.size(), b.size());
  const auto extent = [rank](const std::vector<int64_t>& dims, size_t i) {
    return i + dims.size() < rank ? int64_t{1} : dims[i + dims.size() - rank];
  };
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = extent(a, i), y = extent(b, i);
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("Incompatible shapes: [{}] vs. [{}]", fmt::join(a, ","), fmt::join(b, ","));
    }
    if (x == 1) ++axes.first;
    if (y == 1) ++axes.second;
  }
  return axes;
}

Status BroadcastGradientArgsShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_TRY(c.WithRank(1, 1).status());
  const std::optional<std::vector<int64_t>> a = c.ints(0), b = c.ints(1);
  std::pair<int64_t, int64_t> axes{-1, -1};
  if (a && b) {
    WEIR_ASSIGN(axes, ReducedAxes(*a, *b));
  }
  c.set_output(0, VectorOf(axes.first));
  c.set_output(1, VectorOf(axes.second));
  return Status();
}

Result<std::vector<Grad>> BackToInput(GradContext& g) {
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = ReshapedLike(g, g.Dy(0), g.X(0));
  return grads;
}

Result<std::vector<Grad>> BroadcastToGradient(GradContext& g) {
  const Value shape = ShapeAs(g, g.X(0), g.TypeOf(g.X(1)));
  const std::vector<Value> axes = g.ApplyAll("BroadcastGradientArgs", {g.X(1), shape});
  if (axes.size() != 2) return g.status();
  return std::vector<Grad>{g.Reshape(g.Apply("Sum", {g.Dy(0), axes[1]}), shape), Grad::None()};
}

OpBuilder About(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kArray); }

void DeclareQuestions(OpRegistry& ops) {
  About(ops, "Shape")
      .ShapeQuery(ShapeAnswer)
      .KnownInts(KnownExtents)
      .In("input: T")
      .Out("output: out_type")
      .Attr(kAnyT)
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape(ShapeVectors)
      .NoGradient(kDiscrete)
      .Doc("The extents of `input` as a vector.");
  About(ops, "ShapeN")
      .ShapeQuery(ShapeNAnswer)
      .KnownInts(KnownExtents)
      .In("input: N*T")
      .Out("output: N*out_type")
      .Attr("N: int >= 1")
      .Attr(kAnyT)
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape(ShapeVectors)
      .NoGradient(kDiscrete)
      .Doc("The extents of every input, each as a vector.");
  About(ops, "Size")
      .ShapeQuery(SizeAnswer)
      .KnownInts(KnownSize)
      .In("input: T")
      .Out("output: out_type")
      .Attr(kAnyT)
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape(Scalar())
      .NoGradient(kDiscrete)
      .Doc("The number of elements of `input`.");
  About(ops, "Rank")
      .ShapeQuery(RankAnswer)
      .KnownInts(KnownRank)
      .In("input: T")
      .Out("output: int32")
      .Attr(kAnyT)
      .Shape(Scalar())
      .NoGradient(kDiscrete)
      .Doc("The number of dimensions of `input`.");
}

void DeclareReshapes(OpRegistry& ops) {
  About(ops, "Reshape")
      .RunsAs(Universal::kReshape)
      .KnownInts(KnownReshaped)
      .In("tensor: T")
      .In("shape: Tshape")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(ReshapeShape)
      .Refusal(ReshapeRefusal)
      .Grad(BackToInput)
      .Doc("The same elements in row-major order under another shape; one extent of -1 is what the others leave.");
  About(ops, "QuantizedReshape")
      .In("tensor: T")
      .In("shape: Tshape")
      .In("input_min: float")
      .In("input_max: float")
      .Out("output: T")
      .Out("output_min: float")
      .Out("output_max: float")
      .Attr(kAnyT)
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(QuantizedReshapeShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("Reshape of quantised numbers, and their range as it is.");
  About(ops, "ExpandDims")
      .RunsAs(Universal::kReshape)
      .KnownInts(KnownReshaped)
      .In("input: T")
      .In("dim: Tdim")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tdim: {int32, int64} = DT_INT32")
      .Shape(ExpandDimsShape)
      .Grad(BackToInput)
      .Doc("`input` with an extent of 1 put in at position `dim`; negative positions count from the end.");
  About(ops, "EnsureShape")
      .RunsAs(Universal::kReshape)
      .In("input: T")
      .Out("output: T")
      .Attr("shape: shape")
      .Attr(kAnyT)
      .Shape(EnsuredShape)
      .Grad([](GradContext& g) { return One(g.Dy(0)); })
      .Doc("`input`, whose shape must be compatible with `shape`.");
  About(ops, "Squeeze")
      .RunsAs(Universal::kReshape)
      .KnownInts(KnownReshaped)
      .In("input: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("squeeze_dims: list(int) >= 0 = []")
      .Shape(SqueezeShape)
      .Grad(BackToInput)
      .Doc("`input` without its extents of 1: all of them, or those that squeeze_dims names.");
  constexpr std::string_view kBits =
      "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "
      "complex128, qint8, quint8, qint16, quint16, qint32}";
  About(ops, "Bitcast")
      .In("input: T")
      .Out("output: type")
      .Attr(fmt::format("T: {}", kBits))
      .Attr(fmt::format("type: {}", kBits))
      .Shape(BitcastShape)
      .NoGradient("bits have no derivative")
      .Doc("The bytes of `input` read as another type; the last extent makes up for a difference in size.");
}

void DeclareBroadcasts(OpRegistry& ops) {
  About(ops, "BroadcastTo")
      .MovesElements()
      .In("input: T")
      .In("shape: Tidx")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr(kIndexT)
      .Shape(BroadcastToShape)
      .Grad(BroadcastToGradient)
      .Doc("`input` repeated along new leading extents and extents of 1, up to `shape`.");
  About(ops, "BroadcastArgs")
      .In("s0: T")
      .In("s1: T")
      .Out("r0: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(BroadcastArgsShape)
      .NoGradient(kDiscrete)
      .Doc("The shape that two shapes broadcast to.");
  About(ops, "BroadcastGradientArgs")
      .In("s0: T")
      .In("s1: T")
      .Out("r0: T")
      .Out("r1: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(BroadcastGradientArgsShape)
      .NoGradient(kDiscrete)
      .Doc("For two shapes that were broadcast together: the axes over which each side's gradient is summed back.");
}

}  // namespace

void DeclareShape(OpRegistry& ops) {
  DeclareQuestions(ops);
  DeclareReshapes(ops);
  DeclareBroadcasts(ops);
}

}  // namespace weir::ops
