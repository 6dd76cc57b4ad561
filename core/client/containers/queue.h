// Queues of tuples of tensors, which steps fill and empty.
#ifndef WEIR_CORE_CLIENT_CONTAINERS_QUEUE_H_
#define WEIR_CORE_CLIENT_CONTAINERS_QUEUE_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/ops/operand.h"

namespace weir {

/// Components of a tuple by name.
using NamedOperands = std::map<std::string, Operand>;
using NamedOutputs = std::map<std::string, Output>;

/// What is put into a queue: a value for each component, in order (`{7, {1.0, 2.0}}`) or by name; or the value of the
/// only one.
class QueueTuple {
 public:
  QueueTuple(std::initializer_list<Operand> values) : values_(values) {}
  QueueTuple(std::vector<Operand> values) : values_(std::move(values)) {}              // NOLINT
  QueueTuple(NamedOperands values) : by_name_(std::move(values)), has_names_(true) {}  // NOLINT
  template <class T>
  requires std::convertible_to<T, Operand> QueueTuple(T&& value)  // NOLINT(google-explicit-constructor)
      : values_{Operand(std::forward<T>(value))} {}
  const std::vector<Operand>& values() const { return values_; }
  const NamedOperands& by_name() const { return by_name_; }
  bool has_names() const { return has_names_; }

 private:
  std::vector<Operand> values_;
  NamedOperands by_name_;
  bool has_names_ = false;
};

/// What all queues can do. An op that puts waits for room, one that takes for elements; neither holds a thread. Once
/// the queue is closed nothing can be put, and what it holds can be taken: OutOfRange "… is closed and has insufficient
/// elements (requested 1, current size 0)". Nodes are named as TensorFlow's Python names them: `q_enqueue`,
/// `q_DequeueMany`, … Errors of building are errors of the graph, with TensorFlow's texts.
class QueueBase {
 public:
  /// The queue behind a handle. `shapes` and `names` are one for each component, or empty.
  QueueBase(const Output& handle, std::vector<DType> dtypes, std::vector<PartialShape> shapes,
            std::vector<std::string> names);

  const Output& queue_ref() const { return handle_; }
  std::string name() const { return handle_.op().name(); }
  const std::vector<DType>& dtypes() const { return dtypes_; }
  const std::vector<PartialShape>& shapes() const { return shapes_; }
  const std::vector<std::string>& names() const { return names_; }

  /// Puts one tuple.
  Operation Enqueue(const QueueTuple& values, std::string_view name = {}, Where where = Where::current()) const;
  /// Puts the slices along the first axis, one tuple after the other.
  Operation EnqueueMany(const QueueTuple& values, std::string_view name = {}, Where where = Where::current()) const;

  /// Takes one tuple.
  List<Output> Dequeue(std::string_view name = {}, Where where = Where::current()) const;
  /// Takes `n` tuples (int32 scalar), each component stacked: [n, component…].
  List<Output> DequeueMany(const Operand& n, std::string_view name = {}, Where where = Where::current()) const;
  /// As DequeueMany; of a closed queue what is left, if that is less.
  List<Output> DequeueUpTo(const Operand& n, std::string_view name = {}, Where where = Where::current()) const;
  /// The components by name; empty where the queue has no names.
  NamedOutputs Named(const List<Output>& components) const;

  /// Waits for earlier enqueues unless these are cancelled.
  Operation Close(bool cancel_pending_enqueues = false, std::string_view name = {},
                  Where where = Where::current()) const;
  Output IsClosed(std::string_view name = {}, Where where = Where::current()) const;
  Output Size(std::string_view name = {}, Where where = Where::current()) const;

 private:
  Operation Put(std::string_view op, std::string_view suffix, const QueueTuple& tuple, std::string_view name,
                const Where& where) const;
  Result<std::vector<Operand>> InOrder(const QueueTuple& tuple) const;
  Result<Output> Component(size_t i, const Operand& given, bool many) const;
  List<Output> Take(std::string_view op, std::string_view suffix, const std::vector<Operand>& count,
                    std::string_view name, const Where& where) const;
  std::string NodeName(std::string_view suffix, std::string_view name) const;

  Output handle_;
  std::vector<DType> dtypes_;
  std::vector<PartialShape> shapes_;  // as many as types
  std::vector<std::string> names_;
};

struct FIFOQueueOptions {
  std::vector<PartialShape> shapes = {};  // of the components; empty = any
  std::vector<std::string> names = {};    // of the components; empty = none
  std::string shared_name = {};           // queues of one name are one
  std::string_view name = "fifo_queue";
};

/// As FIFOQueue. Components taken together are padded at their ends, with zeros or empty strings, to the largest of
/// them: `shapes` are needed and may have unknown extents, but no unknown rank.
class PaddingFIFOQueue : public QueueBase {
 public:
  PaddingFIFOQueue(int64_t capacity, std::vector<DType> dtypes, const FIFOQueueOptions& options,
                   Where where = Where::current());
};

struct RandomShuffleQueueOptions {
  std::vector<PartialShape> shapes = {};
  std::vector<std::string> names = {};
  int64_t seed = -1;  // -1 = none of its own
  std::string shared_name = {};
  std::string_view name = "random_shuffle_queue";
};

/// A queue of at most `capacity` tuples that gives them in random order. Until it is closed, `min_after_dequeue` of
/// them stay in it.
class RandomShuffleQueue : public QueueBase {
 public:
  RandomShuffleQueue(int64_t capacity, int64_t min_after_dequeue, std::vector<DType> dtypes,
                     const RandomShuffleQueueOptions& options = {}, Where where = Where::current());
};

/// A queue of at most `capacity` tuples, first in, first out. It lives as long as the session.
class FIFOQueue : public QueueBase {
 public:
  FIFOQueue(int64_t capacity, std::vector<DType> dtypes, const FIFOQueueOptions& options = {},
            Where where = Where::current());
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTAINERS_QUEUE_H_
