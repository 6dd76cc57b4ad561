// Accumulators of gradients. Values and texts are those of TensorFlow 2.17.1.
#include <atomic>
#include <future>
#include <thread>

#include "core/tensor/number.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

class Accumulators : public Calls {
 protected:
  static op::AttrList Typed(DType dtype = DType::kFloat) { return {{"dtype", dtype}}; }
  Tensor Make(const PartialShape& shape, const std::string& reduction = "MEAN", const std::string& shared = {}) {
    return One("ResourceConditionalAccumulator", {},
               {{"dtype", DType::kFloat}, {"shape", shape}, {"reduction_type", reduction}, {"shared_name", shared}});
  }
  Result<std::vector<Tensor>> Apply(const Tensor& handle, int64_t step, const Tensor& gradient) {
    return Call("ResourceAccumulatorApplyGradient", {handle, Tensor::Scalar(step), gradient}, Typed());
  }
  Result<std::vector<Tensor>> Take(const Tensor& handle, int32_t required) {
    return Call("ResourceAccumulatorTakeGradient", {handle, Int(required)}, Typed());
  }
  int32_t Count(const Tensor& handle) { return One("ResourceAccumulatorNumAccumulated", {handle}).as<int32_t>()[0]; }
  void SetStep(const Tensor& handle, int64_t step) {
    EXPECT_TRUE(Call("ResourceAccumulatorSetGlobalStep", {handle, Tensor::Scalar(step)}).ok());
  }

  Tensor MakeSparse(const PartialShape& shape, const std::string& reduction = "MEAN") {
    return One("SparseConditionalAccumulator", {},
               {{"dtype", DType::kFloat},
                {"shape", shape},
                {"reduction_type", reduction},
                {"shared_name", "of " + shape.ToString()}});
  }
  Result<std::vector<Tensor>> ApplyRows(const Tensor& handle, const std::vector<int64_t>& indices, const Tensor& values,
                                        const std::vector<int64_t>& shape = {}) {
    return Call("SparseAccumulatorApplyGradient",
                {handle, Tensor::Scalar<int64_t>(100), Tensor::Vector(indices), values, Tensor::Vector(shape)},
                {{"dtype", DType::kFloat}, {"has_known_shape", !shape.empty()}});
  }
  Result<std::vector<Tensor>> TakeRows(const Tensor& handle, int32_t required) {
    return Call("SparseAccumulatorTakeGradient", {handle, Int(required)}, Typed());
  }
  static std::vector<int64_t> Longs(const Tensor& tensor) {
    const auto values = tensor.as<int64_t>();
    return {values.begin(), values.end()};
  }
  static Tensor Rows(const std::vector<float>& values, int64_t width = 1) {
    return Tensor::Of(Shape::Of({static_cast<int64_t>(values.size()) / width, width}), values);
  }
};

TEST_F(Accumulators, F199_MeanAndSumOfAllGradients) {
  for (const auto& [reduction, wanted] : {std::pair("MEAN", 2.0f), {"SUM", 6.0f}}) {
    const Tensor handle = Make(Shape(), reduction, reduction);
    for (const float value : {1.0f, 2.0f, 3.0f}) EXPECT_TRUE(Apply(handle, 0, Tensor::Scalar(value)).ok());
    EXPECT_EQ(Count(handle), 3);
    // The mean is that of all three, also when fewer are required.
    const Result<std::vector<Tensor>> taken = Take(handle, 2);
    ASSERT_TRUE(taken.ok()) << taken.status().ToString();
    EXPECT_EQ(Values((*taken)[0]), std::vector<float>{wanted});
    EXPECT_EQ(Count(handle), 0);
  }
}

TEST_F(Accumulators, F199_EveryTypeThatTensorFlowHas) {
  const std::vector<std::pair<Tensor, Tensor>> pairs = {{Tensor::Scalar<double>(3), Tensor::Scalar<double>(4)},
                                                        {*ScalarFrom(DType::kHalf, 3), *ScalarFrom(DType::kHalf, 4)}};
  for (const auto& [a, b] : pairs) {
    const DType dtype = a.dtype();
    const Tensor handle =
        One("ResourceConditionalAccumulator", {},
            {{"dtype", dtype}, {"shape", PartialShape(Shape())}, {"shared_name", std::string(Name(dtype))}});
    for (const Tensor& gradient : {a, b}) {
      EXPECT_TRUE(
          Call("ResourceAccumulatorApplyGradient", {handle, Tensor::Scalar<int64_t>(0), gradient}, Typed(dtype)).ok());
    }
    const Tensor mean = One("ResourceAccumulatorTakeGradient", {handle, Int(2)}, Typed(dtype));
    EXPECT_EQ(ElementAsDouble(mean, 0), 3.5);
  }
  Refused(Call("ResourceConditionalAccumulator", {}, {{"dtype", DType::kInt32}, {"shape", PartialShape(Shape())}}),
          Code::kInvalidArgument, "takes half, float or double, got int32");
}

TEST_F(Accumulators, F199_StaleGradientsAreDropped) {
  const Tensor handle = Make(Shape());
  EXPECT_TRUE(Apply(handle, 0, Tensor::Scalar(1.0f)).ok());
  EXPECT_TRUE(Take(handle, 1).ok());  // counts its step: 1
  EXPECT_TRUE(Apply(handle, 0, Tensor::Scalar(1.0f)).ok());
  EXPECT_EQ(Count(handle), 0);
  EXPECT_TRUE(Apply(handle, 1, Tensor::Scalar(5.0f)).ok());
  EXPECT_EQ(Count(handle), 1);
  SetStep(handle, 5);
  EXPECT_TRUE(Apply(handle, 4, Tensor::Scalar(9.0f)).ok());
  EXPECT_EQ(Count(handle), 1);
  const Result<std::vector<Tensor>> taken = Take(handle, 1);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(Values((*taken)[0]), std::vector<float>{5});
  SetStep(handle, 0);  // back
  EXPECT_TRUE(Apply(handle, 0, Tensor::Scalar(1.0f)).ok());
  EXPECT_EQ(Count(handle), 1);
}

TEST_F(Accumulators, F199_ATakeWaitsForEnough) {
  const Tensor handle = Make(Shape());
  Answer first, second;
  Start("ResourceAccumulatorTakeGradient", {handle, Int(2)}, Typed(), &first);
  Start("ResourceAccumulatorTakeGradient", {handle, Int(1)}, Typed(), &second);
  EXPECT_TRUE(Apply(handle, 0, Tensor::Scalar(1.0f)).ok());
  EXPECT_FALSE(first.has_value());
  EXPECT_FALSE(second.has_value()) << "first come, first served";
  EXPECT_TRUE(Apply(handle, 0, Tensor::Scalar(3.0f)).ok());
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(first->ok());
  EXPECT_EQ(Values((**first)[0]), std::vector<float>{2});
  EXPECT_FALSE(second.has_value());
  EXPECT_TRUE(Apply(handle, 1, Tensor::Scalar(7.0f)).ok());
  ASSERT_TRUE(second.has_value());
  ASSERT_TRUE(second->ok());
  EXPECT_EQ(Values((**second)[0]), std::vector<float>{7});
}

TEST_F(Accumulators, F199_WaitingTakesEndByCancellationAndDestruction) {
  const Tensor handle = Make(Shape(), "MEAN", "shared");
  Answer ends;
  Start("ResourceAccumulatorTakeGradient", {handle, Int(1)}, Typed(), &ends);
  EXPECT_TRUE(Call("DestroyResourceOp", {handle}).ok());
  ASSERT_TRUE(ends.has_value());
  Refused(*ends, Code::kCancelled, "was destroyed");
  const Tensor other = Make(Shape());
  Answer cancelled;
  Start("ResourceAccumulatorTakeGradient", {other, Int(1)}, Typed(), &cancelled);
  EXPECT_FALSE(cancelled.has_value());
  cancellation_.Cancel(Aborted("the step ends"));
  ASSERT_TRUE(cancelled.has_value());
  Refused(*cancelled, Code::kAborted, "the step ends");
  EXPECT_TRUE(Apply(other, 0, Tensor::Scalar(1.0f)).ok());
  EXPECT_EQ(Count(other), 1) << "what waited took nothing";
}

TEST_F(Accumulators, F199_BadOperands) {
  const Tensor handle = Make(PartialShape{-1, 2}, "SUM");
  EXPECT_TRUE(Apply(handle, 0, Rows({1, 2}, 2)).ok());
  Refused(Apply(handle, 0, Rows({1, 2, 3, 4}, 2)), Code::kInvalidArgument, "Shape mismatch: expected [1,2], got [2,2]");
  Refused(Apply(handle, 0, Floats({1, 2})), Code::kInvalidArgument, "Shape mismatch: expected [1,2], got [2]");
  Refused(Take(handle, 0), Code::kInvalidArgument, "Argument num_required must be positive, but was 0");
  Refused(Take(handle, -1), Code::kInvalidArgument, "Argument num_required must be positive, but was -1");
  EXPECT_TRUE(Take(handle, 1).ok());
  Refused(Apply(handle, 5, Floats({1, 2, 3})), Code::kInvalidArgument, "Shape mismatch: expected [?,2], got [3]");
  Refused(Call("ResourceAccumulatorApplyGradient", {handle, Tensor::Vector<int64_t>({1}), Rows({1, 2}, 2)}, Typed()),
          Code::kInvalidArgument, "Argument local_step must be scalar, but had bad shape [1]");
  Refused(Call("ResourceAccumulatorTakeGradient", {handle, Int(1)}, Typed(DType::kDouble)), Code::kInvalidArgument,
          "which has float, and the node, which has double");
  Refused(Call("SparseAccumulatorTakeGradient", {handle, Int(1)}, Typed()), Code::kInvalidArgument,
          "needs a sparse accumulator");
  ASSERT_TRUE(Make(Shape(), "MEAN", "shared").valid());
  const auto again = [&](DType dtype, const PartialShape& shape, const std::string& reduction) {
    return Call(
        "ResourceConditionalAccumulator", {},
        {{"dtype", dtype}, {"shape", shape}, {"reduction_type", reduction}, {"shared_name", std::string("shared")}});
  };
  EXPECT_TRUE(again(DType::kFloat, Shape(), "MEAN").ok());
  Refused(again(DType::kDouble, Shape(), "MEAN"), Code::kInvalidArgument, "dtype");
  Refused(again(DType::kFloat, PartialShape{3}, "MEAN"), Code::kInvalidArgument, "shape");
  Refused(again(DType::kFloat, Shape(), "SUM"), Code::kInvalidArgument, "reduction type");
}

TEST_F(Accumulators, F199_RowsAreAveragedByThoseThatHaveThem) {
  const Tensor reference = MakeSparse(Shape());
  ASSERT_EQ(reference.dtype(), DType::kString);
  EXPECT_TRUE(ApplyRows(reference, {0, 2}, Rows({3, 4})).ok());
  EXPECT_TRUE(ApplyRows(reference, {0, 1}, Rows({3, 4})).ok());
  const Result<std::vector<Tensor>> taken = TakeRows(reference, 1);
  ASSERT_TRUE(taken.ok()) << taken.status().ToString();
  EXPECT_EQ(Longs((*taken)[0]), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(Values((*taken)[1]), (std::vector<float>{3, 4, 4}));
  EXPECT_EQ(Longs((*taken)[2]), (std::vector<int64_t>{-1, 1}));
}

TEST_F(Accumulators, F199_RowsAreChecked) {
  const Tensor sum = MakeSparse(PartialShape{-1, 2}, "SUM");
  EXPECT_TRUE(ApplyRows(sum, {7}, Rows({1, 5}, 2)).ok());
  Refused(ApplyRows(sum, {0}, Rows({1})), Code::kInvalidArgument, "expected values dim 1 to be 2, got 1");
  Refused(ApplyRows(sum, {0, 1}, Rows({1, 2}, 2)), Code::kInvalidArgument,
          "Number of values must match first dimension of indices. Got 1 values, indices shape: [2]");
  Refused(ApplyRows(sum, {0}, Rows({1, 2}, 2), {2}), Code::kInvalidArgument, "expected shape rank at least 2, got 1");
  Refused(ApplyRows(sum, {0}, Rows({1, 2}, 2), {9, 3}), Code::kInvalidArgument, "expected shape dim 1 to be 2, got 3");
  EXPECT_TRUE(ApplyRows(sum, {}, Tensor::Of(Shape::Of({0, 2}), std::vector<float>()), {9, 2}).ok());
  EXPECT_TRUE(ApplyRows(sum, {3, 7}, Rows({1, 1, 2, 2}, 2), {9, 2}).ok());
  const Result<std::vector<Tensor>> taken = TakeRows(sum, 3);
  ASSERT_TRUE(taken.ok()) << taken.status().ToString();
  EXPECT_EQ(Longs((*taken)[0]), (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(Values((*taken)[1]), (std::vector<float>{1, 1, 3, 7}));
  const Tensor limited = MakeSparse(PartialShape{4, 1});
  Refused(ApplyRows(limited, {4}, Rows({1})), Code::kInvalidArgument,
          "index of slice 0 exceeded limits of shape; index is 4 exceeded 4");
}

TEST_F(Accumulators, F199_NoGradientIsLostBetweenThreads) {
  const Tensor handle = Make(Shape(), "SUM");
  constexpr int kThreads = 4, kEach = 200, kTaken = 8;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  const op::AttrList attrs = Typed();
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const op::AttrView view(*ops_->Find("ResourceAccumulatorApplyGradient"), attrs);
      for (int i = 0; i < kEach; ++i) {
        kernel::BuiltinCall call{"node", view, {handle, Tensor::Scalar<int64_t>(1000), Tensor::Scalar(1.0f)}, {}};
        call.scope = &scope_;
        if (!kernels_.FindHost("ResourceAccumulatorApplyGradient")->host->fn(call).ok()) ++failures;
      }
    });
  }
  float sum = 0;
  for (int taken = 0; taken < 8; ++taken) {  // while others add
    std::promise<float> one;
    const op::AttrView view(*ops_->Find("ResourceAccumulatorTakeGradient"), attrs);
    kernel::BuiltinCall call{"node", view, {handle, Int(kTaken)}, std::vector<Tensor>(1)};
    call.scope = &scope_;
    kernels_.FindHost("ResourceAccumulatorTakeGradient")
        ->host->async(std::move(call), runtime::Completion([&one](Result<std::vector<Tensor>> made) {
                        one.set_value(made.ok() ? (*made)[0].as<float>()[0] : -1e9f);
                      }));
    sum += one.get_future().get();
    if (sum > kThreads * kEach - kTaken) break;  // fewer are left than a take waits for
  }
  for (std::thread& thread : threads) thread.join();
  const int32_t left = Count(handle);
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(sum + static_cast<float>(left), static_cast<float>(kThreads * kEach));
}

}  // namespace
}  // namespace weir::builtin
