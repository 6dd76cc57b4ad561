// Heads of messages and errors as the meta of frames.
#include <algorithm>

#include "plugins/remote/connection.h"
#include "plugins/remote/fields.h"

namespace weir_remote {
namespace {

enum : uint32_t { kMethod = 1, kTimeLeft = 2, kMeta = 3, kSize = 4 };
enum : uint32_t { kErrorCode = 1, kErrorText = 2 };

constexpr size_t kMostErrorText = 16u << 10;

}  // namespace

std::string EncodeHead(uint32_t method, uint64_t time_left_ms, std::string_view meta,
                       std::span<const weir_bytes> bodies) {
  FieldWriter writer;
  if (method != 0) writer.Number(kMethod, method);
  if (time_left_ms != UINT64_MAX) writer.Number(kTimeLeft, time_left_ms);
  if (!meta.empty()) writer.Text(kMeta, meta);
  for (const weir_bytes& body : bodies) writer.Number(kSize, body.size);
  return writer.bytes();
}

weir_arrival ArrivalOf(const MessageHead& head) {
  weir_arrival arrival{};
  arrival.struct_size = sizeof arrival;
  arrival.method = head.method;
  arrival.meta = {head.meta.data(), head.meta.size()};
  arrival.body_bytes = head.sizes.data();
  arrival.body_count = head.sizes.size();
  arrival.time_left_ms = head.time_left_ms;
  return arrival;
}

WireError DecodeHead(std::string_view bytes, MessageHead& head) {
  head = {};
  FieldReader reader(bytes);
  while (reader.Next()) {
    const bool text = reader.is_text();
    switch (reader.field()) {
      case kMethod:
        if (text || reader.number() > UINT32_MAX) return Malformed("the method of a message is malformed");
        head.method = static_cast<uint32_t>(reader.number());
        break;
      case kTimeLeft:
        if (text) return Malformed("the deadline of a message is malformed");
        head.time_left_ms = reader.number();
        break;
      case kMeta:
        if (!text) return Malformed("the meta of a message is malformed");
        head.meta = reader.text();
        break;
      case kSize:
        if (text || head.sizes.size() == WEIR_TRANSPORT_BODIES) {
          return Malformed("a message has malformed or too many bodies");
        }
        if (__builtin_add_overflow(head.total, reader.number(), &head.total) || head.total > UINT64_MAX / 2) {
          return Malformed("the bodies of a message have more than 2^63 bytes");
        }
        head.sizes.push_back(reader.number());
        break;
      default:
        break;  // of a later minor
    }
  }
  return reader.bad() ? Malformed("the head of a message is malformed") : WireError();
}

std::optional<Told> Told::Of(const weir_message& message) {
  const std::span<const weir_bytes> bodies(message.bodies, message.body_count);
  uint64_t total = 0;
  for (const weir_bytes& body : bodies) {
    if (__builtin_add_overflow(total, body.size, &total)) return std::nullopt;
  }
  if (total > WEIR_TRANSPORT_TOLD_BYTES) return std::nullopt;
  Told told;
  const std::string_view meta(static_cast<const char*>(message.meta.data), message.meta.size);
  told.head = EncodeHead(message.method, UINT64_MAX, meta, bodies);
  if (told.head.size() > kMostMetaBytes) return std::nullopt;
  told.body.reserve(total);
  for (const weir_bytes& body : bodies) {
    if (body.size > 0) told.body.append(static_cast<const char*>(body.data), body.size);
  }
  return told;
}

std::string EncodeError(const WireError& error) {
  FieldWriter writer;
  writer.Number(kErrorCode, static_cast<uint64_t>(static_cast<uint32_t>(error.code)));
  writer.Text(kErrorText, std::string_view(error.text).substr(0, kMostErrorText));
  return writer.bytes();
}

WireError DecodeError(std::string_view meta) {
  WireError error{WEIR_UNKNOWN, ""};
  FieldReader reader(meta);
  while (reader.Next()) {
    if (reader.field() == kErrorCode && !reader.is_text() && reader.number() >= 1 &&
        reader.number() <= WEIR_UNAUTHENTICATED) {
      error.code = static_cast<int32_t>(reader.number());
    }
    if (reader.field() == kErrorText && reader.is_text()) error.text = reader.text().substr(0, kMostErrorText);
  }
  return error;
}

}  // namespace weir_remote
