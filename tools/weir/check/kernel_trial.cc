#include "tools/weir/check/kernel_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "core/op/shape_context.h"

namespace weir::check {

using kernel::OperandSpec;
using kernel::Text;

KernelTrial::KernelTrial(const op::OpDef& def, op::AttrList attrs)
    : def_(&def), attrs_(std::move(attrs)), node_{"trial", op::AttrView(def, attrs_)} {
  node_.resources = &resources_;
  node_.constant_input = [this](int i) -> const Tensor* {
    const auto at = static_cast<size_t>(i);
    return at < values_.size() && known_[at] ? &values_[at] : nullptr;
  };
}

bool KernelTrial::empty() const {
  return std::all_of(outputs_.begin(), outputs_.end(), [](const OperandSpec& o) { return o.shape.elements() == 0; });
}

bool KernelTrial::has_strings() const {
  const auto is_string = [](const OperandSpec& o) { return o.dtype == DType::kString; };
  return std::any_of(inputs_.begin(), inputs_.end(), is_string) ||
         std::any_of(outputs_.begin(), outputs_.end(), is_string);
}

std::string KernelTrial::ToString() const {
  std::string text = def_->name;
  for (const auto& [name, value] : attrs_) {
    if (value.get<DType>() != nullptr) text += fmt::format(" {}={}", name, value.ToString());
  }
  for (const OperandSpec& input : inputs_) text += " " + input.shape.ToString();
  return text;
}

namespace {

constexpr int kShapesPerType = 3;  // of the first element type; other types get one shape each

const std::vector<std::vector<int64_t>> kDataShapes = {{2, 3}, {4, 4}, {6}, {}, {2, 3, 4}, {1, 4, 4, 2}, {0, 3}, {0}};

uint64_t MaskOf(const weir_kernel& record, std::string_view attr) {
  for (uint32_t i = 0; i < record.type_count; ++i) {
    if (Text(record.types[i].attr) == attr) return record.types[i].dtypes;
  }
  return WEIR_ANY_DTYPE;
}

// Types for which the host can make values, in the order of preference for unconstrained attributes.
std::vector<DType> Preferred(DTypeSet set) {
  std::vector<DType> types;
  for (const DType t :
       {DType::kFloat, DType::kInt32, DType::kInt64, DType::kDouble, DType::kBool, DType::kHalf, DType::kBfloat16,
        DType::kUint8, DType::kInt8, DType::kInt16, DType::kUint16, DType::kUint32, DType::kUint64, DType::kComplex64,
        DType::kComplex128, DType::kQint8, DType::kQuint8, DType::kQint32, DType::kString}) {
    if (Contains(set, t)) types.push_back(t);
  }
  return types;
}

using Random = std::minstd_rand;  // cheap to make, one for every search

// Finite values without zero (divisors); integers are small enough to be indices.
void Fill(Tensor& tensor, bool index, Random& random) {
  const DType t = tensor.dtype();
  if (t == DType::kString) {
    for (std::string& text : tensor.mutable_as<std::string>())
      text = random() % 2 == 0 ? "a" : "a longer text than fits inline";
    return;
  }
  std::byte* data = tensor.mutable_raw();
  const auto put = [&](int64_t i, auto value) {
    std::memcpy(data + static_cast<size_t>(i) * sizeof(value), &value, sizeof(value));
  };
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int small = static_cast<int>(random() % 2) + (index ? 0 : 1);
    const float real = (random() % 2 == 0 ? 1.0f : -1.0f) * (0.25f + static_cast<float>(random() % 1000) / 500.0f);
    switch (t) {
      case DType::kFloat:
        put(i, real);
        break;
      case DType::kDouble:
        put(i, static_cast<double>(real));
        break;
      case DType::kComplex64:
        put(2 * i, real);
        put(2 * i + 1, -real);
        break;
      case DType::kComplex128:
        put(2 * i, static_cast<double>(real));
        put(2 * i + 1, 0.5);
        break;
      case DType::kBfloat16:
        put(i, static_cast<uint16_t>(std::bit_cast<uint32_t>(real) >> 16));
        break;
      case DType::kHalf:
        put(i, static_cast<uint16_t>((random() % 2 == 0 ? 0x3800 : 0xbc00) + random() % 1024));
        break;
      case DType::kInt64:
      case DType::kUint64:
        put(i, static_cast<int64_t>(small));
        break;
      case DType::kInt32:
      case DType::kUint32:
      case DType::kQint32:
        put(i, small);
        break;
      case DType::kInt16:
      case DType::kUint16:
      case DType::kQint16:
      case DType::kQuint16:
        put(i, static_cast<int16_t>(small));
        break;
      case DType::kBool:
        put(i, static_cast<uint8_t>(small % 2));
        break;
      default:
        put(i, static_cast<uint8_t>(small));
        break;
    }
  }
}

// Integer values for arguments such as an axis, a shape or a permutation, for data of shape `dims`.
enum class Pattern { kScalarZero, kZero, kIota, kDims, kZeros, kOnes, kPairs, kFirstTwo, kScalarTwo, kLast };

Tensor MakeInts(Pattern pattern, DType dtype, const std::vector<int64_t>& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> values;
  std::vector<int64_t> shape = {rank};
  switch (pattern) {
    case Pattern::kScalarZero:
      values = {0};
      shape = {};
      break;
    case Pattern::kScalarTwo:
      values = {2};
      shape = {};
      break;
    case Pattern::kZero:
      values = {0};
      shape = {1};
      break;
    case Pattern::kLast:
      values = {std::max<int64_t>(rank - 1, 0)};
      shape = {1};
      break;
    case Pattern::kIota:
      values.resize(dims.size());
      std::iota(values.begin(), values.end(), int64_t{0});
      break;
    case Pattern::kDims:
      values = dims;
      break;
    case Pattern::kZeros:
      values.assign(dims.size(), 0);
      break;
    case Pattern::kOnes:
      values.assign(dims.size(), 1);
      break;
    case Pattern::kPairs:
      values.assign(2 * dims.size(), 1);
      shape = {rank, 2};
      break;
    case Pattern::kFirstTwo:
      values = {0, 1};
      shape = {2};
      break;
  }
  Result<Shape> made = Shape::Make(shape);
  Result<Tensor> tensor = made.ok() ? Tensor::Make(dtype, *made) : Result<Tensor>(made.status());
  if (!tensor.ok()) return Tensor();
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kInt64) {
      tensor->mutable_as<int64_t>()[i] = values[i];
    } else {
      tensor->mutable_as<int32_t>()[i] = static_cast<int32_t>(values[i]);
    }
  }
  return std::move(*tensor);
}

// Patterns of the integer arguments in order; the last entry repeats.
const std::vector<std::vector<Pattern>> kPatterns = {
    {Pattern::kScalarZero},
    {Pattern::kZero},
    {Pattern::kDims},
    {Pattern::kIota},
    {Pattern::kZeros, Pattern::kDims, Pattern::kOnes},
    {Pattern::kDims, Pattern::kZeros, Pattern::kDims, Pattern::kOnes},
    {Pattern::kOnes},
    {Pattern::kPairs},
    {Pattern::kFirstTwo},
    {Pattern::kFirstTwo, Pattern::kScalarZero},
    {Pattern::kScalarZero, Pattern::kScalarTwo},
    {Pattern::kFirstTwo, Pattern::kScalarTwo},
    {Pattern::kScalarTwo},
    {Pattern::kLast},
};

// Shapes of a data input relative to the first one.
enum class Form { kSame, kScalar, kLast, kFirst };

std::vector<int64_t> Formed(Form form, const std::vector<int64_t>& dims) {
  if (form == Form::kSame || (dims.empty() && form != Form::kScalar)) return dims;
  if (form == Form::kScalar) return {};
  return {form == Form::kLast ? dims.back() : dims.front()};
}

}  // namespace

// The search for one record and one combination of element types.
class TrialSearch {
 public:
  TrialSearch(const op::OpDef& def, const weir_kernel& record, DType first)
      : def_(def), record_(record), first_(first) {}

  /// Tries every combination until `wanted` trials with distinct data shapes were accepted.
  int Run(int wanted, const std::function<bool(const KernelTrial&)>& try_it) {
    int taken = 0;
    for (const std::vector<int64_t>& dims : kDataShapes) {
      const bool is_empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
      if (taken >= wanted && !(is_empty && wanted > 1)) continue;
      if (TryShape(dims, try_it)) {
        ++taken;
        if (is_empty) break;
      }
    }
    return taken;
  }

 private:
  // Attributes that the op accepts, for data of one shape.
  struct Node {
    op::AttrList attrs;
    op::Signature signature;
  };

  bool TryShape(const std::vector<int64_t>& dims, const std::function<bool(const KernelTrial&)>& try_it) {
    const std::optional<Node> node = NodeFor(dims);
    if (!node) return false;
    for (const std::vector<Pattern>& patterns : kPatterns) {
      for (int combination = 0; combination < 64; ++combination) {
        has_ints_ = false;
        data_inputs_ = 0;
        const std::unique_ptr<KernelTrial> trial = Make(*node, dims, patterns, combination);
        if (trial != nullptr && try_it(*trial)) return true;
        if (combination + 1 >= Combinations()) break;
      }
      if (!has_ints_) break;
    }
    return false;
  }

  // The number of shape combinations of the data inputs after the first: four forms each for up to three of them.
  int Combinations() const { return 1 << (2 * std::clamp(data_inputs_ - 1, 0, 3)); }

  std::optional<op::AttrValue> ValueFor(const op::AttrDef& attr, const std::vector<int64_t>& dims) const {
    const uint64_t mask = MaskOf(record_, attr.name) & attr.allowed_types;
    const bool constrained = MaskOf(record_, attr.name) != WEIR_ANY_DTYPE;
    if (attr.type == "type" || attr.type == "list(type)") {
      if (attr.default_value.set() && !constrained) return std::nullopt;
      const std::vector<DType> types = Preferred(mask);
      if (types.empty()) return std::nullopt;
      const bool is_first = record_.type_count != 0 && Text(record_.types[0].attr) == attr.name;
      DType type = Contains(mask, first_) ? first_ : types.front();
      const DType* fallback = attr.default_value.get<DType>();
      if (!is_first && fallback != nullptr && Contains(mask, *fallback)) type = *fallback;
      if (!is_first && attr.name != "T" && Contains(mask, DType::kInt32) && fallback == nullptr) type = DType::kInt32;
      if (attr.type == "type") return op::AttrValue(type);
      return op::AttrValue(std::vector<DType>(2, type));
    }
    if (attr.default_value.set()) return std::nullopt;
    if (attr.type == "int") return op::AttrValue(std::max<int64_t>(attr.minimum.value_or(0), 2));
    if (attr.type == "float") return op::AttrValue(1.0f);
    if (attr.type == "bool") return op::AttrValue(false);
    if (attr.type == "string")
      return op::AttrValue(attr.allowed_strings.empty() ? std::string("x") : attr.allowed_strings.front());
    if (attr.type == "shape") return op::AttrValue(PartialShape::Of(dims));
    if (attr.type == "list(int)")
      return op::AttrValue(std::vector<int64_t>(2, std::max<int64_t>(attr.minimum.value_or(0), 1)));
    return std::nullopt;
  }

  std::optional<Node> NodeFor(const std::vector<int64_t>& dims) const {
    Node node;
    for (const op::AttrDef& attr : def_.attrs) {
      if (std::optional<op::AttrValue> value = ValueFor(attr, dims)) {
        node.attrs.emplace_back(attr.name, std::move(*value));
      }
    }
    const op::AttrView view(def_, node.attrs);
    if (!op::Validate(view).ok()) return std::nullopt;
    Result<op::Signature> signature = op::Expand(view);
    if (!signature.ok()) return std::nullopt;
    node.signature = std::move(*signature);
    return node;
  }

  std::unique_ptr<KernelTrial> Make(const Node& node, const std::vector<int64_t>& dims,
                                    const std::vector<Pattern>& patterns, int combination) {
    auto trial = std::make_unique<KernelTrial>(def_, node.attrs);
    if (!AddInputs(node.signature, dims, patterns, combination, *trial)) return nullptr;
    return InferOutputs(node.signature, *trial) ? std::move(trial) : nullptr;
  }

  bool AddInputs(const op::Signature& signature, const std::vector<int64_t>& dims, const std::vector<Pattern>& patterns,
                 int combination, KernelTrial& trial) {
    size_t flat = 0;
    size_t ints = 0;
    for (size_t arg = 0; arg < def_.inputs.size(); ++arg) {
      for (int k = 0; k < signature.input_counts[arg]; ++k, ++flat) {
        const DType declared = signature.inputs[flat];
        const uint64_t bit = uint64_t{1} << std::min<size_t>(arg, 63);
        const bool variable = ((record_.variable_reads | record_.variable_writes) & bit) != 0;
        DType dtype = BaseType(declared);
        if (dtype == DType::kResource) {
          const Result<DType> held =
              trial.node_.attrs.Has("T") ? trial.node_.attrs.Type("T") : trial.node_.attrs.Type("dtype");
          if (!variable || !held.ok()) return false;
          dtype = *held;
        }
        if (!HasFixedSize(dtype) && (dtype != DType::kString || !WEIR_HAS(&record_, compute))) return false;
        const bool is_int = dtype == DType::kInt32 || dtype == DType::kInt64;
        const bool shape_like = is_int && !variable && def_.inputs[arg].type_attr != "T";
        if (shape_like) {
          has_ints_ = true;
          trial.values_.push_back(MakeInts(patterns[std::min(ints++, patterns.size() - 1)], dtype, dims));
        } else {
          Form form = Form::kSame;
          if (data_inputs_ > 0 && data_inputs_ <= 3)
            form = static_cast<Form>(combination >> (2 * (data_inputs_ - 1)) & 3);
          ++data_inputs_;
          Result<Shape> shape = Shape::Make(Formed(form, dims));
          Result<Tensor> value = shape.ok() ? Tensor::Make(dtype, *shape) : Result<Tensor>(shape.status());
          if (!value.ok()) return false;
          Fill(*value, is_int, random_);
          trial.values_.push_back(std::move(*value));
        }
        if (!trial.values_.back().valid()) return false;
        trial.known_.push_back(shape_like);
        trial.inputs_.push_back({.dtype = dtype,
                                 .shape = trial.values_.back().shape(),
                                 .variable = variable,
                                 .host = (record_.host_inputs & bit) != 0});
      }
    }
    for (size_t i = 0; i < trial.values_.size(); ++i) {
      if (trial.known_[i]) trial.inputs_[i].value = &trial.values_[i];
    }
    return true;
  }

  bool InferOutputs(const op::Signature& signature, KernelTrial& trial) {
    std::vector<PartialShape> shapes;
    for (size_t i = 0; i < trial.inputs_.size(); ++i) {
      shapes.push_back(signature.inputs[i] == DType::kResource ? PartialShape(Shape())
                                                               : PartialShape(trial.inputs_[i].shape));
    }
    const auto value = [&](int i) -> const Tensor* {
      return signature.inputs[static_cast<size_t>(i)] == DType::kResource ? nullptr
                                                                          : &trial.values_[static_cast<size_t>(i)];
    };
    const auto of_resource = [&](int i) {
      const bool resource = signature.inputs[static_cast<size_t>(i)] == DType::kResource;
      return resource ? PartialShape(trial.inputs_[static_cast<size_t>(i)].shape) : PartialShape();
    };
    op::ShapeContext context(trial.node_.attrs, signature.inputs, shapes, static_cast<int>(signature.outputs.size()),
                             value, of_resource);
    if (!def_.shape || !def_.shape(context).ok()) return false;
    size_t flat = 0;
    for (size_t arg = 0; arg < def_.outputs.size(); ++arg) {
      for (int k = 0; k < signature.output_counts[arg]; ++k, ++flat) {
        const DType dtype = BaseType(signature.outputs[flat]);
        const PartialShape& inferred = context.outputs()[flat];
        const Result<Shape> shape = inferred.ToShape();
        const bool dynamic_only = !WEIR_HAS(&record_, prepare);
        if (!shape.ok() && !dynamic_only) return false;
        if (!HasFixedSize(dtype) && !dynamic_only) return false;
        const bool host = (record_.host_outputs & (uint64_t{1} << std::min<size_t>(arg, 63))) != 0;
        trial.inferred_.push_back(inferred);
        trial.outputs_.push_back({.dtype = dtype, .shape = shape.ok() ? *shape : Shape::Of({1}), .host = host});
      }
    }
    return true;
  }

  const op::OpDef& def_;
  const weir_kernel& record_;
  DType first_;
  Random random_{7};
  bool has_ints_ = false;
  int data_inputs_ = 0;
};

int ForEachTrial(const op::OpDef& def, const weir_kernel& record,
                 const std::function<bool(const KernelTrial&)>& try_it) {
  const DTypeSet types = record.type_count != 0 ? record.types[0].dtypes : Bit(DType::kFloat);
  int taken = 0;
  int wanted = kShapesPerType;
  for (const DType first : Preferred(types)) {
    taken += TrialSearch(def, record, first).Run(wanted, try_it);
    wanted = 1;
  }
  return taken;
}

}  // namespace weir::check
