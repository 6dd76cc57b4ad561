// Small integer values known statically from the graph: the context of an op's known-ints rule and its result.
#ifndef WEIR_CORE_OP_KNOWN_INTS_H_
#define WEIR_CORE_OP_KNOWN_INTS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/op/attrs.h"
#include "core/tensor/shape.h"

namespace weir::op {

/// An element that is not known. No integer of practical interest has this value.
inline constexpr int64_t kUnknownInt = std::numeric_limits<int64_t>::min();
/// Values with more elements than a shape has extents are not evaluated.
inline constexpr size_t kMostKnownInts = kMaxRank;

/// A scalar (one element) or a vector, some of whose elements may be kUnknownInt.
struct Ints {
  bool scalar = false;
  std::vector<int64_t> elements;
};

/// The node and output that a rule evaluates. Inputs are flattened. The caller replaces result elements that overflow
/// the output's type by kUnknownInt.
class KnownIntsContext {
 public:
  virtual ~KnownIntsContext() = default;
  virtual AttrView attrs() const = 0;
  virtual int num_inputs() const = 0;
  /// The output to evaluate, and its shape.
  virtual int output() const = 0;
  virtual const PartialShape& output_shape() const = 0;
  /// Unknown if the graph is still incomplete or has no such input.
  virtual const PartialShape& shape(int input) const = 0;
  /// The value of an int32 or int64 input; nullopt if it is unknown or too large.
  virtual std::optional<Ints> ints(int input) = 0;

  /// The value of an input with exactly one element; nullopt if it is not known.
  std::optional<int64_t> scalar(int input) {
    const std::optional<Ints> value = ints(input);
    if (!value || value->elements.size() != 1 || value->elements[0] == kUnknownInt) return std::nullopt;
    return value->elements[0];
  }
};

}  // namespace weir::op

#endif  // WEIR_CORE_OP_KNOWN_INTS_H_
