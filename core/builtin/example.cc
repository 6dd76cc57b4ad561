#include "core/builtin/example.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"

namespace weir::builtin {

bool WireFields::TakeNumber(uint64_t* number) {
  *number = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    *number |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

bool WireFields::TakeFixed(size_t size) {
  if (rest_.size() < size) return false;
  number_ = 0;
  std::memcpy(&number_, rest_.data(), size);
  rest_.remove_prefix(size);
  return true;
}

bool WireFields::Next() {
  if (rest_.empty() || malformed_) return false;
  uint64_t key = 0;
  malformed_ = !TakeNumber(&key) || key >> 3 == 0 || key >> 3 >= uint64_t{1} << 29;
  if (malformed_) return false;
  field_ = key >> 3;
  has_bytes_ = false;
  switch (key & 7) {
    case 0:
      malformed_ = !TakeNumber(&number_);
      break;
    case 1:
      malformed_ = !TakeFixed(8);
      break;
    case 2: {
      uint64_t size = 0;
      malformed_ = !TakeNumber(&size) || size > rest_.size();
      if (malformed_) break;
      has_bytes_ = true;
      bytes_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      break;
    }
    case 5:
      malformed_ = !TakeFixed(4);
      break;
    default:
      malformed_ = true;
  }
  return !malformed_;
}

bool ReadFeatures(std::string_view message, Features* features) {
  WireFields entries(message);
  while (entries.Next()) {
    if (entries.field() != 1 || !entries.has_bytes()) continue;
    std::string_view key, value;
    WireFields parts(entries.bytes());
    while (parts.Next()) {
      if (!parts.has_bytes()) continue;
      if (parts.field() == 1) key = parts.bytes();
      if (parts.field() == 2) value = parts.bytes();
    }
    if (parts.malformed()) return false;
    features->insert_or_assign(key, value);
  }
  return !entries.malformed();
}

bool ReadExample(std::string_view message, Features* features) {
  WireFields fields(message);
  while (fields.Next()) {
    if (fields.field() != 1) continue;
    if (!fields.has_bytes() || !ReadFeatures(fields.bytes(), features)) return false;
  }
  return !fields.malformed();
}

Result<FeatureList> ReadFeature(std::string_view feature) {
  constexpr DType kKinds[] = {DType::kString, DType::kFloat, DType::kInt64};
  FeatureList list;
  WireFields fields(feature);
  while (fields.Next()) {
    if (!fields.has_bytes() || fields.field() > std::size(kKinds)) continue;
    list = {kKinds[fields.field() - 1], fields.bytes()};
  }
  if (fields.malformed()) return DataLoss("Unsupported datatype.");
  return list;
}

bool FeatureValues::Append(std::string_view list) {
  WireFields values(list);
  while (values.Next()) {
    if (values.field() != 1) continue;
    if (dtype_ == DType::kString) {
      if (!values.has_bytes()) return false;
      texts_.push_back(values.bytes());
    } else if (dtype_ == DType::kFloat) {
      if (!values.has_bytes()) {
        const auto bits = static_cast<uint32_t>(values.number());
        float value = 0;
        std::memcpy(&value, &bits, sizeof value);
        floats_.push_back(value);
        continue;
      }
      if (values.bytes().size() % sizeof(float) != 0) return false;
      const size_t at = floats_.size();
      floats_.resize(at + values.bytes().size() / sizeof(float));
      if (!values.bytes().empty()) std::memcpy(floats_.data() + at, values.bytes().data(), values.bytes().size());
    } else if (!values.has_bytes()) {
      integers_.push_back(static_cast<int64_t>(values.number()));
    } else {
      // A packed list is a row of numbers; a varint ends with a byte below 128.
      uint64_t number = 0;
      int shift = 0;
      for (const char c : values.bytes()) {
        const auto byte = static_cast<unsigned char>(c);
        if (shift > 63) return false;
        number |= static_cast<uint64_t>(byte & 127) << shift;
        shift += 7;
        if (byte >= 128) continue;
        integers_.push_back(static_cast<int64_t>(number));
        number = 0;
        shift = 0;
      }
      if (shift != 0) return false;
    }
  }
  count_ = dtype_ == DType::kString ? texts_.size() : integers_.size();
  return !values.malformed();
}

void FeatureValues::Append(const Tensor& tensor) {
  if (dtype_ == DType::kFloat) {
    const auto from = tensor.as<float>();
    floats_.insert(floats_.end(), from.begin(), from.end());
  } else if (dtype_ == DType::kInt64) {
    const auto from = tensor.as<int64_t>();
    integers_.insert(integers_.end(), from.begin(), from.end());
  } else {
    for (const std::string& text : tensor.as<std::string>()) texts_.push_back(text);
  }
  count_ = dtype_ == DType::kString ? texts_.size() : integers_.size();
}

void FeatureValues::Append(const FeatureValues& from, size_t begin, size_t end) {
  const auto copy = [&](auto& to, const auto& values) {
    to.insert(to.end(), values.begin() + static_cast<ptrdiff_t>(begin), values.begin() + static_cast<ptrdiff_t>(end));
  };
  if (dtype_ == DType::kFloat) copy(floats_, from.floats_);
  if (dtype_ == DType::kInt64) copy(integers_, from.integers_);
  if (dtype_ == DType::kString) copy(texts_, from.texts_);
  count_ = dtype_ == DType::kString ? texts_.size() : integers_.size();
}

void FeatureValues::Fill(const Tensor& tensor, size_t times) {
  if (dtype_ == DType::kFloat) floats_.insert(floats_.end(), times, tensor.as<float>()[0]);
  if (dtype_ == DType::kInt64) integers_.insert(integers_.end(), times, tensor.as<int64_t>()[0]);
  if (dtype_ == DType::kString) texts_.insert(texts_.end(), times, tensor.as<std::string>()[0]);
  count_ = dtype_ == DType::kString ? texts_.size() : integers_.size();
}

Result<Tensor> FeatureValues::Take(Shape shape) const {
  if (shape.elements() != static_cast<int64_t>(size())) {
    return Internal("{} values for shape {}", size(), shape.ToString());
  }
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype_, std::move(shape)));
  if (dtype_ == DType::kFloat) std::copy(floats_.begin(), floats_.end(), tensor.mutable_as<float>().begin());
  if (dtype_ == DType::kInt64) std::copy(integers_.begin(), integers_.end(), tensor.mutable_as<int64_t>().begin());
  if (dtype_ == DType::kString) std::copy(texts_.begin(), texts_.end(), tensor.mutable_as<std::string>().begin());
  return tensor;
}

}  // namespace weir::builtin
