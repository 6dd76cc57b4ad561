// Parsing of serialized Example messages: features as dense, sparse and ragged tensors.
#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/builtin/example.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"

namespace weir::builtin {
namespace {

struct DenseFeature {
  std::string key;
  DType dtype = DType::kInvalid;
  PartialShape shape;
  bool variable = false;  // the first extent is that of the longest example
  int64_t stride = 1;     // elements of the shape, without a variable extent
  Tensor otherwise;
};

/// A sparse or ragged feature.
struct ListFeature {
  std::string key;
  DType dtype = DType::kInvalid;
  DType splits = DType::kInt64;
};

/// What a node asks for.
struct FeatureSpec {
  std::vector<DenseFeature> dense;
  std::vector<ListFeature> sparse, ragged;

  /// Checks the attribute dense_shapes; fills in `shape`, `variable` and `stride`.
  Status SetShapes(const std::vector<PartialShape>& shapes);
  /// Checks the inputs from `first` on, the defaults.
  Status SetDefaults(const kernel::BuiltinCall& call, size_t first);
};

Status FeatureSpec::SetShapes(const std::vector<PartialShape>& shapes) {
  if (shapes.size() != dense.size()) {
    return InvalidArgument("len(dense_keys) != len(dense_shapes): {} vs. {}", dense.size(), shapes.size());
  }
  for (size_t d = 0; d < shapes.size(); ++d) {
    const PartialShape& shape = shapes[d];
    bool known = shape.has_rank();
    for (int i = 1; known && i < shape.rank(); ++i) known = shape.dim(i) >= 0;
    if (!known) {
      return InvalidArgument("dense_shapes[{}] has unknown rank or unknown inner dimensions: {}", d, shape.ToString());
    }
    dense[d].shape = shape;
    dense[d].variable = shape.rank() > 0 && shape.dim(0) < 0;
    for (int i = dense[d].variable ? 1 : 0; i < shape.rank(); ++i) {
      if (__builtin_mul_overflow(dense[d].stride, shape.dim(i), &dense[d].stride)) {
        return InvalidArgument("dense_shapes[{}] = {} has too many elements", d, shape.ToString());
      }
    }
  }
  return Status();
}

Status FeatureSpec::SetDefaults(const kernel::BuiltinCall& call, size_t first) {
  if (call.inputs.size() != first + dense.size()) {
    return InvalidArgument("Expected len(dense_defaults) == len(dense_keys) but got: {} vs. {}",
                           call.inputs.size() - std::min(first, call.inputs.size()), dense.size());
  }
  for (size_t d = 0; d < dense.size(); ++d) {
    const Tensor& value = call.inputs[first + d];
    if (dense[d].variable && value.elements() != 1) {
      return InvalidArgument(
          "dense_shape[{}] is a variable length shape: {}, therefore def_value[{}] must contain a single element (the "
          "padding element).  But its shape is: {}",
          d, dense[d].shape.ToString(), d, value.shape().ToString());
    }
    if (!dense[d].variable && value.elements() > 0 && !dense[d].shape.CompatibleWith(value.shape())) {
      return InvalidArgument("def_value[{}].shape() == {} is not compatible with dense_shapes_[{}] == {}", d,
                             value.shape().ToString(), d, dense[d].shape.ToString());
    }
    if (value.dtype() != dense[d].dtype) {
      return InvalidArgument("dense_defaults[{}].dtype() == {} != dense_types_[{}] == {}", d, Name(value.dtype()), d,
                             Name(dense[d].dtype));
    }
    dense[d].otherwise = value;
  }
  return Status();
}

/// The serialized messages of a call. One alone gives tensors without the axis of examples.
struct ExampleBatch {
  std::span<const std::string> serialized;
  std::span<const std::string> names;  // empty, or one each
  bool alone = false;

  int64_t size() const { return static_cast<int64_t>(serialized.size()); }
  std::string NameOf(size_t i) const { return names.empty() ? "<unknown>" : names[i]; }
  Status Refuse(std::string_view key, size_t i, const std::string& why) const {
    if (alone) return InvalidArgument("Key: {}.  {}", key, why);
    return InvalidArgument("Name: {}, Key: {}, Index: {}.  {}", NameOf(i), key, i, why);
  }
};

/// Values of one feature over all examples.
struct FeatureColumn {
  explicit FeatureColumn(DType dtype) : values(dtype) {}
  FeatureValues values;
  std::vector<size_t> ends;  // of each example's values

  size_t begin(size_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  size_t longest() const {
    size_t most = 0;
    for (size_t i = 0; i < ends.size(); ++i) most = std::max(most, ends[i] - begin(i));
    return most;
  }
};

/// Reads the examples of a batch feature by feature.
class ExampleReader {
 public:
  ExampleReader(const FeatureSpec& spec, const ExampleBatch& batch) : spec_(spec), batch_(batch) {}

  /// Sets the call's outputs: indices, values and shapes of sparse features, dense features, values and splits of
  /// ragged ones.
  Status Run(std::vector<Tensor>& outputs);

 private:
  Status AddExample(size_t i);
  Status AddDense(const DenseFeature& feature, const Features& features, size_t i, FeatureColumn& column) const;
  Status AddList(const ListFeature& feature, const Features& features, size_t i, FeatureColumn& column) const;
  Result<Tensor> DenseTensor(const DenseFeature& feature, const FeatureColumn& column) const;
  Status SetSparse(const FeatureColumn& column, Tensor* indices, Tensor* values, Tensor* shape) const;
  Result<Tensor> SplitsOf(const FeatureColumn& column, DType type) const;

  const FeatureSpec& spec_;
  const ExampleBatch& batch_;
  std::vector<FeatureColumn> dense_, sparse_, ragged_;
};

Status ExampleReader::AddDense(const DenseFeature& feature, const Features& features, size_t i,
                               FeatureColumn& column) const {
  const auto found = features.find(feature.key);
  FeatureList list;
  if (found != features.end()) {
    WEIR_ASSIGN(list, ReadFeature(found->second));
  }
  const size_t before = column.values.size();
  if (list.dtype == DType::kInvalid) {
    if (!feature.variable && feature.otherwise.elements() == 0) {
      const std::string where = batch_.alone ? "" : fmt::format("Name: {}, ", batch_.NameOf(i));
      return InvalidArgument("{}Feature: {} (data type: {}) is required but could not be found.", where, feature.key,
                             Name(feature.dtype));
    }
    if (!feature.variable) column.values.Append(feature.otherwise);
    column.ends.push_back(column.values.size());
    return Status();
  }
  if (list.dtype != feature.dtype) {
    return batch_.Refuse(feature.key, i,
                         fmt::format("Data types don't match. Data type: {} but expected type: {}", Name(list.dtype),
                                     Name(feature.dtype)));
  }
  if (!column.values.Append(list.bytes)) return batch_.Refuse(feature.key, i, "Can't parse serialized Example.");
  const size_t count = column.values.size() - before, stride = static_cast<size_t>(feature.stride);
  column.ends.push_back(column.values.size());
  const bool fits = !feature.variable ? count == stride : stride == 0 ? count == 0 : count % stride == 0;
  if (fits) return Status();
  if (batch_.alone) return batch_.Refuse(feature.key, i, "Can't parse serialized Example.");
  const std::string kind = feature.dtype == DType::kString ? "bytes" : Name(feature.dtype);
  if (feature.variable) {
    return batch_.Refuse(
        feature.key, i,
        fmt::format("Number of {} values is not a multiple of stride length. Saw {} values but output shape is: {}",
                    kind, count, feature.shape.ToString()));
  }
  return batch_.Refuse(feature.key, i,
                       fmt::format("Number of {} values != expected.  Values size: {} but output shape: {}", kind,
                                   count, feature.shape.ToString()));
}

Status ExampleReader::AddList(const ListFeature& feature, const Features& features, size_t i,
                              FeatureColumn& column) const {
  const auto found = features.find(feature.key);
  FeatureList list;
  if (found != features.end()) {
    WEIR_ASSIGN(list, ReadFeature(found->second));
  }
  if (list.dtype != DType::kInvalid && list.dtype != feature.dtype) {
    return batch_.Refuse(feature.key, i,
                         fmt::format("Data types don't match. Expected type: {}, Actual type: {}", Name(feature.dtype),
                                     Name(list.dtype)));
  }
  if (!column.values.Append(list.bytes)) return batch_.Refuse(feature.key, i, "Can't parse serialized Example.");
  column.ends.push_back(column.values.size());
  return Status();
}

Status ExampleReader::AddExample(size_t i) {
  Features features;
  if (!ReadExample(batch_.serialized[i], &features)) {
    return InvalidArgument("Could not parse example input, value: '{}'", Legible(batch_.serialized[i]));
  }
  for (size_t d = 0; d < dense_.size(); ++d) WEIR_TRY(AddDense(spec_.dense[d], features, i, dense_[d]));
  for (size_t d = 0; d < sparse_.size(); ++d) WEIR_TRY(AddList(spec_.sparse[d], features, i, sparse_[d]));
  for (size_t d = 0; d < ragged_.size(); ++d) WEIR_TRY(AddList(spec_.ragged[d], features, i, ragged_[d]));
  return Status();
}

Result<Tensor> ExampleReader::DenseTensor(const DenseFeature& feature, const FeatureColumn& column) const {
  std::vector<int64_t> dims(feature.shape.dims().begin(), feature.shape.dims().end());
  const auto stride = static_cast<size_t>(feature.stride);
  size_t longest = static_cast<size_t>(feature.stride);
  if (feature.variable) {
    longest = column.longest();
    dims[0] = stride == 0 ? 0 : static_cast<int64_t>(longest / stride);
  }
  if (!batch_.alone) dims.insert(dims.begin(), batch_.size());
  WEIR_ASSIGN(Shape shape, Shape::Make(dims));
  if (!feature.variable || batch_.alone) return column.values.Take(std::move(shape));
  // The room for the padding is checked before it is filled in.
  WEIR_TRY(Tensor::Make(feature.dtype, shape).status());
  FeatureValues padded(feature.dtype);
  for (size_t i = 0; i < column.ends.size(); ++i) {
    padded.Append(column.values, column.begin(i), column.ends[i]);
    padded.Fill(feature.otherwise, longest - (column.ends[i] - column.begin(i)));
  }
  return padded.Take(std::move(shape));
}

Status ExampleReader::SetSparse(const FeatureColumn& column, Tensor* indices, Tensor* values, Tensor* shape) const {
  const auto count = static_cast<int64_t>(column.values.size());
  const int64_t rank = batch_.alone ? 1 : 2;
  WEIR_ASSIGN(Tensor places, Tensor::Make(DType::kInt64, Shape::Of({count, rank})));
  const std::span<int64_t> to = places.mutable_as<int64_t>();
  size_t at = 0;
  for (size_t i = 0; i < column.ends.size(); ++i) {
    for (size_t k = column.begin(i); k < column.ends[i]; ++k) {
      if (!batch_.alone) to[at++] = static_cast<int64_t>(i);
      to[at++] = static_cast<int64_t>(k - column.begin(i));
    }
  }
  const auto longest = static_cast<int64_t>(column.longest());
  *indices = std::move(places);
  WEIR_ASSIGN(*values, column.values.Take(Shape::Of({count})));
  *shape = Tensor::Vector<int64_t>(batch_.alone ? std::vector<int64_t>{longest}
                                                : std::vector<int64_t>{batch_.size(), longest});
  return Status();
}

Result<Tensor> ExampleReader::SplitsOf(const FeatureColumn& column, DType type) const {
  std::vector<int64_t> splits = {0};
  for (const size_t end : column.ends) splits.push_back(static_cast<int64_t>(end));
  if (batch_.alone) splits.clear();
  if (type == DType::kInt64) return Tensor::Vector<int64_t>(splits);
  std::vector<int32_t> narrow;
  for (const int64_t split : splits) {
    if (split > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("int32 splits cannot count {} values", split);
    }
    narrow.push_back(static_cast<int32_t>(split));
  }
  return Tensor::Vector<int32_t>(narrow);
}

Status ExampleReader::Run(std::vector<Tensor>& outputs) {
  for (const DenseFeature& feature : spec_.dense) dense_.emplace_back(feature.dtype);
  for (const ListFeature& feature : spec_.sparse) sparse_.emplace_back(feature.dtype);
  for (const ListFeature& feature : spec_.ragged) ragged_.emplace_back(feature.dtype);
  const size_t sparse = sparse_.size(), dense = dense_.size(), ragged = ragged_.size();
  if (outputs.size() != 3 * sparse + dense + 2 * ragged) {
    return InvalidArgument("the node has {} outputs, but its features give {}", outputs.size(),
                           3 * sparse + dense + 2 * ragged);
  }
  for (size_t i = 0; i < batch_.serialized.size(); ++i) WEIR_TRY(AddExample(i));
  for (size_t d = 0; d < sparse; ++d) {
    WEIR_TRY(SetSparse(sparse_[d], &outputs[d], &outputs[sparse + d], &outputs[2 * sparse + d]));
  }
  for (size_t d = 0; d < dense; ++d) {
    WEIR_ASSIGN(outputs[3 * sparse + d], DenseTensor(spec_.dense[d], dense_[d]));
  }
  for (size_t d = 0; d < ragged; ++d) {
    const auto count = static_cast<int64_t>(ragged_[d].values.size());
    const size_t first = 3 * sparse + dense;
    WEIR_ASSIGN(outputs[first + d], ragged_[d].values.Take(Shape::Of({count})));
    WEIR_ASSIGN(outputs[first + ragged + d], SplitsOf(ragged_[d], spec_.ragged[d].splits));
  }
  return Status();
}

/// Inputs 0 and 1, the messages and their names.
Result<ExampleBatch> BatchOf(const kernel::BuiltinCall& call, bool allow_scalar) {
  ExampleBatch batch;
  WEIR_ASSIGN(batch.serialized, Elements<std::string>(call, 0, "serialized"));
  WEIR_ASSIGN(batch.names, Elements<std::string>(call, 1, "names"));
  const Shape &shape = call.inputs[0].shape(), &names = call.inputs[1].shape();
  if (shape.rank() > 1 || (shape.rank() == 0 && !allow_scalar)) {
    return InvalidArgument("Expected serialized to be a {}vector, got shape: {}", allow_scalar ? "scalar or " : "",
                           shape.ToString());
  }
  batch.alone = shape.rank() == 0;
  if (!batch.names.empty() && !(names == shape)) {
    return InvalidArgument("Expected names have the same shape as serialized: name.shape={}, serialized.shape={}",
                           names.ToString(), shape.ToString());
  }
  return batch;
}

/// A feature per type; the keys come later.
Result<FeatureSpec> SpecOf(const kernel::BuiltinCall& call) {
  FeatureSpec spec;
  WEIR_ASSIGN(const std::vector<DType> dense, call.attrs.Types("Tdense"));
  WEIR_ASSIGN(const std::vector<DType> sparse, call.attrs.Types("sparse_types"));
  WEIR_ASSIGN(const std::vector<PartialShape> shapes, call.attrs.Shapes("dense_shapes"));
  for (const DType type : dense) spec.dense.push_back({"", type, {}, false, 1, {}});
  for (const DType type : sparse) spec.sparse.push_back({"", type});
  WEIR_TRY(spec.SetShapes(shapes));
  return spec;
}

/// Keys in scalar inputs from `first` on.
template <class Feature>
Status SetKeys(const kernel::BuiltinCall& call, size_t first, std::vector<Feature>& features) {
  for (size_t i = 0; i < features.size(); ++i) {
    WEIR_ASSIGN(features[i].key, Scalar<std::string>(call, first + i, "a key"));
  }
  return Status();
}

/// Keys in a list or a vector.
template <class Feature>
Status SetKeys(std::span<const std::string> keys, std::string_view what, std::vector<Feature>& features) {
  if (keys.size() != features.size()) {
    return InvalidArgument("Expected len({}) == {}, got {}", what, features.size(), keys.size());
  }
  for (size_t i = 0; i < keys.size(); ++i) features[i].key = keys[i];
  return Status();
}

Status ParseExampleOp(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, call.outputs.size()));
  WEIR_ASSIGN(FeatureSpec spec, SpecOf(call));
  const size_t sparse = spec.sparse.size(), dense = spec.dense.size();
  if (call.inputs.size() != 2 + sparse + 2 * dense) {
    return InvalidArgument("the node has {} inputs, wanted {}", call.inputs.size(), 2 + sparse + 2 * dense);
  }
  WEIR_ASSIGN(const ExampleBatch batch, BatchOf(call, false));
  WEIR_TRY(SetKeys(call, 2, spec.sparse));
  WEIR_TRY(SetKeys(call, 2 + sparse, spec.dense));
  WEIR_TRY(spec.SetDefaults(call, 2 + sparse + dense));
  return ExampleReader(spec, batch).Run(call.outputs);
}

Status ParseExampleV2Op(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 5, call.outputs.size()));
  WEIR_ASSIGN(FeatureSpec spec, SpecOf(call));
  WEIR_ASSIGN(const std::vector<DType> values, call.attrs.Types("ragged_value_types"));
  WEIR_ASSIGN(const std::vector<DType> splits, call.attrs.Types("ragged_split_types"));
  if (values.size() != splits.size()) {
    return InvalidArgument("ragged_value_types.size() != ragged_split_types.size(): {} vs. {}", values.size(),
                           splits.size());
  }
  for (size_t i = 0; i < values.size(); ++i) spec.ragged.push_back({"", values[i], splits[i]});
  WEIR_ASSIGN(const ExampleBatch batch, BatchOf(call, true));
  WEIR_ASSIGN(const std::span<const std::string> sparse_keys, StringVector(call, 2, "sparse_keys"));
  WEIR_ASSIGN(const std::span<const std::string> dense_keys, StringVector(call, 3, "dense_keys"));
  WEIR_ASSIGN(const std::span<const std::string> ragged_keys, StringVector(call, 4, "ragged_keys"));
  WEIR_TRY(SetKeys(sparse_keys, "sparse_keys", spec.sparse));
  WEIR_TRY(SetKeys(dense_keys, "dense_keys", spec.dense));
  WEIR_TRY(SetKeys(ragged_keys, "ragged_keys", spec.ragged));
  WEIR_TRY(spec.SetDefaults(call, 5));
  return ExampleReader(spec, batch).Run(call.outputs);
}

Status ParseSingleExampleOp(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, call.outputs.size()));
  WEIR_ASSIGN(FeatureSpec spec, SpecOf(call));
  WEIR_ASSIGN(const std::vector<std::string> sparse_keys, call.attrs.Strings("sparse_keys"));
  WEIR_ASSIGN(const std::vector<std::string> dense_keys, call.attrs.Strings("dense_keys"));
  WEIR_TRY(SetKeys(sparse_keys, "sparse_keys", spec.sparse));
  WEIR_TRY(SetKeys(dense_keys, "dense_keys", spec.dense));
  WEIR_TRY(spec.SetDefaults(call, 1));
  ExampleBatch batch;
  WEIR_ASSIGN(batch.serialized, Elements<std::string>(call, 0, "serialized"));
  if (call.inputs[0].shape().rank() != 0) {
    return InvalidArgument("Expected serialized to be a scalar, got shape: {}", call.inputs[0].shape().ToString());
  }
  batch.alone = true;
  return ExampleReader(spec, batch).Run(call.outputs);
}

}  // namespace

void AddParseExample(kernel::KernelRegistry& kernels) {
  kernels.AddHost("ParseExample", ParseExampleOp);
  kernels.AddHost("ParseExampleV2", ParseExampleV2Op);
  kernels.AddHost("ParseSingleExample", ParseSingleExampleOp);
}

}  // namespace weir::builtin
