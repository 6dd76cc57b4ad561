#include "core/tensor/tensor_content.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/proto/parse.h"
#include "core/proto/wire_fields.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor_proto.h"

namespace weir {
namespace {

using proto::WireFields;

/// The fields of a TensorProto whose values are all in tensor_content.
struct ContentFields {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> dims;
  std::string_view content;

  /// False for any other message, also for one that is malformed.
  bool Read(std::string_view tensor) {
    WireFields fields(tensor);
    int shapes = 0;
    while (fields.Next()) {
      if (fields.Is(1, 0)) {
        dtype = static_cast<DType>(static_cast<uint32_t>(fields.value()));
      } else if (fields.Is(2, 2)) {
        if (++shapes > 1 || !ReadShape(fields.bytes())) return false;
      } else if (fields.Is(4, 2)) {
        content = fields.bytes();
      } else if (!fields.Is(3, 0)) {
        return false;
      }
    }
    return fields.ok();
  }

 private:
  bool ReadShape(std::string_view shape) {
    WireFields fields(shape);
    while (fields.Next()) {
      if (!fields.Is(2, 2) || dims.size() == kMaxRank) return false;
      WireFields dim(fields.bytes());
      int64_t& extent = dims.emplace_back(0);
      while (dim.Next()) {
        if (!dim.Is(1, 0)) return false;
        extent = static_cast<int64_t>(dim.value());
      }
      if (!dim.ok()) return false;
    }
    return fields.ok();
  }
};

void AppendBytes(int field, std::string_view bytes, std::string& to) {
  to.push_back(static_cast<char>(field << 3 | 2));
  proto::AppendVarint(bytes.size(), to);
  to += bytes;
}

constexpr size_t kLeastBorrowed = 4096;  // bytes; smaller tensors are copied in less time than they keep pages

}  // namespace

Result<Tensor> TensorOfContent(std::string_view message, const std::shared_ptr<const void>& owner) {
  ContentFields tensor;
  if (!tensor.Read(message) || tensor.content.empty()) return Tensor();
  // A bool may be stored as any byte.
  if (!IsKnown(tensor.dtype) || IsRef(tensor.dtype) || tensor.dtype == DType::kBool) return Tensor();
  Result<Shape> shape = Shape::Make(tensor.dims);
  const uint64_t size = tensor.content.size(), element = SizeOf(tensor.dtype);
  if (!shape.ok() || element == 0 || size % element != 0) return Tensor();
  if (size / element != static_cast<uint64_t>(shape->elements())) return Tensor();
  const auto address = reinterpret_cast<uintptr_t>(tensor.content.data());
  if (owner != nullptr && size >= kLeastBorrowed && address % kBufferAlignment == 0) {
    // Lent memory, which nobody writes.
    void* const memory = const_cast<char*>(tensor.content.data());
    return Tensor::Over(tensor.dtype, std::move(*shape), WrapHostMemory(memory, size, owner));
  }
  WEIR_ASSIGN(Tensor copy, Tensor::Make(tensor.dtype, std::move(*shape)));
  std::memcpy(copy.mutable_raw(), tensor.content.data(), size);
  return copy;
}

Result<TensorPieces> PiecesOf(const Tensor& tensor) {
  TensorPieces pieces;
  if (!tensor.valid() || !tensor.on_host() || SizeOf(tensor.dtype()) == 0 || tensor.elements() == 0) {
    WEIR_ASSIGN(pieces.head, SerializeTensorProto(tensor));
    return pieces;
  }
  std::string shape;
  for (const int64_t extent : tensor.shape().dims()) {
    std::string dim(1, '\x08');
    proto::AppendVarint(static_cast<uint64_t>(extent), dim);
    AppendBytes(2, dim, shape);
  }
  pieces.head.push_back('\x08');
  proto::AppendVarint(static_cast<uint64_t>(tensor.dtype()), pieces.head);
  AppendBytes(2, shape, pieces.head);
  pieces.head.push_back('\x22');  // tensor_content
  proto::AppendVarint(tensor.bytes(), pieces.head);
  pieces.content = {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
  return pieces;
}

}  // namespace weir
