#include "core/io/bundle_format.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "core/base/errors.h"
#include "core/io/coding.h"
#include "core/io/crc32c.h"
#include "core/io/table_file.h"
#include "core/proto/parse.h"
#include "core/tensor/deferred.h"
#include "weir/proto/checkpoint.pb.h"

namespace weir::io {
namespace {

// Version of the bundle format: written, and the newest one read.
constexpr int kVersion = 1;

TensorSlice SliceFromProto(const tf::TensorSliceProto& proto) {
  TensorSlice slice;
  for (const auto& extent : proto.extent()) {
    const bool whole = extent.has_length_case() == tf::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    slice.push_back({extent.start(), whole ? SliceExtent::kWholeDim : extent.length()});
  }
  return slice;
}

// Adds the length of one string to the checksum of a string tensor: 4 bytes, or 8 if needed.
uint32_t ExtendByLength(uint32_t crc, uint64_t length, bool big_endian) {
  std::string bytes;
  if (length <= UINT32_MAX) {
    AppendFixed32(bytes, static_cast<uint32_t>(length));
  } else {
    AppendFixed64(bytes, length);
  }
  if (big_endian) std::reverse(bytes.begin(), bytes.end());
  return ExtendCrc32c(crc, bytes);
}

Status WriteStrings(const Tensor& tensor, OutputFile& file, BundleEntry& entry) {
  std::string head;
  uint32_t crc = 0;
  for (const std::string& text : tensor.as<std::string>()) {
    AppendVarint(head, text.size());
    crc = ExtendByLength(crc, text.size(), false);
  }
  std::string stored;
  AppendFixed32(stored, MaskCrc(crc));
  crc = ExtendCrc32c(crc, stored);
  head += stored;
  entry.size = head.size();
  WEIR_TRY(file.Append(head));
  for (const std::string& text : tensor.as<std::string>()) {
    WEIR_TRY(file.Append(text));
    crc = ExtendCrc32c(crc, text);
    entry.size += text.size();
  }
  entry.masked_crc = MaskCrc(crc);
  return Status();
}

// What is summed or read at once: it stays in the cache between the system call and the sum.
constexpr size_t kPieceBytes = 256 << 10;

// Reads one payload. Errors name tensor, file and offset.
class PayloadReader {
 public:
  PayloadReader(const BundleEntry& entry, const InputFile& file, bool big_endian)
      : entry_(entry), file_(file), big_endian_(big_endian) {}

  Result<Tensor> Read();
  // That the file has the bytes which the entry describes.
  Status CheckPlace() const;
  // The payload of a type with a fixed size, into as many bytes.
  Status ReadInto(std::span<std::byte> to) const;
  // The error of Read, with memory for a piece of the payload only.
  Status Check() const;

 private:
  Status Bad(std::string_view what) const {
    return DataLoss("{}: tensor '{}' at offset {}: {}", file_.path(), entry_.name, entry_.offset, what);
  }
  Status CheckCrc(uint32_t crc) const {
    const uint32_t stored = UnmaskCrc(entry_.masked_crc);
    if (crc == stored) return Status();
    return Bad(
        fmt::format("Checksum does not match: stored {:08x} vs. calculated on the restored bytes {:08x}", stored, crc));
  }
  Result<Tensor> ReadStrings() const;
  void FixNumbers(std::span<std::byte> bytes) const;

  const BundleEntry& entry_;
  const InputFile& file_;
  const bool big_endian_;
};

Status PayloadReader::CheckPlace() const {
  if (entry_.offset > file_.size() || entry_.size > file_.size() - entry_.offset) {
    return Bad(fmt::format("its {} bytes exceed the file's {}", entry_.size, file_.size()));
  }
  if (entry_.dtype == DType::kString) return Status();
  const size_t element_bytes = IsKnown(entry_.dtype) ? SizeOf(entry_.dtype) : 0;
  if (element_bytes == 0) {
    return Unimplemented("{}: tensor '{}' has type {}, which weir does not read from checkpoints", file_.path(),
                         entry_.name, Name(entry_.dtype));
  }
  const auto elements = static_cast<uint64_t>(entry_.shape.elements());
  if (entry_.size / element_bytes == elements && entry_.size % element_bytes == 0) return Status();
  return Bad(fmt::format("{} bytes stored, but {} of shape {} has {} elements of {}", entry_.size, Name(entry_.dtype),
                         entry_.shape.ToString(), elements, element_bytes));
}

Result<Tensor> PayloadReader::Read() {
  WEIR_TRY(CheckPlace());
  if (entry_.dtype == DType::kString) return ReadStrings();
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(entry_.dtype, entry_.shape));
  WEIR_TRY(ReadInto({tensor.mutable_raw(), entry_.size}));
  return tensor;
}

Status PayloadReader::ReadInto(std::span<std::byte> to) const {
  uint32_t crc = 0;
  for (size_t at = 0; at < to.size(); at += kPieceBytes) {
    const std::span<std::byte> piece = to.subspan(at, std::min(kPieceBytes, to.size() - at));
    WEIR_TRY(file_.ReadAt(entry_.offset + at, piece));
    crc = ExtendCrc32c(crc, {reinterpret_cast<const char*>(piece.data()), piece.size()});
    FixNumbers(piece);
  }
  return CheckCrc(crc);
}

Status PayloadReader::Check() const {
  WEIR_TRY(CheckPlace());
  if (entry_.dtype == DType::kString) return ReadStrings().status();
  constexpr size_t kBytes = 64 << 10;  // below the size from which the heap maps and unmaps memory
  const std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[kBytes]);
  if (memory == nullptr) return ResourceExhausted("out of host memory: {} bytes were asked for", kBytes);
  uint32_t crc = 0;
  for (uint64_t at = 0; at < entry_.size; at += kBytes) {
    const std::span<std::byte> piece(memory.get(), std::min<uint64_t>(kBytes, entry_.size - at));
    WEIR_TRY(file_.ReadAt(entry_.offset + at, piece));
    crc = ExtendCrc32c(crc, {reinterpret_cast<const char*>(piece.data()), piece.size()});
  }
  return CheckCrc(crc);
}

// Converts numbers in the file's form, whole ones, to the form in memory.
void PayloadReader::FixNumbers(std::span<std::byte> bytes) const {
  const size_t element_bytes = SizeOf(entry_.dtype);
  const size_t number_bytes = IsComplex(entry_.dtype) ? element_bytes / 2 : element_bytes;
  if (big_endian_ && number_bytes > 1) {
    for (auto at = bytes.begin(); at != bytes.end(); at += static_cast<ptrdiff_t>(number_bytes)) {
      std::reverse(at, at + static_cast<ptrdiff_t>(number_bytes));
    }
  }
  // Reading a bool other than 0 and 1 would be undefined behaviour.
  if (entry_.dtype == DType::kBool) {
    for (std::byte& b : bytes) b = std::byte{b != std::byte{0}};
  }
}

// A payload that is read into the memory which its user names.
class StoredBuffer final : public DeferredBuffer {
 public:
  StoredBuffer(const BundleEntry& entry, std::shared_ptr<const InputFile> file, bool big_endian)
      : DeferredBuffer(entry.size), entry_(entry), file_(std::move(file)), big_endian_(big_endian) {}

  Status Check() const override { return Reader().Check(); }
  Status ReadInto(std::span<std::byte> to) const override { return Reader().ReadInto(to); }

 private:
  PayloadReader Reader() const { return PayloadReader(entry_, *file_, big_endian_); }

  const BundleEntry entry_;
  const std::shared_ptr<const InputFile> file_;
  const bool big_endian_;
};

Result<Tensor> PayloadReader::ReadStrings() const {
  const auto elements = static_cast<uint64_t>(entry_.shape.elements());
  // Each string has a length of at least one byte; a checksum follows the lengths.
  if (entry_.size < 4 || elements > entry_.size - 4) {
    return Bad(fmt::format("{} bytes cannot hold {} strings", entry_.size, elements));
  }
  WEIR_ASSIGN(const std::string payload, file_.ReadAt(entry_.offset, entry_.size));
  std::string_view rest = payload;
  std::vector<uint64_t> lengths(elements);
  uint32_t crc = 0;
  for (uint64_t& length : lengths) {
    if (!TakeVarint(rest, length)) return Bad("a string's length is cut short");
    crc = ExtendByLength(crc, length, big_endian_);
  }
  std::string_view stored;
  if (!TakeBytes(rest, 4, stored)) return Bad("the checksum of the string lengths is cut short");
  std::string in_order(stored);
  if (big_endian_) std::reverse(in_order.begin(), in_order.end());
  if (UnmaskCrc(LoadFixed32(in_order.data())) != crc) {
    return Bad("The length checksum does not match: the lengths of its strings are damaged");
  }
  WEIR_TRY(CheckCrc(ExtendCrc32c(ExtendCrc32c(crc, stored), rest)));
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(DType::kString, entry_.shape));
  const std::span<std::string> strings = tensor.mutable_as<std::string>();
  for (size_t i = 0; i < strings.size(); ++i) {
    std::string_view text;
    if (!TakeBytes(rest, lengths[i], text)) return Bad("a string exceeds the tensor");
    strings[i] = text;
  }
  if (!rest.empty()) return Bad(fmt::format("{} bytes follow the last string", rest.size()));
  return tensor;
}

}  // namespace

std::string EncodeHeader(const BundleHeader& header) {
  tf::BundleHeaderProto proto;
  proto.set_num_shards(header.num_shards);
  if (header.big_endian) proto.set_endianness(tf::BundleHeaderProto::BIG);
  proto.mutable_version()->set_producer(kVersion);
  return proto.SerializeAsString();
}

Result<BundleHeader> DecodeHeader(std::string_view bytes) {
  tf::BundleHeaderProto message;
  if (Status status = proto::ParseBinary(bytes, "BundleHeaderProto", message); !status.ok()) {
    return DataLoss("{}", status.message());
  }
  if (message.num_shards() < 1) return DataLoss("the bundle's header says {} shards", message.num_shards());
  if (message.version().min_consumer() > kVersion) {
    return FailedPrecondition("the bundle wants a reader of version {} or newer, this one has {}",
                              message.version().min_consumer(), kVersion);
  }
  return BundleHeader{message.num_shards(), message.endianness() == tf::BundleHeaderProto::BIG};
}

std::string EncodeEntry(const BundleEntry& entry) {
  tf::BundleEntryProto proto;
  proto.set_dtype(static_cast<tf::DataType>(entry.dtype));
  for (const int64_t extent : entry.shape.dims()) proto.mutable_shape()->add_dim()->set_size(extent);
  proto.mutable_shape();  // must be present for a scalar, though empty
  proto.set_shard_id(entry.shard);
  proto.set_offset(static_cast<int64_t>(entry.offset));
  proto.set_size(static_cast<int64_t>(entry.size));
  proto.set_crc32c(entry.masked_crc);
  for (const TensorSlice& slice : entry.slices) {
    tf::TensorSliceProto& to = *proto.add_slices();
    for (const SliceExtent& extent : slice) {
      auto& added = *to.add_extent();
      if (extent.length == SliceExtent::kWholeDim) continue;
      added.set_start(extent.start);
      added.set_length(extent.length);
    }
  }
  return proto.SerializeAsString();
}

Result<BundleEntry> DecodeEntry(std::string_view bytes, const BundleHeader& header) {
  tf::BundleEntryProto message;
  if (Status status = proto::ParseBinary(bytes, "BundleEntryProto", message); !status.ok()) {
    return DataLoss("{}", status.message());
  }
  if (message.shape().unknown_rank()) return DataLoss("its shape is unknown");
  std::vector<int64_t> dims;
  for (const auto& dim : message.shape().dim()) dims.push_back(dim.size());
  Result<Shape> shape = Shape::Make(dims);
  if (!shape.ok()) return DataLoss("its shape is impossible: {}", shape.status().message());
  if (message.shard_id() < 0 || message.shard_id() >= header.num_shards) {
    return DataLoss("it lies in shard {} of {}", message.shard_id(), header.num_shards);
  }
  if (message.offset() < 0 || message.size() < 0) {
    return DataLoss("it has offset {} and size {}", message.offset(), message.size());
  }
  const int type = message.dtype();
  if (type <= 0 || type > 100) return DataLoss("it has type {}", type);
  BundleEntry entry;
  entry.dtype = static_cast<DType>(message.dtype());
  entry.shape = std::move(*shape);
  entry.shard = message.shard_id();
  entry.offset = static_cast<uint64_t>(message.offset());
  entry.size = static_cast<uint64_t>(message.size());
  entry.masked_crc = message.crc32c();
  for (const auto& slice : message.slices()) {
    entry.slices.push_back(SliceFromProto(slice));
    const Result<TensorSlice> resolved = Resolve(entry.slices.back(), entry.shape);
    if (!resolved.ok()) return DataLoss("its {}", resolved.status().message());
  }
  return entry;
}

Result<std::string> EncodeIndex(const BundleHeader& header, const std::map<std::string, BundleEntry>& entries) {
  TableBuilder table;
  WEIR_TRY(table.Add("", EncodeHeader(header)));
  for (const auto& [key, entry] : entries) WEIR_TRY(table.Add(key, EncodeEntry(entry)));
  return table.Finish();
}

Status WritePayload(const Tensor& tensor, OutputFile& file, BundleEntry& entry) {
  entry.dtype = tensor.dtype();
  entry.shape = tensor.shape();
  entry.offset = file.size();
  if (!tensor.valid() || !tensor.on_host()) {
    return InvalidArgument("tensor '{}' has no value in host memory to save", entry.name);
  }
  if (tensor.dtype() == DType::kString) return WriteStrings(tensor, file, entry);
  if (!HasFixedSize(tensor.dtype())) {
    return Unimplemented("tensor '{}' has type {}, which cannot be saved in a checkpoint", entry.name,
                         Name(tensor.dtype()));
  }
  const std::string_view bytes(reinterpret_cast<const char*>(tensor.raw()), tensor.raw() ? tensor.bytes() : 0);
  entry.size = bytes.size();
  uint32_t crc = 0;
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const std::string_view piece = bytes.substr(at, kPieceBytes);
    crc = ExtendCrc32c(crc, piece);
    WEIR_TRY(file.Append(piece));
  }
  entry.masked_crc = MaskCrc(crc);
  return Status();
}

Result<Tensor> ReadPayload(const BundleEntry& entry, const InputFile& file, bool big_endian) {
  return PayloadReader(entry, file, big_endian).Read();
}

Status CheckPayload(const BundleEntry& entry, const InputFile& file, bool big_endian) {
  return PayloadReader(entry, file, big_endian).Check();
}

Result<Tensor> DeferPayload(const BundleEntry& entry, std::shared_ptr<const InputFile> file, bool big_endian) {
  WEIR_TRY(PayloadReader(entry, *file, big_endian).CheckPlace());
  if (!HasFixedSize(entry.dtype)) return Internal("the contents of tensor '{}' cannot be deferred", entry.name);
  return Tensor::Over(entry.dtype, entry.shape, std::make_shared<StoredBuffer>(entry, std::move(file), big_endian));
}

}  // namespace weir::io
