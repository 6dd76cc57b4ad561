// Bytes in which compilers keep executables: numbers, texts, types and shapes, read with bounds.
#ifndef WEIR_PLUGINS_FUNCTORS_KEPT_REGIONS_H_
#define WEIR_PLUGINS_FUNCTORS_KEPT_REGIONS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::functors {

inline constexpr uint64_t kMaxBytes = 32 << 20;          // of an executable
inline constexpr uint64_t kMostAxes = 16;               // of a value
inline constexpr int64_t kMostElements = int64_t{1} << 40;

/// Type and shape of an input or output.
struct Described {
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
};

/// FNV-1a in 64 bits, of eight bytes at a time.
inline uint64_t Checksum(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  return hash;
}

class Writer {
 public:
  void Number(uint64_t n) { bytes_.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void Bytes(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  void Value(const Described& value) {
    Number(value.dtype);
    Number(value.dims.size());
    for (const int64_t extent : value.dims) Number(static_cast<uint64_t>(extent));
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Gives 0 and nothing after the first fault.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && at_ == bytes_.size(); }
  size_t at() const { return at_; }

  uint64_t Number(uint64_t most = UINT64_MAX) {
    uint64_t n = 0;
    if (!ok_ || bytes_.size() - at_ < sizeof n) return Fail();
    std::memcpy(&n, bytes_.data() + at_, sizeof n);
    at_ += sizeof n;
    return n <= most ? n : Fail();
  }
  std::span<const uint8_t> Bytes() {
    const uint64_t n = Number(kMaxBytes);
    if (!ok_ || bytes_.size() - at_ < n) {
      Fail();
      return {};
    }
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }
  Described Value() {
    Described value;
    value.dtype = static_cast<uint32_t>(Number(63));
    const uint64_t rank = Number(kMostAxes);
    for (uint64_t i = 0; ok_ && i < rank; ++i) {
      value.dims.push_back(static_cast<int64_t>(Number(static_cast<uint64_t>(kMostElements))));
    }
    return value;
  }

 private:
  uint64_t Fail() {
    ok_ = false;
    return 0;
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_KEPT_REGIONS_H_
