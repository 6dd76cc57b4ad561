// Staging areas and barriers of a model. Names and texts are those of TensorFlow 2.17.1's Python.
#include <thread>

#include "tests/unit/client/fresh.h"

namespace weir::test::staging {
namespace {

using Numbers = std::vector<double>;

TEST(ClientStaging, NodesHaveTheNamesOfPython) {
  Fresh f;
  const StagingArea area({DType::kFloat, DType::kInt32},
                         {.shapes = {{2}, PartialShape(Shape())}, .capacity = 3, .memory_limit = 100});
  EXPECT_EQ(area.name(), "StagingArea");
  EXPECT_EQ(area.Put({{1.0f, 2.0f}, 3}).name(), "StagingArea_put");
  const List<Output> got = area.Get(), seen = area.Peek(0);
  EXPECT_EQ(got[0].op().name(), "StagingArea_get");
  EXPECT_EQ(got[0].shape(), PartialShape::Of({2}));
  EXPECT_EQ(seen[1].op().name(), "StagingArea_peek");
  EXPECT_EQ(area.Size().op().name(), "StagingArea_size");
  EXPECT_EQ(area.Clear().name(), "StagingArea_clear");
  EXPECT_EQ(StagingArea({DType::kFloat}).name(), "StagingArea_1");
  const MapStagingArea map({DType::kFloat, DType::kInt32}, {{.shared_name = "sh"}, true});
  EXPECT_EQ(map.Put(int64_t{5}, {2.0f}, {0}).name(), "sh_put");
  EXPECT_EQ(map.Get(int64_t{5}, {1})[0].op().name(), "sh_get");
  EXPECT_EQ(map.GetAny({0}).key.op().name(), "sh_get_nokey");
  EXPECT_EQ(map.IncompleteSize().op().name(), "sh_incomplete_size");
  const Barrier barrier({DType::kFloat, DType::kString}, {.shapes = {{2}, PartialShape(Shape())}});
  EXPECT_EQ(barrier.InsertMany(0, {"a"}, {{1.0f, 2.0f}}).name(), "barrier_BarrierInsertMany");
  const BarrierTuples tuples = barrier.TakeMany(2);
  EXPECT_EQ(tuples.keys.op().name(), "barrier_BarrierTakeMany");
  EXPECT_EQ(tuples.values[0].shape(), PartialShape::Of({2, 2}));
  EXPECT_EQ(barrier.TakeMany(2, true).values[1].shape(), PartialShape::Of({-1}));
  EXPECT_EQ(barrier.Close().name(), "barrier_BarrierClose");
  EXPECT_EQ(barrier.ReadySize().op().name(), "barrier_BarrierReadySize");
  EXPECT_EQ(barrier.IncompleteSize().op().name(), "barrier_BarrierIncompleteSize");
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

/// Each step prepares the input of the next.
TEST(ClientStaging, AStepTakesWhatTheLastOnePut) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {}, "x");
  const StagingArea area({DType::kFloat}, {.shapes = {PartialShape(Shape())}, .capacity = 2});
  const Operation put = area.Put(x * 2.0f);
  const Output y = area.Get()[0] + 1.0f, size = area.Size();
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(put, {{x, 1.0f}})));
  for (int i = 2; i < 6; ++i) {
    const auto got = session.Run({y, put}, {{x, static_cast<float>(i)}});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ(ElementAsDouble((*got)[0].tensor(), 0), 2.0 * (i - 1) + 1);
  }
  EXPECT_EQ(Value(session, size), 1);
}

TEST(ClientStaging, ComponentsByKeyAndName) {
  Fresh f;
  const Output key = Placeholder(DType::kInt64, {}, "key");
  const MapStagingArea area({DType::kFloat, DType::kInt32},
                            {{.shapes = {{2}, PartialShape(Shape())}, .names = {"f", "i"}}, true});
  const Operation floats = area.Put(key, NamedOperands{{"f", {1.0f, 2.0f}}});
  const Operation ints = area.Put(key, NamedOperands{{"i", 7}});
  const NamedOutputs whole = area.Named(area.Get(key));
  const MapStagingArea::Keyed any = area.GetAny({1});
  const Output size = area.Size(), lacking = area.IncompleteSize();
  Session session(f.graph);
  const auto of = [&](int64_t k) { return Feeds{{key, Literal(Tensor::Scalar(k))}}; };
  for (const int64_t k : {9, 4}) ASSERT_TRUE(Succeeds(session.Run(floats, of(k))));
  EXPECT_EQ(Value(session, lacking), 2);
  for (const int64_t k : {9, 4}) ASSERT_TRUE(Succeeds(session.Run(ints, of(k))));
  EXPECT_EQ(Value(session, size), 2);
  const auto least = session.Run({any.key, any.values[0]});
  ASSERT_TRUE(least.ok()) << least.status().ToString();
  EXPECT_EQ(ElementAsDouble((*least)[0].tensor(), 0), 4);
  EXPECT_EQ(ElementAsDouble((*least)[1].tensor(), 0), 7);
  EXPECT_EQ(Values(session, whole.at("f"), of(9)), (Numbers{1, 2}));
  EXPECT_TRUE(Fails(session.Run(whole.at("f"), of(4)), Code::kInvalidArgument,
                    "Tensor at index '1' for key '4' has already been removed."));
}

TEST(ClientStaging, ATakeThatWaitsEndsAtItsDeadline) {
  Fresh f;
  const StagingArea area({DType::kFloat});
  const Output y = area.Get()[0];
  const Operation put = area.Put(3.0f);
  Session session(f.graph, {.operation_timeout_in_ms = 100});
  EXPECT_TRUE(Fails(session.Run(y), Code::kDeadlineExceeded, "Timed out waiting for notification"));
  session::RunOptions patient;
  patient.timeout_in_ms = 60000;
  ASSERT_TRUE(Succeeds(session.Run(put, {}, patient, nullptr)));
  const Result<Fetched> taken = session.Run(y, {}, patient, nullptr);
  ASSERT_TRUE(Succeeds(taken));
  EXPECT_EQ(ElementAsDouble(taken->tensor(), 0), 3) << "the take that was cancelled took nothing";
}

TEST(ClientStaging, BarriersGatherTuplesOverSteps) {
  Fresh f;
  const Output keys = Placeholder(DType::kString, {-1}, "keys"), x = Placeholder(DType::kFloat, {-1}, "x");
  const Barrier barrier({DType::kFloat, DType::kFloat}, {.shapes = {PartialShape(Shape()), PartialShape(Shape())}});
  const Operation first = barrier.InsertMany(0, keys, x), second = barrier.InsertMany(1, keys, x);
  const BarrierTuples tuples = barrier.TakeMany(2);
  const Operation close = barrier.Close();
  const Output ready = barrier.ReadySize();
  Session session(f.graph);
  const auto of = [&](const std::vector<std::string>& k, const std::vector<float>& v) {
    return Feeds{{keys, Literal(Tensor::Vector(k))}, {x, Literal(Tensor::Vector(v))}};
  };
  ASSERT_TRUE(Succeeds(session.Run(first, of({"a", "b"}, {1, 2}))));
  std::thread waits([&] {
    const auto got = session.Run({tuples.keys, tuples.values[0], tuples.values[1]});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].tensor().SameBits(Tensor::Vector<std::string>({"b", "a"})));
    EXPECT_TRUE((*got)[1].tensor().SameBits(Tensor::Vector<float>({2, 1})));
    EXPECT_TRUE((*got)[2].tensor().SameBits(Tensor::Vector<float>({3, 4})));
  });
  ASSERT_TRUE(Succeeds(session.Run(second, of({"b", "a"}, {3, 4}))));
  waits.join();
  EXPECT_EQ(Value(session, ready), 0);
  ASSERT_TRUE(Succeeds(session.Run(close)));
  EXPECT_TRUE(Fails(session.Run(tuples.keys), Code::kOutOfRange,
                    "is closed and has insufficient elements (requested 2, total size 0)"));
}

TEST(ClientStaging, ErrorsHaveTheTextsOfPython) {
  Fresh f;
  const auto fails = [&](Code code, std::string_view text) {
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), code, text));
  };
  (void)StagingArea({DType::kFloat}, {.shapes = {{2}, {3}}});
  fails(Code::kInvalidArgument, "StagingArea shapes must be the same length as dtypes");
  (void)StagingArea({DType::kFloat}, {.names = {"a", "b"}});
  fails(Code::kInvalidArgument, "StagingArea names must be the same length as dtypes");
  const StagingArea area({DType::kFloat}, {.shapes = {{2}}});
  (void)area.Put(1.0f);
  fails(Code::kInvalidArgument, "Shapes () and (2,) are incompatible");
  (void)area.Put(NamedOperands{{"f", 1.0f}});
  fails(Code::kInvalidArgument, "Staging areas must have names to enqueue a dictionary");
  const MapStagingArea named({DType::kFloat, DType::kInt32}, {{.names = {"f", "i"}}});
  (void)named.Put(int64_t{1}, {1.0f});
  fails(Code::kInvalidArgument, "You must enqueue a dictionary in a staging area with names");
  (void)named.Put(int64_t{1}, NamedOperands{{"x", 1.0f}});
  fails(Code::kInvalidArgument,
        "Keys in dictionary to put do not match names of staging area. Dictionary: ['x']Queue: ['f', 'i']");
  const MapStagingArea map({DType::kFloat, DType::kInt32});
  (void)map.Put(int64_t{1}, {1.0f});
  fails(Code::kInvalidArgument, "Indices must be supplied when inserting a list of tensors");
  (void)map.Put(int64_t{1}, {1.0f}, {5});
  fails(Code::kOutOfRange, "list index out of range");
  (void)map.Get(int64_t{1}, {5});
  fails(Code::kOutOfRange, "list index out of range");
  (void)map.Put(int64_t{1}, {Constant("text")}, {0});
  fails(Code::kInvalidArgument,
        "Datatypes do not match. Received val.dtype <dtype: 'string'> and dtype <dtype: 'float32'>");
  (void)Barrier({DType::kFloat}, {.shapes = {{-1}}});
  fails(Code::kInvalidArgument, "All shapes must be fully defined: (?,)");
}

}  // namespace
}  // namespace weir::test::staging
