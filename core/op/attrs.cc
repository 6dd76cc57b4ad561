#include "core/op/attrs.h"

#include "core/base/errors.h"
#include "core/op/attr_kind.h"

namespace weir::op {
namespace {

/// A node with more operands than this comes from a broken file.
constexpr int64_t kMaxOperands = int64_t{1} << 20;

const AttrValue* FindExplicit(const AttrList& values, std::string_view name) {
  for (const auto& [key, value] : values) {
    if (key == name) return &value;
  }
  return nullptr;
}

Status Missing(const AttrView& attrs, std::string_view name) {
  return InvalidArgument("NodeDef missing attr '{}' from {}", name, Summarize(attrs.def()));
}

/// The value of attribute `name` as a T, or an error if it is missing or of another type.
template <class T>
Result<const T*> Read(const AttrView& attrs, std::string_view name, std::string_view type) {
  const AttrValue* value = attrs.Find(name);
  if (value == nullptr) return Missing(attrs, name);
  if (const T* typed = value->get<T>()) return typed;
  return InvalidArgument("AttrValue had value with type '{}' when '{}' expected\n\t for attr '{}'", KindOf(*value),
                         type, name);
}

template <class T>
Result<T> ReadCopy(const AttrView& attrs, std::string_view name, std::string_view type) {
  WEIR_ASSIGN(const T* value, Read<T>(attrs, name, type));
  return *value;
}

template <class T>
Result<std::vector<T>> ReadList(const AttrView& attrs, std::string_view name, std::string_view type) {
  const AttrValue* value = attrs.Find(name);
  if (value != nullptr && value->get<EmptyList>() != nullptr) return std::vector<T>();
  return ReadCopy<std::vector<T>>(attrs, name, type);
}

/// Appends the types of one argument to `types` and returns their number.
Result<int> ExpandArg(const AttrView& attrs, const ArgDef& arg, std::vector<DType>& types) {
  const auto append = [&](DType type, int64_t count) {
    types.insert(types.end(), static_cast<size_t>(count), arg.is_ref ? RefType(type) : type);
    return static_cast<int>(count);
  };
  if (!arg.type_list_attr.empty()) {
    const AttrValue* list = attrs.Find(arg.type_list_attr);
    if (list != nullptr && list->get<EmptyList>() != nullptr) return 0;
    WEIR_ASSIGN(const std::vector<DType>* listed, Read<std::vector<DType>>(attrs, arg.type_list_attr, "list(type)"));
    for (DType type : *listed) append(type, 1);
    return static_cast<int>(listed->size());
  }
  DType type = arg.dtype;
  if (!arg.type_attr.empty()) {
    WEIR_ASSIGN(const DType* named, Read<DType>(attrs, arg.type_attr, "type"));
    type = *named;
  }
  if (arg.number_attr.empty()) return append(type, 1);
  WEIR_ASSIGN(const int64_t* count, Read<int64_t>(attrs, arg.number_attr, "int"));
  if (*count < 0 || *count > kMaxOperands) {
    return InvalidArgument("Value for attr '{}' of {} must be between 0 and {}", arg.number_attr, *count, kMaxOperands);
  }
  return append(type, *count);
}

Status ExpandArgs(const AttrView& attrs, const std::vector<ArgDef>& args, std::vector<DType>& types,
                  std::vector<int>& counts) {
  types.reserve(args.size());
  counts.reserve(args.size());
  for (const ArgDef& arg : args) {
    WEIR_ASSIGN(counts.emplace_back(), ExpandArg(attrs, arg, types));
  }
  return {};
}

}  // namespace

const AttrValue* AttrView::Find(std::string_view name) const {
  if (const AttrValue* value = FindExplicit(*values_, name)) return value;
  const AttrDef* attr = def_->FindAttr(name);
  return attr != nullptr && attr->default_value.set() ? &attr->default_value : nullptr;
}

Result<int64_t> AttrView::Int(std::string_view name) const { return ReadCopy<int64_t>(*this, name, "int"); }
Result<float> AttrView::Float(std::string_view name) const { return ReadCopy<float>(*this, name, "float"); }
Result<bool> AttrView::Bool(std::string_view name) const { return ReadCopy<bool>(*this, name, "bool"); }
Result<std::string> AttrView::String(std::string_view name) const {
  return ReadCopy<std::string>(*this, name, "string");
}
Result<DType> AttrView::Type(std::string_view name) const { return ReadCopy<DType>(*this, name, "type"); }
Result<PartialShape> AttrView::ShapeAttr(std::string_view name) const {
  return ReadCopy<PartialShape>(*this, name, "shape");
}
Result<Tensor> AttrView::TensorAttr(std::string_view name) const { return ReadCopy<Tensor>(*this, name, "tensor"); }
Result<std::vector<int64_t>> AttrView::Ints(std::string_view name) const {
  return ReadList<int64_t>(*this, name, "list(int)");
}
Result<std::vector<float>> AttrView::Floats(std::string_view name) const {
  return ReadList<float>(*this, name, "list(float)");
}
Result<std::vector<bool>> AttrView::Bools(std::string_view name) const {
  return ReadList<bool>(*this, name, "list(bool)");
}
Result<std::vector<std::string>> AttrView::Strings(std::string_view name) const {
  return ReadList<std::string>(*this, name, "list(string)");
}
Result<std::vector<DType>> AttrView::Types(std::string_view name) const {
  return ReadList<DType>(*this, name, "list(type)");
}
Result<std::vector<PartialShape>> AttrView::Shapes(std::string_view name) const {
  return ReadList<PartialShape>(*this, name, "list(shape)");
}

Result<Signature> Expand(const AttrView& attrs) {
  Signature signature;
  WEIR_TRY(ExpandArgs(attrs, attrs.def().inputs, signature.inputs, signature.input_counts));
  WEIR_TRY(ExpandArgs(attrs, attrs.def().outputs, signature.outputs, signature.output_counts));
  return signature;
}

Status Validate(const AttrView& attrs) {
  std::vector<std::string_view> missing;
  for (const AttrDef& attr : attrs.def().attrs) {
    if (const AttrValue* value = FindExplicit(attrs.explicit_values(), attr.name)) {
      WEIR_TRY(CheckAllowed(attr, *value));
    } else if (!attr.default_value.set()) {
      missing.push_back(attr.name);
    }
  }
  if (missing.empty()) return {};
  if (missing.size() == 1) return Missing(attrs, missing[0]);
  std::string names;
  for (std::string_view name : missing) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", name);
  return InvalidArgument("NodeDef missing attrs {} from {}", names, Summarize(attrs.def()));
}

}  // namespace weir::op
