// The fields of a serialized message, without message objects.
#ifndef WEIR_CORE_PROTO_WIRE_FIELDS_H_
#define WEIR_CORE_PROTO_WIRE_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::proto {

/// Removes a varint from the front; false if it is truncated or longer than ten bytes.
bool TakeVarint(std::string_view& bytes, uint64_t& value);

/// Appends a varint.
void AppendVarint(uint64_t value, std::string& to);

/// Iterates over the wire-format fields of one message in byte order. The bytes must outlive this object.
class WireFields {
 public:
  explicit WireFields(std::string_view bytes) : rest_(bytes) {}

  /// Moves to the next field; false at the end and on malformed bytes.
  bool Next();
  /// False after malformed bytes.
  bool ok() const { return ok_; }

  /// Field number and wire type: 0 varint, 1 and 5 fixed, 2 bytes.
  uint32_t number() const { return static_cast<uint32_t>(tag_ >> 3); }
  uint32_t type() const { return static_cast<uint32_t>(tag_ & 7); }
  /// Value of a varint or fixed field.
  uint64_t value() const { return value_; }
  /// The fields that follow.
  std::string_view rest() const { return rest_; }
  /// Contents of a bytes field.
  std::string_view bytes() const { return bytes_; }
  bool Is(uint32_t number, uint32_t type) const { return tag_ == (uint64_t{number} << 3 | type); }

 private:
  bool Fail() {
    ok_ = false;
    rest_ = {};
    return false;
  }
  bool Fixed(size_t size);

  std::string_view rest_;
  std::string_view bytes_;
  uint64_t tag_ = 0;
  uint64_t value_ = 0;
  bool ok_ = true;
};

}  // namespace weir::proto

#endif  // WEIR_CORE_PROTO_WIRE_FIELDS_H_
