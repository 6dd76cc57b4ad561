// Runs the tiles of one large op on the caller's thread and the compute pool.
#include <mutex>
#include <span>
#include <vector>

#include "core/execute/denormals.h"
#include "core/execute/instance_internal.h"
#include "core/runtime/compute_pool.h"

namespace weir::execute {
namespace {

/// The call of a kernel, shared by its threads.
struct TiledCall {
  const kernel::PreparedKernel& kernel;
  const device::Device& device;
  std::span<const weir_reg> registers;        // scratch memory, if any, is last, with one piece per tile
  const runtime::Cancellation* cancellation;  // null: all tiles run even if the step is cancelled
  std::mutex mutex;                           // protects `first`
  Status first;                               // error

  void Run(uint64_t begin, uint64_t end) {
    if (cancellation != nullptr && cancellation->cancelled()) return;  // the tape reports it after this instruction
    const FlushDenormals flush;
    const Status status = kernel::CallTiles(kernel, registers, begin, end, device);
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (first.ok()) first = status;
  }
};

}  // namespace

Status PlanRunner::Instance::Tiles(const Worker& worker, const Instruction& instruction) {
  const graph::Node& node = *plan_.nodes[instruction.node];
  const kernel::PreparedKernel& kernel = *plan_.kernels[instruction.detail];
  const size_t operands = size_t{instruction.inputs} + instruction.outputs;  // scratch counts as an output
  // An update of a variable must be completed.
  const bool may_stop = !instruction.locks.valid();
  TiledCall call{kernel,
                 plan_.DeviceOf(instruction),
                 {registers_.data() + instruction.first_slot, operands},
                 may_stop ? worker.step.cancellation : nullptr,
                 {},
                 Status()};
  runtime::ComputePool& pool = runtime::ComputePool::Get();
  const int threads = worker.step.intra_op > 0 ? worker.step.intra_op : pool.parallelism();
  pool.ParallelFor(
      kernel.tiles(), 1, threads,
      [](void* arg, uint64_t begin, uint64_t end) { static_cast<TiledCall*>(arg)->Run(begin, end); }, &call);
  return call.first.ok() ? Status() : graph::AtNode(call.first, node);
}

}  // namespace weir::execute
