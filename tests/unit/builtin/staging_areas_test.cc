// Staging areas: what tests/ops/sequences does not say.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/builtin/staging_area.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class StagingAreas : public Calls {
 protected:
  static op::AttrList Area(std::vector<DType> types = {DType::kFloat}, int64_t capacity = 0, int64_t memory = 0) {
    return {{"dtypes", std::move(types)},
            {"capacity", capacity},
            {"memory_limit", memory},
            {"shared_name", std::string("area")}};
  }
  static op::AttrList Parts(std::vector<DType> given, std::vector<DType> whole = {DType::kFloat, DType::kFloat},
                            int64_t memory = 0) {
    op::AttrList attrs = Area(std::move(whole), 0, memory);
    attrs.emplace_back("fake_dtypes", std::move(given));
    return attrs;
  }
  static Tensor Key(int64_t key) { return Tensor::Scalar(key); }
  static Tensor Indices(const std::vector<int32_t>& indices) { return Tensor::Vector(indices); }
  int32_t Size(const std::string& op = "StageSize") { return One(op, {}, Area()).as<int32_t>()[0]; }
};

TEST_F(StagingAreas, CancelledOnesLoseNothing) {
  const op::AttrList small = Area({DType::kFloat}, 1);
  EXPECT_TRUE(Call("Stage", {Floats({1})}, small).ok());
  Answer put, peek;
  Start("Stage", {Floats({2})}, small, &put);
  Start("StagePeek", {Int(1)}, small, &peek);
  EXPECT_FALSE(put);
  EXPECT_FALSE(peek);
  cancellation_.Cancel(DeadlineExceeded("too late"));
  for (const Answer* answer : {&put, &peek}) {
    ASSERT_TRUE(*answer);
    Refused(**answer, Code::kDeadlineExceeded, "too late");
  }
  EXPECT_EQ(Size(), 1);
}

TEST_F(StagingAreas, EndWithTheirScope) {
  Answer take, map_take;
  Start("Unstage", {}, Area(), &take);
  Start("MapUnstage", {Key(1), Indices({0})}, Area(), &map_take);
  scope_.Clear();
  for (const Answer* answer : {&take, &map_take}) {
    ASSERT_TRUE(*answer);
    Refused(**answer, Code::kCancelled, "was destroyed");
  }
  EXPECT_EQ(Size(), 0) << "a new area";
}

/// TensorFlow drops the tuple.
TEST_F(StagingAreas, ATupleThatIsTakenAsAnotherStays) {
  EXPECT_TRUE(Call("Stage", {Floats({1})}, Area()).ok());
  Refused(Call("Unstage", {}, Area({DType::kFloat, DType::kFloat})), Code::kInvalidArgument,
          "Mismatch stage/unstage: 1 vs. 2");
  Refused(Call("Unstage", {}, Area({DType::kInt32})), Code::kInvalidArgument,
          "component 0 of a staged tuple is float, wanted int32");
  Refused(Call("StagePeek", {Int(-1)}, Area()), Code::kInvalidArgument, "index -1 of a staged tuple is negative");
  EXPECT_EQ(Size(), 1);
}

/// TensorFlow ends its process, or takes the components before the wrong one.
TEST_F(StagingAreas, WrongPartsTakeNothing) {
  const std::vector<DType> both = {DType::kFloat, DType::kFloat};
  EXPECT_TRUE(Call("MapStage", {Key(1), Indices({0, 1}), Floats({1}), Floats({2})}, Parts(both)).ok());
  const auto take = [&](const std::vector<int32_t>& indices, std::vector<DType> types) {
    return Call("MapUnstage", {Key(1), Indices(indices)}, Area(std::move(types)));
  };
  Refused(take({0, 2}, {DType::kFloat, DType::kFloat}), Code::kInvalidArgument,
          "Index '2' for key '1' was out of bounds '2'.");
  Refused(take({0, -1}, {DType::kFloat, DType::kFloat}), Code::kInvalidArgument, "Indices are not strictly ordered");
  Refused(take({0, 1}, {DType::kFloat}), Code::kInvalidArgument, "Mismatch stage/unstage: 2 vs. 1");
  Refused(take({0}, {DType::kInt32}), Code::kInvalidArgument, "is float, wanted int32");
  Refused(take({}, {DType::kFloat}), Code::kInvalidArgument, "Indices are empty");
  Refused(Call("MapUnstage", {Tensor::Vector<int64_t>({}), Indices({0})}, Area()), Code::kInvalidArgument,
          "key must be an int64 scalar: [0]");
  Refused(Call("MapStage", {Key(2), Indices({0}), Int(1)}, Parts({DType::kInt32})), Code::kInvalidArgument,
          "the value for index '0' of key '2' is int32, wanted float");
  Refused(Call("MapStage", {Key(2), Indices({0, 1}), Floats({1})}, Parts({DType::kFloat})), Code::kInvalidArgument,
          "1 values for key '2' have 2 indices");
  EXPECT_TRUE(take({0, 1}, {DType::kFloat, DType::kFloat}).ok());
}

/// In TensorFlow a peek frees the memory of what stays.
TEST_F(StagingAreas, APeekMakesNoRoom) {
  const op::AttrList limited = Parts({DType::kFloat}, {DType::kFloat}, 4);
  EXPECT_TRUE(Call("MapStage", {Key(1), Indices({0}), Floats({1})}, limited).ok());
  EXPECT_TRUE(Call("MapPeek", {Key(1), Indices({0})}, Area({DType::kFloat}, 0, 4)).ok());
  Answer put;
  Start("MapStage", {Key(2), Indices({0}), Floats({1})}, limited, &put);
  EXPECT_FALSE(put);
  EXPECT_TRUE(Call("MapUnstage", {Key(1), Indices({0})}, Area({DType::kFloat}, 0, 4)).ok());
  EXPECT_TRUE(put);
}

/// In TensorFlow the put that waits writes to what was dropped.
TEST_F(StagingAreas, APartThatWaitsWhileAllIsDroppedBeginsANewTuple) {
  const op::AttrList limited = Parts({DType::kFloat}, {DType::kFloat, DType::kFloat}, 8);
  EXPECT_TRUE(Call("MapStage", {Key(2), Indices({0}), Floats({1, 2})}, limited).ok());
  Answer put;
  Start("MapStage", {Key(2), Indices({1}), Floats({1})}, limited, &put);
  EXPECT_FALSE(put);
  EXPECT_TRUE(Call("MapClear", {}, Area()).ok());
  ASSERT_TRUE(put);
  EXPECT_TRUE(put->ok());
  EXPECT_EQ(Size("MapIncompleteSize"), 1);
  EXPECT_EQ(Size("MapSize"), 0);
}

TEST_F(StagingAreas, TheFirstOpThatRunsSaysTheLimits) {
  EXPECT_TRUE(Call("Stage", {Floats({1})}, Area({DType::kFloat}, 1)).ok());
  Answer put;
  Start("Stage", {Floats({2})}, Area({DType::kFloat}, 7), &put);
  EXPECT_FALSE(put) << "the area has room for one";
  EXPECT_TRUE(Call("StageClear", {}, Area()).ok());
  EXPECT_TRUE(put);
}

TEST_F(StagingAreas, NothingIsLostBetweenThreads) {
  constexpr int kTuples = 300;
  const auto area = std::make_shared<StagingArea>(StagingLimits{2, 0});
  std::atomic<int> put{0};
  std::atomic<int64_t> sum{0};
  const auto puts = [&] {
    for (int i = 1; i <= kTuples; ++i) {
      area->Put({Tensor::Scalar(i)}, nullptr, runtime::Completion([&](const Result<std::vector<Tensor>>& done) {
                  put += done.ok() ? 1 : 0;
                }));
    }
  };
  const auto takes = [&] {
    for (int i = 1; i <= kTuples; ++i) {
      area->Take({DType::kInt32}, nullptr, runtime::Completion([&](const Result<std::vector<Tensor>>& got) {
                   if (got.ok()) sum += (*got)[0].as<int32_t>()[0];
                 }));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(puts);
    threads.emplace_back(takes);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(put, 2 * kTuples);
  EXPECT_EQ(sum, int64_t{kTuples} * (kTuples + 1));
  EXPECT_EQ(area->size(), 0);
}

}  // namespace
}  // namespace weir::builtin
