// Einsum: sums of products along labelled axes.
#include <algorithm>
#include <map>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Grad;
using op::GradContext;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

constexpr std::string_view kEllipsis = "...";

/// "ab,bc->ac": the labels of each input's axes and of the output's. An ellipsis stands for axes that broadcast.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

Result<Equation> ParseEquation(const std::string& text) {
  const size_t arrow = text.find("->");
  if (arrow == text.npos || text.find("->", arrow + 2) != text.npos) {
    return InvalidArgument("Expecting exactly one '->' in einsum equation: {}", text);
  }
  Equation equation;
  const std::string inputs = text.substr(0, arrow);
  for (size_t begin = 0; begin <= inputs.size();) {
    const size_t end = std::min(inputs.find(',', begin), inputs.size());
    equation.inputs.push_back(inputs.substr(begin, end - begin));
    begin = end + 1;
  }
  if (equation.inputs.size() > 2) {
    return InvalidArgument("Expecting 1 or 2 input subscripts in equation '{}' but got: {}", text,
                           equation.inputs.size());
  }
  equation.output = text.substr(arrow + 2);
  return equation;
}

/// InvalidArgument unless the labels have no periods but those of one ellipsis.
Status CheckPeriods(const std::string& labels, std::string_view what) {
  const auto periods = std::ranges::count(labels, '.');
  if (periods == 0 || (periods == 3 && labels.find(kEllipsis) != labels.npos)) return Status();
  return InvalidArgument("Expected at most one ellipsis (...), but found {} periods (.) in the {} subscript: {}",
                         periods, what, labels);
}

/// Labels before and after the ellipsis.
struct LabelSplit {
  std::string before, after;
  bool ellipsis = false;

  explicit LabelSplit(const std::string& labels) : before(labels) {
    const size_t at = labels.find(kEllipsis);
    if (at == labels.npos) return;
    ellipsis = true;
    before = labels.substr(0, at);
    after = labels.substr(at + kEllipsis.size());
  }
  int named() const { return static_cast<int>(before.size() + after.size()); }
};

/// Extents by label, and those that broadcast.
struct Labelled {
  std::map<char, int64_t> extents;
  PartialShape broadcast = PartialShape::OfRank(0);

  Status See(char label, int64_t extent) {
    const auto [entry, fresh] = extents.try_emplace(label, extent);
    if (fresh) return Status();
    WEIR_ASSIGN(entry->second, op::MergeDim(entry->second, extent));
    return Status();
  }

  Status Add(const PartialShape& given, const std::string& labels, size_t position, const std::string& equation) {
    WEIR_TRY(CheckPeriods(labels, "input"));
    const LabelSplit split(labels);
    const auto context = [&] { return fmt::format("\n\t for {}th input and equation: {}", position, equation); };
    const Result<PartialShape> ranked =
        split.ellipsis ? ToRankAtLeast(given, split.named()) : ToRank(given, split.named());
    if (!ranked.ok()) return ranked.status().Append(context());
    const PartialShape& shape = *ranked;
    const int rank = shape.rank(), before = static_cast<int>(split.before.size()),
              after = static_cast<int>(split.after.size());
    for (int i = 0; i < before; ++i) {
      WEIR_TRY(See(split.before[static_cast<size_t>(i)], shape.has_rank() ? shape.dim(i) : -1));
    }
    for (int i = 0; i < after; ++i) {
      WEIR_TRY(See(split.after[static_cast<size_t>(i)], shape.has_rank() ? shape.dim(rank - after + i) : -1));
    }
    if (!split.ellipsis) return Status();
    const PartialShape free = shape.has_rank() ? Span(shape, before, rank - after) : PartialShape();
    WEIR_ASSIGN(broadcast, op::BroadcastShapes(broadcast, free));
    return Status();
  }

  Result<PartialShape> Output(const std::string& labels, const std::string& equation) const {
    WEIR_TRY(CheckPeriods(labels, "output"));
    const LabelSplit split(labels);
    if (!split.ellipsis) {
      const Status none = ToRankAtMost(broadcast, 0).status();
      if (!none.ok()) {
        return none.Append(fmt::format(
            "\n\t for einsum equation '{}' without ellipsis (...) in the output subscripts where input(s) have "
            "non-empty broadcasting shape",
            equation));
      }
    }
    const auto named = [&](const std::string& part) -> Result<PartialShape> {
      std::vector<int64_t> dims;
      for (const char label : part) {
        const auto entry = extents.find(label);
        if (entry == extents.end()) {
          return InvalidArgument(
              "Einsum output subscripts for equation '{}' has label '{}' which is not present in the input subscripts",
              equation, label);
        }
        dims.push_back(entry->second);
      }
      return PartialShape::Make(dims);
    };
    WEIR_ASSIGN(const PartialShape before, named(split.before));
    WEIR_ASSIGN(const PartialShape after, named(split.after));
    if (!split.ellipsis) return before;
    WEIR_ASSIGN(const PartialShape head, Join(before, broadcast));
    return Join(head, after);
  }
};

Status EinsumShape(ShapeContext& c) {
  WEIR_ASSIGN(const std::string text, c.attrs().String("equation"));
  WEIR_ASSIGN(const Equation equation, ParseEquation(text));
  if (static_cast<int>(equation.inputs.size()) != c.num_inputs()) {
    return InvalidArgument("Expected {} inputs for equation {} but got: {}", equation.inputs.size(), text,
                           c.num_inputs());
  }
  Labelled labelled;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    WEIR_TRY(labelled.Add(c.input(static_cast<int>(i)), equation.inputs[i], i, text));
  }
  WEIR_ASSIGN(PartialShape out, labelled.Output(equation.output, text));
  c.set_output(0, std::move(out));
  return Status();
}

/// Elements of a shape vector from `begin` (negative: from its end) to `end` (0: to its end; negative: from its end).
Value ShapePart(GradContext& g, Value shape, int begin, int end) {
  op::AttrList masks;
  if (begin == 0) masks.emplace_back("begin_mask", int64_t{1});
  if (end == 0) masks.emplace_back("end_mask", int64_t{1});
  return g.Apply("StridedSlice", {shape, g.ConstInts({begin}), g.ConstInts({end}), g.ConstInts({1})}, masks);
}

/// Labels of `labels`, each once, that are not in `others`.
std::string OnlyIn(const std::string& labels, const std::string& others) {
  std::string only;
  for (const char label : labels) {
    if (label != '.' && others.find(label) == others.npos && only.find(label) == only.npos) only += label;
  }
  return only;
}

/// Ones with the extents that x, with these labels, has along `wanted`.
Value OnesAlong(GradContext& g, Value x, const std::string& labels, const std::string& wanted) {
  const LabelSplit split(labels);
  const Value shape = g.ShapeOp(x);
  std::vector<Value> extents;
  for (const char label : wanted) {
    int axis = 0;
    if (const size_t at = split.before.find(label); at != std::string::npos) {
      axis = static_cast<int>(at);
    } else {
      axis = static_cast<int>(split.after.find(label)) - static_cast<int>(split.after.size());
    }
    extents.push_back(ShapePart(g, shape, axis, axis + 1));
  }
  return g.Apply("Fill", {JoinVectors(g, extents), g.ConstLike(x, 1)});
}

Value ApplyEinsum(GradContext& g, const std::vector<Value>& inputs, const std::string& equation) {
  return g.ApplyList("Einsum", inputs, {{"N", static_cast<int64_t>(inputs.size())}, {"equation", equation}});
}

/// The gradient by input x with the labels `x_labels`, before sums along broadcast axes. `other` and its labels are
/// those of the second input, if there is one. Labels of x alone were summed, so the gradient repeats along them.
Value GradientBy(GradContext& g, Value x, const std::string& x_labels, const std::string& output,
                 const std::optional<std::pair<Value, std::string>>& other) {
  const std::string summed = OnlyIn(x_labels, other ? output + other->second : output);
  Value dx = g.Dy(0);
  std::string labels = output;
  if (other) {
    std::string kept;
    for (const char label : x_labels) {
      if (summed.find(label) == summed.npos) kept += label;
    }
    dx = ApplyEinsum(g, {dx, other->first}, output + "," + other->second + "->" + kept);
    labels = kept;
  }
  if (!summed.empty()) {
    return ApplyEinsum(g, {dx, OnesAlong(g, x, x_labels, summed)}, labels + "," + summed + "->" + x_labels);
  }
  return labels == x_labels ? dx : ApplyEinsum(g, {dx}, labels + "->" + x_labels);
}

/// Sums gradients of broadcast operands along the axes of the ellipses.
std::vector<Grad> UnbroadcastEllipsis(GradContext& g, const std::string& x_labels, Value dx,
                                      const std::string& y_labels, Value dy) {
  const LabelSplit x(x_labels), y(y_labels);
  const auto extents = [&](const LabelSplit& split, const PartialShape& shape) {
    return Span(shape, static_cast<int>(split.before.size()), shape.rank() - static_cast<int>(split.after.size()));
  };
  const PartialShape x_shape = g.ShapeOf(g.X(0)), y_shape = g.ShapeOf(g.X(1));
  if (x_shape.fully_defined() && y_shape.fully_defined() && extents(x, x_shape) == extents(y, y_shape)) return {dx, dy};
  const auto batch = [&](const LabelSplit& split, Value shape) {
    return ShapePart(g, shape, static_cast<int>(split.before.size()), -static_cast<int>(split.after.size()));
  };
  const Value x_extents = g.ShapeOp(g.X(0)), y_extents = g.ShapeOp(g.X(1));
  const std::vector<Value> axes = g.ApplyAll("BroadcastGradientArgs", {batch(x, x_extents), batch(y, y_extents)});
  if (axes.size() != 2) return {dx, dy};
  const auto sum = [&](const LabelSplit& split, Value d, Value over, Value shape) {
    const Value shifted = g.Add(over, g.ConstInt(static_cast<int32_t>(split.before.size())));
    return g.Reshape(g.Apply("Sum", {d, shifted}), shape);
  };
  return {sum(x, dx, axes[0], x_extents), sum(y, dy, axes[1], y_extents)};
}

Result<std::vector<Grad>> EinsumGradient(GradContext& g) {
  WEIR_ASSIGN(const std::string text, g.attrs().String("equation"));
  WEIR_ASSIGN(Equation equation, ParseEquation(text));
  std::vector<std::string>& labels = equation.inputs;
  if (labels.size() == 1) return op::One(GradientBy(g, g.X(0), labels[0], equation.output, std::nullopt));
  const bool ellipsis = equation.output.find(kEllipsis) != std::string::npos;
  for (std::string& input : labels) {
    if (ellipsis && input.find(kEllipsis) == input.npos) input += kEllipsis;
  }
  const Value x = g.X(0), y = g.X(1);
  const Value dx = GradientBy(g, x, labels[0], equation.output, std::pair(g.Conj(y), labels[1]));
  const Value dy = GradientBy(g, y, labels[1], equation.output, std::pair(g.Conj(x), labels[0]));
  if (!ellipsis) return std::vector<Grad>{dx, dy};
  return UnbroadcastEllipsis(g, labels[0], dx, labels[1], dy);
}

}  // namespace

void DeclareEinsum(OpRegistry& ops) {
  ops.Declare("Einsum")
      .In("inputs: N * T")
      .Out("output: T")
      .Attr("equation: string")
      .Attr("N: int >= 1")
      .Attr(kAnyT)
      .Shape(EinsumShape)
      .Grad(EinsumGradient)
      .Doc(
          "Sums of products of one or two tensors: `equation` labels their axes and those of the output, 'ij,jk->ik'; "
          "labels that the output lacks are summed, and axes of an ellipsis broadcast.");
}

}  // namespace weir::ops
