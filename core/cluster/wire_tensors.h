// Tensors as the bodies of messages: bytes that are sent where they lie, and memory that they arrive in.
#ifndef WEIR_CORE_CLUSTER_WIRE_TENSORS_H_
#define WEIR_CORE_CLUSTER_WIRE_TENSORS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/worker_messages.h"
#include "core/tensor/tensor.h"

namespace weir::cluster {

/// Limits the bytes that peers make this process hold at once. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit) : limit_(limit) {}
  /// Half of the machine's memory, shared by the process.
  static const std::shared_ptr<ByteBudget>& OfProcess();

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

  /// Bytes taken from a budget until it is destroyed.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept;
    ~Charge();

   private:
    friend class ByteBudget;
    std::shared_ptr<ByteBudget> budget_;
    uint64_t bytes_ = 0;
  };
  /// ResourceExhausted names both numbers.
  static Result<Charge> Take(const std::shared_ptr<ByteBudget>& budget, uint64_t bytes);

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

/// Memory for a body of bytes: it is not cleared before.
class ByteBody {
 public:
  ByteBody() = default;
  /// ResourceExhausted if memory runs out.
  static Result<ByteBody> Make(uint64_t bytes);
  char* data() { return bytes_.get(); }
  std::string_view text() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
};

/// Tensors to send. Numbers are sent from their own memory, which it keeps.
class OutgoingTensors {
 public:
  OutgoingTensors() = default;
  /// FailedPrecondition for a value that is not in host memory, Unimplemented for variants.
  static Result<OutgoingTensors> Make(std::vector<Tensor> tensors);
  const std::vector<TensorHead>& heads() const { return heads_; }
  /// Valid as long as this object, also after a move.
  const std::vector<std::span<const std::byte>>& bodies() const { return bodies_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<std::string>> texts_;  // of strings and handles
  std::vector<TensorHead> heads_;
  std::vector<std::span<const std::byte>> bodies_;
};

/// Tensors that arrive.
class IncomingTensors {
 public:
  IncomingTensors() = default;
  /// Memory for bodies of these sizes. InvalidArgument unless each size is that of its type and shape;
  /// ResourceExhausted if the budget or memory runs out. Nothing is allocated before both are checked.
  static Result<IncomingTensors> Make(const std::vector<TensorHead>& heads, std::span<const uint64_t> sizes,
                                      const std::shared_ptr<ByteBudget>& budget);
  /// Where body `i` goes; null if it has no bytes.
  std::byte* to(size_t i);
  size_t size() const { return heads_.size(); }
  /// The tensors, once all bodies are there. InvalidArgument for strings whose lengths do not fit, and for bools other
  /// than 0 and 1. Afterwards this object has none.
  Result<std::vector<Tensor>> Take();

 private:
  std::vector<TensorHead> heads_;
  std::vector<Tensor> tensors_;  // of types with a fixed size
  std::vector<ByteBody> bytes_;  // of others
  ByteBudget::Charge charge_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_WIRE_TENSORS_H_
