#include "core/client/ops/operand.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/variables/variable.h"
#include "core/op/vendor_ops.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// Types of nested lists meet as Python's do: strings alone, else float beats integers, the wider integer the narrower.
DType Wider(DType a, DType b) {
  if (a == DType::kInvalid || a == b) return b;
  const auto rank = [](DType t) {
    switch (t) {
      case DType::kBool:
        return 0;
      case DType::kInt32:
        return 1;
      case DType::kInt64:
        return 2;
      case DType::kUint64:
        return 3;
      case DType::kFloat:
        return 4;
      case DType::kDouble:
        return 5;
      default:
        return 6;
    }
  };
  return rank(a) < rank(b) ? b : a;
}

/// Element by element; literals are small. Integers that fit become integers exactly.
Result<Tensor> ConvertNumbers(const Tensor& from, DType dtype) {
  WEIR_ASSIGN(Tensor to, Tensor::Make(dtype, from.shape()));
  const size_t size = SizeOf(dtype);
  const bool wide = IsInteger(dtype) && size >= sizeof(int32_t) && !IsFloating(from.dtype());
  for (int64_t i = 0; i < from.elements(); ++i) {
    std::byte* const at = to.mutable_raw() + static_cast<size_t>(i) * size;
    if (wide) {
      const int64_t value = ElementAsInt(from, i);
      std::memcpy(at, &value, size);  // of two's complement, the low bytes first
      continue;
    }
    WEIR_ASSIGN(const Tensor element, ScalarFrom(dtype, ElementAsDouble(from, i)));
    std::memcpy(at, element.raw(), size);
  }
  return to;
}

/// The first element that an integer type does not hold, fractions aside; the number of elements when it holds all.
int64_t FirstBeyond(const Tensor& from, DType dtype) {
  if (!IsInteger(dtype)) return from.elements();
  const int bits = static_cast<int>(SizeOf(dtype)) * 8;
  const bool is_signed = Name(dtype)[0] == 'i';
  const double below = std::exp2(is_signed ? bits - 1 : bits);
  const double least = is_signed ? -below : 0;
  for (int64_t i = 0; i < from.elements(); ++i) {
    if (!IsFloating(from.dtype()) && SizeOf(dtype) == sizeof(int64_t)) {
      const bool beyond = ElementAsInt(from, i) < 0;  // a negative number, or a uint64 of 2^63 and more
      if (beyond && (from.dtype() == DType::kUint64) == is_signed) return i;
      continue;
    }
    const double value = std::trunc(ElementAsDouble(from, i));
    if (!(value >= least && value < below)) return i;
  }
  return from.elements();
}

bool Fits(const Tensor& from, DType dtype) { return FirstBeyond(from, dtype) == from.elements(); }

/// An element and its type as Python shows them: "2.0 of type 'float'".
std::string InPython(const Tensor& from, int64_t element) {
  const auto i = static_cast<size_t>(element);
  switch (from.dtype()) {
    case DType::kString:
      return fmt::format("'{}' of type 'str'", from.as<std::string>()[i]);
    case DType::kBool:
      return fmt::format("{} of type 'bool'", from.as<bool>()[i] ? "True" : "False");
    case DType::kUint64:
      return fmt::format("{} of type 'int'", from.as<uint64_t>()[i]);
    default:
      return IsInteger(from.dtype()) ? fmt::format("{} of type 'int'", ElementAsInt(from, element))
                                     : fmt::format("{:#} of type 'float'", ElementAsDouble(from, element));
  }
}

/// What keeps a literal from becoming `dtype`: "2.0 of type 'float'"; empty for nothing.
std::string Misfit(const Tensor& tensor, DType dtype) {
  if (dtype == DType::kInvalid || !tensor.valid() || tensor.dtype() == dtype || tensor.elements() == 0) return "";
  const auto is_number = [](DType t) { return HasFixedSize(t) && t != DType::kBool; };
  const bool numbers = is_number(tensor.dtype()) && is_number(dtype);
  const bool refused = !numbers || (IsFloating(tensor.dtype()) && IsInteger(dtype));
  const int64_t beyond = numbers ? FirstBeyond(tensor, dtype) : 0;
  if (!refused && beyond == tensor.elements()) return "";
  return InPython(tensor, beyond == tensor.elements() ? 0 : beyond);
}

/// What Python calls a value fed.
std::string_view PythonClass(const Tensor& value) {
  if (value.shape().rank() > 0) return "list";
  if (value.dtype() == DType::kString) return "str";
  if (value.dtype() == DType::kBool) return "bool";
  return IsFloating(value.dtype()) ? "float" : "int";
}

/// The numbers that texts spell, as Python's float() and int() read them: with spaces around, nothing else.
template <class T>
Result<Tensor> Parsed(const Tensor& texts) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  WEIR_ASSIGN(Tensor numbers, Tensor::Make(DTypeOf<T>::value, texts.shape()));
  size_t next = 0;
  for (const std::string& text : texts.as<std::string>()) {
    std::string_view digits = text;
    digits.remove_prefix(std::min(digits.find_first_not_of(kSpaces), digits.size()));
    digits = digits.substr(0, digits.find_last_not_of(kSpaces) + 1);
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    T& number = numbers.mutable_as<T>()[next++];
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) continue;
    return std::same_as<T, double> ? InvalidArgument("could not convert string to float: '{}'", text)
                                   : InvalidArgument("invalid literal for int() with base 10: '{}'", text);
  }
  return numbers;
}

}  // namespace

Tensor Literal::Stack(const std::vector<Literal>& rows) {
  if (rows.empty()) return Tensor::Vector<float>({});
  DType dtype = DType::kInvalid;
  for (const Literal& row : rows) dtype = Wider(dtype, row.tensor.dtype());
  const auto fits = [dtype](const Literal& row) { return Fits(row.tensor, dtype); };
  if (dtype == DType::kUint64 && !std::ranges::all_of(rows, fits)) dtype = DType::kDouble;  // for want of an integer
  std::vector<int64_t> dims = {static_cast<int64_t>(rows.size())};
  const auto inner = rows[0].tensor.shape().dims();
  dims.insert(dims.end(), inner.begin(), inner.end());
  Result<Shape> shape = Shape::Make(dims);
  if (!shape.ok()) return Tensor();
  Result<Tensor> whole = Tensor::Make(dtype, std::move(*shape));
  if (!whole.ok()) return Tensor();
  size_t next = 0;
  for (const Literal& row : rows) {
    if (!(row.tensor.shape() == rows[0].tensor.shape())) return Tensor();
    if (!HasFixedSize(row.tensor.dtype()) && row.tensor.dtype() != dtype) return Tensor();
    const Result<Tensor> part = row.tensor.dtype() == dtype ? row.tensor : ConvertNumbers(row.tensor, dtype);
    if (!part.ok()) return Tensor();
    if (dtype == DType::kString) {
      for (const std::string& text : part->as<std::string>()) whole->mutable_as<std::string>()[next++] = text;
    } else if (part->bytes() > 0) {
      std::memcpy(whole->mutable_raw() + next, part->raw(), part->bytes());
      next += part->bytes();
    }
  }
  return std::move(*whole);
}

Result<Tensor> Literal::As(DType dtype) const {
  dtype = BaseType(dtype);
  if (is_empty_list()) return Tensor::Make(dtype == DType::kInvalid ? natural : dtype, Shape::Empty());
  if (dtype == DType::kInvalid) dtype = natural;
  if (!tensor.valid() && !flexible) return InvalidArgument("a tensor without a value was given");
  if (!tensor.valid()) return InvalidArgument("a literal's rows have different shapes or types, or are too large");
  if (dtype == DType::kInvalid || tensor.dtype() == dtype) return tensor;
  if (!flexible) {
    return InvalidArgument("Tensor conversion requested dtype {} for Tensor with dtype {}", NumpyName(dtype),
                           NumpyName(tensor.dtype()));
  }
  if (const std::string got = Misfit(tensor, dtype); !got.empty()) {
    return InvalidArgument("Expected {}, got {} instead.", NumpyName(dtype), got);
  }
  return ConvertNumbers(tensor, dtype);
}

Result<Tensor> Literal::ForFeed(DType dtype) const {
  dtype = BaseType(dtype);
  if (is_empty_list()) return Tensor::Make(dtype, Shape::Empty());
  if (!tensor.valid() && !flexible) return InvalidArgument("a tensor without a value was given");
  if (!tensor.valid()) return InvalidArgument("the value has rows of different shapes or types");
  if (tensor.dtype() == dtype || (!flexible && tensor.dtype() != DType::kString)) return tensor;
  if (!HasFixedSize(dtype)) return tensor;
  Tensor numbers = tensor;
  if (tensor.dtype() == DType::kString && dtype != DType::kBool) {
    WEIR_ASSIGN(numbers, IsInteger(dtype) ? Parsed<int64_t>(tensor) : Parsed<double>(tensor));
  }
  if (numbers.dtype() == DType::kString || !Fits(numbers, dtype)) {
    std::string value = tensor.SummarizeValues(3);
    if (tensor.shape().rank() == 0) value = value.substr(1, value.size() - 2);  // without brackets
    return InvalidArgument(
        "Type of feed value {} with type <class '{}'> is not compatible with Tensor type <class 'numpy.{}'>.", value,
        PythonClass(tensor), dtype == DType::kBool ? "bool_" : NumpyName(dtype));
  }
  return ConvertNumbers(numbers, dtype);
}

Operand::Operand(const Variable& variable, std::source_location where) : where_(where) {
  const bool anew = variable.is_read_anew();
  output_ = anew ? variable.snapshot() : variable.value(where);
  if (anew) handle_ = variable.handle();
}

Operand Operand::ReadNow() const { return handle_.exists() ? Operand(In(*graph()), where_) : *this; }

Output Operand::In(Graph& graph, DType dtype, std::string_view name) const {
  if (handle_.exists()) return ReadHandle(handle_, output_.dtype(), where_);
  if (!is_literal_) return output_;
  const Result<Tensor> value = literal_.As(dtype);
  if (!value.ok()) {
    (void)graph.Fail(value.status().Append(" (" + Format(Internals(graph).origin.value_or(where_)) + ")"));
    return Output::Absent(graph);
  }
  OperationSpec spec;
  spec.op = "Const";
  spec.attrs = {{"value", *value}, {"dtype", value->dtype()}};
  spec.name = name;
  spec.where = where_;
  return graph.Add(spec).output(0);
}

namespace {

/// `count` times `none`; empty where the count cannot be meant.
List<Output> Repeated(const Output& none, int64_t count) {
  constexpr int64_t kMost = 1 << 16;
  const bool meant = count >= 0 && count <= kMost;
  return List<Output>::Absent(meant ? static_cast<size_t>(count) : 0, none);
}

}  // namespace

List<Output> AbsentValues(Graph& graph, int64_t count) { return Repeated(Output::Absent(graph), count); }

List<Output> OutputsOr(const Operation& operation, int64_t count) {
  if (operation.exists()) return operation.outputs();
  if (IsSpoiled(operation)) return Repeated(operation.output(0), count);
  return AbsentValues(operation.graph() != nullptr ? *operation.graph() : Graph::Default(), count);
}

Graph& GraphOf(const Operand& operand) { return operand.graph() != nullptr ? *operand.graph() : Graph::Default(); }

Graph& GraphOf(const std::vector<Operand>& operands) {
  const auto value = std::ranges::find_if(operands, [](const Operand& o) { return o.graph() != nullptr; });
  return value != operands.end() ? *value->graph() : Graph::Default();
}

namespace {

/// Whether a flexible literal can be the input `arg` of an op, in TensorFlow's words.
Status CheckLiteral(const Operand& input, DType dtype, std::string_view arg, std::string_view op) {
  if (!input.is_literal() || !input.literal().flexible) return Status();
  const std::string got = Misfit(input.literal().tensor, BaseType(dtype));
  if (got.empty()) return Status();
  return InvalidArgument(
      "Expected {0} passed to parameter '{1}' of op '{2}', got {3} instead. Error: Expected {0}, got {3} instead.",
      NumpyName(BaseType(dtype)), arg, op, got);
}

}  // namespace

Operation BuildOp(std::string_view op, const std::vector<Operand>& inputs, op::AttrList attrs, std::string_view name,
                  std::source_location where) {
  Graph* const graph = &GraphOf(inputs);
  OperationSpec spec;
  spec.op = op;
  spec.attrs = std::move(attrs);
  spec.name = name.empty() ? op : name;
  spec.where = where;
  if (std::ranges::none_of(inputs, &Operand::adds_node)) {
    for (const Operand& input : inputs) spec.inputs.push_back(input.In(*graph));
    return graph->Add(spec);
  }
  const op::OpDef* def = op::FindOrLoad(Internals(*graph).definition.ops(), op);
  const NameScope scope(spec.name, *graph);
  const auto type_of = [&](size_t i) -> DType {
    if (def == nullptr || i >= def->inputs.size()) return DType::kInvalid;
    const op::ArgDef& arg = def->inputs[i];
    if (arg.dtype != DType::kInvalid) return arg.dtype;
    for (size_t j = 0; j < inputs.size() && j < def->inputs.size(); ++j) {
      if (!inputs[j].is_literal() && !arg.type_attr.empty() && def->inputs[j].type_attr == arg.type_attr) {
        return inputs[j].dtype();
      }
    }
    return DType::kInvalid;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string arg = def != nullptr && i < def->inputs.size() ? def->inputs[i].name : "Const";
    const DType dtype = inputs[i].is_literal() ? type_of(i) : DType::kInvalid;
    if (const Status fits = CheckLiteral(inputs[i], dtype, arg, op); !fits.ok()) {
      (void)graph->Fail(fits.Append(" (" + Format(Internals(*graph).origin.value_or(where)) + ")"));
      return Operation::Absent(*graph);
    }
    spec.inputs.push_back(inputs[i].In(*graph, dtype, arg));
  }
  const std::string path = scope.path();
  spec.name = path;
  return graph->Add(spec);
}

Output UnaryOp::operator()(const Operand& x, std::string_view name, Where where) const {
  return BuildOp(op, {x}, {}, name.empty() ? node : name, where).output(0);
}

Output BinaryOp::operator()(const Operand& x, const Operand& y, std::string_view name, Where where) const {
  return BuildOp(op, {x, y}, {}, name.empty() ? node : name, where).output(0);
}

}  // namespace weir
