#include "core/execute/tape_trace.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/tensor/buffer.h"

namespace weir::execute {
namespace {

bool IsWork(plan::Opcode opcode) {
  switch (opcode) {
    case plan::Opcode::kKernel:
    case plan::Opcode::kStreamKernel:
    case plan::Opcode::kTiledKernel:
    case plan::Opcode::kLockedKernel:
    case plan::Opcode::kCall:
    case plan::Opcode::kReadVariable:
    case plan::Opcode::kAssign:
    case plan::Opcode::kIsInitialized:
    case plan::Opcode::kVariableShape:
    case plan::Opcode::kCopy:
    case plan::Opcode::kFetch:
    case plan::Opcode::kSend:
    case plan::Opcode::kRecv:
    case plan::Opcode::kStack:
    case plan::Opcode::kPush:
    case plan::Opcode::kPop:
      return true;
    case plan::Opcode::kMake:
    case plan::Opcode::kRelease:
    case plan::Opcode::kMove:
    case plan::Opcode::kMoveBytes:
    case plan::Opcode::kSwap:
    case plan::Opcode::kMerge:
    case plan::Opcode::kSelect:
    case plan::Opcode::kHandle:
    case plan::Opcode::kResolve:
    case plan::Opcode::kTemporary:
    case plan::Opcode::kGuard:
    case plan::Opcode::kSkip:
    case plan::Opcode::kRepeat:
    case plan::Opcode::kCount:
    case plan::Opcode::kRecord:
    case plan::Opcode::kWait:
      return false;
  }
  return false;
}

/// The device that an instruction's work was given to where the instruction itself says so, else null.
const device::Device* DeviceOf(const plan::ExecutionPlan& plan, const plan::Instruction& instruction) {
  switch (instruction.opcode) {
    case plan::Opcode::kCall:
      return plan.calls[instruction.detail].device;
    case plan::Opcode::kStreamKernel:
    case plan::Opcode::kLockedKernel:
      return instruction.memory == plan::kHostSpace ? nullptr : &plan.DeviceOf(instruction);
    default:
      return nullptr;
  }
}

bool RunsPreparedKernel(plan::Opcode opcode) {
  return opcode == plan::Opcode::kKernel || opcode == plan::Opcode::kStreamKernel ||
         opcode == plan::Opcode::kTiledKernel || opcode == plan::Opcode::kLockedKernel;
}

/// The memory of a storage, by the name of its device.
std::string MemoryOf(const plan::ExecutionPlan& plan, const plan::Value& value) {
  const plan::SpaceId space = plan.storages[value.storage].space;
  if (space != plan::kHostSpace) return plan.devices[plan::OwnerOf(space)]->name();
  return plan.host_device != nullptr ? plan.host_device->name() : std::string();
}

/// The nodes whose work made the values that an instruction reads. Values that instructions without work pass on are
/// those of their first input.
class Producers {
 public:
  explicit Producers(const plan::ExecutionPlan& plan) : plan_(plan) {
    for (size_t at = 0; at < plan.instructions.size(); ++at) {
      const plan::Instruction& instruction = plan.instructions[at];
      for (uint32_t o = 0; o < instruction.outputs; ++o) {
        made_by_.try_emplace(ValueAt(instruction.first_slot + instruction.inputs + o), at);
      }
    }
  }

  std::vector<std::string> Of(const plan::Instruction& instruction) const {
    std::vector<std::string> nodes;
    for (uint32_t i = 0; i < instruction.inputs; ++i) {
      const graph::Node* const node = Find(ValueAt(instruction.first_slot + i));
      if (node == nullptr || std::ranges::find(nodes, node->name()) != nodes.end()) continue;
      nodes.emplace_back(node->name());
    }
    return nodes;
  }

 private:
  plan::ValueId ValueAt(uint32_t slot) const { return plan_.slots[slot].value; }

  const graph::Node* Find(plan::ValueId value) const {
    constexpr int kMostSteps = 16;
    for (int i = 0; i < kMostSteps; ++i) {
      const auto found = made_by_.find(value);
      if (found == made_by_.end()) return nullptr;
      const plan::Instruction& instruction = plan_.instructions[found->second];
      if (IsWork(instruction.opcode)) return plan_.nodes[instruction.node];
      if (instruction.inputs == 0) return nullptr;
      value = ValueAt(instruction.first_slot);
    }
    return nullptr;
  }

  const plan::ExecutionPlan& plan_;
  std::unordered_map<plan::ValueId, size_t> made_by_;  // its first instruction
};

int64_t Since(TapeTrace::Clock::time_point begin, TapeTrace::Clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at - begin).count();
}

}  // namespace

TapeTrace::TapeTrace()
    : begin_us_(
          std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count()),
      threads_(std::make_shared<Threads>()) {
  threads_->NumberOfThis();
}

TapeTrace::TapeTrace(const TapeTrace& first)
    : begin_(first.begin_), begin_us_(first.begin_us_), threads_(first.threads_) {}

int TapeTrace::Threads::NumberOfThis() {
  const std::lock_guard<std::mutex> lock(mutex);
  return numbers.try_emplace(std::this_thread::get_id(), static_cast<int>(numbers.size())).first->second;
}

void TapeTrace::Add(uint32_t at, Clock::time_point start) {
  const Clock::time_point end = Clock::now();
  const int thread = threads_->NumberOfThis();
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.push_back({at, thread, Since(begin_, start), Since(begin_, end)});
}

void TapeTrace::AddOnDevice(uint32_t at, int64_t begin_ns, int64_t end_ns) {
  const int64_t zero = begin_.time_since_epoch() / std::chrono::nanoseconds(1);
  const std::lock_guard<std::mutex> lock(mutex_);
  on_device_[at].emplace_back(begin_ns - zero, end_ns - zero);
}

std::vector<TapeTrace::Entry> TapeTrace::WithDeviceTimes() const {
  std::vector<Entry> entries = entries_;
  if (on_device_.empty()) return entries;
  std::map<uint32_t, std::vector<size_t>> runs;  // by instruction: its entries, one after the other
  for (size_t i = 0; i < entries.size(); ++i) runs[entries[i].at].push_back(i);
  for (const auto& [at, pieces] : on_device_) {
    const auto found = runs.find(at);
    if (found == runs.end()) continue;
    // An instruction that ran n times has n equal shares of the pieces; the last has what does not divide.
    const size_t share = std::max<size_t>(1, pieces.size() / found->second.size());
    for (size_t r = 0; r < found->second.size() && r * share < pieces.size(); ++r) {
      const size_t end = r + 1 == found->second.size() ? pieces.size() : (r + 1) * share;
      Entry& entry = entries[found->second[r]];
      entry.on_device = true;
      entry.start_ns = pieces[r * share].first;
      entry.end_ns = pieces[r * share].second;
      for (size_t p = r * share; p < end; ++p) entry.end_ns = std::max(entry.end_ns, pieces[p].second);
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.end_ns < b.end_ns; });
  return entries;
}

trace::StepTrace TapeTrace::Finish(const plan::ExecutionPlan& declared, int64_t step_id) const {
  const plan::ExecutionPlan& plan = ran_ != nullptr ? *ran_ : declared;
  std::unordered_map<std::string_view, std::string_view> devices;
  for (const plan::PlacedNode& node : plan.placed_nodes) devices.emplace(node.name, node.device);
  const Producers producers(plan);
  trace::StepTrace trace;
  trace.step_id = step_id;
  trace.start_us = begin_us_;
  trace.total_ns = Since(begin_, Clock::now());
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Entry& entry : WithDeviceTimes()) {
    const plan::Instruction& instruction = plan.instructions[entry.at];
    if (!IsWork(instruction.opcode)) continue;
    const graph::Node& node = *plan.nodes[instruction.node];
    trace::Span span;
    span.node = node.name();
    span.op = instruction.opcode == plan::Opcode::kCopy    ? "copy"
              : instruction.opcode == plan::Opcode::kFetch ? "fetch"
                                                           : node.op().name;
    if (const device::Device* device = DeviceOf(plan, instruction)) {
      span.device = device->name();
    } else if (const auto found = devices.find(node.name()); found != devices.end()) {
      span.device = found->second;
    }
    span.start_ns = entry.start_ns;
    span.end_ns = entry.end_ns;
    span.thread = entry.thread;
    span.on_device = entry.on_device;
    span.inputs = producers.Of(instruction);
    if (RunsPreparedKernel(instruction.opcode)) span.kernel = plan.kernels[instruction.detail]->entry().file;
    if (Result<std::string> layout = node.attrs().String("data_format"); layout.ok()) span.layout = *std::move(layout);
    if (const auto fused = plan.stands_for.find(&node); fused != plan.stands_for.end()) {
      for (const graph::Node* const original : fused->second) span.fused_from.push_back(original->name());
    }
    for (uint32_t o = 0; o < instruction.outputs; ++o) {
      const uint32_t slot = instruction.first_slot + instruction.inputs + o;
      const plan::Value& value = plan.values[plan.slots[slot].value];
      if (!value.shape_known || value.scratch) continue;
      const auto dims = value.shape.dims();
      const Result<uint64_t> payload = PayloadBytes(value.dtype, value.shape);
      const uint64_t bytes = payload.ok() ? *payload : 0;
      span.outputs.push_back({static_cast<int>(o),
                              static_cast<int>(value.dtype),
                              {dims.begin(), dims.end()},
                              bytes,
                              MemoryOf(plan, value)});
      span.bytes += bytes;
    }
    trace.spans.push_back(std::move(span));
  }
  return trace;
}

}  // namespace weir::execute
