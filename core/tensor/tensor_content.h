// Numbers that a TensorProto stores as memory does.
#ifndef WEIR_CORE_TENSOR_TENSOR_CONTENT_H_
#define WEIR_CORE_TENSOR_TENSOR_CONTENT_H_

#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir {

/// The tensor of a serialized TensorProto whose numbers are all in tensor_content, read in one copy; an invalid tensor
/// for any other message, which ParseTensorProto reads or refuses. With `owner`, which keeps `message`, a large tensor
/// may lie in the message's memory. ResourceExhausted without memory.
Result<Tensor> TensorOfContent(std::string_view message, const std::shared_ptr<const void>& owner = nullptr);

/// What SerializeTensorProto returns, in two pieces, so that numbers need not be copied.
struct TensorPieces {
  std::string head;
  std::string_view content;  // the tensor's memory, for numbers that are not empty
  size_t size() const { return head.size() + content.size(); }
};
/// Errors as of SerializeTensorProto.
Result<TensorPieces> PiecesOf(const Tensor& tensor);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_TENSOR_CONTENT_H_
