// Sparse tensors as messages: SerializeSparse, SerializeManySparse, DeserializeSparse, DeserializeManySparse. Maps of
// sparse tensors by number: AddSparseToTensorsMap, AddManySparseToTensorsMap, TakeManySparseFromTensorsMap.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/pieces.h"
#include "core/tensor/tensor_proto.h"
#include "core/tensor/variant.h"

namespace weir::builtin {
namespace {

/// A tensor as an element of a variant tensor.
class HeldTensor final : public VariantValue {
 public:
  explicit HeldTensor(Tensor tensor) : tensor_(std::move(tensor)) {}
  std::string_view type_name() const override { return "tensorflow::Tensor"; }
  std::string DebugString() const override { return "a tensor of shape " + tensor_.shape().ToString(); }
  uint64_t MemoryBytes() const override { return tensor_.bytes(); }
  Result<Variant> ZerosLike() const override { return Unimplemented("zeros like a part of a sparse tensor"); }
  Result<Variant> Add(const VariantValue&) const override {
    return Unimplemented("the sum of parts of sparse tensors");
  }
  const Tensor& tensor() const { return tensor_; }

 private:
  const Tensor tensor_;
};

/// The parts of a sparse tensor.
struct Parts {
  Tensor indices, values, shape;
};

/// Inputs 0, 1 and 2.
Result<Parts> PartsOf(const kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 1));
  WEIR_TRY(Elements<int64_t>(call, 0, "sparse_indices").status());
  WEIR_TRY(Elements<int64_t>(call, 2, "sparse_shape").status());
  const Parts parts{call.inputs[0], call.inputs[1], call.inputs[2]};
  if (parts.indices.shape().rank() != 2) {
    return InvalidArgument("Input indices should be a matrix but received shape {}",
                           parts.indices.shape().ToString());
  }
  if (parts.values.shape().rank() != 1) {
    return InvalidArgument("Input values should be a vector but received shape {}", parts.values.shape().ToString());
  }
  if (parts.shape.shape().rank() != 1) {
    return InvalidArgument("Input shape should be a vector but received shape {}", parts.shape.shape().ToString());
  }
  return parts;
}

/// Writes the three messages from element `at` of `to` on, whose type is string or variant.
Status Write(const Parts& parts, Tensor& to, int64_t at) {
  for (const Tensor* part : {&parts.indices, &parts.values, &parts.shape}) {
    const auto element = static_cast<size_t>(at++);
    if (to.dtype() == DType::kString) {
      WEIR_ASSIGN(to.mutable_as<std::string>()[element], SerializeTensorProto(*part));
    } else {
      to.mutable_as<Variant>()[element] = Variant{std::make_shared<HeldTensor>(*part)};
    }
  }
  return Status();
}

Status SerializeSparse(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Parts parts, PartsOf(call));
  WEIR_ASSIGN(const DType type, call.attrs.Type("out_type"));
  WEIR_ASSIGN(Tensor messages, Tensor::Make(type, Shape::Of({3})));
  WEIR_TRY(Write(parts, messages, 0));
  call.outputs[0] = std::move(messages);
  return Status();
}

std::string Listed(std::span<const int64_t> numbers) {
  std::string text;
  for (const int64_t number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return "[" + text + "]";
}

/// InvalidArgument with TensorFlow's text unless the entries lie inside `dims` and increase.
Status CheckIncreasing(std::span<const int64_t> indices, std::span<const int64_t> dims) {
  const size_t rank = dims.size();
  for (size_t i = 0; i * rank < indices.size(); ++i) {
    const std::span<const int64_t> entry = indices.subspan(i * rank, rank);
    for (size_t d = 0; d < rank; ++d) {
      if (entry[d] >= 0 && entry[d] < dims[d]) continue;
      return InvalidArgument("indices[{}] = {} is out of bounds: need 0 <= index < {}", i, Listed(entry), Listed(dims));
    }
    if (i == 0) continue;
    const std::span<const int64_t> last = indices.subspan((i - 1) * rank, rank);
    if (std::ranges::lexicographical_compare(entry, last)) {
      return InvalidArgument("indices[{}] = {} is out of order. Many sparse ops require sorted indices.", i,
                             Listed(entry));
    }
    if (std::ranges::equal(entry, last)) return InvalidArgument("indices[{}] = {} is repeated", i, Listed(entry));
  }
  return Status();
}

/// The number of sparse tensors along the first axis. InvalidArgument unless they lie behind each other.
Result<int64_t> CountRows(const Parts& parts) {
  const int64_t rank = parts.shape.elements(), count = parts.indices.shape().dim(0);
  if (rank <= 1) return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: {}", rank);
  if (parts.indices.shape().dim(1) != rank) return InvalidArgument("Order length must be SparseTensor rank.");
  if (parts.values.elements() != count) {
    return InvalidArgument("Number of elements in indices ({}) and values ({}) do not match", count,
                           parts.values.elements());
  }
  WEIR_TRY(CheckIncreasing(parts.indices.as<int64_t>(), parts.shape.as<int64_t>()));
  return parts.shape.as<int64_t>()[0];
}

/// Gives each of the `rows` sparse tensors along the first axis, and its place there, to `use`, until one fails.
template <class Use>
Status EachRow(const Parts& parts, int64_t rows, const Use& use) {
  const std::span<const int64_t> indices = parts.indices.as<int64_t>();
  const int64_t rank = parts.shape.elements(), count = parts.indices.shape().dim(0);
  WEIR_ASSIGN(const Tensor inner, Rows(parts.shape, 1, rank - 1));
  int64_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t end = begin;
    std::vector<int64_t> entries;
    for (; end < count && indices[static_cast<size_t>(end * rank)] == row; ++end) {
      const auto entry = indices.subspan(static_cast<size_t>(end * rank + 1), static_cast<size_t>(rank - 1));
      entries.insert(entries.end(), entry.begin(), entry.end());
    }
    Parts part;
    WEIR_ASSIGN(const Shape matrix, Shape::Make({end - begin, rank - 1}));
    WEIR_ASSIGN(part.indices, Tensor::Vector<int64_t>(entries).Reshaped(matrix));
    WEIR_ASSIGN(part.values, Rows(parts.values, begin, end - begin));
    part.shape = inner;
    WEIR_TRY(use(row, std::move(part)));
    begin = end;
  }
  return Status();
}

/// The sparse tensors along the first axis, three messages each.
Status SerializeManySparse(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Parts parts, PartsOf(call));
  WEIR_ASSIGN(const DType type, call.attrs.Type("out_type"));
  WEIR_ASSIGN(const int64_t rows, CountRows(parts));
  WEIR_ASSIGN(const Shape whole, Shape::Make({rows, 3}));
  WEIR_ASSIGN(Tensor messages, Tensor::Make(type, whole));
  WEIR_TRY(EachRow(parts, rows, [&](int64_t row, const Parts& part) { return Write(part, messages, row * 3); }));
  call.outputs[0] = std::move(messages);
  return Status();
}

/// The tensor in element `at` of the messages.
Result<Tensor> Read(const Tensor& messages, int64_t at, ExpansionBudget& budget) {
  const auto element = static_cast<size_t>(at);
  if (messages.dtype() == DType::kVariant) {
    const auto* held = dynamic_cast<const HeldTensor*>(messages.as<Variant>()[element].value.get());
    if (held == nullptr) return InvalidArgument("Could not get a tensor from variant {} of the serialized sparse", at);
    return held->tensor();
  }
  Result<Tensor> parsed = ParseTensorProto(messages.as<std::string>()[element], &budget);
  if (parsed.status().code() == Code::kInvalidArgument) return InvalidArgument("Could not parse serialized proto");
  return parsed;
}

/// InvalidArgument unless the parts of sparse tensor `i` fit each other and the type of its values.
Status CheckParts(const Parts& parts, int64_t i, DType dtype) {
  const auto is = [](const Tensor& part, DType type, int rank) {
    return part.dtype() == type && part.shape().rank() == rank;
  };
  if (!is(parts.indices, DType::kInt64, 2)) {
    return InvalidArgument("Expected SparseTensor[{}].indices to be an int64 matrix but got {} {}", i,
                           Name(parts.indices.dtype()), parts.indices.shape().ToString());
  }
  if (!is(parts.shape, DType::kInt64, 1)) {
    return InvalidArgument("Expected SparseTensor[{}].shape to be an int64 vector but got {} {}", i,
                           Name(parts.shape.dtype()), parts.shape.shape().ToString());
  }
  if (parts.values.dtype() != dtype) {
    return InvalidArgument("Requested SparseTensor of type {} but SparseTensor[{}].values.dtype() == {}", Name(dtype),
                           i, Name(parts.values.dtype()));
  }
  if (parts.values.shape().rank() != 1 || parts.values.elements() != parts.indices.shape().dim(0)) {
    return InvalidArgument("Expected row counts of SparseTensor[{}].indices and SparseTensor[{}].values to match but "
                           "they do not: {} vs. {}",
                           i, i, parts.indices.shape().dim(0), parts.values.shape().ToString());
  }
  if (parts.indices.shape().dim(1) != parts.shape.elements()) {
    return InvalidArgument("Expected column counts of SparseTensor[{}].indices to match size of SparseTensor[{}].shape "
                           "but they do not: {} vs. {}",
                           i, i, parts.indices.shape().dim(1), parts.shape.elements());
  }
  return Status();
}

/// Sparse tensor `i` of the messages, whose parts fit each other.
Result<Parts> ReadParts(const Tensor& messages, int64_t i, DType dtype, ExpansionBudget& budget) {
  Parts parts;
  WEIR_ASSIGN(parts.indices, Read(messages, 3 * i, budget));
  WEIR_ASSIGN(parts.values, Read(messages, 3 * i + 1, budget));
  WEIR_ASSIGN(parts.shape, Read(messages, 3 * i + 2, budget));
  WEIR_TRY(CheckParts(parts, i, dtype));
  return parts;
}

/// The sparse tensors behind each other along new axes, those of the messages before the last.
class Merged {
 public:
  explicit Merged(const Shape& messages) : batch_(messages.dims().begin(), messages.dims().end() - 1) {}

  Status Add(Parts parts) {
    const std::span<const int64_t> shape = parts.shape.as<int64_t>(), indices = parts.indices.as<int64_t>();
    if (values_.empty()) {
      inner_.assign(shape.begin(), shape.end());
    } else if (inner_.size() != shape.size()) {
      return InvalidArgument("Inconsistent shape across SparseTensors: rank prior to SparseTensor[{}] was: {} but rank "
                             "of SparseTensor[{}] is: {}",
                             values_.size(), inner_.size(), values_.size(), shape.size());
    }
    for (size_t d = 0; d < inner_.size(); ++d) inner_[d] = std::max(inner_[d], shape[d]);
    std::vector<int64_t> place(batch_.size());  // of this tensor in the messages
    auto rest = static_cast<int64_t>(values_.size());
    for (size_t d = place.size(); d-- > 0; rest /= batch_[d]) place[d] = rest % batch_[d];
    const int64_t entries = parts.values.elements();
    for (int64_t i = 0; i < entries; ++i) {
      const auto entry = indices.subspan(static_cast<size_t>(i) * shape.size(), shape.size());
      indices_.insert(indices_.end(), place.begin(), place.end());
      indices_.insert(indices_.end(), entry.begin(), entry.end());
    }
    count_ += entries;
    values_.push_back(std::move(parts.values));
    return Status();
  }

  Status Write(kernel::BuiltinCall& call, DType dtype) {
    std::vector<int64_t> shape = batch_;
    shape.insert(shape.end(), inner_.begin(), inner_.end());
    WEIR_ASSIGN(const Shape matrix, Shape::Make({count_, static_cast<int64_t>(shape.size())}));
    WEIR_ASSIGN(call.outputs[0], Tensor::Vector<int64_t>(indices_).Reshaped(matrix));
    WEIR_ASSIGN(Joiner joiner, Joiner::Make(dtype, Shape::Of({count_})));
    int64_t at = 0;
    for (const Tensor& values : values_) {
      WEIR_TRY(joiner.Put(at, values));
      at += values.elements();
    }
    call.outputs[1] = joiner.Take();
    call.outputs[2] = Tensor::Vector<int64_t>(shape);
    return Status();
  }

 private:
  std::vector<int64_t> batch_, inner_, indices_;
  std::vector<Tensor> values_;
  int64_t count_ = 0;
};

Status DeserializeSparse(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 3));
  const Tensor& messages = call.inputs[0];
  WEIR_ASSIGN(const DType dtype, call.attrs.Type("dtype"));
  if (messages.dtype() != DType::kString && messages.dtype() != DType::kVariant) {
    return InvalidArgument("Serialized sparse must be strings or variants, got {}", Name(messages.dtype()));
  }
  const Shape& shape = messages.shape();
  if (shape.rank() == 0) {
    return InvalidArgument("Serialized sparse should have non-zero rank {}", shape.ToString());
  }
  if (shape.dim(shape.rank() - 1) != 3) {
    return InvalidArgument("Serialized sparse should have 3 as the last dimension {}", shape.ToString());
  }
  if (messages.elements() == 0) {
    return InvalidArgument("Serialized sparse should have at least 1 serialized tensor, but has a zero dimension {}",
                           shape.ToString());
  }
  ExpansionBudget budget;
  Merged merged(shape);
  for (int64_t i = 0; i < messages.elements() / 3; ++i) {
    WEIR_ASSIGN(Parts parts, ReadParts(messages, i, dtype, budget));
    WEIR_TRY(merged.Add(std::move(parts)));
  }
  return merged.Write(call, dtype);
}

/// Sparse tensors by number, each until it is taken. Thread-safe.
class SparseMap final : public Resource {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::SparseTensorsMap";

  explicit SparseMap(std::string name) : name_(std::move(name)) {}
  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override {
    const std::lock_guard lock(mutex_);
    return fmt::format("map of {} sparse tensors", held_.size());
  }
  uint64_t MemoryBytes() const override {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const auto& [number, parts] : held_) {
      bytes += parts.indices.bytes() + parts.values.bytes() + parts.shape.bytes();
    }
    return bytes;
  }

  int64_t Add(Parts parts) {
    const std::lock_guard lock(mutex_);
    held_.emplace(next_, std::move(parts));
    return next_++;
  }
  /// InvalidArgument for a number that is not there; those before it are gone.
  Result<Parts> Take(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(number);
    if (found == held_.end()) return InvalidArgument("Unable to find SparseTensor: {} in map: {}", number, name_);
    Parts parts = std::move(found->second);
    held_.erase(found);
    return parts;
  }

 private:
  const std::string name_;
  mutable std::mutex mutex_;  // protects all below
  std::map<int64_t, Parts> held_;
  int64_t next_ = 0;
};

/// That of the attributes `container` and `shared_name`, or of the node's name.
Result<std::shared_ptr<SparseMap>> MapOf(const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(std::string name, call.attrs.String("shared_name"));
  if (name.empty()) name = call.node_name;
  WEIR_ASSIGN(const std::shared_ptr<Resource> resource,
              SharedResource(call, SparseMap::kTypeName, [&]() -> Result<std::shared_ptr<Resource>> {
                return std::shared_ptr<Resource>(std::make_shared<SparseMap>(name));
              }));
  if (auto map = std::dynamic_pointer_cast<SparseMap>(resource)) return map;
  return Internal("'{}' is no map of sparse tensors", resource->DebugString());
}

/// Of one AddManySparseToTensorsMap: each costs some hundred bytes, whatever its entries are.
constexpr int64_t kMostAdded = int64_t{1} << 22;

Status AddSparse(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(Parts parts, PartsOf(call));
  WEIR_TRY(CheckParts(parts, 0, parts.values.dtype()));
  WEIR_ASSIGN(const std::shared_ptr<SparseMap> map, MapOf(call));
  call.outputs[0] = Tensor::Scalar<int64_t>(map->Add(std::move(parts)));
  return Status();
}

Status AddManySparse(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Parts parts, PartsOf(call));
  WEIR_ASSIGN(const int64_t rows, CountRows(parts));
  if (rows < 0) return InvalidArgument("Input shape has the extent {}", rows);
  if (rows > kMostAdded) {
    return ResourceExhausted("the shape says {} sparse tensors, more than the {} of one call", rows, kMostAdded);
  }
  WEIR_ASSIGN(const std::shared_ptr<SparseMap> map, MapOf(call));
  std::vector<int64_t> numbers;
  WEIR_TRY(EachRow(parts, rows, [&](int64_t, Parts part) {
    numbers.push_back(map->Add(std::move(part)));
    return Status();
  }));
  call.outputs[0] = Tensor::Vector<int64_t>(numbers);
  return Status();
}

Status TakeManySparse(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 3));
  WEIR_ASSIGN(const DType dtype, call.attrs.Type("dtype"));
  WEIR_ASSIGN(const std::span<const int64_t> numbers, Elements<int64_t>(call, 0, "sparse_handles"));
  const Shape& shape = call.inputs[0].shape();
  if (shape.rank() != 1) {
    return InvalidArgument("sparse_handles should be a vector but received shape {}", shape.ToString());
  }
  if (numbers.empty()) {
    return InvalidArgument("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
  }
  WEIR_ASSIGN(const std::shared_ptr<SparseMap> map, MapOf(call));
  WEIR_ASSIGN(const Shape messages, Shape::Make({shape.dim(0), 3}));
  Merged merged(messages);
  for (size_t i = 0; i < numbers.size(); ++i) {
    WEIR_ASSIGN(Parts parts, map->Take(numbers[i]));
    WEIR_TRY(CheckParts(parts, static_cast<int64_t>(i), dtype));
    WEIR_TRY(merged.Add(std::move(parts)));
  }
  return merged.Write(call, dtype);
}

}  // namespace

void AddSparseMessages(kernel::KernelRegistry& kernels) {
  // A part held by a variant is the input itself.
  kernels.AddHost("SerializeSparse", SerializeSparse, kernel::InputUse::kKept);
  kernels.AddHost("SerializeManySparse", SerializeManySparse, kernel::InputUse::kKept);
  kernels.AddHost("DeserializeSparse", DeserializeSparse);
  kernels.AddHost("DeserializeManySparse", DeserializeSparse);
  kernels.AddHost("AddSparseToTensorsMap", AddSparse, kernel::InputUse::kKept);
  kernels.AddHost("AddManySparseToTensorsMap", AddManySparse, kernel::InputUse::kKept);
  kernels.AddHost("TakeManySparseFromTensorsMap", TakeManySparse);
}

}  // namespace weir::builtin
