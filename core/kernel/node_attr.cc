#include "core/kernel/node_attr.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/base/errors.h"
#include "core/op/attr_value.h"

namespace weir::kernel {
namespace {

weir_shape PartialView(const PartialShape& shape) {
  if (!shape.has_rank()) return {WEIR_UNKNOWN_RANK, 0, nullptr};
  return {static_cast<uint32_t>(shape.rank()), 0, shape.dims().data()};
}

// Type of an empty list according to the op's definition: "list(int)".
uint32_t ListType(std::string_view type) {
  struct Entry {
    std::string_view name;
    uint32_t value;
  };
  static constexpr Entry kTypes[] = {{"list(int)", WEIR_VALUE_INT},       {"list(float)", WEIR_VALUE_FLOAT},
                                     {"list(bool)", WEIR_VALUE_BOOL},     {"list(string)", WEIR_VALUE_STRING},
                                     {"list(type)", WEIR_VALUE_DTYPE},    {"list(shape)", WEIR_VALUE_SHAPE},
                                     {"list(tensor)", WEIR_VALUE_TENSOR}, {"list(func)", WEIR_VALUE_FUNC}};
  for (const Entry& entry : kTypes) {
    if (entry.name == type) return entry.value;
  }
  return WEIR_VALUE_NONE;
}

// Fills a weir_attr from a value of any kind. Converted lists are stored in the node's storage.
class Filler {
 public:
  Filler(const weir_node& node, std::string_view name, weir_attr& attr) : node_(node), name_(name), attr_(attr) {}

  Status operator()(std::monostate) { return NotFound("attribute '{}' is not set", name_); }
  Status operator()(const op::AttrPlaceholder& value) {
    return Unimplemented("attribute '{}' stands for '{}' of a function's caller", name_, value.name);
  }
  Status operator()(const std::string& value) {
    return One(WEIR_VALUE_STRING, attr_.s, ViewOf(std::string_view(value)));
  }
  Status operator()(int64_t value) { return One(WEIR_VALUE_INT, attr_.i, value); }
  Status operator()(float value) { return One(WEIR_VALUE_FLOAT, attr_.f, value); }
  Status operator()(bool value) { return One(WEIR_VALUE_BOOL, attr_.i, value ? 1 : 0); }
  Status operator()(DType value) { return One(WEIR_VALUE_DTYPE, attr_.i, static_cast<int64_t>(BaseType(value))); }
  Status operator()(const PartialShape& value) { return One(WEIR_VALUE_SHAPE, attr_.shape, PartialView(value)); }
  Status operator()(const Tensor& value) {
    return One(WEIR_VALUE_TENSOR, attr_.tensor, Store(std::vector<weir_tensor>{ViewOf(value)}));
  }
  Status operator()(const op::FuncRef& value) {
    return One(WEIR_VALUE_FUNC, attr_.s, ViewOf(std::string_view(value.name)));
  }
  Status operator()(const op::EmptyList&) {
    const op::AttrDef* def = node_.attrs.def().FindAttr(name_);
    return List(def != nullptr ? ListType(def->type) : uint32_t{WEIR_VALUE_NONE}, 0);
  }
  Status operator()(const std::vector<int64_t>& values) {
    attr_.ints = values.data();
    return List(WEIR_VALUE_INT, values.size());
  }
  Status operator()(const std::vector<float>& values) {
    attr_.floats = Store(std::vector<double>(values.begin(), values.end()));
    return List(WEIR_VALUE_FLOAT, values.size());
  }
  Status operator()(const std::vector<bool>& values) {
    attr_.bools = Store(std::vector<uint8_t>(values.begin(), values.end()));
    return List(WEIR_VALUE_BOOL, values.size());
  }
  Status operator()(const std::vector<DType>& values) {
    attr_.dtypes = Convert<uint32_t>(values, [](DType t) { return static_cast<uint32_t>(BaseType(t)); });
    return List(WEIR_VALUE_DTYPE, values.size());
  }
  Status operator()(const std::vector<std::string>& values) {
    attr_.strings = Convert<weir_str>(values, [](const std::string& s) { return ViewOf(std::string_view(s)); });
    return List(WEIR_VALUE_STRING, values.size());
  }
  Status operator()(const std::vector<op::FuncRef>& values) {
    attr_.strings = Convert<weir_str>(values, [](const op::FuncRef& f) { return ViewOf(std::string_view(f.name)); });
    return List(WEIR_VALUE_FUNC, values.size());
  }
  Status operator()(const std::vector<PartialShape>& values) {
    attr_.shapes = Convert<weir_shape>(values, PartialView);
    return List(WEIR_VALUE_SHAPE, values.size());
  }
  Status operator()(const std::vector<Tensor>& values) {
    attr_.tensors = Convert<weir_tensor>(values, [](const Tensor& t) { return ViewOf(t); });
    return List(WEIR_VALUE_TENSOR, values.size());
  }

 private:
  template <class Field, class Value>
  Status One(uint32_t type, Field& field, const Value& value) {
    attr_.type = type;
    attr_.count = 1;
    field = value;
    return {};
  }
  Status List(uint32_t type, size_t count) {
    attr_.type = type | WEIR_VALUE_LIST;
    attr_.count = count;
    return {};
  }
  template <class T>
  const T* Store(std::vector<T> values) {
    auto kept = std::make_shared<std::vector<T>>(std::move(values));
    node_.storage.push_back(kept);
    return kept->data();
  }
  template <class T, class From, class Fn>
  const T* Convert(const std::vector<From>& from, Fn convert) {
    std::vector<T> values;
    values.reserve(from.size());
    for (const From& value : from) values.push_back(convert(value));
    return Store(std::move(values));
  }

  const weir_node& node_;
  std::string_view name_;
  weir_attr& attr_;
};

}  // namespace

Result<weir_attr> FindAttr(const weir_node& node, std::string_view name) {
  const op::AttrValue* value = node.attrs.Find(name);
  if (value == nullptr) return NotFound("node '{}' has no attribute '{}'", node.name, name);
  weir_attr attr{};
  attr.struct_size = sizeof(attr);
  WEIR_TRY(std::visit(Filler(node, name, attr), value->value()));
  return attr;
}

}  // namespace weir::kernel
