// A slot that many threads read without locks while another thread may replace its content.
#ifndef WEIR_CORE_SESSION_PINNED_SLOT_H_
#define WEIR_CORE_SESSION_PINNED_SLOT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace weir::session {

inline constexpr int kAddressBits = 48;

/// False if addresses of this process do not fit a slot: with tags in the upper bits (MTE, HWASan). Linux returns wider
/// addresses (5-level paging) only on request.
inline bool AddressesFit() {
  const auto probe = std::make_unique<uint64_t>();
  return reinterpret_cast<uintptr_t>(probe.get()) >> kAddressBits == 0;
}

/// Thread-safe and wait-free for readers. Replaced content is destroyed with its last pin. The slot must outlive its
/// pins; there may be fewer than 65536 at a time.
template <class T>
class PinnedSlot {
  struct Held {
    std::unique_ptr<T> value;
    std::atomic<int64_t> left{0};  // pins after the replacement; negative until Put has added them
  };

 public:
  /// Keeps the content alive. Move-only. Null if the slot was empty.
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
    PinnedSlot* slot_ = nullptr;  // null after the content was replaced
    Held* held_ = nullptr;
  };

  PinnedSlot() = default;
  ~PinnedSlot() { delete HeldOf(state_.load()); }
  PinnedSlot(const PinnedSlot&) = delete;
  PinnedSlot& operator=(const PinnedSlot&) = delete;

  Pin Take() { return Pin(this, HeldOf(state_.fetch_add(kOnePin))); }
  /// Returns the previous content. `content` may be null.
  Pin Put(std::unique_ptr<T> content) {
    Held* const made = content ? new Held{std::move(content)} : nullptr;
    const uint64_t before = state_.exchange(reinterpret_cast<uintptr_t>(made));
    Held* const old = HeldOf(before);
    if (old != nullptr) old->left.fetch_add(static_cast<int64_t>(before / kOnePin) + 1);
    return Pin(nullptr, old);
  }
  bool empty() const { return HeldOf(state_.load(std::memory_order_relaxed)) == nullptr; }

 private:
  // Content address in the lower 48 bits (see AddressesFit), number of pins above. The upper bits are meaningless in an
  // empty slot.
  static_assert(sizeof(uintptr_t) == sizeof(uint64_t));
  static constexpr uint64_t kOnePin = uint64_t{1} << kAddressBits;
  static Held* HeldOf(uint64_t state) { return reinterpret_cast<Held*>(state & (kOnePin - 1)); }

  /// False if the content was replaced; the pin is then counted in Held.
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
