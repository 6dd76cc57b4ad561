// Race detector for memory accesses of streams, with one vector clock per stream.
//
// Every operation is checked when it is enqueued, so that the result does not depend on timing. An access is in order
// if each operation that it depends on comes earlier on the same stream, or before an awaited event of another stream,
// or before a point that the host has waited for. Each range keeps its last writer and all readers since.
#ifndef WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ORDER_H_
#define WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ORDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace async_device {

/// For each stream, the number of its operations that are known to be complete or ordered before.
class Clock {
 public:
  uint64_t At(uint32_t stream) const { return stream < ticks_.size() ? ticks_[stream] : 0; }
  void Set(uint32_t stream, uint64_t tick) {
    if (stream >= ticks_.size()) ticks_.resize(stream + 1);
    ticks_[stream] = tick;
  }
  void Join(const Clock& other) {
    for (uint32_t s = 0; s < other.ticks_.size(); ++s) {
      if (other.ticks_[s] > At(s)) Set(s, other.ticks_[s]);
    }
  }

 private:
  std::vector<uint64_t> ticks_;
};

/// A range of one block of memory. Block 0 is the host's, by address.
struct Access {
  uint64_t block = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writes = false;
};

/// All streams and blocks of the process. Thread-safe. Checking functions return the fault, naming both operations, or
/// an empty text.
class Order {
 public:
  static Order& Get();

  uint32_t AddStream();
  /// Called when the stream's work has ended.
  void RemoveStream(uint32_t stream);
  /// Checks and records the next operation of a stream.
  std::string Enqueue(uint32_t stream, std::string_view name, std::span<const Access> accesses);
  /// Checks and records a synchronous operation of the host.
  std::string OnHost(std::string_view name, std::span<const Access> accesses);
  /// The operations ordered before the stream's next operation.
  Clock Now(uint32_t stream);
  /// Orders the stream's next operation after all operations in `clock`.
  void Wait(uint32_t stream, const Clock& clock);
  /// Records that the operations in `clock` are complete, as the host has waited for them.
  void HostKnows(const Clock& clock);
  /// Checks and records the freeing of a block by the host, or on a stream in its order.
  std::string Free(uint64_t block);
  std::string FreeOn(uint32_t stream, uint64_t block);

 private:
  struct Stamp {
    uint32_t stream = 0;
    uint64_t tick = 0;  // 0 = ordered before everything
    std::shared_ptr<const std::string> name;
  };
  struct Segment {
    uint64_t end = 0;
    Stamp writer;
    std::vector<Stamp> readers;  // after the writer, the last of each stream
  };
  using Segments = std::map<uint64_t, Segment>;  // by begin, disjoint

  // Call the functions below with mutex_ held.
  static void Cut(Segments& segments, uint64_t at);
  static std::string Check(Segments& segments, const Access& access, const Clock& clock, std::string_view name);
  static void Remember(Segments& segments, const Access& access, const Stamp& stamp);
  void Forget(Segments& segments) const;
  std::string Apply(const Clock& clock, const Stamp& stamp, std::span<const Access> accesses);
  std::string CheckAll(uint64_t block, const Clock& clock, std::string_view name);

  std::mutex mutex_;  // protects everything below
  std::vector<Clock> clocks_;
  std::vector<uint32_t> unused_;
  Clock host_;
  std::map<uint64_t, Segments> blocks_;
};

}  // namespace async_device

#endif  // WEIR_SDK_EXAMPLES_ASYNC_DEVICE_ORDER_H_
