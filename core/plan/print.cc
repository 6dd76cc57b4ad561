#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/plan/draft_internal.h"
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
    case Opcode::kHandle:
      return "handle";
    case Opcode::kResolve:
      return "resolve";
    case Opcode::kTemporary:
      return "temporary";
    case Opcode::kGuard:
      return "guard";
    case Opcode::kSkip:
      return "skip";
    case Opcode::kRepeat:
      return "repeat";
    case Opcode::kSend:
      return "send";
    case Opcode::kRecv:
      return "recv";
    case Opcode::kStack:
      return "stack";
    case Opcode::kPush:
      return "push";
    case Opcode::kPop:
      return "pop";
    case Opcode::kCount:
      return "count";
    case Opcode::kRecord:
      return "record";
    case Opcode::kWait:
      return "wait";
  }
  return "?";
}

std::string Home(const Storage& storage) {
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
      return fmt::format("made{}", storage.made.number());
    case Storage::Home::kOwned:
      return storage.only_assigned ? "assigned" : "owned";
    case Storage::Home::kVariable:
      return fmt::format("var{}", storage.variable.number());
    case Storage::Home::kBound:
      return "bound";
  }
  return "?";
}

/// Where a value lies: its home, and the memory unless it is the host's.
std::string Place(const Storage& storage) {
  const DeviceId owner = OwnerOf(storage.space);
  return owner.valid() ? fmt::format("{} in {}", Home(storage), owner.number()) : Home(storage);
}

std::string Describe(const GuardStep& step) {
  const auto n = [](GuardId guard) { return guard.number(); };
  switch (step.kind) {
    case GuardStep::Kind::kPredicate:
      return fmt::format(" g{} else g{} under g{}", n(step.to), n(step.otherwise), n(step.a));
    case GuardStep::Kind::kAnd:
      return fmt::format(" g{} = g{} and g{}", n(step.to), n(step.a), n(step.b));
    case GuardStep::Kind::kOr:
      return fmt::format(" g{} = g{} or g{}", n(step.to), n(step.a), n(step.b));
    case GuardStep::Kind::kCopy:
      return fmt::format(" g{} = g{}", n(step.to), n(step.a));
    case GuardStep::Kind::kClear:
      return fmt::format(" g{} = 0", n(step.to));
  }
  return "?";
}

/// " host 256", for each memory that the plan has an arena in.
std::string ArenasText(const ExecutionPlan& plan) {
  std::string text;
  for (const SpaceId space : plan.arena_bytes.indices()) {
    const uint64_t bytes = plan.arena_bytes[space];
    if (bytes == 0) continue;
    text += space == kHostSpace ? fmt::format(" host {}", bytes)
                                : fmt::format(" space {} {}", OwnerOf(space).number(), bytes);
  }
  return text.empty() ? " none" : text;
}

std::string VariableText(const ExecutionPlan& plan, VariableId id) {
  const VariableUse& use = plan.variables[id];
  std::string text = fmt::format("var{} {} {}", id.number(), use.node->name(), use.declared.ToString());
  for (size_t i = 0; i < use.choices.size(); ++i)
    text += fmt::format("{} var{}", i == 0 ? " one of" : ",", use.choices[i].number());
  return text + "\n";
}

/// "stream 1 uploads to space 0"
std::string StreamText(const ExecutionPlan& plan, StreamId id) {
  const PlannedStream& stream = plan.streams[id];
  const char* const use = stream.use == PlannedStream::Use::kCompute  ? "computes in"
                          : stream.use == PlannedStream::Use::kUpload ? "uploads to"
                                                                      : "downloads from";
  return fmt::format("stream {} {} space {}\n", id.number(), use, stream.device.number());
}

/// "task 3 [12,15) after 2 before 4 5 blocking" and what of a loop it is.
std::string TaskText(const ExecutionPlan& plan, TaskId id) {
  const Task& task = plan.tasks[id];
  std::string text = fmt::format("task {} [{},{}) after {}", id.number(), task.begin, task.end, task.predecessors);
  for (uint32_t s = 0; s < task.successor_count; ++s) {
    text += fmt::format("{} {}", s == 0 ? " before" : "", plan.successors[task.first_successor + s].number());
  }
  if (task.blocking) text += " blocking";
  if (task.suspends) text += " suspends";
  if (task.loop.valid()) text += fmt::format(" in the body of {}", task.loop.number());
  if (task.inner > 0) text += fmt::format(" loop of {} tasks [{},{})", task.inner, task.body, task.repeat);
  return text + "\n";
}

std::string LocksText(const ExecutionPlan& plan, const Instruction& instruction) {
  std::string text;
  const std::span<const Lock> list = plan.LocksOf(instruction);
  std::vector<Lock> locks(list.begin(), list.end());
  std::ranges::sort(locks, {}, &Lock::variable);  // they are taken by address
  for (const Lock& lock : locks) {
    text += fmt::format("{} {}var{}", text.empty() ? " locks" : ",", lock.exclusive ? "" : "shared ",
                        lock.variable.number());
  }
  return instruction.serialized ? text + " serialized" : text;
}

/// Which kernel runs, or may.
std::string KernelText(const ExecutionPlan& plan, const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kKernel:
    case Opcode::kStreamKernel:
    case Opcode::kTiledKernel:
    case Opcode::kLockedKernel:
      return " by " + plan.kernels[instruction.detail]->entry().plugin;
    case Opcode::kCall: {
      const CallSpec& call = plan.calls[instruction.detail];
      std::string text = call.builtin != nullptr ? " by core" : "";
      for (const kernel::KernelEntry* entry : call.kernels) text += (text.empty() ? " by " : " or ") + entry->plugin;
      return text;
    }
    default:
      return {};
  }
}

bool UsesStack(const Instruction& instruction) {
  return instruction.opcode == Opcode::kStack || instruction.opcode == Opcode::kPush ||
         instruction.opcode == Opcode::kPop;
}

int TierNumber(const ExecutionPlan& plan) { return plan.tier == Tier::kT0 ? 0 : 2; }

/// "g3 MatMul: m", one line per node in the order of the tape as far as it is known, with the guards of loops.
std::string GuardsText(const DraftInput& input, const Draft& draft) {
  std::string text = fmt::format("{} guards\n", draft.guards.set.size());
  const auto frame_line = [&](const char* what, FrameId frame) {
    const std::string& name = input.step.frames[frame].name;
    text += fmt::format("{} {} g{}{}\n", what, name, draft.guards.base[frame].number(),
                        draft.guards.structured[frame] ? "" : " unstructured");
  };
  const auto node_line = [&](graph::NodeId id) {
    const graph::StepNode& node = input.step.node(id);
    text += fmt::format("g{} {}\n", draft.guards.node[id].number(), node.name());
  };
  if (draft.order.empty()) {
    for (const graph::NodeId id : draft.guards.node.indices()) node_line(id);
  }
  for (const graph::OrderItem& item : draft.order) {
    if (item.kind == graph::OrderItem::Kind::kLoopBegin) {
      frame_line("loop", item.frame());
    } else if (item.kind == graph::OrderItem::Kind::kLoopEnd) {
      frame_line("end of", item.frame());
    } else {
      node_line(item.id);
    }
  }
  return text;
}

}  // namespace

std::string ToString(const DraftInput& input, const Draft& draft) {
  if (draft.plan == nullptr) return GuardsText(input, draft);
  return ToString(*draft.plan) + (draft.other == nullptr ? "" : "or\n" + ToString(*draft.other));
}

std::string ToString(const ExecutionPlan& plan) {
  std::string text = fmt::format("tier T{}, {} instructions, {} values, arena", TierNumber(plan),
                                 plan.instructions.size(), plan.values.size());
  text += ArenasText(plan) + "\n";
  if (plan.other) {
    text += fmt::format("or tier T{}, whichever runs prove to be faster, arena{}\n", TierNumber(*plan.other),
                        ArenasText(*plan.other));
  }
  for (const DeviceId device : plan.devices.indices()) {
    text += fmt::format("space {} {}\n", device.number(), plan.devices[device]->name());
  }
  for (const StreamId stream : plan.streams.indices()) text += StreamText(plan, stream);
  for (const VariableId variable : plan.variables.indices()) text += VariableText(plan, variable);
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  for (const TaskId task : plan.tasks.indices()) text += TaskText(plan, task);
  for (size_t at = 0; at < plan.instructions.size(); ++at) {
    const Instruction& instruction = plan.instructions[at];
    text += fmt::format("{:>5} {:<14} {:<32}", at, Name(instruction.opcode), plan.nodes[instruction.node]->name());
    for (uint32_t i = 0; i < instruction.inputs + instruction.outputs; ++i) {
      const ValueId index = plan.slots[instruction.first_slot + i].value;
      const Value& value = plan.values[index];
      text +=
          fmt::format("{} %{} {}{} {}", i == instruction.inputs ? " ->" : "", index.number(), weir::Name(value.dtype),
                      value.shape_known ? value.shape.ToString() : "[*]", Place(plan.storages[value.storage]));
    }
    if (instruction.opcode == Opcode::kMake) text += fmt::format(" made{}", instruction.detail);
    if (UsesStack(instruction)) text += fmt::format(" stack{}", instruction.detail);
    if (instruction.opcode == Opcode::kGuard) text += Describe(plan.guard_steps[instruction.detail]);
    if (instruction.opcode == Opcode::kSkip || instruction.opcode == Opcode::kRepeat) {
      const Jump& jump = plan.jumps[instruction.detail];
      text += fmt::format(" to {} {} g{}", jump.target, instruction.opcode == Opcode::kSkip ? "unless" : "if",
                          jump.guard.number());
    }
    if (instruction.opcode == Opcode::kSend || instruction.opcode == Opcode::kRecv) {
      const Transfer& transfer = plan.transfers[instruction.detail];
      const char* const guarded = instruction.opcode == Opcode::kSend ? "if" : "sets";
      text +=
          fmt::format(" {}{} {} g{}", transfer.key, fmt::join(transfer.frames, ";"), guarded, transfer.guard.number());
    }
    if (instruction.opcode == Opcode::kRecord || instruction.opcode == Opcode::kWait) {
      text += fmt::format(" event {}", instruction.detail);
    }
    if (instruction.stream.valid()) text += fmt::format(" on stream {}", instruction.stream.number());
    text += KernelText(plan, instruction) + LocksText(plan, instruction);
    text += '\n';
  }
  return text;
}

}  // namespace weir::plan
