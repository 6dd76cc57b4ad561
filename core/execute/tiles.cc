// One large op on several threads: its tiles are shared out over the caller's thread and the compute pool.
#include <mutex>
#include <span>
#include <vector>

#include "core/execute/denormals.h"
#include "core/execute/instance_internal.h"
#include "core/kernel/compute_pool.h"

namespace weir::execute {
namespace {

/// A kernel's call, as its threads see it.
struct TiledCall {
  const plan::Instruction& instruction;
  const kernel::PreparedKernel& kernel;
  const device::Device& device;
  std::span<const weir_reg> registers;  // scratch, if there is one, last: a piece for each tile
  const kernel::RunControl* control;    // null: every tile runs, whatever happens to the step
  std::string_view op;
  std::mutex mutex;  // protects `first`
  Status first;      // error

  void Run(uint64_t begin, uint64_t end) {
    if (control != nullptr && control->stopped()) return;  // the tape says so after this instruction
    const FlushDenormals flush;
    kernel::ErrorRecord error;
    weir_env env{};
    env.struct_size = sizeof(env);
    env.tile_begin = begin;
    env.tile_end = end;
    env.error = error.get();
    std::vector<weir_reg> own(registers.begin(), registers.end());
    if (kernel.scratch_bytes() > 0) own.back().data += begin * kernel.tile_scratch_bytes();
    const int32_t code = instruction.fn(instruction.state, own.data(), &env);
    if (code == 0) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (first.ok()) first = device.Judge(error.ToStatus(code, op), error.flags());
  }
};

}  // namespace

Status PlanRunner::Instance::Tiles(const Worker& worker, const Instruction& instruction) {
  const graph::Node& node = *plan_.nodes[static_cast<size_t>(instruction.node)];
  const kernel::PreparedKernel& kernel = *plan_.kernels[instruction.detail];
  const size_t operands = size_t{instruction.inputs} + instruction.outputs;  // scratch counts as an output
  // What changes a variable is done whole.
  const bool may_stop = instruction.locks_begin == instruction.locks_end;
  TiledCall call{instruction,
                 kernel,
                 *plan_.kernel_devices[instruction.detail],
                 {registers_.data() + instruction.first_slot, operands},
                 may_stop ? worker.step.control : nullptr,
                 node.op().name,
                 {},
                 Status()};
  kernel::ComputePool& pool = kernel::ComputePool::Get();
  const int threads = worker.step.intra_op > 0 ? worker.step.intra_op : pool.parallelism();
  pool.ParallelFor(
      kernel.tiles(), 1, threads,
      [](void* arg, uint64_t begin, uint64_t end) { static_cast<TiledCall*>(arg)->Run(begin, end); }, &call);
  return call.first.ok() ? Status() : graph::AtNode(call.first, node);
}

}  // namespace weir::execute
