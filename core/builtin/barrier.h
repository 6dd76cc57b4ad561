// Barriers: tuples gathered by key. Waiting ops hold no thread.
#ifndef WEIR_CORE_BUILTIN_BARRIER_H_
#define WEIR_CORE_BUILTIN_BARRIER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/builtin/queue.h"

namespace weir::builtin {

/// TensorFlow's barrier: the components of a tuple come one by one under a key. A tuple that is whole enters a priority
/// queue, in the order in which the keys came first, and the key may come again. Texts of errors are TensorFlow's.
/// Thread-safe.
///
/// After a close no new keys are taken. What takes wait for comes until all tuples are whole; then, or at once if the
/// close cancels, which drops tuples that are not, takes of more than there is end with OutOfRange.
class Barrier final : public Resource, public std::enable_shared_from_this<Barrier> {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::barrier::Barrier";

  struct Options {
    std::vector<DType> types;
    std::vector<PartialShape> shapes;  // as many, fully known
    bool operator==(const Options&) const = default;
  };
  /// `shared_name`: empty if the barrier belongs to the node `node`.
  Barrier(std::string_view node, std::string_view shared_name, Options options);
  ~Barrier() override { Clear(); }

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  uint64_t MemoryBytes() const override;
  const Options& options() const { return options_; }

  /// Gives the tuple of `keys[i]` row i of `values`, which is of the component's type, as component number `component`.
  /// The rows are kept and may share memory with `values`. Keys before one that is refused have their rows.
  Status Insert(std::span<const std::string> keys, int64_t component, const Tensor& values);
  /// kAllOrNone: waits for `count` tuples. kWhatThereIs: of a closed barrier fewer, but not none.
  enum class Batch : uint8_t { kAllOrNone, kWhatThereIs };
  /// Completes with the indices (when the key came first), the keys and the components, each stacked along a new first
  /// axis. `cancellation` may be null; otherwise it must outlive the completion.
  void Take(int64_t count, Batch batch, runtime::Cancellation* cancellation, runtime::Completion done);
  enum class Pending : uint8_t { kFinish, kDrop };
  Status Close(Pending pending);
  int64_t ready_size() const { return queue_->size(); }
  int64_t incomplete_size() const;

 protected:
  void Clear() override;

 private:
  struct Entry {
    int64_t index = 0;
    std::vector<Tensor> components;  // invalid until they come
  };
  // Under the mutex.
  Status InsertOne(const std::string& key, size_t row, int64_t component, const Tensor& values, bool* new_key,
                   std::vector<FifoQueue::Tuple>* ready);
  /// True if this call has to close the queue.
  bool QueueIsOver();
  /// Without the mutex.
  void CloseQueue();

  const Options options_;
  const std::string name_;
  const std::shared_ptr<FifoQueue> queue_;  // of index, key and components
  mutable std::mutex mutex_;                // protects all below
  std::map<std::string, Entry> incomplete_;
  int64_t next_index_ = std::numeric_limits<int64_t>::min();
  int64_t entering_ = 0;  // tuples on their way into the queue
  bool closed_ = false, dropped_ = false, queue_closed_ = false;
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_BARRIER_H_
