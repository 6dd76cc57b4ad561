// Arrays of tensors, queues, loops over slices and ranges, and checks of values: what they give and refuse.
#include "core/client/containers/lookup_table.h"
#include "core/client/containers/queue.h"
#include "core/client/containers/reader.h"
#include "core/client/containers/tensor_array.h"
#include "core/client/control_flow/elementwise_loops.h"
#include "core/client/ops/check_ops.h"

#include <filesystem>
#include <fstream>

#include "tests/unit/client/fresh.h"

namespace weir::test::containers {
namespace {

using Numbers = std::vector<double>;

Output Vector(std::string_view name, int64_t size) { return Placeholder(DType::kFloat, {size}, name); }
Literal Floats(const std::vector<float>& values) { return Literal(Tensor::Vector<float>(values)); }

TEST(ClientArray, F178_three_writes_stack) {
  Fresh f;
  TensorArray array(DType::kFloat, 3);
  for (int i = 0; i < 3; ++i) array = array.Write(i, {1.0f + static_cast<float>(i), 5.0f});
  const Output stacked = array.Stack();
  EXPECT_EQ(stacked.shape(), PartialShape::Of({3, 2}));
  const Output twice = array.Write(0, {9.0f, 9.0f}).Stack("twice");
  const Output outside = array.Write(5, {9.0f, 9.0f}).Stack("outside");
  const TensorArray some =
      TensorArray(DType::kFloat, 3, {.element_shape = PartialShape::Of({2})}).Write(1, {1.0f, 2.0f});
  const Output with_zeros = some.Stack();
  Session session(f.graph);
  EXPECT_EQ(Values(session, stacked), (Numbers{1, 5, 2, 5, 3, 5}));
  EXPECT_EQ(Values(session, with_zeros), (Numbers{0, 0, 1, 2, 0, 0}));
  EXPECT_TRUE(Fails(session.Run(twice), Code::kInvalidArgument,
                    "Could not write to TensorArray index 0 because it has already been written to."));
  EXPECT_TRUE(Fails(session.Run(outside), Code::kInvalidArgument,
                    "Tried to write to index 5 but array is not resizeable and size is: 3"));
}

TEST(ClientArray, F178_F394_an_element_is_read_once_unless_it_may_stay) {
  Fresh f;
  const TensorArray once = TensorArray(DType::kFloat, 1).Write(0, 2.0f);
  const Output first = once.Read(0);
  const Output second = once.WithFlow(WithDependencies({first}, once.flow())).Read(0);
  const TensorArray often = TensorArray(DType::kFloat, 1, {.clear_after_read = false}).Write(0, 2.0f);
  const Output sum = often.Read(0) + often.Read(0);
  Session session(f.graph);
  EXPECT_EQ(Value(session, first), 2);
  EXPECT_EQ(Value(session, sum), 4);
  EXPECT_TRUE(Fails(session.Run(second), Code::kInvalidArgument,
                    "Could not read index 0 twice because it was cleared after a previous read"));
}

TEST(ClientReader, lines_of_the_files_that_a_queue_names) {
  Fresh f;
  const std::string path = ::testing::TempDir() + "/client_reader_lines.csv";
  std::ofstream(path) << "name,age\nada,36\ngrace,85\n";
  const FIFOQueue files(4, {DType::kString}, {.shapes = {{}}});
  const Operation fill = files.Enqueue(path), close = files.Close();
  const TextLineReader reader(1);
  const ReaderBase::Records line = reader.Read(files);
  const Output produced = reader.NumRecordsProduced();
  const Operation reset = reader.Reset();
  EXPECT_EQ(reader.reader_ref().op().name(), "TextLineReaderV2");
  EXPECT_EQ(line.key.name(), "ReaderReadV2:0");
  EXPECT_FALSE(reader.supports_serialize());
  EXPECT_TRUE(WholeFileReader().supports_serialize());
  Session session(f.graph);
  ASSERT_TRUE(session.Run(fill).ok() && session.Run(close).ok());
  for (const std::string wanted : {"ada,36", "grace,85"}) {
    const auto read = session.Run({line.key, line.value});
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*(*read)[1].scalar<std::string>(), wanted);
  }
  EXPECT_EQ(Value(session, produced), 2);
  EXPECT_TRUE(Fails(session.Run(line.value), Code::kOutOfRange, "is closed and has insufficient elements"));
  EXPECT_TRUE(session.Run(reset).ok());
  EXPECT_EQ(Value(session, produced), 0);
  std::filesystem::remove(path);
}

TEST(ClientArray, F394_static_shapes_of_elements) {
  Fresh f;
  const TensorArray array = TensorArray(DType::kFloat, 2).Write(0, 1.0f);
  EXPECT_EQ(array.Read(0).shape(), PartialShape(Shape()));
  EXPECT_EQ(array.Stack().shape(), PartialShape::Of({2}));
  EXPECT_EQ(array.Gather({0}).shape(), PartialShape::Of({1}));
  const TensorArray grown = TensorArray(DType::kFloat, 0, {.dynamic_size = true}).Write(4, {1.0f, 2.0f});
  EXPECT_EQ(grown.Stack().shape(), PartialShape::Of({-1, 2}));
  const Output size = grown.Size();
  const TensorArray rows = TensorArray(DType::kFloat, 2).Unstack(Placeholder(DType::kFloat, {-1, 3}, "x"));
  EXPECT_EQ(rows.Read(1).shape(), PartialShape::Of({3}));
  EXPECT_EQ(rows.Concat().shape(), PartialShape::Of({6}));
  {
    Session session(f.graph);
    EXPECT_EQ(Value(session, size), 5);
  }
  (void)array.Write(1, {1.0f, 2.0f});
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "Inconsistent shapes: saw (2,) but expected ()"));
}

TEST(ClientArray, F394_elements_of_different_shapes_do_not_stack) {
  Fresh f;
  const TensorArray mixed = TensorArray(DType::kFloat, 2, {.infer_shape = false}).Write(0, 1.0f).Write(1, {1.0f, 2.0f});
  const Output stacked = mixed.Stack();
  EXPECT_FALSE(stacked.shape().has_rank() && stacked.shape().rank() > 1);
  Session session(f.graph);
  EXPECT_TRUE(Fails(session.Run(stacked), Code::kInvalidArgument,
                    "TensorArray has inconsistent shapes.  Index 0 has shape: [] but index 1 has shape: [2]"));
}

TEST(ClientArray, F394_pieces_scatters_and_gradients) {
  Fresh f;
  const Output x = Vector("x", 3);
  const TensorArray unstacked = TensorArray(DType::kFloat, 3, {.clear_after_read = false}).Unstack(x);
  const Output dx = GradientOf(unstacked.Read(0) + unstacked.Read(0) * 5.0f, x);
  const TensorArray pieces = TensorArray(DType::kFloat, 2, {.infer_shape = false}).Split(x, {1, 2});
  const Output dy = GradientOf(ReduceSum(pieces.Concat() * Floats({1, 2, 3})), x);
  const TensorArray scattered = TensorArray(DType::kFloat, 4).Scatter({3, 0, 1}, x);
  const Output size = unstacked.Size(), gathered = scattered.Gather({1, 3});
  const Output many = TensorArray(DType::kFloat, 2).Unstack(x).Stack("many");
  Session session(f.graph);
  const Feeds feeds = {{x, Floats({1, 2, 3})}};
  EXPECT_EQ(Values(session, dx, feeds), (Numbers{6, 0, 0}));
  EXPECT_EQ(Values(session, dy, feeds), (Numbers{1, 2, 3}));
  EXPECT_EQ(Values(session, gathered, feeds), (Numbers{3, 1}));
  EXPECT_EQ(Value(session, size), 3);
  EXPECT_TRUE(
      Fails(session.Run(many, feeds), Code::kInvalidArgument, "Max scatter index must be < array size (2 vs. 2)"));
}

TEST(ClientLoops, F178_maps_folds_and_scans) {
  Fresh f;
  const Output x = Vector("x", -1), y = Vector("y", 3);
  const FoldFunction step = [](const Output& a, const Output& e) { return a * 2.0f + e; };
  const Output squares = MapFn([](const Output& e) { return e * e; }, x);
  const List<Output> two = MapFn(
      [](const List<Output>& e) -> List<Output> {
        return {e[0] + e[1], e[0] * e[1]};
      },
      {x, y});
  const Output left = FoldL(step, x), right = FoldR(step, x), with = FoldL(step, y, {.initializer = 10.0f});
  const Output scanned = Scan(step, x), back = Scan(step, y, {.initializer = 1.0f, .reverse = true});
  EXPECT_EQ(scanned.shape(), PartialShape::Of({-1}));
  EXPECT_EQ(back.shape(), PartialShape::Of({3}));
  EXPECT_TRUE(Succeeds(f.graph.status()));
  Session session(f.graph);
  const Feeds feeds = {{x, Floats({1, 2, 3})}, {y, Floats({4, 5, 6})}};
  EXPECT_EQ(Values(session, squares, feeds), (Numbers{1, 4, 9}));
  EXPECT_EQ(Values(session, two[0], feeds), (Numbers{5, 7, 9}));
  EXPECT_EQ(Values(session, two[1], feeds), (Numbers{4, 10, 18}));
  EXPECT_EQ(Value(session, left, feeds), 11);
  EXPECT_EQ(Value(session, right, feeds), 17);
  EXPECT_EQ(Value(session, with, feeds), 112);
  EXPECT_EQ(Values(session, scanned, feeds), (Numbers{1, 4, 11}));
  EXPECT_EQ(Values(session, back, feeds), (Numbers{46, 21, 8}));
}

TEST(ClientLoops, F393_gradients_go_through_arrays_in_loops) {
  Fresh f;
  const Output x = Vector("x", 3), w = Real("w");
  // With a branch in the loop: e^2 or w e.
  const Output mapped = MapFn(
      [&](const Output& e) {
        return Cond(
            Greater(e, 2.0f), [&] { return e * e; }, [&] { return e * w; });
      },
      x);
  const auto of_map = Gradients({ReduceSum(mapped)}, {x, w});
  const Output scanned = Scan([&](const Output& a, const Output& e) { return a * w + e; }, x);
  const auto of_scan = Gradients({ReduceSum(scanned)}, {x, w});
  // Rows of rows.
  const Output rows = Placeholder(DType::kFloat, {2, 2}, "rows");
  const Output nested =
      MapFn([&](const Output& row) { return MapFn([&](const Output& e) { return e * e * w; }, row); }, rows);
  const auto of_nested = Gradients({ReduceSum(nested)}, {rows, w});
  ASSERT_TRUE(Succeeds(of_map));
  ASSERT_TRUE(Succeeds(of_scan));
  ASSERT_TRUE(Succeeds(of_nested));
  Session session(f.graph);
  const Feeds feeds = {{x, Floats({1, 2, 3})}, {w, 2.0f}, {rows, {{1.0f, 2.0f}, {3.0f, 4.0f}}}};
  EXPECT_EQ(Values(session, (*of_map)[0].values, feeds), (Numbers{2, 2, 6}));
  EXPECT_EQ(Value(session, (*of_map)[1].values, feeds), 3);
  // 1, 2 + w, 3 + 2 w + w^2: by x 1 + w + w^2, 1 + w, 1; by w 1 + 2 + 2 w.
  EXPECT_EQ(Values(session, (*of_scan)[0].values, feeds), (Numbers{7, 3, 1}));
  EXPECT_EQ(Value(session, (*of_scan)[1].values, feeds), 7);
  EXPECT_EQ(Values(session, (*of_nested)[0].values, feeds), (Numbers{4, 8, 12, 16}));
  EXPECT_EQ(Value(session, (*of_nested)[1].values, feeds), 30);
}

TEST(ClientLoops, F179_ranges_become_loops) {
  Fresh f;
  const Output n = Placeholder(DType::kInt32, std::initializer_list<int64_t>{}, "n"), x = Real("x");
  const RangeBodyFn add = [&](const Output& i, const LoopVars& v) -> LoopVars {
    return {v[0] + Cast(i, DType::kFloat), v[1] * x};
  };
  const LoopVars up = ForRange(n, add, {0.0f, 1.0f});
  const LoopVars down = ForRange(n, 0, -2, add, {0.0f, 1.0f}, {.name = "down"});
  const Output dx = GradientOf(up[1], x);
  EXPECT_EQ(up[0].op().type(), "Exit");
  Session session(f.graph);
  const auto feeds = [&](int count) { return Feeds{{n, count}, {x, 2.0f}}; };
  EXPECT_EQ(Value(session, up[0], feeds(5)), 10);
  EXPECT_EQ(Value(session, up[1], feeds(5)), 32);
  EXPECT_EQ(Value(session, up[0], feeds(0)), 0);
  EXPECT_EQ(Value(session, down[0], feeds(5)), 9);
  EXPECT_EQ(Value(session, dx, feeds(3)), 12);
  EXPECT_TRUE(Succeeds(f.graph.status()));
  (void)ForRange(0, 3, 0, add, {0.0f, 1.0f});
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "Requires delta != 0: 0"));
}

TEST(ClientQueue, F379_F380_tuples_and_their_shapes) {
  Fresh f;
  const FIFOQueue q(10, {DType::kInt32, DType::kFloat},
                    {.shapes = {PartialShape(Shape()), PartialShape::Of({2})}, .name = "q"});
  const Operation put = q.Enqueue({7, {1.0f, 2.0f}});
  const Operation many = q.EnqueueMany({{1, 2, 3}, {{1.0f, 1.0f}, {2.0f, 2.0f}, {3.0f, 3.0f}}});
  const List<Output> one = q.Dequeue(), two = q.DequeueMany(2), rest = q.DequeueUpTo(5);
  EXPECT_EQ(one[1].shape(), PartialShape::Of({2}));
  EXPECT_EQ(two[0].shape(), PartialShape::Of({2}));
  EXPECT_EQ(two[1].shape(), PartialShape::Of({2, 2}));
  EXPECT_EQ(rest[1].shape(), PartialShape::Of({-1, 2}));
  const Output size = q.Size(), closed = q.IsClosed();
  const Operation close = q.Close();
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(put)));
  ASSERT_TRUE(Succeeds(session.Run(many)));
  EXPECT_EQ(Value(session, size), 4);
  EXPECT_EQ(Value(session, one[0]), 7);
  EXPECT_EQ(Values(session, two[1]), (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(Value(session, closed), 0);
  ASSERT_TRUE(Succeeds(session.Run(close)));
  EXPECT_EQ(Values(session, rest[0]), (Numbers{3}));
  EXPECT_EQ(Value(session, closed), 1);
  EXPECT_TRUE(Fails(session.Run(one[0]), Code::kOutOfRange,
                    "is closed and has insufficient elements (requested 1, current size 0)"));
  EXPECT_TRUE(Fails(session.Run(put), Code::kCancelled, "is closed."));
  (void)q.Enqueue({1, {1.0f, 2.0f, 3.0f}});
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "Shapes (3,) and (2,) are incompatible"));
}

TEST(ClientQueue, F380_components_with_names) {
  Fresh f;
  const FIFOQueue q(10, {DType::kInt32, DType::kFloat}, {.names = {"id", "value"}, .name = "q"});
  const Operation put = q.Enqueue(NamedOperands{{"value", 2.5f}, {"id", 3}});
  NamedOutputs taken = q.Named(q.Dequeue());
  {
    Session session(f.graph);
    ASSERT_TRUE(Succeeds(session.Run(put)));
    ASSERT_TRUE(Succeeds(session.Run(put)));
    EXPECT_EQ(Value(session, taken["id"]), 3);
    EXPECT_EQ(Value(session, taken["value"]), 2.5);
  }
  (void)q.Enqueue({3, 2.5f});
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "You must enqueue a dictionary in a Queue with names"));
  (void)q.Enqueue(NamedOperands{{"id", 3}});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Keys in dictionary to enqueue do not match names"));
  (void)FIFOQueue(1, {DType::kInt32}).Enqueue(NamedOperands{{"id", 3}});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Queue must have names to enqueue a dictionary"));
}

TEST(ClientQueue, F381_shuffling_and_padding) {
  Fresh f;
  const RandomShuffleQueue shuffled(10, 2, {DType::kInt32}, {.shapes = {Shape()}, .seed = 1, .name = "rq"});
  const PaddingFIFOQueue padded(10, {DType::kInt32}, {.shapes = {{-1}}, .name = "pq"});
  EXPECT_EQ(shuffled.queue_ref().op().type(), "RandomShuffleQueueV2");
  EXPECT_EQ(padded.name(), "pq");
  const Operation put = shuffled.EnqueueMany({{0, 1, 2, 3, 4, 5}});
  const Output one = shuffled.Dequeue()[0], two = padded.DequeueMany(2)[0];
  EXPECT_EQ(two.shape().ToString(), "[2,?]");
  const Operation short_one = padded.Enqueue({{7}}), long_one = padded.Enqueue({{8, 9}});
  for (int k = 0; k < 2; ++k) {
    Session session(f.graph);
    ASSERT_TRUE(Succeeds(session.Run(put)));
    for (const double wanted : {3, 4, 1, 5}) EXPECT_EQ(Value(session, one), wanted) << "in each session";
    ASSERT_TRUE(Succeeds(session.Run(short_one)));
    ASSERT_TRUE(Succeeds(session.Run(long_one)));
    EXPECT_EQ(Values(session, two), (std::vector<double>{7, 0, 8, 9}));
  }
  (void)PaddingFIFOQueue(10, {DType::kInt32}, {});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "When providing partial shapes, a list of shapes must be provided."));
}

TEST(ClientTable, FixedOnesAreFilledByTheirInitializer) {
  Fresh f;
  const StaticHashTable table({"a", "b"}, {1, 2}, -1);
  const Output words = Placeholder(DType::kString, {2}, "words");
  const Output found = table.Lookup(words), size = table.Size();
  EXPECT_EQ(found.name(), "hash_table_Lookup/LookupTableFindV2:0");
  EXPECT_EQ(found.shape(), PartialShape::Of({2}));
  EXPECT_EQ(table.initializer().name(), "key_value_init/LookupTableImportV2");
  const Operation init = TablesInitializer();
  EXPECT_EQ(init.name(), "init_all_tables");
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(init)));
  EXPECT_EQ(Values(session, found, {{words, {"b", "z"}}}), (Numbers{2, -1}));
  EXPECT_EQ(Value(session, size), 2);
}

TEST(ClientTable, OthersChange) {
  Fresh f;
  const MutableHashTable table(DType::kInt64, DType::kFloat, 0.5f);
  const Output key = Placeholder(DType::kInt64, {1}, "key");
  const Operation put = table.Insert(key, {2.5f}), drop = table.Remove(key);
  const Output found = table.Lookup(key), size = table.Size();
  const MutableHashTable::Contents all = table.Export();
  EXPECT_EQ(put.name(), "MutableHashTable_lookup_table_insert/LookupTableInsertV2");
  Session session(f.graph);
  const Feeds seven = {{key, Literal(Tensor::Vector<int64_t>({7}))}};
  ASSERT_TRUE(Succeeds(session.Run(put, seven)));
  EXPECT_EQ(Values(session, found, seven), (Numbers{2.5}));
  EXPECT_EQ(Values(session, all.keys), (Numbers{7}));
  EXPECT_EQ(Values(session, all.values), (Numbers{2.5}));
  ASSERT_TRUE(Succeeds(session.Run(drop, seven)));
  EXPECT_EQ(Values(session, found, seven), (Numbers{0.5}));
  EXPECT_EQ(Value(session, size), 0);
}

TEST(ClientChecks, F390_comparisons) {
  Fresh f;
  const Output x = Placeholder(DType::kInt32, {2}, "x"), y = Placeholder(DType::kInt32, {2}, "y");
  const Operation equal = AssertEqual(x, y), hey = AssertEqual(x, y, {.message = "hey"});
  const Operation less = AssertLess(x, y), positive = AssertPositive(x);
  Session session(f.graph);
  const auto feeds = [&](int a, int b) { return Feeds{{x, {1, a}}, {y, {1, b}}}; };
  EXPECT_TRUE(Succeeds(session.Run(equal, feeds(2, 2))));
  EXPECT_TRUE(
      Fails(session.Run(equal, feeds(3, 2)), Code::kInvalidArgument,
            "assertion failed: [Condition x == y did not hold element-wise:] [x (x:0) = ] [1 3] [y (y:0) = ] [1 2]"));
  EXPECT_TRUE(
      Fails(session.Run(hey, feeds(3, 2)), Code::kInvalidArgument, "assertion failed: [hey] [Condition x == y"));
  EXPECT_TRUE(Fails(session.Run(less, feeds(3, 9)), Code::kInvalidArgument, "[Condition x < y did not hold"));
  EXPECT_TRUE(Succeeds(session.Run(positive, feeds(3, 9))));
  EXPECT_TRUE(Fails(session.Run(positive, feeds(0, 9)), Code::kInvalidArgument, "[Condition x > 0 did not hold"));
  (void)AssertEqual({1, 3}, {1, 2});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Condition x == y did not hold element-wise:"));
  (void)AssertRank(Constant(1.0f, DType::kInvalid, "c"), 1);
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Tensor c:0 must have rank 1.  Received rank 0, shape ()"));
  (void)AssertType(x, DType::kFloat);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "x:0 must be of type"));
}

TEST(ClientChecks, F390_numerics_of_all_values) {
  Fresh f;
  const Output x = Real("x");
  Log(x);
  const Operation check = AddCheckNumericsOps();
  {
    Session session(f.graph);
    EXPECT_TRUE(Succeeds(session.Run(check, {{x, 1.0f}})));
    EXPECT_TRUE(Fails(session.Run(check, {{x, 0.0f}}), Code::kInvalidArgument, "Log:0 : Tensor had Inf values"));
  }
  Cond(
      Flag("p"), [&] { return x * 2.0f; }, [&] { return x; });
  (void)AddCheckNumericsOps();
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "is not compatible with TensorFlow control flow"));
}

}  // namespace
}  // namespace weir::test::containers
