// Large bodies through memory that both processes map. The memory is offered with the first large body of a direction;
// until the peer accepts it, and if it does not, bodies go over the socket.
#include "plugins/remote/connection.h"
#include "plugins/remote/fields.h"

namespace weir_remote {

bool Connection::MayShare() const {
  if (!peer() || (peer()->capabilities & kCanShareMemory) == 0) return false;
  return !HostId().empty() && peer()->identity.host == HostId();
}

void Connection::OfferShared() {
  if (sharing_ != Sharing::kUnknown) return;
  sharing_ = Sharing::kRefused;
  if (!MayShare() || !SharedSource::Make(source_).ok()) return;
  sharing_ = Sharing::kOffered;
  control_.push_back({FrameType::kOpen, 0, EncodeOffer(source_->offer()), {}});
}

WireError Connection::TakeOpen(const FrameHeader& header, std::string_view meta) {
  if (header.stream != 0 || !MayShare()) return Malformed("memory was offered that is not wanted");
  if (IsAnswer(meta)) {
    SharedAnswer answer;
    if (WireError error = DecodeAnswer(meta, answer); !error.ok()) return error;
    if (sharing_ != Sharing::kOffered) return Malformed("an answer came to no offer of memory");
    source_->Opened();
    sharing_ = answer.reason.empty() ? Sharing::kReady : Sharing::kRefused;
    if (sharing_ == Sharing::kRefused) source_.reset();
    return {};
  }
  SharedOffer offer;
  if (WireError error = DecodeOffer(meta, offer); !error.ok()) return error;
  if (view_) return Malformed("memory was offered twice");
  const WireError opened = SharedView::Open(offer, view_);
  Queue({FrameType::kOpen, 0, EncodeAnswer({opened.text}), {}});
  return {};
}

/// Puts the next part of a body into shared memory and its place into a frame. False if no slot is free.
bool Connection::AddShared(const std::shared_ptr<Stream>& stream, std::span<const std::byte> rest) {
  if (source_->free() == 0) return false;
  const uint64_t taken = send_credit_.Take(stream->id_, std::min<uint64_t>(kSlotBytes, rest.size()));
  if (taken == 0) return false;
  const SharedChunk chunk = source_->Put(rest.first(taken));
  FrameHeader header;
  header.type = static_cast<uint8_t>(FrameType::kData);
  header.flags = kFrameShared;
  header.stream = stream->id_;
  header.number = next_number_++;
  pieces_.push_back(EncodeFrame(header, EncodeChunk(chunk), {}));
  buffers_.push_back(asio::buffer(pieces_.back()));
  Advance(stream, taken);
  return true;
}

WireError Connection::TakeShared(const FrameHeader& header, std::string_view meta) {
  SharedChunk chunk;
  if (WireError error = DecodeChunk(meta, chunk); !error.ok()) return error;
  if (!view_ || header.body_bytes != 0) return Malformed("a chunk lies in memory that is not shared");
  std::span<std::byte> into;
  std::shared_ptr<Stream> stream;
  if (WireError error = PlaceChunk(header.stream, chunk.bytes, into, stream); !error.ok()) return error;
  // A stream that has ended here has no memory, and its slot is free again.
  view_->Take(chunk, into, stream ? stream->in_[stream->in_at_].size() : 0);
  if (const uint32_t released = view_->TakeReleased(); released > 0) {
    FieldWriter credit;
    credit.Number(kGrantedSlots, released);
    Queue({FrameType::kCredit, 0, credit.bytes(), {}});
  }
  return stream ? TakeChunk(stream, chunk.bytes) : WireError();
}

}  // namespace weir_remote
