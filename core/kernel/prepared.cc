#include "core/kernel/prepared.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/base/errors.h"
#include "core/device/open_devices.h"
#include "core/tensor/buffer.h"

namespace weir::kernel {
namespace {

// The arguments of prepare, supports and estimate, with all referenced data.
class PrepArgs {
 public:
  PrepArgs(const weir_node& node, std::span<const OperandSpec> inputs, std::span<const OperandSpec> outputs,
           weir_device* device, uint64_t max_tiles = 1) {
    const uint64_t there = device::AlignmentOfOpenDevice(device);
    if (there != 0) alignment_ = there;
    operands_.reserve(inputs.size() + outputs.size());  // keeps pointers to elements valid
    values_.reserve(operands_.capacity());
    AddAll(inputs, input_pointers_);
    AddAll(outputs, output_pointers_);
    args_.struct_size = sizeof(args_);
    args_.node = &node;
    args_.device = device;
    args_.input_count = static_cast<uint32_t>(inputs.size());
    args_.output_count = static_cast<uint32_t>(outputs.size());
    args_.inputs = input_pointers_.data();
    args_.outputs = output_pointers_.data();
    args_.max_tiles = max_tiles;
    args_.deterministic = node.deterministic ? 1 : 0;
  }
  PrepArgs(const PrepArgs&) = delete;
  PrepArgs& operator=(const PrepArgs&) = delete;

  const weir_prep_args* get() const { return &args_; }

 private:
  void AddAll(std::span<const OperandSpec> specs, std::vector<const weir_operand*>& pointers) {
    for (const OperandSpec& spec : specs) {
      weir_operand& operand = operands_.emplace_back();
      operand.struct_size = sizeof(operand);
      operand.dtype = static_cast<uint32_t>(BaseType(spec.dtype));
      operand.space = spec.host ? WEIR_SPACE_HOST : WEIR_SPACE_DEVICE;
      operand.flags = spec.variable ? WEIR_OPERAND_VARIABLE : 0;
      operand.shape = ViewOf(spec.shape);
      operand.alignment = spec.host ? kBufferAlignment : alignment_;
      if (spec.value != nullptr && spec.value->on_host()) {
        operand.flags |= WEIR_OPERAND_CONSTANT;
        operand.value = &values_.emplace_back(ViewOf(*spec.value));
      }
      pointers.push_back(&operand);
    }
  }

  uint64_t alignment_ = kBufferAlignment;  // in the device's memory
  std::vector<weir_operand> operands_;
  std::vector<weir_tensor> values_;
  std::vector<const weir_operand*> input_pointers_;
  std::vector<const weir_operand*> output_pointers_;
  weir_prep_args args_{};
};

Result<uint64_t> BytesOf(const OperandSpec& spec) { return PayloadBytes(BaseType(spec.dtype), spec.shape); }

Status CheckBytes(std::span<const OperandSpec> operands) {
  constexpr int64_t kSurelyFew = kMostBytes / 16;  // no element is larger than 16 bytes
  for (const OperandSpec& operand : operands) {
    if (operand.shape.elements() > kSurelyFew) WEIR_TRY(BytesOf(operand).status());
  }
  return {};
}

// Checks the plugin's weir_prepared, on which the plan relies.
Status CheckPrepared(const weir_prepared& prepared, std::span<const OperandSpec> inputs,
                     std::span<const OperandSpec> outputs, uint64_t max_tiles) {
  if (prepared.tiles > max_tiles) return Internal("{} tiles, at most {} were asked for", prepared.tiles, max_tiles);
  if (prepared.alias_count != 0 && prepared.aliases == nullptr) return Internal("aliases are announced but missing");
  std::vector<bool> must(outputs.size());
  for (const weir_alias& alias : std::span(prepared.aliases, prepared.alias_count)) {
    if (alias.input >= inputs.size() || alias.output >= outputs.size() || alias.kind > WEIR_ALIAS_MUST) {
      return Internal("alias of input {} and output {} (kind {}) of a node with {} inputs and {} outputs", alias.input,
                      alias.output, alias.kind, inputs.size(), outputs.size());
    }
    WEIR_ASSIGN(const uint64_t in, BytesOf(inputs[alias.input]));
    WEIR_ASSIGN(const uint64_t out, BytesOf(outputs[alias.output]));
    if (out > in) {
      return Internal("output {} of {} bytes cannot share input {} of {} bytes", alias.output, out, alias.input, in);
    }
    if (alias.kind != WEIR_ALIAS_MUST) continue;
    if (must[alias.output]) return Internal("output {} must be two inputs at once", alias.output);
    must[alias.output] = true;
  }
  if (prepared.scratch_bytes != 0 && !std::has_single_bit(prepared.scratch_alignment)) {
    return Internal("scratch alignment {} is no power of two", prepared.scratch_alignment);
  }
  const uint64_t tiles = std::max<uint64_t>(prepared.tiles, 1);
  if (prepared.scratch_alignment > kMostBytes || prepared.scratch_bytes > kMostBytes / tiles) {
    return ResourceExhausted("{} bytes of scratch memory aligned to {} for each of {} tiles", prepared.scratch_bytes,
                             prepared.scratch_alignment, tiles);
  }
  if (prepared.fn != nullptr) return {};
  for (size_t i = 0; i < must.size(); ++i) {
    if (!must[i]) return Internal("there is no function, but output {} is no MUST alias", i);
  }
  return {};
}

/// Describes the call for error messages; evaluated only if needed.
auto Called(const KernelEntry& entry, std::string_view call) {
  return [&entry, call] { return fmt::format("{} of kernel {} ({})", call, Text(entry.record->op), entry.file); };
}

}  // namespace

Result<std::unique_ptr<PreparedKernel>> PreparedKernel::Make(const KernelEntry& entry, const weir_node& node,
                                                             std::span<const OperandSpec> inputs,
                                                             std::span<const OperandSpec> outputs, weir_device* device,
                                                             uint64_t max_tiles) {
  const weir_kernel* record = entry.record;
  if (!WEIR_HAS(record, prepare)) {
    return Unimplemented("kernel {} of {} has no prepared form", Text(record->op), entry.file);
  }
  WEIR_TRY(CheckBytes(inputs));
  WEIR_TRY(CheckBytes(outputs));
  std::unique_ptr<PreparedKernel> kernel(new PreparedKernel);
  kernel->entry_ = &entry;
  weir_prepared& prepared = kernel->prepared_;
  prepared.struct_size = sizeof(prepared);
  const PrepArgs args(node, inputs, outputs, device, max_tiles);
  Status status = CallPlugin(Called(entry, "prepare"), [&](weir_error* error) {
    return record->prepare(record->user, args.get(), &prepared, error);
  });
  WEIR_TRY(status);
  kernel->owned_ = true;
  if (prepared.scratch_alignment == 0) prepared.scratch_alignment = kBufferAlignment;
  kernel->flags_ = record->flags | prepared.flags;
  status = CheckPrepared(prepared, inputs, outputs, max_tiles);
  if (!status.ok()) return status.Prepend(Called(entry, "prepare")() + ": ");
  return kernel;
}

std::unique_ptr<PreparedKernel> PreparedKernel::Own(const KernelEntry& entry, const weir_prepared& prepared) {
  std::unique_ptr<PreparedKernel> kernel(new PreparedKernel);
  kernel->entry_ = &entry;
  kernel->prepared_ = prepared;
  kernel->flags_ = entry.record->flags | prepared.flags;
  kernel->owned_ = true;
  if (kernel->prepared_.scratch_alignment == 0) kernel->prepared_.scratch_alignment = kBufferAlignment;
  return kernel;
}

PreparedKernel::~PreparedKernel() {
  if (owned_ && WEIR_HAS(entry_->record, unprepare)) entry_->record->unprepare(&prepared_);
}

Result<weir_device*> HandleToAsk(device::Device& device) {
  return device.info().stand_in ? Result<weir_device*>(nullptr) : device.Open();
}

Status Supports(const KernelEntry& entry, const weir_node& node, std::span<const OperandSpec> inputs,
                std::span<const OperandSpec> outputs, weir_device* device) {
  if (!WEIR_HAS(entry.record, supports)) return {};
  const PrepArgs args(node, inputs, outputs, device);
  return CallPlugin(Called(entry, "supports"),
                    [&](weir_error* error) { return entry.record->supports(args.get(), error); });
}

Result<weir_cost> Estimate(const KernelEntry& entry, const weir_node& node, std::span<const OperandSpec> inputs,
                           std::span<const OperandSpec> outputs, weir_device* device, const weir_profile* profile) {
  if (!WEIR_HAS(entry.record, estimate)) {
    return Unimplemented("kernel {} of {} estimates nothing", Text(entry.record->op), entry.file);
  }
  const PrepArgs args(node, inputs, outputs, device);
  weir_cost cost{};
  cost.struct_size = sizeof(cost);
  cost.whole_ns = cost.flops = cost.bytes = cost.fixed_ns = std::nan("");
  WEIR_TRY(CallPlugin(Called(entry, "estimate"),
                      [&](weir_error* error) { return entry.record->estimate(args.get(), profile, &cost, error); }));
  bool known = false;
  for (const double figure : {cost.whole_ns, cost.flops, cost.bytes, cost.fixed_ns}) {
    if (figure < 0 || std::isinf(figure)) {
      return Internal("{}: {} is no cost", Called(entry, "estimate")(), figure);
    }
    known = known || !std::isnan(figure);
  }
  if (!known) return Internal("{}: nothing but NaN", Called(entry, "estimate")());
  return cost;
}

}  // namespace weir::kernel
