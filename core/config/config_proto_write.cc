#include <google/protobuf/message.h>

#include <charconv>
#include <span>

#include "core/base/errors.h"
#include "core/config/config_proto.h"
#include "core/config/document.h"
#include "core/config/schema.h"
#include "core/proto/descriptors.h"
#include "core/proto/parse.h"
#include "weir/proto/session_config.pb.h"

namespace weir::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Writes values into fields whose names are those of the keys; keys of weir alone have no field.
class ProtoWriter {
 public:
  static Status Put(std::span<const std::string> path, const Value& value, Message& message) {
    const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(path.front());
    if (field == nullptr) return Status();
    const Reflection& reflection = *message.GetReflection();
    const std::span<const std::string> below = path.subspan(1);
    if (below.empty()) return field->is_repeated() ? PutList(*field, value, message) : PutOne(*field, value, message);
    if (field->is_map()) {
      Message& entry = *reflection.AddMessage(&message, field);
      entry.GetReflection()->SetString(&entry, entry.GetDescriptor()->FindFieldByNumber(1), below.front());
      return PutOne(*entry.GetDescriptor()->FindFieldByNumber(2), value, entry);
    }
    if (!field->is_repeated()) return Put(below, value, *reflection.MutableMessage(&message, field));
    int index = 0;
    std::from_chars(below.front().data(), below.front().data() + below.front().size(), index);
    while (reflection.FieldSize(message, field) <= index) reflection.AddMessage(&message, field);
    return Put(below.subspan(1), value, *reflection.MutableRepeatedMessage(&message, field, index));
  }

 private:
  static Status PutOne(const FieldDescriptor& field, const Value& value, Message& message) {
    const Reflection& reflection = *message.GetReflection();
    if (const bool* flag = std::get_if<bool>(&value)) {
      reflection.SetBool(&message, &field, *flag);
    } else if (const int64_t* number = std::get_if<int64_t>(&value)) {
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
        reflection.SetInt32(&message, &field, static_cast<int32_t>(*number));
      } else {
        reflection.SetInt64(&message, &field, *number);
      }
    } else if (const double* real = std::get_if<double>(&value)) {
      reflection.SetDouble(&message, &field, *real);
    } else if (const std::string* text = std::get_if<std::string>(&value)) {
      if (field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
        reflection.SetString(&message, &field, *text);
        return Status();
      }
      const auto* const choice = field.enum_type()->FindValueByName(*text);
      if (choice == nullptr) return Internal("{} has no value '{}'", field.full_name(), *text);
      reflection.SetEnum(&message, &field, choice);
    }
    return Status();
  }

  static Status PutList(const FieldDescriptor& field, const Value& value, Message& message) {
    const Reflection& reflection = *message.GetReflection();
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      for (const std::string& text : *texts) reflection.AddString(&message, &field, text);
    } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
      for (const double number : *numbers) {
        if (field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
          reflection.AddFloat(&message, &field, static_cast<float>(number));
        } else {
          reflection.AddInt32(&message, &field, static_cast<int32_t>(number));
        }
      }
    }
    return Status();
  }
};

}  // namespace

Result<std::string> WriteConfigProto(const Config& config) {
  proto::NeedDescriptors();
  tf::ConfigProto message;
  for (const Shown& shown : List(config, Show::kSet)) {
    WEIR_ASSIGN(const Path path, ParsePath(shown.key));
    WEIR_TRY(ProtoWriter::Put(path, shown.value, message));
  }
  message.set_allow_soft_placement(config.allow_soft_placement);
  return proto::Serialize(message, "ConfigProto");
}

}  // namespace weir::config
