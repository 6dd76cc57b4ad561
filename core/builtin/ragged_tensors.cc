// Ragged tensors as dense ones.
#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/tensor/number.h"

namespace weir::builtin {
namespace {

/// Rows above row numbers, which may be empty.
constexpr int64_t kMostEmptyRows = int64_t{1} << 26;

/// How one ragged axis is given.
struct RowPartition {
  enum class Kind { kRowids, kSplits } kind = Kind::kSplits;
  const Tensor* values = nullptr;

  int64_t size() const { return values->elements(); }
  int64_t at(int64_t i) const { return ElementAsInt(*values, i); }
};

/// The inputs of a node: [first size,] partitions, outermost first.
struct RaggedInput {
  int64_t rows = 0;  // of the outermost axis
  std::vector<RowPartition> partitions;
  const Tensor* values = nullptr;
  const Tensor* otherwise = nullptr;
  std::vector<int64_t> wanted;  // the shape asked for; empty if unknown

  Status Read(const kernel::BuiltinCall& call);
};

Status RaggedInput::Read(const kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 4, 1));
  WEIR_ASSIGN(const std::vector<std::string> kinds, call.attrs.Strings("row_partition_types"));
  if (kinds.size() != call.inputs.size() - 3) {
    return InvalidArgument("row_partition_types has {} elements for {} partitions", kinds.size(),
                           call.inputs.size() - 3);
  }
  const Tensor& shape = call.inputs[0];
  if (shape.shape().rank() > 1) {
    return InvalidArgument("The tensor shape must be a scalar or a vector, got shape {}", shape.shape().ToString());
  }
  if (shape.shape().rank() == 0 && ElementAsInt(shape, 0) != -1) {
    return InvalidArgument("The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  }
  if (shape.shape().rank() == 1) {
    for (int64_t i = 0; i < shape.elements(); ++i) wanted.push_back(ElementAsInt(shape, i));
  }
  values = &call.inputs[1];
  otherwise = &call.inputs[2];
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Tensor& partition = call.inputs[3 + i];
    if (i == 0 && kinds[i] == "FIRST_DIM_SIZE") {
      if (partition.elements() != 1) return InvalidArgument("the first size must be a scalar");
      rows = ElementAsInt(partition, 0);
      continue;
    }
    const int64_t size = partition.elements();
    if (partition.shape().rank() != 1) {
      return InvalidArgument("a row partition must be a vector, got shape {}", partition.shape().ToString());
    }
    if (kinds[i] == "ROW_SPLITS") {
      if (size == 0) return InvalidArgument("Expected row_splits for the {}. dimension to have at least 1 element", i);
      if (i == 0) rows = size - 1;
      partitions.push_back({RowPartition::Kind::kSplits, &partition});
    } else if (kinds[i] == "VALUE_ROWIDS") {
      if (i == 0) return InvalidArgument("Cannot handle VALUE_ROWIDS in first dimension.");
      partitions.push_back({RowPartition::Kind::kRowids, &partition});
    } else if (kinds[i] == "FIRST_DIM_SIZE") {
      return InvalidArgument("FIRST_DIM_SIZE must be the first partition type");
    } else {
      return InvalidArgument("Unknown string for partition info type: {}", kinds[i]);
    }
  }
  if (partitions.empty()) return InvalidArgument("a ragged tensor needs a row partition");
  if (rows < 0) return InvalidArgument("the first size must not be negative, got {}", rows);
  return Status();
}

/// The place of each element of an axis in the output, -1 for those that are cut off, and the longest row.
struct RaggedLevel {
  std::vector<int64_t> parents;  // the element of the axis above
  std::vector<int64_t> columns;
  int64_t longest = 0;

  /// `rows` of the axis above; more than `limit` elements are refused.
  Status Read(const RowPartition& partition, int64_t rows, int64_t limit);
  void Add(int64_t row, int64_t column) {
    parents.push_back(row);
    columns.push_back(column);
    longest = std::max(longest, column + 1);
  }
};

Status RaggedLevel::Read(const RowPartition& partition, int64_t rows, int64_t limit) {
  if (partition.kind == RowPartition::Kind::kRowids) {
    int64_t last = -1, column = 0;
    for (int64_t i = 0; i < partition.size(); ++i) {
      const int64_t row = partition.at(i);
      if (row < 0 || row >= rows) {
        return InvalidArgument("Got next_value_rowid={} which is not less than output_index.size()={}", row, rows);
      }
      column = row == last ? column + 1 : 0;
      last = row;
      Add(row, column);
    }
    return Status();
  }
  if (partition.size() != rows + 1) {
    return InvalidArgument("Invalid row split size: {} splits for {} rows", partition.size(), rows);
  }
  if (partition.at(0) != 0) return InvalidArgument("row_splits must start with 0, got {}", partition.at(0));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = partition.at(row), end = partition.at(row + 1);
    if (end < begin) return InvalidArgument("row_splits must not decrease, got {} after {}", end, begin);
    if (end > limit) return InvalidArgument("row_splits must not exceed the {} elements below, got {}", limit, end);
    for (int64_t i = begin; i < end; ++i) Add(row, i - begin);
  }
  return Status();
}

/// The value broadcast to the shape of one element of the values.
Result<Tensor> BroadcastDefault(const Tensor& value, const std::vector<int64_t>& inner) {
  const auto rank = static_cast<size_t>(value.shape().rank());
  const auto refuse = [&] {
    return InvalidArgument("default_value of shape {} cannot be broadcast to the shape of an element, {}",
                           value.shape().ToString(), PartialShape::Of(inner).ToString());
  };
  if (rank > inner.size()) return refuse();
  WEIR_ASSIGN(Shape shape, Shape::Make(inner));
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = value.shape().dim(static_cast<int>(d));
    if (extent != 1 && extent != inner[inner.size() - rank + d]) return refuse();
  }
  WEIR_ASSIGN(Tensor made, Tensor::Make(value.dtype(), std::move(shape)));
  const size_t bytes = SizeOf(value.dtype());
  for (int64_t i = 0, n = made.elements(); i < n; ++i) {
    int64_t rest = i, from = 0, step = 1;
    for (size_t d = inner.size(); d-- > 0;) {
      const int64_t at = rest % inner[d];
      rest /= inner[d];
      if (inner.size() - d > rank) continue;
      const int64_t extent = value.shape().dim(static_cast<int>(d - (inner.size() - rank)));
      if (extent != 1) from += at * step;
      step *= extent;
    }
    if (bytes == 0) {
      made.mutable_as<std::string>()[static_cast<size_t>(i)] = value.as<std::string>()[static_cast<size_t>(from)];
    } else {
      std::memcpy(made.mutable_raw() + static_cast<size_t>(i) * bytes, value.raw() + static_cast<size_t>(from) * bytes,
                  bytes);
    }
  }
  return made;
}

/// Copies an element of `inner` numbers.
void CopyElement(const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at, int64_t inner) {
  const size_t bytes = SizeOf(to.dtype());
  if (bytes != 0) {
    std::memcpy(to.mutable_raw() + static_cast<size_t>(to_at * inner) * bytes,
                from.raw() + static_cast<size_t>(from_at * inner) * bytes, static_cast<size_t>(inner) * bytes);
    return;
  }
  const auto source = from.as<std::string>().subspan(static_cast<size_t>(from_at * inner), static_cast<size_t>(inner));
  std::copy(source.begin(), source.end(), to.mutable_as<std::string>().begin() + static_cast<ptrdiff_t>(to_at * inner));
}

Status RaggedTensorToTensor(kernel::BuiltinCall& call) {
  RaggedInput in;
  WEIR_TRY(in.Read(call));
  if (!HasFixedSize(in.values->dtype()) && in.values->dtype() != DType::kString) {
    return Unimplemented("ragged tensors of type {}", Name(in.values->dtype()));
  }
  if (in.values->shape().rank() < 1) return InvalidArgument("values must be at least a vector");
  std::vector<RaggedLevel> levels(in.partitions.size());
  std::vector<int64_t> dims = {in.rows};
  int64_t rows = in.rows;
  for (size_t l = 0; l < levels.size(); ++l) {
    // Splits count the rows below. Row numbers do not, since rows may be empty.
    int64_t limit = in.values->shape().dim(0);
    if (l + 1 < levels.size()) {
      const RowPartition& below = in.partitions[l + 1];
      limit = below.kind == RowPartition::Kind::kSplits ? below.size() - 1 : std::max(limit, kMostEmptyRows);
    }
    WEIR_TRY(levels[l].Read(in.partitions[l], rows, limit));
    rows = static_cast<int64_t>(levels[l].parents.size());
    if (rows > in.values->shape().dim(0) && l + 1 == levels.size()) {
      return InvalidArgument("the row partitions have {} values, but there are {}", rows, in.values->shape().dim(0));
    }
    dims.push_back(levels[l].longest);
  }
  if (rows != in.values->shape().dim(0)) {
    return InvalidArgument("the row partitions have {} values, but there are {}", rows, in.values->shape().dim(0));
  }
  const size_t ragged = dims.size();
  std::vector<int64_t> inner;
  for (int i = 1; i < in.values->shape().rank(); ++i) inner.push_back(in.values->shape().dim(i));
  dims.insert(dims.end(), inner.begin(), inner.end());
  if (!in.wanted.empty() && in.wanted.size() != dims.size()) {
    return InvalidArgument("The shape {} has rank {}, but the ragged tensor has rank {}",
                           PartialShape::Of(in.wanted).ToString(), in.wanted.size(), dims.size());
  }
  for (size_t d = 0; d < in.wanted.size(); ++d) {
    if (in.wanted[d] < -1) return InvalidArgument("extent {} of the shape is {}", d, in.wanted[d]);
    if (in.wanted[d] == -1) continue;
    if (d >= ragged && in.wanted[d] != dims[d]) {
      return InvalidArgument("extent {} of the shape is {}, but that of the values is {}", d, in.wanted[d], dims[d]);
    }
    dims[d] = in.wanted[d];
  }
  WEIR_ASSIGN(Shape shape, Shape::Make(dims));
  WEIR_ASSIGN(const Tensor otherwise, BroadcastDefault(*in.otherwise, inner));
  WEIR_ASSIGN(Tensor made, Tensor::Make(in.values->dtype(), std::move(shape)));
  const int64_t size = otherwise.elements();
  if (made.elements() > 0) {
    const int64_t places = made.elements() / size;
    std::vector<bool> set(static_cast<size_t>(places));
    std::vector<int64_t> place;
    for (size_t l = 0; l < levels.size(); ++l) {
      std::vector<int64_t> next(levels[l].parents.size());
      for (size_t i = 0; i < next.size(); ++i) {
        const int64_t above = levels[l].parents[i], column = levels[l].columns[i];
        const int64_t parent = l > 0 ? place[static_cast<size_t>(above)] : above < dims[0] ? above : -1;
        next[i] = parent >= 0 && column < dims[l + 1] ? parent * dims[l + 1] + column : -1;
      }
      place = std::move(next);
    }
    for (size_t i = 0; i < place.size(); ++i) {
      if (place[i] < 0) continue;
      CopyElement(*in.values, static_cast<int64_t>(i), made, place[i], size);
      set[static_cast<size_t>(place[i])] = true;
    }
    for (int64_t i = 0; i < places; ++i) {
      if (!set[static_cast<size_t>(i)]) CopyElement(otherwise, 0, made, i, size);
    }
  }
  call.outputs[0] = std::move(made);
  return Status();
}

}  // namespace

void AddRaggedTensors(kernel::KernelRegistry& kernels) {
  kernels.AddHost("RaggedTensorToTensor", RaggedTensorToTensor);
}

}  // namespace weir::builtin
