// Lookup tables from keys to tensors.
#ifndef WEIR_CORE_BUILTIN_TABLE_H_
#define WEIR_CORE_BUILTIN_TABLE_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// TensorFlow's lookup tables. Errors have TensorFlow's texts.
class LookupTable final : public Resource {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::lookup::LookupInterface";

  /// kStatic: filled once by Initialize. kMutable: filled by inserts. kDense: as kMutable, with two reserved keys.
  enum class Kind { kStatic, kMutable, kDense };
  struct Options {
    Kind kind = Kind::kStatic;
    DType key = DType::kInvalid;  // fixed-size or string
    DType value = DType::kInvalid;
    Shape key_shape = {};  // kDense; a scalar for strings
    Shape value_shape = {};
    Tensor empty_key = {};  // kDense: reserved, not valid keys
    Tensor deleted_key = {};
    bool SameTypes(const Options& other) const {
      return kind == other.kind && key == other.key && value == other.value;
    }
  };
  explicit LookupTable(Options options) : options_(std::move(options)) {}

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  uint64_t MemoryBytes() const override;

  const Options& options() const { return options_; }
  int64_t size() const;

  /// For kStatic a second call only compares the number of entries.
  Status Initialize(const Tensor& keys, const Tensor& values);
  enum class Replace { kNothing, kAll };
  Status Insert(const Tensor& keys, const Tensor& values, Replace replace);
  Status Remove(const Tensor& keys);
  /// `fallback` has the values' shape, for all missing keys, or the result's shape, with one row per key.
  Result<Tensor> Find(const Tensor& keys, const Tensor& fallback) const;
  Result<std::pair<Tensor, Tensor>> Export() const;

 protected:
  void Clear() override;

 private:
  using Entries = std::unordered_map<std::string, Tensor>;  // by the key's bytes

  /// [leading extents of keys..., value_shape...]. InvalidArgument if the shape of the keys does not end in key_shape.
  Result<Shape> ValuesShape(const Tensor& keys) const;
  std::string KeyAt(const Tensor& keys, int64_t i) const;
  Status CheckKey(const std::string& key) const;
  Status CheckTypes(const Tensor& keys, const Tensor* values) const;
  /// Adds rows to `entries`; a static table rejects two values for one key.
  Status AddRows(const Tensor& keys, const Tensor& values, Entries* entries) const;

  const Options options_;
  mutable std::mutex mutex_;  // protects all below
  Entries entries_;
  bool initialized_ = false;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_TABLE_H_
