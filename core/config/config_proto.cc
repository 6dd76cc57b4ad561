#include "core/config/config_proto.h"

#include <fmt/format.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/config/schema.h"
#include "core/config/toml.h"
#include "core/proto/descriptors.h"
#include "core/proto/parse.h"
#include "weir/proto/session_config.pb.h"

namespace weir::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

constexpr std::string_view kWhat = "ConfigProto";

// The text between `before` and the next quote; empty if there is no quote.
std::string_view QuotedAfter(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find('"'));
}

// Appends a hint for an unknown field name: the path where it belongs, or the nearest field names of the message.
Status WithHint(const Status& status) {
  const std::string_view name = QuotedAfter(status.message(), "has no field named \"");
  const std::string type(QuotedAfter(status.message(), "Message type \""));
  const auto* message = tf::ConfigProto::descriptor()->file()->pool()->FindMessageTypeByName(type);
  if (name.empty() || message == nullptr) return status;
  for (const Key& key : Schema()) {
    const std::string first(key.path.substr(0, key.path.find('.')));
    if (tf::ConfigProto::descriptor()->FindFieldByName(first) == nullptr) continue;  // one of weir's own keys
    for (size_t end = 0; end < key.path.size(); ++end) {
      end = std::min(key.path.find('.', end), key.path.size());
      const std::string_view path = key.path.substr(0, end);
      if (path.substr(path.rfind('.') + 1) == name) return status.Append(fmt::format(" There is '{}'.", path));
    }
  }
  std::vector<std::string_view> known;
  for (int i = 0; i < message->field_count(); ++i) known.push_back(message->field(i)->name());
  return status.Append(NearestHint(name, known));
}

// Reads a message by its field names, which are the key names.
class ProtoReader {
 public:
  ProtoReader(Origin origin, Settings& settings, std::vector<std::string>& notes)
      : origin_(std::move(origin)), settings_(settings), notes_(notes) {}

  /// `tree` holds the line numbers of a text's fields; null for wire format.
  Status Fields(const Message& message, const Path& path, const TextFormat::ParseInfoTree* tree) {
    NoteUnknown(message, path);
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      Path below = path;
      below.push_back(field->name());
      WEIR_TRY(Field(message, *field, below, tree));
    }
    return {};
  }

 private:
  // Notes fields of a newer TensorFlow, of which the wire format has only the numbers.
  void NoteUnknown(const Message& message, const Path& path) {
    const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
    std::set<int> numbers;
    for (int i = 0; i < fields.field_count(); ++i) numbers.insert(fields.field(i).number());
    if (numbers.empty()) return;
    notes_.push_back(fmt::format("{}: unknown field {} of {} is ignored", origin_.ToString(), fmt::join(numbers, ", "),
                                 path.empty() ? std::string(kWhat) : ToString(path)));
  }

  Status Field(const Message& message, const FieldDescriptor& field, const Path& path,
               const TextFormat::ParseInfoTree* tree) {
    const Origin origin = OriginOf(field, tree);
    if (FindKey(path) != nullptr) return settings_.Set(path, {ValueOf(message, field), false}, origin);
    if (path.front() == "cluster_def") return UnknownKey(path).Prepend(origin.ToString() + ": ");
    if (!IsTable(path)) {
      notes_.push_back(fmt::format("{}: {} is a hint that weir ignores", origin.ToString(), ToString(path)));
      return {};
    }
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) {
      return Fields(reflection.GetMessage(message, &field), path, Nested(tree, field, -1));
    }
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& element = reflection.GetRepeatedMessage(message, &field, i);
      WEIR_TRY(field.is_map() ? Entry(element, path, OriginOf(field, tree, i))
                              : Element(element, i, path, Nested(tree, field, i)));
    }
    return {};
  }

  Status Element(const Message& element, int index, Path path, const TextFormat::ParseInfoTree* tree) {
    path.push_back(std::to_string(index));
    return Fields(element, path, tree);
  }

  // Reads an entry of a map from names to numbers.
  Status Entry(const Message& entry, Path path, const Origin& origin) {
    const FieldDescriptor* key = entry.GetDescriptor()->FindFieldByNumber(1);
    const FieldDescriptor* value = entry.GetDescriptor()->FindFieldByNumber(2);
    path.push_back(entry.GetReflection()->GetString(entry, key));
    return settings_.Set(std::move(path), {ValueOf(entry, *value), false}, origin);
  }

  // `index` selects an element of a repeated field.
  Origin OriginOf(const FieldDescriptor& field, const TextFormat::ParseInfoTree* tree, int index = 0) const {
    Origin origin = origin_;
    if (tree == nullptr) return origin;
    origin.line = tree->GetLocation(&field, field.is_repeated() ? index : -1).line + 1;  // -1: unknown
    return origin;
  }

  static const TextFormat::ParseInfoTree* Nested(const TextFormat::ParseInfoTree* tree, const FieldDescriptor& field,
                                                 int index) {
    return tree == nullptr ? nullptr : tree->GetTreeForNested(&field, index);
  }

  static Value ValueOf(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (field.is_repeated()) return ListOf(message, field);
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.GetBool(message, &field);
      case FieldDescriptor::CPPTYPE_INT32:
        return int64_t{reflection.GetInt32(message, &field)};
      case FieldDescriptor::CPPTYPE_INT64:
        return int64_t{reflection.GetInt64(message, &field)};
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.GetDouble(message, &field);
      case FieldDescriptor::CPPTYPE_ENUM:
        return std::string(reflection.GetEnum(message, &field)->name());
      default:
        return reflection.GetString(message, &field);
    }
  }

  static Value ListOf(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<std::string> texts;
    std::vector<double> numbers;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      switch (field.cpp_type()) {
        case FieldDescriptor::CPPTYPE_FLOAT:
          numbers.push_back(double{reflection.GetRepeatedFloat(message, &field, i)});
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          numbers.push_back(reflection.GetRepeatedInt32(message, &field, i));
          break;
        default:
          texts.push_back(reflection.GetRepeatedString(message, &field, i));
      }
    }
    return numbers.empty() ? Value(std::move(texts)) : Value(std::move(numbers));
  }

  const Origin origin_;
  Settings& settings_;
  std::vector<std::string>& notes_;
};

}  // namespace

Status ReadConfigProto(std::string_view bytes, const Origin& origin, Settings& settings,
                       std::vector<std::string>& notes) {
  if (bytes.size() > kMaxFileBytes) {
    return InvalidArgument("{}: a {} of {} bytes, at most {} are allowed", origin.ToString(), kWhat, bytes.size(),
                           kMaxFileBytes);
  }
  proto::NeedDescriptors();
  tf::ConfigProto message;
  WEIR_TRY(WithHint(proto::ParseEither(bytes, kWhat, message).Prepend(origin.ToString() + ": ")));
  ProtoReader reader(origin, settings, notes);
  WEIR_TRY(settings.Set({"allow_soft_placement"}, {message.allow_soft_placement(), false}, origin));
  if (!proto::LooksLikeText(bytes)) return reader.Fields(message, {}, nullptr);

  // Parses again for the line numbers; errors were reported by the first parse.
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(proto::kMaxNesting);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  tf::ConfigProto again;
  if (!parser.Parse(&stream, &again)) return reader.Fields(message, {}, nullptr);
  return reader.Fields(again, {}, &tree);
}

}  // namespace weir::config
