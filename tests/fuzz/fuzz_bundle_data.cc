// A checkpoint whose index is a valid table of invalid entries, over arbitrary data. Opening, verifying and reading
// whole tensors and slices give errors, or tensors of the entry's type and shape. Most checksums are corrected, so that
// the code behind the checks is reached.
#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "core/io/bundle.h"
#include "core/io/crc32c.h"
#include "core/io/table_file.h"
#include "core/io/tensor_slice.h"
#include "weir/proto/checkpoint.pb.h"

namespace {

using weir::io::SliceExtent;
using weir::io::TensorSlice;

constexpr int64_t kNumbers[] = {0,  1,         2,         3,         4,         -1,        7,
                                64, 1ll << 31, 1ll << 40, 1ll << 61, 1ll << 62, INT64_MAX, INT64_MIN};

int64_t Number(FuzzedDataProvider& from) {
  return from.ConsumeBool() ? from.ConsumeIntegralInRange<int64_t>(0, 8) : from.PickValueInArray(kNumbers);
}

TensorSlice Slice(FuzzedDataProvider& from) {
  TensorSlice slice(from.ConsumeIntegralInRange<size_t>(0, 3));
  for (SliceExtent& extent : slice) {
    if (from.ConsumeBool()) extent = {Number(from), Number(from)};
  }
  return slice;
}

std::string Entry(FuzzedDataProvider& from, const std::string& data) {
  weir::tf::BundleEntryProto entry;
  entry.set_dtype(static_cast<weir::tf::DataType>(from.ConsumeIntegralInRange<int>(0, 34)));
  for (size_t rank = from.ConsumeIntegralInRange<size_t>(0, 4); rank > 0; --rank) {
    entry.mutable_shape()->add_dim()->set_size(Number(from));
  }
  if (from.ConsumeIntegralInRange<int>(0, 9) == 0) entry.set_shard_id(from.ConsumeIntegral<int>());
  entry.set_offset(Number(from));
  entry.set_size(Number(from));
  for (size_t slices = from.ConsumeBool() ? from.ConsumeIntegralInRange<size_t>(0, 3) : 0; slices > 0; --slices) {
    weir::tf::TensorSliceProto& proto = *entry.add_slices();
    for (const SliceExtent& extent : Slice(from)) {
      weir::tf::TensorSliceProto::Extent& to = *proto.add_extent();
      to.set_start(extent.start);
      if (extent.length != SliceExtent::kWholeDim) to.set_length(extent.length);
    }
  }
  const auto offset = static_cast<uint64_t>(entry.offset()), size = static_cast<uint64_t>(entry.size());
  if (from.ConsumeIntegralInRange<int>(0, 9) != 0 && offset <= data.size() && size <= data.size() - offset) {
    entry.set_crc32c(weir::io::MaskCrc(weir::io::Crc32c(std::string_view(data).substr(offset, size))));
  }
  return entry.SerializeAsString();
}

void Write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// A folder of this process, removed at its end.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("weir_fuzz_bundle." + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider from(bytes, size);
  const std::string data = from.ConsumeRandomLengthString(256);
  std::map<std::string, std::string> entries;
  for (int left = from.ConsumeIntegralInRange<int>(1, 4); left > 0; --left) {
    const std::string name = from.PickValueInArray({"a", "b", "c"});
    const std::string key = from.ConsumeBool() ? name : weir::io::SliceKey(name, Slice(from));
    entries[key] = from.ConsumeBool() ? Entry(from, data) : from.ConsumeRandomLengthString(40);
  }
  weir::tf::BundleHeaderProto header;
  header.set_num_shards(from.ConsumeIntegralInRange<int>(0, 9) == 0 ? from.ConsumeIntegral<int>() : 1);
  header.set_endianness(from.ConsumeBool() ? weir::tf::BundleHeaderProto::LITTLE : weir::tf::BundleHeaderProto::BIG);
  header.mutable_version()->set_producer(1);
  entries[""] = header.SerializeAsString();
  weir::io::TableBuilder table;
  for (const auto& [key, value] : entries) {
    if (!table.Add(key, value).ok()) std::abort();
  }
  static const Folder folder;
  const std::string prefix = folder.path() + "/model";
  Write(weir::io::IndexPath(prefix), table.Finish());
  Write(weir::io::DataPath(prefix, 0, 1), data);
  const weir::Result<weir::io::BundleReader> reader = weir::io::BundleReader::Open(prefix);
  if (!reader.ok()) return 0;
  static_cast<void>(reader->Verify().ok());
  const TensorSlice wanted = Slice(from);
  for (const weir::io::BundleEntry& entry : reader->entries()) {
    const weir::Result<weir::Tensor> whole = reader->Read(entry.name);
    if (whole.ok() && (whole->dtype() != entry.dtype || !(whole->shape() == entry.shape))) std::abort();
    static_cast<void>(reader->ReadSlice(entry.name, wanted).ok());
  }
  return 0;
}
