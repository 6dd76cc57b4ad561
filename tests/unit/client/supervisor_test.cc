// Supervisors, session managers, monitored sessions and their hooks. Texts and files are those of TensorFlow 2.17.1.
#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "core/client/session/session_interface.h"
#include "core/io/event_file.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// A model that counts: the global step, and a variable that grows by 2.
struct Counting {
  explicit Counting(double begin = 1)
      : v(GetVariable("v", {.shape = Shape(), .initializer = ConstantInitializer(begin)})) {
    const Output grown = v.AssignAdd(2.0);
    const ControlDependencies after({grown});
    train = step.AssignAdd(Constant(Tensor::Scalar<int64_t>(1))).op();
  }
  Variable step = GetOrCreateGlobalStep();
  Variable v;
  Operation train;
};

std::vector<io::Event> EventsIn(const std::string& folder) {
  std::vector<io::Event> events;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    Result<io::EventReader> reader = io::EventReader::Open(entry.path());
    if (!reader.ok()) continue;
    while (true) {
      const Result<std::optional<io::Event>> event = reader->Next();
      if (!event.ok() || !event->has_value()) break;
      events.push_back(**event);
    }
  }
  return events;
}

/// Steps of the values with a tag, in order.
std::vector<int64_t> StepsOf(const std::vector<io::Event>& events, std::string_view tag) {
  std::vector<int64_t> steps;
  for (const io::Event& event : events) {
    for (const io::SummaryValue& value : event.summary) {
      if (value.tag == tag) steps.push_back(event.step);
    }
  }
  return steps;
}

TEST(SupervisorTest, F204_F205_the_example_of_the_guide) {
  TemporaryFolder folder;
  Fresh f;
  const Variable a(1), b(2);
  const Output c = Add(a, b);
  const Output update = Assign(a, c);
  (void)summary::Scalar("a", a);
  const Operation init = GlobalVariablesInitializer();
  const Output merged = summary::MergeAll();
  SupervisorOptions options;
  options.logdir = folder.path;
  options.init_op = init;
  options.save_model_secs = 0;
  Supervisor supervisor(options);
  ASSERT_TRUE(Succeeds(supervisor.status()));
  Saver* const saver = supervisor.saver();
  ASSERT_NE(saver, nullptr);
  std::vector<int> printed;
  const Status done = supervisor.ManagedSession([&](Session& session) -> Status {
    for (int i = 0; i < 1000; ++i) {
      WEIR_ASSIGN(const Fetched value, session.Run(update));
      printed.push_back(*value.scalar<int32_t>());
      if (i % 10 == 0) {
        WEIR_ASSIGN(const Fetched text, session.Run(merged));
        WEIR_TRY(supervisor.SummaryComputed(session, text.tensor(), i));
      }
      if (i % 100 == 0) {
        SaveOptions how;
        how.global_step = GlobalStep(i);
        WEIR_TRY(saver->Save(session, folder.path + "/", how).status());
      }
    }
    return Status();
  });
  ASSERT_TRUE(Succeeds(done));
  ASSERT_EQ(printed.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(printed[static_cast<size_t>(i)], 3 + 2 * i);
  EXPECT_TRUE(folder.Has("-900.index"));
  EXPECT_TRUE(folder.Has("-500.index"));
  EXPECT_FALSE(folder.Has("-400.index")) << "the last five stay";
  EXPECT_TRUE(folder.Has("checkpoint"));
  EXPECT_TRUE(folder.Has("graph.pbtxt"));
  const std::vector<int64_t> steps = StepsOf(EventsIn(folder.path), "a");
  ASSERT_GE(steps.size(), 100u);  // and those of the summary thread
  EXPECT_EQ(steps.back(), 990);
}

TEST(SupervisorTest, F202_the_latest_checkpoint_is_restored_else_init_runs) {
  TemporaryFolder folder;
  for (const double wanted : {1.0, 5.0}) {
    Fresh f;
    Counting model;
    SupervisorOptions options;
    options.logdir = folder.path;
    options.save_summaries_secs = 0;
    options.save_model_secs = 0;
    Supervisor supervisor(options);
    EXPECT_EQ(supervisor.save_path(), folder.path + "/model.ckpt");
    EXPECT_EQ(supervisor.save_model_secs(), 0);
    EXPECT_EQ(SupervisorOptions().save_model_secs, 600);
    EXPECT_EQ(SupervisorOptions().save_summaries_secs, 120);
    const Status done = supervisor.ManagedSession([&](Session& session) -> Status {
      EXPECT_EQ(Value(session, model.v), wanted);
      for (int i = 0; i < 2; ++i) WEIR_TRY(session.Run(model.train).status());
      SaveOptions how;
      how.global_step = GlobalStep(model.step);
      return supervisor.saver()->Save(session, supervisor.save_path(), how).status();
    });
    ASSERT_TRUE(Succeeds(done));
  }
  EXPECT_TRUE(folder.Has("model.ckpt-2.index"));
  EXPECT_TRUE(folder.Has("model.ckpt-4.index"));
  EXPECT_TRUE(folder.Has("graph.pbtxt"));
}

TEST(SupervisorTest, F202_F204_the_services_save_and_write_by_themselves) {
  TemporaryFolder folder;
  Fresh f;
  Counting model;
  (void)summary::Scalar("grown", model.v);
  SupervisorOptions options;
  options.logdir = folder.path;
  options.save_summaries_secs = 0.01;
  options.save_model_secs = 0.01;
  Supervisor supervisor(options);
  const Status done = supervisor.ManagedSession([&](Session& session) -> Status {
    WEIR_TRY(session.Run(model.train).status());
    while (!supervisor.ShouldStop() && supervisor.saver()->counts().saved < 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return Status();
  });
  ASSERT_TRUE(Succeeds(done));
  EXPECT_TRUE(folder.Has("checkpoint"));
  const std::vector<io::Event> events = EventsIn(folder.path);
  EXPECT_FALSE(StepsOf(events, "grown").empty());
  std::vector<io::SessionStatus> states;
  for (const io::Event& event : events) {
    if (event.session_status) states.push_back(*event.session_status);
  }
  ASSERT_GE(states.size(), 3u);
  EXPECT_EQ(states.front(), io::SessionStatus::kStart);
  EXPECT_EQ(states.back(), io::SessionStatus::kStop);
}

TEST(SupervisorTest, F203_a_stop_ends_services_and_an_error_of_one_thread_all) {
  Fresh f;
  Counting model;
  Supervisor supervisor;
  int steps = 0;
  Status done = supervisor.ManagedSession([&](Session& session) -> Status {
    (void)supervisor.Loop(0, [] { return Status(Code::kDataLoss, "a thread fails"); });
    while (!supervisor.ShouldStop()) {
      WEIR_TRY(session.Run(model.train).status());
      ++steps;
    }
    return Status();
  });
  EXPECT_TRUE(Fails(done, Code::kDataLoss, "a thread fails"));
  // Another round of the same supervisor; an end of data is no error.
  done = supervisor.ManagedSession([&](Session&) { return Status(Code::kOutOfRange, "no more data"); });
  EXPECT_TRUE(Succeeds(done));
  EXPECT_TRUE(supervisor.ShouldStop());
  done = supervisor.ManagedSession([&](Session&) { return Status(Code::kInternal, "the body fails"); });
  EXPECT_TRUE(Fails(done, Code::kInternal, "the body fails"));
}

/// The loop of the guide, from a checkpoint near its end.
TEST(SupervisorTest, F203_the_loop_ends_at_a_million_steps) {
  constexpr int64_t kLimit = 1000000, kLeft = 10;
  const TemporaryFolder folder;
  {
    Fresh f;
    Counting model;
    const Operation near = Assign(model.step, Constant(Tensor::Scalar<int64_t>(kLimit - kLeft)), {}).op();
    const Operation init = GlobalVariablesInitializer();
    Saver saver;
    Session session(f.graph);
    ASSERT_TRUE(Succeeds(session.Run(init)));
    ASSERT_TRUE(Succeeds(session.Run(near)));
    ASSERT_TRUE(Succeeds(saver.Save(session, folder / "model.ckpt", {.global_step = kLimit - kLeft})));
  }
  Fresh f;
  Counting model;
  Supervisor supervisor({.logdir = folder.path, .save_summaries_secs = 0, .save_model_secs = 3600});
  int64_t step = 0, runs = 0;
  const Status done = supervisor.ManagedSession([&](Session& session) -> Status {
    while (!supervisor.ShouldStop() && step < kLimit) {
      WEIR_TRY(session.Run(model.train).status());
      WEIR_ASSIGN(const Fetched now, session.Run(model.step));
      step = *now.scalar<int64_t>();
      ++runs;
    }
    return Status();
  });
  EXPECT_TRUE(Succeeds(done));
  EXPECT_EQ(step, kLimit);
  EXPECT_EQ(runs, kLeft);
  EXPECT_TRUE(supervisor.ShouldStop());
}

TEST(SupervisorTest, F206_who_waits_how_long_and_what_is_refused) {
  Fresh f;
  Variable a(1), b(2, {.name = "b2"});
  (void)summary::Scalar("a", a);
  SupervisorOptions options;
  options.init_op = a.initializer();
  Supervisor chief(options);
  EXPECT_TRUE(Fails(chief.PrepareOrWaitForSession(), Code::kFailedPrecondition,
                    "Init operations did not make model ready.  Init op: "));
  EXPECT_TRUE(Fails(chief.PrepareOrWaitForSession(), Code::kFailedPrecondition, "Variables not initialized: b2"));
  Session session(f.graph);
  EXPECT_TRUE(Fails(chief.SummaryComputed(session, Tensor::String("")), Code::kFailedPrecondition,
                    "Writing a summary requires a summary writer."));

  Fresh without;
  const Variable own(1);
  SupervisorOptions other;
  other.is_chief = false;
  const Supervisor without_devices(other);
  EXPECT_TRUE(Fails(without_devices.status(), Code::kInvalidArgument,
                    "When using replicas, all Variables must have their device set: <tf.Operation 'Variable' "
                    "type=VariableV2>"));
}

TEST(SupervisorTest, F206_a_worker_waits_for_the_chief) {
  Fresh f;
  const DeviceScope there("/cpu:0");
  Counting model;
  SupervisorOptions options;
  options.is_chief = false;
  options.recovery_wait_secs = 0.01;
  Supervisor worker(options);
  ASSERT_TRUE(Succeeds(worker.status()));
  WaitOptions limited;
  limited.max_wait_secs = 0.02;
  EXPECT_TRUE(Fails(worker.PrepareOrWaitForSession(limited), Code::kDeadlineExceeded,
                    "Session was not ready after waiting 0 secs."));
  // The third session that it makes is one that the chief has initialized.
  int made = 0;
  WaitOptions patient;
  patient.make = [&](Graph& graph) {
    auto session = std::make_unique<Session>(graph);
    if (++made == 3) {
      EXPECT_TRUE(Succeeds(session->Run(worker.init_op())));
    }
    return session;
  };
  const Status done = worker.ManagedSession(
      [&](Session& session) {
        EXPECT_EQ(Value(session, model.v), 1);
        EXPECT_TRUE(Fails(worker.StartStandardServices(session), Code::kFailedPrecondition,
                          "Only chief supervisor can start standard services."));
        return Status();
      },
      patient);
  EXPECT_TRUE(Succeeds(done));
  EXPECT_EQ(made, 3);
}

TEST(SupervisorTest, F207_without_a_folder_it_still_runs) {
  Fresh f;
  Counting model;
  Supervisor supervisor;
  EXPECT_EQ(supervisor.save_path(), "");
  ::testing::internal::CaptureStderr();
  const Result<std::unique_ptr<Session>> session = supervisor.PrepareOrWaitForSession();
  const std::string warned = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(Succeeds(session));
  EXPECT_NE(warned.find("Standard services need a 'logdir' passed to the SessionManager"), std::string::npos);
  EXPECT_TRUE(Succeeds((*session)->Run(model.train)));
  EXPECT_EQ(Value(**session, model.step), 1);
  EXPECT_TRUE(Succeeds(supervisor.Stop()));
}

TEST(SessionManagerTest, F206_F202_bad_arguments_and_recovery) {
  TemporaryFolder folder;
  Fresh f;
  Counting model;
  const Output ready = ReportUninitializedVariables();
  const Operation init = GlobalVariablesInitializer();
  Saver saver;
  const SessionManager bad({.ready_for_local_init_op = ready});
  EXPECT_TRUE(Fails(bad.PrepareSession({}), Code::kInvalidArgument,
                    "If you pass a ready_for_local_init_op you must also pass a local_init_op"));
  const SessionManager manager({.ready_op = ready, .recovery_wait_secs = 0.01});
  EXPECT_TRUE(Fails(manager.PrepareSession({}), Code::kFailedPrecondition,
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"));
  PrepareOptions both;
  both.saver = saver;
  both.checkpoint_dir = both.checkpoint_path = folder.path;
  EXPECT_TRUE(Fails(manager.RecoverSession(both), Code::kInvalidArgument,
                    "Can not provide both checkpoint_dir and checkpoint_filename_with_path."));
  PrepareOptions prepare;
  prepare.saver = saver;
  prepare.checkpoint_dir = folder.path;
  prepare.wait_for_checkpoint = true;
  prepare.max_wait_secs = 0.02;
  const auto none = manager.RecoverSession(prepare);
  ASSERT_TRUE(Succeeds(none));
  EXPECT_FALSE(none->second);
  prepare.init_op = init;
  prepare.init_fn = [&](Session& session) { return session.Run(model.train).status(); };
  const auto first = manager.PrepareSession(prepare);
  ASSERT_TRUE(Succeeds(first));
  ASSERT_TRUE(Succeeds(saver.Save(**first, folder / "m")));
  const auto again = manager.RecoverSession(prepare);
  ASSERT_TRUE(Succeeds(again));
  EXPECT_TRUE(again->second);
  EXPECT_EQ(Value(*again->first, model.v), 3);
  EXPECT_EQ(Value(*again->first, model.step), 1);
}

/// Counts the calls of a hook.
struct CallsHook : SessionRunHook {
  Status Begin(Graph&) override { return ++begun, Status(); }
  Status AfterCreateSession(Session&, const Coordinator&) override { return ++created, Status(); }
  Result<SessionRunArgs> BeforeRun(SessionRunContext&) override { return ++before, SessionRunArgs(); }
  Status AfterRun(SessionRunContext&, const Fetched&) override { return ++after, Status(); }
  Status End(Session&) override { return ++ended, Status(); }
  int begun = 0, created = 0, before = 0, after = 0, ended = 0;
};

TEST(MonitoredSessionTest, F242_the_chief_saves_every_so_many_steps) {
  TemporaryFolder folder, summaries;
  Fresh f;
  Counting model;
  (void)summary::Scalar("grown", model.v);
  TrainingSessionOptions options;
  options.checkpoint_dir = folder.path;
  options.summary_dir = summaries.path;
  options.save_checkpoint_steps = 10;
  options.save_summaries_steps = 10;
  options.log_step_count_steps = 10;
  options.hooks = {std::make_shared<StopAtStepHook>(std::nullopt, 25)};
  options.scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.saver = Saver({.max_to_keep = 0})});
  const auto session = MonitoredTrainingSession(options);
  ASSERT_TRUE(Succeeds(session->status()));
  while (!session->ShouldStop()) ASSERT_TRUE(Succeeds(session->Run(model.train)));
  EXPECT_TRUE(
      Fails(session->Run(model.train), Code::kFailedPrecondition, "Run called even after should_stop requested."));
  EXPECT_TRUE(Succeeds(session->Close()));
  for (const char* name : {"model.ckpt-0", "model.ckpt-10", "model.ckpt-20", "model.ckpt-25"}) {
    EXPECT_TRUE(folder.Has(std::string(name) + ".index")) << name;
  }
  for (const char* name : {"model.ckpt-1", "model.ckpt-11", "model.ckpt-24"}) {
    EXPECT_FALSE(folder.Has(std::string(name) + ".index")) << name;
  }
  EXPECT_TRUE(folder.Has("graph.pbtxt"));
  const std::vector<io::Event> events = EventsIn(summaries.path);
  EXPECT_EQ(StepsOf(events, "grown"), (std::vector<int64_t>{1, 10, 19}));  // as in TensorFlow
  EXPECT_EQ(StepsOf(events, "global_step/sec"), (std::vector<int64_t>{11, 21}));
}

TEST(MonitoredSessionTest, F242_others_save_nothing) {
  TemporaryFolder folder;
  Fresh f;
  Counting model;
  TrainingSessionOptions options;
  options.is_chief = false;
  options.checkpoint_dir = folder.path;
  options.save_checkpoint_steps = 1;
  options.recovery_wait_secs = 0.01;
  options.hooks = {std::make_shared<StopAtStepHook>(3)};
  options.scaffold = std::make_shared<Scaffold>();
  options.make = [&](Graph& graph) {  // whose chief has initialized the model
    auto session = std::make_unique<Session>(graph);
    EXPECT_TRUE(Succeeds(session->Run(options.scaffold->init_op())));
    return session;
  };
  const auto session = MonitoredTrainingSession(options);
  ASSERT_TRUE(Succeeds(session->status()));
  int steps = 0;
  for (; !session->ShouldStop(); ++steps) ASSERT_TRUE(Succeeds(session->Run(model.train)));
  EXPECT_EQ(steps, 3);
  EXPECT_TRUE(Succeeds(session->Close()));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(MonitoredSessionTest, F202_hooks_run_around_steps_and_end_without_errors_only) {
  for (const Code code : {Code::kOk, Code::kOutOfRange, Code::kInternal}) {
    Fresh f;
    Counting model;
    const auto calls = std::make_shared<CallsHook>();
    const auto final_ops = std::make_shared<FinalOpsHook>(Fetch(model.v));
    MonitoredSession session({.hooks = {calls, final_ops}});
    ASSERT_TRUE(Succeeds(session.Run(model.train)));
    const Status why = code == Code::kOk ? Status() : Status(code, "the loop ends");
    const Status closed = session.Close(why);
    EXPECT_EQ(closed.code(), code == Code::kInternal ? code : Code::kOk);
    EXPECT_EQ(calls->begun, 1);
    EXPECT_EQ(calls->created, 1);
    EXPECT_EQ(calls->before, 1);
    EXPECT_EQ(calls->after, 1);
    EXPECT_EQ(calls->ended, code == Code::kInternal ? 0 : 1);
    if (code != Code::kInternal) {
      EXPECT_EQ(*final_ops->final_ops_values().scalar<float>(), 3);
    }
    EXPECT_TRUE(Fails(session.Run(model.train), Code::kFailedPrecondition, "Attempted to use a closed Session."));
  }
}

TEST(MonitoredSessionTest, F202_feeds_logs_and_losses_that_are_no_numbers) {
  Fresh f;
  Counting model;
  const Output x = Placeholder(DType::kFloat, PartialShape(Shape()), "x"), loss = Log(x);
  float fed = 1;
  std::vector<std::string> lines;
  LoggingOptions log;
  log.every_n_iter = 2;
  log.at_end = false;
  log.print = [&](const std::string& line) { lines.push_back(line); };
  MonitoredSession session(
      {.hooks = {std::make_shared<FeedFnHook>([&] {
                   return Feeds{{x, fed}};
                 }),
                 std::make_shared<LoggingTensorHook>(std::vector<std::pair<std::string, Output>>{{"x", x}}, log),
                 std::make_shared<NanTensorHook>(loss)}});
  ASSERT_TRUE(Succeeds(session.status()));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Succeeds(session.Run(model.train)));
  EXPECT_EQ(lines, (std::vector<std::string>{"x = 1", "x = 1"}));
  EXPECT_TRUE(Fails(session.Run(model.train, {{x, 2.0f}}), Code::kFailedPrecondition,
                    "Same tensor is fed by a SessionRunHook and user."));
  fed = -1;
  EXPECT_TRUE(Fails(session.Run(model.train), Code::kInvalidArgument, "NaN loss during training."));
  EXPECT_TRUE(Fails(StopAtStepHook(std::nullopt).Begin(f.graph), Code::kInvalidArgument,
                    "One of num_steps or last_step must be specified."));
  EXPECT_TRUE(Fails(StopAtStepHook(1, 2).Begin(f.graph), Code::kInvalidArgument,
                    "Only one of num_steps or last_step can be specified."));
  EXPECT_TRUE(Fails(SecondOrStepTimer({}, {}).status(), Code::kInvalidArgument,
                    "Either every_secs or every_steps should be provided."));
}

/// Steps that fail with an error while there is one.
class Failing : public SessionInterface {
 public:
  Failing(std::unique_ptr<SessionInterface> real, std::shared_ptr<std::vector<Code>> errors)
      : real_(std::move(real)), errors_(std::move(errors)) {}
  Result<std::vector<Tensor>> Run(std::span<const session::Feed> feeds, Names fetches, Names targets,
                                  const session::RunOptions& options, session::RunReport* report) override {
    const bool trains = std::ranges::any_of(targets, [](const std::string& name) { return name == "AssignAdd_1"; });
    if (trains && !errors_->empty()) {
      const Code code = errors_->back();
      errors_->pop_back();
      return Status(code, "a task was lost");
    }
    return real_->Run(feeds, fetches, targets, options, report);
  }
  Result<session::CallableHandle> MakeCallable(const session::CallableOptions& options) override {
    return real_->MakeCallable(options);
  }
  Status RunCallable(session::CallableHandle handle, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                     const session::RunOptions& options, session::RunReport* report) override {
    return real_->RunCallable(handle, feeds, fetches, options, report);
  }
  Status ReleaseCallable(session::CallableHandle handle) override { return real_->ReleaseCallable(handle); }
  Result<std::string> PRunSetup(Names feeds, Names fetches, Names targets) override {
    return real_->PRunSetup(feeds, fetches, targets);
  }
  Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const session::Feed> feeds,
                                   Names fetches) override {
    return real_->PRun(handle, feeds, fetches);
  }
  Status Close() override { return real_->Close(); }
  std::vector<session::DeviceAttributes> ListDevices() const override { return real_->ListDevices(); }
  session::DeviceReport ReportDevices() const override { return real_->ReportDevices(); }
  session::Placement ReportPlacement() const override { return real_->ReportPlacement(); }
  Result<std::string> ExplainPlacement(std::span<const session::Feed> feeds, Names fetches, Names targets) override {
    return real_->ExplainPlacement(feeds, fetches, targets);
  }
  std::string ReportMemory() const override { return real_->ReportMemory(); }
  void TraceTo(std::shared_ptr<session::Tracer> tracer) override { real_->TraceTo(std::move(tracer)); }

 private:
  const std::unique_ptr<SessionInterface> real_;
  const std::shared_ptr<std::vector<Code>> errors_;
};

SessionMaker FailsWith(const std::shared_ptr<std::vector<Code>>& errors) {
  return [errors](Graph& graph) {
    Result<std::unique_ptr<SessionInterface>> real = InProcess(graph, session::SessionOptions());
    if (!real.ok()) return std::make_unique<Session>(graph, real.status());
    return std::make_unique<Session>(
        graph, std::unique_ptr<SessionInterface>(std::make_unique<Failing>(std::move(*real), errors)));
  };
}

TEST(MonitoredSessionTest, F202_recovers_from_lost_tasks_only_and_not_forever) {
  TemporaryFolder folder;
  Fresh f;
  Counting model;
  ASSERT_EQ(model.train.name(), "AssignAdd_1");
  const auto errors = std::make_shared<std::vector<Code>>();
  const auto calls = std::make_shared<CallsHook>();
  CheckpointSaverOptions save;
  save.save_steps = 1;
  MonitoredSession session({.make = FailsWith(errors),
                            .checkpoint_dir = folder.path,
                            .hooks = {calls, std::make_shared<CheckpointSaverHook>(folder.path, save)},
                            .max_recoveries = 3,
                            .recovery_backoff_secs = 0.001});
  ASSERT_TRUE(Succeeds(session.status()));
  ASSERT_TRUE(Succeeds(session.Run(model.train)));
  *errors = {Code::kUnavailable, Code::kAborted};
  ASSERT_TRUE(Succeeds(session.Run(model.train)));
  EXPECT_EQ(session.sessions(), 3);
  EXPECT_EQ(calls->created, 3);
  EXPECT_EQ(Value(*session.session(), model.step), 2) << "each new session continued from the checkpoint";
  EXPECT_EQ(Value(*session.session(), model.v), 5);
  *errors = {Code::kInternal};
  EXPECT_TRUE(Fails(session.Run(model.train), Code::kInternal, "a task was lost"));
  EXPECT_EQ(session.sessions(), 3);
  *errors = std::vector<Code>(10, Code::kUnavailable);
  EXPECT_TRUE(Fails(session.Run(model.train), Code::kUnavailable, "gave up after 3 new sessions in a row"));
  EXPECT_EQ(errors->size(), 6u);
}

TEST(MonitoredSessionTest, F383_queue_runners_feed_it_until_the_data_ends) {
  Fresh f;
  Counting model;
  const FIFOQueue numbers = RangeInputProducer(5, {.num_epochs = 1, .shuffle = false});
  const Output next = numbers.Dequeue()[0];
  MonitoredSession session;
  ASSERT_TRUE(Succeeds(session.status()));
  double sum = 0;
  Status last;
  while (!session.ShouldStop() && last.ok()) {
    const Result<Fetched> got = session.Run(next);
    last = got.status();
    if (got.ok()) sum += *got->scalar<int32_t>();
  }
  EXPECT_EQ(last.code(), Code::kOutOfRange) << last.ToString();
  EXPECT_EQ(sum, 10);
  EXPECT_TRUE(Succeeds(session.Close(last)));
}

}  // namespace
}  // namespace weir::test
