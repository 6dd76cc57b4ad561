#include "tests/interop/control_flow.h"

#include <vector>

#include "core/client/extra.h"
#include "core/io/files.h"
#include "core/io/npy.h"

namespace weir {
namespace {

Status Save(Session& session, const std::vector<Output>& values, const std::string& folder) {
  const char* names[] = {"z", "power", "table", "dz"};
  for (size_t i = 0; i < values.size(); ++i) {
    WEIR_ASSIGN(const Fetched fetched, session.Run(values[i]));
    WEIR_TRY(io::WriteNpy(folder + "/" + names[i] + ".npy", fetched.tensor()));
  }
  return Status();
}

Output LastOf(const LoopVars& exits) { return exits.empty() ? Output() : exits.back(); }

/// The value after `limit` rounds of `body`.
Output Rounds(const Operand& limit, const Output& start, const std::function<Output(Output i, Output value)>& body,
              const WhileOptions& options = {}) {
  const auto below = [&](const LoopVars& v) { return Less(v[0], limit); };
  const auto next = [&](const LoopVars& v) { return LoopVars{v[0] + 1, body(v[0], v[1])}; };
  return LastOf(WhileLoop(below, next, {0, start}, options));
}

}  // namespace

Status WriteControlFlow(const std::string& folder) {
  Graph graph;
  const AsDefault in(graph);
  const Output p = PlaceholderWithDefault(true, PartialShape::Of({}), "p");
  const Output x = PlaceholderWithDefault(3.0f, PartialShape::Of({}), "x");
  const Output n = PlaceholderWithDefault(4, PartialShape::Of({}), "n");
  const auto nested = [&] {
    return Cond(
        Less(x, 10.0f), [&] { return x * x; }, [&] { return x; });
  };
  const Output z = Identity(Cond(p, nested, [&] { return x * 2.0f; }), "z");
  const Output one = Constant(1.0f);
  const Output power = Identity(Rounds(n, one, [&](Output, Output value) { return value * x; }), "power");
  const auto row = [&](Output i, Output sum) {
    return Rounds(n, sum, [&](Output j, Output value) {
      const Output even = Equal(FloorMod(i + j, 2), 0);
      return value + Cond(
                         even, [&] { return x; }, [] { return Constant(0.5f); });
    });
  };
  const Output table = Identity(Rounds(n, one, row, {.parallel_iterations = 1}), "table");
  WEIR_ASSIGN(const std::vector<Gradient> gradients, Gradients({z}, {x}));
  const Output dz = Identity(gradients[0].values, "dz");
  WEIR_TRY(graph.status());
  WEIR_ASSIGN(const std::string bytes, ExportMetaGraph(graph));
  WEIR_TRY(io::WriteFileAtomically(folder + "/flow.meta", bytes));
  WEIR_TRY(WriteGraph(graph, folder, "flow.pbtxt").status());
  WEIR_TRY(WriteGraph(graph, folder, "flow.pb", graph::GraphFormat::kBinary).status());
  Session session(graph);
  return Save(session, {z, power, table, dz}, folder);
}

Status ReadControlFlow(const std::string& path, const std::string& folder) {
  Graph graph;
  const AsDefault in(graph);
  WEIR_TRY(ImportMetaGraphFile(path, graph).status());
  std::vector<Output> values;
  for (const char* name : {"z:0", "power:0", "table:0"}) {
    WEIR_ASSIGN(const Output value, graph.TensorByName(name));
    values.push_back(value);
  }
  WEIR_ASSIGN(const Output x, graph.TensorByName("x:0"));
  WEIR_ASSIGN(const std::vector<Gradient> gradients, Gradients({values[0]}, {x}));
  values.push_back(gradients[0].values);
  Session session(graph);
  return Save(session, values, folder);
}

Status WriteGradients(const std::string& path, const std::string& folder) {
  Graph graph;
  const AsDefault in(graph);
  WEIR_TRY(ImportMetaGraphFile(path, graph).status());
  WEIR_ASSIGN(const Output y, graph.TensorByName("y:0"));
  WEIR_ASSIGN(const Output x, graph.TensorByName("x:0"));
  WEIR_ASSIGN(const Output w, graph.TensorByName("w:0"));
  WEIR_ASSIGN(const std::vector<Gradient> gradients, Gradients({y}, {x, w}));
  const Output ours_x = Identity(gradients[0].values, "ours_x"), ours_w = Identity(gradients[1].values, "ours_w");
  WEIR_TRY(graph.status());
  WEIR_TRY(WriteGraph(graph, folder, "ours.pb", graph::GraphFormat::kBinary).status());
  Session session(graph);
  for (const Output& ours : {ours_x, ours_w}) {
    WEIR_ASSIGN(const Fetched fetched, session.Run(ours));
    WEIR_TRY(io::WriteNpy(folder + "/" + ours.op().name() + ".npy", fetched.tensor()));
  }
  return Status();
}

}  // namespace weir
