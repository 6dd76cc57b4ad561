#include "core/place/outgrown.h"

#include <fmt/format.h>

#include <map>

#include "core/kernel/measured.h"
#include "core/place/operands.h"

namespace weir::place {

std::string LargerThanMeasured(const Findings& findings) {
  if (findings.table == nullptr || findings.choice == nullptr || findings.options.measured == nullptr) return "";
  std::map<std::string, int> ops;  // nodes
  int nodes = 0;
  std::string example;
  const CostTable& table = *findings.table;
  for (size_t t = 0; t < table.node_of.size(); ++t) {
    const std::string* const recorded = table.At(static_cast<int>(t), findings.choice->plan.device_of[t]).outgrown;
    if (recorded == nullptr) continue;
    const graph::StepNode& node = findings.step.nodes[static_cast<size_t>(table.node_of[static_cast<int>(t)])];
    ++ops[node.source->op().name];
    if (nodes++ > 0) continue;
    const Operands operands = OperandsOf(findings.step, node, findings.options.unknown_dim);
    example = fmt::format("'{}' is {}, measured up to {}", node.name(),
                          kernel::MeasuredKey(node.source->attrs(), operands.inputs), *recorded);
  }
  if (nodes == 0) return "";
  std::string list;
  for (const auto& [op, count] : ops) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", op, count);
  return fmt::format(
      "{} {} larger operands than the recorded runs had [{}]: {}; `weir profile record` with feeds of "
      "this size measures them",
      nodes, nodes == 1 ? "node has" : "nodes have", list, example);
}

}  // namespace weir::place
