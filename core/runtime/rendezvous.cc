#include "core/runtime/rendezvous.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/base/errors.h"

namespace weir::runtime {

LocalRendezvous::~LocalRendezvous() { Abort(Cancelled("the step is over")); }

Status LocalRendezvous::Send(std::string_view key, Message message) {
  Received received;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!aborted_.ok()) return aborted_;
    Meeting& meeting = meetings_[std::string(key)];
    if (meeting.waiting.empty()) {
      meeting.sent.push_back(std::move(message));
      return Status();
    }
    received = std::move(meeting.waiting.front());
    meeting.waiting.pop_front();
    if (meeting.waiting.empty()) meetings_.erase(meetings_.find(key));
  }
  received(std::move(message));
  return Status();
}

void LocalRendezvous::RecvAsync(std::string_view key, Received received) {
  Status status;
  Message message;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    status = aborted_;
    if (status.ok()) {
      Meeting& meeting = meetings_[std::string(key)];
      if (meeting.sent.empty()) {
        meeting.waiting.push_back(std::move(received));
        return;
      }
      message = std::move(meeting.sent.front());
      meeting.sent.pop_front();
      if (meeting.sent.empty()) meetings_.erase(meetings_.find(key));
    }
  }
  received(status.ok() ? Result<Message>(std::move(message)) : Result<Message>(std::move(status)));
}

void LocalRendezvous::Abort(const Status& status) {
  std::map<std::string, Meeting, std::less<>> gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = status;
    gone.swap(meetings_);
  }
  for (auto& [key, meeting] : gone) {
    for (Received& received : meeting.waiting) received(status);
  }
}

bool LocalRendezvous::Empty() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return meetings_.empty();
}

std::string TransferKey(std::string_view send_device, uint64_t incarnation, std::string_view recv_device,
                        std::string_view tensor_name) {
  return fmt::format("{};{:016x};{};{};", send_device, incarnation, recv_device, tensor_name);
}

std::string IterationKey(std::span<const Iteration> loops) {
  if (loops.empty()) return "0:0";
  std::string name;
  int64_t around = 0;
  for (const Iteration& loop : loops) {
    name += fmt::format(";{};{}", around, loop.frame);
    around = loop.number;
  }
  return fmt::format("{}:{}", FrameHash(name), around);
}

/// MurmurHash64A with TensorFlow's seed.
uint64_t FrameHash(std::string_view name) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  const auto mix = [](uint64_t value) { return (value ^ (value >> kShift)) * kFactor; };
  uint64_t hash = 0xDECAFCAFFE ^ (name.size() * kFactor);
  for (; name.size() >= sizeof(uint64_t); name.remove_prefix(sizeof(uint64_t))) {
    uint64_t block = 0;
    std::memcpy(&block, name.data(), sizeof(block));
    hash = (hash ^ mix(block * kFactor)) * kFactor;
  }
  if (!name.empty()) {
    uint64_t tail = 0;
    std::memcpy(&tail, name.data(), name.size());
    hash = (hash ^ tail) * kFactor;
  }
  hash = mix(hash);
  return hash ^ (hash >> kShift);
}

}  // namespace weir::runtime
