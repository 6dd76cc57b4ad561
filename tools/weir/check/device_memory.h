// Device memory for the rules of `weir check`, and ranges of it.
#ifndef WEIR_TOOLS_WEIR_CHECK_DEVICE_MEMORY_H_
#define WEIR_TOOLS_WEIR_CHECK_DEVICE_MEMORY_H_

#include <memory>

#include "core/device/error_record.h"
#include "tools/weir/check/subject.h"

namespace weir::check {

/// A block of device memory, freed by its destructor. The device outlives it.
class Block {
 public:
  static Result<std::unique_ptr<Block>> Make(const OpenedDevice& device, uint64_t bytes) {
    std::unique_ptr<Block> block(new Block(device));
    block->memory_.struct_size = sizeof(weir_buf);
    WEIR_TRY(device::CallPlugin("alloc", [&](weir_error* error) {
      return device.api().alloc(device.handle(), bytes, WEIR_SPACE_DEVICE, &block->memory_, error);
    }));
    block->held_ = true;
    return block;
  }
  ~Block() {
    if (held_) device_.api().free(device_.handle(), &memory_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const weir_buf& memory() const { return memory_; }
  /// The range [offset, offset + bytes) of the block.
  weir_buf Range(uint64_t offset, uint64_t bytes) const {
    weir_buf range = memory_;
    range.offset += offset;
    range.bytes = bytes;
    if (range.host != nullptr) range.host = static_cast<char*>(range.host) + offset;
    return range;
  }

 private:
  explicit Block(const OpenedDevice& device) : device_(device) {}
  const OpenedDevice& device_;
  weir_buf memory_{};
  bool held_ = false;
};

inline weir_buf HostRange(void* data, uint64_t bytes) {
  weir_buf range{};
  range.struct_size = sizeof(range);
  range.space = WEIR_SPACE_HOST;
  range.handle = reinterpret_cast<uint64_t>(data);
  range.bytes = bytes;
  range.host = data;
  return range;
}

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_DEVICE_MEMORY_H_
