// Checked access to the operands of a builtin call, which may have any values of the graph.
#ifndef WEIR_CORE_BUILTIN_OPERANDS_H_
#define WEIR_CORE_BUILTIN_OPERANDS_H_

#include <span>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/kernel/builtin.h"

namespace weir::builtin {

/// InvalidArgument unless the call has at least `min_inputs` inputs and exactly `outputs` outputs.
Status CheckCounts(const kernel::BuiltinCall& call, size_t min_inputs, size_t outputs);

/// The types as TensorFlow lists them: "float, int32".
std::string ListText(std::span<const DType> types);
/// The shapes as TensorFlow lists them: "[[2],[]]".
std::string ListText(std::span<const PartialShape> shapes);

/// InvalidArgument with TensorFlow's text unless the call's inputs behind the handle or reference in input 0 and its
/// outputs have these types. `outputs`: of the node.
Status CheckSignature(const kernel::BuiltinCall& call, std::span<const DType> wanted_inputs,
                      std::span<const DType> outputs, std::span<const DType> wanted_outputs);

/// Elements of input `i` as T; InvalidArgument if the type differs. `what` is the op's name of the input.
template <class T>
Result<std::span<const T>> Elements(const kernel::BuiltinCall& call, size_t i, std::string_view what) {
  const Tensor& input = call.inputs[i];
  if (input.dtype() != DTypeOf<T>::value) {
    return InvalidArgument("{} must be {}, got {}", what, Name(DTypeOf<T>::value), Name(input.dtype()));
  }
  return input.as<T>();
}

/// The element of scalar input `i`; InvalidArgument "<what> must be a scalar, got shape [2]".
template <class T>
Result<T> Scalar(const kernel::BuiltinCall& call, size_t i, std::string_view what) {
  WEIR_ASSIGN(const std::span<const T> elements, Elements<T>(call, i, what));
  if (call.inputs[i].shape().rank() != 0) {
    return InvalidArgument("{} must be a scalar, got shape {}", what, call.inputs[i].shape().ToString());
  }
  return elements[0];
}

/// Elements of vector input `i`; InvalidArgument "<what> should be a 1-D tensor, got shape []".
Result<std::span<const std::string>> StringVector(const kernel::BuiltinCall& call, size_t i, std::string_view what);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_OPERANDS_H_
