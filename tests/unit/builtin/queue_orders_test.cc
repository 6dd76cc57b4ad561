// Queues that shuffle, pad or sort. Values and texts are those of TensorFlow 2.17.1.
#include <algorithm>

#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class QueueOrders : public Calls {
 protected:
  Tensor Make(const std::string& op, int64_t capacity, DType type, const PartialShape& shape, op::AttrList more = {}) {
    op::AttrList attrs = {{"component_types", std::vector<DType>{type}},
                          {"shapes", std::vector<PartialShape>{shape}},
                          {"capacity", capacity}};
    attrs.insert(attrs.end(), more.begin(), more.end());
    return One(op, {}, attrs);
  }
  Tensor Shuffled(int64_t capacity = 10, int64_t kept = 2, const std::string& shared = {}) {
    return Make(
        "RandomShuffleQueueV2", capacity, DType::kInt32, Shape(),
        {{"min_after_dequeue", kept}, {"seed", int64_t{87654321}}, {"seed2", int64_t{1}}, {"shared_name", shared}});
  }
  void Put(const Tensor& queue, const std::vector<Tensor>& tuple) {
    std::vector<Tensor> inputs = {queue};
    std::vector<DType> types;
    for (const Tensor& component : tuple) types.push_back(component.dtype());
    inputs.insert(inputs.end(), tuple.begin(), tuple.end());
    const Result<std::vector<Tensor>> done = Call("QueueEnqueueV2", inputs, {{"Tcomponents", types}});
    EXPECT_TRUE(done.ok()) << done.status().ToString();
  }
  Result<std::vector<Tensor>> Take(const Tensor& queue, const std::vector<DType>& types) {
    return Call("QueueDequeueV2", {queue}, {{"component_types", types}});
  }
  Result<std::vector<Tensor>> TakeMany(const char* op, const Tensor& queue, int32_t count, DType type) {
    return Call(op, {queue, Int(count)}, {{"component_types", std::vector<DType>{type}}});
  }
  void Close(const Tensor& queue) { ASSERT_TRUE(Call("QueueCloseV2", {queue}).ok()); }
  static std::vector<int32_t> Ints(const Tensor& tensor) {
    const auto values = tensor.as<int32_t>();
    return {values.begin(), values.end()};
  }
};

TEST_F(QueueOrders, F381_ShuffledBySeed) {
  const Tensor queue = Shuffled();
  for (int32_t i = 0; i < 6; ++i) Put(queue, {Int(i)});
  for (const int32_t wanted : {3, 4, 1, 5}) {
    const Result<std::vector<Tensor>> got = Take(queue, {DType::kInt32});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[0].as<int32_t>()[0], wanted);
  }
  // Two stay until the queue is closed.
  Answer waiting;
  Start("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kInt32}}}, &waiting);
  EXPECT_FALSE(waiting.has_value());
  EXPECT_EQ(One("QueueSizeV2", {queue}).as<int32_t>()[0], 2);
  Close(queue);
  ASSERT_TRUE(waiting.has_value());
  EXPECT_TRUE(waiting->ok());
  EXPECT_TRUE(Take(queue, {DType::kInt32}).ok());
  Refused(Take(queue, {DType::kInt32}), Code::kOutOfRange,
          "is closed and has insufficient elements (requested 1, current size 0)");
  Refused(Take(queue, {DType::kInt32}), Code::kOutOfRange, "RandomShuffleQueue '_");
  Refused(Call("QueueEnqueueV2", {queue, Int(1)}, {{"Tcomponents", std::vector<DType>{DType::kInt32}}}),
          Code::kCancelled, "RandomShuffleQueue '_");
}

TEST_F(QueueOrders, F381_AllOfAClosedShuffledQueue) {
  const Tensor queue = Shuffled();
  for (int32_t i = 0; i < 6; ++i) Put(queue, {Int(i)});
  Close(queue);
  const Result<std::vector<Tensor>> got = TakeMany("QueueDequeueUpToV2", queue, 10, DType::kInt32);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(Ints((*got)[0]), (std::vector<int32_t>{3, 4, 1, 5, 2, 0}));
}

TEST_F(QueueOrders, F381_WithoutSeedsOrdersDiffer) {
  std::vector<std::vector<int32_t>> orders;
  for (int k = 0; k < 2; ++k) {
    const Tensor queue =
        Make("RandomShuffleQueueV2", -1, DType::kInt32, Shape(), {{"shared_name", "queue " + std::to_string(k)}});
    for (int32_t i = 0; i < 100; ++i) Put(queue, {Int(i)});
    Close(queue);
    orders.push_back(Ints((*TakeMany("QueueDequeueManyV2", queue, 100, DType::kInt32))[0]));
    std::vector<int32_t> sorted = orders.back();
    std::ranges::sort(sorted);
    for (int32_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST_F(QueueOrders, F381_BadAndSharedShuffledQueues) {
  const auto make = [&](int64_t capacity, int64_t kept) {
    return Call("RandomShuffleQueueV2", {},
                {{"component_types", std::vector<DType>{DType::kInt32}},
                 {"capacity", capacity},
                 {"min_after_dequeue", kept},
                 {"shared_name", std::string("sh")}});
  };
  Refused(make(2, 5), Code::kInvalidArgument, "min_after_dequeue 5 must be < capacity 2");
  Refused(make(2, -1), Code::kInvalidArgument, "min_after_dequeue -1 must be >= 0");
  ASSERT_TRUE(make(9, 2).ok());
  Refused(make(9, 3), Code::kInvalidArgument,
          "Shared queue 'sh' has min_after_dequeue 2 but requested min_after_dequeue was 3.");
  Refused(Call("FIFOQueueV2", {},
               {{"component_types", std::vector<DType>{DType::kInt32}}, {"shared_name", std::string("sh")}}),
          Code::kInvalidArgument,
          "Shared queue 'sh' has type 'RandomShuffleQueue' that does not match type of Node: FIFOQueueV2");
}

TEST_F(QueueOrders, F381_PaddedToTheLargest) {
  const Tensor queue = Make("PaddingFIFOQueueV2", 10, DType::kInt32, PartialShape{-1});
  for (const std::vector<int32_t>& row : {std::vector<int32_t>{1}, {2, 3}, {4, 5, 6}})
    Put(queue, {Tensor::Vector(row)});
  const Result<std::vector<Tensor>> got = TakeMany("QueueDequeueManyV2", queue, 3, DType::kInt32);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ((*got)[0].shape(), Shape::Of({3, 3}));
  EXPECT_EQ(Ints((*got)[0]), (std::vector<int32_t>{1, 0, 0, 2, 3, 0, 4, 5, 6}));
  Put(queue, {Tensor::Vector<int32_t>({7, 8})});
  EXPECT_EQ(Ints((*Take(queue, {DType::kInt32}))[0]), (std::vector<int32_t>{7, 8})) << "one is as it is";
  Close(queue);
  Refused(Take(queue, {DType::kInt32}), Code::kOutOfRange, " is closed and has insufficient elements");
  EXPECT_TRUE(Take(queue, {DType::kInt32}).status().message().starts_with("FIFOQueue '_"));
  EXPECT_TRUE(TakeMany("QueueDequeueManyV2", queue, 2, DType::kInt32).status().message().starts_with("PaddingFIFO"));
}

TEST_F(QueueOrders, F381_PaddedMatricesAndStrings) {
  const Tensor queue = Make("PaddingFIFOQueueV2", 10, DType::kString, PartialShape{-1, -1});
  Put(queue, {Tensor::Of(Shape::Of({1, 2}), std::vector<std::string>{"a", "b"})});
  Put(queue, {Tensor::Of(Shape::Of({2, 1}), std::vector<std::string>{"c", "d"})});
  Close(queue);
  const Result<std::vector<Tensor>> got = TakeMany("QueueDequeueUpToV2", queue, 5, DType::kString);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ((*got)[0].shape(), Shape::Of({2, 2, 2}));
  const auto texts = (*got)[0].as<std::string>();
  EXPECT_EQ(std::vector<std::string>(texts.begin(), texts.end()),
            (std::vector<std::string>{"a", "b", "", "", "c", "", "d", ""}));
  Refused(Call("PaddingFIFOQueueV2", {},
               {{"component_types", std::vector<DType>{DType::kFloat}},
                {"shapes", std::vector<PartialShape>{PartialShape()}}}),
          Code::kInvalidArgument, "must have known rank.");
}

TEST_F(QueueOrders, ThoseOfTheLeastNumberFirst) {
  const Tensor queue = Make("PriorityQueueV2", 10, DType::kString, Shape());
  for (const auto& [priority, text] : {std::pair(int64_t{5}, "five"), {1, "one"}, {3, "three"}, {1, "one too"}}) {
    Put(queue, {Tensor::Scalar(priority), Tensor::String(text)});
  }
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) {
    const Result<std::vector<Tensor>> got = Take(queue, {DType::kInt64, DType::kString});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    order.push_back((*got)[1].as<std::string>()[0]);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"one", "one too", "three", "five"}));
}

}  // namespace
}  // namespace weir::builtin
