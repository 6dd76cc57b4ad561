// A place whose content many threads use without a lock while another thread may replace it.
#ifndef WEIR_CORE_SESSION_PINNED_SLOT_H_
#define WEIR_CORE_SESSION_PINNED_SLOT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace weir::session {

inline constexpr int kAddressBits = 48;

/// False where memory of this process has addresses that a slot cannot hold: with tags in their upper bits (MTE,
/// HWASan). Linux gives wider ones (5-level paging) only to who asks for them.
inline bool AddressesFit() {
  const auto probe = std::make_unique<uint64_t>();
  return reinterpret_cast<uintptr_t>(probe.get()) >> kAddressBits == 0;
}

/// Thread-safe, and nobody waits: content that was replaced dies with its last pin. The slot outlives the pins taken of
/// it, of which there are fewer than 65536 at a time.
template <class T>
class PinnedSlot {
  struct Held {
    std::unique_ptr<T> value;
    std::atomic<int64_t> left{0};  // pins, once it was replaced; negative while Put has not yet added them
  };

 public:
  /// Keeps the content; moves, is not copied. Null when the slot was empty.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)), held_(std::exchange(other.held_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(slot_, other.slot_);
      std::swap(held_, other.held_);
      return *this;
    }
    ~Pin() {
      if (held_ == nullptr || (slot_ != nullptr && slot_->Unpin(held_))) return;
      if (held_->left.fetch_sub(1) == 1) delete held_;
    }
    explicit operator bool() const { return held_ != nullptr; }
    T& operator*() const { return *held_->value; }
    T* operator->() const { return held_->value.get(); }

   private:
    friend class PinnedSlot;
    Pin(PinnedSlot* slot, Held* held) : slot_(slot), held_(held) {}
    PinnedSlot* slot_ = nullptr;  // null once the content was replaced
    Held* held_ = nullptr;
  };

  PinnedSlot() = default;
  ~PinnedSlot() { delete HeldOf(state_.load()); }
  PinnedSlot(const PinnedSlot&) = delete;
  PinnedSlot& operator=(const PinnedSlot&) = delete;

  Pin Take() { return Pin(this, HeldOf(state_.fetch_add(kOnePin))); }
  /// Gives what was there before. `content` may be null.
  Pin Put(std::unique_ptr<T> content) {
    Held* const made = content ? new Held{std::move(content)} : nullptr;
    const uint64_t before = state_.exchange(reinterpret_cast<uintptr_t>(made));
    Held* const old = HeldOf(before);
    if (old != nullptr) old->left.fetch_add(static_cast<int64_t>(before / kOnePin) + 1);
    return Pin(nullptr, old);
  }
  bool empty() const { return HeldOf(state_.load(std::memory_order_relaxed)) == nullptr; }

 private:
  // The address of the content in the lower 48 bits (see AddressesFit); its pins above. Of an empty slot the upper bits
  // say nothing.
  static_assert(sizeof(uintptr_t) == sizeof(uint64_t));
  static constexpr uint64_t kOnePin = uint64_t{1} << kAddressBits;
  static Held* HeldOf(uint64_t state) { return reinterpret_cast<Held*>(state & (kOnePin - 1)); }

  /// False when the content is no longer here: the pin is counted in Held.
  bool Unpin(const Held* held) {
    uint64_t state = state_.load(std::memory_order_relaxed);
    while (HeldOf(state) == held) {
      if (state_.compare_exchange_weak(state, state - kOnePin)) return true;
    }
    return false;
  }

  std::atomic<uint64_t> state_{0};
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PINNED_SLOT_H_
