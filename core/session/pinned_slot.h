// A place whose content many threads use without a lock while another thread may replace it.
#ifndef WEIR_CORE_SESSION_PINNED_SLOT_H_
#define WEIR_CORE_SESSION_PINNED_SLOT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace weir::session {

/// Take is wait-free. Put and Clear wait until nobody uses the old content any more; they are serialized by the caller
/// and never called by a thread that holds a pin of the same slot.
template <class T>
class PinnedSlot {
 public:
  /// Keeps the content in place; moves, is not copied. Null when the slot was empty.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)), content_(std::exchange(other.content_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(slot_, other.slot_);
      std::swap(content_, other.content_);
      return *this;
    }
    ~Pin() {
      if (slot_ != nullptr) slot_->pins_.fetch_sub(1);
    }
    explicit operator bool() const { return content_ != nullptr; }
    T& operator*() const { return *content_; }
    T* operator->() const { return content_; }

   private:
    friend class PinnedSlot;
    explicit Pin(PinnedSlot* slot) : slot_(slot), content_(slot->content_.load()) {}
    PinnedSlot* slot_ = nullptr;
    T* content_ = nullptr;
  };

  PinnedSlot() = default;
  ~PinnedSlot() { delete content_.load(); }
  PinnedSlot(const PinnedSlot&) = delete;
  PinnedSlot& operator=(const PinnedSlot&) = delete;

  Pin Take() {
    pins_.fetch_add(1);
    return Pin(this);
  }
  void Put(std::unique_ptr<T> content) {
    const std::unique_ptr<T> old(content_.exchange(content.release()));
    while (old && pins_.load() != 0) std::this_thread::yield();
  }
  void Clear() { Put(nullptr); }
  bool empty() const { return content_.load(std::memory_order_relaxed) == nullptr; }

 private:
  // A pin is counted before the content is looked at, the content is replaced before pins are counted: in the single
  // order of these operations one of the two sees the other.
  std::atomic<T*> content_{nullptr};
  std::atomic<int64_t> pins_{0};
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PINNED_SLOT_H_
