// Memory use: variables and plans of a session, and the memory of its devices.
#ifndef WEIR_CORE_SESSION_MEMORY_REPORT_H_
#define WEIR_CORE_SESSION_MEMORY_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/runtime/resource.h"
#include "core/session/resolve.h"

namespace weir::plan {
struct ExecutionPlan;
}  // namespace weir::plan

namespace weir::session {

/// Counters of one session at one time.
struct MemoryReport {
  struct Holder {
    std::string what;  // "variable w float [2,2]", "memory of 2 runs of a step that gives y", "… that runs init"
    std::string device;
    uint64_t bytes = 0;
  };
  struct OnDevice {
    std::string device;
    uint64_t variables = 0;  // of this session
    uint64_t steps = 0;      // reserved by its plans for their runs
    device::MemoryUse all;   // of all sessions that share the device
    /// What the plugin says about the device, of all processes; nothing if it does not.
    std::optional<device::ReportedMemory> reported = {};
  };
  std::vector<OnDevice> devices;  // in device-set order
  std::vector<Holder> holders;    // of this session, largest first

  /// Adds the current memory of variables; skips one that is being written.
  void AddVariables(const runtime::ResourceScope& scope);
  /// Adds the arenas of `runs` runs of a plan made for `names`.
  void AddPlan(const plan::ExecutionPlan& plan, int runs, const graph::Definition& graph, const ResolvedNames& names);
  /// Inserts a holder in order of size.
  void Hold(Holder holder);
};

/// A report of the devices only.
MemoryReport MakeMemoryReport(const device::DeviceSet& devices);

/// Totals by device, a table of the 20 largest holders, and advice for out-of-memory errors.
std::string ToText(const MemoryReport& report);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_MEMORY_REPORT_H_
