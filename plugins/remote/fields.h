// Numbered fields of a frame's meta, in the wire format of Protocol Buffers (a plugin contains no Protocol Buffers).
#ifndef WEIR_PLUGINS_REMOTE_FIELDS_H_
#define WEIR_PLUGINS_REMOTE_FIELDS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace weir_remote {

/// Appends fields to a message. Fields of value 0 and empty texts may be left out by the caller.
class FieldWriter {
 public:
  void Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
  }
  void Text(uint32_t field, std::string_view value) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

/// Takes the fields of a message one after the other.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  /// False at the end and at a fault.
  bool Next() {
    if (rest_.empty() || bad_) return false;
    uint64_t tag = 0;
    if (!Varint(tag) || tag >> 3 == 0 || tag >> 3 > kMostFields) return Fail();
    field_ = static_cast<uint32_t>(tag >> 3);
    number_ = 0;
    text_ = {};
    is_text_ = (tag & 7) == 2;
    switch (tag & 7) {
      case 0:
        return Varint(number_) || Fail();
      case 1:
        return Skip(8) || Fail();
      case 2: {
        uint64_t size = 0;
        if (!Varint(size) || size > rest_.size()) return Fail();
        text_ = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
      }
      case 5:
        return Skip(4) || Fail();
      default:
        return Fail();
    }
  }
  /// True if the bytes are no message.
  bool bad() const { return bad_; }

  uint32_t field() const { return field_; }
  bool is_text() const { return is_text_; }
  uint64_t number() const { return number_; }
  /// Refers to the message.
  std::string_view text() const { return text_; }

 private:
  static constexpr uint64_t kMostFields = (uint64_t{1} << 29) - 1;

  bool Fail() {
    bad_ = true;
    return false;
  }
  bool Skip(size_t count) {
    if (count > rest_.size()) return false;
    rest_.remove_prefix(count);
    return true;
  }
  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) return false;
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  std::string_view rest_, text_;
  uint64_t number_ = 0;
  uint32_t field_ = 0;
  bool is_text_ = false, bad_ = false;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_FIELDS_H_
