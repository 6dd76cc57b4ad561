// Discrete Fourier transforms along the last one to three axes.
#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

enum class FourierDirection : uint8_t { kForward, kInverse };

constexpr std::string_view kComplexT = "Tcomplex: {complex64, complex128} = DT_COMPLEX64";
constexpr std::string_view kRealT = "Treal: {float, double} = DT_FLOAT";

op::ShapeFn ComplexShape(int rank) {
  return [rank](ShapeContext& c) -> Status {
    WEIR_ASSIGN(PartialShape shape, c.WithRankAtLeast(0, rank));
    c.set_output(0, std::move(shape));
    return Status();
  };
}

/// The last extents are those of fft_length, input 1; a forward transform keeps the frequencies 0 to n / 2 of the last.
op::ShapeFn RealShape(int rank, FourierDirection direction) {
  return [rank, direction](ShapeContext& c) -> Status {
    WEIR_ASSIGN(PartialShape shape, c.WithRankAtLeast(0, rank));
    WEIR_ASSIGN(const PartialShape vector, c.WithRank(1, 1));
    WEIR_TRY(ExpectDim(vector.dim(0), rank));
    if (!shape.has_rank()) return Status();
    const std::optional<std::vector<int64_t>> lengths = c.ints(1);
    for (int i = 0; i < rank; ++i) {
      int64_t extent = lengths ? (*lengths)[static_cast<size_t>(i)] : -1;
      if (lengths && extent < 0) return InvalidArgument("fft_length[{}] must >= 0, but got: {}", i, extent);
      if (direction == FourierDirection::kForward && i == rank - 1 && extent > 0) extent = extent / 2 + 1;
      shape.set_dim(shape.rank() - rank + i, extent);
    }
    c.set_output(0, std::move(shape));
    return Status();
  };
}

/// The number of elements that one transform takes, as a scalar of the type of `like`.
Value Points(GradContext& g, Value like, Value extents) {
  const Value product = g.Apply("Prod", {extents, g.ConstInts({0})});
  return g.Apply("Cast", {product}, {{"DstT", g.TypeOf(like)}});
}

/// The last `rank` extents of x.
Value LastExtents(GradContext& g, Value x, int rank) {
  return g.Apply("Slice", {g.ShapeOp(x), g.Apply("Sub", {g.Apply("Shape", {g.ShapeOp(x)}), g.ConstInts({rank})}),
                           g.ConstInts({rank})});
}

/// For each frequency that a real transform keeps, `ends` at 0 and, if the length is even, at n / 2; else `inner`.
Value Weights(GradContext& g, Value spectrum, int rank, double ends, double inner) {
  const Value last = g.Apply("GatherV2", {g.X(1), g.ConstInt(rank - 1), g.ConstInt(0)});
  const Value count = g.Add(g.Apply("FloorDiv", {last, g.ConstInt(2)}), g.ConstInt(1));
  const Value twice = g.Mul(g.Apply("Range", {g.ConstInt(0), count, g.ConstInt(1)}), g.ConstInt(2));
  const Value end = g.Apply("LogicalOr", {g.Apply("Equal", {twice, g.ConstInt(0)}), g.Apply("Equal", {twice, last})});
  return g.Apply("SelectV2", {end, g.ConstLike(spectrum, ends), g.ConstLike(spectrum, inner)});
}

/// `dx` with zeros behind it up to the extents of x, of which a transform may take the first elements only.
Value Widened(GradContext& g, Value dx, Value x) {
  const PartialShape whole = g.ShapeOf(x), part = g.ShapeOf(dx);
  if (whole.fully_defined() && whole == part) return dx;
  const Value rest = g.Sub(g.ShapeOp(x), g.ShapeOp(dx));
  const Value paddings =
      g.Apply("Pack", {g.Apply("ZerosLike", {rest}), rest}, {{"N", int64_t{2}}, {"axis", int64_t{1}}});
  return g.Apply("Pad", {dx, paddings});
}

void DeclareComplex(OpRegistry& ops, int rank, std::string_view suffix) {
  const std::string forward = fmt::format("FFT{}", suffix), inverse = fmt::format("IFFT{}", suffix);
  const auto declare = [&](const std::string& name) {
    return ops.Declare(name).In("input: Tcomplex").Out("output: Tcomplex").Attr(kComplexT).Shape(ComplexShape(rank));
  };
  declare(forward)
      .Doc(fmt::format("The discrete Fourier transform along the last {} axes.", rank))
      .Grad([inverse, rank](GradContext& g) {
        const Value dy = g.Dy(0);
        return One(g.Mul(g.Apply(inverse, {dy}), Points(g, dy, LastExtents(g, dy, rank))));
      });
  declare(inverse)
      .Doc(fmt::format("The inverse discrete Fourier transform along the last {} axes.", rank))
      .Grad([forward, rank](GradContext& g) {
        const Value dy = g.Dy(0);
        return One(g.Div(g.Apply(forward, {dy}), Points(g, dy, LastExtents(g, dy, rank))));
      });
}

void DeclareReal(OpRegistry& ops, int rank, std::string_view suffix) {
  const std::string forward = fmt::format("RFFT{}", suffix), inverse = fmt::format("IRFFT{}", suffix);
  const auto declare = [&](const std::string& name, FourierDirection direction) {
    const bool ahead = direction == FourierDirection::kForward;
    return ops.Declare(name)
        .In(ahead ? "input: Treal" : "input: Tcomplex")
        .In("fft_length: int32")
        .Out(ahead ? "output: Tcomplex" : "output: Treal")
        .Attr(kRealT)
        .Attr(kComplexT)
        .Shape(RealShape(rank, direction));
  };
  declare(forward, FourierDirection::kForward)
      .Doc(fmt::format("The Fourier transform of real numbers along the last {} axes, of which the first fft_length "
                       "elements are taken; the last axis of the output has the frequencies 0 to n / 2.",
                       rank))
      .Grad([inverse, rank](GradContext& g) -> Result<std::vector<Grad>> {
        // The inverse doubles what its other half would add, and takes the mean.
        const Value dy = g.Dy(0);
        const Value half = g.Mul(dy, Weights(g, dy, rank, 1, 0.5));
        const Value back = g.Apply(inverse, {half, g.X(1)}, {{"Treal", g.TypeOf(g.X(0))}});
        const Value dx = g.Mul(back, Points(g, back, g.X(1)));
        return std::vector<Grad>{Widened(g, dx, g.X(0)), Grad::None()};
      });
  declare(inverse, FourierDirection::kInverse)
      .Doc(fmt::format("The inverse of RFFT{}: real numbers with the extents fft_length in the last {} axes.", suffix,
                       rank))
      .Grad([forward, rank](GradContext& g) -> Result<std::vector<Grad>> {
        const Value spectrum = g.Apply(forward, {g.Dy(0), g.X(1)}, {{"Tcomplex", g.TypeOf(g.X(0))}});
        const Value weighted = g.Mul(spectrum, Weights(g, spectrum, rank, 1, 2));
        const Value dx = g.Div(weighted, Points(g, weighted, g.X(1)));
        return std::vector<Grad>{Widened(g, dx, g.X(0)), Grad::None()};
      });
}

}  // namespace

void DeclareFourier(OpRegistry& ops) {
  constexpr std::string_view kSuffixes[] = {"", "2D", "3D"};
  for (int rank = 1; rank <= 3; ++rank) {
    DeclareComplex(ops, rank, kSuffixes[rank - 1]);
    DeclareReal(ops, rank, kSuffixes[rank - 1]);
  }
}

}  // namespace weir::ops
