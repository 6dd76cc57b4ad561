#include "core/plan/streams_internal.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/plan/lifetimes_internal.h"
#include "core/plan/stream_events_internal.h"

namespace weir::plan {

bool HasStreams(const ExecutionPlan& plan, SpaceId space) {
  return space != kHostSpace && plan.devices[OwnerOf(space)]->has_streams();
}

bool IsStaged(const ExecutionPlan& plan, const Instruction& copy) {
  const SpaceId from = plan.storages[StorageOf(plan, copy.first_slot)].space;
  return HasStreams(plan, from) && copy.memory != kHostSpace && !HasStreams(plan, copy.memory);
}

namespace {

using Use = PlannedStream::Use;

/// A queue of a device, before it has a number.
struct Queue {
  DeviceId device;
  Use use = Use::kCompute;
  auto operator<=>(const Queue&) const = default;
};

/// Chooses the queue of each instruction, and numbers those that are used.
class StreamChooser {
 public:
  StreamChooser(const TapeShape& shape, ExecutionPlan& plan) : shape_(shape), plan_(plan) {}

  void Run() {
    std::vector<Queue> queues(plan_.instructions.size());
    for (size_t i = 0; i < queues.size(); ++i) queues[i] = QueueOf(i);
    FindWork(queues);
    std::map<Queue, StreamId> numbers;
    for (const Queue& queue : queues) Note(queue, numbers);
    for (const Storage& storage : plan_.storages) {
      if (HasStreams(plan_, storage.space)) Note({OwnerOf(storage.space), Use::kCompute}, numbers);
    }
    for (auto& [queue, number] : numbers) number = plan_.streams.Add({queue.device, queue.use});
    for (size_t i = 0; i < queues.size(); ++i) {
      if (queues[i].device.valid()) plan_.instructions[i].stream = numbers.at(Chosen(queues[i]));
    }
  }

 private:
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  /// What of a device could run beside its copies. Positions are those of the tape.
  struct Work {
    uint32_t first_launch = kNever;
    uint32_t last_need = 0;  // an upload is first read here; the latest of these
    bool uploads_in_loop = false;
    bool beside_downloads = false;  // a launch follows a download before the host needs that
    uint32_t copy_engines = 0;
  };

  SpaceId SpaceAt(uint32_t slot) const { return plan_.storages[StorageOf(plan_, slot)].space; }

  Queue QueueOf(size_t i) const {
    const Instruction& instruction = plan_.instructions[i];
    switch (instruction.opcode) {
      case Opcode::kStreamKernel:
      case Opcode::kLockedKernel:
        return HasStreams(plan_, instruction.memory) ? Queue{instruction.device} : Queue();
      case Opcode::kCall:
        if (instruction.device.valid() && plan_.devices[instruction.device]->has_streams()) return {instruction.device};
        return QueueOfOperands(i);
      case Opcode::kCopy: {
        const SpaceId from = SpaceAt(instruction.first_slot), to = instruction.memory;
        if (HasStreams(plan_, to)) return {OwnerOf(to), from == kHostSpace ? Use::kUpload : Use::kCompute};
        if (HasStreams(plan_, from)) return {OwnerOf(from), to == kHostSpace ? Use::kDownload : Use::kCompute};
        return {};
      }
      case Opcode::kFetch:
        return HasStreams(plan_, instruction.memory) ? Queue{OwnerOf(instruction.memory), Use::kDownload} : Queue();
      case Opcode::kReadVariable:
      case Opcode::kAssign:
      case Opcode::kMove:
        return QueueOfOperands(i);
      default:
        return {};
    }
  }

  /// That of the first operand in the memory of a device with streams.
  Queue QueueOfOperands(size_t i) const {
    const Instruction& instruction = plan_.instructions[i];
    const bool refers = instruction.opcode == Opcode::kMove;  // a reference that moves has no content
    for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan_, i); ++s) {
      const Storage& storage = plan_.storages[StorageOf(plan_, s)];
      if (refers && storage.home == Storage::Home::kVariable) continue;
      if (HasStreams(plan_, storage.space)) return {OwnerOf(storage.space)};
    }
    return {};
  }

  /// From the end of the tape: what is seen first comes next.
  void FindWork(const std::vector<Queue>& queues) {
    IndexedVector<StorageId, uint32_t> next_read(plan_.storages.size(), kNever);
    for (size_t i = queues.size(); i-- > 0;) {
      const Instruction& instruction = plan_.instructions[i];
      const uint32_t outputs = instruction.first_slot + instruction.inputs;
      for (uint32_t s = instruction.first_slot; s < outputs; ++s) {
        next_read[StorageOf(plan_, s)] = static_cast<uint32_t>(i);
      }
      const Queue& queue = queues[i];
      if (!queue.device.valid()) continue;
      const auto [found, added] = work_.try_emplace(queue.device);
      Work& work = found->second;
      if (added) work.copy_engines = CopyEngines(*plan_.devices[queue.device]);
      if (queue.use == Use::kUpload) {
        const uint32_t need = next_read[StorageOf(plan_, outputs)];
        if (need != kNever) work.last_need = std::max(work.last_need, need);
        work.uploads_in_loop = work.uploads_in_loop || InLoop(i);
      } else if (queue.use == Use::kDownload) {
        const uint32_t need = instruction.outputs == 0 ? kNever : next_read[StorageOf(plan_, outputs)];
        work.beside_downloads = work.beside_downloads || work.first_launch < need;
      } else if (instruction.fn != nullptr || instruction.opcode == Opcode::kCall) {
        work.first_launch = static_cast<uint32_t>(i);
      }
    }
  }

  static uint32_t CopyEngines(device::Device& device) {
    const weir_profile* const profile = device.profile();
    return profile == nullptr ? 0 : profile->copy_engines;
  }
  bool InLoop(size_t i) const {
    return std::ranges::any_of(shape_.loops, [i](const Loop& loop) { return loop.first <= i && i <= loop.last; });
  }

  /// Copies without a stream of their own run on the one that computes.
  Queue Chosen(const Queue& queue) const {
    const auto found = work_.find(queue.device);
    if (queue.use == Use::kCompute || found == work_.end() || found->second.copy_engines == 0) return {queue.device};
    const Work& work = found->second;
    const bool own =
        queue.use == Use::kUpload ? work.uploads_in_loop || work.first_launch < work.last_need : work.beside_downloads;
    return own ? queue : Queue{queue.device};
  }

  void Note(const Queue& queue, std::map<Queue, StreamId>& numbers) const {
    if (!queue.device.valid()) return;
    numbers.try_emplace(Chosen(queue));
    numbers.try_emplace(Queue{queue.device});
  }

  const TapeShape& shape_;
  ExecutionPlan& plan_;
  std::map<DeviceId, Work> work_;
};

/// Writes the tape with the events, and maps positions of the old one to it.
class EventWriter {
 public:
  EventWriter(StreamEvents events, TapeShape& shape, std::vector<TapeNote>& notes, ExecutionPlan& plan)
      : events_(std::move(events)), shape_(shape), notes_(notes), plan_(plan) {}

  void Run(IndexedVector<graph::NodeId, Range>& instructions_of) {
    const size_t count = plan_.instructions.size();
    for (size_t i = 0; i < count; ++i) {
      before_.push_back(static_cast<uint32_t>(tape_.size()));
      for (; next_wait_ < events_.waits.size() && events_.waits[next_wait_].before == i; ++next_wait_) AddWait(i);
      at_.push_back(static_cast<uint32_t>(tape_.size()));
      CopySlots(i);
      Append(plan_.instructions[i], i, notes_[i]);
      for (; next_ < events_.records.size() && events_.records[next_].after == i; ++next_) AddRecord(i);
    }
    before_.push_back(static_cast<uint32_t>(tape_.size()));
    for (Jump& jump : plan_.jumps) jump.target = before_[jump.target];
    for (Loop& loop : shape_.loops) loop = {before_[loop.first], at_[loop.last], loop.frame};
    for (MayShare& share : shape_.shares) {
      share = {at_[share.instruction], slot_of_[share.input_slot], slot_of_[share.output_slot]};
    }
    for (Range& range : instructions_of) range = {before_[range.begin], before_[range.end]};
    plan_.instructions = std::move(tape_);
    plan_.slots = std::move(slots_);
    shape_.guards = std::move(guards_);
    notes_ = std::move(new_notes_);
  }

 private:
  void CopySlots(size_t i) {
    Instruction& instruction = plan_.instructions[i];
    const uint32_t first = instruction.first_slot, end = first + SlotCount(plan_, i);
    moved_first_ = static_cast<uint32_t>(slots_.size());
    for (uint32_t s = first; s < end; ++s) {
      slot_of_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.push_back(plan_.slots[s]);
    }
  }

  void Append(Instruction instruction, size_t i, const TapeNote& note) {
    instruction.first_slot = moved_first_;
    tape_.push_back(instruction);
    guards_.push_back(i < shape_.guards.size() ? shape_.guards[i] : kAlways);
    new_notes_.push_back(note);
  }

  void AddEvent(Opcode opcode, StreamId stream, EventId event, ValueId told, size_t i) {
    Instruction made;
    made.opcode = opcode;
    made.node = plan_.instructions[i].node;
    made.stream = stream;
    made.detail = static_cast<uint32_t>(event.number());
    made.outputs = told.valid() ? 1 : 0;
    moved_first_ = static_cast<uint32_t>(slots_.size());
    if (told.valid()) slots_.push_back({told});
    Append(made, i, {});
  }
  void AddWait(size_t i) {
    const StreamEvents::Wait& wait = events_.waits[next_wait_];
    AddEvent(Opcode::kWait, wait.stream, wait.event, wait.told, i);
  }
  void AddRecord(size_t i) {
    const StreamEvents::Record& record = events_.records[next_];
    AddEvent(Opcode::kRecord, record.stream, record.event, record.told, i);
  }

  const StreamEvents events_;
  TapeShape& shape_;
  std::vector<TapeNote>& notes_;
  ExecutionPlan& plan_;
  std::vector<Instruction> tape_;
  std::vector<Slot> slots_;
  std::vector<GuardId> guards_;
  std::vector<TapeNote> new_notes_;
  std::vector<uint32_t> slot_of_;      // by old slot
  std::vector<uint32_t> before_, at_;  // by old position: that of its first wait, and its own
  uint32_t moved_first_ = 0;
  size_t next_ = 0, next_wait_ = 0;
};

}  // namespace

void PlanStreams(TapeShape& shape, std::vector<TapeNote>& notes, IndexedVector<graph::NodeId, Range>& instructions_of,
                 ExecutionPlan& plan) {
  const bool any =
      std::ranges::any_of(plan.devices, [](const device::Device* device) { return device->has_streams(); });
  if (!any) return;
  StreamChooser(shape, plan).Run();
  if (plan.streams.empty()) return;
  StreamEvents events = FindEvents(shape, plan);
  plan.event_count = events.records.size();
  if (plan.event_count > 0) EventWriter(std::move(events), shape, notes, plan).Run(instructions_of);
}

}  // namespace weir::plan
