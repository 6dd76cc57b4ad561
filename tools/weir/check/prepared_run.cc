#include "tools/weir/check/prepared_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

constexpr uint64_t kGuardBytes = 256;
constexpr uint8_t kGuardByte = 0x5c;

uint64_t BytesOf(const kernel::OperandSpec& spec) {
  return static_cast<uint64_t>(spec.shape.elements()) * SizeOf(spec.dtype);
}

weir_reg Register(uint8_t* data, const kernel::OperandSpec& spec, const weir_shape* shape) {
  weir_reg reg{};
  reg.data = reinterpret_cast<uint64_t>(data);
  reg.handle = reg.data;
  reg.shape = shape;
  reg.dtype = static_cast<uint32_t>(spec.dtype);
  return reg;
}

}  // namespace

Guarded::Guarded(uint64_t bytes, uint8_t fill, uint64_t alignment)
    : storage_(bytes + 2 * kGuardBytes + alignment, kGuardByte), lead_(kGuardBytes), bytes_(bytes) {
  const uint64_t misfit = reinterpret_cast<uintptr_t>(storage_.data() + kGuardBytes) % alignment;
  if (misfit != 0) lead_ += alignment - misfit;
  std::memset(data(), fill, bytes);
}

bool Guarded::intact() const {
  const auto clean = [](uint8_t byte) { return byte == kGuardByte; };
  return std::all_of(storage_.data(), data(), clean) &&
         std::all_of(data() + bytes_, storage_.data() + storage_.size(), clean);
}

RunResult RunPrepared(const kernel::PreparedKernel& kernel, const KernelTrial& trial, const RunOptions& options) {
  RunResult result;
  std::deque<Guarded> inputs, outputs;
  std::deque<weir_shape> shapes;
  std::vector<weir_reg> regs;
  for (size_t i = 0; i < trial.inputs().size(); ++i) {
    const kernel::OperandSpec& spec = trial.inputs()[i];
    Guarded& input = inputs.emplace_back(BytesOf(spec), 0);
    if (input.bytes() != 0) std::memcpy(input.data(), trial.values()[i].raw(), input.bytes());
    regs.push_back(Register(input.data(), spec, &shapes.emplace_back(kernel::ViewOf(spec.shape))));
  }
  std::vector<uint8_t*> results;
  std::vector<bool> written(inputs.size());
  for (size_t o = 0; o < trial.outputs().size(); ++o) {
    const kernel::OperandSpec& spec = trial.outputs()[o];
    Guarded& output = outputs.emplace_back(BytesOf(spec), options.output_fill);
    uint8_t* data = output.data();
    const auto share = [&](const weir_alias& alias) {
      data = inputs[alias.input].data();
      written[alias.input] = true;
    };
    for (const weir_alias& alias : kernel.aliases()) {
      if (alias.output == o && alias.kind == WEIR_ALIAS_MUST) share(alias);
    }
    if (options.in_place != nullptr && options.in_place->output == o) share(*options.in_place);
    results.push_back(data);
    regs.push_back(Register(data, spec, &shapes.emplace_back(kernel::ViewOf(spec.shape))));
  }
  Guarded scratch(kernel.scratch_bytes(), 0xb7, std::max<uint64_t>(kernel.scratch_alignment(), 64));
  if (kernel.scratch_bytes() != 0) {
    weir_reg reg{};
    reg.data = reg.handle = reinterpret_cast<uint64_t>(scratch.data());
    regs.push_back(reg);
  }
  const uint64_t calls_before = HostCalls();
  if (kernel.fn() != nullptr) {
    result.status = kernel::CallPlugin("fn", [&](weir_error* error) {
      weir_env env{};
      env.struct_size = sizeof(env);
      env.tile_end = kernel.tiles();
      env.error = error;
      return kernel.fn()(kernel.state(), regs.data(), &env);
    });
  }
  result.host_calls = HostCalls() - calls_before;

  const weir_kernel& record = *kernel.entry().record;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].intact()) result.overrun = fmt::format("bytes beside input {}", i);
    const bool may_change = written[i] || (trial.inputs()[i].variable && record.variable_writes != 0);
    if (may_change || inputs[i].bytes() == 0) continue;
    if (std::memcmp(inputs[i].data(), trial.values()[i].raw(), inputs[i].bytes()) != 0) {
      result.changed_input = fmt::format("input {}", i);
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].intact()) result.overrun = fmt::format("bytes beside output {}", o);
    result.outputs.emplace_back(results[o], results[o] + outputs[o].bytes());
  }
  result.scratch_overrun = !scratch.intact();
  return result;
}

}  // namespace weir::check
