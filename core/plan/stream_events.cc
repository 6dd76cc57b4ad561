#include "core/plan/stream_events_internal.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "core/plan/lifetimes_internal.h"
#include "core/plan/streams_internal.h"

namespace weir::plan {
namespace {

/// A stream, or the host: none.
using Actor = StreamId;
constexpr Actor kHost;

/// What an instruction does to the content of a storage.
struct Access {
  Actor actor;
  StorageId storage;  // for a read by a stream never a kBound one, but its sources
  bool writes = false;
};

/// The accesses of instructions to memory other than that of variables, constants and feeds, which nothing in the plan
/// writes or which is ordered when the plan runs.
class Accesses {
 public:
  explicit Accesses(const ExecutionPlan& plan) : plan_(plan), compute_(plan.devices.size()) {
    for (const StreamId stream : plan.streams.indices()) {
      const PlannedStream& of = plan.streams[stream];
      if (of.use == PlannedStream::Use::kCompute) compute_[of.device] = stream;
    }
  }

  template <class F>
  void ForEach(size_t i, const F& visit) const {
    const Instruction& instruction = plan_.instructions[i];
    if (!TouchesContent(instruction.opcode)) return;
    const uint32_t outputs = instruction.first_slot + instruction.inputs;
    for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan_, i); ++s) {
      const StorageId storage = StorageOf(plan_, s);
      const Storage& memory = plan_.storages[storage];
      const bool content = memory.home != Storage::Home::kConstant && memory.home != Storage::Home::kFeed &&
                           memory.home != Storage::Home::kVariable;
      const bool on_device = HasStreams(plan_, memory.space);
      // A kMerge chooses on the host; that its inputs have arrived there matters to those who read its output.
      if (!content || (instruction.opcode == Opcode::kMerge && on_device)) continue;
      const bool writes = s >= outputs;
      const Actor actor = on_device ? StreamAt(instruction, memory.space) : HostActor(instruction, writes);
      if (memory.home != Storage::Home::kBound) {
        visit(Access{actor, storage, writes});
      } else if (actor != kHost) {
        ForSources(storage, [&](StorageId source) { visit(Access{actor, source, writes}); });
      }
    }
  }

  /// Whose work finds the memory of a space in order: the computing stream of its device, or the host.
  Actor HomeOf(SpaceId space) const { return HasStreams(plan_, space) ? compute_[OwnerOf(space)] : kHost; }

 private:
  static bool TouchesContent(Opcode opcode) {
    switch (opcode) {
      case Opcode::kMake:
      case Opcode::kRelease:
      case Opcode::kSwap:
      case Opcode::kSkip:
      case Opcode::kRepeat:
      case Opcode::kStack:
        return false;
      default:
        return true;
    }
  }

  /// Copies between devices with streams order themselves on the computing streams of both.
  Actor StreamAt(const Instruction& instruction, SpaceId space) const {
    const bool own = instruction.stream.valid() && plan_.streams[instruction.stream].device == OwnerOf(space);
    return own ? instruction.stream : compute_[OwnerOf(space)];
  }
  /// Who accesses an operand on the host: the host itself unless a copy writes it.
  static Actor HostActor(const Instruction& instruction, bool writes) {
    const bool arrives = instruction.opcode == Opcode::kCopy && instruction.memory == kHostSpace && writes;
    return arrives ? instruction.stream : kHost;
  }

  template <class F>
  void ForSources(StorageId bound, const F& visit) const {
    for (const StorageId source : plan_.storages[bound].sources) {
      if (plan_.storages[source].home == Storage::Home::kBound) {
        ForSources(source, visit);
      } else {
        visit(source);
      }
    }
  }

  const ExecutionPlan& plan_;
  IndexedVector<DeviceId, StreamId> compute_;
};

/// Storages whose memory kSwap exchanges count as one.
class Exchanged {
 public:
  explicit Exchanged(const ExecutionPlan& plan) {
    for (const StorageId storage : plan.storages.indices()) parent_.push_back(storage);
    for (const Instruction& instruction : plan.instructions) {
      if (instruction.opcode != Opcode::kSwap) continue;
      const StorageId a = Of(StorageOf(plan, instruction.first_slot));
      parent_[a] = Of(StorageOf(plan, instruction.first_slot + 1));
    }
  }
  StorageId Of(StorageId storage) {
    while (parent_[storage] != storage) storage = parent_[storage] = parent_[parent_[storage]];
    return storage;
  }

 private:
  IndexedVector<StorageId, StorageId> parent_;
};

/// Walks along the tape and finds what each access must wait for.
class Walk {
 public:
  Walk(const TapeShape& shape, ExecutionPlan& plan)
      : shape_(shape), plan_(plan), accesses_(plan), exchanged_(plan), uses_(plan.storages.size()) {
    streams_.resize(plan.streams.size(), {Known(plan.streams.size(), kNothing), kAlways, {}});
  }

  StreamEvents Run() {
    SetApart();
    FindGuards();
    std::vector<Loop> begins = shape_.loops, ends = shape_.loops;
    std::ranges::sort(begins, {}, &Loop::first);
    std::ranges::sort(ends, {}, &Loop::last);
    size_t begun = 0, ended = 0;
    for (uint32_t i = 0; i < plan_.instructions.size(); ++i) {
      for (; begun < begins.size() && begins[begun].first == i; ++begun) CarryAround(begins[begun]);
      Visit(i);
      for (; ended < ends.size() && ends[ended].last == i; ++ended) ForgetConditions();
    }
    return Numbered();
  }

 private:
  /// An access that later ones may have to wait for.
  struct Use {
    Actor actor;
    bool writes = false;
    uint32_t at = 0;
  };
  /// By stream: the position up to which its work precedes that of another stream.
  using Known = IndexedVector<StreamId, int64_t>;
  static constexpr int64_t kNothing = -1;
  struct Stream {
    Known known;
    GuardId guard = kAlways;  // a condition under which `under` is known as well
    Known under;
  };
  struct Need {
    Actor actor;
    Use use;
  };

  bool IsApart(StorageId storage) const { return plan_.storages[storage].apart; }
  GuardId GuardOf(uint32_t at) const { return guards_[at]; }

  /// What a stream other than that of the memory uses, read or not, must not lie where others have lain.
  void SetApart() {
    struct Users {
      int count = 0;  // up to 2
      Actor first, second;
      bool apart = false;
      bool handed_over = false;
    };
    IndexedVector<StorageId, Users> users(plan_.storages.size());
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      accesses_.ForEach(i, [&](const Access& access) {
        Users& of = users[exchanged_.Of(access.storage)];
        if (of.count == 0) {
          of.first = access.actor;
          of.handed_over = access.writes;
        } else if (of.count == 1) {
          of.second = access.actor;
        }
        of.apart = of.apart || access.actor != accesses_.HomeOf(plan_.storages[access.storage].space);
        of.handed_over = of.handed_over && (of.count == 0 || access.actor == of.second);
        of.count = std::min(of.count + 1, 2);
      });
    }
    for (const StorageId storage : plan_.storages.indices()) {
      const Users& of = users[exchanged_.Of(storage)];
      plan_.storages[storage].apart = of.apart;
      plan_.storages[storage].handed_over = of.apart && of.handed_over && of.count == 2;
    }
  }

  /// What a kSkip of the unfinished tape jumps over, a loop, runs under a condition that has no guard of its own.
  void FindGuards() {
    guards_ = shape_.guards;
    guards_.resize(plan_.instructions.size(), kAlways);
    size_t next = plan_.guard_count;
    for (size_t i = plan_.instructions.size(); i-- > 0;) {  // inner loops before outer ones
      if (plan_.instructions[i].opcode != Opcode::kSkip) continue;
      const uint32_t end = plan_.jumps[plan_.instructions[i].detail].target;
      const GuardId skipped(next++);
      for (size_t at = i + 1; at < end; ++at) {
        if (guards_[at] == kAlways) guards_[at] = skipped;
      }
    }
  }

  /// In later iterations, the accesses of the loop come before it as well.
  void CarryAround(const Loop& loop) {
    ForgetConditions();
    for (uint32_t i = loop.first; i <= loop.last; ++i) {
      accesses_.ForEach(i, [&](const Access& access) {
        if (IsApart(access.storage)) uses_[exchanged_.Of(access.storage)].push_back({access.actor, access.writes, i});
      });
    }
  }

  void Visit(uint32_t i) {
    if (plan_.instructions[i].opcode == Opcode::kGuard) {
      const GuardStep& step = plan_.guard_steps[plan_.instructions[i].detail];
      Forget(step.to);
      Forget(step.otherwise);
    }
    told_.erase(i);
    bool apart = false;
    accesses_.ForEach(i, [&](const Access& access) {
      if (!IsApart(access.storage)) return;
      apart = true;
      for (const Use& use : uses_[exchanged_.Of(access.storage)]) {
        // Work is enqueued after what the host did before.
        const bool conflict = use.actor != access.actor && use.actor != kHost && (use.writes || access.writes);
        if (conflict) needs_.push_back({access.actor, use});
      }
    });
    if (!apart) return;
    WaitFor(i);
    accesses_.ForEach(i, [&](const Access& access) {
      if (IsApart(access.storage)) Note(access, i);
    });
    const StreamId stream = plan_.instructions[i].stream;
    if (stream.valid()) known_at_[i] = streams_[stream].known;
  }

  /// Keeps an access; a later one of the same stream that always runs stands for it.
  void Note(const Access& access, uint32_t i) {
    std::vector<Use>& uses = uses_[exchanged_.Of(access.storage)];
    const bool always = GuardOf(i) == kAlways;
    std::erase_if(uses, [&](const Use& use) {
      const bool same = use.actor == access.actor && (access.writes || !use.writes);
      return always ? same || access.writes : same && use.at == i;
    });
    uses.push_back({access.actor, access.writes, i});
  }

  /// Adds the waits before instruction `i`. Of several uses by one stream under one guard the latest is enough.
  void WaitFor(uint32_t i) {
    std::ranges::stable_sort(needs_, [](const Need& a, const Need& b) { return a.use.at > b.use.at; });
    std::vector<Need> done;
    for (const Need& need : std::exchange(needs_, {})) {
      const bool covered = std::ranges::any_of(done, [&](const Need& later) {
        return later.actor == need.actor && later.use.actor == need.use.actor &&
               GuardOf(later.use.at) == GuardOf(need.use.at) && (later.use.at < i) == (need.use.at < i);
      });
      if (covered) continue;
      done.push_back(need);
      if (need.use.at < i && Implied(need, GuardOf(i))) continue;
      AddWait(need, i);
    }
  }

  bool Implied(const Need& need, GuardId guard) const {
    if (need.actor == kHost) {
      const auto told = told_.find(need.use.at);
      return told != told_.end() &&
             (std::ranges::count(told->second, kAlways) + std::ranges::count(told->second, guard)) > 0;
    }
    const Stream& stream = streams_[need.actor];
    if (stream.known[need.use.actor] >= need.use.at) return true;
    return guard != kAlways && stream.guard == guard && stream.under[need.use.actor] >= need.use.at;
  }

  void AddWait(const Need& need, uint32_t i) {
    StreamEvents::Record& record = records_[{need.use.at, need.use.actor}];
    StreamEvents::Wait wait{i, need.actor, {}, {}};
    if (need.actor == kHost) {
      const Instruction& copy = plan_.instructions[need.use.at];
      record.told = wait.told = plan_.slots[copy.first_slot + copy.inputs].value;
    }
    waits_.emplace_back(wait, std::pair(need.use.at, need.use.actor));
    if (need.use.at < i) Learn(need, GuardOf(i));
  }

  /// What holds behind a wait under `guard` for work that this iteration has enqueued.
  void Learn(const Need& need, GuardId guard) {
    if (need.actor == kHost) {
      told_[need.use.at].push_back(guard);
      return;
    }
    const GuardId recorded = GuardOf(need.use.at);
    if (recorded != kAlways && recorded != guard) return;
    Stream& stream = streams_[need.actor];
    if (guard != kAlways && stream.guard != guard) {
      stream.guard = guard;
      stream.under.assign(plan_.streams.size(), kNothing);
    }
    Known& known = guard == kAlways ? stream.known : stream.under;
    known[need.use.actor] = std::max<int64_t>(known[need.use.actor], need.use.at);
    const auto before = known_at_.find(need.use.at);
    if (before == known_at_.end() || plan_.instructions[need.use.at].stream != need.use.actor) return;
    for (const StreamId other : known.indices()) known[other] = std::max(known[other], before->second[other]);
  }

  /// The guard may get another value.
  void Forget(GuardId guard) {
    if (guard == kAlways) return;
    for (Stream& stream : streams_) {
      if (stream.guard == guard) stream.guard = kAlways;
    }
    for (auto& [at, guards] : told_) std::erase(guards, guard);
  }
  void ForgetConditions() {
    for (Stream& stream : streams_) stream.guard = kAlways;
    for (auto& [at, guards] : told_) std::erase_if(guards, [](GuardId guard) { return guard != kAlways; });
  }

  StreamEvents Numbered() {
    StreamEvents events;
    for (auto& [key, record] : records_) {
      record.after = key.first;
      record.stream = key.second;
      record.event = EventId(events.records.size());
      events.records.push_back(record);
    }
    for (auto& [wait, key] : waits_) {
      wait.event = records_.at(key).event;
      events.waits.push_back(wait);
    }
    return events;
  }

  const TapeShape& shape_;
  ExecutionPlan& plan_;
  const Accesses accesses_;
  Exchanged exchanged_;
  std::vector<GuardId> guards_;                      // by instruction
  IndexedVector<StorageId, std::vector<Use>> uses_;  // of storages that are set apart
  IndexedVector<StreamId, Stream> streams_;
  std::map<uint32_t, Known> known_at_;             // by instruction: what its stream knows there in any case
  std::map<uint32_t, std::vector<GuardId>> told_;  // by copy to the host: under which guards the host has waited
  std::vector<Need> needs_;                        // of the current instruction
  std::map<std::pair<uint32_t, StreamId>, StreamEvents::Record> records_;  // by instruction and stream
  std::vector<std::pair<StreamEvents::Wait, std::pair<uint32_t, StreamId>>> waits_;
};

}  // namespace

StreamEvents FindEvents(const TapeShape& shape, ExecutionPlan& plan) { return Walk(shape, plan).Run(); }

}  // namespace weir::plan
