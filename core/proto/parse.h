// Parsing and printing of protobuf messages, with size limits and without output on stderr.
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

/// The largest message that protobuf supports.
inline constexpr uint64_t kMaxMessageBytes = (uint64_t{1} << 31) - 1;
/// Nesting limit of messages; deeper input is rejected.
inline constexpr int kMaxNesting = 100;

/// Parses the wire format. `what` names the input in errors ("GraphDef"). InvalidArgument if it is longer than
/// kMaxMessageBytes, nested deeper than kMaxNesting, truncated or malformed; `message` is unspecified then.
Status ParseBinary(std::string_view bytes, std::string_view what, google::protobuf::Message& message);

/// Parses the text format. Errors contain line and column; unknown fields are errors.
Status ParseText(std::string_view text, std::string_view what, google::protobuf::Message& message);

/// True if `bytes` look like text format: no control characters other than blanks at the start, and a word or a comment
/// first. False for every binary TensorFlow message that contains a string.
bool LooksLikeText(std::string_view bytes);

/// Parses either format, selected by LooksLikeText.
Status ParseEither(std::string_view bytes, std::string_view what, google::protobuf::Message& message);

/// Wire format with map entries sorted by key, so that equal messages give equal bytes. ResourceExhausted above
/// kMaxMessageBytes.
Result<std::string> Serialize(const google::protobuf::Message& message, std::string_view what);

/// Text format with map entries sorted by key.
std::string Print(const google::protobuf::Message& message);

}  // namespace weir::proto

#endif  // WEIR_CORE_PROTO_PARSE_H_
