#include "plugins/remote/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "plugins/remote/fields.h"
#include "plugins/remote/secrets.h"

namespace weir_remote {
namespace {

constexpr std::chrono::milliseconds kLingerLimit{1000};
constexpr uint64_t kMostBatch = 256u << 10;  // bytes of small frames in one write
constexpr int kChunksAtOnce = 4;

LivenessLimits LimitsOf(std::chrono::milliseconds dead) {
  return {std::min(dead / 10, std::chrono::milliseconds(1000)), dead * 3 / 10, dead};
}

Handshake HandshakeOf(bool server, const ConnectionOptions& options, const std::string& token) {
  std::string nonce = RandomBytes(kNonceBytes);
  if (!server) return Handshake::Client(options.self, token, HmacSha256, std::move(nonce));
  uint64_t session = 0;
  const std::string random = RandomBytes(sizeof session);
  std::memcpy(&session, random.data(), random.size());
  return Handshake::Server(options.self, token, HmacSha256, std::move(nonce), session | 1);
}

/// The host in an address, as a certificate has it; empty for a Unix socket.
std::string HostOf(std::string_view address) {
  if (address.starts_with("unix:")) return {};
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return std::string(host);
}

std::unique_ptr<TlsSession> TlsOf(const Protection& protection, bool server, std::string_view where) {
  if (!protection.tls) return nullptr;
  return TlsSession::Make(protection.tls, server, server ? std::string() : HostOf(where));
}

std::span<const std::byte> BytesOfText(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

Connection::Connection(Socket socket, std::string where, bool server, const ConnectionOptions& options,
                       std::shared_ptr<ConnectionUser> user)
    : socket_(std::move(socket)),
      where_(std::move(where)),
      server_(server),
      options_(options),
      protection_(options.keys->current()),
      user_(std::move(user)),
      tls_(TlsOf(protection_, server, where_)),
      handshake_(HandshakeOf(server, options, protection_.token)),
      reader_(*this),
      liveness_(Clock::now(), LimitsOf(options.peer_timeout)),
      timer_(Io::Get().context()) {}

std::string Connection::PeerText() const {
  if (!peer()) return where_;
  const Identity& identity = peer()->identity;
  char incarnation[24];
  std::snprintf(incarnation, sizeof incarnation, "%016" PRIx64, identity.incarnation);
  if (identity.job.empty()) return where_;
  return "/job:" + identity.job + "/task:" + std::to_string(identity.task) + " (incarnation " + incarnation + ") at " +
         where_;
}

void Connection::Start() {
  SetUp(socket_.native_handle(), options_.peer_timeout);
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  for (Outgoing& frame : handshake_.Begin()) Queue({frame.type, 0, std::move(frame.meta), {}});
  if (tls_) {
    cipher_in_.resize(kCipherBytes);
    TakeSecured();
  }
  Read();
  Tick();
}

void Connection::Tick() {
  if (closed_ || failed_) return;
  const Clock::time_point now = Clock::now();
  const auto limit = std::min(kHelloLimit, options_.peer_timeout);
  if (!open_ && now - since_ >= limit) {
    return Fail({WEIR_UNAVAILABLE, "no handshake within " + std::to_string(limit.count()) + " ms"}, false);
  }
  if (open_) {
    if (liveness_.At(now) == Liveness::State::kDead) {
      const auto silent = std::to_string(options_.peer_timeout.count());
      return Fail({WEIR_UNAVAILABLE, "it has sent nothing for " + silent + " ms and counts as lost"}, false);
    }
    if (liveness_.TakePing(now)) Queue({FrameType::kPing, 0, {}, {}});
  }
  timer_.expires_at(open_ ? std::max(liveness_.Next(), now + std::chrono::milliseconds(5)) : since_ + limit);
  timer_.async_wait(Io::Handler([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->Tick();
  }));
}

void Connection::Read() {
  if (closed_ || reading_) return;
  reading_ = true;
  const auto readable = [self = shared_from_this()](const boost::system::error_code&) {
    self->reading_ = false;
    if (self->failed_ && !self->lingering_) return;
    self->TakeReady();
    if (!self->failed_ || self->lingering_) self->Read();
  };
  socket_.async_wait(Socket::wait_read, Io::Handler(readable));
}

/// Takes what is there, a part of it if it is much.
void Connection::TakeReady() {
  for (int i = 0; i < kReadsAtOnce; ++i) {
    if (closed_ || !(tls_ ? ReadSecured() : ReadPlain())) break;
  }
  Io::Get().RunPutOff();  // replies leave first
}

/// The wait for reading goes on: what it finds later may be taken already.
bool Connection::Look() {
  if (!reading_ || closed_ || failed_) return false;
  const uint64_t before = receives_;
  const std::shared_ptr<Connection> self = shared_from_this();
  TakeReady();
  return receives_ != before;
}

/// Reads what is there now: into both ranges, one after the other. None: nothing is there, or the connection ended.
std::optional<size_t> Connection::Receive(std::span<std::byte> first, std::span<std::byte> second) {
  iovec to[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  msghdr message{};
  message.msg_iov = to;
  message.msg_iovlen = 2;
  for (;;) {
    const ssize_t got = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT);
    if (got > 0) {
      liveness_.Heard(Clock::now());
      ++receives_;
      Io::Get().Came(shared_from_this());
      return static_cast<size_t>(got);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    Ended(got == 0 ? "it closed the connection" : "the connection ended: " + ErrorText(errno));
    return std::nullopt;
  }
}

void Connection::Ended(const std::string& reason) {
  if (failed_) return Close();
  Fail({WEIR_UNAVAILABLE, reason}, false);
}

/// Memory of a stream that the next bytes may be read into; empty if little is wanted there.
std::span<std::byte> Connection::Direct() {
  const std::span<std::byte> wanted = failed_ || reading_into_ == nullptr ? std::span<std::byte>() : reader_.Wanted();
  return wanted.size() < kDirectAt ? std::span<std::byte>() : wanted;
}

/// False once nothing more is there.
bool Connection::ReadPlain() {
  const std::span<std::byte> direct = Direct();
  // What follows a body is its checksum and the next head: little of it is copied.
  const std::span<std::byte> behind = std::span(staging_).first(direct.empty() ? staging_.size() : kBehindBody);
  const std::optional<size_t> count = Receive(direct, behind);
  if (!count) return false;
  const bool more = *count == direct.size() + behind.size();
  if (failed_) return more;
  if (direct.empty() && !Begins(staging_.front())) return false;
  const size_t there = std::min(direct.size(), *count);
  WireError error;
  if (there > 0) error = reader_.Received(there);
  if (error.ok() && *count > there) error = reader_.Feed(behind.first(*count - there));
  if (!error.ok() && !failed_) Fail(error, true);
  return more && !failed_;
}

/// Checks by the first byte whether both sides mean TLS, or neither.
bool Connection::Begins(std::byte first) {
  if (std::exchange(begun_, true) || BeginsTls(first) == (tls_ != nullptr)) return true;
  if (!tls_ && !server_) return true;  // no frame
  WireError error{WEIR_FAILED_PRECONDITION, ""};
  if (!tls_) {
    error.text =
        "it begins TLS, and this side has none: set tls_certificate, tls_key and tls_authorities here, or remove them "
        "there";
  } else if (server_) {
    error.text = "this side takes TLS only: set tls_certificate, tls_key and tls_authorities";
  } else {
    error.text = "it does not speak TLS: set tls_certificate, tls_key and tls_authorities there, or remove them here";
  }
  tls_.reset();  // the peer reads the error as it is
  Fail(error, server_);
  return false;
}

bool Connection::ReadSecured() {
  const std::optional<size_t> count = Receive(cipher_in_, {});
  if (!count) return false;
  const bool more = *count == cipher_in_.size();
  if (failed_) return more;
  if (!Begins(cipher_in_.front())) return false;
  tls_->Came(std::span(cipher_in_).first(*count));
  TakeSecured();
  return more && !failed_;
}

/// Takes the plain bytes of those that came, and sends what TLS wants to say.
void Connection::TakeSecured() {
  while (!failed_) {
    const std::span<std::byte> direct = Direct();
    const std::span<std::byte> to = direct.empty() ? std::span(staging_) : direct;
    size_t count = 0;
    if (WireError error = tls_->Read(to, count); !error.ok()) return Fail(error, true);
    if (count == 0) break;
    WireError error = direct.empty() ? reader_.Feed(to.first(count)) : reader_.Received(count);
    if (!error.ok() && !failed_) return Fail(error, true);
  }
  Pump();
}

void Connection::Queue(Outgo frame) {
  if (failed_) return;
  control_.push_back(std::move(frame));
  Pump();
}

std::string Connection::HeadOf(FrameType type, uint32_t stream, std::string_view meta, std::span<const std::byte> body,
                               std::string& tail) {
  FrameHeader header;
  header.type = static_cast<uint8_t>(type);
  header.stream = stream;
  header.flags = !body.empty() && options_.body_crc && !tls_ ? kFrameBodyCrc : 0;
  header.number = next_number_++;
  tail = EncodeTail(header, meta, body);
  return EncodeFrame(header, meta, body);
}

void Connection::Batch() {
  std::string tail;
  while (!control_.empty() && small_.size() < kMostBatch) {
    const Outgo& frame = control_.front();
    small_ += HeadOf(frame.type, frame.stream, frame.meta, BytesOfText(frame.body), tail);
    small_ += frame.body;
    small_ += tail;
    control_.pop_front();
  }
  if (!small_.empty()) buffers_.push_back(asio::buffer(small_));
  // A chunk follows its head, which must not be behind it.
  const int most = sharing_ == Sharing::kReady ? 1 : kChunksAtOnce;  // a copy is under way long enough
  for (int i = 0; control_.empty() && i < most && AddChunk(); ++i) {
  }
}

/// `bytes` more of the stream's bodies are on their way.
void Connection::Advance(const std::shared_ptr<Stream>& stream, uint64_t bytes) {
  stream->out_done_ += bytes;
  if (stream->out_done_ == stream->out_[stream->out_at_].size) {
    stream->out_done_ = 0;
    do {
      ++stream->out_at_;
    } while (stream->out_at_ < stream->out_.size() && stream->out_[stream->out_at_].size == 0);
  }
  if (stream->out_at_ < stream->out_.size()) {
    senders_.push_back(stream);
  } else {
    StopSending(*stream);
    finished_.push_back(stream);
  }
}

/// The next chunk of the next sender that has credit.
bool Connection::AddChunk() {
  while (!senders_.empty()) {
    const std::shared_ptr<Stream> stream = std::move(senders_.front());
    senders_.pop_front();
    if (!stream->sending_) continue;
    const weir_bytes& body = stream->out_[stream->out_at_];
    const std::span<const std::byte> rest(static_cast<const std::byte*>(body.data) + stream->out_done_,
                                          body.size - stream->out_done_);
    if (sharing_ == Sharing::kReady) {
      if (AddShared(stream, rest)) return true;
      blocked_.push_back(stream);
      continue;
    }
    const uint64_t taken = send_credit_.Take(stream->id_, std::min<uint64_t>(kChunk, rest.size()));
    if (taken == 0) {
      blocked_.push_back(stream);
      continue;
    }
    const std::span<const std::byte> chunk = rest.first(taken);
    std::string tail;
    pieces_.push_back(HeadOf(FrameType::kData, stream->id_, {}, chunk, tail));
    buffers_.push_back(asio::buffer(pieces_.back()));
    buffers_.push_back(asio::buffer(chunk.data(), chunk.size()));
    if (!tail.empty()) {
      pieces_.push_back(std::move(tail));
      buffers_.push_back(asio::buffer(pieces_.back()));
    }
    in_flight_.push_back(stream);
    Advance(stream, taken);
    return true;
  }
  return false;
}

void Connection::Pump() {
  if (pumping_ || writing_ || closed_) return;
  pumping_ = true;
  while (!writing_ && !closed_ && Gather()) {
    const size_t sent = SendNow();
    if (sent < asio::buffer_size(buffers_)) {
      SendLater(sent);
    } else {
      Written();
    }
  }
  pumping_ = false;
}

/// Fills `buffers_` with the next bytes for the socket. False if there are none.
bool Connection::Gather() {
  small_.clear();
  pieces_.clear();
  buffers_.clear();
  if (!tls_ || tls_->open()) {
    Batch();
  } else if (failed_) {
    control_.clear();
  }
  if (tls_) {
    for (const asio::const_buffer& plain : buffers_) {
      const std::span<const std::byte> bytes(static_cast<const std::byte*>(plain.data()), plain.size());
      if (WireError error = tls_->Write(bytes); !error.ok()) {
        Fail(error, false);
        return false;
      }
    }
    buffers_.clear();
    cipher_out_.clear();
    cipher_out_.swap(tls_->out());
    if (!cipher_out_.empty()) buffers_.push_back(asio::buffer(cipher_out_));
  }
  if (buffers_.empty() && failed_) Linger();
  return !buffers_.empty();
}

/// Small frames leave at once, so that no completion wakes the thread. Returns the bytes that were taken. An error
/// shows again in SendLater, whose completion never runs within a call of the core.
size_t Connection::SendNow() {
  if (!in_flight_.empty()) return 0;
  iovec from[2];
  if (buffers_.size() > std::size(from)) return 0;
  for (size_t i = 0; i < buffers_.size(); ++i) from[i] = {const_cast<void*>(buffers_[i].data()), buffers_[i].size()};
  msghdr message{};
  message.msg_iov = from;
  message.msg_iovlen = buffers_.size();
  const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent > 0 ? static_cast<size_t>(sent) : 0;
}

void Connection::SendLater(size_t sent) {
  while (sent > 0) {
    asio::const_buffer& first = buffers_.front();
    const size_t gone = std::min(sent, first.size());
    first += gone;
    sent -= gone;
    if (first.size() == 0) buffers_.erase(buffers_.begin());
  }
  writing_ = true;
  // By default a composed write moves at most 64 KiB a system call.
  const auto all = [total = asio::buffer_size(buffers_)](const boost::system::error_code& error, size_t done) {
    return error || done >= total ? size_t{0} : total - done;
  };
  const auto written = [self = shared_from_this()](const boost::system::error_code& error, size_t) {
    self->writing_ = false;
    if (error) {
      self->in_flight_.clear();
      self->finished_.clear();
      if (!self->closed_) self->Ended("the connection ended: " + error.message());
      return;
    }
    self->Written();
    self->Pump();
  };
  asio::async_write(socket_, buffers_, all, Io::Handler(written));
}

void Connection::Written() {
  std::vector<std::shared_ptr<Stream>> finished;
  finished.swap(finished_);
  in_flight_.clear();
  for (const std::shared_ptr<Stream>& stream : finished) {
    if (!failed_ && !closed_) stream->Sent();
    if (server_) Drop(stream);
  }
}

void Connection::StopSending(Stream& stream) {
  if (!stream.sending_) return;
  stream.sending_ = false;
  send_credit_.End(stream.id_);
}

/// The connection knows the stream no more.
void Connection::Drop(const std::shared_ptr<Stream>& stream) {
  StopSending(*stream);
  if (stream->receiving_) receive_credit_.End(stream->id_);
  stream->receiving_ = false;
  std::erase(blocked_, stream);
  const auto found = streams_.find(stream->id_);
  if (found != streams_.end() && found->second == stream) streams_.erase(found);
}

void Connection::SendBodies(const std::shared_ptr<Stream>& stream, Outgo frame, std::vector<weir_bytes> bodies) {
  uint64_t total = 0;
  for (const weir_bytes& body : bodies) total += body.size;
  if (total <= kInline) {
    for (const weir_bytes& body : bodies) {
      if (body.size > 0) frame.body.append(static_cast<const char*>(body.data), body.size);
    }
    Queue(std::move(frame));
    stream->Sent();
    if (server_) Drop(stream);
    return;
  }
  stream->out_ = std::move(bodies);
  stream->out_at_ = 0;
  while (stream->out_[stream->out_at_].size == 0) ++stream->out_at_;
  stream->sending_ = true;
  senders_.push_back(stream);
  control_.push_back(std::move(frame));
  OfferShared();
  Pump();
}

WireError Connection::Request(const std::shared_ptr<Stream>& stream, uint32_t method, uint64_t time_left_ms,
                              std::string_view meta, std::vector<weir_bytes> bodies) {
  std::string head = EncodeHead(method, time_left_ms, meta, bodies);
  if (head.size() > kMostMetaBytes) {
    return Malformed("the head of a request has " + std::to_string(head.size()) + " bytes");
  }
  if (streams_.size() >= kMostStreams) {
    return {WEIR_RESOURCE_EXHAUSTED, std::to_string(kMostStreams) + " calls are under way"};
  }
  do {
    ++last_stream_;
  } while (streams_.contains(last_stream_) || last_stream_ == 0);
  stream->id_ = last_stream_;
  streams_.emplace(stream->id_, stream);
  SendBodies(stream, {FrameType::kRequest, stream->id_, std::move(head), {}}, std::move(bodies));
  return {};
}

void Connection::Reply(const std::shared_ptr<Stream>& stream, std::string_view meta, std::vector<weir_bytes> bodies) {
  if (failed_ || !streams_.contains(stream->id_)) return;
  std::string head = EncodeHead(0, UINT64_MAX, meta, bodies);
  if (head.size() > kMostMetaBytes) return ReplyError(stream, Malformed("the head of a reply is too large"));
  SendBodies(stream, {FrameType::kResponse, stream->id_, std::move(head), {}}, std::move(bodies));
}

void Connection::ReplyError(const std::shared_ptr<Stream>& stream, const WireError& error) {
  if (failed_ || !streams_.contains(stream->id_)) return;
  Queue({FrameType::kError, stream->id_, EncodeError(error), {}});
  stream->Sent();
  Drop(stream);
}

void Connection::Tell(const std::shared_ptr<Stream>& stream, Told message) {
  const auto found = streams_.find(stream->id_);
  if (failed_ || found == streams_.end() || found->second != stream) return;
  Queue({FrameType::kTell, stream->id_, std::move(message.head), std::move(message.body)});
}

void Connection::Cancel(const std::shared_ptr<Stream>& stream) {
  const auto found = streams_.find(stream->id_);
  if (found == streams_.end() || found->second != stream) return;
  Drop(stream);
  Queue({FrameType::kCancel, stream->id_, {}, {}});
}

void Connection::GoAway() {
  if (open_) Queue({FrameType::kGoAway, 0, {}, {}});
}

void Connection::Leave(const WireError& why) {
  if (failed_ || closed_) return;
  if (open_) control_.push_back({FrameType::kBye, 0, {}, {}});
  Fail(why, open_);
}

void Connection::Fail(const WireError& why, bool tell) {
  if (failed_ || closed_) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  const bool leaves = !control_.empty() && control_.back().type == FrameType::kBye;
  failed_ = true;
  timer_.cancel();
  std::map<uint32_t, std::shared_ptr<Stream>> streams;
  streams.swap(streams_);
  for (auto& [id, stream] : streams) {
    StopSending(*stream);
    stream->receiving_ = false;
  }
  senders_.clear();
  blocked_.clear();
  control_.clear();
  if (tell) {
    control_.push_back(leaves ? Outgo{FrameType::kBye, 0, {}, {}} : Outgo{FrameType::kError, 0, EncodeError(why), {}});
    timer_.expires_after(kLingerLimit);
    timer_.async_wait(Io::Handler([self](const boost::system::error_code& error) {
      if (!error) self->Close();
    }));
    Pump();
  } else {
    Close();
  }
  reading_into_.reset();
  const WireError told{why.code, PeerText() + ": " + why.text};
  for (auto& [id, stream] : streams) stream->End(told);
  streams.clear();
  const std::shared_ptr<ConnectionUser> user = std::move(user_);
  if (user) user->Closed(*this, told);
}

/// Everything is written: waits for the peer's end, so that a reset does not overtake the last frame.
void Connection::Linger() {
  if (lingering_ || closed_) return;
  lingering_ = true;
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  Read();
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  boost::system::error_code ignored;
  timer_.cancel();
  socket_.close(ignored);
  // A closed socket touches no memory.
  in_flight_.clear();
  finished_.clear();
  reading_into_.reset();
}

}  // namespace weir_remote
