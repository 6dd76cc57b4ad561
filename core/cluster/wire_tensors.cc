#include "core/cluster/wire_tensors.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/received_memory.h"
#include "core/tensor/host_memory.h"
#include "core/tensor/tensor_proto.h"

namespace weir::cluster {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);  // before each string, little-endian

void PutLength(std::string& to, uint64_t value) {
  for (size_t i = 0; i < kLengthBytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

uint64_t TakeLength(const char* from) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) value |= uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return value;
}

Result<std::string> TextOf(const Tensor& tensor) {
  if (tensor.dtype() == DType::kResource) return SerializeTensorProto(tensor);
  if (tensor.dtype() != DType::kString) {
    return Unimplemented("a value of type {} cannot go to another process", Name(tensor.dtype()));
  }
  std::string text;
  size_t bytes = 0;
  for (const std::string& element : tensor.as<std::string>()) bytes += kLengthBytes + element.size();
  text.reserve(bytes);
  for (const std::string& element : tensor.as<std::string>()) {
    PutLength(text, element.size());
    text += element;
  }
  return text;
}

Result<Tensor> StringsFrom(const TensorHead& head, std::string_view text) {
  const auto bad = [bytes = text.size()] {
    return InvalidArgument("the lengths of a string tensor do not fit its {} bytes", bytes);
  };
  // Every element has a length, so that the count is bounded by the bytes.
  if (static_cast<uint64_t>(head.shape.elements()) > text.size() / kLengthBytes) return bad();
  WEIR_ASSIGN(Tensor made, Tensor::Make(DType::kString, head.shape));
  for (std::string& element : made.mutable_as<std::string>()) {
    if (text.size() < kLengthBytes) return bad();
    const uint64_t length = TakeLength(text.data());
    text.remove_prefix(kLengthBytes);
    if (length > text.size()) return bad();
    element = text.substr(0, length);
    text.remove_prefix(length);
  }
  if (!text.empty()) return bad();
  return made;
}

Result<Tensor> HandlesFrom(const TensorHead& head, std::string_view text) {
  ExpansionBudget none{text.size()};
  WEIR_ASSIGN(Tensor made, ParseTensorProto(text, &none));
  if (made.dtype() == head.dtype && made.shape() == head.shape) return made;
  return InvalidArgument("a tensor of handles has another type or shape than its head");
}

/// Checks the size of a body without allocating.
Status CheckSize(const TensorHead& head, uint64_t size, size_t i) {
  if (head.dtype == DType::kVariant) return Unimplemented("a variant cannot come from another process");
  uint64_t wanted = 0;
  const uint64_t each = HasFixedSize(head.dtype) ? SizeOf(head.dtype) : head.dtype == DType::kString ? kLengthBytes : 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(head.shape.elements()), each, &wanted)) {
    return InvalidArgument("tensor {} of shape {} has more bytes than there are", i, head.shape.ToString());
  }
  const bool fits = HasFixedSize(head.dtype) ? size == wanted : size >= wanted;
  if (fits) return Status();
  return InvalidArgument("tensor {} of type {} and shape {} has {} bytes, wanted {}", i, Name(head.dtype),
                         head.shape.ToString(), size, wanted);
}

}  // namespace

const std::shared_ptr<ByteBudget>& ByteBudget::OfProcess() {
  static const auto budget =
      std::make_shared<ByteBudget>(std::max<uint64_t>(HostMemoryLimit() / 2, uint64_t{1} << 30));
  return budget;
}

ByteBudget::Charge& ByteBudget::Charge::operator=(Charge&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ByteBudget::Charge::~Charge() {
  if (budget_) budget_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
}

Result<ByteBudget::Charge> ByteBudget::Take(const std::shared_ptr<ByteBudget>& budget, uint64_t bytes) {
  const uint64_t used = budget->used_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > budget->limit_ || used > budget->limit_ - bytes) {
    budget->used_.fetch_sub(bytes, std::memory_order_relaxed);
    return ResourceExhausted("{} bytes for a message from another process, {} of {} are in use", bytes, used,
                             budget->limit_);
  }
  Charge charge;
  charge.budget_ = budget;
  charge.bytes_ = bytes;
  return charge;
}

Result<ByteBody> ByteBody::Make(uint64_t bytes) {
  ByteBody made;
  if (bytes == 0) return made;
  made.bytes_.reset(new (std::nothrow) char[bytes]);
  if (!made.bytes_) return ResourceExhausted("no memory for a body of {} bytes", bytes);
  made.size_ = bytes;
  return made;
}

Result<OutgoingTensors> OutgoingTensors::Make(std::vector<Tensor> tensors) {
  OutgoingTensors made;
  made.tensors_ = std::move(tensors);
  for (const Tensor& tensor : made.tensors_) {
    if (!tensor.valid()) return InvalidArgument("a value to send has no type");
    if (!tensor.on_host()) return FailedPrecondition("a value to send is not in host memory");
    made.heads_.push_back({tensor.dtype(), tensor.shape()});
    if (HasFixedSize(tensor.dtype())) {
      made.bodies_.emplace_back(tensor.raw(), tensor.bytes());
      continue;
    }
    WEIR_ASSIGN(std::string text, TextOf(tensor));
    made.texts_.push_back(std::make_unique<std::string>(std::move(text)));
    const std::string& kept = *made.texts_.back();
    made.bodies_.emplace_back(reinterpret_cast<const std::byte*>(kept.data()), kept.size());
  }
  return made;
}

Result<IncomingTensors> IncomingTensors::Make(const std::vector<TensorHead>& heads, std::span<const uint64_t> sizes,
                                              const std::shared_ptr<ByteBudget>& budget) {
  if (heads.size() != sizes.size()) {
    return InvalidArgument("{} tensors are announced and {} bodies come", heads.size(), sizes.size());
  }
  uint64_t total = 0;
  for (size_t i = 0; i < heads.size(); ++i) {
    WEIR_TRY(CheckSize(heads[i], sizes[i], i));
    if (!__builtin_add_overflow(total, sizes[i], &total)) continue;
    return InvalidArgument("the tensors have more than 2^64 bytes");
  }
  IncomingTensors made;
  WEIR_ASSIGN(made.charge_, ByteBudget::Take(budget, total));
  made.heads_ = heads;
  made.tensors_.resize(heads.size());
  made.bytes_.resize(heads.size());
  for (size_t i = 0; i < heads.size(); ++i) {
    if (HasFixedSize(heads[i].dtype)) {
      WEIR_ASSIGN(made.tensors_[i], Tensor::Make(heads[i].dtype, heads[i].shape, ReceivedMemory::OfProcess()));
    } else {
      WEIR_ASSIGN(made.bytes_[i], ByteBody::Make(sizes[i]));
    }
  }
  return made;
}

std::byte* IncomingTensors::to(size_t i) {
  if (HasFixedSize(heads_[i].dtype)) return tensors_[i].mutable_raw();
  return reinterpret_cast<std::byte*>(bytes_[i].data());
}

Result<std::vector<Tensor>> IncomingTensors::Take() {
  for (size_t i = 0; i < heads_.size(); ++i) {
    if (heads_[i].dtype == DType::kBool) {
      const auto* const bytes = reinterpret_cast<const unsigned char*>(tensors_[i].raw());
      const bool good = std::all_of(bytes, bytes + tensors_[i].bytes(), [](unsigned char b) { return b <= 1; });
      if (!good) return InvalidArgument("tensor {} of type bool has elements other than 0 and 1", i);
    }
    if (HasFixedSize(heads_[i].dtype)) continue;
    const bool strings = heads_[i].dtype == DType::kString;
    const std::string_view text = bytes_[i].text();
    WEIR_ASSIGN(tensors_[i], strings ? StringsFrom(heads_[i], text) : HandlesFrom(heads_[i], text));
    bytes_[i] = ByteBody();
  }
  heads_.clear();
  charge_ = ByteBudget::Charge();
  return std::move(tensors_);
}

}  // namespace weir::cluster
