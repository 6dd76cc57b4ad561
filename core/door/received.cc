#include "core/door/received.h"

#include <utility>

namespace weir::door {

bool ReceivedIds::Insert(int64_t id) {
  if (id == 0) return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ids_.insert(id).second) return false;
  order_.push_back(id);
  if (order_.size() > most_) {
    ids_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

void KeptReplies::DropOldest() {
  bytes_ -= kept_.front().bytes();
  kept_.pop_front();
}

void KeptReplies::Forget(Time now) {
  while (!kept_.empty() && now - kept_.front().at > limits_.age) DropOldest();
}

void KeptReplies::Keep(std::string peer, std::string method, std::string request, std::string reply, Time now) {
  Kept kept{std::move(peer), std::move(method), std::move(request), std::move(reply), now};
  const std::lock_guard<std::mutex> lock(mutex_);
  Forget(now);
  const uint64_t more = kept.bytes();
  if (more > limits_.bytes || limits_.replies == 0) return;
  while (!kept_.empty() && (bytes_ + more > limits_.bytes || kept_.size() >= limits_.replies)) DropOldest();
  bytes_ += more;
  kept_.push_back(std::move(kept));
}

std::optional<std::string> KeptReplies::Take(std::string_view peer, std::string_view method, std::string_view request,
                                             Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Forget(now);
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->peer != peer || it->method != method || it->request != request) continue;
    bytes_ -= it->bytes();
    std::optional<std::string> reply(std::move(it->reply));
    kept_.erase(it);
    return reply;
  }
  return std::nullopt;
}

size_t KeptReplies::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kept_.size();
}

}  // namespace weir::door
