// Bytes of gRPC's buffers and of files.
#ifndef WEIR_PLUGINS_GRPC_BACKEND_BYTES_H_
#define WEIR_PLUGINS_GRPC_BACKEND_BYTES_H_

#include <grpcpp/support/byte_buffer.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/abi/types.h"

namespace weir_grpc {

inline std::string Copy(weir_str text) { return text.size == 0 ? std::string() : std::string(text.data, text.size); }
inline weir_str View(std::string_view text) { return {text.data(), text.size()}; }

inline grpc::ByteBuffer BufferOf(weir_str body) {
  const grpc::Slice slice(body.data == nullptr ? "" : body.data, body.size);
  return grpc::ByteBuffer(&slice, 1);
}

/// The bytes of a buffer in one piece; `slice` or `storage` keeps them.
inline weir_str WholeOf(grpc::ByteBuffer& buffer, grpc::Slice& slice, std::string& storage) {
  if (buffer.TrySingleSlice(&slice).ok()) return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
  std::vector<grpc::Slice> slices;
  storage.clear();
  if (!buffer.Dump(&slices).ok()) return {};
  storage.reserve(buffer.Length());
  for (const grpc::Slice& each : slices) storage.append(reinterpret_cast<const char*>(each.begin()), each.size());
  return View(storage);
}

/// False if the file cannot be read.
inline bool ReadFile(weir_str path, std::string& text) {
  std::ifstream file(Copy(path), std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return file.good() || file.eof();
}

}  // namespace weir_grpc

#endif  // WEIR_PLUGINS_GRPC_BACKEND_BYTES_H_
