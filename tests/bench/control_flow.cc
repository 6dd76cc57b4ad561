// B12: loops and conds as built by TensorFlow 1's client.
#include "core/client/control_flow/control_flow.h"

#include "core/session/session.h"
#include "tests/bench/open.h"
#include "tests/bench/workloads.h"

namespace weir::bench {
namespace {

Output Scalar(std::string_view name) { return weir::Placeholder(DType::kFloat, PartialShape::Of({}), name); }

LoopVars Counted(const Operand& limit, const Output& start, const std::function<Output(Output)>& body) {
  return WhileLoop([&](const LoopVars& v) { return Less(v[0], limit); },
                   [&](const LoopVars& v) {
                     const Output next = v[0] + 1;
                     return LoopVars{next, body(v[1])};
                   },
                   {0, start}, {.parallel_iterations = 1});
}

Output Last(const LoopVars& exits) { return exits.empty() ? Output() : exits.back(); }

Result<Program> OpenOn(const std::shared_ptr<session::Runtime>& runtime, Graph& graph, const Output& x,
                       const Output& y) {
  WEIR_ASSIGN(Program program, Open(runtime, graph, {{x.name()}, {y.name()}, {}}));
  program.feeds = {Tensor::Scalar<float>(1)};
  return program;
}

}  // namespace

Result<Program> Loop(const std::shared_ptr<session::Runtime>& runtime, int iterations, LoopBody body) {
  Graph graph;
  const AsDefault in(graph);
  const Output x = Scalar("x");
  const Output limit = weir::Placeholder(DType::kInt32, PartialShape::Of({}), "limit");
  const Output y = Last(Counted(limit, x, [body](Output value) {
    if (body == LoopBody::kScalar) return value + 1.0f;
    for (int i = 0; i < 5; ++i) value = value * 0.5f + 1.0f;
    return value;
  }));
  WEIR_ASSIGN(Program program, Open(runtime, graph, {{x.name(), limit.name()}, {y.name()}, {}}));
  program.feeds = {Tensor::Scalar<float>(1), Tensor::Scalar<int32_t>(iterations)};
  return program;
}

Result<Program> NestedLoop(const std::shared_ptr<session::Runtime>& runtime, int outer, int inner) {
  Graph graph;
  const AsDefault in(graph);
  const Output x = Scalar("x");
  const Output y = Last(Counted(
      outer, x, [&](Output start) { return Last(Counted(inner, start, [&](Output value) { return value + 1.0f; })); }));
  return OpenOn(runtime, graph, x, y);
}

Result<Program> CondChain(const std::shared_ptr<session::Runtime>& runtime, int length) {
  Graph graph;
  const AsDefault in(graph);
  const Output x = Scalar("x");
  Output y = x;
  for (int i = 0; i < length; ++i) {
    y = Cond(
        Less(y, static_cast<float>(i)), [&] { return y + 1.0f; }, [&] { return y * 0.5f; });
  }
  return OpenOn(runtime, graph, x, y);
}

Result<Program> VectorLoop(const std::shared_ptr<session::Runtime>& runtime, int iterations, int64_t bytes) {
  Graph graph;
  const AsDefault in(graph);
  const Shape shape = Shape::Of({bytes / static_cast<int64_t>(sizeof(float))});
  const Output x = weir::Placeholder(DType::kFloat, PartialShape(shape), "x");
  const Output y = Last(Counted(iterations, x, [](const Output& value) { return value * 0.5f; }));
  WEIR_ASSIGN(Program program, OpenOn(runtime, graph, x, y));
  WEIR_ASSIGN(Tensor value, Tensor::Make(DType::kFloat, shape));
  std::fill_n(value.mutable_as<float>().begin(), value.elements(), 1.0f);
  program.feeds = {value};
  return program;
}

}  // namespace weir::bench
