#include "plugins/compiler_llvm/program.h"

namespace weir::compiler_llvm {

const Stash* LoadedStash(const Program& program, uint32_t value, int stage) {
  for (const Stash& stash : program.stashes) {
    if (stash.value == value && stash.made < stage) return &stash;
  }
  return nullptr;
}

void MarkNeeded(const Program& program, int stage, const std::vector<uint32_t>& roots, std::vector<bool>* needed) {
  const auto inputs = static_cast<uint32_t>(program.inputs.size());
  needed->assign(inputs + program.nodes.size(), false);
  for (const uint32_t root : roots) (*needed)[root] = true;
  for (auto value = static_cast<uint32_t>(needed->size()); value-- > inputs;) {
    if (!(*needed)[value] || !program.PlaceOf(value).column || LoadedStash(program, value, stage) != nullptr) continue;
    for (const uint32_t operand : program.nodes[value - inputs].operands) (*needed)[operand] = true;
  }
}

std::vector<uint32_t> RootsOf(const Program& program, int stage) {
  std::vector<uint32_t> roots;
  for (const Node& node : program.nodes) {
    if (IsReduction(node.op) && node.place.stage == stage + 1) roots.push_back(node.operands[0]);
  }
  for (const Stash& stash : program.stashes) {
    if (stash.made == stage) roots.push_back(stash.value);
  }
  if (stage + 1 == program.stages) {
    for (const Output& output : program.outputs) {
      if (output.access.column) roots.push_back(output.value);
    }
  }
  return roots;
}

}  // namespace weir::compiler_llvm
