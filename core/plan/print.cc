#include <fmt/format.h>

#include "core/plan/plan.h"

namespace weir::plan {
namespace {

const char* Name(Opcode opcode) {
  switch (opcode) {
    case Opcode::kKernel:
      return "kernel";
    case Opcode::kLockedKernel:
      return "locked";
    case Opcode::kCall:
      return "call";
    case Opcode::kReadVariable:
      return "read";
    case Opcode::kAssign:
      return "assign";
    case Opcode::kIsInitialized:
      return "is_initialized";
    case Opcode::kVariableShape:
      return "variable_shape";
    case Opcode::kCopy:
      return "copy";
    case Opcode::kFetch:
      return "fetch";
    case Opcode::kRelease:
      return "release";
  }
  return "?";
}

std::string Place(const Storage& storage) {
  switch (storage.home) {
    case Storage::Home::kArena:
      return fmt::format("@{}", storage.offset);
    case Storage::Home::kConstant:
      return "const";
    case Storage::Home::kFeed:
      return fmt::format("feed{}", storage.feed);
    case Storage::Home::kFresh:
      return "fresh";
    case Storage::Home::kOwned:
      return "owned";
    case Storage::Home::kVariable:
      return fmt::format("var{}", storage.variable);
  }
  return "?";
}

}  // namespace

std::string ToString(const ExecutionPlan& plan) {
  std::string text;
  for (const Instruction& instruction : plan.instructions) {
    text += fmt::format("{:<14} {:<32}", Name(instruction.opcode),
                        plan.nodes[static_cast<size_t>(instruction.node)]->name());
    for (uint32_t i = 0; i < static_cast<uint32_t>(instruction.inputs) + instruction.outputs; ++i) {
      const int index = plan.slots[instruction.first_slot + i].value;
      const Value& value = plan.values[static_cast<size_t>(index)];
      text += fmt::format("{} %{} {}{} {}", i == instruction.inputs ? " ->" : "", index, weir::Name(value.dtype),
                          value.shape_known ? value.shape.ToString() : "[*]",
                          Place(plan.storages[static_cast<size_t>(value.storage)]));
    }
    text += '\n';
  }
  return text;
}

}  // namespace weir::plan
