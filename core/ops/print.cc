// Ops that write to the process's output streams, and the texts that they write.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::Scalar;
using op::ShapeContext;

Result<std::vector<Grad>> PrintGradient(GradContext& g) {
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = g.DyAsIs(0);
  return grads;
}

Status TextShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

OpBuilder Printer(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kCheck); }

}  // namespace

void DeclarePrint(OpRegistry& ops) {
  Printer(ops, "Print")
      .In("input: T")
      .In("data: [U]")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("U: list(type) >= 0")
      .Attr("message: string = ''")
      .Attr("first_n: int = -1")
      .Attr("summarize: int = 3")
      .Stateful()
      .Shape(SameAs(0))
      .Grad(PrintGradient)
      .Doc(
          "Its input; on the way a line with `message` and the first elements of each of `data` goes to stderr, the "
          "first first_n times (negative: always).");
  Printer(ops, "PrintV2")
      .In("input: string")
      .Attr("output_stream: string = 'stderr'")
      .Attr("end: string = '\\n'")
      .Stateful()
      .Shape(TextShape)
      .NoGradient("it has no outputs")
      .Doc(
          "Writes the scalar string and `end` to \"stdout\", \"stderr\", \"log(info)\", \"log(warning)\", "
          "\"log(error)\" (all on stderr) or, added to its end, to \"file://PATH\".");
  Printer(ops, "StringFormat")
      .In("inputs: [T]")
      .Out("output: string")
      .Attr("T: list(type) >= 0")
      .Attr("template: string = '%s'")
      .Attr("placeholder: string = '%s'")
      .Attr("summarize: int = 3")
      .Shape(Scalar())
      .NoGradient("text has none")
      .Doc(
          "`template` with its placeholders replaced by the inputs, of each axis `summarize` elements from either end "
          "(negative: all).");
}

}  // namespace weir::ops
