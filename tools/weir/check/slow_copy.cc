#include "tools/weir/check/slow_copy.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/base/errors.h"
#include "tools/weir/check/device_memory.h"

namespace weir::check {
namespace {

constexpr int64_t kChainBytes = int64_t{4} << 20;
constexpr int kLongest = 1000;

weir_buf MemoryOf(const Tensor& tensor) {
  weir_buf memory = tensor.buffer()->memory();
  memory.offset += tensor.offset();
  memory.bytes = tensor.bytes();
  if (memory.host != nullptr) memory.host = static_cast<std::byte*>(memory.host) + tensor.offset();
  return memory;
}

}  // namespace

Result<std::unique_ptr<SlowCopies>> SlowCopies::Make(device::Device& device, double chain_ns) {
  std::unique_ptr<SlowCopies> made(new SlowCopies(device));
  WEIR_ASSIGN(const Tensor zeros, Tensor::Make(DType::kUint8, Shape::Of({kChainBytes})));
  WEIR_ASSIGN(made->from_, device.FromHost(zeros));
  for (int i = 0; i < kMostStreams; ++i) {
    WEIR_ASSIGN(Tensor to, device.FromHost(zeros));
    made->to_.push_back(std::move(to));
  }
  WEIR_TRY(made->Measure(chain_ns));
  return made;
}

Status SlowCopies::Chain(device::Stream& stream, const Tensor& to, int length) {
  for (int i = 0; i < length; ++i) WEIR_TRY(stream.Copy(MemoryOf(to), MemoryOf(from_), kChainBytes));
  return {};
}

// The least time of some chains says how many copies take as long as wanted on an idle machine.
Status SlowCopies::Measure(double chain_ns) {
  WEIR_ASSIGN(device::Streams* const streams, device_.streams());
  WEIR_ASSIGN(std::unique_ptr<device::Stream> stream, streams->Acquire());
  constexpr int kCopies = 4;
  double least = chain_ns;
  Status status;
  for (int round = 0; round < 5 && status.ok(); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    status = Chain(*stream, to_[0], kCopies);
    const Status done = stream->Sync();
    if (status.ok()) status = done;
    least = std::min(least, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  streams->Release(std::move(stream));
  length_ = std::clamp(static_cast<int>(chain_ns * kCopies / std::max(least, 1.0)), 1, kLongest);
  return status;
}

cases::Sender SlowCopies::Sender() {
  auto behind = std::make_shared<std::set<const device::Stream*>>();
  return [this, behind](const Tensor& value, device::Device& device, device::Stream& stream) -> Result<Tensor> {
    WEIR_ASSIGN(const Tensor zeros, Tensor::Make(value.dtype(), value.shape()));
    std::fill_n(const_cast<std::byte*>(zeros.raw()), zeros.bytes(), std::byte{0});
    WEIR_ASSIGN(Tensor there, device.FromHost(zeros));
    if (value.bytes() == 0) return there;
    if (behind->insert(&stream).second) {
      WEIR_TRY(Chain(stream, to_[(behind->size() - 1) % kMostStreams], length_));
    }
    const weir_buf from = HostRange(const_cast<std::byte*>(value.raw()), value.bytes());
    WEIR_TRY(stream.Copy(MemoryOf(there), from, value.bytes()));
    return there;
  };
}

}  // namespace weir::check
