// Reading of serialized Example messages: features by name, without copies of their values.
#ifndef WEIR_CORE_BUILTIN_EXAMPLE_H_
#define WEIR_CORE_BUILTIN_EXAMPLE_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// A serialized list of one kind of values; borrowed bytes.
struct FeatureList {
  DType dtype = DType::kInvalid;  // kInvalid: the feature is empty
  std::string_view bytes;
};

/// Serialized features by name; the last of a name. Borrowed bytes.
using Features = std::unordered_map<std::string_view, std::string_view>;

/// Adds the features of a serialized Features message; false if it is malformed.
bool ReadFeatures(std::string_view message, Features* features);
/// As ReadFeatures, of a serialized Example message.
bool ReadExample(std::string_view message, Features* features);
/// The list of a serialized Feature; DataLoss "Unsupported datatype." if it is malformed.
Result<FeatureList> ReadFeature(std::string_view feature);

/// The fields of a message in order.
class WireFields {
 public:
  explicit WireFields(std::string_view message) : rest_(message) {}

  /// False at the end and at malformed bytes.
  bool Next();
  bool malformed() const { return malformed_; }
  uint64_t field() const { return field_; }
  /// True for fields with bytes, which bytes() has; others are numbers.
  bool has_bytes() const { return has_bytes_; }
  std::string_view bytes() const { return bytes_; }
  uint64_t number() const { return number_; }

 private:
  bool TakeNumber(uint64_t* number);
  bool TakeFixed(size_t size);

  std::string_view rest_, bytes_;
  uint64_t field_ = 0, number_ = 0;
  bool has_bytes_ = false, malformed_ = false;
};

/// Values of one type, collected over examples. Texts are borrowed.
class FeatureValues {
 public:
  explicit FeatureValues(DType dtype) : dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  size_t size() const { return dtype_ == DType::kFloat ? floats_.size() : count_; }
  /// Appends the values of a list of this type; false if it is malformed.
  bool Append(std::string_view list);
  /// Appends the elements of a tensor of this type, which stays alive.
  void Append(const Tensor& tensor);
  /// Appends `from`'s values [begin, end), whose type is the same.
  void Append(const FeatureValues& from, size_t begin, size_t end);
  /// Appends a value `times` times: the first element of `tensor`.
  void Fill(const Tensor& tensor, size_t times);
  /// All values as a tensor of that shape, which has as many elements.
  Result<Tensor> Take(Shape shape) const;

 private:
  DType dtype_;
  size_t count_ = 0;  // of integers or texts
  std::vector<float> floats_;
  std::vector<int64_t> integers_;
  std::vector<std::string_view> texts_;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_EXAMPLE_H_
