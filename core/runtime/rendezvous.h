// Rendezvous: transfers tensors between the parts of one step.
#ifndef WEIR_CORE_RUNTIME_RENDEZVOUS_H_
#define WEIR_CORE_RUNTIME_RENDEZVOUS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/runtime/completion.h"
#include "core/tensor/tensor.h"

namespace weir::runtime {

/// A transferred value; `value` is invalid if dead.
struct Message {
  Tensor value;
  bool dead = false;
};

/// One per partitioned step. Messages with one key are received once each, in the order sent. Thread-safe.
class Rendezvous {
 public:
  /// Called on the thread that sends or aborts, or on the caller's if the message has already arrived.
  using Received = OneShot<Message>;

  virtual ~Rendezvous() = default;
  /// Does not block. Takes a reference to the value; its memory must not be written afterwards. After an abort returns
  /// the abort's error.
  virtual Status Send(std::string_view key, Message message) = 0;
  virtual void RecvAsync(std::string_view key, Received received) = 0;
  /// Completes all pending and later receives with the first such error.
  virtual void Abort(const Status& status) = 0;
};

/// For parts in one process: passes references without copying.
class LocalRendezvous final : public Rendezvous {
 public:
  ~LocalRendezvous() override;
  Status Send(std::string_view key, Message message) override;
  void RecvAsync(std::string_view key, Received received) override;
  void Abort(const Status& status) override;
  /// True if no message waits for a receive, and no receive for a message.
  bool Empty() const;

 private:
  struct Meeting {
    std::deque<Message> sent;  // at most one of the two is non-empty
    std::deque<Received> waiting;
  };
  mutable std::mutex mutex_;  // protects all below
  std::map<std::string, Meeting, std::less<>> meetings_;
  Status aborted_;
};

/// The prefix of a transfer's key, without the iteration: TensorFlow's "send_device;incarnation (16 hexadecimal
/// digits);recv_device;tensor_name;".
std::string TransferKey(std::string_view send_device, uint64_t incarnation, std::string_view recv_device,
                        std::string_view tensor_name);

/// A loop around a transfer with its current iteration.
struct Iteration {
  std::string_view frame;
  int64_t number = 0;
};
/// The suffix of the key for the enclosing loops, outermost first: "0:0" outside loops, else a hash of the frame (whose
/// name includes the enclosing frames and their iterations) and the iteration.
std::string IterationKey(std::span<const Iteration> loops);

/// TensorFlow's 64-bit hash of a frame name.
uint64_t FrameHash(std::string_view name);

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_RENDEZVOUS_H_
