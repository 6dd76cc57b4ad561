#include "core/kernel/context.h"

#include <algorithm>
#include <future>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/call.h"
#include "core/kernel/operand_args.h"
#include "core/kernel/pending_calls.h"
#include "core/runtime/blocking_pool.h"
#include "core/runtime/compute_pool.h"
#include "core/tensor/sole_holder.h"

namespace weir::kernel {
namespace {

/// True if the argument of operand i is in the mask.
bool InMask(uint64_t mask, const std::vector<int>& args, uint32_t i) {
  return i < args.size() && Masked(mask, args[i]);
}

}  // namespace

Result<std::unique_ptr<DynamicKernel>> DynamicKernel::Make(const KernelEntry& entry, const weir_node& node,
                                                           weir_device* device) {
  const weir_kernel* record = entry.record;
  if (!WEIR_HAS(record, compute)) {
    return Unimplemented("kernel {} of {} has no dynamic form", Text(record->op), entry.file);
  }
  Result<op::Signature> signature = op::Expand(node.attrs);
  if (!signature.ok()) return signature.status();

  std::unique_ptr<DynamicKernel> kernel(new DynamicKernel);
  kernel->entry_ = &entry;
  kernel->name_ = fmt::format("kernel {} of {}", Text(record->op), entry.file);
  if (kernel->async()) kernel->fault_ = std::make_shared<KernelFault>(kernel->name_);
  kernel->places_ = {record->host_inputs, record->host_outputs, record->variable_writes,
                     ArgOfOperand(signature->input_counts), ArgOfOperand(signature->output_counts)};
  uint32_t first = 0;
  const std::vector<op::ArgDef>& args = node.attrs.def().inputs;
  for (size_t i = 0; i < args.size() && i < signature->input_counts.size(); ++i) {
    const auto count = static_cast<uint32_t>(signature->input_counts[i]);
    kernel->ranges_.push_back({args[i].name, first, count});
    first += count;
  }
  if (WEIR_HAS(record, create)) {
    const auto called = [&] { return fmt::format("create of kernel {} ({})", Text(record->op), entry.file); };
    WEIR_TRY(CallPlugin(called, [&](weir_error* error) {
      return record->create(record->user, &node, device, &kernel->state_, error);
    }));
    kernel->owned_ = true;
  }
  return kernel;
}

DynamicKernel::~DynamicKernel() {
  if (owned_ && WEIR_HAS(entry_->record, destroy)) entry_->record->destroy(state_);
}

void DynamicKernel::Fill(weir_ctx& ctx, std::vector<Tensor> inputs, std::span<const DType> output_types,
                         const CallArgs& args) const {
  ctx.ranges = ranges_;
  ctx.inputs = std::move(inputs);
  ctx.output_types = output_types;
  ctx.outputs.resize(output_types.size());
  ctx.allocator = args.allocator != nullptr ? args.allocator : &HostAllocator();
  ctx.places = &places_;
  ctx.step_id = args.step_id;
  ctx.cancellation = args.cancellation;
  ctx.threads = args.threads;
  ctx.device = args.device;
  ctx.stream = args.stream;
  ctx.native_stream = args.native_stream;
}

Status DynamicKernel::CallCompute(weir_ctx* handle, const std::string& name, uint32_t* error_flags) {
  return CallPlugin(name, [&](weir_error* error) {
    const int32_t code = entry_->record->compute(state_, handle, error);
    if (error_flags != nullptr) *error_flags = error->flags;
    return code;
  });
}

Result<std::vector<Tensor>> DynamicKernel::Outputs(weir_ctx& ctx, Status status) const {
  if (status.code() == Code::kCancelled && ctx.cancellation != nullptr) WEIR_TRY(ctx.cancellation->status());
  WEIR_TRY(status);
  for (size_t i = 0; i < ctx.outputs.size(); ++i) {
    if (!ctx.outputs[i].valid()) return Internal("{} left output {} unset", name_, i);
  }
  return std::move(ctx.outputs);
}

Result<std::vector<Tensor>> DynamicKernel::Compute(std::vector<Tensor> inputs, std::span<const DType> output_types,
                                                   const CallArgs& args) {
  if (async()) {
    std::promise<Result<std::vector<Tensor>>> completed;
    Later later;
    later.done = runtime::Completion([&](Result<std::vector<Tensor>> made) { completed.set_value(std::move(made)); });
    Start(std::move(inputs), {output_types.begin(), output_types.end()}, args, later);
    Result<std::vector<Tensor>> outputs = completed.get_future().get();
    if (args.error_flags != nullptr) *args.error_flags = later.error_flags;
    return outputs;
  }
  weir_ctx ctx;
  Fill(ctx, std::move(inputs), output_types, args);
  std::unique_lock<std::mutex> serial(mutex_, std::defer_lock);
  if (stateful()) serial.lock();
  Status status = CallCompute(&ctx, name_, args.error_flags);
  if (args.temporaries != nullptr) *args.temporaries = std::move(ctx.temps);
  return Outputs(ctx, std::move(status));
}

void DynamicKernel::Start(std::vector<Tensor> inputs, std::vector<DType> output_types, const CallArgs& args,
                          Later& later) {
  if (const Status fault = fault_->status(); !fault.ok()) return later.done(fault);
  const auto call = std::make_shared<PendingCall>();
  call->output_types = std::move(output_types);
  Fill(call->ctx, std::move(inputs), call->output_types, args);
  call->kernel = this;
  call->later = &later;
  call->fault = fault_;
  if (stateful()) {
    std::unique_lock lock(mutex_);
    if (running_) {
      // The callback takes the lock too, so it runs after the call was queued.
      runtime::Cancellation* const step = args.cancellation;
      if (step == nullptr || later.cancel.Register(*step, [this, own = call.get()] { Withdraw(own); })) {
        waiting_.push_back(call);
        return;
      }
      lock.unlock();
      return later.done(step->status());
    }
    running_ = true;
  }
  Begin(call);
}

void DynamicKernel::Begin(const Call& call) {
  Later& later = *call->later;
  later.cancel.Deregister();
  weir_ctx* const handle = PendingCalls::Get().Add(call);
  const auto cancel = [this, handle] {
    if (WEIR_HAS(entry_->record, cancel)) entry_->record->cancel(state_, handle);
  };
  runtime::Cancellation* const step = call->ctx.cancellation;
  if (step != nullptr && !later.cancel.Register(*step, cancel)) {
    return Complete(*PendingCalls::Get().Take(handle), step->status());
  }
  // The kernel object may be destroyed during the call.
  uint32_t flags = 0;
  const Status status = CallCompute(handle, call->fault->kernel(), &flags);
  if (status.ok()) return;
  if (const Call own = PendingCalls::Get().Take(handle)) {
    later.error_flags = flags;
    Complete(*own, status);
  }
}

void DynamicKernel::Complete(PendingCall& call, Status status) {
  // The status of a cancelled step replaces the kernel's error.
  const runtime::Cancellation* const step = call.ctx.cancellation;
  if (!status.ok() && step != nullptr && step->cancelled()) status = step->status();
  Result<std::vector<Tensor>> outputs = Outputs(call.ctx, std::move(status));
  if (stateful()) BeginNext();
  runtime::Completion done = std::move(call.later->done);
  // The step, its session and their devices may be gone after this.
  call.ctx.inputs.clear();
  call.ctx.temps.clear();
  done(std::move(outputs));
}

void CompletePending(const weir_ctx* handle, Status status) {
  if (const std::shared_ptr<PendingCall> call = PendingCalls::Get().Take(handle)) {
    call->kernel->Complete(*call, std::move(status));
  }
}

void DynamicKernel::Withdraw(const PendingCall* withdrawn) {
  Call call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(waiting_, withdrawn, [](const Call& one) { return one.get(); });
    if (found == waiting_.end()) return;  // already started
    call = std::move(*found);
    waiting_.erase(found);
  }
  runtime::Completion done = std::move(call->later->done);
  const Status why = call->ctx.cancellation->status();
  call.reset();  // its tensors go before their step
  done(why);
}

void DynamicKernel::BeginNext() {
  struct Job {
    DynamicKernel* kernel;
    Call call;
  };
  std::unique_ptr<Job> job;
  {
    const std::lock_guard lock(mutex_);
    running_ = !waiting_.empty();
    if (!running_) return;
    job = std::make_unique<Job>(Job{this, std::move(waiting_.front())});
    waiting_.pop_front();
  }
  // Runs on another thread, since this one belongs to the plugin.
  const auto begin = [](void* arg) {
    const std::unique_ptr<Job> own(static_cast<Job*>(arg));
    own->kernel->Begin(own->call);
  };
  if (runtime::ComputePool::Get().Submit(begin, job.get()) || runtime::RunBlocking(begin, job.get()).ok()) {
    (void)job.release();
  } else {
    begin(job.release());
  }
}

}  // namespace weir::kernel

using weir::Status;
using weir::Tensor;

Status weir_ctx::Input(uint32_t i, weir_tensor* tensor) const {
  if (i >= inputs.size()) return weir::OutOfRange("input {} of a node with {} inputs", i, inputs.size());
  weir_tensor view = weir::kernel::ViewOf(inputs[i]);
  if (Writable(i)) view.flags &= ~uint32_t{WEIR_TENSOR_READ_ONLY};
  return weir::kernel::WriteOut(view, tensor);
}

Status weir_ctx::Range(std::string_view arg, uint32_t* first, uint32_t* count) const {
  for (const weir::kernel::InputRange& range : ranges) {
    if (range.name != arg) continue;
    *first = range.first;
    *count = range.count;
    return {};
  }
  return weir::NotFound("the op has no input argument '{}'", arg);
}

Status weir_ctx::CheckOutput(uint32_t i) const {
  if (i < outputs.size()) return {};
  return weir::OutOfRange("output {} of a node with {} outputs", i, outputs.size());
}

bool weir_ctx::HostInput(uint32_t i) const {
  return !weir::HasFixedSize(inputs[i].dtype()) || weir::kernel::InMask(places->host_inputs, places->input_args, i);
}

bool weir_ctx::HostOutput(uint32_t i) const {
  return !weir::HasFixedSize(output_types[i]) || weir::kernel::InMask(places->host_outputs, places->output_args, i);
}

bool weir_ctx::Writable(uint32_t i) const {
  return weir::kernel::InMask(places->variable_writes, places->input_args, i);
}

Status weir_ctx::Output(uint32_t i, const weir_shape* shape, weir_tensor* tensor) {
  WEIR_TRY(CheckOutput(i));
  if (shape == nullptr || shape->rank == WEIR_UNKNOWN_RANK || (shape->rank != 0 && shape->dims == nullptr)) {
    return weir::InvalidArgument("output {} needs a shape", i);
  }
  WEIR_ASSIGN(weir::Shape made, weir::Shape::Make(std::span<const int64_t>(shape->dims, shape->rank)));
  weir::Result<Tensor> output = HostOutput(i) ? Tensor::Make(output_types[i], std::move(made))
                                              : Tensor::Make(output_types[i], std::move(made), *allocator);
  if (!output.ok()) return output.status();
  outputs[i] = std::move(*output);
  weir_tensor view = weir::kernel::ViewOf(outputs[i]);
  view.flags &= ~uint32_t{WEIR_TENSOR_READ_ONLY};
  return weir::kernel::WriteOut(view, tensor);
}

Status weir_ctx::SetOutput(uint32_t i, const weir_tensor* tensor) {
  WEIR_TRY(CheckOutput(i));
  const weir::DType dtype = output_types[i];
  if (tensor == nullptr || tensor->rank == WEIR_UNKNOWN_RANK || (tensor->rank != 0 && tensor->dims == nullptr)) {
    return weir::InvalidArgument("output {} needs a tensor with a shape", i);
  }
  if (tensor->dtype != static_cast<uint32_t>(dtype)) {
    return weir::InvalidArgument("output {} has type {}, but the tensor given for it {}", i, Name(dtype),
                                 Name(static_cast<weir::DType>(tensor->dtype)));
  }
  WEIR_ASSIGN(weir::Shape shape, weir::Shape::Make(std::span<const int64_t>(tensor->dims, tensor->rank)));
  const auto same_memory = [tensor](const Tensor& held) {
    const weir_buf own = weir::kernel::ViewOf(held).buf;
    return held.buffer() && own.space == tensor->buf.space && own.handle == tensor->buf.handle &&
           own.offset == tensor->buf.offset;
  };
  const auto in = std::find_if(inputs.begin(), inputs.end(), same_memory);
  const auto out = std::find_if(outputs.begin(), outputs.end(), same_memory);
  if (in == inputs.end() && out == outputs.end()) {
    return weir::InvalidArgument("output {}: the tensor is none of this call's", i);
  }
  const bool from_host = in != inputs.end() ? HostInput(static_cast<uint32_t>(in - inputs.begin()))
                                            : HostOutput(static_cast<uint32_t>(out - outputs.begin()));
  if (from_host != HostOutput(i)) {
    return weir::InvalidArgument("output {} belongs in {} memory, where the tensor is not", i,
                                 HostOutput(i) ? "host" : "device");
  }
  const Tensor& owner = in != inputs.end() ? *in : *out;
  weir::Result<Tensor> shared =
      owner.dtype() == dtype ? owner.Reshaped(shape) : Tensor::Over(dtype, shape, owner.buffer(), owner.offset());
  if (!shared.ok()) return shared.status();
  outputs[i] = std::move(*shared);
  return {};
}

bool weir_ctx::Forward(uint32_t in, uint32_t out) {
  if (in >= inputs.size() || out >= outputs.size()) return false;
  const Tensor& input = inputs[in];
  const size_t size = weir::SizeOf(output_types[out]);
  if (Writable(in) || !weir::SoleHolder(input)) return false;
  if (HostInput(in) != HostOutput(out)) return false;
  if (size == 0 || size != weir::SizeOf(input.dtype())) return false;
  weir::Result<Tensor> taken = Tensor::Over(output_types[out], input.shape(), input.buffer(), input.offset());
  if (!taken.ok()) return false;
  outputs[out] = std::move(*taken);
  return true;
}

Status weir_ctx::Temp(uint64_t bytes, uint32_t space, weir_buf* buf) {
  if (space != WEIR_SPACE_DEVICE && space != WEIR_SPACE_HOST) {
    return weir::InvalidArgument("temporary memory in space {}: wanted device (0) or host (1)", space);
  }
  weir::Allocator& from = space == WEIR_SPACE_DEVICE ? *allocator : weir::HostAllocator();
  WEIR_ASSIGN(std::shared_ptr<weir::Buffer> memory, from.Allocate(bytes));
  temps.push_back(std::move(memory));
  return weir::kernel::WriteOut(temps.back()->memory(), buf);
}
