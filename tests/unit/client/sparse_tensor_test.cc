#include "core/client/ops/sparse_tensor.h"

#include <gtest/gtest.h>

#include "core/client/ops/math_names.h"
#include "tests/unit/client/fresh.h"

namespace weir {
namespace {

using namespace test;

std::vector<double> AsDoubles(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(ElementAsDouble(tensor, i));
  return values;
}

TEST(SparseTensors, F150_hold_three_values_and_become_dense) {
  Fresh f;
  const SparseTensor sparse = SparseTensor::Of({{0, 1}, {1, 2}}, {5.0, 6.0}, {2, 3});
  EXPECT_EQ(sparse.indices.dtype(), DType::kInt64);
  EXPECT_EQ(sparse.dense_shape.dtype(), DType::kInt64);
  Session session(f.graph);
  EXPECT_EQ(Values(session, SparseTensorToDense(sparse, 0.0)), (std::vector<double>{0, 5, 0, 0, 0, 6}));
  EXPECT_EQ(Values(session, SparseTensorToDense(sparse, -1.0)), (std::vector<double>{-1, 5, -1, -1, -1, 6}));
  EXPECT_EQ(Values(session, SparseTensorDenseMatMul(sparse, {{1.0}, {10.0}, {100.0}})), (std::vector<double>{50, 600}));
}

TEST(SparseTensors, F150_are_fetched) {
  Fresh f;
  const SparseTensor sparse = SparseTensor::Of({{0, 1}, {1, 2}}, {5.0, 6.0}, {2, 3});
  Session session(f.graph);
  const Result<Fetched> fetched = session.Run(sparse);
  ASSERT_TRUE(Succeeds(fetched));
  const Result<SparseTensorValue> value = SparseTensorValue::Of(*fetched);
  ASSERT_TRUE(Succeeds(value));
  EXPECT_EQ(value->indices.dtype(), DType::kInt64);
  EXPECT_EQ(AsDoubles(value->indices), (std::vector<double>{0, 1, 1, 2}));
  EXPECT_EQ(AsDoubles(value->values), (std::vector<double>{5, 6}));
  EXPECT_EQ(AsDoubles(value->dense_shape), (std::vector<double>{2, 3}));
  EXPECT_TRUE(
      Fails(SparseTensorValue::Of(*session.Run(sparse.values)), Code::kInvalidArgument, "not a fetched sparse tensor"));
}

TEST(SparseTensors, F150_are_fed) {
  Fresh f;
  const SparseTensor sparse = SparsePlaceholder(DType::kFloat, PartialShape::Of({-1, 3}), "sp");
  EXPECT_EQ(NodeNames(f.graph), (std::vector<std::string>{"sp/values", "sp/indices", "sp/shape"}));
  const Output dense = SparseTensorToDense(sparse, 0.0);
  Session session(f.graph);
  EXPECT_EQ(Values(session, dense, FeedsOf(sparse, {{0, 2}}, {7.0}, {1, 3})), (std::vector<double>{0, 0, 7}));
  const Result<Fetched> fetched = session.Run(sparse, FeedsOf(sparse, {{1, 0}}, {8.0}, {2, 3}));
  ASSERT_TRUE(Succeeds(fetched));
  const Result<SparseTensorValue> value = SparseTensorValue::Of(*fetched);
  ASSERT_TRUE(Succeeds(value));
  EXPECT_EQ(Values(session, dense, FeedsOf(sparse, *value)), (std::vector<double>{0, 0, 0, 8, 0, 0}));
}

TEST(MathNames, F131_are_the_same_ops) {
  Fresh f;
  EXPECT_EQ(math::Add(Constant(1.0), 2.0).op().type(), Add(Constant(1.0), 2.0).op().type());
  EXPECT_EQ(math::Sin(Constant(1.0)).op().type(), "Sin");
  EXPECT_EQ(math::ReduceSum(Constant({1.0, 2.0})).op().type(), "Sum");
  EXPECT_EQ(math::TopK(Constant({1.0, 2.0})).values.op().type(), "TopKV2");
  Session session(f.graph);
  EXPECT_NEAR(Value(session, math::Cos(Constant(0.0))), 1, 1e-7);
  EXPECT_NEAR(Value(session, math::Erf(Constant(0.5))), 0.5204999, 1e-6);
}

}  // namespace
}  // namespace weir
