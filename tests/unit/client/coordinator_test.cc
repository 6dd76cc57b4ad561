// Threads of training programs, queues that they fill, and input pipelines. Texts and names are TensorFlow 2.17.1's.
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

constexpr double kLong = 60;

TEST(CoordinatorTest, F382_the_first_error_is_the_one_that_join_returns) {
  const Coordinator coordinator;
  std::promise<void> first_done;
  const auto first = LooperThread::Loop(coordinator, 0, [&] {
    first_done.set_value();
    return Status(Code::kInternal, "first");
  });
  first_done.get_future().wait();
  EXPECT_TRUE(coordinator.WaitForStop(kLong));
  coordinator.RequestStop(Status(Code::kAborted, "second"));
  EXPECT_TRUE(coordinator.ShouldStop());
  EXPECT_TRUE(Fails(coordinator.RequestedError(), Code::kInternal, "first"));
  EXPECT_TRUE(Fails(coordinator.Join(), Code::kInternal, "first"));
  EXPECT_TRUE(coordinator.joined());
  coordinator.ClearStop();
  EXPECT_FALSE(coordinator.ShouldStop());
  EXPECT_FALSE(coordinator.joined());
  EXPECT_TRUE(Succeeds(coordinator.RequestedError()));
}

TEST(CoordinatorTest, F382_an_end_of_data_is_clean_unless_told_otherwise) {
  const Coordinator usual, strict(std::vector<Code>{});
  for (const Coordinator* coordinator : {&usual, &strict}) coordinator->RequestStop(Status(Code::kOutOfRange, "end"));
  EXPECT_TRUE(Succeeds(usual.Join()));
  EXPECT_TRUE(Fails(strict.Join(), Code::kOutOfRange, "end"));
}

TEST(CoordinatorTest, F382_threads_that_run_on_are_named) {
  for (const bool ignored : {false, true}) {
    const Coordinator coordinator;
    auto release = std::make_shared<std::promise<void>>();
    const auto slow =
        std::make_shared<CoordinatedThread>("slow", [held = release->get_future().share()] { held.wait(); });
    coordinator.RegisterThread(slow);
    slow->Start();
    coordinator.RequestStop();
    JoinOptions join;
    join.stop_grace_period_secs = 0;
    join.ignore_live_threads = ignored;
    const Status joined = coordinator.Join(join);
    EXPECT_TRUE(slow->alive());
    release->set_value();
    EXPECT_TRUE(slow->Wait(kLong));
    if (ignored) {
      EXPECT_TRUE(Succeeds(joined));
    } else {
      EXPECT_TRUE(Fails(joined, Code::kFailedPrecondition, "Coordinator stopped with threads still running: slow"));
    }
  }
}

TEST(CoordinatorTest, F382_join_without_a_stop_waits_for_all_threads) {
  const Coordinator coordinator;
  std::atomic<int> done{0};
  JoinOptions join;
  for (int i = 0; i < 3; ++i) {
    join.threads.push_back(std::make_shared<CoordinatedThread>("worker", [&] { ++done; }));
    join.threads.back()->Start();
  }
  EXPECT_TRUE(Succeeds(coordinator.Join(join)));
  EXPECT_EQ(done, 3);
  EXPECT_FALSE(coordinator.ShouldStop());
  EXPECT_FALSE(coordinator.WaitForStop(0));
}

TEST(CoordinatorTest, F382_F203_a_looper_runs_until_the_stop_and_exceptions_stop_all) {
  const Coordinator coordinator;
  std::atomic<int> runs{0};
  std::atomic<bool> stopped{false};
  LooperBody body;
  body.run = [&] { return ++runs, Status(); };
  body.stop = [&] { return stopped = true, Status(); };
  const auto looper = std::make_shared<LooperThread>(coordinator, 0, body, "looper");
  coordinator.RegisterThread(looper);
  looper->Start();
  while (runs < 3) std::this_thread::yield();
  const auto thrower = LooperThread::Loop(coordinator, 1000, []() -> Status { throw std::runtime_error("thrown"); });
  EXPECT_TRUE(Fails(coordinator.Join(), Code::kUnknown, "thrown"));
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(looper->alive());
  EXPECT_TRUE(Fails(Coordinator().StopOnError([] { return Status(Code::kDataLoss, "bad"); }), Code::kDataLoss, "bad"));
}

TEST(QueueRunnerTest, F383_fills_a_queue_until_the_input_ends) {
  Fresh f;
  const Variable counter(Constant(Tensor::Scalar<int32_t>(0)), {.name = "counter"});
  const FIFOQueue queue(10, {DType::kInt32}, {.shapes = {PartialShape(Shape())}, .name = "fq"});
  const QueueRunner runner(queue, {queue.Enqueue(CountUpTo(counter, 5))});
  AddQueueRunner(runner);
  EXPECT_EQ(runner.name(), "fq");
  EXPECT_EQ(runner.enqueue_ops()[0].name(), "fq_enqueue");
  EXPECT_EQ(runner.close_op().name(), "fq_Close");
  EXPECT_EQ(runner.cancel_op().name(), "fq_Close_1");
  const Output next = queue.Dequeue()[0];
  Session session(f.graph);
  Initialize(session);
  const Coordinator coordinator;
  const auto threads = StartQueueRunners({.session = &session, .coordinator = &coordinator});
  ASSERT_TRUE(Succeeds(threads));
  ASSERT_EQ(threads->size(), 2u);
  EXPECT_EQ((*threads)[0]->name(), "QueueRunnerThread-fq-fq_enqueue");
  EXPECT_EQ((*threads)[1]->name(), "QueueRunnerThread-fq-close_on_stop");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Value(session, next), i);
  EXPECT_TRUE(Fails(session.Run(next), Code::kOutOfRange, "is closed and has insufficient elements"));
  coordinator.RequestStop();
  EXPECT_TRUE(Succeeds(coordinator.Join()));
}

TEST(QueueRunnerTest, F383_an_error_of_an_enqueue_stops_the_coordinator_and_closes_the_queue) {
  Fresh f;
  const FIFOQueue queue(10, {DType::kInt32}, {.name = "fq"});
  Operation enqueue;
  {
    const ControlDependencies after({Assert(Placeholder(DType::kBool, PartialShape(Shape()), "never"), {"no"})});
    enqueue = queue.Enqueue(1);
  }
  const Output closed = queue.IsClosed();
  const QueueRunner runner(queue, {enqueue});
  Session session(f.graph);
  const Coordinator coordinator;
  (void)runner.CreateThreads(session, &coordinator);
  EXPECT_TRUE(coordinator.WaitForStop(kLong));
  const Status joined = coordinator.Join();
  EXPECT_EQ(joined.code(), Code::kInvalidArgument) << joined.ToString();
  EXPECT_EQ(Value(session, closed), 1);
  // Without a coordinator the error is kept.
  const auto threads = runner.CreateThreads(session);
  ASSERT_EQ(threads.size(), 1u);
  ASSERT_TRUE(threads[0]->Wait(kLong));
  ASSERT_EQ(runner.errors_raised().size(), 1u);
}

TEST(QueueRunnerTest, F383_an_assertion_that_fails_in_a_runner_is_what_join_returns) {
  Fresh f;
  const FIFOQueue queue(10, {DType::kInt32}, {.name = "fq"});
  const Variable never(false, {.name = "never"});
  Operation enqueue;
  {
    const ControlDependencies after({Assert(never, {"no"})});
    enqueue = queue.Enqueue(1);
  }
  const Output taken = queue.Dequeue()[0];
  const QueueRunner runner(queue, {enqueue});
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(never.initializer())));
  const Coordinator coordinator;
  (void)runner.CreateThreads(session, &coordinator);
  EXPECT_TRUE(coordinator.WaitForStop(kLong));
  EXPECT_TRUE(Fails(coordinator.Join(), Code::kInvalidArgument, "assertion failed: [no]"));
  EXPECT_TRUE(Fails(session.Run(taken), Code::kOutOfRange, "is closed and has insufficient elements"));
}

TEST(QueueRunnerTest, F383_a_stop_ends_what_waits_for_room_or_for_another_queue) {
  Fresh f;
  const FIFOQueue full(1, {DType::kInt32}, {.name = "full"}), source(1, {DType::kInt32}, {.name = "source"});
  QueueRunnerOptions soon;
  soon.cancel_after_secs = 0.01;
  const QueueRunner fills(full, {full.Enqueue(1), full.Enqueue(2)}, soon);
  const QueueRunner waits(full, {full.Enqueue(source.Dequeue()[0])}, soon);
  Session session(f.graph);
  const Coordinator coordinator;
  (void)fills.CreateThreads(session, &coordinator);
  (void)waits.CreateThreads(session, &coordinator);
  coordinator.RequestStop();
  EXPECT_TRUE(Succeeds(coordinator.Join()));
}

TEST(QueueRunnerTest, F383_runners_go_through_files) {
  std::string bytes;
  {
    Fresh f;
    const FIFOQueue queue(10, {DType::kInt32}, {.name = "fq"});
    AddQueueRunner(QueueRunner(queue, {queue.Enqueue(7)}));
    const Result<std::string> meta = ExportMetaGraph(f.graph);
    ASSERT_TRUE(Succeeds(meta));
    bytes = *meta;
  }
  for (const char* scope : {"", "in"}) {
    Fresh f;
    MetaGraphOptions options;
    options.import_scope = scope;
    ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes, f.graph, options)));
    const Result<std::vector<QueueRunner>> runners = QueueRunnersIn(f.graph);
    ASSERT_TRUE(Succeeds(runners));
    ASSERT_EQ(runners->size(), 1u);
    EXPECT_EQ((*runners)[0].cancel_op().name(), std::string(scope) + (*scope ? "/" : "") + "fq_Close_1");
  }
  Fresh f;
  EXPECT_TRUE(Fails(QueueRunner::FromProto("\xff\xff", f.graph), Code::kDataLoss, "no QueueRunnerDef"));
  EXPECT_TRUE(Fails(StartQueueRunners(), Code::kInvalidArgument,
                    "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or "
                    "pass an explicit session to tf.start_queue_runners(sess=sess)"));
}

/// Everything that a pipeline gives until its end, run by queue runners.
std::vector<std::vector<double>> Drain(Graph& graph, const Output& next) {
  Session session(graph);
  std::vector<std::vector<double>> all;
  EXPECT_TRUE(Succeeds(session.Run(LocalVariablesInitializer(graph))));
  const Coordinator coordinator;
  EXPECT_TRUE(Succeeds(StartQueueRunners({.session = &session, .coordinator = &coordinator})));
  while (true) {
    const Result<Fetched> fetched = session.Run(next);
    if (!fetched.ok()) {
      EXPECT_EQ(fetched.status().code(), Code::kOutOfRange) << fetched.status().ToString();
      break;
    }
    std::vector<double> values;
    for (int64_t i = 0; i < fetched->tensor().elements(); ++i) {
      values.push_back(ElementAsDouble(fetched->tensor(), i));
    }
    all.push_back(std::move(values));
  }
  coordinator.RequestStop();
  EXPECT_TRUE(Succeeds(coordinator.Join()));
  return all;
}

TEST(InputTest, F383_strings_of_two_epochs_in_order) {
  Fresh f;
  const FIFOQueue names = StringInputProducer({"a", "b"}, {.num_epochs = 2, .shuffle = false});
  EXPECT_EQ(names.name(), "input_producer");
  ASSERT_EQ(LocalVariables().size(), 1u);
  EXPECT_EQ(LocalVariables()[0].name(), "input_producer/limit_epochs/epochs:0");
  EXPECT_TRUE(f.graph.OperationByName("input_producer/fraction_of_32_full").ok());
  EXPECT_TRUE(f.graph.OperationByName("input_producer/input_producer_EnqueueMany").ok());
  EXPECT_TRUE(f.graph.OperationByName("input_producer/Assert/Assert").ok());
  const Output next = names.Dequeue()[0];
  const Output is_a = Cast(Equal(next, "a"), DType::kInt32);
  EXPECT_EQ(Drain(f.graph, is_a), (std::vector<std::vector<double>>{{1}, {0}, {1}, {0}}));
}

TEST(InputTest, F383_ranges_slices_and_batches) {
  Fresh f;
  const List<Output> slices =
      SliceInputProducer({Constant(Tensor::Vector<float>({10, 20, 30, 40, 50}))}, {.num_epochs = 1, .shuffle = false});
  const List<Output> batches = Batch({slices[0]}, 2, {.allow_smaller_final_batch = true});
  EXPECT_EQ(batches[0].op().name(), "batch");
  EXPECT_TRUE(f.graph.OperationByName("batch/fifo_queue").ok());
  EXPECT_TRUE(f.graph.OperationByName("batch/fraction_of_32_full").ok());
  ASSERT_TRUE(Succeeds(f.graph.status()));
  EXPECT_EQ(Drain(f.graph, batches[0]), (std::vector<std::vector<double>>{{10, 20}, {30, 40}, {50}}));
}

TEST(InputTest, F383_shuffled_batches_have_every_element_once) {
  Fresh f;
  const FIFOQueue numbers = RangeInputProducer(7, {.num_epochs = 1, .shuffle = true, .seed = 3});
  const List<Output> batches =
      ShuffleBatch({numbers.Dequeue()[0]}, 2,
                   {.capacity = 10, .min_after_dequeue = 3, .num_threads = 2, .allow_smaller_final_batch = true});
  EXPECT_TRUE(f.graph.OperationByName("shuffle_batch/random_shuffle_queue").ok());
  EXPECT_TRUE(f.graph.OperationByName("shuffle_batch/fraction_over_3_of_7_full").ok());
  std::vector<int> seen(7, 0);
  for (const std::vector<double>& batch : Drain(f.graph, batches[0])) {
    for (const double number : batch) ++seen[static_cast<size_t>(number)];
  }
  EXPECT_EQ(seen, std::vector<int>(7, 1));
}

TEST(InputTest, F383_bad_arguments) {
  Fresh f;
  (void)StringInputProducer(Literal());
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "string_input_producer requires a non-null input tensor"));
  (void)LimitEpochs(1.0, 0);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "num_epochs must be > 0 not 0."));
  EXPECT_FALSE(Batch({}, 2)[0].exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Expected at least one tensor in batch()."));
}

}  // namespace
}  // namespace weir::test
