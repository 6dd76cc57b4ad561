#include "core/kernel/launch.h"

#include <future>
#include <utility>

#include "core/tensor/buffer.h"

namespace weir::kernel {

Status CallTiles(const PreparedKernel& kernel, std::span<const weir_reg> registers, uint64_t begin, uint64_t end,
                 const device::Device& device, device::Stream* stream) {
  ErrorRecord error;
  weir_env env{};
  env.struct_size = sizeof(env);
  env.tile_begin = begin;
  env.tile_end = end;
  env.error = error.get();
  if (stream != nullptr) {
    env.stream = stream->handle();
    env.native_stream = stream->native();
  }
  std::vector<weir_reg> own;
  if (begin != 0 && kernel.scratch_bytes() > 0) {
    own.assign(registers.begin(), registers.end());
    own.back().data += begin * kernel.tile_scratch_bytes();
    registers = own;
  }
  const int32_t code = kernel.fn()(kernel.state(), registers.data(), &env);
  const Status status = code == 0 ? Status() : error.ToStatus(code, Text(kernel.entry().record->op));
  if (stream != nullptr) {
    stream->Launched();
    if (!status.ok()) stream->Refused(status, error.flags());
  }
  return status.ok() ? status : device.Judge(status, error.flags());
}

Launch::Launch(std::shared_ptr<const PreparedKernel> kernel, const LaunchArgs& args)
    : kernel_(std::move(kernel)), args_(args) {}

Status Launch::Bind(std::span<const Tensor> inputs, std::span<const OperandSpec> outputs) {
  Allocator& allocator = args_.allocator != nullptr ? *args_.allocator : args_.device->allocator();
  Allocator& host_allocator = args_.host_allocator != nullptr ? *args_.host_allocator : HostAllocator();
  outputs_.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OperandSpec& spec = outputs[i];
    if (spec.variable) {
      outputs_.push_back(inputs[0]);
      continue;
    }
    const Tensor* same = in_place_ != nullptr && in_place_->output == i ? &inputs[in_place_->input] : nullptr;
    for (const weir_alias& alias : kernel_->aliases()) {
      if (alias.kind == WEIR_ALIAS_MUST && alias.output == i) same = &inputs[alias.input];
    }
    const bool host = spec.host && !args_.device->host_memory();
    Result<Tensor> made = same != nullptr ? Tensor::Over(spec.dtype, spec.shape, same->buffer(), same->offset())
                                          : Tensor::Make(spec.dtype, spec.shape, host ? host_allocator : allocator);
    if (!made.ok()) return made.status();
    outputs_.push_back(std::move(*made));
  }
  if (kernel_->fn() == nullptr) return {};
  registers_.reserve(inputs.size() + outputs.size() + 1);
  shapes_.reserve(inputs.size() + outputs.size() + 1);  // registers point to elements
  for (const Tensor& tensor : inputs) AddRegister(tensor);
  for (const Tensor& tensor : outputs_) AddRegister(tensor);
  return kernel_->scratch_bytes() > 0 ? BindScratch() : Status();
}

void Launch::AddRegister(const Tensor& tensor) {
  registers_.push_back(RegisterOf(tensor, &shapes_.emplace_back(ViewOf(tensor.shape()))));
}

Status Launch::BindScratch() {
  Allocator& allocator = args_.allocator != nullptr ? *args_.allocator : args_.device->allocator();
  const uint64_t bytes = kernel_->reserved_scratch_bytes();
  const bool ordered = args_.stream != nullptr && args_.allocator == nullptr;
  WEIR_ASSIGN(scratch_, ordered ? args_.stream->Temporary(bytes, allocator) : allocator.Allocate(bytes));
  const weir_buf& memory = scratch_->memory();
  const uint64_t begin = memory.host != nullptr ? reinterpret_cast<uint64_t>(memory.host) : memory.offset;
  const uint64_t data = (begin + kernel_->scratch_alignment() - 1) & ~(kernel_->scratch_alignment() - 1);
  scratch_begin_ = data - begin;
  registers_.push_back({data, memory.handle, &shapes_.emplace_back(), static_cast<uint32_t>(DType::kUint8), 0});
  return {};
}

Status Launch::Run(Tiling tiling) {
  if (kernel_->fn() == nullptr) return {};
  if (args_.stream != nullptr) args_.stream->Keep(kernel_, 0);
  std::unique_lock<std::mutex> serial;
  if (args_.serial != nullptr && (kernel_->flags() & WEIR_KERNEL_STATEFUL) != 0) {
    serial = std::unique_lock(*args_.serial);
  }
  const uint64_t step = tiling == Tiling::kOneCall ? kernel_->tiles() : 1;
  for (uint64_t tile = 0; tile < kernel_->tiles(); tile += step) {
    WEIR_TRY(CallTiles(*kernel_, registers_, tile, tile + step, *args_.device, args_.stream));
  }
  return {};
}

Result<std::optional<std::vector<Tensor>>> LaunchDynamic(DynamicKernel& kernel, std::vector<Tensor> inputs,
                                                         std::span<const DType> output_types, const LaunchArgs& args,
                                                         Later& later) {
  using Outputs = std::optional<std::vector<Tensor>>;
  const bool enqueues = args.stream != nullptr && (kernel.entry().record->flags & WEIR_KERNEL_STREAM) != 0;
  if (args.stream != nullptr && !enqueues) WEIR_TRY(args.stream->Sync());
  CallArgs call{.allocator = args.allocator != nullptr ? args.allocator : &args.device->allocator(),
                .step_id = args.step_id,
                .cancellation = args.cancellation,
                .threads = args.threads};
  WEIR_ASSIGN(call.device, args.device->Open());
  if (enqueues) {
    call.stream = args.stream->handle();
    call.native_stream = args.stream->native();
  }
  if (kernel.async()) {
    kernel.Start(std::move(inputs), {output_types.begin(), output_types.end()}, call, later);
    return Outputs();
  }
  uint32_t flags = 0;
  call.error_flags = &flags;
  if (!enqueues) {
    Result<std::vector<Tensor>> outputs = kernel.Compute(std::move(inputs), output_types, call);
    if (!outputs.ok()) return args.device->Judge(outputs.status(), flags);
    return Outputs(std::move(*outputs));
  }
  const std::vector<Tensor> kept = inputs;
  std::vector<std::shared_ptr<Buffer>> temporaries;
  call.temporaries = &temporaries;
  Result<std::vector<Tensor>> outputs = kernel.Compute(std::move(inputs), output_types, call);
  args.stream->Launched();
  if (!outputs.ok()) args.stream->Refused(outputs.status(), flags);
  for (const Tensor& input : kept) args.stream->Keep(input.buffer(), input.bytes());
  for (std::shared_ptr<Buffer>& memory : temporaries) args.stream->Keep(memory, memory->bytes());
  if (!outputs.ok()) return args.device->Judge(outputs.status(), flags);
  return Outputs(std::move(*outputs));
}

Result<std::vector<Tensor>> LaunchDynamic(DynamicKernel& kernel, std::vector<Tensor> inputs,
                                          std::span<const DType> output_types, const LaunchArgs& args) {
  std::promise<Result<std::vector<Tensor>>> completed;
  Later later;
  later.done = runtime::Completion([&](Result<std::vector<Tensor>> made) { completed.set_value(std::move(made)); });
  WEIR_ASSIGN(std::optional<std::vector<Tensor>> outputs,
              LaunchDynamic(kernel, std::move(inputs), output_types, args, later));
  if (outputs) return std::move(*outputs);
  Result<std::vector<Tensor>> made = completed.get_future().get();
  if (!made.ok()) return args.device->Judge(made.status(), later.error_flags);
  return made;
}

}  // namespace weir::kernel
