#include "plugins/remote/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugins/remote/secrets.h"

namespace weir_remote {
namespace {

Clock::time_point DeadlineIn(uint64_t time_left_ms) {
  constexpr uint64_t kMostMs = uint64_t{1} << 40;
  if (time_left_ms >= kMostMs) return Clock::time_point::max();
  return Clock::now() + std::chrono::milliseconds(time_left_ms);
}

uint64_t RandomSeed() {
  uint64_t seed = 1;
  const std::string random = RandomBytes(sizeof seed);
  std::memcpy(&seed, random.data(), random.size());
  return seed;
}

/// True for an error that another attempt may not meet.
bool MayPass(const WireError& error) {
  return error.code == WEIR_UNAVAILABLE || error.code == WEIR_RESOURCE_EXHAUSTED ||
         error.code == WEIR_DEADLINE_EXCEEDED;
}

std::string TextOf(weir_bytes bytes) {
  return bytes.size == 0 ? std::string() : std::string(static_cast<const char*>(bytes.data), bytes.size);
}

}  // namespace

ClientCall::ClientCall(uint64_t number, const weir_message& request, uint32_t flags, uint64_t time_left_ms,
                       const weir_receiver& receiver)
    : number_(number),
      method_(request.method),
      flags_(flags),
      meta_(TextOf(request.meta)),
      bodies_(request.bodies, request.bodies + request.body_count),
      deadline_(DeadlineIn(time_left_ms)),
      receiver_(receiver) {
  if (flags_ == 0) Io::Get().CountCalls(1);
}

ClientCall::~ClientCall() {
  receiver_.done(receiver_.ctx, outcome_.code, {outcome_.text.data(), outcome_.text.size()});
  if (flags_ == 0) Io::Get().CountCalls(-1);
}

WireError ClientCall::Begin(const MessageHead& head, void** to) {
  const weir_arrival reply = ArrivalOf(head);
  return AskCore([&](weir_error* error) { return receiver_.place(receiver_.ctx, &reply, to, error); });
}

WireError ClientCall::Told(const MessageHead& head, std::span<const std::byte> body) {
  const weir_receiver* const receiver = &receiver_;
  if (!WEIR_HAS(receiver, told)) return Malformed("a message came before a reply, which this call does not take");
  const weir_arrival message = ArrivalOf(head);
  return AskCore([&](weir_error* error) { return receiver->told(receiver->ctx, &message, body.data(), error); });
}

void ClientCall::Finish(WireError outcome) {
  if (finished_) return;
  finished_ = true;
  outcome_ = std::move(outcome);
  timer_.reset();
  if (const std::shared_ptr<Channel> channel = std::move(channel_)) channel->Forget(*this);
}

uint64_t ClientCall::TimeLeft() const {
  if (deadline_ == Clock::time_point::max()) return UINT64_MAX;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  return left > 0 ? static_cast<uint64_t>(left) : 0;
}

Channel::Channel(std::string address, std::string expected, ConnectionOptions options)
    : address_(std::move(address)),
      expected_(std::move(expected)),
      options_(std::move(options)),
      backoff_(RandomSeed()),
      timer_(Io::Get().context()) {}

std::string Channel::Name() const { return expected_.empty() ? address_ : expected_ + " at " + address_; }

void Channel::Forget(const ClientCall& call) { calls_.erase(call.number_); }

void Channel::EndCall(const std::shared_ptr<ClientCall>& call, const WireError& why) {
  const auto waits = std::find(waiting_.begin(), waiting_.end(), call);
  if (waits != waiting_.end()) {
    waiting_.erase(waits);
  } else if (connection_) {
    connection_->Cancel(call);
  }
  call->End(why);
}

void Channel::Begin(const std::shared_ptr<ClientCall>& call) {
  if (state_ == State::kClosed) return call->End({WEIR_CANCELLED, "the channel was closed"});
  call->channel_ = shared_from_this();
  calls_.emplace(call->number_, call);
  if (call->deadline_ != Clock::time_point::max()) {
    call->timer_ = std::make_unique<asio::steady_timer>(Io::Get().context(), call->deadline_);
    call->timer_->async_wait(Io::Handler([weak = std::weak_ptr(call), self = shared_from_this()](const auto& error) {
      const std::shared_ptr<ClientCall> late = weak.lock();
      if (error || !late || late->finished_) return;
      std::string text = self->Name() + " has not answered by the deadline";
      const std::string& reason = self->last_reason_;
      if (self->state_ != State::kOpen && !reason.empty()) text += "; the last reason: " + reason;
      self->EndCall(late, {WEIR_DEADLINE_EXCEEDED, std::move(text)});
    }));
  }
  if (state_ == State::kOpen) return Send(call);
  if ((call->flags_ & WEIR_CALL_IF_CONNECTED) != 0) {
    return call->End({WEIR_UNAVAILABLE, "there is no connection to " + Name()});
  }
  waiting_.push_back(call);
  if (state_ == State::kIdle || (state_ == State::kWaiting && (call->flags_ & WEIR_CALL_WAIT) == 0)) Connect();
}

void Channel::Send(const std::shared_ptr<ClientCall>& call) {
  const WireError error =
      connection_->Request(call, call->method_, call->TimeLeft(), call->meta_, std::move(call->bodies_));
  if (!error.ok()) return call->End(error);
  for (Told& message : std::exchange(call->told_, {})) connection_->Tell(call, std::move(message));
}

void Channel::Tell(uint64_t number, Told message) {
  const auto found = calls_.find(number);
  const std::shared_ptr<ClientCall> call = found == calls_.end() ? nullptr : found->second.lock();
  if (!call) return;
  if (state_ == State::kOpen) return connection_->Tell(call, std::move(message));
  call->told_.push_back(std::move(message));  // for the request
}

void Channel::Cancel(uint64_t number) {
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;
  if (const std::shared_ptr<ClientCall> call = found->second.lock()) {
    EndCall(call, {WEIR_CANCELLED, "the call was cancelled"});
  }
}

void Channel::Close() {
  if (state_ == State::kClosed) return;
  const std::shared_ptr<Channel> self = shared_from_this();
  state_ = State::kClosed;
  ++attempt_;
  timer_.cancel();
  if (dialled_) {
    boost::system::error_code ignored;
    dialled_->close(ignored);
  }
  const WireError why{WEIR_CANCELLED, "the channel was closed"};
  if (const std::shared_ptr<Connection> connection = std::move(connection_)) connection->Leave(why);
  std::deque<std::shared_ptr<ClientCall>> waiting;
  waiting.swap(waiting_);
  for (const std::shared_ptr<ClientCall>& call : waiting) call->End(why);
}

void Channel::Connect() {
  state_ = State::kConnecting;
  timer_.cancel();
  const uint64_t attempt = ++attempt_;
  const std::shared_ptr<Channel> self = shared_from_this();
  timer_.expires_after(options_.peer_timeout);
  timer_.async_wait(Io::Handler([self, attempt](const boost::system::error_code& error) {
    if (error || attempt != self->attempt_ || self->state_ != State::kConnecting || self->connection_) return;
    const auto limit = std::to_string(self->options_.peer_timeout.count());
    self->Fail({WEIR_UNAVAILABLE, self->Name() + " cannot be reached: no answer within " + limit + " ms"});
  }));
  ResolveLater(address_, [self, attempt](const WireError& error, std::vector<SocketAddress> addresses) {
    if (attempt != self->attempt_) return;
    if (!error.ok()) return self->Fail({error.code, self->Name() + " cannot be reached: " + error.text});
    self->Dial(std::move(addresses), 0, "the name has no address");
  });
}

void Channel::Dial(std::vector<SocketAddress> addresses, size_t at, std::string reason) {
  if (at == addresses.size()) return Fail({WEIR_UNAVAILABLE, Name() + " cannot be reached: " + reason});
  const auto socket = std::make_shared<Socket>(Io::Get().context());
  dialled_ = socket;
  const SocketAddress to = addresses[at];
  const auto connected = [self = shared_from_this(), socket, attempt = attempt_, addresses = std::move(addresses),
                          at](const boost::system::error_code& error) {
    if (attempt != self->attempt_) return;
    if (error) return self->Dial(addresses, at + 1, error.message());
    self->dialled_.reset();
    // A socket that was connected stays registered for writing, and each wait for reading would wake the thread twice.
    Socket fresh(Io::Get().context(), addresses[at].protocol(), socket->release());
    self->connection_ = std::make_shared<Connection>(std::move(fresh), self->address_, false, self->options_, self);
    self->connection_->Start();
  };
  socket->async_connect(to, Io::Handler(connected));
}

WireError Channel::Opened(Connection& connection) {
  const Identity& peer = connection.peer()->identity;
  const std::string is = "/job:" + peer.job + "/task:" + std::to_string(peer.task);
  if (!expected_.empty() && expected_ != is) {
    return {WEIR_FAILED_PRECONDITION,
            "it is " + (peer.job.empty() ? std::string("no task") : is) + ", wanted " + expected_};
  }
  timer_.cancel();
  backoff_.Reset();
  last_reason_.clear();
  state_ = State::kOpen;
  std::deque<std::shared_ptr<ClientCall>> waiting;
  waiting.swap(waiting_);
  for (const std::shared_ptr<ClientCall>& call : waiting) {
    if (!call->finished_) Send(call);
  }
  return {};
}

void Channel::Closed(Connection& connection, const WireError& why) {
  if (connection_.get() != &connection) return;
  connection_.reset();
  if (state_ == State::kClosed) return;
  const bool named = connection.peer() || expected_.empty();
  Fail({why.code, named ? why.text : expected_ + " at " + why.text});
}

/// No connection: ends the calls that do not wait, and tries again for the others.
void Channel::Fail(const WireError& why) {
  ++attempt_;
  last_reason_ = why.text;
  dialled_.reset();
  timer_.cancel();
  std::deque<std::shared_ptr<ClientCall>> waiting;
  waiting.swap(waiting_);
  for (const std::shared_ptr<ClientCall>& call : waiting) {
    if ((call->flags_ & WEIR_CALL_WAIT) != 0 && MayPass(why)) {
      waiting_.push_back(call);
    } else {
      call->End(why);
    }
  }
  state_ = State::kIdle;
  if (waiting_.empty()) return;
  state_ = State::kWaiting;
  timer_.expires_after(backoff_.Next());
  const auto again = [self = shared_from_this(), attempt = attempt_](const boost::system::error_code& error) {
    if (!error && attempt == self->attempt_ && self->state_ == State::kWaiting) self->Connect();
  };
  timer_.async_wait(Io::Handler(again));
}

}  // namespace weir_remote
