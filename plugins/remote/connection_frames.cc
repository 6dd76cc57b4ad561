// What the frames of a peer do to a connection.
#include <algorithm>
#include <cstring>

#include "plugins/remote/connection.h"
#include "plugins/remote/fields.h"

namespace weir_remote {
WireError Connection::Body(const FrameHeader& header, std::string_view meta, std::span<std::byte>& into) {
  if (failed_) return {WEIR_CANCELLED, "the connection has ended"};
  if (!open_) return Malformed("a body came before the handshake");
  if (!header.is(FrameType::kData)) {
    MessageHead head;
    if (WireError error = DecodeHead(meta, head); !error.ok()) return error;
    if (header.body_bytes > kInline || header.body_bytes != head.total) {
      return Malformed("a body of " + std::to_string(header.body_bytes) + " bytes travels with a head that says " +
                       std::to_string(head.total));
    }
    inline_.resize(kInline);
    into = std::span(inline_).first(header.body_bytes);
    return {};
  }
  if (header.body_bytes > kMostChunk) {
    return Malformed("a chunk has " + std::to_string(header.body_bytes) + " bytes, at most " +
                     std::to_string(kMostChunk) + " are allowed");
  }
  return PlaceChunk(header.stream, header.body_bytes, into, reading_into_);
}

/// Memory for a chunk of a stream. A stream that ended here while the chunk was on its way: null, and memory whose
/// content nobody wants.
WireError Connection::PlaceChunk(uint32_t id, uint64_t bytes, std::span<std::byte>& into,
                                 std::shared_ptr<Stream>& stream) {
  stream.reset();
  const auto found = streams_.find(id);
  if (found == streams_.end() || !found->second->receiving_) {
    if (found == streams_.end() && IsNew(id)) {
      return Malformed("a chunk of the unknown stream " + std::to_string(id) + " came");
    }
    if (found != streams_.end()) return Malformed("a chunk came before its head");
    discard_.resize(kMostChunk);
    into = std::span(discard_).first(bytes);
    return {};
  }
  Stream& of = *found->second;
  if (WireError error = receive_credit_.Arrived(id, bytes); !error.ok()) return error;
  const std::span<std::byte> rest = of.in_[of.in_at_].subspan(of.in_done_);
  if (bytes > rest.size()) {
    return Malformed("a chunk of " + std::to_string(bytes) + " bytes came, " + std::to_string(rest.size()) +
                     " were left of its body");
  }
  into = rest.first(bytes);
  stream = found->second;
  return {};
}

WireError Connection::Frame(const FrameHeader& header, std::string_view meta) {
  if (failed_) return {WEIR_CANCELLED, "the connection has ended"};
  if (header.is(FrameType::kError) && header.stream == 0) {
    const WireError error = DecodeError(meta);
    Fail({error.code, "it ended the connection: " + error.text}, false);
    return error;
  }
  if (!open_) return TakeHandshake(header, meta);
  switch (static_cast<FrameType>(header.type)) {
    case FrameType::kRequest:
    case FrameType::kResponse:
      return TakeHead(header, meta);
    case FrameType::kData: {
      if ((header.flags & kFrameShared) != 0) return TakeShared(header, meta);
      if (header.body_bytes == 0) return Malformed("an empty chunk came");
      const std::shared_ptr<Stream> stream = std::move(reading_into_);
      reading_into_.reset();
      return stream && stream->receiving_ ? TakeChunk(stream, header.body_bytes) : WireError();
    }
    case FrameType::kTell:
      return TakeTold(header, meta);
    case FrameType::kOpen:
      return TakeOpen(header, meta);
    case FrameType::kCredit:
      return TakeCredit(header, meta);
    case FrameType::kError:
      return TakeError(header, meta);
    case FrameType::kCancel: {
      if (!server_) return Malformed("a client was told to cancel");
      const auto found = streams_.find(header.stream);
      if (found == streams_.end()) {
        return IsNew(header.stream) ? Malformed("an unknown call was cancelled") : WireError();
      }
      const std::shared_ptr<Stream> stream = found->second;
      Drop(stream);
      stream->End({WEIR_CANCELLED, "the caller cancelled it"});
      return {};
    }
    case FrameType::kPing:
      Queue({FrameType::kPong, 0, {}, {}});
      return {};
    case FrameType::kPong:
      return {};
    case FrameType::kGoAway:
      draining_ = true;
      return {};
    case FrameType::kBye:
      Fail({WEIR_UNAVAILABLE, "it has shut down"}, false);
      return {WEIR_UNAVAILABLE, "it has shut down"};
    default:
      return Malformed("a frame of type " + std::to_string(header.type) + " came after the handshake");
  }
}

WireError Connection::TakeHandshake(const FrameHeader& header, std::string_view meta) {
  std::vector<Outgoing> out;
  if (WireError error = handshake_.Take(header, meta, out); !error.ok()) return error;
  for (Outgoing& frame : out) Queue({frame.type, 0, std::move(frame.meta), {}});
  if (!peer()) return {};
  if (tls_) {
    if (WireError error = tls_->CheckTask(peer()->identity.job, peer()->identity.task); !error.ok()) return error;
  }
  open_ = true;
  reader_.AllowMeta(kMostMetaBytes);
  timer_.cancel();
  Tick();
  return user_->Opened(*this);
}

WireError Connection::TakeHead(const FrameHeader& header, std::string_view meta) {
  const bool request = header.is(FrameType::kRequest);
  if (request != server_) return Malformed(request ? "a client was called" : "a server got a reply");
  MessageHead head;
  if (WireError error = DecodeHead(meta, head); !error.ok()) return error;
  std::shared_ptr<Stream> stream;
  if (request) {
    if (header.stream == 0 || !IsNew(header.stream) || streams_.contains(header.stream)) {
      return Malformed("a request has the stream " + std::to_string(header.stream) + ", which is not new");
    }
    last_stream_ = header.stream;
    if (streams_.size() >= kMostStreams) {
      const WireError full{WEIR_RESOURCE_EXHAUSTED, "too many calls are under way"};
      Queue({FrameType::kError, header.stream, EncodeError(full), {}});
      return {};
    }
    stream = user_->Requested(*this);
    if (!stream) return Malformed("nothing is served here");
    stream->id_ = header.stream;
    streams_.emplace(header.stream, stream);
  } else {
    const auto found = streams_.find(header.stream);
    if (found == streams_.end()) {
      return IsNew(header.stream) ? Malformed("a reply to an unknown call came") : WireError();
    }
    stream = found->second;
    if (stream->receiving_) return Malformed("two replies to one call came");
    StopSending(*stream);
    std::erase(blocked_, stream);
  }
  if (WireError error = BeginIn(stream, head); !error.ok()) {
    EndStream(stream, error);
    return {};
  }
  if (header.body_bytes > 0) {
    size_t at = 0;
    for (const std::span<std::byte> to : stream->in_) {
      if (!to.empty()) std::memcpy(to.data(), inline_.data() + at, to.size());
      at += to.size();
    }
    stream->in_at_ = stream->in_.size();
  }
  SkipEmpty(stream);
  return {};
}

/// This side does not take what came of the stream.
void Connection::EndStream(const std::shared_ptr<Stream>& stream, const WireError& error) {
  if (server_) {
    Queue({FrameType::kError, stream->id_, EncodeError(error), {}});
    Drop(stream);
  } else {
    Cancel(stream);
  }
  stream->End(error);
}

WireError Connection::TakeTold(const FrameHeader& header, std::string_view meta) {
  MessageHead head;
  if (WireError error = DecodeHead(meta, head); !error.ok()) return error;
  if (head.total != header.body_bytes) return Malformed("the bodies of a message do not come with it");
  const auto found = streams_.find(header.stream);
  if (found == streams_.end()) {
    return IsNew(header.stream) ? Malformed("a message of an unknown call came") : WireError();
  }
  const std::shared_ptr<Stream> stream = found->second;
  if (!server_ && stream->receiving_) return Malformed("a message of a call came after its reply");
  const WireError error = stream->Told(head, std::span(inline_).first(header.body_bytes));
  if (!error.ok()) EndStream(stream, error);
  return {};
}

WireError Connection::BeginIn(const std::shared_ptr<Stream>& stream, const MessageHead& head) {
  std::vector<void*> to(head.sizes.size(), nullptr);
  if (WireError error = stream->Begin(head, to.data()); !error.ok()) return error;
  stream->in_.clear();
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == nullptr && head.sizes[i] > 0) return {WEIR_INTERNAL, "no memory was given for a body"};
    stream->in_.emplace_back(static_cast<std::byte*>(to[i]), head.sizes[i]);
  }
  stream->receiving_ = true;
  return {};
}

/// Ends the message if nothing is left of it.
void Connection::SkipEmpty(const std::shared_ptr<Stream>& stream) {
  while (stream->in_at_ < stream->in_.size() && stream->in_[stream->in_at_].empty()) ++stream->in_at_;
  if (stream->in_at_ < stream->in_.size()) return;
  receive_credit_.End(stream->id_);
  stream->receiving_ = false;
  stream->in_.clear();
  if (!server_) Drop(stream);
  stream->Complete();
}

WireError Connection::TakeChunk(const std::shared_ptr<Stream>& stream, uint64_t bytes) {
  stream->in_done_ += bytes;
  stream->unacknowledged_ += bytes;
  if (stream->in_done_ == stream->in_[stream->in_at_].size()) {
    ++stream->in_at_;
    stream->in_done_ = 0;
  }
  if (stream->unacknowledged_ >= kGrantAt) {
    const uint64_t grant = receive_credit_.Consumed(stream->id_, std::exchange(stream->unacknowledged_, 0));
    if (grant > 0) {
      FieldWriter credit;
      credit.Number(kGrantedBytes, grant);
      Queue({FrameType::kCredit, stream->id_, credit.bytes(), {}});
    }
  }
  SkipEmpty(stream);
  return {};
}

WireError Connection::TakeCredit(const FrameHeader& header, std::string_view meta) {
  FieldReader reader(meta);
  uint64_t bytes = 0, slots = 0;
  while (reader.Next()) {
    if (reader.field() == kGrantedBytes) bytes = reader.number();
    if (reader.field() == kGrantedSlots) slots = reader.number();
  }
  if (reader.bad()) return Malformed("a credit is malformed");
  if (slots > 0) {
    if (!source_) return Malformed("slots of memory were released that is not shared");
    if (WireError error = source_->Release(slots); !error.ok()) return error;
    Unblock();
    return {};
  }
  const auto found = streams_.find(header.stream);
  if (found == streams_.end() && IsNew(header.stream)) return Malformed("credit of an unknown stream came");
  if (found == streams_.end() || !found->second->sending_) return {};
  if (WireError error = send_credit_.Grant(header.stream, bytes); !error.ok()) return error;
  Unblock();
  return {};
}

void Connection::Unblock() {
  for (std::shared_ptr<Stream>& stream : blocked_) senders_.push_back(std::move(stream));
  blocked_.clear();
  Pump();
}

WireError Connection::TakeError(const FrameHeader& header, std::string_view meta) {
  if (server_) return Malformed("a server got an error of a call");
  const auto found = streams_.find(header.stream);
  if (found == streams_.end()) {
    return IsNew(header.stream) ? Malformed("the error of an unknown call came") : WireError();
  }
  const std::shared_ptr<Stream> stream = found->second;
  Drop(stream);
  stream->End(DecodeError(meta));
  return {};
}

}  // namespace weir_remote
