#include "core/cluster/session_hold.h"

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/worker_messages.h"
#include "core/runtime/timer.h"

namespace weir::cluster {
namespace {

constexpr std::chrono::seconds kHoldAgain{1};  // after the end of a connection

}  // namespace

/// Calls under way keep it.
struct SessionHold::State : std::enable_shared_from_this<State> {
  State(std::shared_ptr<WireChannel> to, uint64_t held) : channel(std::move(to)), session(held) {}

  void Start();
  void Ended(const Status& status);
  void Stop();

  const std::shared_ptr<WireChannel> channel;
  const uint64_t session;
  std::mutex mutex;  // protects all below
  bool over = false;
  uint64_t attempt = 0, number = 0;  // the number of the call of this attempt; 0 = none
  std::unique_ptr<runtime::Timer> again;
};

class SessionHold::Call final : public WireCall {
 public:
  explicit Call(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Status Place(std::string_view meta, std::span<const uint64_t> sizes, void**) override {
    if (!sizes.empty()) return InvalidArgument("a reply has {} bodies, wanted none", sizes.size());
    WEIR_ASSIGN(reply_, DecodeReply(meta));
    return Status();
  }
  void Done(const Status& status) override { state_->Ended(status.ok() ? reply_.status : status); }

 private:
  const std::shared_ptr<State> state_;
  WireReply reply_;
};

void SessionHold::State::Start() {
  WireRequest request;
  request.method = Method::kKeepSession;
  request.session = session;
  const Result<std::string> meta = Encode(request);
  if (!meta.ok()) return;
  uint64_t mine = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (over) return;
    mine = ++attempt;
  }
  // It may end before its number is known here.
  const uint64_t started = channel->Start(std::make_unique<Call>(shared_from_this()), request.method, *meta, {},
                                          WEIR_CALL_WAIT, Clock::time_point::max());
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!over) {
      if (attempt == mine) number = started;
      return;
    }
  }
  channel->Cancel(started);
}

void SessionHold::State::Ended(const Status& status) {
  if (status.code() != Code::kUnavailable) return;
  std::unique_ptr<runtime::Timer> before;
  const std::lock_guard<std::mutex> lock(mutex);
  if (over) return;
  number = 0;
  before = std::exchange(again, std::make_unique<runtime::Timer>(Clock::now() + kHoldAgain, [weak = weak_from_this()] {
                           if (const std::shared_ptr<State> self = weak.lock()) self->Start();
                         }));
}

void SessionHold::State::Stop() {
  std::unique_ptr<runtime::Timer> before;
  uint64_t started = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    over = true;
    started = std::exchange(number, 0);
    before.swap(again);
  }
  if (started != 0) channel->Cancel(started);
}

SessionHold::SessionHold(std::shared_ptr<WireChannel> channel, uint64_t session)
    : state_(std::make_shared<State>(std::move(channel), session)) {
  state_->Start();
}

SessionHold::~SessionHold() { state_->Stop(); }

}  // namespace weir::cluster
