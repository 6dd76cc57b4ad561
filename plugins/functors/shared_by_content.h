// Forms of constants that kernels make once and share, found by the content of the constants.
#ifndef WEIR_PLUGINS_FUNCTORS_SHARED_BY_CONTENT_H_
#define WEIR_PLUGINS_FUNCTORS_SHARED_BY_CONTENT_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace weir::functors {

/// Two independent hashes of the bytes of `n` floats.
inline std::pair<uint64_t, uint64_t> HashOf(const float* x, int64_t n) {
  uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    uint64_t word;
    std::memcpy(&word, x + i, sizeof word);
    a = (a ^ word) * 0x9fb21c651e98df25;
    a ^= a >> 29;
    b = (b + word) * 0xd6e8feb86659fd93;
    b ^= b >> 32;
  }
  for (; i < n; ++i) {
    uint32_t word;
    std::memcpy(&word, x + i, sizeof word);
    a = (a ^ word) * 0x9fb21c651e98df25;
    b = (b + word) * 0xd6e8feb86659fd93;
  }
  return {a ^ a >> 31, b ^ b >> 33};
}

/// Appends the bytes of a number or a record without padding.
template <class T>
void AppendBytes(const T& value, std::string* key) {
  key->append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The values of a plugin that are alive, by key. Constants count as equal if their forms and hashes are. Thread-safe.
template <class Value>
class SharedByContent {
 public:
  /// The value of `form` and the n floats at x: one that is alive, otherwise make(), a shared_ptr that may be null.
  template <class Make>
  std::shared_ptr<const Value> Of(std::string form, const float* x, int64_t n, Make&& make) {
    const auto [first, second] = HashOf(x, n);
    AppendBytes(first, &form);
    AppendBytes(second, &form);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<const Value>& slot = known_[std::move(form)];
    if (std::shared_ptr<const Value> found = slot.lock()) return found;
    std::shared_ptr<const Value> made = make();
    slot = made;
    return made;
  }

 private:
  std::mutex mutex_;  // protects known_
  std::map<std::string, std::weak_ptr<const Value>> known_;
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SHARED_BY_CONTENT_H_
