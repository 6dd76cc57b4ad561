#include "core/builtin/tensor_array.h"

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/tensor/sum.h"

namespace weir::builtin {

std::string TensorArray::DebugString() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("TensorArray[{}] of {} {}", name_, size_, Name(options_.dtype));
}

uint64_t TensorArray::MemoryBytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [index, element] : elements_) bytes += element.value.bytes();
  return bytes;
}

Status TensorArray::CheckOpen() const {
  return closed_ ? InvalidArgument("TensorArray {} has already been closed.", name_) : Status();
}

Status TensorArray::GradientImpossible() const {
  return InvalidArgument(
      "Unable to create a gradients TensorArray for {}.  Perhaps you used the multiple_writes_aggregate flag on a "
      "previous write?  Gradient calculation is impossible when multiple writes are performed to the same index.",
      name_);
}

Result<int32_t> TensorArray::Size() const {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(CheckOpen());
  return size_;
}

Status TensorArray::CheckWritable(int32_t index, const Tensor& value) const {
  if (value.dtype() != options_.dtype) {
    return InvalidArgument("TensorArray dtype is {} but Op is trying to write dtype {}.", Name(options_.dtype),
                           Name(value.dtype()));
  }
  if (index < 0 || (index >= size_ && !options_.dynamic_size)) {
    return InvalidArgument("TensorArray {}: Tried to write to index {} but array is not resizeable and size is: {}",
                           name_, index, size_);
  }
  if (!options_.element_shape.CompatibleWith(value.shape())) {
    return InvalidArgument(
        "TensorArray {}: Could not write to TensorArray index {} because the value shape is {} which is incompatible "
        "with the TensorArray's inferred element shape: {} (consider setting infer_shape=False).",
        name_, index, value.shape().ToString(), options_.element_shape.ToString());
  }
  return Status();
}

Status TensorArray::Write(int32_t index, Tensor value) {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(CheckOpen());
  WEIR_TRY(CheckWritable(index, value));
  if (options_.identical_shapes && !options_.element_shape.fully_defined()) options_.element_shape = value.shape();
  Element& element = elements_[index];
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument("TensorArray {}: Could not write to TensorArray index {} because it has already been {}.",
                           name_, index, why);
  };
  if (element.read) return refuse("read");
  if (element.written && !options_.adds_up) return refuse("written to");
  if (element.written && !(element.shape == value.shape())) {
    return InvalidArgument(
        "TensorArray {}: Could not aggregate to TensorArray index {} because the existing shape is {} but the new "
        "input shape is {}.",
        name_, index, element.shape.ToString(), value.shape().ToString());
  }
  if (element.value.valid()) {
    WEIR_ASSIGN(value, Sum(element.value, value));
    added_up_ = true;
  }
  element.shape = value.shape();
  element.value = std::move(value);
  element.written = true;
  size_ = std::max(size_, index + 1);
  return Status();
}

Result<Tensor> TensorArray::ReadOne(int32_t index) const {
  if (index < 0 || index >= size_) {
    return InvalidArgument("Tried to read from index {} but array size is: {}", index, size_);
  }
  const auto found = elements_.find(index);
  const Element* const element = found == elements_.end() ? nullptr : &found->second;
  if (element != nullptr && element->cleared) {
    return InvalidArgument(
        "TensorArray {}: Could not read index {} twice because it was cleared after a previous read (perhaps try "
        "setting clear_after_read = false?).",
        name_, index);
  }
  if (element != nullptr && element->value.valid()) return element->value;
  if (element != nullptr && element->written) return Zeros(options_.dtype, element->shape);
  const Result<Shape> shape = options_.element_shape.ToShape();
  if (shape.ok()) return Zeros(options_.dtype, *shape);
  return InvalidArgument(
      "TensorArray {}: Could not read from TensorArray index {}.  Furthermore, the element shape is not fully defined: "
      "{}.  It is possible you are working with a resizeable TensorArray and stop_gradients is not allowing the "
      "gradients to be written.  If you set the full element_shape property on the forward TensorArray, the proper "
      "all-zeros tensor will be returned instead of incurring this error.",
      name_, index, options_.element_shape.ToString());
}

void TensorArray::CountAsRead(int32_t index) {
  Element& element = elements_[index];
  element.read = true;
  if (!options_.clear_after_read) return;
  element.value = Tensor();
  element.cleared = true;
}

Result<Tensor> TensorArray::Read(int32_t index) {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(CheckOpen());
  WEIR_ASSIGN(Tensor value, ReadOne(index));
  CountAsRead(index);
  return value;
}

Result<std::vector<Tensor>> TensorArray::ReadMany(std::span<const int32_t> indices) {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(CheckOpen());
  std::vector<Tensor> values;
  for (size_t i = 0; i < indices.size(); ++i) {
    WEIR_ASSIGN(Tensor value, ReadOne(indices[i]));
    values.push_back(std::move(value));
    CountAsRead(indices[i]);
  }
  return values;
}

Result<PartialShape> TensorArray::RefineShape(const PartialShape& shape) {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(CheckOpen());
  const Result<PartialShape> both = options_.element_shape.Merge(shape);
  if (!both.ok()) {
    return InvalidArgument("PartialTensorShape: Incompatible shapes during merge: {} vs. {}",
                           options_.element_shape.ToString(), shape.ToString());
  }
  options_.element_shape = *both;
  return *both;
}

void TensorArray::Close() {
  // Gradients that still have handles are closed separately; elements are destroyed outside the lock.
  std::unordered_map<int32_t, Element> elements;
  std::map<std::string, ResourceHandle> gradients;
  const std::lock_guard lock(mutex_);
  elements.swap(elements_);
  gradients.swap(gradients_);
  closed_ = true;
}

std::shared_ptr<TensorArray> TensorArray::MakeGradient(const std::string& source) {
  options_.dynamic_size = false;
  Options options = options_;
  options.adds_up = true;
  options.clear_after_read = true;
  auto gradient = std::make_shared<TensorArray>(name_ + "@" + source, size_, std::move(options));
  // Elements without a gradient contribution have a gradient of zeros.
  for (const auto& [index, element] : elements_) {
    if (!element.written) continue;
    Element& zeros = gradient->elements_[index];
    zeros.shape = element.shape;
    zeros.written = true;
  }
  return gradient;
}

}  // namespace weir::builtin
