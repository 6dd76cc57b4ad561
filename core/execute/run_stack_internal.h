// The elements of one stack of a run, all of one size, one behind the other.
#ifndef WEIR_CORE_EXECUTE_RUN_STACK_INTERNAL_H_
#define WEIR_CORE_EXECUTE_RUN_STACK_INTERNAL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/status.h"
#include "core/plan/plan.h"
#include "core/tensor/buffer.h"

namespace weir::execute {

/// Not thread-safe: the tasks of a plan that use a stack run one after the other.
class RunStack {
 public:
  explicit RunStack(const plan::PlannedStack& stack) : bytes_(stack.bytes), most_(stack.most) {}

  void Clear() { depth_ = 0; }
  bool empty() const { return depth_ == 0; }
  bool full() const { return depth_ == room_; }
  uint64_t memory_bytes() const { return memory_ ? memory_->bytes() : 0; }

  /// There must be room.
  void Push(const std::byte* element) { Copy(At(depth_++), element); }
  /// It must not be empty.
  void Pop(std::byte* element) { Copy(element, At(--depth_)); }

  /// Makes room for one more element at least. InvalidArgument, naming the op, beyond the most elements.
  Status Grow(Allocator& allocator, std::string_view op) {
    if (most_ >= 0 && depth_ >= static_cast<uint64_t>(most_)) {
      return InvalidArgument("Stack[{}] overflowed its max_size ({})", op, most_);
    }
    uint64_t room = std::max<uint64_t>(2 * room_, kLeastBytes / std::max<uint64_t>(bytes_, 1) + 1);
    if (most_ >= 0) room = std::min(room, static_cast<uint64_t>(most_));
    if (bytes_ > 0) {
      WEIR_ASSIGN(std::shared_ptr<Buffer> larger, allocator.Allocate(room * bytes_));
      if (depth_ > 0) std::memcpy(larger->host(), memory_->host(), depth_ * bytes_);
      memory_ = std::move(larger);
      base_ = memory_->host();
    }
    room_ = room;
    return Status();
  }

  /// Between runs: gives back memory that is too large to be kept for the next one.
  void Shrink() {
    depth_ = 0;
    if (memory_bytes() <= kKeptBytes) return;
    memory_.reset();
    base_ = nullptr;
    room_ = 0;
  }

 private:
  static constexpr uint64_t kLeastBytes = 4096;
  static constexpr uint64_t kKeptBytes = uint64_t{16} << 20;

  std::byte* At(uint64_t element) const { return base_ + element * bytes_; }
  void Copy(std::byte* to, const std::byte* from) const {
    if (bytes_ == sizeof(uint32_t)) {  // scalars without a call
      std::memcpy(to, from, sizeof(uint32_t));
    } else if (bytes_ == sizeof(uint64_t)) {
      std::memcpy(to, from, sizeof(uint64_t));
    } else if (bytes_ > 0) {
      std::memcpy(to, from, bytes_);
    }
  }

  uint64_t bytes_;  // of an element
  int64_t most_;    // elements; negative: unlimited
  uint64_t depth_ = 0;
  uint64_t room_ = 0;  // elements
  std::byte* base_ = nullptr;
  std::shared_ptr<Buffer> memory_;
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_RUN_STACK_INTERNAL_H_
