// Tensors and shapes to and from TensorFlow's messages.
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

/// How many bytes of memory decoding may add to what the message itself holds: a message of 20 bytes can stand for any
/// number of repeated values. One budget may serve many tensors of one file. Numbers that repeat over many MiB share
/// pages, so that they take no memory until they are written.
struct ExpansionBudget {
  uint64_t bytes = uint64_t{2} << 30;
};

/// The tensor that a message stands for, in host memory. The payload is tensor_content, else the field of the type, of
/// which the last value repeats; none means zeros or empty strings. Bounds are checked before memory is taken.
/// Errors: InvalidArgument "Cannot parse tensor from proto: <the message as text>" for a type, shape or payload that
/// does not fit; ResourceExhausted when `budget` (one of its own without) or memory does not suffice; Unimplemented for
/// type variant.
Result<Tensor> TensorFromProto(const tf::TensorProto& proto, ExpansionBudget* budget = nullptr);
/// The same from a serialized TensorProto.
Result<Tensor> ParseTensorProto(std::string_view bytes, ExpansionBudget* budget = nullptr);

/// Where the payload goes. Every reader of TensorFlow's takes both.
enum class TensorEncoding {
  kContent,  // tensor_content, as TensorFlow's runtime writes values
  kTyped,    // as its Python client writes constants: scalars and strings in the field of their type, equal elements
           // once, other arrays in tensor_content
};

/// Replaces `proto`. FailedPrecondition for a tensor outside host memory, InvalidArgument for one without type.
Status TensorToProto(const Tensor& tensor, TensorEncoding encoding, tf::TensorProto& proto);
/// A serialized TensorProto.
Result<std::string> SerializeTensorProto(const Tensor& tensor, TensorEncoding encoding = TensorEncoding::kContent);

/// A concrete shape; InvalidArgument for unknown rank or extents, and for what Shape::Make refuses.
Result<Shape> ShapeFromProto(const tf::TensorShapeProto& proto);
Result<PartialShape> PartialShapeFromProto(const tf::TensorShapeProto& proto);
/// Replaces `proto`.
void ShapeToProto(const PartialShape& shape, tf::TensorShapeProto& proto);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_TENSOR_PROTO_H_
