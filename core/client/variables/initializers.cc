#include "core/client/variables/initializers.h"

#include <algorithm>
#include <cmath>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// Up to here a filled value is a Const.
constexpr int64_t kMaxConstElements = 1000;
/// Standard deviation of a normal distribution cut off at ±2.
constexpr double kTruncatedStddev = 0.87962566103423978;

Tensor ShapeTensor(const Shape& shape) { return Tensor::Vector<int32_t>({shape.dims().begin(), shape.dims().end()}); }

/// RandomUniform with both bounds, in the form of the other builders.
Output Evenly(const Operand& shape, double minval, double maxval, const RandomOptions& options, Where where) {
  return RandomUniform(shape, minval, maxval, options, where);
}

/// A random initial value, as the builders of random ops make it in the current scope.
Output Draw(decltype(RandomNormal)* draw, double first, double second, int64_t seed, Graph& graph, DType dtype,
            const Shape& shape) {
  const AsDefault in(graph);
  RandomOptions options;
  options.dtype = dtype;
  options.seed = seed;
  return draw(Literal(ShapeTensor(shape)), first, second, options, std::source_location::current());
}

Initializer Drawn(decltype(RandomNormal)* draw, double first, double second, int64_t seed) {
  return [=](Graph& graph, DType dtype, const Shape& shape) {
    return Draw(draw, first, second, seed, graph, dtype, shape);
  };
}

/// The elements of `values`, then the last of them (zero when there is none).
Result<Tensor> Padded(const Tensor& values, const Shape& shape) {
  const int64_t given = values.elements(), wanted = shape.elements();
  if (given == wanted) return values.Reshaped(shape);
  if (given > std::max<int64_t>(wanted, 1)) {
    return InvalidArgument("Too many elements provided. Takes at most {}, but got {}.", wanted, given);
  }
  WEIR_ASSIGN(Tensor padded, Tensor::Make(values.dtype(), shape));
  const size_t size = SizeOf(values.dtype());
  if (given == 0 && size > 0) std::fill_n(padded.mutable_raw(), padded.bytes(), std::byte{});
  for (int64_t i = 0; i < wanted && given > 0; ++i) {
    const auto from = static_cast<size_t>(std::min(i, given - 1)), to = static_cast<size_t>(i);
    if (values.dtype() == DType::kString) {
      padded.mutable_as<std::string>()[to] = values.as<std::string>()[from];
    } else {
      std::copy_n(values.raw() + from * size, size, padded.mutable_raw() + to * size);
    }
  }
  return padded;
}

Result<Tensor> FilledTensor(DType dtype, const Shape& shape, double value) {
  if (dtype == DType::kString) {
    if (value != 0) return InvalidArgument("Expected string, got {} of type 'int' instead.", value);
    return Tensor::Make(dtype, shape);  // empty texts
  }
  WEIR_ASSIGN(const Tensor one, ScalarFrom(dtype, value));
  return Padded(one, shape);
}

Output Filled(Graph& graph, DType dtype, const Shape& shape, double value, const char* name) {
  if (shape.elements() <= kMaxConstElements || dtype == DType::kString) {
    const Result<Tensor> filled = FilledTensor(dtype, shape, value);
    if (filled.ok()) return Operand(Literal(*filled)).In(graph, dtype, name);
    const std::source_location where = Internals(graph).origin.value_or(std::source_location::current());
    (void)graph.Fail(filled.status().Append(" (" + Format(where) + ")"));
    return Output();
  }
  const NameScope scope(name, graph);
  OperationSpec fill;
  fill.op = "Fill";
  fill.inputs = {Operand(Literal(ShapeTensor(shape))).In(graph, DType::kInt32, "shape_as_tensor"),
                 Filled(graph, dtype, Shape(), value, "Const")};
  const std::string path = scope.path();
  fill.name = path;
  return graph.Add(fill).output(0);
}

Initializer FilledWith(double value, const char* name) {
  return [=](Graph& graph, DType dtype, const Shape& shape) { return Filled(graph, dtype, shape, value, name); };
}

struct Fans {
  double in = 1;
  double out = 1;
};

Fans FansOf(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank == 1) return {static_cast<double>(shape.dim(0)), static_cast<double>(shape.dim(0))};
  double receptive = 1;
  for (int i = 0; i + 2 < rank; ++i) receptive *= static_cast<double>(shape.dim(i));
  return {static_cast<double>(shape.dim(rank - 2)) * receptive, static_cast<double>(shape.dim(rank - 1)) * receptive};
}

}  // namespace

Output Initializer::operator()(Graph& graph, DType dtype, const Shape& shape, const PartitionInfo* part) const {
  if (function_) return function_(graph, dtype, shape, part);
  return self_contained_ ? self_contained_() : Output();
}

Initializer ZerosInitializer() { return FilledWith(0, "zeros"); }
Initializer OnesInitializer() { return FilledWith(1, "ones"); }

Initializer ConstantInitializer(Literal value, std::source_location where) {
  value.flexible = true;
  return [value = std::move(value), where](Graph& graph, DType dtype, const Shape& shape) -> Output {
    const Result<Tensor> typed = value.As(dtype);
    const Result<Tensor> padded = typed.ok() ? Padded(*typed, shape) : typed;
    if (padded.ok()) return Operand(Literal(*padded)).In(graph, dtype, "Const");
    (void)graph.Fail(padded.status().Append(" (" + Format(where) + ")"));
    return Output();
  };
}

Initializer RandomUniformInitializer(double minval, double maxval, int64_t seed) {
  return Drawn(Evenly, minval, maxval, seed);
}

Initializer RandomNormalInitializer(double mean, double stddev, int64_t seed) {
  return Drawn(RandomNormal, mean, stddev, seed);
}

Initializer TruncatedNormalInitializer(double mean, double stddev, int64_t seed) {
  return Drawn(TruncatedNormal, mean, stddev, seed);
}

Initializer VarianceScalingInitializer(const VarianceScalingOptions& options) {
  return [options](Graph& graph, DType dtype, const Shape& shape, const PartitionInfo* part) {
    const Fans fans = FansOf(part != nullptr ? part->full_shape : shape);
    const double count = options.mode == Fan::kIn    ? fans.in
                         : options.mode == Fan::kOut ? fans.out
                                                     : (fans.in + fans.out) / 2;
    const double variance = options.scale / std::max(1.0, count);
    if (options.distribution == Spread::kUniform) {
      const double limit = std::sqrt(3 * variance);
      return Draw(Evenly, -limit, limit, options.seed, graph, dtype, shape);
    }
    const bool cut = options.distribution == Spread::kTruncatedNormal;
    return Draw(cut ? TruncatedNormal : RandomNormal, 0, std::sqrt(variance) / (cut ? kTruncatedStddev : 1),
                options.seed, graph, dtype, shape);
  };
}

Initializer GlorotUniformInitializer(int64_t seed) {
  return VarianceScalingInitializer({.mode = Fan::kAverage, .distribution = Spread::kUniform, .seed = seed});
}
Initializer GlorotNormalInitializer(int64_t seed) {
  return VarianceScalingInitializer({.mode = Fan::kAverage, .seed = seed});
}
Initializer HeNormalInitializer(int64_t seed) { return VarianceScalingInitializer({.scale = 2, .seed = seed}); }
Initializer HeUniformInitializer(int64_t seed) {
  return VarianceScalingInitializer({.scale = 2, .distribution = Spread::kUniform, .seed = seed});
}

Initializer DefaultInitializer(DType dtype) {
  dtype = BaseType(dtype);
  if (IsFloating(dtype)) return GlorotUniformInitializer();
  const bool zero = IsInteger(dtype) || dtype == DType::kBool || dtype == DType::kString;
  return zero ? ZerosInitializer() : Initializer();
}

}  // namespace weir
