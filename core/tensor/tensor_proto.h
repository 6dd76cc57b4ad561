// Conversion of tensors and shapes to and from TensorFlow's messages.
#ifndef WEIR_CORE_TENSOR_TENSOR_PROTO_H_
#define WEIR_CORE_TENSOR_TENSOR_PROTO_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir {

namespace tf {
class TensorProto;
class TensorShapeProto;
}  // namespace tf

/// Limits the bytes that decoding may add beyond the message size: a message of 20 bytes can describe any number of
/// repeated values. One budget may cover all tensors of a file. Numbers that repeat over many MiB share pages and take
/// no memory until they are written.
struct ExpansionBudget {
  uint64_t bytes = uint64_t{2} << 30;
};

/// Decodes a message into host memory. The payload is tensor_content, else the typed field, whose last value repeats; a
/// missing payload means zeros or empty strings. Bounds are checked before memory is allocated.
/// Errors: InvalidArgument "Cannot parse tensor from proto: <the message as text>" for a mismatched type, shape or
/// payload; ResourceExhausted if `budget` (null: a new one) or memory is exceeded; Unimplemented for type variant.
Result<Tensor> TensorFromProto(const tf::TensorProto& proto, ExpansionBudget* budget = nullptr);
/// As TensorFromProto, from a serialized TensorProto.
Result<Tensor> ParseTensorProto(std::string_view bytes, ExpansionBudget* budget = nullptr);

/// Placement of the payload. All readers of TensorFlow's accept both.
enum class TensorEncoding {
  kContent,  // tensor_content, as TensorFlow's runtime writes values
  kTyped,    // as its Python client writes constants: scalars and strings in the typed field, equal elements once,
             // other arrays in tensor_content
};

/// Overwrites `proto`. FailedPrecondition for a tensor outside host memory, InvalidArgument for an invalid tensor.
Status TensorToProto(const Tensor& tensor, TensorEncoding encoding, tf::TensorProto& proto);
/// Returns a serialized TensorProto.
Result<std::string> SerializeTensorProto(const Tensor& tensor, TensorEncoding encoding = TensorEncoding::kContent);

/// A concrete shape; InvalidArgument for unknown rank or extents, and for extents that Shape::Make rejects.
Result<Shape> ShapeFromProto(const tf::TensorShapeProto& proto);
Result<PartialShape> PartialShapeFromProto(const tf::TensorShapeProto& proto);
/// Overwrites `proto`.
void ShapeToProto(const PartialShape& shape, tf::TensorShapeProto& proto);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_TENSOR_PROTO_H_
