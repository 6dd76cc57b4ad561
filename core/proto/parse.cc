#include "core/proto/parse.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "core/proto/descriptors.h"

namespace weir::proto {
namespace {

using google::protobuf::Message;

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = line < 0 ? message : fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Status CheckSize(std::string_view bytes, std::string_view what) {
  if (bytes.size() <= kMaxMessageBytes) return {};
  return InvalidArgument("{} of {} bytes: at most {} are allowed", what, bytes.size(), kMaxMessageBytes);
}

}  // namespace

Status ParseBinary(std::string_view bytes, std::string_view what, Message& message) {
  WEIR_TRY(CheckSize(bytes, what));
  google::protobuf::LogSilencer silence;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  if (message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage()) return {};
  return InvalidArgument("{} of {} bytes cannot be parsed: it is cut short, malformed or nested deeper than {}", what,
                         bytes.size(), kMaxNesting);
}

Status ParseText(std::string_view text, std::string_view what, Message& message) {
  WEIR_TRY(CheckSize(text, what));
  NeedDescriptors();
  google::protobuf::LogSilencer silence;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, &message)) return {};
  return InvalidArgument("{} text cannot be parsed: {}", what, error.text().empty() ? "malformed" : error.text());
}

bool LooksLikeText(std::string_view bytes) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const size_t first = bytes.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return false;
  const char c = bytes[first];
  if (c != '#' && c != '_' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')) return false;
  const std::string_view start = bytes.substr(0, 4096);
  return std::ranges::none_of(start, [&](char byte) {
    const auto value = static_cast<unsigned char>(byte);
    return (value < 0x20 || value == 0x7f) && kBlanks.find(byte) == std::string_view::npos;
  });
}

Status ParseEither(std::string_view bytes, std::string_view what, Message& message) {
  return LooksLikeText(bytes) ? ParseText(bytes, what, message) : ParseBinary(bytes, what, message);
}

Result<std::string> Serialize(const Message& message, std::string_view what) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxMessageBytes) {
    return ResourceExhausted("{} of {} bytes: protobuf allows at most {}", what, size, kMaxMessageBytes);
  }
  google::protobuf::LogSilencer silence;
  std::string bytes(size, '\0');
  google::protobuf::io::ArrayOutputStream array(bytes.data(), static_cast<int>(size));
  google::protobuf::io::CodedOutputStream stream(&array);
  stream.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&stream);
  if (stream.HadError()) return Internal("{} could not be serialized", what);
  return bytes;
}

std::string Print(const Message& message) {
  NeedDescriptors();
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  if (!printer.PrintToString(message, &text)) text.clear();
  return text;
}

}  // namespace weir::proto
