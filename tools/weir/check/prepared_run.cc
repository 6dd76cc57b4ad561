#include "tools/weir/check/prepared_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/launch.h"
#include "core/tensor/buffer.h"
#include "tools/weir/check/device_memory.h"

namespace weir::check {
namespace {

constexpr uint64_t kGuardBytes = 256;
constexpr uint8_t kGuardByte = 0x5c;

// The address passed to kernels, computed as in plans.
uint64_t AddressIn(const weir_buf& memory) {
  return memory.host != nullptr ? reinterpret_cast<uint64_t>(memory.host) : memory.offset;
}

// Memory between two guards that no kernel may write: host memory, or device memory with a mirror on the host.
class Guarded final : public Buffer {
 public:
  // Allocates memory filled with `fill`, on the device and in the mirror. `device` outlives it; null means host memory.
  static Result<std::shared_ptr<Guarded>> Make(device::Device* device, uint64_t bytes, uint8_t fill) {
    const bool guards = device == nullptr || (device->info().flags & WEIR_DEVICE_NO_OFFSET) == 0;
    uint64_t whole = std::max<uint64_t>(bytes, 1);
    if (guards && __builtin_add_overflow(bytes, 2 * kGuardBytes + kBufferAlignment, &whole)) {
      return ResourceExhausted("{} bytes between guards", bytes);
    }
    if (!FitsHostMemory(whole)) return ResourceExhausted("{} bytes exceed the memory", whole);
    std::vector<uint8_t> storage(whole, kGuardByte);
    std::shared_ptr<Buffer> there;
    uint64_t base = reinterpret_cast<uint64_t>(storage.data());
    if (device != nullptr) {
      WEIR_ASSIGN(there, device->allocator().Allocate(whole));
      base = AddressIn(there->memory());
    }
    uint64_t lead = 0;
    if (guards) lead = kGuardBytes + (kBufferAlignment - (base + kGuardBytes) % kBufferAlignment) % kBufferAlignment;
    std::memset(storage.data() + lead, fill, bytes);
    weir_buf memory = there != nullptr ? there->memory() : HostRange(storage.data(), whole);
    memory.bytes = bytes;
    if (memory.host != nullptr) memory.host = static_cast<char*>(memory.host) + lead;
    if (there != nullptr) memory.offset += lead;
    if (there == nullptr) memory.handle += lead;
    std::shared_ptr<Guarded> made(new Guarded(memory, device, std::move(there), std::move(storage), lead));
    WEIR_TRY(made->Send());
    return made;
  }
  uint8_t* data() { return storage_.data() + lead_; }
  // Copies the whole mirror to the device, or back.
  Status Send() { return there_ ? device_->Copy(there_->memory(), Here(), storage_.size()) : Status(); }
  Status Fetch() { return there_ ? device_->Copy(Here(), there_->memory(), storage_.size()) : Status(); }
  // True if the guards are unchanged.
  bool intact() const {
    const auto clean = [](uint8_t byte) { return byte == kGuardByte; };
    if (lead_ == 0) return true;  // it has no guards
    const auto first = storage_.begin() + static_cast<std::ptrdiff_t>(lead_);
    return std::all_of(storage_.begin(), first, clean) &&
           std::all_of(first + static_cast<std::ptrdiff_t>(bytes()), storage_.end(), clean);
  }

 private:
  Guarded(const weir_buf& memory, device::Device* device, std::shared_ptr<Buffer> there, std::vector<uint8_t> storage,
          uint64_t lead)
      : Buffer(memory), device_(device), there_(std::move(there)), storage_(std::move(storage)), lead_(lead) {}
  weir_buf Here() { return HostRange(storage_.data(), storage_.size()); }

  device::Device* device_;
  std::shared_ptr<Buffer> there_;  // on the device
  std::vector<uint8_t> storage_;   // moved once, which does not move its elements
  uint64_t lead_;
};

// Guarded memory of a device; null means host memory.
class GuardedMemory final : public Allocator {
 public:
  GuardedMemory(device::Device* device, uint8_t fill) : device_(device), fill_(fill) {}

  Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override {
    WEIR_ASSIGN(std::shared_ptr<Guarded> made, Guarded::Make(device_, bytes, fill_));
    made_.push_back(made);
    return std::shared_ptr<Buffer>(std::move(made));
  }
  // Copies a host tensor into guarded memory.
  Result<Tensor> Copy(const Tensor& value) {
    WEIR_ASSIGN(const std::shared_ptr<Guarded> made, Guarded::Make(device_, value.bytes(), 0));
    made_.push_back(made);
    if (value.bytes() != 0) std::memcpy(made->data(), value.raw(), value.bytes());
    WEIR_TRY(made->Send());
    return Tensor::Over(value.dtype(), value.shape(), made);
  }
  Status Fetch() {
    for (const std::shared_ptr<Guarded>& memory : made_) WEIR_TRY(memory->Fetch());
    return {};
  }

 private:
  device::Device* device_;
  uint8_t fill_;
  std::vector<std::shared_ptr<Guarded>> made_;
};

// All memory of a call is guarded.
Guarded& GuardedOf(const std::shared_ptr<Buffer>& buffer) { return static_cast<Guarded&>(*buffer); }

// One call: its memory and results.
class Call {
 public:
  Call(std::shared_ptr<const kernel::PreparedKernel> kernel, const KernelTrial& trial, device::Device& device,
       const RunOptions& options)
      : kernel_(std::move(kernel)),
        trial_(trial),
        device_(device),
        options_(options),
        host_(nullptr, options.output_fill),
        memory_(device.host_memory() ? nullptr : &device, options.output_fill) {}

  RunResult Run() {
    RunResult result;
    result.status = Launch(result);
    const Status fetched = memory_.Fetch();
    if (result.status.ok()) result.status = fetched;
    if (outputs_.size() == trial_.outputs().size()) Judge(result);
    return result;
  }

 private:
  Status Launch(RunResult& result) {
    for (size_t i = 0; i < trial_.inputs().size(); ++i) {
      GuardedMemory& memory = trial_.inputs()[i].host ? host_ : memory_;
      WEIR_ASSIGN(Tensor input, memory.Copy(trial_.values()[i]));
      inputs_.push_back(std::move(input));
    }
    WEIR_ASSIGN(device::Streams* const streams, device_.streams());
    std::unique_ptr<device::Stream> stream;
    if (streams != nullptr) {
      WEIR_ASSIGN(stream, streams->Acquire());
    }
    kernel::Launch launch(
        kernel_, {.device = &device_, .stream = stream.get(), .allocator = &memory_, .host_allocator = &host_});
    if (options_.in_place != nullptr) launch.InPlace(*options_.in_place);
    Status status = launch.Bind(inputs_, trial_.outputs());
    if (status.ok()) {
      const uint64_t calls_before = HostCalls();
      status = launch.Run();
      result.host_calls = HostCalls() - calls_before;
    }
    outputs_ = launch.TakeOutputs();
    scratch_ = launch.scratch();
    scratch_begin_ = launch.scratch_begin();
    if (stream == nullptr) return status;
    const Status done = stream->Sync();
    streams->Release(std::move(stream));
    return status.ok() ? done : status;
  }

  // True if an output aliases the input.
  bool Written(size_t input) const {
    return std::ranges::any_of(outputs_, [&](const Tensor& o) { return o.buffer() == inputs_[input].buffer(); });
  }

  void Judge(RunResult& result) const {
    const weir_kernel& record = *kernel_->entry().record;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Guarded& memory = GuardedOf(inputs_[i].buffer());
      if (!memory.intact()) result.overrun = fmt::format("bytes beside input {}", i);
      const bool may_change = Written(i) || (trial_.inputs()[i].variable && record.variable_writes != 0);
      if (may_change || inputs_[i].bytes() == 0) continue;
      if (std::memcmp(memory.data(), trial_.values()[i].raw(), inputs_[i].bytes()) != 0) {
        result.changed_input = fmt::format("input {}", i);
      }
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      Guarded& memory = GuardedOf(outputs_[o].buffer());
      if (!memory.intact()) result.overrun = fmt::format("bytes beside output {}", o);
      result.outputs.emplace_back(memory.data(), memory.data() + outputs_[o].bytes());
    }
    result.scratch_overrun = scratch_ != nullptr && !ScratchKept();
  }

  // True if the kernel wrote only the scratch memory that it requested, and no guards.
  bool ScratchKept() const {
    Guarded& memory = GuardedOf(scratch_);
    const auto untouched = [&](uint8_t byte) { return byte == options_.output_fill; };
    uint8_t* const first = memory.data() + scratch_begin_;
    return memory.intact() && std::all_of(memory.data(), first, untouched) &&
           std::all_of(first + kernel_->scratch_bytes(), memory.data() + memory.bytes(), untouched);
  }

  const std::shared_ptr<const kernel::PreparedKernel> kernel_;
  const KernelTrial& trial_;
  device::Device& device_;
  const RunOptions& options_;
  GuardedMemory host_, memory_;
  std::vector<Tensor> inputs_, outputs_;
  std::shared_ptr<Buffer> scratch_;
  uint64_t scratch_begin_ = 0;
};

}  // namespace

RunResult RunPrepared(std::shared_ptr<const kernel::PreparedKernel> kernel, const KernelTrial& trial,
                      device::Device& device, const RunOptions& options) {
  return Call(std::move(kernel), trial, device, options).Run();
}

}  // namespace weir::check
