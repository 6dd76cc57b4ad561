// Values that may be missing: tuples of tensors, or nothing, in variants.
#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/tensor/sum.h"
#include "core/tensor/variant.h"

namespace weir::builtin {
namespace {

/// TensorFlow's OptionalVariant. Immutable.
class OptionalValue final : public VariantValue {
 public:
  OptionalValue() = default;
  explicit OptionalValue(std::vector<Tensor> components) : has_value_(true), components_(std::move(components)) {}

  std::string_view type_name() const override { return "tensorflow::data::Optional"; }
  std::string DebugString() const override {
    return has_value_ ? fmt::format("OptionalVariant<{} components>", components_.size()) : "OptionalVariant<None>";
  }
  uint64_t MemoryBytes() const override {
    uint64_t bytes = 0;
    for (const Tensor& component : components_) bytes += component.bytes();
    return bytes;
  }
  Result<Variant> ZerosLike() const override {
    if (!has_value_) return Variant{std::make_shared<OptionalValue>()};
    std::vector<Tensor> zeros;
    for (const Tensor& component : components_) {
      WEIR_ASSIGN(Tensor zero, weir::ZerosLike(component));
      zeros.push_back(std::move(zero));
    }
    return Variant{std::make_shared<OptionalValue>(std::move(zeros))};
  }
  Result<Variant> Add(const VariantValue& value) const override {
    const auto* const other = dynamic_cast<const OptionalValue*>(&value);
    if (other == nullptr) return InvalidArgument("a {} cannot be added to an optional", value.type_name());
    if (has_value_ != other->has_value_) {
      return InvalidArgument("Cannot add optionals because one has a value and the other doesn't.");
    }
    if (!has_value_) return Variant{std::make_shared<OptionalValue>()};
    if (components_.size() != other->components_.size()) {
      return InvalidArgument("Cannot add optionals because they have different numbers of components ({} vs. {}).",
                             components_.size(), other->components_.size());
    }
    std::vector<Tensor> sums;
    for (size_t i = 0; i < components_.size(); ++i) {
      WEIR_ASSIGN(Tensor sum, Sum(components_[i], other->components_[i]));
      sums.push_back(std::move(sum));
    }
    return Variant{std::make_shared<OptionalValue>(std::move(sums))};
  }

  bool has_value() const { return has_value_; }
  const std::vector<Tensor>& components() const { return components_; }

 private:
  bool has_value_ = false;
  std::vector<Tensor> components_;
};

Result<std::shared_ptr<const OptionalValue>> OptionalAt(const kernel::BuiltinCall& call) {
  const Tensor& input = call.inputs[0];
  std::shared_ptr<const OptionalValue> optional;
  if (input.dtype() == DType::kVariant && input.shape().rank() == 0) {
    optional = std::dynamic_pointer_cast<const OptionalValue>(input.as<Variant>()[0].value);
  }
  if (optional) return optional;
  return InvalidArgument("Input to {} must be a scalar tensor containing an OptionalVariant object.",
                         call.attrs.def().name);
}

Status OptionalFromValue(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 0, 1));
  call.outputs[0] = Tensor::Scalar(Variant{std::make_shared<OptionalValue>(std::move(call.inputs))});
  return Status();
}

Status OptionalNone(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 0, 1));
  call.outputs[0] = Tensor::Scalar(Variant{std::make_shared<OptionalValue>()});
  return Status();
}

Status OptionalHasValue(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::shared_ptr<const OptionalValue> optional, OptionalAt(call));
  call.outputs[0] = Tensor::Scalar(optional->has_value());
  return Status();
}

Status OptionalGetValue(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, call.outputs.size()));
  WEIR_ASSIGN(const std::shared_ptr<const OptionalValue> optional, OptionalAt(call));
  WEIR_ASSIGN(const std::vector<DType> types, call.attrs.Types("output_types"));
  WEIR_ASSIGN(const std::vector<PartialShape> shapes, call.attrs.Shapes("output_shapes"));
  if (!optional->has_value()) return InvalidArgument("The given optional does not have a value.");
  const std::vector<Tensor>& components = optional->components();
  if (components.size() != types.size() || shapes.size() != types.size()) {
    return InvalidArgument("The given optional has {} components, expected {}.", components.size(), types.size());
  }
  for (size_t i = 0; i < components.size(); ++i) {
    if (components[i].dtype() != types[i]) {
      return InvalidArgument(
          "The given optional does not match the expected type for component {}. Expected: {}. Actual: {}.", i,
          Name(types[i]), Name(components[i].dtype()));
    }
    if (!shapes[i].CompatibleWith(components[i].shape())) {
      return InvalidArgument(
          "The given optional does not match the expected shape for component {}. Expected: {}. Actual: {}.", i,
          shapes[i].ToString(), components[i].shape().ToString());
    }
    call.outputs[i] = components[i];
  }
  return Status();
}

}  // namespace

void AddOptionals(kernel::KernelRegistry& kernels) {
  kernels.AddHost("OptionalFromValue", OptionalFromValue, kernel::InputUse::kKept);
  kernels.AddHost("OptionalNone", OptionalNone);
  kernels.AddHost("OptionalHasValue", OptionalHasValue);
  kernels.AddHost("OptionalGetValue", OptionalGetValue);
}

}  // namespace weir::builtin
