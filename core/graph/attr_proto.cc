#include "core/graph/attr_proto.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/graph_view.h"
#include "core/proto/parse.h"
#include "core/tensor/tensor_content.h"
#include "weir/proto/attr_value.pb.h"

namespace weir::graph {
namespace {

Result<op::FuncRef> FuncFromProto(const tf::NameAttrList& proto, ExpansionBudget& budget) {
  op::FuncRef func{proto.name(), nullptr};
  if (proto.attr().empty()) return func;
  op::AttrList attrs;
  for (const auto& [name, value] : proto.attr()) {
    WEIR_ASSIGN(op::AttrValue attr, AttrFromProto(value, budget));
    attrs.emplace_back(name, std::move(attr));
  }
  std::ranges::sort(attrs, {}, &op::AttrList::value_type::first);
  func.attrs = std::make_shared<const op::AttrList>(std::move(attrs));
  return func;
}

template <class T, class Values>
op::AttrValue Copied(const Values& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <class T, class Values, class Convert>
Result<op::AttrValue> Converted(const Values& values, Convert convert) {
  std::vector<T> list;
  list.reserve(static_cast<size_t>(values.size()));
  for (const auto& value : values) {
    WEIR_ASSIGN(T item, convert(value));
    list.push_back(std::move(item));
  }
  return op::AttrValue(std::move(list));
}

Result<op::AttrValue> ListFromProto(const tf::AttrValue::ListValue& list, ExpansionBudget& budget) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) + (list.f_size() > 0) + (list.b_size() > 0) +
                    (list.type_size() > 0) + (list.shape_size() > 0) + (list.tensor_size() > 0) +
                    (list.func_size() > 0);
  if (kinds == 0) return op::AttrValue(op::EmptyList());
  if (kinds > 1) return InvalidArgument("AttrValue had a list with values of {} kinds", kinds);
  if (list.s_size() > 0) return Copied<std::string>(list.s());
  if (list.i_size() > 0) return Copied<int64_t>(list.i());
  if (list.f_size() > 0) return Copied<float>(list.f());
  if (list.b_size() > 0) return Copied<bool>(list.b());
  if (list.type_size() > 0) {
    return Converted<DType>(list.type(), [](int type) { return Result<DType>(static_cast<DType>(type)); });
  }
  if (list.shape_size() > 0) return Converted<PartialShape>(list.shape(), PartialShapeFromProto);
  if (list.tensor_size() > 0) {
    return Converted<Tensor>(list.tensor(), [&](const tf::TensorProto& t) { return TensorFromProto(t, &budget); });
  }
  return Converted<op::FuncRef>(list.func(), [&](const tf::NameAttrList& f) { return FuncFromProto(f, budget); });
}

Status WriteFunc(const op::FuncRef& func, tf::NameAttrList& to) {
  to.set_name(func.name);
  if (!func.attrs) return {};
  for (const auto& [name, value] : *func.attrs) WEIR_TRY(AttrToProto(value, (*to.mutable_attr())[name]));
  return {};
}

/// Appends one element to a list.
struct Appender {
  tf::AttrValue::ListValue& to;

  void Add(const std::string& v) { to.add_s(v); }
  void Add(int64_t v) { to.add_i(v); }
  void Add(float v) { to.add_f(v); }
  void Add(bool v) { to.add_b(v); }
  void Add(DType v) { to.add_type(static_cast<tf::DataType>(v)); }
  void Add(const PartialShape& v) { ShapeToProto(v, *to.add_shape()); }
  Status Add(const Tensor& v) { return TensorToProto(v, TensorEncoding::kTyped, *to.add_tensor()); }
  Status Add(const op::FuncRef& v) { return WriteFunc(v, *to.add_func()); }
};

/// Writes one alternative of the variant.
struct Writer {
  tf::AttrValue& to;

  void Set(const std::string& v) { to.set_s(v); }
  void Set(int64_t v) { to.set_i(v); }
  void Set(float v) { to.set_f(v); }
  void Set(bool v) { to.set_b(v); }
  void Set(DType v) { to.set_type(static_cast<tf::DataType>(v)); }
  void Set(const PartialShape& v) { ShapeToProto(v, *to.mutable_shape()); }
  void Set(const op::AttrPlaceholder& v) { to.set_placeholder(v.name); }
  void Set(op::EmptyList) { to.mutable_list(); }
  Status Set(std::monostate) { return InvalidArgument("an attribute without value cannot be serialized"); }
  Status Set(const Tensor& v) { return TensorToProto(v, TensorEncoding::kTyped, *to.mutable_tensor()); }
  Status Set(const op::FuncRef& v) { return WriteFunc(v, *to.mutable_func()); }
  template <class T>
  Status Set(const std::vector<T>& list) {
    Appender appender{*to.mutable_list()};
    for (const auto& item : list) {
      if constexpr (std::is_void_v<decltype(appender.Add(T(item)))>) {
        appender.Add(T(item));
      } else {
        WEIR_TRY(appender.Add(item));
      }
    }
    return {};
  }
};

/// Reads a value with a single scalar field or a list of strings; false for all others.
bool ReadSimple(std::string_view bytes, op::AttrValue& value) {
  WireFields fields(bytes);
  if (!fields.Next()) return false;
  std::vector<std::string> strings;
  if (fields.Is(1, 2)) {
    WireFields items(fields.bytes());
    while (items.Next() && items.Is(2, 2)) strings.emplace_back(items.bytes());
    if (strings.empty() || !items.ok() || !items.Is(2, 2)) return false;
    value = std::move(strings);
  } else if (fields.Is(2, 2)) {
    value = std::string(fields.bytes());
  } else if (fields.Is(3, 0)) {
    value = static_cast<int64_t>(fields.value());
  } else if (fields.Is(4, 5)) {
    value = std::bit_cast<float>(static_cast<uint32_t>(fields.value()));
  } else if (fields.Is(5, 0)) {
    value = fields.value() != 0;
  } else if (fields.Is(6, 0)) {
    value = static_cast<DType>(static_cast<uint32_t>(fields.value()));
  } else {
    return false;
  }
  return !fields.Next() && fields.ok();
}

/// Reads a tensor of numbers that are stored as in memory. An invalid tensor for any other value, which the message's
/// parser reads or refuses.
Result<Tensor> ReadContent(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  WireFields fields(bytes);
  if (!fields.Next() || !fields.Is(8, 2)) return Tensor();
  const std::string_view message = fields.bytes();
  if (fields.Next() || !fields.ok()) return Tensor();
  return TensorOfContent(message, owner);
}

}  // namespace

AttrReader::AttrReader(uint64_t expansion_bytes, std::shared_ptr<const void> owner)
    : budget_{expansion_bytes}, owner_(std::move(owner)), scratch_(std::make_unique<tf::AttrValue>()) {}
AttrReader::~AttrReader() = default;

Status AttrReader::Read(std::string_view bytes, op::AttrValue& value) {
  if (ReadSimple(bytes, value)) return {};
  WEIR_ASSIGN(Tensor content, ReadContent(bytes, owner_));
  if (content.valid()) {
    value = std::move(content);
    return {};
  }
  WEIR_TRY(proto::ParseBinary(bytes, "AttrValue", *scratch_));
  WEIR_ASSIGN(value, AttrFromProto(*scratch_, budget_));
  return {};
}

Result<op::AttrValue> AttrFromProto(const tf::AttrValue& proto, ExpansionBudget& budget) {
  switch (proto.value_case()) {
    case tf::AttrValue::kList:
      return ListFromProto(proto.list(), budget);
    case tf::AttrValue::kS:
      return op::AttrValue(proto.s());
    case tf::AttrValue::kI:
      return op::AttrValue(int64_t{proto.i()});
    case tf::AttrValue::kF:
      return op::AttrValue(proto.f());
    case tf::AttrValue::kB:
      return op::AttrValue(proto.b());
    case tf::AttrValue::kType:
      return op::AttrValue(static_cast<DType>(proto.type()));
    case tf::AttrValue::kPlaceholder:
      return op::AttrValue(op::AttrPlaceholder{proto.placeholder()});
    case tf::AttrValue::kShape: {
      WEIR_ASSIGN(PartialShape shape, PartialShapeFromProto(proto.shape()));
      return op::AttrValue(std::move(shape));
    }
    case tf::AttrValue::kTensor: {
      WEIR_ASSIGN(Tensor tensor, TensorFromProto(proto.tensor(), &budget));
      return op::AttrValue(std::move(tensor));
    }
    case tf::AttrValue::kFunc: {
      WEIR_ASSIGN(op::FuncRef func, FuncFromProto(proto.func(), budget));
      return op::AttrValue(std::move(func));
    }
    case tf::AttrValue::VALUE_NOT_SET:
      break;
  }
  return InvalidArgument("AttrValue missing value");
}

Status AttrToProto(const op::AttrValue& value, tf::AttrValue& proto) {
  proto.Clear();
  return std::visit(
      [&](const auto& v) -> Status {
        Writer writer{proto};
        if constexpr (std::is_void_v<decltype(writer.Set(v))>) {
          writer.Set(v);
          return {};
        } else {
          return writer.Set(v);
        }
      },
      value.value());
}

}  // namespace weir::graph
