// Memory that two processes of one host share: the way of large bodies beside the socket. Knows no sockets.
#ifndef WEIR_PLUGINS_REMOTE_SHARED_MEMORY_H_
#define WEIR_PLUGINS_REMOTE_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plugins/remote/wire_error.h"

namespace weir_remote {

/// Bit of Identity::capabilities.
inline constexpr uint32_t kCanShareMemory = 1;

inline constexpr uint64_t kSlotBytes = 256u << 10;
inline constexpr uint32_t kSlots = 16;
inline constexpr uint64_t kSharedHead = 4096;  // before the slots: the secret
inline constexpr uint64_t kSharedBytes = kSharedHead + kSlots * kSlotBytes;
inline constexpr size_t kSecretBytes = 16;

/// Equal in processes that can share memory: of one boot of a machine, user, and namespace of processes and network.
/// Empty if the system does not say.
const std::string& HostId();

/// Bodies of this size and more are beyond the caches anyway when they are used: they are written past these, which is
/// three times as fast, since the memory need not be read before.
inline constexpr uint64_t kPastCaches = 16u << 20;

/// How a process offers memory to a peer: the descriptor by its place under /proc, and what the peer finds there.
struct SharedOffer {
  uint32_t process = 0, descriptor = 0;
  uint64_t bytes = 0;
  std::string secret;
};
/// The answer: no reason = accepted.
struct SharedAnswer {
  std::string reason;
};
/// A chunk of a body in a slot.
struct SharedChunk {
  uint32_t slot = 0;
  uint64_t bytes = 0;
};
std::string EncodeOffer(const SharedOffer& offer);
std::string EncodeAnswer(const SharedAnswer& answer);
std::string EncodeChunk(const SharedChunk& chunk);
/// An offer of another size, or with a secret of another length, is WEIR_INVALID_ARGUMENT.
WireError DecodeOffer(std::string_view meta, SharedOffer& offer);
/// True if the meta is an answer and no offer.
bool IsAnswer(std::string_view meta);
WireError DecodeAnswer(std::string_view meta, SharedAnswer& answer);
/// WEIR_INVALID_ARGUMENT for a slot or a length that there is not: what comes out lies within the memory.
WireError DecodeChunk(std::string_view meta, SharedChunk& chunk);

/// Memory of kSharedBytes, in this process until it is destroyed.
class SharedMapping {
 public:
  SharedMapping(std::byte* at, uint64_t bytes) : at_(at), bytes_(bytes) {}
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  std::byte* at() const { return at_; }

 private:
  std::byte* const at_;
  const uint64_t bytes_;
};

/// Memory that this side writes and the peer reads. Its slots are used in turn.
class SharedSource {
 public:
  /// WEIR_RESOURCE_EXHAUSTED without memory, and if this process shares with too many peers.
  static WireError Make(std::unique_ptr<SharedSource>& to);
  ~SharedSource();
  SharedSource(const SharedSource&) = delete;
  SharedSource& operator=(const SharedSource&) = delete;

  SharedOffer offer() const;
  /// The peer has opened the memory.
  void Opened();
  /// Copies up to a slot's bytes into the next slot. No slot may be in use by the peer: free() > 0.
  SharedChunk Put(std::span<const std::byte> bytes);
  uint32_t free() const { return free_; }
  /// The peer has taken the content of slots. WEIR_INVALID_ARGUMENT for more than are in use.
  WireError Release(uint64_t slots);

 private:
  SharedSource(std::unique_ptr<SharedMapping> mapping, int descriptor, std::string secret);
  const std::unique_ptr<SharedMapping> mapping_;
  int descriptor_;
  const std::string secret_;
  uint32_t next_ = 0, free_ = kSlots;
};

/// Memory of a peer, which this side reads. The peer may change its content at any time, but not its size.
class SharedView {
 public:
  /// Opens what was offered. An error says why not: the socket is used instead. Only a file in memory that is this
  /// user's, that cannot become smaller, and that begins with the secret is mapped.
  static WireError Open(const SharedOffer& offer, std::unique_ptr<SharedView>& to);
  ~SharedView();
  SharedView(const SharedView&) = delete;
  SharedView& operator=(const SharedView&) = delete;

  /// Copies a chunk that DecodeChunk accepted; `to` has its size and is part of a body of `body_bytes`.
  void Take(const SharedChunk& chunk, std::span<std::byte> to, uint64_t body_bytes);
  /// Slots to release now; 0 = not yet, so that releases are few.
  uint32_t TakeReleased();

 private:
  explicit SharedView(std::unique_ptr<SharedMapping> mapping);
  const std::unique_ptr<SharedMapping> mapping_;
  uint32_t taken_ = 0;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_SHARED_MEMORY_H_
