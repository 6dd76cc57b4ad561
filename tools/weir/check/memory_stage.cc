// Stage memory: blocks, copies and memset of every device that the plugin enumerates.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "tools/weir/check/device_memory.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using kernel::CallPlugin;

constexpr uint64_t kSizes[] = {1, 3, 63, 64, 65, 1000, 4096, 65537, 1 << 20};
constexpr uint64_t kGuard = 64;  // guard bytes on either side of a range that a call may write

Status Copy(const OpenedDevice& device, const weir_buf& to, const weir_buf& from, uint64_t bytes) {
  return CallPlugin(
      "copy", [&](weir_error* error) { return device.api().copy(device.handle(), nullptr, &to, &from, bytes, error); });
}

bool HasOffsets(const OpenedDevice& device) { return (device.found().flags & WEIR_DEVICE_NO_OFFSET) == 0; }

Status CheckBlocks(const OpenedDevice& device) {
  const uint64_t alignment = std::max<uint64_t>(device.found().alignment, 1);
  std::vector<std::unique_ptr<Block>> blocks;
  std::map<uint64_t, uint64_t> ranges;  // begin to end, of memory with addresses
  for (const uint64_t bytes : kSizes) {
    WEIR_ASSIGN(std::unique_ptr<Block> block, Block::Make(device, bytes));
    const weir_buf& memory = block->memory();
    if (memory.bytes < bytes) return FailedPrecondition("a block of {} bytes for {}", memory.bytes, bytes);
    // A handle may be anything; only a host address is known to be one. An offset counts from the handle's memory.
    const bool addressed = memory.host != nullptr;
    const uint64_t begin = addressed ? reinterpret_cast<uint64_t>(memory.host) : memory.offset;
    if (begin % alignment != 0) {
      return FailedPrecondition("a block of {} bytes at {}{:#x} is not aligned to {}", bytes,
                                addressed ? "" : "offset ", begin, alignment);
    }
    if (memory.host == nullptr && (device.found().flags & WEIR_DEVICE_UNIFIED_MEMORY) != 0) {
      return FailedPrecondition("a device with unified memory returns a block without a host address");
    }
    if (memory.host != nullptr) {
      const auto next = ranges.upper_bound(begin);
      const bool overlaps = (next != ranges.end() && next->first < begin + bytes) ||
                            (next != ranges.begin() && std::prev(next)->second > begin);
      if (overlaps) return FailedPrecondition("a block of {} bytes overlaps another block in use", bytes);
      ranges[begin] = begin + bytes;
      std::memset(memory.host, 0x11, bytes);
    }
    blocks.push_back(std::move(block));
  }
  return {};
}

Status CheckExhaustion(const OpenedDevice& device) {
  for (const uint64_t bytes : {uint64_t{1} << 62, uint64_t{1} << 50}) {
    const auto block = Block::Make(device, bytes);
    if (block.ok()) return FailedPrecondition("a block of {} bytes is said to be there", bytes);
    if (block.status().code() != Code::kResourceExhausted) {
      return FailedPrecondition("a block of {} bytes: {}, wanted RESOURCE_EXHAUSTED", bytes,
                                CodeName(block.status().code()));
    }
  }
  return Block::Make(device, 4096).status().Prepend("after a block that was too large: ");
}

// Copies from host to device, within the device, and back; the bytes around the range must not change.
Status CheckCopies(const OpenedDevice& device) {
  for (const uint64_t bytes : kSizes) {
    const uint64_t skew = HasOffsets(device) ? kGuard + 1 : 0;
    const uint64_t whole = bytes + 2 * skew;
    std::vector<uint8_t> sent(whole), back(whole, 0xcc), guard(whole, 0xdd);
    for (uint64_t i = 0; i < whole; ++i) sent[i] = static_cast<uint8_t>(i * 131 + bytes);
    WEIR_ASSIGN(const std::unique_ptr<Block> first, Block::Make(device, whole));
    WEIR_ASSIGN(const std::unique_ptr<Block> second, Block::Make(device, whole));
    WEIR_TRY(Copy(device, second->Range(0, whole), HostRange(guard.data(), whole), whole));
    WEIR_TRY(Copy(device, first->Range(0, whole), HostRange(sent.data(), whole), whole));
    WEIR_TRY(Copy(device, second->Range(skew, bytes), first->Range(skew, bytes), bytes));
    WEIR_TRY(Copy(device, HostRange(back.data(), whole), second->Range(0, whole), whole));
    for (uint64_t i = 0; i < whole; ++i) {
      const bool inside = i >= skew && i < skew + bytes;
      const uint8_t wanted = inside ? sent[i] : 0xdd;
      if (back[i] == wanted) continue;
      return DataLoss("a copy of {} bytes at offset {}: byte {} is {:#x}, wanted {:#x}", bytes, skew, i, back[i],
                      wanted);
    }
  }
  return {};
}

Finding CheckMemset(const OpenedDevice& device) {
  const weir_device_api* api = &device.api();
  if (!WEIR_HAS(api, memset)) return Finding::Skip("it has no memset");
  const auto body = [&]() -> Status {
    for (const uint64_t bytes : kSizes) {
      const uint64_t skew = HasOffsets(device) ? kGuard : 0;
      const uint64_t whole = bytes + 2 * skew;
      std::vector<uint8_t> back(whole, 0xdd);
      WEIR_ASSIGN(const std::unique_ptr<Block> block, Block::Make(device, whole));
      WEIR_TRY(Copy(device, block->Range(0, whole), HostRange(back.data(), whole), whole));
      const weir_buf range = block->Range(skew, bytes);
      WEIR_TRY(CallPlugin("memset", [&](weir_error* error) {
        return api->memset(device.handle(), nullptr, &range, 0x37, bytes, error);
      }));
      WEIR_TRY(Copy(device, HostRange(back.data(), whole), block->Range(0, whole), whole));
      for (uint64_t i = 0; i < whole; ++i) {
        const uint8_t wanted = i >= skew && i < skew + bytes ? 0x37 : 0xdd;
        if (back[i] == wanted) continue;
        return DataLoss("memset of {} bytes at offset {}: byte {} is {:#x}, wanted {:#x}", bytes, skew, i, back[i],
                        wanted);
      }
    }
    return {};
  };
  return body();
}

}  // namespace

std::vector<RuleResult> MemoryStage(const Target& target) {
  return RunInChild("WEIR-MEM-00", target.time_limit_ms, [&](Recorder& recorder) {
    std::vector<std::unique_ptr<OpenedDevice>> devices;
    recorder.Try("WEIR-MEM-00", [&]() -> Finding {
      const Result<Subject> subject = Subject::Start(target);
      if (!subject.ok()) return subject.status();
      if (subject->devices() == nullptr) return Finding::Skip("it has no devices");
      const Result<std::vector<FoundDevice>> found = Enumerate(*subject);
      if (!found.ok()) return found.status();
      for (const FoundDevice& device : *found) {
        Result<std::unique_ptr<OpenedDevice>> open = OpenedDevice::Open(*subject, device);
        if (!open.ok()) return open.status();
        devices.push_back(std::move(*open));
      }
      if (devices.empty()) return Finding::Skip("it finds no device here");
      return Status();
    });
    for (const auto& device : devices) {
      recorder.Try("WEIR-MEM-01", [&] { return CheckBlocks(*device); });
      recorder.Try("WEIR-MEM-02", [&] { return CheckExhaustion(*device); });
      recorder.Try("WEIR-MEM-03", [&] { return CheckCopies(*device); });
      recorder.Try("WEIR-MEM-04", [&] { return CheckMemset(*device); });
    }
  });
}

}  // namespace weir::check
