// Arbitrary bytes as the stream of a connection, in pieces. The reader asks for no more memory than was granted, gives
// the same frames for all pieces, and what it gives encodes to the bytes that it took. The first byte says how bytes
// become a stream: as they are, or as the fields of frames with right checksums.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/remote/frame.h"

namespace {

using namespace weir_remote;

constexpr uint64_t kGranted = 4096;

void Check(bool good) {
  if (!good) std::abort();
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class Sink final : public FrameSink {
 public:
  WireError Body(const FrameHeader& header, std::string_view, std::span<std::byte>& into) override {
    Check(header.body_bytes > 0);
    if (header.body_bytes > kGranted) return {WEIR_RESOURCE_EXHAUSTED, "no grant"};
    body_.resize(header.body_bytes);
    into = std::span(reinterpret_cast<std::byte*>(body_.data()), body_.size());
    return {};
  }
  WireError Frame(const FrameHeader& header, std::string_view meta) override {
    Check(meta.size() == header.meta_bytes);
    const std::string body = header.body_bytes > 0 ? body_ : std::string();
    const std::string frame = std::string(meta);
    taken += EncodeFrame(header, frame, BytesOf(body)) + body + EncodeTail(header, frame, BytesOf(body));
    ++frames;
    return {};
  }
  std::string taken;
  int frames = 0;

 private:
  std::string body_;
};

/// Frames whose header fields come from the input, with right checksums and numbers.
std::string Framed(const std::string& input) {
  std::string stream;
  uint32_t number = 0;
  for (size_t at = 0; at + 4 <= input.size();) {
    FrameHeader header;
    header.type = static_cast<uint8_t>(input[at]);
    header.flags = static_cast<uint8_t>(input[at + 1]);
    header.number = number++;
    const size_t meta_bytes = static_cast<uint8_t>(input[at + 2]), body_bytes = static_cast<uint8_t>(input[at + 3]);
    at += 4;
    const std::string meta = input.substr(at, meta_bytes);
    at = std::min(at + meta_bytes, input.size());
    const std::string body = input.substr(at, body_bytes);
    at = std::min(at + body_bytes, input.size());
    stream += EncodeFrame(header, meta, BytesOf(body)) + body + EncodeTail(header, meta, BytesOf(body));
  }
  return stream;
}

Sink Read(const std::string& stream, size_t piece, WireError& error) {
  Sink sink;
  FrameReader reader(sink);
  for (size_t at = 0; at < stream.size() && error.ok(); at += piece) {
    const std::string bytes = stream.substr(at, piece);
    error = reader.Feed(BytesOf(bytes));
    Check(error.ok() == !reader.Wanted().empty());
    Check(reader.Wanted().size() <= std::max<uint64_t>(kMostHelloBytes, kGranted));
  }
  return sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string input(reinterpret_cast<const char*>(data + 2), size - 2);
  const std::string stream = (data[0] & 1) != 0 ? Framed(input) : input;
  WireError whole, pieces;
  const Sink first = Read(stream, stream.size() + 1, whole);
  const Sink second = Read(stream, 1 + data[1] % 64, pieces);
  Check(first.frames == second.frames && first.taken == second.taken && whole.code == pieces.code);
  if (whole.ok() && first.taken.size() == stream.size()) Check(first.taken == stream);
  return 0;
}
