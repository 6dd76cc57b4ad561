#include "tests/ops/case_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/kernel/operand_args.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"
#include "tools/weir/cases/case_values.h"

namespace weir::testing {

using kernel::Masked;

std::string_view Name(GraphMode mode) {
  return mode == GraphMode::kKnownShapes ? "known" : mode == GraphMode::kUnknownShapes ? "unknown" : "compiled";
}

Status RunNode(const OpCase& c, const std::shared_ptr<session::Runtime>& runtime, const std::string& device,
               GraphMode mode) {
  const auto variable = [](DType t) { return IsRef(t) || t == DType::kResource; };
  if (std::ranges::any_of(c.signature.inputs, variable)) return Unimplemented("its inputs are variables");
  const bool known = mode != GraphMode::kUnknownShapes;
  const std::vector<int> args = kernel::ArgOfOperand(c.signature.input_counts);
  const auto kernels = runtime->plugins->kernels().ForOp(c.def->name);
  std::vector<NodeLine> nodes;
  std::vector<session::Feed> feeds;
  NodeLine y{"y", c.def->name, {}, c.attrs};
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    y.inputs.push_back(name);
    const bool steers = std::ranges::any_of(
        kernels, [&](const kernel::KernelEntry* entry) { return Masked(entry->record->host_inputs, args[i]); });
    if (known && (steers || (kernels.empty() && i > 0))) {
      nodes.push_back(Const(name, c.inputs[i]));
      continue;
    }
    nodes.push_back(Placeholder(name, known ? PartialShape(c.inputs[i].shape()) : PartialShape(), c.inputs[i].dtype()));
    feeds.emplace_back(name + ":0", c.inputs[i]);
  }
  nodes.push_back(std::move(y));
  WEIR_ASSIGN(const graph::Definition graph, MakeGraph(nodes));
  session::SessionOptions options;
  options.default_device = device;
  options.constant_folding = false;
  if (mode == GraphMode::kCompiled) options.compile_regions = session::CompileRegions::kOn;
  options.keep_compiled_regions = false;
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph, options));
  std::vector<std::string> fetches, targets;
  for (size_t i = 0; i < c.signature.outputs.size(); ++i) fetches.push_back("y:" + std::to_string(i));
  if (fetches.empty()) targets.push_back("y");
  WEIR_ASSIGN(const std::vector<Tensor> outputs, session->Run(feeds, fetches, targets));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (c.any || (c.by_reference && i > 0)) break;
    WEIR_ASSIGN(const Tensor wanted, WantedOutput(c, i, outputs[i].shape()));
    const Status same = SameCaseValue(outputs[i], wanted, c.tolerance);
    if (!same.ok()) return Internal("output {}: {}", i, same.message());
  }
  return {};
}

}  // namespace weir::testing
