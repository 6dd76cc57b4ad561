// Features of models: crosses of columns, buckets of numbers, n-grams of words.
#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/fingerprint.h"
#include "core/builtin/operands.h"

namespace weir::builtin {
namespace {

/// One input of a cross: the values of each row.
struct CrossColumn {
  const Tensor* values = nullptr;
  std::vector<int64_t> starts;  // of each row's values, and the end
  int64_t count(int64_t row) const { return starts[static_cast<size_t>(row) + 1] - starts[static_cast<size_t>(row)]; }
  int64_t at(int64_t row, int64_t i) const { return starts[static_cast<size_t>(row)] + i; }
};

/// The columns of a SparseCross node, checked.
struct CrossInputs {
  int64_t rows = 0;
  std::vector<CrossColumn> columns;

  Status Read(const kernel::BuiltinCall& call);

 private:
  Status AddSparse(const Tensor& indices, const Tensor& values, const Tensor& shape);
  Status AddDense(const Tensor& values);
};

Status CheckCrossType(const Tensor& values) {
  if (values.dtype() == DType::kInt64 || values.dtype() == DType::kString) return Status();
  return InvalidArgument("a column must be of type int64 or string, got {}", Name(values.dtype()));
}

Status CrossInputs::AddSparse(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  if (indices.shape().rank() != 2 || indices.shape().dim(1) != 2) {
    return InvalidArgument("Input indices should be a matrix with two columns but received shape {}",
                           indices.shape().ToString());
  }
  if (values.shape().rank() != 1 || values.elements() != indices.shape().dim(0)) {
    return InvalidArgument("Expected size of values to be {} but got shape {}", indices.shape().dim(0),
                           values.shape().ToString());
  }
  if (shape.shape().rank() != 1 || shape.elements() != 2) {
    return InvalidArgument("Input shapes should be a vector of two numbers but received shape {}",
                           shape.shape().ToString());
  }
  WEIR_TRY(CheckCrossType(values));
  const auto entries = indices.as<int64_t>();
  CrossColumn column{&values, {0}};
  for (int64_t i = 0; i < values.elements(); ++i) {
    const int64_t row = entries[static_cast<size_t>(2 * i)];
    if (row < static_cast<int64_t>(column.starts.size()) - 1 || row >= rows) {
      return InvalidArgument("indices[{}] is row {}: rows must increase and be less than {}", i, row, rows);
    }
    while (static_cast<int64_t>(column.starts.size()) - 1 < row) column.starts.push_back(i);
  }
  while (static_cast<int64_t>(column.starts.size()) <= rows) column.starts.push_back(values.elements());
  columns.push_back(std::move(column));
  return Status();
}

Status CrossInputs::AddDense(const Tensor& values) {
  WEIR_TRY(CheckCrossType(values));
  if (values.shape().rank() != 2 || values.shape().dim(0) != rows) {
    return InvalidArgument("Expected a dense input of {} rows but got shape {}", rows, values.shape().ToString());
  }
  CrossColumn column{&values, {}};
  for (int64_t row = 0; row <= rows; ++row) column.starts.push_back(row * values.shape().dim(1));
  columns.push_back(std::move(column));
  return Status();
}

Status CrossInputs::Read(const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const int64_t sparse, call.attrs.Int("N"));
  WEIR_ASSIGN(const std::vector<DType> dense_types, call.attrs.Types("dense_types"));
  const auto n = static_cast<size_t>(sparse), dense = dense_types.size();
  WEIR_TRY(CheckCounts(call, 3 * n + dense, 3));
  if (n == 0 && dense == 0) return InvalidArgument("a cross needs at least one column");
  for (size_t i = 0; i < n; ++i) {
    const Tensor& shape = call.inputs[2 * n + i];
    const int64_t these = shape.elements() > 0 ? shape.as<int64_t>()[0] : -1;
    if (these < 0 || (i > 0 && these != rows)) {
      return InvalidArgument("Expected batch size {}, got {}", i > 0 ? rows : 0, these);
    }
    rows = these;
  }
  if (n == 0) rows = call.inputs[0].shape().rank() > 0 ? call.inputs[0].shape().dim(0) : 0;
  // A row takes memory; one without entries would cost it for nothing but the number in a shape.
  int64_t entries = 0;
  for (size_t i = 0; i < n; ++i) entries += call.inputs[n + i].elements();
  if (dense == 0 && rows > (int64_t{1} << 24) && rows / 64 > entries) {
    return ResourceExhausted("{} rows for {} entries", rows, entries);
  }
  for (size_t i = 0; i < n; ++i) WEIR_TRY(AddSparse(call.inputs[i], call.inputs[n + i], call.inputs[2 * n + i]));
  for (size_t i = 0; i < dense; ++i) WEIR_TRY(AddDense(call.inputs[3 * n + i]));
  return Status();
}

struct CrossCounts {
  std::vector<int64_t> per_row;
  int64_t total = 0, most = 0;  // of a row
};

/// How many combinations of one value of each column the rows have; ResourceExhausted if the number does not fit.
Result<CrossCounts> CountCrosses(const CrossInputs& inputs) {
  CrossCounts counts;
  for (int64_t row = 0; row < inputs.rows; ++row) {
    int64_t combinations = 1;
    for (const CrossColumn& column : inputs.columns) {
      if (__builtin_mul_overflow(combinations, column.count(row), &combinations)) {
        return ResourceExhausted("row {} has too many combinations", row);
      }
    }
    counts.per_row.push_back(combinations);
    counts.most = std::max(counts.most, combinations);
    if (__builtin_add_overflow(counts.total, combinations, &counts.total)) {
      return ResourceExhausted("too many combinations");
    }
  }
  return counts;
}

/// value(row, numbers of the values in each column) for each combination, row by row; the last column varies fastest.
template <class T, class Value>
Result<Tensor> CrossValues(const CrossInputs& inputs, const CrossCounts& counts, Value&& value) {
  WEIR_ASSIGN(Tensor values, Tensor::Make(DTypeOf<T>::value, Shape::Of({counts.total})));
  const std::span<T> to = values.mutable_as<T>();
  size_t at = 0;
  std::vector<int64_t> chosen(inputs.columns.size());
  for (int64_t row = 0; row < inputs.rows; ++row) {
    std::fill(chosen.begin(), chosen.end(), 0);
    for (int64_t i = 0; i < counts.per_row[static_cast<size_t>(row)]; ++i) {
      to[at++] = value(row, chosen);
      for (size_t c = chosen.size(); c-- > 0;) {
        if (++chosen[c] < inputs.columns[c].count(row)) break;
        chosen[c] = 0;
      }
    }
  }
  return values;
}

/// Sets the outputs to a sparse matrix of the combinations' values.
template <class T, class Value>
Status CrossAll(kernel::BuiltinCall& call, const CrossInputs& inputs, Value&& value) {
  WEIR_ASSIGN(const CrossCounts counts, CountCrosses(inputs));
  const int64_t dims[] = {counts.total, 2};
  WEIR_ASSIGN(Shape entries, Shape::Make(dims));
  WEIR_ASSIGN(Tensor indices, Tensor::Make(DType::kInt64, std::move(entries)));
  const std::span<int64_t> place = indices.mutable_as<int64_t>();
  size_t at = 0;
  for (int64_t row = 0; row < inputs.rows; ++row) {
    for (int64_t i = 0; i < counts.per_row[static_cast<size_t>(row)]; ++i) {
      place[at++] = row;
      place[at++] = i;
    }
  }
  call.outputs[0] = std::move(indices);
  WEIR_ASSIGN(call.outputs[1], CrossValues<T>(inputs, counts, value));
  call.outputs[2] = Tensor::Vector<int64_t>({inputs.rows, counts.most});
  return Status();
}

std::string JoinedCross(const CrossInputs& inputs, int64_t row, const std::vector<int64_t>& chosen,
                        const std::string& separator) {
  std::string text;
  for (size_t c = 0; c < chosen.size(); ++c) {
    const Tensor& values = *inputs.columns[c].values;
    const auto at = static_cast<size_t>(inputs.columns[c].at(row, chosen[c]));
    if (c > 0) text += separator;
    text +=
        values.dtype() == DType::kString ? values.as<std::string>()[at] : fmt::format("{}", values.as<int64_t>()[at]);
  }
  return text;
}

/// TensorFlow's combination of two fingerprints.
uint64_t CombinedFingerprint(uint64_t a, uint64_t b) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  const auto mix = [](uint64_t x) { return x ^ (x >> 47); };
  uint64_t hash = a ^ kFactor;
  hash ^= mix(b * kFactor) * kFactor;
  hash *= kFactor;
  hash = mix(hash) * kFactor;
  return mix(hash);
}

struct CrossHash {
  uint64_t key = 0;
  int64_t buckets = 0;

  int64_t operator()(const CrossInputs& inputs, int64_t row, const std::vector<int64_t>& chosen) const {
    uint64_t hash = key;
    for (size_t c = 0; c < chosen.size(); ++c) {
      const Tensor& values = *inputs.columns[c].values;
      const auto at = static_cast<size_t>(inputs.columns[c].at(row, chosen[c]));
      if (values.dtype() == DType::kInt64) {
        hash = CombinedFingerprint(hash, static_cast<uint64_t>(values.as<int64_t>()[at]));
      } else {
        hash = CombinedFingerprint(hash, FarmFingerprint(values.as<std::string>()[at]));
      }
    }
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return static_cast<int64_t>(hash % (buckets > 0 ? static_cast<uint64_t>(buckets) : kMost));
  }
};

Status SparseCross(kernel::BuiltinCall& call) {
  CrossInputs inputs;
  WEIR_TRY(inputs.Read(call));
  WEIR_ASSIGN(const bool hashed, call.attrs.Bool("hashed_output"));
  WEIR_ASSIGN(const DType type, call.attrs.Type("out_type"));
  if (hashed != (type == DType::kInt64)) {
    return InvalidArgument("hashed_output = {}, but out_type is {}", hashed, Name(type));
  }
  WEIR_ASSIGN(const DType internal, call.attrs.Type("internal_type"));
  for (const CrossColumn& column : inputs.columns) {
    if (internal == DType::kInt64 || column.values->dtype() == DType::kString) continue;
    return InvalidArgument("Input values should be of internal type {} but received {}",
                           static_cast<uint32_t>(internal), static_cast<uint32_t>(column.values->dtype()));
  }
  if (!hashed) {
    return CrossAll<std::string>(call, inputs, [&](int64_t row, const std::vector<int64_t>& chosen) {
      return JoinedCross(inputs, row, chosen, "_X_");
    });
  }
  CrossHash hash;
  WEIR_ASSIGN(hash.buckets, call.attrs.Int("num_buckets"));
  WEIR_ASSIGN(const int64_t key, call.attrs.Int("hash_key"));
  hash.key = static_cast<uint64_t>(key);
  return CrossAll<int64_t>(call, inputs,
                           [&](int64_t row, const std::vector<int64_t>& chosen) { return hash(inputs, row, chosen); });
}

Status SparseCrossV2(kernel::BuiltinCall& call) {
  CrossInputs inputs;
  WEIR_TRY(inputs.Read(call));
  WEIR_ASSIGN(const std::string separator, Scalar<std::string>(call, call.inputs.size() - 1, "sep"));
  return CrossAll<std::string>(call, inputs, [&](int64_t row, const std::vector<int64_t>& chosen) {
    return JoinedCross(inputs, row, chosen, separator);
  });
}

/// The columns of a RaggedCross node, checked: the values and row splits of ragged ones, the indices, values and shapes
/// of sparse ones, and dense ones.
class RaggedCrossReader {
 public:
  explicit RaggedCrossReader(const kernel::BuiltinCall& call) : call_(call) {}

  Result<CrossInputs> Read();

 private:
  Status CheckLists();
  Status AddRagged(size_t i);
  Status AddSparse(size_t i);
  Status AddDense(size_t i);
  Status CheckRows(int64_t rows) const {
    if (rows == inputs_.rows) return Status();
    return InvalidArgument("inputs must all have the same batch dimension size.");
  }
  static Status OnlyMatrices() { return InvalidArgument("tf.ragged.cross only supports inputs with rank=2."); }

  const kernel::BuiltinCall& call_;
  size_t ragged_ = 0, sparse_ = 0, dense_ = 0;  // counts
  CrossInputs inputs_;
};

Status RaggedCrossReader::CheckLists() {
  WEIR_ASSIGN(const std::vector<DType> values, call_.attrs.Types("ragged_values_types"));
  WEIR_ASSIGN(const std::vector<DType> splits, call_.attrs.Types("ragged_splits_types"));
  WEIR_ASSIGN(const int64_t sparse, call_.attrs.Int("Nsparse"));
  WEIR_ASSIGN(const std::vector<DType> sparse_values, call_.attrs.Types("sparse_values_types"));
  WEIR_ASSIGN(const std::vector<DType> dense, call_.attrs.Types("dense_types"));
  if (values.size() != splits.size()) {
    return InvalidArgument("ragged values and splits must have the same length");
  }
  if (sparse != static_cast<int64_t>(sparse_values.size())) {
    return InvalidArgument("sparse indices and values must have the same length");
  }
  ragged_ = values.size(), sparse_ = sparse_values.size(), dense_ = dense.size();
  WEIR_TRY(CheckCounts(call_, 2 * ragged_ + 3 * sparse_ + dense_, 2));
  const auto of = [&](size_t i) -> const Tensor& { return call_.inputs[i]; };
  const size_t first_dense = 2 * ragged_ + 3 * sparse_;
  if (ragged_ > 0) {
    inputs_.rows = std::max<int64_t>(0, of(ragged_).elements() - 1);
  } else if (dense_ > 0) {
    if (of(first_dense).shape().rank() != 2) return OnlyMatrices();
    inputs_.rows = of(first_dense).shape().dim(0);
  } else if (sparse_ > 0) {
    const Tensor& shape = of(2 * sparse_);
    if (shape.elements() != 2) return OnlyMatrices();
    inputs_.rows = shape.as<int64_t>()[0];
    if (inputs_.rows < 0) return InvalidArgument("a sparse matrix of {} rows", inputs_.rows);
    // A row takes memory; one without entries would cost it for nothing but the number in a shape.
    if (inputs_.rows > (int64_t{1} << 24) && inputs_.rows / 64 > of(sparse_).elements()) {
      return ResourceExhausted("{} rows for {} entries", inputs_.rows, of(sparse_).elements());
    }
  }
  return Status();
}

Status RaggedCrossReader::AddRagged(size_t i) {
  const Tensor &values = call_.inputs[i], &splits = call_.inputs[ragged_ + i];
  if (values.shape().rank() != 1 || splits.shape().rank() != 1) return OnlyMatrices();
  WEIR_TRY(CheckCrossType(values));
  CrossColumn column{&values, {}};
  for (int64_t k = 0; k < splits.elements(); ++k) {
    const auto at = static_cast<size_t>(k);
    column.starts.push_back(splits.dtype() == DType::kInt32 ? splits.as<int32_t>()[at] : splits.as<int64_t>()[at]);
    if (k == 0 || column.starts[at] >= column.starts[at - 1]) continue;
    return InvalidArgument(
        "Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[{}]={} is smaller "
        "than row_splits[{}]={}",
        k, column.starts[at], k - 1, column.starts[at - 1]);
  }
  if (column.starts.empty()) {
    return InvalidArgument("Invalid ragged splits: ragged splits must have at least one splits, but is empty");
  }
  if (column.starts.front() != 0) {
    return InvalidArgument("Invalid ragged splits: first element of ragged splits  must be 0 but is {}",
                           column.starts.front());
  }
  if (column.starts.back() != values.elements()) {
    return InvalidArgument(
        "Invalid ragged splits: last element of ragged splits must be the number of ragged values({}) but is {}",
        values.elements(), column.starts.back());
  }
  inputs_.columns.push_back(std::move(column));
  return CheckRows(splits.elements() - 1);
}

/// Entries whose rows decrease belong to the row before, and those of rows beyond the last to none, as in TensorFlow.
Status RaggedCrossReader::AddSparse(size_t i) {
  const size_t first = 2 * ragged_;
  const Tensor& indices = call_.inputs[first + i];
  const Tensor& values = call_.inputs[first + sparse_ + i];
  const Tensor& shape = call_.inputs[first + 2 * sparse_ + i];
  const bool fits = indices.shape().rank() == 2 && values.shape().rank() == 1 && shape.shape().rank() == 1 &&
                    indices.shape().dim(0) == values.elements() && indices.shape().dim(1) > 0;
  if (!fits) return InvalidArgument("Invalid SparseTensor {}", i);
  if (shape.elements() != 2) return OnlyMatrices();
  WEIR_TRY(CheckCrossType(values));
  WEIR_TRY(CheckRows(shape.as<int64_t>()[0]));
  const auto entries = indices.as<int64_t>();
  const auto width = static_cast<size_t>(indices.shape().dim(1));
  CrossColumn column{&values, {0}};
  int64_t next = 0;
  for (int64_t row = 0; row < inputs_.rows; ++row) {
    while (next < values.elements() && entries[static_cast<size_t>(next) * width] <= row) ++next;
    column.starts.push_back(next);
  }
  inputs_.columns.push_back(std::move(column));
  return Status();
}

Status RaggedCrossReader::AddDense(size_t i) {
  const Tensor& values = call_.inputs[2 * ragged_ + 3 * sparse_ + i];
  if (values.shape().rank() != 2) return OnlyMatrices();
  WEIR_TRY(CheckCrossType(values));
  WEIR_TRY(CheckRows(values.shape().dim(0)));
  CrossColumn column{&values, {}};
  for (int64_t row = 0; row <= inputs_.rows; ++row) column.starts.push_back(row * values.shape().dim(1));
  inputs_.columns.push_back(std::move(column));
  return Status();
}

Result<CrossInputs> RaggedCrossReader::Read() {
  WEIR_TRY(CheckLists());
  WEIR_ASSIGN(const std::string order, call_.attrs.String("input_order"));
  if (order.size() != ragged_ + sparse_ + dense_) return InvalidArgument("Invalid length for input_order");
  size_t ragged = 0, sparse = 0, dense = 0;
  const auto beyond = [&](std::string_view what, size_t at, size_t count, std::string_view items) {
    return InvalidArgument("input_order \"{}\" specifies reading a {} at index {} from a list of {} {}.", order, what,
                           at, count, items);
  };
  for (const char kind : order) {
    if (kind == 'R') {
      if (ragged == ragged_) return beyond("ragged tensor value", ragged, ragged_, "values");
      WEIR_TRY(AddRagged(ragged++));
    } else if (kind == 'S') {
      if (sparse == sparse_) return beyond("sparse tensor value", sparse, sparse_, "values");
      WEIR_TRY(AddSparse(sparse++));
    } else if (kind == 'D') {
      if (dense == dense_) return beyond("dense tensor", dense, dense_, "tensors");
      WEIR_TRY(AddDense(dense++));
    } else {
      return InvalidArgument("Unexpected input_order value.");
    }
  }
  return std::move(inputs_);
}

/// The output's type alone says whether values are hashed.
Status RaggedCross(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const CrossInputs inputs, RaggedCrossReader(call).Read());
  WEIR_ASSIGN(const DType type, call.attrs.Type("out_values_type"));
  WEIR_ASSIGN(const DType splits, call.attrs.Type("out_row_splits_type"));
  CrossHash hash;
  WEIR_ASSIGN(hash.buckets, call.attrs.Int("num_buckets"));
  WEIR_ASSIGN(const int64_t key, call.attrs.Int("hash_key"));
  hash.key = static_cast<uint64_t>(key);
  WEIR_ASSIGN(const CrossCounts counts, CountCrosses(inputs));
  std::vector<int64_t> ends = {0};
  for (const int64_t count : counts.per_row) ends.push_back(ends.back() + count);
  if (splits == DType::kInt64) {
    call.outputs[1] = Tensor::Vector<int64_t>(ends);
  } else if (counts.total > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("int32 splits cannot count {} values", counts.total);
  } else {
    call.outputs[1] = Tensor::Vector<int32_t>(std::vector<int32_t>(ends.begin(), ends.end()));
  }
  if (type == DType::kInt64) {
    WEIR_ASSIGN(call.outputs[0],
                CrossValues<int64_t>(inputs, counts, [&](int64_t row, const std::vector<int64_t>& chosen) {
                  return hash(inputs, row, chosen);
                }));
    return Status();
  }
  WEIR_ASSIGN(call.outputs[0],
              CrossValues<std::string>(inputs, counts, [&](int64_t row, const std::vector<int64_t>& chosen) {
                return JoinedCross(inputs, row, chosen, "_X_");
              }));
  return Status();
}

Status BoostedTreesBucketize(kernel::BuiltinCall& call) {
  const size_t features = call.outputs.size();
  WEIR_TRY(CheckCounts(call, 2 * features, features));
  size_t rows = 0;
  for (size_t f = 0; f < features; ++f) {
    WEIR_ASSIGN(const std::span<const float> values, Elements<float>(call, f, "float_values"));
    if (f == 0) rows = values.size();
    if (values.size() != rows) {
      return InvalidArgument("Dimensions must be equal, but are {} and {}", values.size(), rows);
    }
    WEIR_ASSIGN(const std::span<const float> boundaries, Elements<float>(call, features + f, "bucket_boundaries"));
    if (boundaries.empty() && !values.empty()) {
      return InvalidArgument("bucket_boundaries of feature {} must not be empty", f);
    }
    std::vector<int32_t> buckets;
    for (const float value : values) {
      const auto place = std::lower_bound(boundaries.begin(), boundaries.end(), value) - boundaries.begin();
      buckets.push_back(static_cast<int32_t>(std::min<ptrdiff_t>(place, std::ssize(boundaries) - 1)));
    }
    call.outputs[f] = Tensor::Vector<int32_t>(buckets);
  }
  return Status();
}

/// The attributes of StringNGrams.
struct NgramForm {
  std::string separator, left, right;
  std::vector<int64_t> widths;
  int64_t padding = 0;
  bool preserve = false;

  int64_t PaddingOf(int64_t width) const { return std::min(padding < 0 ? width - 1 : padding, width - 1); }
  int64_t CountOf(int64_t words, int64_t width) const {
    return std::max<int64_t>(0, words + 2 * PaddingOf(width) - width + 1);
  }
  /// Appends the n-grams of one row.
  void Append(std::span<const std::string> words, std::vector<std::string>& ngrams) const;
  std::string Joined(std::span<const std::string> words, int64_t before, int64_t after) const;
};

std::string NgramForm::Joined(std::span<const std::string> words, int64_t before, int64_t after) const {
  std::string text;
  bool first = true;
  const auto add = [&](const std::string& word) {
    if (!first) text += separator;
    first = false;
    text += word;
  };
  for (int64_t i = 0; i < before; ++i) add(left);
  for (const std::string& word : words) add(word);
  for (int64_t i = 0; i < after; ++i) add(right);
  return text;
}

void NgramForm::Append(std::span<const std::string> words, std::vector<std::string>& ngrams) const {
  const auto length = static_cast<int64_t>(words.size());
  const size_t before_row = ngrams.size();
  for (const int64_t width : widths) {
    const int64_t count = CountOf(length, width), pad = PaddingOf(width);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t before = std::max<int64_t>(0, pad - i), after = std::max<int64_t>(0, pad - (count - (i + 1)));
      const int64_t start = before > 0 ? 0 : i - pad;
      const auto taken = static_cast<size_t>(std::max<int64_t>(0, width - before - after));
      ngrams.push_back(Joined(words.subspan(static_cast<size_t>(start), taken), before, after));
    }
  }
  if (preserve && length > 0 && ngrams.size() == before_row) {
    const int64_t pad = std::max<int64_t>(0, padding);
    ngrams.push_back(Joined(words, pad, pad));
  }
}

template <class T>
Status NgramsOf(kernel::BuiltinCall& call, const NgramForm& form) {
  WEIR_ASSIGN(const std::span<const std::string> data, Elements<std::string>(call, 0, "data"));
  WEIR_ASSIGN(const std::span<const T> splits, Elements<T>(call, 1, "data_splits"));
  const auto size = static_cast<int64_t>(data.size());
  if (!splits.empty() && splits[0] != 0) return InvalidArgument("First split value must be 0, got {}", splits[0]);
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1] || splits[i] > size) {
      return InvalidArgument("Invalid split value {}, must be in [{}, {}]", splits[i], splits[i - 1], size);
    }
  }
  if (!splits.empty() && splits.back() != size) {
    return InvalidArgument("Last split value must be data size. Expected {}, got {}", size, splits.back());
  }
  std::vector<std::string> ngrams;
  std::vector<T> ends;
  for (size_t i = 0; i < splits.size(); ++i) {
    if (i > 0 && !data.empty()) {  // without any text there is no padding either, as in TensorFlow
      const auto begin = static_cast<size_t>(splits[i - 1]), end = static_cast<size_t>(splits[i]);
      form.Append(data.subspan(begin, end - begin), ngrams);
    }
    if (ngrams.size() > static_cast<size_t>(std::numeric_limits<T>::max())) {
      return InvalidArgument("{} n-grams are too many for their splits", ngrams.size());
    }
    ends.push_back(static_cast<T>(ngrams.size()));
  }
  call.outputs[0] = Tensor::Vector<std::string>(ngrams);
  call.outputs[1] = Tensor::Vector<T>(ends);
  return Status();
}

Status StringNGrams(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 2));
  NgramForm form;
  WEIR_ASSIGN(form.separator, call.attrs.String("separator"));
  WEIR_ASSIGN(form.left, call.attrs.String("left_pad"));
  WEIR_ASSIGN(form.right, call.attrs.String("right_pad"));
  WEIR_ASSIGN(form.widths, call.attrs.Ints("ngram_widths"));
  WEIR_ASSIGN(form.padding, call.attrs.Int("pad_width"));
  WEIR_ASSIGN(form.preserve, call.attrs.Bool("preserve_short_sequences"));
  constexpr int64_t kMostWidth = int64_t{1} << 20;
  for (const int64_t width : form.widths) {
    if (width < 1 || width > kMostWidth) {
      return InvalidArgument("ngram_widths must contain values between 1 and {}, got {}", kMostWidth, width);
    }
  }
  if (form.padding > kMostWidth)
    return InvalidArgument("pad_width must be at most {}, got {}", kMostWidth, form.padding);
  WEIR_ASSIGN(const DType splits, call.attrs.Type("Tsplits"));
  return splits == DType::kInt32 ? NgramsOf<int32_t>(call, form) : NgramsOf<int64_t>(call, form);
}

}  // namespace

void AddFeatures(kernel::KernelRegistry& kernels) {
  kernels.AddHost("SparseCross", SparseCross);
  kernels.AddHost("SparseCrossV2", SparseCrossV2);
  kernels.AddHost("RaggedCross", RaggedCross);
  kernels.AddHost("BoostedTreesBucketize", BoostedTreesBucketize);
  kernels.AddHost("StringNGrams", StringNGrams);
}

}  // namespace weir::builtin
