#include "core/tensor/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/base/errors.h"
#include "core/proto/parse.h"
#include "core/proto/wire_fields.h"
#include "core/tensor/buffer.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor_content.h"
#include "weir/proto/tensor.pb.h"

namespace weir {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor_content is little-endian");

/// Splits content framed as lengths followed by bytes into `count` items; false if the framing is malformed.
template <class Take>
bool Unframe(std::string_view content, int64_t count, Take take) {
  if (static_cast<uint64_t>(count) > content.size()) return false;
  std::string_view rest = content;
  std::vector<uint64_t> lengths(static_cast<size_t>(count));
  uint64_t total = 0;
  for (uint64_t& length : lengths) {
    if (!proto::TakeVarint(rest, length) || length > content.size()) return false;
    total += length;  // at most content.size()^2 < 2^62
  }
  if (total != rest.size()) return false;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t length = lengths[static_cast<size_t>(i)];
    if (!take(i, rest.substr(0, length))) return false;
    rest.remove_prefix(length);
  }
  return true;
}

ResourceHandle HandleFromProto(const tf::ResourceHandleProto& proto) {
  return {proto.device(), proto.container(), proto.name(), proto.hash_code(), proto.maybe_type_name(), nullptr};
}

void HandleToProto(const ResourceHandle& handle, tf::ResourceHandleProto& proto) {
  proto.set_device(handle.device);
  proto.set_container(handle.container);
  proto.set_name(handle.name);
  proto.set_hash_code(handle.hash_code);
  proto.set_maybe_type_name(handle.type_name);
}

/// Bytes of one element in memory.
uint64_t ElementBytes(DType dtype) {
  if (dtype == DType::kString) return sizeof(std::string);
  if (dtype == DType::kResource) return sizeof(ResourceHandle);
  return SizeOf(dtype);
}

/// The message as text; omits a long payload.
std::string Describe(const tf::TensorProto& proto) {
  if (proto.ByteSizeLong() <= 2048) return proto::Print(proto);
  tf::TensorProto head;
  head.set_dtype(proto.dtype());
  if (proto.tensor_shape().dim_size() <= kMaxRank) *head.mutable_tensor_shape() = proto.tensor_shape();
  return fmt::format("{}# and a payload, {} bytes in all\n", proto::Print(head), proto.ByteSizeLong());
}

Status CannotParse(const tf::TensorProto& proto) {
  return InvalidArgument("Cannot parse tensor from proto: {}", Describe(proto));
}

/// Decodes a message's payload into a tensor of the same type; `n_` is the tensor's element count.
class Decoder {
 public:
  Decoder(const tf::TensorProto& proto, Tensor& tensor) : proto_(proto), tensor_(tensor), n_(tensor.elements()) {}

  bool Content() {
    const std::string& content = proto_.tensor_content();
    if (tensor_.dtype() == DType::kString) {
      std::span<std::string> to = tensor_.mutable_as<std::string>();
      return Unframe(content, n_, [&](int64_t i, std::string_view item) {
        to[static_cast<size_t>(i)] = item;
        return true;
      });
    }
    if (tensor_.dtype() == DType::kResource) {
      std::span<ResourceHandle> to = tensor_.mutable_as<ResourceHandle>();
      return Unframe(content, n_, [&](int64_t i, std::string_view item) {
        tf::ResourceHandleProto handle;
        if (!proto::ParseBinary(item, "ResourceHandleProto", handle).ok()) return false;
        to[static_cast<size_t>(i)] = HandleFromProto(handle);
        return true;
      });
    }
    if (content.size() != tensor_.bytes()) return false;
    std::memcpy(tensor_.mutable_raw(), content.data(), content.size());
    if (tensor_.dtype() == DType::kBool) {
      for (uint8_t& value : Raw<uint8_t>()) value = value != 0;
    }
    return true;
  }

  /// Reads the typed field. Unknown types were rejected earlier.
  void Typed() {
    switch (tensor_.dtype()) {
      case DType::kFloat:
        return Fill<float>(proto_.float_val());
      case DType::kDouble:
        return Fill<double>(proto_.double_val());
      case DType::kInt64:
        return Fill<int64_t>(proto_.int64_val());
      case DType::kUint32:
        return Fill<uint32_t>(proto_.uint32_val());
      case DType::kUint64:
        return Fill<uint64_t>(proto_.uint64_val());
      case DType::kBool:
        return Fill<uint8_t>(proto_.bool_val());
      case DType::kHalf:
      case DType::kBfloat16:
        return Fill<uint16_t>(proto_.half_val());
      case DType::kComplex64:
        return FillPairs<float>(proto_.scomplex_val());
      case DType::kComplex128:
        return FillPairs<double>(proto_.dcomplex_val());
      case DType::kString:
        return Fill<std::string>(proto_.string_val());
      case DType::kResource:
        return FillHandles();
      case DType::kFloat8E5m2:
      case DType::kFloat8E4m3fn:
      case DType::kFloat8E4m3fnuz:
      case DType::kFloat8E4m3b11fnuz:
      case DType::kFloat8E5m2fnuz:
        return Fill<uint8_t>(proto_.float8_val());
      default:
        break;
    }
    switch (SizeOf(tensor_.dtype())) {
      case 1:
        return Fill<uint8_t>(proto_.int_val());
      case 2:
        return Fill<uint16_t>(proto_.int_val());
      default:
        return Fill<uint32_t>(proto_.int_val());
    }
  }

 private:
  /// The payload as T, which has the size of the tensor's elements but not necessarily their type.
  template <class T>
  std::span<T> Raw() {
    T* const first = reinterpret_cast<T*>(tensor_.mutable_raw());
    return {first, first != nullptr ? static_cast<size_t>(n_) : 0};
  }

  /// The first n values with the last one repeated; zeros if there are none.
  template <class T, class Values>
  void Fill(const Values& values) {
    std::span<T> to = Raw<T>();
    const auto count = static_cast<size_t>(std::min<int64_t>(n_, static_cast<int64_t>(values.size())));
    auto from = values.begin();
    for (size_t i = 0; i < count; ++i, ++from) to[i] = static_cast<T>(*from);
    if (count == to.size()) return;
    const T last = count > 0 ? to[count - 1] : T();
    std::fill(to.begin() + static_cast<ptrdiff_t>(count), to.end(), last);
  }

  template <class T, class Values>
  void FillPairs(const Values& values) {
    const std::span<T> to(reinterpret_cast<T*>(tensor_.mutable_raw()), static_cast<size_t>(2 * n_));
    const auto count = static_cast<size_t>(std::min<int64_t>(n_, values.size() / 2)) * 2;
    std::copy_n(values.begin(), count, to.begin());
    for (size_t i = count; i < to.size(); ++i) to[i] = count > 0 ? to[i - 2] : T();
  }

  void FillHandles() {
    const int64_t count = std::min<int64_t>(n_, proto_.resource_handle_val_size());
    std::span<ResourceHandle> to = tensor_.mutable_as<ResourceHandle>();
    for (int i = 0; i < count; ++i) to[static_cast<size_t>(i)] = HandleFromProto(proto_.resource_handle_val(i));
  }

  const tf::TensorProto& proto_;
  Tensor& tensor_;
  int64_t n_;
};

constexpr uint64_t kMostObjectBytes = uint64_t{64} << 20;  // limit on strings and handles filled in

/// Deducts from the budget the bytes that `elements` of `dtype` need beyond the message size.
Status Charge(const tf::TensorProto& proto, DType dtype, const Shape& shape, ExpansionBudget& budget) {
  uint64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(static_cast<uint64_t>(shape.elements()), ElementBytes(dtype), &bytes);
  const uint64_t held = proto.ByteSizeLong();
  const uint64_t extra = bytes > held ? bytes - held : 0;
  // Repeated numbers take no memory until they are written; objects do.
  const uint64_t allowed = HasFixedSize(dtype) ? budget.bytes : std::min(budget.bytes, kMostObjectBytes);
  if (overflow || extra > allowed) {
    return ResourceExhausted(
        "a TensorProto of {} bytes stands for a tensor of type {} and shape {}; {} more bytes may be "
        "filled in",
        held, Name(dtype), shape.ToString(), allowed);
  }
  budget.bytes -= extra;
  return {};
}

constexpr uint64_t kRepeatedBytes = uint64_t{8} << 20;  // threshold: larger repeated tensors share pages

/// A tensor that repeats the message's last value in shared pages; an invalid tensor if the system does not support
/// this.
Result<Tensor> Repeated(const tf::TensorProto& proto, DType dtype, const Shape& shape) {
  const size_t size = SizeOf(dtype);
  // Each value takes at least one byte of the message, so this many elements include the last value.
  const int64_t given = std::min(shape.elements(), static_cast<int64_t>(proto.ByteSizeLong()));
  WEIR_ASSIGN(Tensor head, Tensor::Make(dtype, Shape::Of({given})));
  Decoder(proto, head).Typed();
  const std::byte* const last = head.raw() + static_cast<uint64_t>(given - 1) * size;
  std::shared_ptr<Buffer> memory = RepeatedHostMemory({last, size}, static_cast<uint64_t>(shape.elements()) * size);
  if (memory == nullptr) return Tensor();
  std::memcpy(memory->host(), head.raw(), head.bytes());
  return Tensor::Over(dtype, shape, std::move(memory));
}

/// True if the content may hold that many elements; exact for fixed-size types.
bool ContentFits(std::string_view content, DType dtype, int64_t elements) {
  const uint64_t size = SizeOf(dtype);
  if (size == 0) return static_cast<uint64_t>(elements) <= content.size();
  return content.size() % size == 0 && content.size() / size == static_cast<uint64_t>(elements);
}

bool AllEqual(const Tensor& tensor) {
  const size_t size = SizeOf(tensor.dtype());
  return std::memcmp(tensor.raw(), tensor.raw() + size, static_cast<size_t>(tensor.bytes()) - size) == 0;
}

/// True for types whose arrays TensorFlow's Python client stores in tensor_content.
bool ArraysAsContent(DType dtype) {
  return SizeOf(dtype) > 0 && dtype != DType::kBool && dtype != DType::kHalf && dtype != DType::kBfloat16 &&
         !IsComplex(dtype);
}

template <class T, class Values>
void AddAll(const Tensor& tensor, int64_t count, Values* to) {
  const std::span<const T> from(reinterpret_cast<const T*>(tensor.raw()), static_cast<size_t>(count));
  to->Reserve(static_cast<int>(count));
  for (const T& value : from) to->AddAlreadyReserved(value);
}

/// Writes the first `count` elements to the typed field.
void WriteTyped(const Tensor& tensor, int64_t count, tf::TensorProto& proto) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return AddAll<float>(tensor, count, proto.mutable_float_val());
    case DType::kDouble:
      return AddAll<double>(tensor, count, proto.mutable_double_val());
    case DType::kInt64:
      return AddAll<int64_t>(tensor, count, proto.mutable_int64_val());
    case DType::kUint32:
      return AddAll<uint32_t>(tensor, count, proto.mutable_uint32_val());
    case DType::kUint64:
      return AddAll<uint64_t>(tensor, count, proto.mutable_uint64_val());
    case DType::kBool:
      return AddAll<bool>(tensor, count, proto.mutable_bool_val());
    case DType::kHalf:
    case DType::kBfloat16:
      return AddAll<uint16_t>(tensor, count, proto.mutable_half_val());
    case DType::kComplex64:
      return AddAll<float>(tensor, 2 * count, proto.mutable_scomplex_val());
    case DType::kComplex128:
      return AddAll<double>(tensor, 2 * count, proto.mutable_dcomplex_val());
    case DType::kString:
      for (int64_t i = 0; i < count; ++i) proto.add_string_val(tensor.as<std::string>()[static_cast<size_t>(i)]);
      return;
    case DType::kResource:
      for (const ResourceHandle& handle : tensor.as<ResourceHandle>()) {
        HandleToProto(handle, *proto.add_resource_handle_val());
      }
      return;
    case DType::kUint8:
    case DType::kQuint8:
    case DType::kUint4:
    case DType::kUint2:
      return AddAll<uint8_t>(tensor, count, proto.mutable_int_val());
    case DType::kInt8:
    case DType::kQint8:
    case DType::kInt4:
    case DType::kInt2:
      return AddAll<int8_t>(tensor, count, proto.mutable_int_val());
    case DType::kUint16:
    case DType::kQuint16:
      return AddAll<uint16_t>(tensor, count, proto.mutable_int_val());
    case DType::kInt16:
    case DType::kQint16:
      return AddAll<int16_t>(tensor, count, proto.mutable_int_val());
    case DType::kInt32:
    case DType::kQint32:
      return AddAll<int32_t>(tensor, count, proto.mutable_int_val());
    default:  // float8
      proto.set_float8_val(reinterpret_cast<const char*>(tensor.raw()), static_cast<size_t>(count));
      return;
  }
}

void WriteContent(const Tensor& tensor, tf::TensorProto& proto) {
  std::string& content = *proto.mutable_tensor_content();
  if (SizeOf(tensor.dtype()) > 0) {
    content.assign(reinterpret_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
    return;
  }
  if (tensor.dtype() == DType::kString) {
    for (const std::string& item : tensor.as<std::string>()) proto::AppendVarint(item.size(), content);
    for (const std::string& item : tensor.as<std::string>()) content += item;
    return;
  }
  std::string items;
  for (const ResourceHandle& handle : tensor.as<ResourceHandle>()) {
    tf::ResourceHandleProto handle_proto;
    HandleToProto(handle, handle_proto);
    const std::string item = handle_proto.SerializeAsString();
    proto::AppendVarint(item.size(), content);
    items += item;
  }
  content += items;
}

}  // namespace

Result<Tensor> TensorFromProto(const tf::TensorProto& proto, ExpansionBudget* budget) {
  const auto dtype = static_cast<DType>(proto.dtype());
  if (proto.dtype() < 0 || !IsKnown(dtype) || IsRef(dtype)) return CannotParse(proto);
  Result<Shape> shape = ShapeFromProto(proto.tensor_shape());
  if (!shape.ok()) return CannotParse(proto);
  if (dtype == DType::kVariant) return Unimplemented("a TensorProto of type variant cannot be read");

  const bool content = !proto.tensor_content().empty() && shape->elements() > 0;
  if (content && !ContentFits(proto.tensor_content(), dtype, shape->elements())) return CannotParse(proto);
  ExpansionBudget own;
  WEIR_TRY(Charge(proto, dtype, *shape, budget != nullptr ? *budget : own));
  const uint64_t repeated = content ? 0 : static_cast<uint64_t>(shape->elements()) * SizeOf(dtype);
  if (repeated >= kRepeatedBytes && repeated / 2 >= SizeOf(dtype) * proto.ByteSizeLong()) {
    WEIR_ASSIGN(Tensor tensor, Repeated(proto, dtype, *shape));
    if (tensor.valid()) return tensor;
  }
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, std::move(*shape)));
  if (tensor.elements() == 0) return tensor;

  Decoder decoder(proto, tensor);
  if (!content) {
    decoder.Typed();
  } else if (!decoder.Content()) {
    return CannotParse(proto);
  }
  return tensor;
}

Result<Tensor> ParseTensorProto(std::string_view bytes, ExpansionBudget* budget) {
  WEIR_ASSIGN(Tensor content, TensorOfContent(bytes));
  if (content.valid()) return content;
  tf::TensorProto proto;
  WEIR_TRY(proto::ParseBinary(bytes, "TensorProto", proto));
  return TensorFromProto(proto, budget);
}

Status TensorToProto(const Tensor& tensor, TensorEncoding encoding, tf::TensorProto& proto) {
  proto.Clear();
  if (!tensor.valid()) return InvalidArgument("a tensor without type cannot be serialized");
  if (!tensor.on_host()) return FailedPrecondition("a tensor outside host memory cannot be serialized");
  if (tensor.dtype() == DType::kVariant) return Unimplemented("a tensor of type variant cannot be serialized");
  proto.set_dtype(static_cast<tf::DataType>(tensor.dtype()));
  ShapeToProto(tensor.shape(), *proto.mutable_tensor_shape());
  const int64_t n = tensor.elements();
  if (n == 0) return {};
  if (encoding == TensorEncoding::kContent) {
    WriteContent(tensor, proto);
  } else if (n > 1 && SizeOf(tensor.dtype()) > 0 && AllEqual(tensor)) {
    WriteTyped(tensor, 1, proto);
  } else if (n > 1 && ArraysAsContent(tensor.dtype())) {
    WriteContent(tensor, proto);
  } else {
    WriteTyped(tensor, n, proto);
  }
  return {};
}

Result<std::string> SerializeTensorProto(const Tensor& tensor, TensorEncoding encoding) {
  tf::TensorProto proto;
  WEIR_TRY(TensorToProto(tensor, encoding, proto));
  return proto::Serialize(proto, "TensorProto");
}

Result<PartialShape> PartialShapeFromProto(const tf::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() == 0) return PartialShape();
    return InvalidArgument("An unknown shape must not have any dimensions set");
  }
  if (proto.dim_size() > kMaxRank) {
    return InvalidArgument("Shape has rank {}, more than the limit of {}", proto.dim_size(), kMaxRank);
  }
  int64_t dims[kMaxRank];
  for (int i = 0; i < proto.dim_size(); ++i) dims[i] = proto.dim(i).size();
  return PartialShape::Make(std::span<const int64_t>(dims, static_cast<size_t>(proto.dim_size())));
}

Result<Shape> ShapeFromProto(const tf::TensorShapeProto& proto) {
  WEIR_ASSIGN(const PartialShape shape, PartialShapeFromProto(proto));
  return shape.ToShape();
}

void ShapeToProto(const PartialShape& shape, tf::TensorShapeProto& proto) {
  proto.Clear();
  proto.set_unknown_rank(!shape.has_rank());
  if (shape.has_rank()) {
    for (const int64_t extent : shape.dims()) proto.add_dim()->set_size(extent);
  }
}

}  // namespace weir
