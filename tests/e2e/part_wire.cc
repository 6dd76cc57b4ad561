#include "tests/e2e/part_wire.h"

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "core/base/errors.h"
#include "core/tensor/buffer.h"

namespace weir::testing {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

Status WriteAll(int file, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = send(file, data, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return Unavailable("the other process is gone");
    data += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return Status();
}

Status ReadAll(int file, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = recv(file, data, bytes, 0);
    if (got <= 0) return Unavailable("the other process is gone");
    data += got;
    bytes -= static_cast<size_t>(got);
  }
  return Status();
}

}  // namespace

Status WriteFrame(int file, const Frame& frame) {
  std::array<uint64_t, 3> head = {static_cast<uint64_t>(frame.kind), frame.name.size(), frame.data.size()};
  WEIR_TRY(WriteAll(file, reinterpret_cast<const char*>(head.data()), sizeof(head)));
  WEIR_TRY(WriteAll(file, frame.name.data(), frame.name.size()));
  return WriteAll(file, frame.data.data(), frame.data.size());
}

Result<Frame> ReadFrame(int file) {
  std::array<uint64_t, 3> head{};
  WEIR_TRY(ReadAll(file, reinterpret_cast<char*>(head.data()), sizeof(head)));
  if (head[1] > kMostBytes || head[2] > kMostBytes) return InvalidArgument("a frame of more than 1 GiB");
  Frame frame;
  frame.kind = static_cast<FrameKind>(head[0]);
  frame.name.resize(head[1]);
  frame.data.resize(head[2]);
  WEIR_TRY(ReadAll(file, frame.name.data(), frame.name.size()));
  WEIR_TRY(ReadAll(file, frame.data.data(), frame.data.size()));
  return frame;
}

}  // namespace weir::testing
