// Colour spaces and adjustments of contrast, hue and saturation.
#include <array>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// Colours in the last axis, three channels.
Status ColourShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRankAtLeast(0, 1));
  if (shape.has_rank()) {
    WEIR_TRY(ExpectDim(shape.dim(shape.rank() - 1), 3));
    shape.set_dim(shape.rank() - 1, 3);
  }
  c.set_output(0, std::move(shape));
  return Status();
}

Status AdjustedShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape images, c.WithRankAtLeast(0, 3));
  for (int i = 1; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  c.set_output(0, std::move(images));
  return Status();
}

/// Masks as numbers of the colours' type.
class Masks {
 public:
  Masks(GradContext& g, DType type) : g_(g), type_(type) {}
  Value Compare(std::string_view op, Value a, Value b) {
    return g_.Apply("Cast", {g_.Apply(op, {a, b})}, {{"DstT", type_}});
  }
  Value Both(Value a, Value b) { return g_.Mul(a, b); }
  Value Ratio(Value a, Value b) { return g_.Apply("DivNoNan", {a, b}); }

 private:
  GradContext& g_;
  DType type_;
};

/// What one channel is to its pixel.
struct Role {
  Value largest, smallest, middle;  // 1 or 0
};

/// Among channels a, b, c with the value `x` of `a`. Of equal channels the largest is the first one and the smallest
/// the last one of red, green, blue; the comparisons with `b` and `c` say which comes first.
Role RoleOf(Masks& m, GradContext& g, const std::array<Value, 3>& x, int a) {
  const int b = a == 0 ? 1 : 0, c = a == 2 ? 1 : 2;
  const auto ahead = [&](int other) { return m.Compare(a < other ? "GreaterEqual" : "Greater", x[a], x[other]); };
  Role role;
  role.largest = m.Both(ahead(b), ahead(c));
  const Value one = g.ConstLike(x[a], 1);
  role.smallest = m.Both(g.Sub(one, ahead(b)), g.Sub(one, ahead(c)));
  role.middle = g.Sub(g.Sub(one, role.largest), role.smallest);
  return role;
}

/// With M, s and m the largest, smallest and middle channel: value = M, saturation = 1 − s / M if M > 0, and hue is a
/// sixth of sign · (m − s) / (M − s) plus a constant of the order of the channels, where the sign is that of the
/// permutation (largest, middle, smallest) of (red, green, blue).
std::vector<Grad> RgbToHsvGradient(GradContext& g) {
  const auto split = [&](Value v) {
    const std::vector<Value> parts = g.ApplyAll("Split", {g.ConstInt(-1), v}, {{"num_split", int64_t{3}}});
    std::array<Value, 3> three;
    for (size_t i = 0; i < 3 && i < parts.size(); ++i) three[i] = parts[i];
    return three;
  };
  const std::array<Value, 3> x = split(g.X(0)), dy = split(g.Dy(0));
  Masks m(g, g.TypeOf(g.X(0)));
  std::array<Role, 3> roles;
  Value largest, smallest, middle;
  for (int i = 0; i < 3; ++i) {
    Role& role = roles[static_cast<size_t>(i)];
    role = RoleOf(m, g, x, i);
    const auto add = [&](Value& sum, Value mask) {
      const Value term = g.Mul(mask, x[static_cast<size_t>(i)]);
      sum = i == 0 ? term : g.Add(sum, term);
    };
    add(largest, role.largest);
    add(smallest, role.smallest);
    add(middle, role.middle);
  }
  // 1 where middle follows largest in the cycle red, green, blue; else −1.
  Value cyclic;
  for (size_t i = 0; i < 3; ++i) {
    const Value term = g.Mul(roles[i].largest, roles[(i + 1) % 3].middle);
    cyclic = i == 0 ? term : g.Add(cyclic, term);
  }
  const Value two = g.ConstLike(x[0], 2), one = g.ConstLike(x[0], 1);
  const Value sign = g.Sub(g.Mul(two, cyclic), one);
  const Value range = g.Sub(largest, smallest);
  const Value sixth = m.Ratio(g.Mul(sign, dy[0]), g.Mul(g.ConstLike(x[0], 6), range));
  const Value by_saturation = g.Mul(dy[1], m.Compare("Greater", largest, g.ConstLike(largest, 0)));
  const Value square = g.Apply("Square", {largest});
  const Value by_largest = g.Sub(g.Add(dy[2], g.Mul(by_saturation, m.Ratio(smallest, square))),
                                 g.Mul(sixth, m.Ratio(g.Sub(middle, smallest), range)));
  const Value by_smallest =
      g.Neg(g.Add(m.Ratio(by_saturation, largest), g.Mul(sixth, m.Ratio(g.Sub(largest, middle), range))));
  std::vector<Value> by_channel;
  for (const Role& role : roles) {
    by_channel.push_back(
        g.Add(g.Add(g.Mul(role.largest, by_largest), g.Mul(role.smallest, by_smallest)), g.Mul(role.middle, sixth)));
  }
  by_channel.push_back(g.ConstInt(-1));
  return One(g.ApplyList("ConcatV2", by_channel, {{"N", int64_t{3}}}));
}

OpBuilder Colour(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kNeural).In("images: T");
}

void DeclareSpaces(OpRegistry& ops) {
  constexpr std::string_view kColourT = "T: {half, bfloat16, float, double} = DT_FLOAT";
  Colour(ops, "RGBToHSV")
      .Out("output: T")
      .Attr(kColourT)
      .Doc("Red, green and blue of the last axis as hue in [0, 1), saturation and value.")
      .Shape(ColourShape)
      .Grad(RgbToHsvGradient);
  Colour(ops, "HSVToRGB")
      .Out("output: T")
      .Attr(kColourT)
      .Doc("Hue, saturation and value of the last axis as red, green and blue.")
      .Shape(ColourShape)
      .NoGradient("TensorFlow declares it not differentiable");
}

void DeclareAdjustments(OpRegistry& ops) {
  constexpr std::string_view kImageT = "T: {half, float} = DT_FLOAT";
  Colour(ops, "AdjustContrast")
      .In("contrast_factor: float")
      .In("min_value: float")
      .In("max_value: float")
      .Out("output: float")
      .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
      .Doc(
          "(x - mean) * contrast_factor + mean, limited to [min_value, max_value]; the mean is that of the channel in "
          "each image [height, width, channels].")
      .Shape(AdjustedShape)
      .NoGradient(op::kUndefinedGradient);
  Colour(ops, "AdjustContrastv2")
      .In("contrast_factor: float")
      .Out("output: T")
      .Attr(kImageT)
      .Doc("(x - mean) * contrast_factor + mean; the mean is that of the channel in each image.")
      .Shape(AdjustedShape)
      .NoGradient(op::kUndefinedGradient);
  Colour(ops, "AdjustHue")
      .In("delta: float")
      .Out("output: T")
      .Attr(kImageT)
      .Doc("RGB images with delta added to the hue, which is a fraction of a turn.")
      .Shape(AdjustedShape)
      .NoGradient(op::kUndefinedGradient);
  Colour(ops, "AdjustSaturation")
      .In("scale: float")
      .Out("output: T")
      .Attr(kImageT)
      .Doc("RGB images with the saturation multiplied by scale and limited to [0, 1].")
      .Shape(AdjustedShape)
      .NoGradient(op::kUndefinedGradient);
}

}  // namespace

void DeclareColours(OpRegistry& ops) {
  DeclareSpaces(ops);
  DeclareAdjustments(ops);
}

}  // namespace weir::ops
