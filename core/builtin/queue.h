// Queues of tuples. Waiting ops hold no thread.
#ifndef WEIR_CORE_BUILTIN_QUEUE_H_
#define WEIR_CORE_BUILTIN_QUEUE_H_

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/builtin/draws.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// The order in which a queue gives its elements.
enum class QueueOrder : uint8_t {
  kFifo,
  kPadded,    // first in, first out; tuples taken together are padded to one shape
  kShuffled,  // at random, with min_after_dequeue left until the queue is closed
  kPriority   // the least first component, an int64, first
};
/// The name of TensorFlow's queue: "FIFOQueue".
std::string_view Name(QueueOrder order);

/// TensorFlow's queues: FIFO order among waiters. Errors have TensorFlow's texts.
///
/// An enqueue without room and a dequeue without enough elements wait in the queue and complete on the thread of the op
/// that serves them. If the step of a waiter is cancelled, it completes with the cancellation's error; tuples that a
/// dequeue has already taken return to the head of the queue.
class FifoQueue final : public Resource, public std::enable_shared_from_this<FifoQueue> {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::QueueInterface";
  using Tuple = std::vector<Tensor>;

  struct Options {
    std::vector<DType> types;
    std::vector<PartialShape> shapes = {};  // by component; empty: any
    int32_t capacity = -1;                  // in tuples; negative: unlimited
    QueueOrder order = QueueOrder::kFifo;
    int32_t min_after_dequeue = 0;
    int64_t seed = 0, seed2 = 0;  // of kShuffled; both 0: another order each time
    bool operator==(const Options&) const = default;
  };
  /// How errors name the queue: by its number and the name of its node, or by that name alone.
  enum class NamedBy : uint8_t { kNumberAndNode, kNameAlone };
  FifoQueue(std::string name, Options options, NamedBy named_by = NamedBy::kNumberAndNode);
  ~FifoQueue() override;

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  uint64_t MemoryBytes() const override;

  const Options& options() const { return options_; }
  /// The name in error messages: "_3_q".
  std::string name() const;
  int64_t size() const;
  bool closed() const;

  /// `cancellation` may be null; otherwise it must outlive the completion.
  void Enqueue(std::vector<Tuple> tuples, runtime::Cancellation* cancellation, runtime::Completion done);
  enum class Leftover { kError, kTake };  // for a closed queue with fewer tuples than requested
  /// Dequeues `count` tuples. Stacks each component along a new first axis; if `stack` is false, returns a single tuple
  /// as it is.
  void Dequeue(int64_t count, bool stack, Leftover leftover, runtime::Cancellation* cancellation,
               runtime::Completion done);
  /// kFinish: closes after all pending enqueues. kCancel: fails them.
  enum class Pending { kFinish, kCancel };
  void Close(Pending pending, runtime::Cancellation* cancellation, runtime::Completion done);

 protected:
  void Clear() override;

 private:
  enum class Kind { kEnqueue, kClose, kDequeue };
  struct Waiter;
  using WaiterPtr = std::shared_ptr<Waiter>;
  struct Finished {
    WaiterPtr waiter;
    Result<std::vector<Tensor>> result;
  };

  void Wait(const WaiterPtr& waiter, runtime::Cancellation* cancellation);
  /// Completes a waiter of a cancelled step unless it was served before.
  void CancelWaiter(const Waiter* waiter, const runtime::Cancellation& cancellation);
  /// Runs the completions; call without the lock.
  static void Complete(std::vector<Finished> finished);

  // The functions below run under the lock.
  /// Serves waiters until none can make progress.
  void Serve(std::vector<Finished>* finished);
  bool ServeWriter(std::vector<Finished>* finished);
  bool ServeReader(std::vector<Finished>* finished);
  void PutBack(Waiter& waiter);
  bool Full() const { return options_.capacity >= 0 && tuples_.size() >= static_cast<size_t>(options_.capacity); }
  Status Closed() const;
  /// How many tuples readers may take.
  size_t Available() const;
  void Push(Tuple tuple);
  /// The next tuple; there is one.
  Tuple Pop();
  Result<std::vector<Tensor>> Stack(std::vector<Tuple> tuples) const;

  const std::string node_;
  const NamedBy named_by_;
  const Options options_;
  mutable std::mutex mutex_;  // protects all below
  std::deque<Tuple> tuples_;
  std::list<WaiterPtr> writers_;  // enqueues and closes in FIFO order
  std::list<WaiterPtr> readers_;
  bool closed_ = false;
  Draws draws_;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_QUEUE_H_
