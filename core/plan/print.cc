#include <fmt/format.h>

#include "core/plan/plan.h"

namespace weir::plan {
namespace {

const char* Name(Opcode opcode) {
  switch (opcode) {
    case Opcode::kKernel:
      return "kernel";
    case Opcode::kStreamKernel:
      return "launch";
    case Opcode::kTiledKernel:
      return "tiles";
    case Opcode::kLockedKernel:
      return "locked";
    case Opcode::kCall:
      return "call";
    case Opcode::kReadVariable:
      return "read";
    case Opcode::kAssign:
      return "assign";
    case Opcode::kMake:
      return "make";
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
    case Opcode::kMove:
    case Opcode::kMoveBytes:
      return "move";
    case Opcode::kSwap:
      return "swap";
    case Opcode::kMerge:
      return "merge";
    case Opcode::kSelect:
      return "select";
    case Opcode::kGuard:
      return "guard";
    case Opcode::kSkip:
      return "skip";
    case Opcode::kRepeat:
      return "repeat";
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
    case Storage::Home::kMade:
      return fmt::format("made{}", storage.made);
    case Storage::Home::kOwned:
      return "owned";
    case Storage::Home::kVariable:
      return fmt::format("var{}", storage.variable);
    case Storage::Home::kBound:
      return "bound";
  }
  return "?";
}

std::string Describe(const GuardStep& step) {
  switch (step.kind) {
    case GuardStep::Kind::kPredicate:
      return fmt::format(" g{} else g{} under g{}", step.to, step.otherwise, step.a);
    case GuardStep::Kind::kAnd:
      return fmt::format(" g{} = g{} and g{}", step.to, step.a, step.b);
    case GuardStep::Kind::kOr:
      return fmt::format(" g{} = g{} or g{}", step.to, step.a, step.b);
    case GuardStep::Kind::kCopy:
      return fmt::format(" g{} = g{}", step.to, step.a);
    case GuardStep::Kind::kClear:
      return fmt::format(" g{} = 0", step.to);
  }
  return "?";
}

}  // namespace

std::string ToString(const ExecutionPlan& plan) {
  std::string text;
  for (size_t at = 0; at < plan.instructions.size(); ++at) {
    const Instruction& instruction = plan.instructions[at];
    text += fmt::format("{:>5} {:<14} {:<32}", at, Name(instruction.opcode),
                        plan.nodes[static_cast<size_t>(instruction.node)]->name());
    for (uint32_t i = 0; i < static_cast<uint32_t>(instruction.inputs) + instruction.outputs; ++i) {
      const int index = plan.slots[instruction.first_slot + i].value;
      const Value& value = plan.values[static_cast<size_t>(index)];
      text += fmt::format("{} %{} {}{} {}", i == instruction.inputs ? " ->" : "", index, weir::Name(value.dtype),
                          value.shape_known ? value.shape.ToString() : "[*]",
                          Place(plan.storages[static_cast<size_t>(value.storage)]));
    }
    if (instruction.opcode == Opcode::kMake) text += fmt::format(" made{}", instruction.detail);
    if (instruction.opcode == Opcode::kGuard) text += Describe(plan.guard_steps[instruction.detail]);
    if (instruction.opcode == Opcode::kSkip || instruction.opcode == Opcode::kRepeat) {
      const Jump& jump = plan.jumps[instruction.detail];
      text +=
          fmt::format(" to {} {} g{}", jump.target, instruction.opcode == Opcode::kSkip ? "unless" : "if", jump.guard);
    }
    text += '\n';
  }
  return text;
}

}  // namespace weir::plan
