#include <cmath>
#include <string>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

/// Names of the nodes of `random * scale + offset`.
struct Parts {
  const char* op;
  const char* offset;
  const char* scale;  // or of the upper end
};

/// With `upper`, `scale` is the upper end of a range that begins at `offset`.
Output Scaled(const Parts& parts, const Operand& shape, double offset, double scale, bool upper,
              const RandomOptions& options, std::string_view name, const Where& where) {
  Graph& graph = shape.graph() != nullptr ? *shape.graph() : Graph::Default();
  const NameScope scope(options.name.empty() ? name : options.name, graph);
  const Output dims = shape.In(graph, DType::kInvalid, "shape");
  const Output first = Operand(Literal(offset), where).In(graph, options.dtype, parts.offset);
  const Output second = Operand(Literal(scale), where).In(graph, options.dtype, parts.scale);
  const SeedPair seeds = OpSeeds(graph, options.seed);
  const op::AttrList attrs = {{"dtype", options.dtype}, {"seed", seeds.seed}, {"seed2", seeds.seed2}};
  const Output random = BuildOp(parts.op, {dims}, attrs, {}, where).output(0);
  const Output factor = upper ? BuildOp("Sub", {second, first}, {}, "sub", where).output(0) : second;
  const Output scaled = BuildOp("Mul", {random, factor}, {}, "mul", where).output(0);
  return BuildOp("AddV2", {scaled, first}, {}, scope.path(), where).output(0);
}

/// Whole numbers from [minval, maxval).
Output UniformIntegers(const Operand& shape, double minval, double maxval, const RandomOptions& options,
                       const Where& where) {
  Graph& graph = shape.graph() != nullptr ? *shape.graph() : Graph::Default();
  const NameScope scope(options.name.empty() ? "random_uniform" : options.name, graph);
  const Output dims = shape.In(graph, DType::kInvalid, "shape");
  const auto bound = [&](double value, std::string_view name) {
    const bool whole = std::trunc(value) == value && value >= -0x1p63 && value < 0x1p63;
    const Literal literal = whole ? Literal(static_cast<int64_t>(value)) : Literal(value);  // which is an error
    return Operand(literal, where).In(graph, options.dtype, name);
  };
  const SeedPair seeds = OpSeeds(graph, options.seed);
  return BuildOp("RandomUniformInt", {dims, bound(minval, "min"), bound(maxval, "max")},
                 {{"seed", seeds.seed}, {"seed2", seeds.seed2}}, scope.path(), where)
      .output(0);
}

}  // namespace

Output RandomUniform(const Operand& shape, double minval, std::optional<double> maxval, const RandomOptions& options,
                     Where where) {
  if (options.dtype == DType::kInt32 || options.dtype == DType::kInt64) {
    if (maxval) return UniformIntegers(shape, minval, *maxval, options, where);
    Graph& graph = shape.graph() != nullptr ? *shape.graph() : Graph::Default();
    (void)graph.Fail(
        InvalidArgument("Must specify maxval for integer dtype {} ({})", NumpyName(options.dtype), Format(where)));
    return Output::Absent(graph);
  }
  return Scaled({"RandomUniform", "min", "max"}, shape, minval, maxval.value_or(1), true, options, "random_uniform",
                where);
}

Output RandomNormal(const Operand& shape, double mean, double stddev, const RandomOptions& options, Where where) {
  return Scaled({"RandomStandardNormal", "mean", "stddev"}, shape, mean, stddev, false, options, "random_normal",
                where);
}

Output TruncatedNormal(const Operand& shape, double mean, double stddev, const RandomOptions& options, Where where) {
  return Scaled({"TruncatedNormal", "mean", "stddev"}, shape, mean, stddev, false, options, "truncated_normal", where);
}

}  // namespace weir
