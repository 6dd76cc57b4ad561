// The imitated hardware of one example device: delays, hangs and failures of its operations.
#ifndef WEIR_SDK_EXAMPLES_ASYNC_DEVICE_HARDWARE_H_
#define WEIR_SDK_EXAMPLES_ASYNC_DEVICE_HARDWARE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "sdk/abi/plugin.h"
#include "sdk/cpp/device.h"
#include "async_platform.h"

namespace async_device {

/// The failure of an operation; code 0 = none.
struct Fault {
  int32_t code = WEIR_OK;
  uint32_t flags = 0;  // WEIR_ERROR_*
  std::string text;

  explicit operator bool() const { return code != WEIR_OK; }
  /// Writes the fault into the caller's record; returns the code.
  int32_t Tell(const weir::sdk::Error& error) const {
    if (code == WEIR_OK) return WEIR_OK;
    if (error.record() != nullptr) error.record()->flags = flags;
    return error.Fail(code, text);
  }
};

/// A block of memory whose address the host never sees.
class Block {
 public:
  /// Null if memory is exhausted.
  static std::shared_ptr<Block> Make(uint64_t bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  uint64_t number() const { return number_; }
  /// Not a valid address: using it as a pointer faults.
  uint64_t handle() const { return kTag | number_ << 12; }
  char* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  static bool IsHandle(uint64_t handle) { return (handle & kTag) == kTag; }

 private:
  static constexpr uint64_t kTag = uint64_t{0xA5A5} << 48;
  Block(char* base, uint64_t bytes);
  char* const base_;
  const uint64_t bytes_;
  const uint64_t number_;
};

/// The state of one device, which outlives its closing. Thread-safe.
class Hardware {
 public:
  /// The hardware of the device `uid`; created on first use, kept until the process ends.
  static Hardware& Of(std::string_view uid);
  static std::span<const weir_option_spec* const> OptionSpecs();
  /// Configures one device, or all that were ever opened if `uid` is empty. False if there is none.
  static bool Configure(std::string_view uid, const weir::sdk::Options& options);

  const std::string& uid() const { return uid_; }
  void Configure(const weir::sdk::Options& options);
  /// State after a reset of the machine: not lost, counters at 0.
  void Revive();
  bool lost() const { return lost_.load(); }

  /// Called by a stream before an operation; `copied` is the number of bytes if it is a copy. Waits for the configured
  /// time; hangs or reports the loss of the device, as configured.
  Fault Begin(uint64_t copied);
  /// Releases hanging operations, because the device closes.
  void Unhang();

  /// Null if memory is exhausted, or if allocations are configured to fail.
  std::shared_ptr<Block> Allocate(uint64_t bytes);
  /// The block behind a handle; null if it was freed.
  std::shared_ptr<Block> Find(uint64_t handle);
  /// Removes the block from the table; operations that hold it may continue.
  std::shared_ptr<Block> Remove(uint64_t handle);
  uint64_t allocated() const;
  uint64_t capacity() const { return kCapacity; }

 private:
  static constexpr uint64_t kCapacity = uint64_t{4} << 30;
  explicit Hardware(std::string_view uid) : uid_(uid) {}

  const std::string uid_;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  std::map<uint64_t, std::shared_ptr<Block>> blocks_;
  uint64_t allocated_ = 0;
  uint64_t begun_ = 0;
  int64_t latency_us_ = 0;
  int64_t jitter_us_ = 0;
  int64_t bytes_per_us_ = 0;
  bool fail_alloc_ = false;
  int64_t lose_at_ = -1;
  int64_t hang_at_ = -1;
  bool hanging_ = false;
  std::minstd_rand random_;
};

/// Counters and the first fault of all devices of the process. Thread-safe.
class Journal {
 public:
  static Journal& Get();
  void Race(const std::string& text);
  void Misuse(const std::string& text);
  void Operation() { ++operations_; }
  void Wait() { ++waits_; }
  void Read(weir_async_counts* counts);
  std::string first_fault();
  void Reset();

 private:
  void Note(const std::string& text);
  std::atomic<uint64_t> operations_{0}, waits_{0}, races_{0}, misuses_{0};
  std::mutex mutex_;  // protects first_
  std::string first_;
};

}  // namespace async_device

#endif  // WEIR_SDK_EXAMPLES_ASYNC_DEVICE_HARDWARE_H_
