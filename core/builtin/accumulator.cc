#include "core/builtin/accumulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/base/errors.h"
#include "core/tensor/number.h"
#include "core/tensor/sum.h"

namespace weir::builtin {
namespace {

// The arithmetic of the three element types; halves are computed as float and rounded.
struct OfHalf {
  using Type = uint16_t;
  static uint16_t Plus(uint16_t a, uint16_t b) { return FloatToHalf(HalfToFloat(a) + HalfToFloat(b)); }
  static uint16_t Over(uint16_t a, int32_t n) {
    return FloatToHalf(HalfToFloat(a) / HalfToFloat(FloatToHalf(static_cast<float>(n))));
  }
};
template <class T>
struct OfReal {
  using Type = T;
  static T Plus(T a, T b) { return a + b; }
  static T Over(T a, int32_t n) { return a / static_cast<T>(n); }
};

/// Calls fn(arithmetic) for half, float or double.
template <class Fn>
void WithArithmetic(DType dtype, Fn fn) {
  if (dtype == DType::kHalf) fn(OfHalf());
  if (dtype == DType::kFloat) fn(OfReal<float>());
  if (dtype == DType::kDouble) fn(OfReal<double>());
}

/// Elements [at, at + count) of a host tensor of the type's size.
template <class T>
T* From(Tensor& tensor, int64_t at) {
  return reinterpret_cast<T*>(tensor.mutable_raw()) + at;
}
template <class T>
const T* From(const Tensor& tensor, int64_t at) {
  return reinterpret_cast<const T*>(tensor.raw()) + at;
}

void DivideRange(Tensor& tensor, int64_t at, int64_t count, int32_t by) {
  WithArithmetic(tensor.dtype(), [&](auto arithmetic) {
    using Arithmetic = decltype(arithmetic);
    auto* const to = From<typename Arithmetic::Type>(tensor, at);
    for (int64_t i = 0; i < count; ++i) to[i] = Arithmetic::Over(to[i], by);
  });
}

int64_t RowSize(const Tensor& values) {
  const int64_t rows = values.shape().dim(0);
  return rows == 0 ? 0 : values.elements() / rows;
}

}  // namespace

std::string Accumulator::name() const { return fmt::format("_{}_{}", id(), node_); }

std::string Accumulator::DebugString() const {
  return fmt::format("accumulator '{}' with {} gradients", name(), num_accumulated());
}

uint64_t Accumulator::MemoryBytes() const {
  const std::lock_guard lock(waiting_.mutex());
  return Bytes();
}

int32_t Accumulator::num_accumulated() const {
  const std::lock_guard lock(waiting_.mutex());
  return count_;
}

void Accumulator::SetGlobalStep(int64_t step) {
  const std::lock_guard lock(waiting_.mutex());
  if (step < step_) {
    std::fprintf(stderr, "weir: accumulator '%s': its step goes back from %lld to %lld\n", node_.c_str(),
                 static_cast<long long>(step_), static_cast<long long>(step));
  }
  step_ = step;
}

Status Accumulator::Apply(int64_t local_step, const std::vector<Tensor>& parts) {
  return waiting_.Change(shared_from_this(), [&]() -> Status {
    if (local_step < step_) return Status();
    WEIR_TRY(Check(parts));
    WEIR_TRY(Add(parts));
    ++count_;
    return Status();
  });
}

void Accumulator::Take(int32_t required, runtime::Cancellation* cancellation, runtime::Completion done) {
  if (required <= 0) return done(InvalidArgument("Argument num_required must be positive, but was {}", required));
  const auto take = [this, required]() -> std::optional<WaitingList::Answer> {
    if (count_ < required) return std::nullopt;
    WaitingList::Answer taken = Reduced();
    if (taken.ok()) ++step_;
    count_ = 0;
    Drop();
    return taken;
  };
  waiting_.Run(shared_from_this(), take, cancellation, std::move(done));
}

void Accumulator::Clear() {
  waiting_.EndAll(Cancelled("Accumulator '{}' was destroyed", name()), [this] {
    Drop();
    count_ = 0;
  });
}

Status DenseAccumulator::Check(const std::vector<Tensor>& parts) const {
  const Tensor& gradient = parts[0];
  const PartialShape wanted = count() > 0 ? PartialShape(sum_.shape()) : options().shape;
  if (wanted.CompatibleWith(gradient.shape())) return Status();
  return InvalidArgument("Shape mismatch: expected {}, got {}", wanted.ToString(), gradient.shape().ToString());
}

Status DenseAccumulator::Add(const std::vector<Tensor>& parts) {
  if (count() == 0) {
    sum_ = parts[0];
    return Status();
  }
  WEIR_ASSIGN(sum_, Sum(sum_, parts[0]));
  return Status();
}

Result<std::vector<Tensor>> DenseAccumulator::Reduced() {
  if (options().reduction == Reduction::kSum || count() == 1) return std::vector<Tensor>{std::move(sum_)};
  DivideRange(sum_, 0, sum_.elements(), count());  // of several: memory of its own
  return std::vector<Tensor>{std::move(sum_)};
}

void SparseAccumulator::Drop() {
  indices_.clear();
  counts_.clear();
  values_ = Tensor();
}

Status SparseAccumulator::CheckOperands(const std::vector<Tensor>& parts) const {
  const Shape &indices = parts[0].shape(), &values = parts[1].shape();
  if (indices.rank() != 1) {
    return InvalidArgument("Input indices should be vector but received shape: {}", indices.ToString());
  }
  if (values.rank() < 1) {
    return InvalidArgument("Input values should be at least vector but received shape: {}", values.ToString());
  }
  if (parts.size() > 2 && parts[2].shape().rank() != 1) {
    return InvalidArgument("Input shape should be vector but received shape: {}", parts[2].shape().ToString());
  }
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument("Number of values must match first dimension of indices. Got {} values, indices shape: {}",
                           values.dim(0), indices.ToString());
  }
  return Status();
}

/// Against the shape of the accumulator.
Status SparseAccumulator::CheckWhole(const std::vector<Tensor>& parts) const {
  const PartialShape& own = options().shape;
  if (parts.size() > 2) {
    const std::span<const int64_t> given = parts[2].as<int64_t>();
    if (own.has_rank() && own.rank() > static_cast<int64_t>(given.size())) {
      return InvalidArgument("Shape mismatch: expected shape rank at least {}, got {}", own.rank(), given.size());
    }
    for (int i = 0; i < own.rank(); ++i) {
      const int64_t is = given[static_cast<size_t>(i)];
      if (own.dim(i) == -1 || own.dim(i) == is) continue;
      return InvalidArgument("Shape mismatch: expected shape dim {} to be {}, got {}", i, own.dim(i), is);
    }
  }
  if (own.rank() < 1 || own.dim(0) == -1) return Status();
  const std::span<const int64_t> indices = parts[0].as<int64_t>();
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < own.dim(0)) continue;
    return InvalidArgument("Shape mismatch: index of slice {} exceeded limits of shape; index is {} exceeded {}", i,
                           indices[i], own.dim(0));
  }
  return Status();
}

Status SparseAccumulator::Check(const std::vector<Tensor>& parts) const {
  WEIR_TRY(CheckOperands(parts));
  WEIR_TRY(CheckWhole(parts));
  const Shape& given = parts[1].shape();
  const PartialShape wanted = count() > 0 ? PartialShape(values_.shape()) : options().shape;
  if (count() > 0 && wanted.rank() != given.rank()) {
    return InvalidArgument("Shape mismatch: expected values rank {}, got {}", wanted.rank(), given.rank());
  }
  if (wanted.rank() > given.rank()) {
    return InvalidArgument("Shape mismatch: expected values rank at least {}, got {}", wanted.rank(), given.rank());
  }
  for (int i = 1; i < wanted.rank(); ++i) {
    if (wanted.dim(i) == -1 || wanted.dim(i) == given.dim(i)) continue;
    return InvalidArgument("Shape mismatch: expected values dim {} to be {}, got {}", i, wanted.dim(i), given.dim(i));
  }
  return Status();
}

Status SparseAccumulator::Add(const std::vector<Tensor>& parts) {
  const std::span<const int64_t> indices = parts[0].as<int64_t>();
  if (count() == 0) {
    values_ = parts[1];
    indices_.assign(indices.begin(), indices.end());
    counts_.assign(indices.size(), 1);
    return Status();
  }
  // Both are walked in the order of their indices.
  struct Source {
    int64_t old = -1, added = -1;  // rows; -1: none
  };
  std::vector<Source> sources;
  std::vector<int64_t> merged;
  size_t a = 0, b = 0;
  while (a < indices_.size() || b < indices.size()) {
    const bool takes_old = b == indices.size() || (a < indices_.size() && indices_[a] <= indices[b]);
    const bool takes_new = a == indices_.size() || (b < indices.size() && indices[b] <= indices_[a]);
    merged.push_back(takes_old ? indices_[a] : indices[b]);
    sources.push_back({takes_old ? static_cast<int64_t>(a++) : -1, takes_new ? static_cast<int64_t>(b++) : -1});
  }
  std::vector<int64_t> dims(values_.shape().dims().begin(), values_.shape().dims().end());
  dims[0] = static_cast<int64_t>(merged.size());
  WEIR_ASSIGN(const Shape shape, Shape::Make(dims));
  WEIR_ASSIGN(Tensor sum, Tensor::Make(options().dtype, shape));
  const int64_t width = RowSize(sum);
  std::vector<int32_t> counts;
  for (const Source& source : sources) {
    counts.push_back((source.old < 0 ? 0 : counts_[static_cast<size_t>(source.old)]) + (source.added < 0 ? 0 : 1));
  }
  WithArithmetic(options().dtype, [&](auto arithmetic) {
    using Arithmetic = decltype(arithmetic);
    using T = typename Arithmetic::Type;
    for (size_t row = 0; row < sources.size() && width > 0; ++row) {
      T* const to = From<T>(sum, static_cast<int64_t>(row) * width);
      const Source& source = sources[row];
      const T* const old = source.old < 0 ? nullptr : From<T>(std::as_const(values_), source.old * width);
      const T* const added = source.added < 0 ? nullptr : From<T>(parts[1], source.added * width);
      for (int64_t i = 0; i < width; ++i) {
        to[i] = old == nullptr ? added[i] : added == nullptr ? old[i] : Arithmetic::Plus(old[i], added[i]);
      }
    }
  });
  values_ = std::move(sum);
  indices_ = std::move(merged);
  counts_ = std::move(counts);
  return Status();
}

Result<std::vector<Tensor>> SparseAccumulator::Reduced() {
  if (options().reduction == Reduction::kMean && count() > 1) {  // of several: memory of its own
    const int64_t width = RowSize(values_);
    for (size_t row = 0; row < counts_.size(); ++row) {
      if (counts_[row] > 1) DivideRange(values_, static_cast<int64_t>(row) * width, width, counts_[row]);
    }
  }
  std::vector<int64_t> shape(values_.shape().dims().begin(), values_.shape().dims().end());
  shape[0] = options().shape.rank() > 0 ? options().shape.dim(0) : -1;
  return std::vector<Tensor>{Tensor::Vector(indices_), std::move(values_), Tensor::Vector(shape)};
}

}  // namespace weir::builtin
