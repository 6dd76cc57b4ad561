// Barriers: what tests/ops/sequences does not say.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/builtin/barrier.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class Barriers : public Calls {
 protected:
  Tensor Make(std::vector<DType> types = {DType::kFloat, DType::kFloat}) {
    const std::vector<PartialShape> shapes(types.size(), PartialShape(Shape()));
    return One("Barrier", {}, {{"component_types", std::move(types)}, {"shapes", shapes}});
  }
  Result<std::vector<Tensor>> Insert(const Tensor& barrier, int64_t component, const std::vector<std::string>& keys,
                                     const Tensor& values) {
    return Call("BarrierInsertMany", {barrier, Tensor::Vector(keys), values},
                {{"T", values.dtype()}, {"component_index", component}});
  }
  void Take(const Tensor& barrier, int32_t count, Answer* answer, bool small = false) {
    const op::AttrList attrs = {{"component_types", types_}, {"allow_small_batch", small}};
    Start("BarrierTakeMany", {barrier, Int(count)}, attrs, answer);
  }
  void Close(const Tensor& barrier, bool cancel = false) {
    EXPECT_TRUE(Call("BarrierClose", {barrier}, {{"cancel_pending_enqueues", cancel}}).ok());
  }
  int32_t Ready(const Tensor& barrier) { return One("BarrierReadySize", {barrier}).as<int32_t>()[0]; }
  const std::vector<DType> types_ = {DType::kFloat, DType::kFloat};
};

TEST_F(Barriers, CancelledTakesLoseNothing) {
  const Tensor barrier = Make();
  EXPECT_TRUE(Insert(barrier, 0, {"x", "y"}, Floats({1, 2})).ok());
  EXPECT_TRUE(Insert(barrier, 1, {"x"}, Floats({3})).ok());
  Answer waits;
  Take(barrier, 2, &waits);
  EXPECT_FALSE(waits);
  cancellation_.Cancel(DeadlineExceeded("too late"));
  ASSERT_TRUE(waits);
  Refused(*waits, Code::kDeadlineExceeded, "too late");
  EXPECT_EQ(Ready(barrier), 1);
}

TEST_F(Barriers, EndWithTheirScope) {
  const Tensor barrier = Make();
  Answer waits;
  Take(barrier, 1, &waits);
  scope_.Clear();
  ASSERT_TRUE(waits);
  Refused(*waits, Code::kCancelled, "_queue' was destroyed");
  Refused(Insert(barrier, 0, {"x"}, Floats({1})), Code::kNotFound, "does not exist");
}

/// TensorFlow ends its process, or waits for ever.
TEST_F(Barriers, NegativeNumbersAreRefused) {
  const Tensor barrier = Make();
  Refused(Insert(barrier, -1, {"x"}, Floats({1})), Code::kInvalidArgument, "The component ID is out of range -1");
  Answer answer;
  Take(barrier, -1, &answer);
  ASSERT_TRUE(answer);
  Refused(*answer, Code::kInvalidArgument, "BarrierTakeMany requested -1 < 0 elements");
}

/// TensorFlow sees the shape when the tuple is whole, and loses the tuple.
TEST_F(Barriers, AWrongShapeIsRefusedWhereItComes) {
  const Tensor barrier = Make();
  Refused(Insert(barrier, 0, {"x"}, Tensor::Of(Shape::Of({1, 2}), std::vector<float>{1, 2})), Code::kInvalidArgument,
          "Shape mismatch in tuple component 2. Expected [], got [2]");
  EXPECT_TRUE(Insert(barrier, 0, {"x"}, Floats({1})).ok());
  EXPECT_TRUE(Insert(barrier, 1, {"x"}, Floats({2})).ok());
  EXPECT_EQ(Ready(barrier), 1);
}

/// TensorFlow gives OutOfRange and loses the tuple.
TEST_F(Barriers, ASmallBatchThatWaitsGetsWhatThereIsAtTheClose) {
  const Tensor barrier = Make();
  EXPECT_TRUE(Insert(barrier, 0, {"x"}, Floats({1})).ok());
  EXPECT_TRUE(Insert(barrier, 1, {"x"}, Floats({3})).ok());
  Answer small, all;
  Take(barrier, 2, &small, true);
  EXPECT_FALSE(small);
  Close(barrier, true);
  ASSERT_TRUE(small);
  ASSERT_TRUE(small->ok()) << small->status().ToString();
  EXPECT_EQ(Values((**small)[2]), std::vector<float>{1});
  Take(barrier, 1, &all, true);
  ASSERT_TRUE(all);
  Refused(*all, Code::kOutOfRange, "is closed and has insufficient elements (requested 0, total size 0)");
}

/// TensorFlow lets the take wait for ever.
TEST_F(Barriers, ATakeOfMoreThanWillComeEndsWithTheLastTuple) {
  const Tensor barrier = Make();
  EXPECT_TRUE(Insert(barrier, 0, {"x"}, Floats({1})).ok());
  Answer waits;
  Take(barrier, 2, &waits);
  Close(barrier);
  EXPECT_FALSE(waits) << "a tuple can still be made whole";
  EXPECT_TRUE(Insert(barrier, 1, {"x"}, Floats({3})).ok());
  ASSERT_TRUE(waits);
  Refused(*waits, Code::kOutOfRange, "is closed and has insufficient elements (requested 2, current size 1)");
}

TEST_F(Barriers, KeysBeforeOneThatIsRefusedHaveTheirRows) {
  const Tensor barrier = Make();
  EXPECT_TRUE(Insert(barrier, 0, {"x", "y"}, Floats({1, 2})).ok());
  Close(barrier);
  Refused(Insert(barrier, 1, {"y", "new", "x"}, Floats({3, 4, 5})), Code::kCancelled,
          "but attempted to insert a brand new key: new");
  EXPECT_EQ(Ready(barrier), 1);
  EXPECT_EQ(One("BarrierIncompleteSize", {barrier}).as<int32_t>()[0], 1);
}

TEST_F(Barriers, NoTupleIsLostBetweenThreads) {
  constexpr int kKeys = 200;
  const auto barrier = std::make_shared<Barrier>(
      "b", "", Barrier::Options{types_, std::vector<PartialShape>(2, PartialShape(Shape()))});
  std::atomic<int> taken{0}, over{0};
  for (int i = 0; i < kKeys / 2; ++i) {
    barrier->Take(2, Barrier::Batch::kAllOrNone, nullptr,
                  runtime::Completion([&](const Result<std::vector<Tensor>>& got) { ++(got.ok() ? taken : over); }));
  }
  std::vector<std::thread> threads;
  for (const int64_t component : {0, 1}) {
    threads.emplace_back([&, component] {
      for (int i = 0; i < kKeys; ++i) {
        const std::vector<std::string> key = {std::to_string(component == 0 ? i : kKeys - 1 - i)};
        EXPECT_TRUE(barrier->Insert(key, component, Tensor::Vector<float>({1})).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(barrier->Close(Barrier::Pending::kFinish).ok());
  EXPECT_EQ(taken, kKeys / 2);
  EXPECT_EQ(over, 0);
  EXPECT_EQ(barrier->ready_size() + barrier->incomplete_size(), 0);
}

}  // namespace
}  // namespace weir::builtin
