#include "core/proto/wire_fields.h"

#include <cstring>

namespace weir::proto {

bool TakeVarint(std::string_view& bytes, uint64_t& value) {
  if (!bytes.empty() && static_cast<unsigned char>(bytes[0]) < 0x80) {  // most tags and lengths
    value = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    return true;
  }
  value = 0;
  for (size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80) == 0) {
      bytes.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

void AppendVarint(uint64_t value, std::string& to) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

bool WireFields::Fixed(size_t size) {
  if (rest_.size() < size) return false;
  value_ = 0;
  std::memcpy(&value_, rest_.data(), size);
  rest_.remove_prefix(size);
  return true;
}

bool WireFields::Next() {
  if (rest_.empty()) return false;
  bytes_ = {};
  if (!TakeVarint(rest_, tag_) || tag_ >> 32 != 0 || number() == 0) return Fail();
  switch (type()) {
    case 0:
      return TakeVarint(rest_, value_) || Fail();
    case 1:
      return Fixed(8) || Fail();
    case 5:
      return Fixed(4) || Fail();
    case 2: {
      uint64_t length = 0;
      if (!TakeVarint(rest_, length) || length > rest_.size()) return Fail();
      bytes_ = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return true;
    }
    default:
      return Fail();  // group wire types, which TensorFlow does not use
  }
}

}  // namespace weir::proto
