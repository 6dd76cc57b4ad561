// Parts shared by kernels that move elements: sets of element types, steering operands, positions along an axis.
#ifndef WEIR_PLUGINS_FUNCTORS_OPERANDS_H_
#define WEIR_PLUGINS_FUNCTORS_OPERANDS_H_

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sdk/cpp/kernel.h"

namespace weir::functors {

constexpr uint64_t DTypeSet(std::initializer_list<uint32_t> dtypes) {
  uint64_t set = 0;
  for (const uint32_t dtype : dtypes) set |= WEIR_DTYPE_BIT(dtype);
  return set;
}

/// Floating, complex and integer types and bool. The sets are the same in every build, since code on bytes serves all
/// types.
inline constexpr uint64_t kPlainSet =
    DTypeSet({WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64, WEIR_COMPLEX128, WEIR_INT8,
              WEIR_INT16, WEIR_INT32, WEIR_INT64, WEIR_UINT8, WEIR_UINT16, WEIR_UINT32, WEIR_UINT64, WEIR_BOOL});
inline constexpr uint64_t kQuantizedSet = DTypeSet({WEIR_QINT8, WEIR_QINT16, WEIR_QINT32, WEIR_QUINT8, WEIR_QUINT16});
/// The quantized types of most array ops.
inline constexpr uint64_t kCommonQuantizedSet = DTypeSet({WEIR_QINT8, WEIR_QINT32, WEIR_QUINT8});
inline constexpr uint64_t kFloat8Set = DTypeSet({WEIR_FLOAT8_E5M2, WEIR_FLOAT8_E4M3FN});
inline constexpr uint64_t kInt4Set = DTypeSet({WEIR_INT4, WEIR_UINT4});

/// Calls body(E()) with an element type of `bytes` bytes: 1, 2, 4, 8 or 16.
template <class Body>
decltype(auto) ForBytes(uint32_t bytes, Body&& body) {
  switch (bytes) {
    case 1:
      return body(uint8_t());
    case 2:
      return body(uint16_t());
    case 4:
      return body(uint32_t());
    case 8:
      return body(uint64_t());
    default:
      return body(sdk::bits128());
  }
}

/// Calls body(n), with a compile-time constant for the sizes of single elements, so that copies of n bytes become
/// moves.
template <class Body>
decltype(auto) ForBlock(size_t n, Body&& body) {
  switch (n) {
    case 1:
      return body(std::integral_constant<size_t, 1>());
    case 2:
      return body(std::integral_constant<size_t, 2>());
    case 4:
      return body(std::integral_constant<size_t, 4>());
    case 8:
      return body(std::integral_constant<size_t, 8>());
    case 16:
      return body(std::integral_constant<size_t, 16>());
    default:
      return body(n);
  }
}

/// Fills `to` with copies of the element at `value`.
inline void FillWith(const void* value, const sdk::AnyOutput& to) {
  const int64_t n = to.size();
  ForBytes(sdk::SizeOf(to.dtype()), [&](auto element) {
    std::memcpy(&element, value, sizeof element);
    auto* elements = static_cast<decltype(element)*>(to.data());
    std::fill(elements, elements + n, element);
  });
}

/// The value of integer operand i, which determines what the kernel does. Unimplemented if the value is unknown.
inline int32_t Steering(const sdk::Prep& prep, uint32_t i, std::vector<int64_t>* values) {
  const auto known = prep.Constant(i);
  if (!known) return prep.error().Unimplemented("the value of input ", i, " must be known");
  values->resize(static_cast<size_t>(known->size()));
  for (size_t k = 0; k < values->size(); ++k) (*values)[k] = (*known)[static_cast<int64_t>(k)];
  return WEIR_OK;
}
/// The same for an operand with one element.
inline int32_t Steering(const sdk::Prep& prep, uint32_t i, std::string_view name, int64_t* value) {
  std::vector<int64_t> values;
  if (const int32_t code = Steering(prep, i, &values); code != WEIR_OK) return code;
  if (values.size() != 1) return prep.error().InvalidArgument(name, " must be a scalar, but has shape ", prep.shape(i));
  *value = values[0];
  return WEIR_OK;
}

/// Internal if output i does not have the shape that the kernel will write.
inline int32_t ExpectOutput(const sdk::Prep& prep, uint32_t i, const std::vector<int64_t>& dims) {
  const weir_shape wanted{static_cast<uint32_t>(dims.size()), 0, dims.data()};
  if (sdk::SameShape(prep.output(i).shape, wanted)) return WEIR_OK;
  return prep.error().Fail(WEIR_INTERNAL, "output ", i, " has shape ", prep.output(i).shape, ", the kernel writes ",
                           wanted);
}

/// The shape with these extents, which it borrows.
inline weir_shape ShapeOf(const std::vector<int64_t>& dims) {
  return {static_cast<uint32_t>(dims.size()), 0, dims.data()};
}

inline std::vector<int64_t> DimsOf(const weir_shape& shape) { return {shape.dims, shape.dims + shape.rank}; }

/// Steps between neighbours along each axis of a dense array. All are 0 for an empty array, since the product of its
/// other extents may overflow.
inline std::vector<int64_t> StepsOf(const std::vector<int64_t>& dims) {
  const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  std::vector<int64_t> steps(dims.size(), empty ? 0 : 1);
  for (size_t i = dims.size(); !empty && i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return steps;
}

/// An extent is 0. The product of the others may then overflow.
inline bool HasNoElements(const weir_shape& shape) {
  return std::find(shape.dims, shape.dims + shape.rank, 0) != shape.dims + shape.rank;
}

/// Product of the extents [begin, end).
inline int64_t SizeOf(const weir_shape& shape, uint32_t begin, uint32_t end) {
  int64_t n = 1;
  for (uint32_t i = begin; i < end; ++i) n *= shape.dims[i];
  return n;
}

/// InvalidArgument with TensorFlow's text: element `at` of the index tensor `name` is not in [0, limit).
[[gnu::cold, gnu::noinline]] inline int32_t IndexOutOfRange(const sdk::Error& error, std::string_view name,
                                                            const weir_shape& shape, int64_t at, int64_t value,
                                                            std::string_view text, int64_t limit) {
  if (shape.rank == 0) return error.InvalidArgument(name, " = ", value, text, "[0, ", limit, ")");
  std::vector<int64_t> position(shape.rank);
  for (uint32_t i = shape.rank; i-- > 0;) {
    position[i] = at % shape.dims[i];
    at /= shape.dims[i];
  }
  return error.InvalidArgument(name, weir_shape{shape.rank, 0, position.data()}, " = ", value, text, "[0, ", limit,
                               ")");
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_OPERANDS_H_
