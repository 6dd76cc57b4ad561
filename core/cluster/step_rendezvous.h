// The values that one step sends and receives in one task.
#ifndef WEIR_CORE_CLUSTER_STEP_RENDEZVOUS_H_
#define WEIR_CORE_CLUSTER_STEP_RENDEZVOUS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/step_link.h"
#include "core/cluster/worker.h"
#include "core/runtime/rendezvous.h"

namespace weir::cluster {

/// The front of a rendezvous key.
struct KeySender {
  TaskName task;
  uint64_t incarnation = 0;
};
/// InvalidArgument for a text that is no key of a transfer, here and below.
Result<KeySender> SenderOfKey(std::string_view key);
Result<TaskName> ReceiverOfKey(std::string_view key);

/// Values that the own task sends stay until they are received, here or by another task (Worker::RecvTensor); one for
/// a task that does not pull, and a small one for a task with a link, go there at once. Receives of values that another
/// task sends ask that task, or wait until it has sent them or says by its link that they may be asked for.
/// Thread-safe; held by a shared_ptr.
class StepRendezvous final : public runtime::Rendezvous, public std::enable_shared_from_this<StepRendezvous> {
 public:
  enum class Foreign : uint8_t { kAsked, kSent };
  /// `own`: the name of this task in keys. `peers` finds the others; null if there are none any more. `foreign`:
  /// whether values of other tasks are asked for, or come by Take.
  StepRendezvous(TaskName own, std::shared_ptr<const Workers> peers, uint64_t session, uint64_t step,
                 Foreign foreign = Foreign::kAsked);
  ~StepRendezvous() override;

  Status Send(std::string_view key, runtime::Message message) override;
  void RecvAsync(std::string_view key, Received received) override;
  void Abort(const Status& status) override;
  /// Before the first send and receive.
  void Link(std::shared_ptr<const StepLink> link);
  /// A value that another task has sent here; one that is neither dead nor valid may be asked for.
  Status Take(std::string_view key, runtime::Message message) { return local_.Send(key, std::move(message)); }

  /// True if no value is left for another task, and none waits for one.
  bool Empty() const { return local_.Empty() && waiting() == 0; }
  /// Receives of values of other tasks that have not ended.
  size_t waiting() const;

 private:
  /// Asks the sender, a task of `peers`.
  void Ask(const TaskName& sender, std::string_view key, Received received);
  std::shared_ptr<const StepLink> LinkTo(const TaskName& task) const;
  std::shared_ptr<const StepLink> LinkOfReceiver(std::string_view key) const;
  Status aborted() const;
  /// The task that gets a value by SendTensor; null if it asks for it.
  std::shared_ptr<Worker> ReceiverOf(std::string_view key) const;
  void Complete(uint64_t id, Result<runtime::Message> message);

  const TaskName own_;
  const std::shared_ptr<const Workers> peers_;
  const uint64_t session_, step_;
  const Foreign foreign_;
  runtime::LocalRendezvous local_;
  mutable std::mutex mutex_;  // protects all below
  std::map<uint64_t, Received> far_;
  uint64_t next_ = 0;
  std::vector<std::shared_ptr<const StepLink>> links_;
  Status aborted_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_STEP_RENDEZVOUS_H_
