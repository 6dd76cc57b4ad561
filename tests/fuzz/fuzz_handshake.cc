// Arbitrary frames as the peer of a handshake, for a server and for a client. Without the token neither becomes open,
// no frame is answered after an error, and nothing is sent that was not asked for. Also as offers of shared memory and
// places in it: what is accepted lies within the memory, and says the same when it is written again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/remote/handshake.h"
#include "plugins/remote/shared_memory.h"

namespace {

using namespace weir_remote;

void Check(bool good) {
  if (!good) std::abort();
}

/// Answers depend on a count, so that no input can have the right one.
MacBytes UnknownMac(std::string_view, std::string_view) {
  static uint64_t count = 0x9e3779b97f4a7c15;
  MacBytes mac{};
  for (std::byte& byte : mac) byte = static_cast<std::byte>((count = count * 6364136223846793005u + 1) >> 40);
  return mac;
}

Identity Own() {
  Identity own;
  own.job = "ps";
  own.incarnation = 7;
  own.cluster = "c";
  return own;
}

void CheckShared(std::string_view meta) {
  SharedOffer offer, offer_again;
  if (DecodeOffer(meta, offer).ok()) {
    Check(offer.bytes == kSharedBytes && offer.secret.size() == kSecretBytes && offer.process != 0);
    Check(DecodeOffer(EncodeOffer(offer), offer_again).ok() && offer_again.process == offer.process &&
          offer_again.descriptor == offer.descriptor && offer_again.secret == offer.secret);
  }
  SharedAnswer answer, answer_again;
  if (DecodeAnswer(meta, answer).ok() && IsAnswer(meta)) {
    Check(DecodeAnswer(EncodeAnswer(answer), answer_again).ok() && answer_again.reason == answer.reason);
  }
  SharedChunk chunk, chunk_again;
  if (DecodeChunk(meta, chunk).ok()) {
    Check(chunk.bytes > 0 && kSharedHead + chunk.slot * kSlotBytes + chunk.bytes <= kSharedBytes);
    Check(DecodeChunk(EncodeChunk(chunk), chunk_again).ok() && chunk_again.slot == chunk.slot &&
          chunk_again.bytes == chunk.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool server = (data[0] & 1) != 0, token = (data[0] & 2) != 0;
  const std::string nonce(kNonceBytes, 'n');
  Handshake handshake = server ? Handshake::Server(Own(), token ? "t" : "", UnknownMac, nonce, 1)
                               : Handshake::Client(Own(), token ? "t" : "", UnknownMac, nonce);
  Check(handshake.Begin().size() == (server ? 0u : 1u));
  bool failed = false;
  size_t sent = 0;
  for (size_t at = 1; at + 2 <= size;) {
    FrameHeader header;
    header.type = data[at];
    const size_t count = std::min<size_t>(data[at + 1], size - at - 2);
    const std::string meta(reinterpret_cast<const char*>(data + at + 2), count);
    at += 2 + count;
    std::vector<Outgoing> out;
    const WireError error = handshake.Take(header, meta, out);
    Check(!failed || !error.ok());
    failed = failed || !error.ok();
    Check(!failed || (out.empty() && !handshake.peer()));
    sent += out.size();
    if (handshake.peer()) Check(!token && handshake.peer()->identity.incarnation != 0);
  }
  Check(sent <= 2);
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  Identity identity;
  static_cast<void>(DecodeHello(all, identity).ok());
  CheckShared(all);
  return 0;
}
