#include "core/builtin/table.h"

#include <fmt/format.h>

#include <cstring>

#include "core/base/errors.h"
#include "core/builtin/pieces.h"

namespace weir::builtin {

std::string LookupTable::DebugString() const {
  return fmt::format("table of {} from {} to {}", size(), Name(options_.key), Name(options_.value));
}

uint64_t LookupTable::MemoryBytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [key, value] : entries_) bytes += key.size() + value.bytes();
  return bytes;
}

int64_t LookupTable::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}

std::string LookupTable::KeyAt(const Tensor& keys, int64_t i) const {
  if (options_.key == DType::kString) return keys.as<std::string>()[static_cast<size_t>(i)];
  const uint64_t size = SizeOf(options_.key) * static_cast<uint64_t>(options_.key_shape.elements());
  if (size == 0) return {};
  return {reinterpret_cast<const char*>(keys.raw()) + static_cast<uint64_t>(i) * size, size};
}

Status LookupTable::CheckKey(const std::string& key) const {
  if (options_.kind != Kind::kDense) return Status();
  for (const bool empty : {true, false}) {
    if (key != KeyAt(empty ? options_.empty_key : options_.deleted_key, 0)) continue;
    return InvalidArgument("Using the {}_key as a table key is not allowed", empty ? "empty" : "deleted");
  }
  return Status();
}

Status LookupTable::CheckTypes(const Tensor& keys, const Tensor* values) const {
  const DType value = values == nullptr ? options_.value : values->dtype();
  if (keys.dtype() == options_.key && value == options_.value) return Status();
  return InvalidArgument("Signature mismatch, have: resource, {}, {}-> expected: resource, {}, {}->",
                         Name(keys.dtype()), Name(value), Name(options_.key), Name(options_.value));
}

Result<Shape> LookupTable::ValuesShape(const Tensor& keys) const {
  const int own = options_.key_shape.rank();
  const int outer = keys.shape().rank() - own;
  if (outer < 0 || !(InnerShape(keys.shape(), outer) == options_.key_shape)) {
    return InvalidArgument("Expected key shape to end with {}, got {}", options_.key_shape.ToString(),
                           keys.shape().ToString());
  }
  const auto extents = keys.shape().dims().subspan(0, static_cast<size_t>(outer));
  std::vector<int64_t> dims(extents.begin(), extents.end());
  dims.insert(dims.end(), options_.value_shape.dims().begin(), options_.value_shape.dims().end());
  return Shape::Make(dims);
}

Status LookupTable::AddRows(const Tensor& keys, const Tensor& values, Entries* entries) const {
  const int64_t count = keys.elements() / std::max<int64_t>(options_.key_shape.elements(), 1);
  for (int64_t i = 0; i < count; ++i) WEIR_TRY(CheckKey(KeyAt(keys, i)));
  WEIR_ASSIGN(const Shape rows, WithCount(count, options_.value_shape));
  WEIR_ASSIGN(const Tensor by_key, values.Reshaped(rows));
  for (int64_t i = 0; i < count; ++i) {
    WEIR_ASSIGN(Tensor value, Row(by_key, i));
    std::string key = KeyAt(keys, i);
    Tensor& held = (*entries)[key];
    if (options_.kind == Kind::kStatic && held.valid() && !held.SameBits(value)) {
      return FailedPrecondition("HashTable has different value for same key. Key {} has {} and trying to add value {}",
                                options_.key == DType::kString ? key : fmt::format("number {}", i),
                                held.SummarizeValues(), value.SummarizeValues());
    }
    held = std::move(value);
  }
  return Status();
}

Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  if (keys.elements() != values.elements()) {
    return InvalidArgument("Keys and values must have the same size {} vs {}", keys.elements(), values.elements());
  }
  WEIR_TRY(CheckTypes(keys, &values));
  Entries entries;
  WEIR_TRY(AddRows(keys, values, &entries));
  const std::lock_guard lock(mutex_);
  if (initialized_ && entries.size() != entries_.size()) {
    return FailedPrecondition("Table was already initialized with different data.");
  }
  if (!initialized_) entries_ = std::move(entries);
  initialized_ = true;
  return Status();
}

Status LookupTable::Insert(const Tensor& keys, const Tensor& values, Replace replace) {
  if (options_.kind == Kind::kStatic && replace == Replace::kNothing) {
    return Unimplemented("Insert not supported by InitializableLookupTable implementations");
  }
  WEIR_TRY(CheckTypes(keys, &values));
  WEIR_ASSIGN(const Shape wanted, ValuesShape(keys));
  if (!(values.shape() == wanted)) {
    return InvalidArgument("Expected shape {} for value, got {}", wanted.ToString(), values.shape().ToString());
  }
  Entries entries;
  WEIR_TRY(AddRows(keys, values, &entries));
  const std::lock_guard lock(mutex_);
  if (replace == Replace::kAll) {
    entries_ = std::move(entries);
  } else {
    for (auto& [key, value] : entries) entries_[key] = std::move(value);
  }
  initialized_ = true;
  return Status();
}

Status LookupTable::Remove(const Tensor& keys) {
  if (options_.kind == Kind::kStatic) {
    return Unimplemented("Remove not supported by InitializableLookupTable implementations");
  }
  WEIR_TRY(CheckTypes(keys, nullptr));
  WEIR_TRY(ValuesShape(keys).status());
  const int64_t count = keys.elements() / std::max<int64_t>(options_.key_shape.elements(), 1);
  for (int64_t i = 0; i < count; ++i) WEIR_TRY(CheckKey(KeyAt(keys, i)));
  const std::lock_guard lock(mutex_);
  for (int64_t i = 0; i < count; ++i) entries_.erase(KeyAt(keys, i));
  return Status();
}

Result<Tensor> LookupTable::Find(const Tensor& keys, const Tensor& fallback) const {
  WEIR_TRY(CheckTypes(keys, &fallback));
  WEIR_ASSIGN(const Shape shape, ValuesShape(keys));
  const bool each = fallback.shape() == shape && !(shape == options_.value_shape);
  if (!each && !(fallback.shape() == options_.value_shape)) {
    return InvalidArgument("Expected shape {} or {} for default value, got {}", options_.value_shape.ToString(),
                           shape.ToString(), fallback.shape().ToString());
  }
  const int64_t row = options_.value_shape.elements();
  const int64_t count = keys.elements() / std::max<int64_t>(options_.key_shape.elements(), 1);
  WEIR_ASSIGN(const Shape rows, WithCount(each ? count : 1, options_.value_shape));
  WEIR_ASSIGN(const Tensor missing, fallback.Reshaped(rows));
  WEIR_ASSIGN(Joiner joiner, Joiner::Make(options_.value, shape));
  const std::lock_guard lock(mutex_);
  if (options_.kind == Kind::kStatic && !initialized_) return FailedPrecondition("Table not initialized.");
  for (int64_t i = 0; i < count; ++i) {
    const std::string key = KeyAt(keys, i);
    WEIR_TRY(CheckKey(key));
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      WEIR_TRY(joiner.Put(i * row, found->second));
    } else {
      WEIR_ASSIGN(const Tensor value, Row(missing, each ? i : 0));
      WEIR_TRY(joiner.Put(i * row, value));
    }
  }
  return joiner.Take();
}

Result<std::pair<Tensor, Tensor>> LookupTable::Export() const {
  const std::lock_guard lock(mutex_);
  const auto count = static_cast<int64_t>(entries_.size());
  WEIR_ASSIGN(const Shape keys_shape, WithCount(count, options_.key_shape));
  WEIR_ASSIGN(const Shape values_shape, WithCount(count, options_.value_shape));
  WEIR_ASSIGN(Tensor keys, Tensor::Make(options_.key, keys_shape));
  WEIR_ASSIGN(Joiner values, Joiner::Make(options_.value, values_shape));
  std::byte* const bytes = keys.mutable_raw();
  int64_t i = 0;
  for (const auto& [key, value] : entries_) {
    if (options_.key == DType::kString) {
      keys.mutable_as<std::string>()[static_cast<size_t>(i)] = key;
    } else if (!key.empty()) {
      std::memcpy(bytes + static_cast<uint64_t>(i) * key.size(), key.data(), key.size());
    }
    WEIR_TRY(values.Put(i++ * options_.value_shape.elements(), value));
  }
  return std::pair(std::move(keys), values.Take());
}

void LookupTable::Clear() {
  Entries entries;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  entries.swap(entries_);
  initialized_ = false;
}

}  // namespace weir::builtin
