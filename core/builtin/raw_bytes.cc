// Bytes in strings: as elements of tensors, in base64, as serialized tensors.
#include <algorithm>
#include <cstring>

#include "core/builtin/families.h"
#include "core/builtin/texts.h"
#include "core/tensor/number.h"
#include "core/tensor/tensor_proto.h"

namespace weir::builtin {
namespace {

/// Size of the numbers whose bytes have an order: the halves of a complex number are two.
size_t NumberSize(DType type) { return IsComplex(type) ? SizeOf(type) / 2 : SizeOf(type); }

/// Copies numbers of `size` bytes that are little-endian or not.
void CopyNumbers(const char* from, size_t bytes, size_t size, bool little_endian, std::byte* to) {
  if (bytes == 0) return;
  std::memcpy(to, from, bytes);
  for (size_t i = 0; !little_endian && size > 1 && i + size <= bytes; i += size) std::reverse(to + i, to + i + size);
}

Result<Shape> WithLastAxis(const Shape& shape, int64_t extent) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.push_back(extent);
  return Shape::Make(dims);
}

Status DecodeRaw(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "bytes"));
  WEIR_ASSIGN(const DType type, call.attrs.Type("out_type"));
  WEIR_ASSIGN(const bool little_endian, call.attrs.Bool("little_endian"));
  if (!HasFixedSize(type)) return InvalidArgument("out_type must be a type of numbers, got {}", Name(type));
  const size_t length = texts.empty() ? 0 : texts[0].size(), size = SizeOf(type);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) continue;
    return InvalidArgument("DecodeRaw requires input strings to all be the same size, but element {} has size {} != {}",
                           i, length, texts[i].size());
  }
  if (length % size != 0) {
    return InvalidArgument("Input to DecodeRaw has length {} that is not a multiple of {}, the size of {}", length,
                           size, Name(type));
  }
  WEIR_ASSIGN(Shape shape, WithLastAxis(call.inputs[0].shape(), static_cast<int64_t>(length / size)));
  WEIR_ASSIGN(Tensor made, Tensor::Make(type, std::move(shape)));
  std::byte* to = made.mutable_raw();
  for (size_t i = 0; i < texts.size(); ++i) {
    CopyNumbers(texts[i].data(), length, NumberSize(type), little_endian, to + i * length);
  }
  if (type == DType::kBool) {
    for (int64_t i = 0; i < made.elements(); ++i) to[i] = std::byte{to[i] != std::byte{0}};
  }
  call.outputs[0] = std::move(made);
  return Status();
}

Status DecodePaddedRaw(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "input_bytes"));
  WEIR_ASSIGN(const std::span<const int32_t> lengths, Elements<int32_t>(call, 1, "fixed_length"));
  WEIR_ASSIGN(const DType type, call.attrs.Type("out_type"));
  WEIR_ASSIGN(const bool little_endian, call.attrs.Bool("little_endian"));
  if (call.inputs[1].shape().rank() != 0) {
    return InvalidArgument("k must be scalar, got shape {}", call.inputs[1].shape().ToString());
  }
  if (!HasFixedSize(type)) return InvalidArgument("out_type must be a type of numbers, got {}", Name(type));
  const int32_t length = lengths[0];
  const auto size = static_cast<int32_t>(SizeOf(type));
  if (length <= 0) return InvalidArgument("fixed_length ({}) must be greater than zero.", length);
  if (length % size != 0) {
    return InvalidArgument("fixed_length ({}) must be a multiple of the size of out_type ({})", length, size);
  }
  WEIR_ASSIGN(Shape shape, WithLastAxis(call.inputs[0].shape(), length / size));
  WEIR_ASSIGN(Tensor made, Tensor::Make(type, std::move(shape)));
  std::byte* to = made.mutable_raw();
  const auto whole = static_cast<size_t>(length);
  const size_t number = NumberSize(type);
  for (const std::string& text : texts) {
    const size_t given = std::min(text.size(), whole), full = given / number * number;
    std::fill(to, to + whole, std::byte{0});
    CopyNumbers(text.data(), full, number, little_endian, to);
    if (given > full) {
      const std::string padded = text.substr(full, given - full) + std::string(full + number - given, '\0');
      CopyNumbers(padded.data(), number, number, little_endian, to + full);
    }
    to += whole;
  }
  call.outputs[0] = std::move(made);
  return Status();
}

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string Base64Of(std::string_view bytes, bool pad) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k <= count; ++k) text += kAlphabet[bits >> (18 - 6 * k) & 63];
    if (pad) text.append(3 - count, '=');
  }
  return text;
}

Result<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) return InvalidArgument("Base64 string length cannot be 1 modulo 4.");
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t value = kAlphabet.find(text[i]);
    if (value == std::string_view::npos) return InvalidArgument("Invalid character found in base64.");
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 255);
  }
  return bytes;
}

Status EncodeBase64(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const bool pad, call.attrs.Bool("pad"));
  return MapTexts<std::string>(call, [pad](const std::string& text) { return Base64Of(text, pad); });
}

Status DecodeBase64(kernel::BuiltinCall& call) {
  Status fault;
  WEIR_TRY(MapTexts<std::string>(call, [&fault](const std::string& text) {
    Result<std::string> bytes = FromBase64(text);
    if (!bytes.ok()) fault = bytes.status();
    return bytes.ok() ? *bytes : std::string();
  }));
  return fault;
}

Status ParseTensor(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::span<const std::string> bytes, Elements<std::string>(call, 0, "serialized"));
  WEIR_ASSIGN(const DType wanted, call.attrs.Type("out_type"));
  if (call.inputs[0].shape().rank() != 0) {
    return InvalidArgument("Expected `serialized` to be a scalar, got shape: {}", call.inputs[0].shape().ToString());
  }
  WEIR_ASSIGN(Tensor tensor, ParseTensorProto(bytes[0]));
  if (tensor.dtype() != wanted) {
    return InvalidArgument("Type mismatch between parsed tensor ({}) and dtype ({})", Name(tensor.dtype()),
                           Name(wanted));
  }
  call.outputs[0] = std::move(tensor);
  return Status();
}

Status SerializeTensor(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  // TensorFlow's op writes strings as typed fields.
  const TensorEncoding encoding =
      call.inputs[0].dtype() == DType::kString ? TensorEncoding::kTyped : TensorEncoding::kContent;
  WEIR_ASSIGN(const std::string bytes, SerializeTensorProto(call.inputs[0], encoding));
  call.outputs[0] = Tensor::String(bytes);
  return Status();
}

}  // namespace

void AddRawBytes(kernel::KernelRegistry& kernels) {
  kernels.AddHost("DecodeRaw", DecodeRaw);
  kernels.AddHost("DecodePaddedRaw", DecodePaddedRaw);
  kernels.AddHost("EncodeBase64", EncodeBase64);
  kernels.AddHost("DecodeBase64", DecodeBase64);
  kernels.AddHost("ParseTensor", ParseTensor);
  kernels.AddHost("SerializeTensor", SerializeTensor);
}

}  // namespace weir::builtin
