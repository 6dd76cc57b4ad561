// Tensor arrays: a step writes and reads them element by element.
#ifndef WEIR_CORE_BUILTIN_TENSOR_ARRAY_H_
#define WEIR_CORE_BUILTIN_TENSOR_ARRAY_H_

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// TensorFlow's TensorArray. Elements share memory with the tensors written. Errors have TensorFlow's texts.
class TensorArray final : public Resource {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::TensorArray";

  struct Options {
    DType dtype = DType::kInvalid;
    PartialShape element_shape = {};
    bool dynamic_size = false;      // a write past the end grows the array
    bool clear_after_read = true;   // an element can be read once
    bool identical_shapes = false;  // the first write fixes the shape of all elements
    bool adds_up = false;           // for gradients: writes to one element are summed
  };

  /// `size` must not be negative. Elements use memory only after they are written.
  TensorArray(std::string name, int32_t size, Options options)
      : name_(std::move(name)), options_(std::move(options)), size_(size) {}

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  uint64_t MemoryBytes() const override;

  DType dtype() const { return options_.dtype; }
  bool dynamic_size() const { return options_.dynamic_size; }
  Result<int32_t> Size() const;

  /// Sets the element, or adds to it if `adds_up`.
  Status Write(int32_t index, Tensor value);
  /// Returns the element; zeros if it has a shape but no value.
  Result<Tensor> Read(int32_t index);
  /// Reads several elements; on an error none of them counts as read.
  Result<std::vector<Tensor>> ReadMany(std::span<const int32_t> indices);
  /// Merges `shape` into the known shape of all elements; InvalidArgument if they contradict each other.
  Result<PartialShape> RefineShape(const PartialShape& shape);
  void Close();

  /// The gradient array for `source`. Creates it on first use and calls `enter`, which adds it to a scope and returns a
  /// handle. After this the size of this array is fixed.
  template <class Enter>
  Result<ResourceHandle> Gradient(const std::string& source, const Enter& enter) {
    const std::lock_guard lock(mutex_);
    WEIR_TRY(CheckOpen());
    if (added_up_) return GradientImpossible();
    ResourceHandle& handle = gradients_[source];
    if (!handle.resource) handle = enter(MakeGradient(source));
    return handle;
  }

 protected:
  void Clear() override { Close(); }

 private:
  /// `value` is invalid if the element is zeros of `shape`, or was read and cleared.
  struct Element {
    Tensor value;
    Shape shape;
    bool written = false;
    bool read = false;
    bool cleared = false;
  };

  // The functions below run under the lock.
  Status CheckOpen() const;
  Status GradientImpossible() const;
  Status CheckWritable(int32_t index, const Tensor& value) const;
  Result<Tensor> ReadOne(int32_t index) const;
  void CountAsRead(int32_t index);
  std::shared_ptr<TensorArray> MakeGradient(const std::string& source);

  const std::string name_;
  mutable std::mutex mutex_;  // protects all below
  Options options_;
  int32_t size_;
  std::unordered_map<int32_t, Element> elements_;  // elements that were written or read
  std::map<std::string, ResourceHandle> gradients_;
  bool added_up_ = false;  // an element is a sum, so a gradient is not defined
  bool closed_ = false;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_TENSOR_ARRAY_H_
