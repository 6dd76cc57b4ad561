// The pieces that bundle readers and writers share: index entries and tensor payloads as bytes.
#ifndef WEIR_CORE_IO_BUNDLE_FORMAT_H_
#define WEIR_CORE_IO_BUNDLE_FORMAT_H_

#include <map>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/io/bundle.h"
#include "core/io/files.h"
#include "core/tensor/tensor.h"

namespace weir::io {

/// The entry under the empty key.
struct BundleHeader {
  int num_shards = 1;
  bool big_endian = false;
};

std::string EncodeHeader(const BundleHeader& header);
/// DataLoss saying what is wrong; FailedPrecondition for a bundle that this version must not read.
Result<BundleHeader> DecodeHeader(std::string_view bytes);

std::string EncodeEntry(const BundleEntry& entry);
/// DataLoss saying what is wrong; checks shard, offset and size for plausibility, not against any file.
Result<BundleEntry> DecodeEntry(std::string_view bytes, const BundleHeader& header);

/// The whole index file of a bundle. Keys as in the file, without the header's.
Result<std::string> EncodeIndex(const BundleHeader& header, const std::map<std::string, BundleEntry>& entries);

/// Appends a host tensor's payload; sets offset, size and masked_crc of `entry`. Unimplemented for types without a
/// form.
Status WritePayload(const Tensor& tensor, OutputFile& file, BundleEntry& entry);
/// The tensor that `entry` describes. DataLoss naming the file and offset when the bytes are not that.
Result<Tensor> ReadPayload(const BundleEntry& entry, const InputFile& file, bool big_endian);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_BUNDLE_FORMAT_H_
