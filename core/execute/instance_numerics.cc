// RunOptions::check_numerics: checks the inputs and outputs of every instruction.
#include <fmt/format.h>

#include <string>

#include "core/base/errors.h"
#include "core/execute/instance_internal.h"
#include "core/tensor/buffer.h"
#include "core/tensor/deferred.h"
#include "core/tensor/numerics.h"

namespace weir::execute {

namespace {

bool GivesNumbers(plan::Opcode opcode) {
  return opcode == plan::Opcode::kKernel || opcode == plan::Opcode::kStreamKernel ||
         opcode == plan::Opcode::kTiledKernel || opcode == plan::Opcode::kLockedKernel || opcode == plan::Opcode::kCall;
}

}  // namespace

Result<Tensor> PlanRunner::Instance::HostValue(const Instruction& instruction, uint32_t operand) {
  const plan::Value& value = ValueOf(instruction, operand);
  WEIR_ASSIGN(Tensor tensor, TensorOf(value));
  if (DeferredIn(tensor) != nullptr) return ReadNow(tensor, HostAllocator());
  return tensor.on_host() ? std::move(tensor) : streams_.ToHost(StorageOf(Chosen(value)).space, tensor);
}

std::string PlanRunner::Instance::InputNumbers(const Instruction& instruction) {
  std::string text;
  if (!GivesNumbers(instruction.opcode)) return text;
  const VariableLocks locks(*this, instruction);
  for (uint32_t i = 0; i < instruction.inputs; ++i) {
    const Result<Tensor> input = HostValue(instruction, i);  // an error is reported by the instruction itself
    if (input.ok()) text += fmt::format("\n\t input {}: {}", i, Describe(*input, NumbersOf(*input)));
  }
  return text;
}

Status PlanRunner::Instance::CheckNumbers(const Instruction& instruction, const std::string& inputs) {
  if (!GivesNumbers(instruction.opcode)) return Status();
  const VariableLocks locks(*this, instruction);
  const graph::Node& node = *plan_.nodes[instruction.node];
  for (uint32_t o = 0; o < instruction.outputs; ++o) {
    WEIR_ASSIGN(const Tensor output, HostValue(instruction, instruction.inputs + o));
    const Numbers numbers = NumbersOf(output);
    if (numbers.fault().empty()) continue;
    std::string device;
    for (const plan::PlacedNode& placed : plan_.placed_nodes) {
      if (placed.name == node.name()) device = placed.device;
    }
    return At(instruction, InvalidArgument("{}:{} : Tensor had {} values\n\t {} on {} gave {}{}", node.name(), o,
                                           numbers.fault(), node.op().name, device, Describe(output, numbers), inputs));
  }
  return Status();
}

}  // namespace weir::execute
