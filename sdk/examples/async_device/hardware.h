// What one device of the example does to the work that it is given: how long things take, and what goes wrong.
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

/// Why work fails; code 0 = it does not.
struct Fault {
  int32_t code = WEIR_OK;
  uint32_t flags = 0;  // WEIR_ERROR_*
  std::string text;

  explicit operator bool() const { return code != WEIR_OK; }
  /// Into the caller's record; returns the code.
  int32_t Tell(const weir::sdk::Error& error) const {
    if (code == WEIR_OK) return WEIR_OK;
    if (error.record() != nullptr) error.record()->flags = flags;
    return error.Fail(code, text);
  }
};

/// A piece of memory with an address of its own, which the host is never told.
class Block {
 public:
  /// Null when the system has no memory left.
  static std::shared_ptr<Block> Make(uint64_t bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  uint64_t number() const { return number_; }
  /// No address of this machine: whoever takes it for a pointer gets a fault.
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

/// One device's clockwork, also while it is closed. Thread-safe.
class Hardware {
 public:
  /// Of the device with this uid; made on first use, kept until the process ends.
  static Hardware& Of(std::string_view uid);
  static std::span<const weir_option_spec* const> OptionSpecs();
  /// For one device, or for all that were ever opened when `uid` is empty. False when there is none.
  static bool Configure(std::string_view uid, const weir::sdk::Options& options);

  const std::string& uid() const { return uid_; }
  void Configure(const weir::sdk::Options& options);
  /// As after a reset of the machine: not lost, nothing counted.
  void Revive();
  bool lost() const { return lost_.load(); }

  /// Called by a stream before an operation, which moves `copied` bytes if it is a copy. Takes its time; hangs, or
  /// tells of the loss of the device, as configured.
  Fault Begin(uint64_t copied);
  /// Lets go what hangs, because the device closes.
  void Unhang();

  /// Null without memory, or when allocations are to fail.
  std::shared_ptr<Block> Allocate(uint64_t bytes);
  /// The block behind a handle, null when it was freed.
  std::shared_ptr<Block> Find(uint64_t handle);
  /// Takes the block out of the table; work that holds it may go on.
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

/// What the devices of the process have seen. Thread-safe.
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
