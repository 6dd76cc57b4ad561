// Encoding shared by bundle readers and writers: index entries and tensor payloads.
#ifndef WEIR_CORE_IO_BUNDLE_FORMAT_H_
#define WEIR_CORE_IO_BUNDLE_FORMAT_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/io/bundle.h"
#include "core/io/files.h"
#include "core/tensor/tensor.h"

namespace weir::io {

/// The entry with the empty key.
struct BundleHeader {
  int num_shards = 1;
  bool big_endian = false;
};

std::string EncodeHeader(const BundleHeader& header);
/// DataLoss describes the fault; FailedPrecondition for a bundle that this version cannot read.
Result<BundleHeader> DecodeHeader(std::string_view bytes);

std::string EncodeEntry(const BundleEntry& entry);
/// DataLoss describes the fault. Checks shard, offset and size for plausibility, but not against a file.
Result<BundleEntry> DecodeEntry(std::string_view bytes, const BundleHeader& header);

/// Encodes the whole index file of a bundle. `entries` is by index key, without the header.
Result<std::string> EncodeIndex(const BundleHeader& header, const std::map<std::string, BundleEntry>& entries);

/// Appends a host tensor's payload; sets offset, size and masked_crc of `entry`. Unimplemented for types that cannot be
/// stored.
Status WritePayload(const Tensor& tensor, OutputFile& file, BundleEntry& entry);
/// Reads the tensor described by `entry`. DataLoss names file and offset if the bytes do not match.
Result<Tensor> ReadPayload(const BundleEntry& entry, const InputFile& file, bool big_endian);
/// Returns the error of ReadPayload without keeping what it reads.
Status CheckPayload(const BundleEntry& entry, const InputFile& file, bool big_endian);
/// As ReadPayload, but the result is a DeferredBuffer that reads the file when its user wants the contents. It must be
/// of a type with a fixed size. The bytes are checked with each read.
Result<Tensor> DeferPayload(const BundleEntry& entry, std::shared_ptr<const InputFile> file, bool big_endian);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_BUNDLE_FORMAT_H_
