// The tape interpreter and what its less common instructions do.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <shared_mutex>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/device/health.h"
#include "core/execute/dataflow_internal.h"
#include "core/execute/denormals.h"
#include "core/execute/instance_internal.h"
#include "core/execute/tape_trace.h"
#include "core/execute/unshared.h"
#include "core/tensor/buffer.h"

namespace weir::execute {

using plan::Opcode;
using plan::Storage;
using plan::Value;

namespace {

/// Times one instruction, where somebody asks.
class Timed {
 public:
  Timed(TapeTrace* trace, ptrdiff_t at) : trace_(trace), at_(static_cast<uint32_t>(at)) {
    if (trace_ != nullptr) start_ = TapeTrace::Clock::now();
  }
  ~Timed() {
    if (trace_ != nullptr) trace_->Add(at_, start_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  TapeTrace* const trace_;
  const uint32_t at_;
  TapeTrace::Clock::time_point start_;
};

}  // namespace

PlanRunner::Instance::Worker::Worker() {
  env.struct_size = sizeof(env);
  env.tile_end = 1;
  env.error = error.get();
}

PlanRunner::Instance::Instance(const plan::ExecutionPlan& plan) : plan_(plan), streams_(plan), captures_(plan) {}
PlanRunner::Instance::~Instance() = default;

void AbandonedRun::Keep(std::unique_ptr<AbandonedRun> run) {
  const auto hangs = [](const auto& instance) { return instance->streams_.abandoned(); };
  if (std::ranges::any_of(run->instances, hangs)) {
    static std::mutex mutex;  // protects `kept`, where a leak checker finds the runs
    static auto* const kept = new std::vector<std::unique_ptr<AbandonedRun>>;
    const std::lock_guard<std::mutex> lock(mutex);
    kept->push_back(std::move(run));
  } else {
    Dataflow& flow = run->flow ? *run->flow : *run->instances[0]->dataflow_;
    Dataflow::Keep(flow, std::move(run));
  }
}

Result<std::unique_ptr<PlanRunner::Instance>> PlanRunner::Instance::Make(const plan::ExecutionPlan& plan) {
  std::unique_ptr<Instance> instance(new Instance(plan));
  WEIR_TRY(instance->LayOut());
  return instance;
}

device::Device* PlanRunner::Instance::DeviceOf(plan::SpaceId space) const {
  return space == plan::kHostSpace ? plan_.host_device : plan_.devices[plan::OwnerOf(space)];
}

Allocator& PlanRunner::Instance::AllocatorOf(plan::SpaceId space) const {
  device::Device* device = DeviceOf(space);
  return device == nullptr ? HostAllocator() : device->allocator();
}

Allocator& PlanRunner::Instance::FreshAllocator() const {
  return plan_.host_device != nullptr && plan_.host_device->capped() ? plan_.host_device->allocator() : HostAllocator();
}

Status PlanRunner::Instance::LayOut() {
  arenas_.resize(plan_.arena_bytes.size());
  for (const plan::SpaceId s : arenas_.indices()) {
    if (plan_.arena_bytes[s] == 0) continue;
    Result<std::shared_ptr<Buffer>> arena = AllocatorOf(s).Allocate(plan_.arena_bytes[s]);
    if (!arena.ok()) return arena.status().Append(WantedMemory(s));
    arenas_[s] = std::move(*arena);
  }
  made_.resize(plan_.made.size());
  for (const plan::PlannedStack& stack : plan_.stacks) stacks_.emplace_back(stack);
  guarded_fetches_ =
      std::ranges::any_of(plan_.fetch_guards, [](plan::GuardId guard) { return guard != plan::kAlways; });
  tensors_.resize(plan_.storages.size());
  guards_.assign(plan_.guard_count, 0);
  guards_[plan::kAlways] = 1;
  for (const plan::VariableId variable : plan_.variables.indices()) {
    const plan::VariableUse& use = plan_.variables[variable];
    refers_.push_back(use.choices.empty() ? variable : use.choices[0]);
    if (use.variable == nullptr) found_.resize(plan_.variables.size());
  }
  if (!plan_.merges.empty()) chosen_.resize(plan_.storages.size());
  registers_.resize(plan_.slots.size());
  for (size_t s = 0; s < plan_.slots.size(); ++s) {
    registers_[s].shape = &plan_.slot_shapes[s];
    registers_[s].dtype = static_cast<uint32_t>(plan_.values[plan_.slots[s].value].dtype);
  }
  for (const plan::StorageId s : plan_.storages.indices()) {
    const Storage& storage = plan_.storages[s];
    offsets_.push_back(storage.offset);
    weir_reg from{};
    if (storage.home == Storage::Home::kConstant) {
      from = kernel::RegisterOf(storage.constant, nullptr);
    } else if (storage.home == Storage::Home::kArena && arenas_[storage.space]) {
      const weir_buf& memory = arenas_[storage.space]->memory();
      from.handle = memory.handle;
      from.data = (memory.host ? reinterpret_cast<uint64_t>(memory.host) : memory.offset) + storage.offset;
      from.data = (from.data + storage.alignment - 1) & ~(storage.alignment - 1);
    }
    if (storage.home == Storage::Home::kFeed || storage.home == Storage::Home::kOwned) {
      transient_.push_back(s);
    }
    Point(s, from);
  }
  worker_ = std::make_unique<Worker>();
  lean_ = !streams_.any() && plan_.tier == plan::Tier::kT0 && plan_.calls.empty() && !guarded_fetches_ &&
          found_.empty() && made_.empty() && stacks_.empty();
  return Status();
}

Status PlanRunner::Instance::Run(PlanRunner::Program& program, std::span<const Tensor> feeds,
                                 std::vector<Tensor>* fetches, const StepArgs& step) {
  const FlushDenormals flush;
  Status status = Open(feeds, fetches, step);
  if (status.ok() && plan_.tier == plan::Tier::kT2) {
    if (!dataflow_) dataflow_ = std::make_unique<Dataflow>(*this);
    const FlowArgs args{&program, fetches, step.trace, &step_resources_};
    status = dataflow_->Run({&args, 1}, step);
  } else if (status.ok()) {
    worker_->program = &program;
    worker_->fetches = fetches;
    worker_->step = step;
    worker_->step.resources = &step_resources_;
    worker_->step.streams = streams_.any() ? &streams_ : nullptr;
    status = Tape(*worker_, 0, static_cast<uint32_t>(plan_.instructions.size()));
  }
  return Close(std::move(status), feeds, fetches, dataflow_ && dataflow_->abandoned());
}

Status PlanRunner::Instance::Open(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step) {
  if (!lean_ || !plan_.fresh_storages.empty()) {
    for (Tensor& last : *fetches) last = Tensor();  // memory that the caller got from the last run may serve this one
  }
  if (fetches->size() != plan_.fetch_count) fetches->resize(plan_.fetch_count);
  worker_->error.Clear();
  if (streams_.any() || device::Health::AnyLost()) {
    trace_ = step.trace;
    WEIR_TRY(streams_.Begin(worker_->error.get(), step.cancellation, step.grace, trace_ != nullptr));
    captures_.Begin();
  }
  return Begin(feeds);
}

Status PlanRunner::Instance::Close(Status status, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                                   bool unfinished) {
  if (!lean_ || unfinished) {
    if (streams_.any()) status = EndStreams(Arrived(std::move(status)));
    if (streams_.abandoned() || unfinished) [[unlikely]] {
      abandoned_ = true;
      in_flight_.assign(feeds.begin(), feeds.end());
      std::ranges::move(*fetches, std::back_inserter(in_flight_));
      fetches->clear();
      return status;
    }
    if (guarded_fetches_ && status.ok()) status = CheckFetches();
  }
  if (!status.ok() && OutOfMemory(status)) status = status.Append(HeldMemory());
  for (const plan::StorageId storage : transient_) {
    if (tensors_[storage].valid()) Drop(storage);
  }
  if (!lean_) {
    for (std::shared_ptr<Buffer>& made : made_) made.reset();
    for (RunStack& stack : stacks_) stack.Shrink();
    for (plan::VariableUse& found : found_) found.variable.reset();
    if (step_resources_.size() > 0) step_resources_.Clear();
  }
  if (!status.ok()) fetches->clear();
  return status;
}

Status PlanRunner::Instance::CheckFetches() const {
  for (size_t fetch = 0; fetch < plan_.fetch_count; ++fetch) {
    if (guards_[plan_.fetch_guards[fetch]] != 0) continue;
    const auto instruction = std::find_if(plan_.instructions.begin(), plan_.instructions.end(), [&](const auto& at) {
      return at.opcode == Opcode::kFetch && at.detail == fetch;
    });
    return At(*instruction,
              InvalidArgument("Retval[{}] does not have value: it lies on a branch that was not taken", fetch));
  }
  return Status();
}

Status PlanRunner::Instance::Begin(std::span<const Tensor> feeds) {
  feeds_ = feeds;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const plan::StorageId storage = plan_.feed_storages[i];
    if (!storage.valid()) continue;  // nothing in the step needs it
    const bool aligned =
        !HasFixedSize(feeds[i].dtype()) || reinterpret_cast<uintptr_t>(feeds[i].raw()) % kBufferAlignment == 0;
    if (aligned) {
      Point(storage, kernel::RegisterOf(feeds[i], nullptr));
      continue;
    }
    WEIR_ASSIGN(Tensor copy, feeds[i].Clone());
    Hold(storage, std::move(copy));
  }
  for (const plan::StorageId storage : plan_.fresh_storages) {
    const Tensor& made = tensors_[storage];
    if (made.valid() && Unshared(made)) continue;
    const Storage& fresh = plan_.storages[storage];
    WEIR_ASSIGN(Tensor tensor, Tensor::Make(fresh.dtype, fresh.shape, FreshAllocator()));
    Hold(storage, std::move(tensor));
  }
  return Status();
}

Status PlanRunner::Instance::Tape(Worker& worker, uint32_t begin, uint32_t end) {
  const Instruction* const tape = plan_.instructions.data();
  const Instruction* const stop = tape + end;
  const runtime::Cancellation* const cancellation = worker.step.cancellation;
  TapeTrace* const trace = worker.step.trace;
  const bool checked = worker.step.check_numerics;
  const ptrdiff_t stretch = worker.step.watched || checked || trace != nullptr ? 1 : 64;
  for (const Instruction* at = tape + begin; at < stop;) {
    if (cancellation != nullptr && cancellation->cancelled()) [[unlikely]]
      return Late(worker, At(*at, cancellation->status()), *at, Progress::kNext);
    const Timed timed(trace, at - tape);
    const Instruction& first = *at;
    const std::string inputs = checked ? InputNumbers(first) : std::string();
    const bool apart = worker.step.apart && streams_.Untimed(first.stream);
    const Status ran = apart ? Apart(worker, &at) : Stretch(worker, &at, stop - at > stretch ? at + stretch : stop);
    if (!ran.ok()) return Late(worker, ran, first, Progress::kRunning);
    if (checked) WEIR_TRY(CheckNumbers(first, inputs));
  }
  return cancellation != nullptr && cancellation->cancelled() ? cancellation->status() : Status();
}

Status PlanRunner::Instance::Late(const Worker& worker, const Status& status, const Instruction& at,
                                  Progress progress) const {
  constexpr size_t kShown = 10;
  // A flow says it of its tasks.
  if (status.code() != Code::kDeadlineExceeded || worker.flow != nullptr) return status;
  std::vector<std::string_view> names;  // each node once, though it may have several instructions
  for (const Instruction* next = &at; next != plan_.instructions.data() + plan_.instructions.size(); ++next) {
    if (next->node < 0) continue;
    const std::string_view name = plan_.nodes[next->node]->name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (names.size() > kShown + 1) break;
  }
  std::string text;
  const size_t first = progress == Progress::kRunning && !names.empty() ? 1 : 0;
  if (first == 1) text = "\nrunning: " + WithDevice(plan_, names[0]);
  for (size_t i = first; i < names.size() && i < first + kShown; ++i) {
    text += (i == first ? "\nwaiting: " : ", ") + WithDevice(plan_, names[i]);
  }
  if (names.size() > first + kShown) text += " and more";
  return status.Append(text);
}

Status PlanRunner::Instance::Stretch(Worker& worker, const Instruction** position, const Instruction* until) {
  const weir_reg* const registers = registers_.data();
  const weir_env* const env = &worker.env;
  const Instruction* at = *position;
  const bool single = until - at == 1;
  while (at < until) {
    if (at->opcode == Opcode::kKernel) [[likely]] {
      const int32_t code = at->fn(at->state, registers + at->first_slot, env);
      if (code != 0) [[unlikely]]
        return KernelError(worker, *at, code);
      ++at;
      continue;
    }
    const Instruction& instruction = *at++;
    if (instruction.opcode == Opcode::kGuard) {
      SetGuard(instruction);
    } else if (instruction.opcode == Opcode::kMoveBytes) {
      MoveBytes(instruction);
    } else if (instruction.opcode == Opcode::kPush) {
      if (const Status pushed = Push(instruction); !pushed.ok()) return At(instruction, pushed);
    } else if (instruction.opcode == Opcode::kPop) {
      if (const Status popped = Pop(instruction); !popped.ok()) return At(instruction, popped);
    } else if (instruction.opcode == Opcode::kSkip) {
      const plan::Jump& jump = plan_.jumps[instruction.detail];
      if (guards_[jump.guard] == 0) at = plan_.instructions.data() + jump.target;
    } else if (instruction.opcode == Opcode::kRepeat) {
      const plan::Jump& jump = plan_.jumps[instruction.detail];
      if (guards_[jump.guard] == 0) continue;
      at = plan_.instructions.data() + jump.target;
      // Whether the step goes on is asked before each iteration.
      if (single || (worker.step.cancellation != nullptr && worker.step.cancellation->cancelled())) break;
    } else if (instruction.opcode == Opcode::kRelease) {
      if (const plan::StorageId released(instruction.detail); tensors_[released].valid()) Drop(released);
    } else if (instruction.opcode == Opcode::kFetch) {
      if (guards_[plan_.fetch_guards[instruction.detail]] == 0) continue;
      if (streams_.any()) streams_.Works(static_cast<uint32_t>(&instruction - plan_.instructions.data()));
      if (const Status fetched = Fetch(instruction, &(*worker.fetches)[instruction.detail]); !fetched.ok()) {
        return At(instruction, fetched);
      }
    } else if (Captures::Stretch* const recorded = RecordedAt(worker, instruction); recorded != nullptr) {
      WEIR_TRY(RunStretch(*recorded));
      at = plan_.instructions.data() + recorded->end;
    } else {
      WEIR_TRY(Special(worker, instruction));
      // A call may have taken long, or cut itself short because it was told that the step is to end.
      if (instruction.opcode == Opcode::kCall) break;
    }
  }
  *position = at;
  return Status();
}

Status PlanRunner::Instance::Special(Worker& worker, const Instruction& instruction) {
  if (streams_.any()) streams_.Works(static_cast<uint32_t>(&instruction - plan_.instructions.data()));
  switch (instruction.opcode) {
    case Opcode::kStreamKernel:
      return StreamKernel(instruction);
    case Opcode::kTiledKernel:
      return Tiles(worker, instruction);
    case Opcode::kLockedKernel:
      return LockedKernel(worker, instruction);
    case Opcode::kCall:
      return At(instruction, Call(worker, instruction));
    case Opcode::kReadVariable:
      return At(instruction, ReadVariable(instruction));
    case Opcode::kMake:
      return At(instruction, Make(instruction));
    case Opcode::kAssign:
      return At(instruction, Assign(instruction));
    case Opcode::kIsInitialized:
    case Opcode::kVariableShape:
      return At(instruction, QueryVariable(instruction));
    case Opcode::kCopy:
      return At(instruction, Copy(instruction));
    case Opcode::kMove:
      return At(instruction, Move(instruction));
    case Opcode::kSwap:
      Swap(instruction);
      return Status();
    case Opcode::kMerge:
      Merge(instruction);
      return Status();
    case Opcode::kSelect:
      return At(instruction, Select(instruction));
    case Opcode::kHandle:
      return At(instruction, MakeHandle(instruction));
    case Opcode::kResolve:
      return At(instruction, Resolve(instruction));
    case Opcode::kTemporary:
      return At(instruction, MakeTemporary(instruction));
    case Opcode::kSend:
      return At(instruction, Send(worker, instruction));
    case Opcode::kCount:
      Count(instruction);
      return Status();
    case Opcode::kStack:
      stacks_[instruction.detail].Clear();
      return Status();
    case Opcode::kRecord:
      return At(instruction, streams_.Record(plan::EventId(instruction.detail), instruction.stream));
    case Opcode::kWait:
      return At(instruction, streams_.Wait(plan::EventId(instruction.detail), instruction.stream));
    case Opcode::kKernel:
    case Opcode::kMoveBytes:
    case Opcode::kPush:
    case Opcode::kPop:
    case Opcode::kRelease:
    case Opcode::kFetch:
    case Opcode::kGuard:
    case Opcode::kSkip:
    case Opcode::kRepeat:
    case Opcode::kRecv:  // suspends its task
      return Internal("an instruction reached the special ones that is none");
  }
  return Status();
}

Status PlanRunner::Instance::KernelError(const Worker& worker, const Instruction& instruction, int32_t code) const {
  const graph::Node& node = *plan_.nodes[instruction.node];
  const kernel::KernelEntry& entry = plan_.kernels[instruction.detail]->entry();
  const Status failed = worker.error.ToStatus(code, fmt::format("kernel {} of {}", node.op().name, entry.file));
  return graph::AtNode(plan_.DeviceOf(instruction).Judge(failed, worker.error.flags()), node);
}

const Value& PlanRunner::Instance::ValueOf(const Instruction& instruction, uint32_t operand) const {
  return plan_.values[plan_.slots[instruction.first_slot + operand].value];
}

const Storage& PlanRunner::Instance::StorageOf(const Value& value) const { return plan_.storages[value.storage]; }

const plan::VariableUse& PlanRunner::Instance::VariableAt(plan::VariableId variable) const {
  const plan::VariableId referred = refers_[variable];
  return referred != kFound ? plan_.variables[referred] : found_[variable];
}

void PlanRunner::Instance::Refer(const Storage& to, const Storage& from) {
  plan::VariableId& place = refers_[to.variable];
  const plan::VariableId variable = refers_[from.variable];
  if (variable == kFound) found_[to.variable] = found_[from.variable];
  if (place != variable) place = variable;  // what is no place is itself: several threads may be here with it
}

const Value& PlanRunner::Instance::Chosen(const Value& value) const {
  const Value* at = &value;
  while (StorageOf(*at).home == Storage::Home::kBound) {
    at = &plan_.values[chosen_[at->storage]];
  }
  return *at;
}

Result<Tensor> PlanRunner::Instance::TensorOf(const Value& value) const {
  const Storage& storage = StorageOf(value);
  if (storage.home == Storage::Home::kBound) {
    // One Merge at a time: what lies between two of them may be a view of another shape.
    const plan::ValueId chosen = chosen_[value.storage];
    WEIR_ASSIGN(Tensor tensor, TensorOf(plan_.values[chosen]));
    return value.shape_known && !(tensor.shape() == value.shape) ? tensor.Reshaped(value.shape) : tensor;
  }
  if (storage.home == Storage::Home::kArena) {
    return Tensor::Over(value.dtype, value.shape, arenas_[storage.space], offsets_[value.storage]);
  }
  if (storage.home == Storage::Home::kMade) {
    return Tensor::Over(value.dtype, value.shape, made_[storage.made]);
  }
  if (storage.home == Storage::Home::kVariable) {
    const plan::VariableUse& use = VariableAt(storage);
    WEIR_TRY(CheckInitialized(use));
    return use.variable->value;
  }
  const Tensor& own = tensors_[value.storage];
  const bool borrowed = storage.home == Storage::Home::kFeed && !own.valid();
  const Tensor& held = storage.home == Storage::Home::kConstant ? storage.constant
                       : borrowed                               ? feeds_[PositionOf(storage.feed)]
                                                                : own;
  if (!value.shape_known || held.shape() == value.shape) return held;
  return held.Reshaped(value.shape);
}

Status PlanRunner::Instance::StreamKernel(const Instruction& instruction) {
  const int32_t code =
      instruction.fn(instruction.state, registers_.data() + instruction.first_slot, streams_.env(instruction.stream));
  if (code == 0) [[likely]] {
    streams_.Launched(instruction.stream, Status(), 0);
    return Status();
  }
  const uint32_t flags = worker_->error.flags();
  if ((flags & WEIR_ERROR_STREAM_POISONED) == 0) {
    const Status status = KernelError(*worker_, instruction, code);
    streams_.Launched(instruction.stream, status, flags);
    return status;
  }
  const std::string_view op = plan_.nodes[instruction.node]->op().name;
  const Status failed = worker_->error.ToStatus(code, fmt::format("a stream that kernel {} uses", op));
  streams_.Launched(instruction.stream, failed, flags);
  return At(instruction, plan_.DeviceOf(instruction).Judge(failed, flags));
}

void PlanRunner::Instance::Point(plan::StorageId storage, const weir_reg& from) {
  for (const uint32_t slot : plan_.storage_slots.Of(storage)) {
    registers_[slot].data = from.data;
    registers_[slot].handle = from.handle;
  }
}

void PlanRunner::Instance::Hold(plan::StorageId storage, Tensor&& tensor) {
  if (streams_.any()) {
    streams_.Keep(plan_.storages[storage].space, tensors_[storage]);
  }
  Point(storage, kernel::RegisterOf(tensor, nullptr));
  tensors_[storage] = std::move(tensor);
}

void PlanRunner::Instance::Drop(plan::StorageId storage) {
  Tensor& held = tensors_[storage];
  if (!held.valid()) return;
  const plan::VariableId variable = plan_.storages[storage].variable;
  const plan::SpaceId space = plan_.storages[storage].space;
  if (!variable.valid()) {
    streams_.Keep(space, held);
    held = Tensor();
    return;
  }
  runtime::Variable& source = *VariableAt(variable).variable;
  const std::shared_lock<std::shared_mutex> lock(source.mutex);
  // While it is the variable's current value, whoever writes waits for our reads; else it is ours to keep.
  const bool current = source.value.buffer() == held.buffer();
  if (!current || !streams_.AfterReads(space, source).ok()) streams_.Keep(space, held);
  held = Tensor();
}

Status PlanRunner::Instance::HoldOutput(const Value& value, Tensor tensor) {
  if (tensor.dtype() != value.dtype) {
    return Internal("a kernel made elements of type {} where its node declares {}", Name(tensor.dtype()),
                    Name(value.dtype));
  }
  if (value.shape_known && !(tensor.shape() == value.shape)) {
    return Internal("a kernel made shape {} where its shape function said {}", tensor.shape().ToString(),
                    value.shape.ToString());
  }
  if (MayBeWritten(tensor)) {
    WEIR_ASSIGN(tensor, streams_.Duplicate(StorageOf(value).space, tensor));
  }
  Hold(value.storage, std::move(tensor));
  return Status();
}

bool PlanRunner::Instance::MayBeWritten(const Tensor& tensor) const {
  const auto same = [&](const std::shared_ptr<Buffer>& buffer) { return buffer && tensor.buffer() == buffer; };
  if (std::any_of(arenas_.begin(), arenas_.end(), same)) return true;
  return plan_.has_loops && std::any_of(plan_.fresh_storages.begin(), plan_.fresh_storages.end(),
                                        [&](plan::StorageId storage) { return same(tensors_[storage].buffer()); });
}

Status PlanRunner::Instance::Copy(const Instruction& instruction) {
  const VariableLocks locks(*this, instruction);
  const Value& to = ValueOf(instruction, 1);
  const Storage& target = StorageOf(to);
  WEIR_ASSIGN(const Tensor from, TensorOf(ValueOf(instruction, 0)));
  if (to.shape_known && to.shape.rank() == 0 && from.shape().rank() != 0) {  // of the predicate of a Switch
    return InvalidArgument("The second input must be a scalar, but it has shape {}", from.shape().ToString());
  }
  const Storage& source = StorageOf(Chosen(ValueOf(instruction, 0)));
  WEIR_TRY(BeforeAccess(instruction));
  // What the arena or a variable holds is written again in this run.
  const bool stable = source.home == Storage::Home::kFeed || source.home == Storage::Home::kOwned;
  if (target.home == Storage::Home::kArena || target.home == Storage::Home::kMade) {
    WEIR_ASSIGN(const Tensor destination, TensorOf(to));
    WEIR_TRY(streams_.Copy(instruction.stream, target.space, destination, source.space, from, stable));
  } else if (target.space == plan::kHostSpace) {
    WEIR_ASSIGN(Tensor moved, instruction.stream.valid() ? streams_.Download(instruction.stream, from)
                                                         : streams_.ToHost(source.space, from));
    WEIR_TRY(HoldOutput(to, std::move(moved)));
  } else {
    WEIR_ASSIGN(Tensor moved, streams_.ToHost(source.space, from));
    const bool kept = stable || source.space != plan::kHostSpace;
    WEIR_ASSIGN(moved, streams_.ToDevice(instruction.stream, target.space, moved, kept));
    WEIR_TRY(HoldOutput(to, std::move(moved)));
  }
  return AfterAccess(instruction);
}

Status PlanRunner::Instance::BeforeAccess(const Instruction& instruction) {
  if (!instruction.locks.valid()) return Status();
  for (uint32_t i = 0; i < instruction.inputs; ++i) {
    const Storage& storage = StorageOf(Chosen(ValueOf(instruction, i)));
    if (storage.home != Storage::Home::kVariable) continue;
    const plan::VariableUse& use = VariableAt(storage);
    const bool writes = Writes(instruction, use);
    if (writes) WEIR_TRY(Unshare(use, storage.space));
    WEIR_TRY(streams_.BeforeAccess(instruction.stream, storage.space, *use.variable, writes));
  }
  return Status();
}

Status PlanRunner::Instance::AfterAccess(const Instruction& instruction) {
  if (!instruction.locks.valid() || !streams_.any()) return Status();
  for (uint32_t i = 0; i < instruction.inputs; ++i) {
    const Storage& storage = StorageOf(Chosen(ValueOf(instruction, i)));
    if (storage.home != Storage::Home::kVariable) continue;
    const plan::VariableUse& use = VariableAt(storage);
    WEIR_TRY(streams_.AfterAccess(instruction.stream, storage.space, *use.variable, Writes(instruction, use)));
  }
  return Status();
}

bool PlanRunner::Instance::Writes(const Instruction& instruction, const plan::VariableUse& use) const {
  for (const plan::Lock& lock : plan_.LocksOf(instruction)) {
    if (lock.exclusive && VariableAt(lock.variable).variable == use.variable) return true;
  }
  return false;
}

}  // namespace weir::execute
