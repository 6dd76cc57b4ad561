// Queues, whose ops wait without a thread. Texts are those of TensorFlow 2.17.1.
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/builtin/queue.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class Queues : public Calls {
 protected:
  using Outputs = Result<std::vector<Tensor>>;
  Tensor Make(int64_t capacity = 2, op::AttrList more = {}) {
    op::AttrList attrs = {{"component_types", std::vector<DType>{DType::kFloat}},
                          {"shapes", std::vector<PartialShape>{PartialShape(Shape())}},
                          {"capacity", capacity}};
    for (auto& attr : more) {
      std::erase_if(attrs, [&](const auto& one) { return one.first == attr.first; });
      attrs.push_back(attr);
    }
    return One("FIFOQueueV2", {}, attrs);
  }
  const op::AttrList kIn = {{"Tcomponents", std::vector<DType>{DType::kFloat}}};
  const op::AttrList kOut = {{"component_types", std::vector<DType>{DType::kFloat}}};

  void Enqueue(const Tensor& queue, float value, Answer* answer) {
    Start("QueueEnqueueV2", {queue, Tensor::Scalar(value)}, kIn, answer);
  }
  void Dequeue(const Tensor& queue, Answer* answer) { Start("QueueDequeueV2", {queue}, kOut, answer); }
  void DequeueMany(const Tensor& queue, int32_t count, Answer* answer, const char* op = "QueueDequeueManyV2") {
    Start(op, {queue, Int(count)}, kOut, answer);
  }
  void Close(const Tensor& queue, Answer* answer, bool cancel = false) {
    Start("QueueCloseV2", {queue}, {{"cancel_pending_enqueues", cancel}}, answer);
  }
  int32_t Size(const Tensor& queue) { return One("QueueSizeV2", {queue}).as<int32_t>()[0]; }
  void Done(const Answer& answer) {
    ASSERT_TRUE(answer.has_value());
    EXPECT_TRUE(answer->ok()) << answer->status().ToString();
  }
  void Gives(const Answer& answer, const std::vector<float>& wanted) {
    Done(answer);
    if (answer && answer->ok()) {
      EXPECT_EQ(Values((**answer)[0]), wanted);
    }
  }
  void Failed(const Answer& answer, Code code, const std::string& text) {
    ASSERT_TRUE(answer.has_value()) << text;
    Refused(*answer, code, text);
  }
  Answer a_, b_, c_, d_;
};

TEST_F(Queues, F379_FirstInFirstOutAndWaitingForRoom) {
  const Tensor queue = Make(2);
  for (Answer* answer : {&a_, &b_, &c_}) Enqueue(queue, answer == &a_ ? 1 : answer == &b_ ? 2 : 3, answer);
  Done(a_);
  Done(b_);
  EXPECT_FALSE(c_) << "the queue is full";
  Dequeue(queue, &d_);
  Gives(d_, {1});
  Done(c_);
  EXPECT_EQ(Size(queue), 2);
}

TEST_F(Queues, F379_WaitingForATuple) {
  const Tensor queue = Make();
  Dequeue(queue, &a_);
  Dequeue(queue, &b_);
  EXPECT_FALSE(a_);
  Enqueue(queue, 5, &c_);
  Done(c_);
  Gives(a_, {5});
  EXPECT_FALSE(b_) << "the first that waited comes first";
  Enqueue(queue, 6, &d_);
  Gives(b_, {6});
}

TEST_F(Queues, F379_ClosedOnesGiveWhatTheyHold) {
  const Tensor queue = Make(1);
  Enqueue(queue, 1, &a_);
  Enqueue(queue, 2, &b_);
  Close(queue, &c_);
  EXPECT_FALSE(c_) << "an enqueue still waits";
  EXPECT_FALSE(One("QueueIsClosedV2", {queue}).as<bool>()[0]);
  Dequeue(queue, &d_);
  Gives(d_, {1});
  Done(b_);
  Done(c_);
  EXPECT_TRUE(One("QueueIsClosedV2", {queue}).as<bool>()[0]);
  Answer late, left, none, again;
  Enqueue(queue, 3, &late);
  Failed(late, Code::kCancelled, "_node' is closed.");
  Dequeue(queue, &left);
  Gives(left, {2});
  Dequeue(queue, &none);
  Failed(none, Code::kOutOfRange, "' is closed and has insufficient elements (requested 1, current size 0)");
  Close(queue, &again);
  Failed(again, Code::kCancelled, "_node' is already closed.");
}

TEST_F(Queues, F379_ClosingEndsThoseWhoWait) {
  const Tensor queue = Make(1);
  Dequeue(queue, &a_);
  Close(queue, &b_);
  Done(b_);
  Failed(a_, Code::kOutOfRange, "FIFOQueue '_");
  const Tensor full = Make(1, {{"shared_name", std::string("full")}});
  Answer first;
  Enqueue(full, 1, &first);
  Enqueue(full, 2, &c_);
  Close(full, &d_, true);
  Done(d_);
  Failed(c_, Code::kCancelled, "Enqueue operation was cancelled");
  EXPECT_EQ(Size(full), 1);
}

TEST_F(Queues, F380_SeveralTuplesAtOnce) {
  const Tensor queue = Make(10);
  Start("QueueEnqueueManyV2", {queue, Floats({1, 2, 3})}, kIn, &a_);
  Done(a_);
  DequeueMany(queue, 2, &b_);
  Gives(b_, {1, 2});
  DequeueMany(queue, 5, &c_, "QueueDequeueUpToV2");
  EXPECT_FALSE(c_) << "waits until the queue is closed";
  Close(queue, &d_);
  Gives(c_, {3});
  Answer none;
  DequeueMany(queue, 0, &none);
  Gives(none, {});
}

TEST_F(Queues, F380_MoreThanTheCapacityComesBitByBit) {
  const Tensor queue = Make(1);
  Start("QueueEnqueueManyV2", {queue, Floats({1, 2, 3})}, kIn, &a_);
  EXPECT_FALSE(a_);
  EXPECT_EQ(Size(queue), 1);
  DequeueMany(queue, 3, &b_);
  Done(a_);
  Gives(b_, {1, 2, 3});
}

TEST_F(Queues, F380_WhatIsTooFewStaysInAClosedQueue) {
  const Tensor queue = Make(10);
  Enqueue(queue, 1, &a_);
  DequeueMany(queue, 2, &b_);
  EXPECT_FALSE(b_);
  Close(queue, &c_);
  Failed(b_, Code::kOutOfRange, "' is closed and has insufficient elements (requested 2, current size 1)");
  EXPECT_EQ(Size(queue), 1);
}

TEST_F(Queues, F362_CancelledOnesLoseNothing) {
  const Tensor queue = Make(10);
  Enqueue(queue, 1, &a_);
  DequeueMany(queue, 2, &b_);
  EXPECT_FALSE(b_);
  EXPECT_EQ(Size(queue), 0);
  cancellation_.Cancel(DeadlineExceeded("too late"));
  Failed(b_, Code::kDeadlineExceeded, "too late");
  EXPECT_EQ(Size(queue), 1);
  Dequeue(queue, &c_);
  Failed(c_, Code::kDeadlineExceeded, "too late");
}

TEST_F(Queues, CancelledWhileTheyServeOthersTheyComplete) {
  constexpr int kRounds = 2000;
  std::vector<runtime::Cancellation> steps(kRounds);
  std::atomic<int> begun{-1}, ended{-1};
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      while (begun < round) std::this_thread::yield();
      for (int i = 0; i < round % 100; ++i) (void)begun.load();  // at another point each time
      steps[static_cast<size_t>(round)].Cancel(Cancelled("now"));
      ended = round;
    }
  });
  int waiting = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto queue = std::make_shared<FifoQueue>("queue", FifoQueue::Options{{DType::kFloat}, {}, 1});
    int reader = 0, writer = 0;
    queue->Dequeue(1, false, FifoQueue::Leftover::kError, nullptr,
                   runtime::Completion([&](const Result<std::vector<Tensor>>&) { ++reader; }));
    std::vector<FifoQueue::Tuple> tuples(5, FifoQueue::Tuple{Tensor::Scalar<float>(1)});
    begun = round;
    queue->Enqueue(std::move(tuples), &steps[static_cast<size_t>(round)],
                   runtime::Completion([&](const Result<std::vector<Tensor>>&) { ++writer; }));
    while (ended < round) std::this_thread::yield();
    waiting += 1 - writer;
    queue.reset();
    EXPECT_EQ(reader + writer, 2);
  }
  other.join();
  EXPECT_EQ(waiting, 0) << "cancelled writers that would wait for ever";
}

TEST_F(Queues, EndWithTheirScope) {
  const Tensor queue = Make();
  Dequeue(queue, &a_);
  scope_.Clear();
  Failed(a_, Code::kCancelled, "was destroyed");
  Dequeue(queue, &b_);
  Failed(b_, Code::kNotFound, "/N10tensorflow14QueueInterfaceE does not exist.");
}

TEST_F(Queues, ElementsOfWrongTypesOrShapesAreRefused) {
  const Tensor queue = Make();
  Start("QueueEnqueueV2", {queue, Floats({1, 2})}, kIn, &a_);
  Failed(a_, Code::kInvalidArgument, "Shape mismatch in tuple component 0. Expected [], got [2]");
  Start("QueueEnqueueV2", {queue, Int(1)}, {{"Tcomponents", std::vector<DType>{DType::kInt32}}}, &b_);
  Failed(b_, Code::kInvalidArgument, "float");
  DequeueMany(queue, -1, &c_);
  Failed(c_, Code::kInvalidArgument, "-1");
  const Tensor shapeless = Make(2, {{"shapes", std::vector<PartialShape>()}, {"shared_name", std::string("any")}});
  DequeueMany(shapeless, 1, &d_);
  Failed(d_, Code::kInvalidArgument,
         "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.");
}

TEST_F(Queues, F380_SharedOnesAgree) {
  const op::AttrList shared = {{"shared_name", std::string("sh")}};
  EXPECT_TRUE(Make(2, shared).SameBits(Make(2, shared)));
  const auto other = [&](const op::AttrList& more) {
    op::AttrList attrs = {{"component_types", std::vector<DType>{DType::kFloat}},
                          {"shapes", std::vector<PartialShape>{PartialShape(Shape())}},
                          {"capacity", int64_t{2}},
                          {"shared_name", std::string("sh")}};
    for (const auto& attr : more) {
      std::erase_if(attrs, [&](const auto& one) { return one.first == attr.first; });
      attrs.push_back(attr);
    }
    return Call("FIFOQueueV2", {}, attrs);
  };
  Refused(other({{"capacity", int64_t{3}}}), Code::kInvalidArgument,
          "Shared queue 'sh' has capacity 2 but requested capacity was 3");
  Refused(other({{"component_types", std::vector<DType>{DType::kInt32}}}), Code::kInvalidArgument,
          "Shared queue 'sh' has component types float but requested component types were int32");
  Refused(other({{"shapes", std::vector<PartialShape>{PartialShape{3}}}}), Code::kInvalidArgument,
          "Shared queue 'sh' has component shapes [[]] but requested component shapes were [[3]]");
  Refused(other({{"shared_name", std::string("_x")}}), Code::kInvalidArgument, "shared_name cannot start with '_':_x");
}

}  // namespace
}  // namespace weir::builtin
