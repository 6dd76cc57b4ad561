// Protobuf messages from bytes and text and back, with bounds and without anything written to stderr.
#ifndef WEIR_CORE_PROTO_PARSE_H_
#define WEIR_CORE_PROTO_PARSE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace google::protobuf {
class Message;
}

namespace weir::proto {

/// What protobuf itself can address.
inline constexpr uint64_t kMaxMessageBytes = (uint64_t{1} << 31) - 1;
/// Messages within messages; deeper input is refused.
inline constexpr int kMaxNesting = 100;

/// Fills `message` from its wire format. `what` names the input in errors ("GraphDef"). InvalidArgument when it is
/// longer than kMaxMessageBytes, nested deeper than kMaxNesting, cut short or malformed; `message` is then unspecified.
Status ParseBinary(std::string_view bytes, std::string_view what, google::protobuf::Message& message);

/// Fills `message` from text format; the error says line and column. Unknown fields are errors.
Status ParseText(std::string_view text, std::string_view what, google::protobuf::Message& message);

/// True when `bytes` look like text format: no control characters at the start other than blanks, and a word or a
/// comment first. Every binary message of TensorFlow's with a string inside fails this.
bool LooksLikeText(std::string_view bytes);

/// Either format, told apart by LooksLikeText.
Status ParseEither(std::string_view bytes, std::string_view what, google::protobuf::Message& message);

/// Wire format with map entries sorted by key: equal messages give equal bytes. ResourceExhausted beyond
/// kMaxMessageBytes.
Result<std::string> Serialize(const google::protobuf::Message& message, std::string_view what);

/// Text format, map entries sorted by key.
std::string Print(const google::protobuf::Message& message);

}  // namespace weir::proto

#endif  // WEIR_CORE_PROTO_PARSE_H_
