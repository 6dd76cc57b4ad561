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

/// Sets the outputs to a sparse matrix with value(row, numbers of the values in each column) for each combination; the
/// last column varies fastest.
template <class T, class Value>
Status CrossAll(kernel::BuiltinCall& call, const CrossInputs& inputs, Value&& value) {
  std::vector<int64_t> per_row;
  int64_t total = 0, most = 0;
  for (int64_t row = 0; row < inputs.rows; ++row) {
    int64_t combinations = 1;
    for (const CrossColumn& column : inputs.columns) {
      if (__builtin_mul_overflow(combinations, column.count(row), &combinations)) {
        return ResourceExhausted("row {} has too many combinations", row);
      }
    }
    per_row.push_back(combinations);
    most = std::max(most, combinations);
    if (__builtin_add_overflow(total, combinations, &total)) return ResourceExhausted("too many combinations");
  }
  const int64_t dims[] = {total, 2};
  WEIR_ASSIGN(Shape entries, Shape::Make(dims));
  WEIR_ASSIGN(Tensor indices, Tensor::Make(DType::kInt64, std::move(entries)));
  WEIR_ASSIGN(Tensor values, Tensor::Make(DTypeOf<T>::value, Shape::Of({total})));
  const std::span<int64_t> place = indices.mutable_as<int64_t>();
  const std::span<T> to = values.mutable_as<T>();
  size_t at = 0;
  std::vector<int64_t> chosen(inputs.columns.size());
  for (int64_t row = 0; row < inputs.rows; ++row) {
    std::fill(chosen.begin(), chosen.end(), 0);
    for (int64_t i = 0; i < per_row[static_cast<size_t>(row)]; ++i, ++at) {
      place[2 * at] = row;
      place[2 * at + 1] = i;
      to[at] = value(row, chosen);
      for (size_t c = chosen.size(); c-- > 0;) {
        if (++chosen[c] < inputs.columns[c].count(row)) break;
        chosen[c] = 0;
      }
    }
  }
  call.outputs[0] = std::move(indices);
  call.outputs[1] = std::move(values);
  call.outputs[2] = Tensor::Vector<int64_t>({inputs.rows, most});
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
    if (i > 0) {
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
  kernels.AddHost("BoostedTreesBucketize", BoostedTreesBucketize);
  kernels.AddHost("StringNGrams", StringNGrams);
}

}  // namespace weir::builtin
