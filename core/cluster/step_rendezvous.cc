#include "core/cluster/step_rendezvous.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "core/base/errors.h"

namespace weir::cluster {

Result<KeySender> SenderOfKey(std::string_view key) {
  const size_t device_end = key.find(';');
  const size_t number_end = device_end == std::string_view::npos ? device_end : key.find(';', device_end + 1);
  if (number_end == std::string_view::npos) return InvalidArgument("Invalid  rendezvous key: {}", key);
  KeySender sender;
  const Result<TaskName> task = TaskOfDevice(key.substr(0, device_end));
  if (!task.ok()) return task.status().Prepend("Invalid  rendezvous key: ");
  sender.task = *task;
  const std::string_view digits = key.substr(device_end + 1, number_end - device_end - 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sender.incarnation, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return InvalidArgument("Invalid  rendezvous key: {}", key);
  }
  return sender;
}

Result<TaskName> ReceiverOfKey(std::string_view key) {
  size_t begin = 0;
  for (int field = 0; field < 2; ++field) {
    const size_t end = key.find(';', begin);
    if (end == std::string_view::npos) return InvalidArgument("Invalid  rendezvous key: {}", key);
    begin = end + 1;
  }
  Result<TaskName> task = TaskOfDevice(key.substr(begin, key.find(';', begin) - begin));
  if (!task.ok()) return task.status().Prepend("Invalid  rendezvous key: ");
  return task;
}

StepRendezvous::StepRendezvous(TaskName own, std::shared_ptr<const Workers> peers, uint64_t session, uint64_t step,
                               Foreign foreign)
    : own_(std::move(own)), peers_(std::move(peers)), session_(session), step_(step), foreign_(foreign) {}

StepRendezvous::~StepRendezvous() { Abort(Cancelled("the step has ended")); }

void StepRendezvous::Link(std::shared_ptr<const StepLink> link) {
  const std::lock_guard<std::mutex> lock(mutex_);
  links_.push_back(std::move(link));
}

std::shared_ptr<const StepLink> StepRendezvous::LinkTo(const TaskName& task) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::ranges::find(links_, task, [](const auto& link) { return link->other; });
  return found == links_.end() ? nullptr : *found;
}

Status StepRendezvous::Send(std::string_view key, runtime::Message message) {
  if (const std::shared_ptr<const StepLink> link = LinkOfReceiver(key)) {
    WEIR_TRY(aborted());
    if (link->send(key, message)) return Status();
    WEIR_TRY(local_.Send(key, std::move(message)));
    link->send(key, runtime::Message());
    return Status();
  }
  const std::shared_ptr<Worker> receiver = ReceiverOf(key);
  if (receiver == nullptr) return local_.Send(key, std::move(message));
  receiver->SendTensor({session_, step_, std::string(key)}, std::move(message),
                       [weak = weak_from_this(), task = receiver->task()](const Status& status) {
                         const std::shared_ptr<StepRendezvous> self = weak.lock();
                         if (!status.ok() && self) self->Abort(FromTask(status, task));
                       });
  return Status();
}

std::shared_ptr<const StepLink> StepRendezvous::LinkOfReceiver(std::string_view key) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (links_.empty()) return nullptr;
  }
  const Result<TaskName> task = ReceiverOfKey(key);
  return task.ok() ? LinkTo(*task) : nullptr;
}

Status StepRendezvous::aborted() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return aborted_;
}

std::shared_ptr<Worker> StepRendezvous::ReceiverOf(std::string_view key) const {
  if (foreign_ == Foreign::kSent || peers_ == nullptr) return nullptr;
  const Result<TaskName> task = ReceiverOfKey(key);
  if (!task.ok() || *task == own_) return nullptr;
  Result<std::shared_ptr<Worker>> worker = peers_->Find(*task);
  return worker.ok() && !(*worker)->pulls() ? *std::move(worker) : nullptr;
}

void StepRendezvous::RecvAsync(std::string_view key, Received received) {
  const Result<KeySender> sender = SenderOfKey(key);
  if (!sender.ok()) return received(sender.status());
  if (sender->task == own_ || foreign_ == Foreign::kSent) return local_.RecvAsync(key, std::move(received));
  if (LinkTo(sender->task) == nullptr) return Ask(sender->task, key, std::move(received));
  const auto shared = std::make_shared<Received>(std::move(received));
  local_.RecvAsync(key, Received([weak = weak_from_this(), shared, task = sender->task,
                                  key = std::string(key)](Result<runtime::Message> message) {
    const bool there = message.ok() && !message->dead && !message->value.valid();
    const std::shared_ptr<StepRendezvous> self = there ? weak.lock() : nullptr;
    if (self != nullptr) return self->Ask(task, key, std::move(*shared));
    (*shared)(there ? Result<runtime::Message>(Cancelled("the step has ended")) : std::move(message));
  }));
}

void StepRendezvous::Ask(const TaskName& sender, std::string_view key, Received received) {
  if (!peers_) return received(Unavailable("{} has been closed", own_.ToString()));
  const Result<std::shared_ptr<Worker>> peer = peers_->Find(sender);
  if (!peer.ok()) return received(peer.status());
  uint64_t id = 0;
  Status aborted;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    aborted = aborted_;
    id = next_++;
    if (aborted.ok()) far_.emplace(id, std::move(received));
  }
  if (!aborted.ok()) return received(aborted);
  (*peer)->RecvTensor({session_, step_, std::string(key)},
                      Received([weak = weak_from_this(), id, task = sender](Result<runtime::Message> message) {
                        const std::shared_ptr<StepRendezvous> self = weak.lock();
                        if (!self) return;
                        if (!message.ok()) message = FromTask(message.status(), task);
                        self->Complete(id, std::move(message));
                      }));
}

void StepRendezvous::Complete(uint64_t id, Result<runtime::Message> message) {
  Received received;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = far_.find(id);
    if (found == far_.end()) return;  // aborted before
    received = std::move(found->second);
    far_.erase(found);
  }
  received(std::move(message));
}

void StepRendezvous::Abort(const Status& status) {
  local_.Abort(status);
  std::map<uint64_t, Received> far;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = status;
    far.swap(far_);
  }
  for (auto& [id, received] : far) received(status);
}

size_t StepRendezvous::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return far_.size();
}

}  // namespace weir::cluster
