// The events that order the streams of a plan.
#ifndef WEIR_CORE_PLAN_STREAM_EVENTS_INTERNAL_H_
#define WEIR_CORE_PLAN_STREAM_EVENTS_INTERNAL_H_

#include <cstdint>
#include <vector>

#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"

namespace weir::plan {

/// Records and waits to insert into a tape, each in the order of the tape. Positions are those before.
struct StreamEvents {
  struct Record {
    uint32_t after = 0;
    StreamId stream;
    EventId event;
    ValueId told;  // what the host waits for by it; none if only streams wait
  };
  struct Wait {
    uint32_t before = 0;
    StreamId stream;  // none: the host
    EventId event;
    ValueId told;
  };
  std::vector<Record> records;
  std::vector<Wait> waits;
};

/// The events that a tape needs whose instructions have their streams (streams_internal.h), and sets the storages apart
/// that several streams use. Linear in the operands of storages that are set apart, times the depth of loops.
StreamEvents FindEvents(const TapeShape& shape, ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_STREAM_EVENTS_INTERNAL_H_
