// Who holds memory: variables and plans of a session, and what its devices have left.
#ifndef WEIR_CORE_SESSION_MEMORY_REPORT_H_
#define WEIR_CORE_SESSION_MEMORY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/kernel/resource.h"
#include "core/session/resolve.h"

namespace weir::plan {
struct ExecutionPlan;
}  // namespace weir::plan

namespace weir::session {

/// Counters of one session at one moment.
struct MemoryReport {
  struct Holder {
    std::string what;  // "variable w float [2,2]", "memory of 2 runs of a step that gives y", "… that runs init"
    std::string device;
    uint64_t bytes = 0;
  };
  struct OnDevice {
    std::string device;
    uint64_t variables = 0;  // of this session
    uint64_t steps = 0;      // kept by its plans for their runs
    device::MemoryUse all;   // of every session that shares the device
  };
  std::vector<OnDevice> devices;  // in the order of the device set
  std::vector<Holder> holders;    // of this session, largest first

  /// Adds what variables hold now; one that is being written is left out.
  void AddVariables(const kernel::ResourceScope& scope);
  /// Adds the arenas of so many runs of a plan made for `names`.
  void AddPlan(const plan::ExecutionPlan& plan, int runs, const graph::Graph& graph, const ResolvedNames& names);
  /// Puts a holder in its place.
  void Hold(Holder holder);
};

/// A report of the devices alone.
MemoryReport MakeMemoryReport(const device::DeviceSet& devices);

/// Totals by device, a table of the largest 20 holders, and what helps when memory runs out.
std::string ToText(const MemoryReport& report);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_MEMORY_REPORT_H_
