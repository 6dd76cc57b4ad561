// What the emitters of a plan share: the step, its placement, and the services through which they write the tape.
#ifndef WEIR_CORE_PLAN_EMIT_CONTEXT_INTERNAL_H_
#define WEIR_CORE_PLAN_EMIT_CONTEXT_INTERNAL_H_

#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/guards_internal.h"
#include "core/plan/tape_builder_internal.h"
#include "core/plan/unroll_internal.h"

namespace weir::plan {

/// Sets guard bytes on the tape, each before the first instruction that runs under it.
class GuardWriter {
 public:
  GuardWriter(StepGuards& guards, TapeBuilder& tape) : guards_(guards), tape_(tape) {}

  /// Instructions emitted from now on run under `guard`.
  void Under(GuardId guard);
  /// Emits the instructions that compute `guard` from its parts, unless the byte is set already.
  void Ensure(GuardId guard);
  void Emit(const GuardStep& step, std::span<const ValueId> inputs = {}, std::span<const ValueId> outputs = {});
  /// to = 0
  void Clear(GuardId to, std::span<const ValueId> outputs = {}) { Emit({GuardStep::Kind::kClear, to}, {}, outputs); }
  /// to = from
  void Copy(GuardId to, GuardId from) { Emit({GuardStep::Kind::kCopy, to, kAlways, from}); }
  /// to = to or other
  void Or(GuardId to, GuardId other) { Emit({GuardStep::Kind::kOr, to, kAlways, to, other}); }

  bool IsSet(GuardId guard) const { return ready_.Has(guard) && ready_[guard]; }
  /// Some other instruction sets the byte.
  void MarkSet(GuardId guard);
  /// To forget guards that are only set inside a loop.
  IndexedVector<GuardId, bool> Sets() const { return ready_; }
  void Restore(const IndexedVector<GuardId, bool>& sets);

 private:
  StepGuards& guards_;
  TapeBuilder& tape_;
  IndexedVector<GuardId, bool> ready_;
};

/// The value of each output of the step's nodes; none before the node is emitted.
class StepValues {
 public:
  explicit StepValues(const graph::StepGraph& step);
  ValueId& operator[](graph::Endpoint e) { return values_[first_[e.node] + PositionOf(e.index)]; }

 private:
  IndexedVector<graph::NodeId, uint32_t> first_;  // into values_
  std::vector<ValueId> values_;
};

class EmitContext {
 public:
  /// Everything is borrowed.
  EmitContext(const PlanOptions& options, const graph::StepGraph& step, graph::Placement& placement, StepGuards& guards,
              TapeBuilder& tape);

  /// Sets the origin of the next instructions.
  const graph::StepNode& Begin(graph::NodeId id) {
    tape.SetOrigin(*step.node(id).source);
    return step.node(id);
  }
  const graph::StepNode& node(graph::NodeId id) const { return step.node(id); }
  /// The error with the node's name.
  Status Fail(graph::NodeId id, const Status& status) const { return graph::AtNode(status, *step.node(id).source); }

  /// None for nodes that run anywhere.
  DeviceId PlacedOn(graph::NodeId id) const { return DeviceId(placement.device_of[id]); }
  device::Device* DeviceOf(graph::NodeId id) const;
  /// The full name; empty for nodes that run anywhere.
  std::string_view DeviceName(graph::NodeId id) const;
  /// The memory in which kernels of the device work.
  SpaceId SpaceOfDevice(DeviceId device) const {
    return !device.valid() || tape.plan().devices[device]->host_memory() ? kHostSpace : OwnSpace(device);
  }
  SpaceId SpaceOf(graph::NodeId id) const { return SpaceOfDevice(PlacedOn(id)); }
  FrameId ParentFrame(FrameId frame) const { return step.ParentOf(frame); }
  const std::string& FrameName(FrameId frame) const { return step.frames[frame].name; }

  /// True if something reads the position that a Merge gives.
  bool ReadsIndex(graph::NodeId merge) const { return reads_index_[merge]; }
  /// The value of an input; Internal if it has none.
  Result<ValueId> Input(graph::NodeId id, size_t input);
  /// The value in `space`, copied there on first need.
  Result<ValueId> Located(ValueId value, SpaceId space);

  const PlanOptions& options;
  const graph::StepGraph& step;
  graph::Placement& placement;
  StepGuards& guards;
  TapeBuilder& tape;
  GuardWriter conditions;
  StepValues values;

 private:
  struct CopyMade {
    ValueId value;
    GuardId guard;
  };
  IndexedVector<graph::NodeId, bool> reads_index_;          // by node: its second output is used
  std::map<std::pair<ValueId, SpaceId>, CopyMade> copies_;  // by (value, space)
};

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_EMIT_CONTEXT_INTERNAL_H_
