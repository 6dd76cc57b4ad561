#include "tools/weir/check/prepared_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "tools/weir/check/device_memory.h"

namespace weir::check {
namespace {

constexpr uint64_t kGuardBytes = 256;
constexpr uint8_t kGuardByte = 0x5c;

uint64_t BytesOf(const kernel::OperandSpec& spec) {
  const Result<uint64_t> bytes = PayloadBytes(spec.dtype, spec.shape);
  return bytes.ok() ? *bytes : kMostBytes;
}

// The address that kernels are given, as plans have it.
uint64_t AddressIn(const weir_buf& memory) {
  return memory.host != nullptr ? reinterpret_cast<uint64_t>(memory.host) : memory.offset;
}

// One call: its memory, and what it left there.
class Call {
 public:
  Call(const kernel::PreparedKernel& kernel, const KernelTrial& trial, device::Device& device,
       const RunOptions& options)
      : kernel_(kernel), trial_(trial), device_(device), options_(options) {}

  RunResult Run() {
    RunResult result;
    result.status = Place();
    if (result.status.ok() && kernel_.fn() != nullptr) result.status = Launch(result.host_calls);
    for (std::deque<Guarded>* all : {&inputs_, &outputs_, &scratch_}) {
      for (Guarded& memory : *all) {
        if (result.status.ok()) result.status = memory.Fetch();
      }
    }
    if (results_.size() == trial_.outputs().size()) Judge(result);
    return result;
  }

 private:
  Status Place() {
    for (size_t i = 0; i < trial_.inputs().size(); ++i) {
      const kernel::OperandSpec& spec = trial_.inputs()[i];
      WEIR_TRY(Add(inputs_, spec.host, BytesOf(spec), 0));
      if (BytesOf(spec) != 0) std::memcpy(inputs_.back().data(), trial_.values()[i].raw(), BytesOf(spec));
      AddRegister(inputs_.back(), spec);
    }
    written_.resize(inputs_.size());
    for (size_t o = 0; o < trial_.outputs().size(); ++o) {
      const kernel::OperandSpec& spec = trial_.outputs()[o];
      WEIR_TRY(Add(outputs_, spec.host, BytesOf(spec), options_.output_fill));
      Guarded* place = &outputs_.back();
      const auto share = [&](const weir_alias& alias) {
        place = &inputs_[alias.input];
        written_[alias.input] = true;
      };
      for (const weir_alias& alias : kernel_.aliases()) {
        if (alias.output == o && alias.kind == WEIR_ALIAS_MUST) share(alias);
      }
      if (options_.in_place != nullptr && options_.in_place->output == o) share(*options_.in_place);
      results_.push_back(place);
      AddRegister(*place, spec);
    }
    if (kernel_.scratch_bytes() != 0) {
      WEIR_TRY(
          Add(scratch_, false, kernel_.scratch_bytes(), 0xb7, std::max<uint64_t>(kernel_.scratch_alignment(), 64)));
      regs_.push_back(scratch_.back().Register(&shapes_.emplace_back(), DType::kUint8));
    }
    for (std::deque<Guarded>* all : {&inputs_, &outputs_, &scratch_}) {
      for (Guarded& memory : *all) WEIR_TRY(memory.Send());
    }
    return {};
  }

  Status Add(std::deque<Guarded>& to, bool on_host, uint64_t bytes, uint8_t fill, uint64_t alignment = 64) {
    device::Device* const device = on_host || device_.host_memory() ? nullptr : &device_;
    WEIR_ASSIGN(Guarded made, Guarded::Make(device, bytes, fill, alignment));
    to.push_back(std::move(made));
    return {};
  }

  void AddRegister(const Guarded& memory, const kernel::OperandSpec& spec) {
    regs_.push_back(memory.Register(&shapes_.emplace_back(kernel::ViewOf(spec.shape)), spec.dtype));
  }

  Status Launch(uint64_t& host_calls) {
    WEIR_ASSIGN(device::Streams* const streams, device_.streams());
    std::unique_ptr<device::Stream> stream;
    if (streams != nullptr) {
      WEIR_ASSIGN(stream, streams->Acquire());
    }
    const uint64_t calls_before = HostCalls();
    Status status = kernel::CallPlugin("fn", [&](weir_error* error) {
      weir_env env{};
      env.struct_size = sizeof(env);
      env.tile_end = kernel_.tiles();
      env.error = error;
      if (stream != nullptr) {
        env.stream = stream->handle();
        env.native_stream = stream->native();
      }
      return kernel_.fn()(kernel_.state(), regs_.data(), &env);
    });
    host_calls = HostCalls() - calls_before;
    if (stream == nullptr) return status;
    stream->Launched();
    const Status done = stream->Sync();
    streams->Release(std::move(stream));
    return status.ok() ? done : status;
  }

  void Judge(RunResult& result) const {
    const weir_kernel& record = *kernel_.entry().record;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].intact()) result.overrun = fmt::format("bytes beside input {}", i);
      const bool may_change = written_[i] || (trial_.inputs()[i].variable && record.variable_writes != 0);
      if (may_change || inputs_[i].bytes() == 0) continue;
      if (std::memcmp(inputs_[i].data(), trial_.values()[i].raw(), inputs_[i].bytes()) != 0) {
        result.changed_input = fmt::format("input {}", i);
      }
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (!outputs_[o].intact()) result.overrun = fmt::format("bytes beside output {}", o);
      result.outputs.emplace_back(results_[o]->data(), results_[o]->data() + outputs_[o].bytes());
    }
    for (const Guarded& scratch : scratch_) result.scratch_overrun = !scratch.intact();
  }

  const kernel::PreparedKernel& kernel_;
  const KernelTrial& trial_;
  device::Device& device_;
  const RunOptions& options_;
  std::deque<Guarded> inputs_, outputs_, scratch_;
  std::vector<const Guarded*> results_;  // where each output lies
  std::vector<bool> written_;            // an output lies in the input
  std::deque<weir_shape> shapes_;
  std::vector<weir_reg> regs_;
};

}  // namespace

Result<Guarded> Guarded::Make(device::Device* device, uint64_t bytes, uint8_t fill, uint64_t alignment) {
  Guarded made;
  made.bytes_ = bytes;
  const bool guards = device == nullptr || (device->info().flags & WEIR_DEVICE_NO_OFFSET) == 0;
  uint64_t whole = std::max<uint64_t>(bytes, 1);
  if (guards && __builtin_add_overflow(bytes, 2 * kGuardBytes + alignment, &whole)) {
    return ResourceExhausted("{} bytes aligned to {}", bytes, alignment);
  }
  if (!FitsHostMemory(whole)) return ResourceExhausted("{} bytes are more than there is memory", whole);
  made.storage_.assign(whole, kGuardByte);
  uint64_t base = reinterpret_cast<uint64_t>(made.storage_.data());
  if (device != nullptr) {
    made.device_ = device;
    WEIR_ASSIGN(made.there_, device->allocator().Allocate(whole));
    base = AddressIn(made.there_->memory());
  }
  if (guards) made.lead_ = kGuardBytes + (alignment - (base + kGuardBytes) % alignment) % alignment;
  std::memset(made.data(), fill, bytes);
  return made;
}

weir_reg Guarded::Register(const weir_shape* shape, DType dtype) const {
  weir_reg reg{};
  reg.shape = shape;
  reg.dtype = static_cast<uint32_t>(dtype);
  reg.data = (there_ ? AddressIn(there_->memory()) : reinterpret_cast<uint64_t>(storage_.data())) + lead_;
  reg.handle = there_ ? there_->memory().handle : reg.data;
  return reg;
}

weir_buf Guarded::Here() { return HostRange(storage_.data(), storage_.size()); }
Status Guarded::Send() { return there_ ? device_->Copy(there_->memory(), Here(), storage_.size()) : Status(); }
Status Guarded::Fetch() { return there_ ? device_->Copy(Here(), there_->memory(), storage_.size()) : Status(); }

bool Guarded::intact() const {
  const auto clean = [](uint8_t byte) { return byte == kGuardByte; };
  const uint8_t* const end = storage_.data() + storage_.size();
  if (lead_ == 0) return true;  // it has no guards
  return std::all_of(storage_.data(), data(), clean) && std::all_of(data() + bytes_, end, clean);
}

RunResult RunPrepared(const kernel::PreparedKernel& kernel, const KernelTrial& trial, device::Device& device,
                      const RunOptions& options) {
  return Call(kernel, trial, device, options).Run();
}

}  // namespace weir::check
