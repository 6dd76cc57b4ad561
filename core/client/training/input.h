// Input pipelines of queues: producers of strings, numbers and slices, and batches of what threads read.
#ifndef WEIR_CORE_CLIENT_TRAINING_INPUT_H_
#define WEIR_CORE_CLIENT_TRAINING_INPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/containers/queue.h"

namespace weir {

// All builders here add a QueueRunner to the collection "queue_runners" and a summary of how full the queue is.

struct InputProducerOptions {
  std::optional<int64_t> num_epochs = {};  // so often; then OutOfRange. Counted in a local variable
  bool shuffle = true;                     // the elements of each epoch
  int64_t seed = -1;                       // of the shuffle; -1 = none of its own
  int64_t capacity = 32;
  std::string shared_name = {};
  std::string_view name = "input_producer";
};

/// `tensor` after at most `num_epochs` reads, the variable `limit_epochs/epochs`: OutOfRange "Reached limit of 2".
Output LimitEpochs(const Operand& tensor, std::optional<int64_t> num_epochs, std::string_view name = "limit_epochs",
                   Where where = Where::current());
/// A queue of the rows of a tensor.
FIFOQueue InputProducer(const Operand& input_tensor, const InputProducerOptions& options = {},
                        Where where = Where::current());
/// A queue of strings, such as names of files; InvalidArgument "string_input_producer requires a non-null input tensor"
/// for none.
FIFOQueue StringInputProducer(const Operand& string_tensor, const InputProducerOptions& options = {},
                              Where where = Where::current());
/// A queue of the numbers 0 to limit - 1 (int32).
FIFOQueue RangeInputProducer(const Operand& limit, const InputProducerOptions& options = {},
                             Where where = Where::current());
/// One slice along the first axis of each tensor: their number is that of the first one.
List<Output> SliceInputProducer(const std::vector<Operand>& tensors, const InputProducerOptions& options = {},
                                Where where = Where::current());

struct BatchOptions {
  int num_threads = 1;
  int64_t capacity = 32;
  bool enqueue_many = false;  // each tensor is a batch already
  std::vector<PartialShape> shapes = {};
  bool dynamic_pad = false;  // elements are padded to the largest of the batch
  bool allow_smaller_final_batch = false;
  std::string shared_name = {};
  std::string_view name = "batch";
};
/// Batches of tensors that threads evaluate: `batch/fifo_queue`.
List<Output> Batch(const std::vector<Operand>& tensors, const Operand& batch_size, const BatchOptions& options = {},
                   Where where = Where::current());

struct ShuffleBatchOptions {
  int64_t capacity = 32;
  int64_t min_after_dequeue = 0;
  int num_threads = 1;
  int64_t seed = -1;
  bool enqueue_many = false;
  std::vector<PartialShape> shapes = {};
  bool allow_smaller_final_batch = false;
  std::string shared_name = {};
  std::string_view name = "shuffle_batch";
};
/// The same in random order: `shuffle_batch/random_shuffle_queue`.
List<Output> ShuffleBatch(const std::vector<Operand>& tensors, const Operand& batch_size,
                          const ShuffleBatchOptions& options, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_INPUT_H_
