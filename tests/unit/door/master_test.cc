// The calls of MasterService: results, errors and limits.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "tests/unit/door/door_master.h"
#include "weir/proto/run_metadata.pb.h"

namespace weir::door {
namespace {

TEST_F(DoorMaster, F092_F250_ASessionRunsItsGraphWithFeedsFetchesAndTargets) {
  const std::string handle = Create(Graph());
  EXPECT_EQ(handle.size(), 16u);
  tf::RunStepRequest request = Step(handle, {"y:0", "x:0"});
  Feed(request, "x:0", 4);
  tf::RunStepResponse response = Run(request);
  EXPECT_EQ(response.status_code(), 3) << "x is both fed and fetched";
  request = Step(handle, {"y:0", "two:0"}, {"init"});
  Feed(request, "x:0", 4);
  response = Run(request);
  ASSERT_EQ(response.tensor_size(), 2) << response.status_error_message();
  EXPECT_EQ(response.tensor(0).name(), "y:0");
  EXPECT_EQ(Value(response.tensor(0).tensor()), 8);
  EXPECT_EQ(Value(response.tensor(1).tensor()), 2);
  EXPECT_EQ(One(Step(handle, {"read:0"})), 3);
  EXPECT_TRUE(response.metadata().empty());
  EXPECT_EQ(master_->counts().sessions, 1u);
  tf::CloseSessionRequest close;
  close.set_session_handle(handle);
  Get<tf::CloseSessionResponse>("CloseSession", close);
  EXPECT_EQ(master_->counts().sessions, 0u);
  EXPECT_EQ(Run(Step(handle, {"read:0"})).status_error_message(), "Session " + handle + " is not found.");
}

TEST_F(DoorMaster, F250_AGraphGrowsByVersions) {
  const std::string handle = Create("");
  tf::ExtendSessionRequest extend;
  extend.set_session_handle(handle);
  extend.set_graph_def(Graph());
  EXPECT_EQ(Get<tf::ExtendSessionResponse>("ExtendSession", extend).new_graph_version(), 1);
  ExpectError("ExtendSession", extend, Code::kAborted, "Current version is 1 but caller expected 0.");
  extend.set_current_graph_version(1);
  ExpectError("ExtendSession", extend, Code::kInvalidArgument,
              "GraphDef argument to Extend includes node 'x', which was created by a previous call to Create or "
              "Extend in this session.");
  extend.set_graph_def(testing::NodeText("z", "Neg", {"two"},
                                         {{"T", "type: DT_FLOAT"}, {"_class", "list { s: 'loc:@v' }"}}));
  EXPECT_EQ(Get<tf::ExtendSessionResponse>("ExtendSession", extend).new_graph_version(), 2);
  EXPECT_EQ(One(Step(handle, {"z:0"})), -2);
  extend.set_current_graph_version(2);
  extend.set_graph_def("node { name: 'w' op: 'Neg' input: 'nowhere' }");
  EXPECT_EQ(Call("ExtendSession", extend).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(One(Step(handle, {"z:0"})), -2);
}

TEST_F(DoorMaster, F250_AGraphGrowsWhileAStepWaits) {
  const std::string handle = Create(Graph() + Queue());
  EXPECT_EQ(Run(Step(handle, {}, {"init"})).status_code(), 0);
  auto waiting = Begin(Step(handle, {"take:0"}));
  WaitForSteps(1);
  tf::ExtendSessionRequest extend;
  extend.set_session_handle(handle);
  extend.set_graph_def(TypedText("z", "Add", {"read", "two"}));
  EXPECT_EQ(Get<tf::ExtendSessionResponse>("ExtendSession", extend).new_graph_version(), 1);
  EXPECT_EQ(One(Step(handle, {"z:0"})), 5) << "variables are common to both graphs";
  EXPECT_EQ(Run(Step(handle, {}, {"put"})).status_code(), 0);
  const tf::RunStepResponse response = Ended(std::move(waiting));
  ASSERT_EQ(response.tensor_size(), 1) << response.status_error_message();
  EXPECT_EQ(Value(response.tensor(0).tensor()), 2);
}

TEST_F(DoorMaster, F250_ErrorsOfStepsStandInTheResponseIfItIsAsked) {
  const std::string handle = Create(Graph());
  const std::string unfed =
      std::string(kFrom) + "You must feed a value for placeholder tensor 'x' with dtype float\n\t [[{{node x}}]]";
  tf::RunStepRequest request = Step(handle, {"y:0"});
  tf::RunStepResponse response = Run(request);
  EXPECT_EQ(response.status_code(), static_cast<int>(Code::kInvalidArgument));
  EXPECT_TRUE(response.status_error_message().starts_with(unfed)) << response.status_error_message();
  EXPECT_EQ(response.tensor_size(), 0);
  request.set_store_errors_in_response_body(false);
  const Result<std::string> outside = Call("RunStep", request);
  EXPECT_EQ(outside.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(outside.status().message().starts_with(unfed)) << outside.status().message();
  response = Run(Step(handle, {"v:0"}));
  EXPECT_EQ(response.status_error_message(),
            std::string(kFrom) + "Attempting to use uninitialized value v\n\t [[{{node _send_v_0}}]]");
  EXPECT_EQ(Run(Step(handle, {})).status_error_message(), "Must specify at least one target to fetch or execute.");
  EXPECT_TRUE(Run(Step(handle, {"none:0"})).status_error_message().starts_with("FetchOutputs node none:0: not found"));
  request = Step(handle, {"y:0"});
  Feed(request, "x:0", 1);
  Feed(request, "x:0", 1);
  EXPECT_EQ(Run(request).status_error_message(), "Endpoint \"x:0\" fed more than once.");
}

TEST_F(DoorMaster, F250_UnknownOpsAreErrorsOfTheStepsThatNeedThem) {
  const std::string handle =
      Create(Graph() + NodeText("odd", "NoSuchOp", {"two"}) + TypedText("after", "Neg", {"odd"}) +
             NodeText("unused", "NoSuchOp", {"two"}));
  EXPECT_EQ(One(Step(handle, {"two:0"})), 2);
  for (const char* fetch : {"odd:0", "after:0", "unused:0"}) {
    const tf::RunStepResponse response = Run(Step(handle, {fetch}));
    EXPECT_EQ(response.status_code(), static_cast<int>(Code::kNotFound)) << fetch;
    EXPECT_TRUE(response.status_error_message().starts_with(
        std::string(kFrom) + "Op type not registered 'NoSuchOp' in binary running on"))
        << response.status_error_message();
  }
  for (const auto& [op, advice] : {std::pair("PyFunc", "compute its value there and feed it"),
                                   std::pair("IteratorGetNext", "read by queues and readers")}) {
    const tf::RunStepResponse never = Run(Step(Create(Graph() + NodeText("odd", op, {"two"})), {"odd:0"}));
    EXPECT_NE(never.status_error_message().find(advice), std::string::npos) << never.status_error_message();
  }
  tf::RunStepRequest fed = Step(handle, {"after:0"});
  Feed(fed, "odd:0", 3);
  EXPECT_NE(Run(fed).status_code(), static_cast<int>(Code::kNotFound)) << "the node does not run";
  EXPECT_NE(Run(Step(handle, {"two:0"}, {"odd"})).status_code(), 0);
}

TEST_F(DoorMaster, F250_ShapesThatDoNotFitAreErrorsOfTheStepsThatNeedThem) {
  const std::string handle = Create(Graph());
  tf::ExtendSessionRequest extend;
  extend.set_session_handle(handle);
  extend.set_graph_def(
      ConstText("order", "DT_INT32", {2}, "int_val: 0") + ConstText("square", "DT_FLOAT", {2, 2}, "float_val: 1") +
      NodeText("turned", "Transpose", {"square", "order"}, {{"T", "type: DT_FLOAT"}, {"Tperm", "type: DT_INT32"}}) +
      TypedText("after", "Neg", {"turned"}));
  EXPECT_EQ(Get<tf::ExtendSessionResponse>("ExtendSession", extend).new_graph_version(), 1);
  for (const char* fetch : {"turned:0", "after:0"}) {
    const tf::RunStepResponse failed = Run(Step(handle, {fetch}));
    EXPECT_EQ(failed.status_code(), static_cast<int>(Code::kInvalidArgument));
    EXPECT_EQ(failed.status_error_message(), std::string(kFrom) + "1 is missing from {0,0}.\n\t [[{{node turned}}]]");
  }
  EXPECT_EQ(One(Step(handle, {"two:0"})), 2);
  // What else is wrong with a node is refused with the graph.
  extend.set_current_graph_version(1);
  extend.set_graph_def(
      NodeText("bad", "Transpose", {"square", "square"}, {{"T", "type: DT_FLOAT"}, {"Tperm", "type: DT_INT32"}}));
  EXPECT_EQ(Call("ExtendSession", extend).status().code(), Code::kInvalidArgument);
}

TEST_F(DoorMaster, F250_LongErrorsAreCutOutsideResponses) {
  tf::RunStepRequest request = Step(Create(Graph()), {std::string(5000, 'n') + ":0"});
  request.set_store_errors_in_response_body(false);
  const Status status = Call("RunStep", request).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message().size(), 3072u + std::string(" ... [truncated]").size());
  EXPECT_TRUE(status.message().ends_with("n ... [truncated]"));
}

TEST_F(DoorMaster, F250_UnknownSessionsHaveTensorFlowsErrors) {
  const std::string missing = "Session 00aa is not found.", restarted = " Possibly, this master has restarted.";
  const auto with = [](auto request) {
    request.set_session_handle("00aa");
    return request;
  };
  ExpectError("CloseSession", with(tf::CloseSessionRequest()), Code::kAborted, missing + restarted);
  ExpectError("ListDevices", with(tf::ListDevicesRequest()), Code::kInvalidArgument, missing + restarted);
  ExpectError("ExtendSession", with(tf::ExtendSessionRequest()), Code::kAborted, missing);
  ExpectError("PartialRunSetup", with(tf::PartialRunSetupRequest()), Code::kAborted, missing);
  ExpectError("MakeCallable", with(tf::MakeCallableRequest()), Code::kAborted, missing);
  ExpectError("RunCallable", with(tf::RunCallableRequest()), Code::kAborted, missing);
  ExpectError("ReleaseCallable", with(tf::ReleaseCallableRequest()), Code::kAborted, missing);
  const tf::RunStepResponse response = Run(with(Step("", {"x:0"})));
  EXPECT_EQ(response.status_code(), static_cast<int>(Code::kAborted));
  EXPECT_EQ(response.status_error_message(), missing);
}

TEST_F(DoorMaster, F250_BytesThatAreNoRequestAreRefused) {
  for (const char* method : {"CreateSession", "ExtendSession", "RunStep", "PartialRunSetup", "CloseSession",
                             "ListDevices", "Reset", "MakeCallable", "RunCallable", "ReleaseCallable"}) {
    EXPECT_EQ(master_->Answer({.method = method, .request = "\x0a\xff\xff"}).status().code(), Code::kInvalidArgument)
        << method;
  }
  EXPECT_EQ(master_->Answer({.method = "Shutdown"}).status().code(), Code::kUnimplemented);
  tf::CreateSessionRequest request;
  request.set_graph_def("\x0a\xff\xff");
  EXPECT_EQ(Call("CreateSession", request).status().code(), Code::kInvalidArgument);
  request.set_graph_def("");
  request.set_config("\x0a\xff\xff");
  EXPECT_EQ(Call("CreateSession", request).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(master_->counts().sessions, 0u);
  tf::RunStepRequest step = Step(Create(Graph()), {"y:0"});
  step.add_feed()->set_tensor("\x0a\xff\xff");
  EXPECT_EQ(Run(step).status_code(), static_cast<int>(Code::kInvalidArgument));
}

TEST_F(DoorMaster, F250_RequestsBeyondTheLimitsAreRefused) {
  Limits limits;
  limits.request_bytes = 3000;
  limits.sessions = limits.callables = limits.steps = 1;
  Start({.task = kLocal, .limits = limits});
  const std::string handle = Create(Graph() + Queue());
  tf::CreateSessionRequest create;
  EXPECT_EQ(Call("CreateSession", create).status().code(), Code::kResourceExhausted);
  create.set_target(std::string(3000, 't'));
  EXPECT_EQ(Call("CreateSession", create).status().code(), Code::kInvalidArgument);
  tf::MakeCallableRequest make;
  make.set_session_handle(handle);
  make.mutable_options()->add_fetch("two:0");
  Get<tf::MakeCallableResponse>("MakeCallable", make);
  EXPECT_EQ(Call("MakeCallable", make).status().code(), Code::kResourceExhausted);
  auto waiting = Begin(Step(handle, {"take:0"}));
  WaitForSteps(1);
  EXPECT_EQ(Run(Step(handle, {"two:0"})).status_code(), static_cast<int>(Code::kResourceExhausted));
  tf::CloseSessionRequest close;
  close.set_session_handle(handle);
  Get<tf::CloseSessionResponse>("CloseSession", close);
  EXPECT_EQ(Ended(std::move(waiting)).status_code(), static_cast<int>(Code::kCancelled));
}

TEST_F(DoorMaster, F051_F257_VariablesBelongToTheServerAndQueuesToTheSession) {
  const std::string first = Create(Graph() + Queue()), second = Create(Graph() + Queue());
  EXPECT_EQ(Run(Step(first, {}, {"init", "put"})).status_code(), 0);
  EXPECT_EQ(One(Step(second, {"more:0"})), 5);
  EXPECT_EQ(One(Step(first, {"read:0"})), 5);
  const auto size_in = [&](const std::string& handle) {
    const tf::RunStepResponse response = Run(Step(handle, {"size:0"}));
    const Result<Tensor> size = ParseTensorProto(response.tensor_size() == 1 ? response.tensor(0).tensor() : "");
    return size.ok() && size->elements() == 1 ? size->as<int32_t>()[0] : -1;
  };
  EXPECT_EQ(size_in(first), 1);
  EXPECT_EQ(size_in(second), 0);
  for (const std::string& handle : {first, second}) {
    tf::CloseSessionRequest close;
    close.set_session_handle(handle);
    Get<tf::CloseSessionResponse>("CloseSession", close);
  }
  EXPECT_EQ(One(Step(Create(Graph()), {"read:0"})), 5) << "variables outlive sessions";
  tf::ConfigProto isolated;
  isolated.set_isolate_session_state(true);
  EXPECT_EQ(Run(Step(Create(Graph(), isolated), {"read:0"})).status_code(),
            static_cast<int>(Code::kFailedPrecondition));
}

TEST_F(DoorMaster, F257_AResetClosesSessionsAndClearsContainers) {
  const std::string boxed = NodeText("b", "VariableV2", {},
                                     {{"dtype", "type: DT_FLOAT"}, {"shape", "shape { }"}, {"container", "s: 'box'"}}) +
                            TypedText("init_b", "Assign", {"b", "two"}) + TypedText("read_b", "Identity", {"b"});
  const std::string handle = Create(Graph() + boxed);
  EXPECT_EQ(Run(Step(handle, {}, {"init", "init_b"})).status_code(), 0);
  tf::ResetRequest reset;
  reset.add_container("box");
  Get<tf::ResetResponse>("Reset", reset);
  EXPECT_EQ(Run(Step(handle, {"read:0"})).status_error_message(), "Session " + handle + " is not found.");
  const std::string later = Create(Graph() + boxed);
  EXPECT_EQ(One(Step(later, {"read:0"})), 3);
  EXPECT_EQ(Run(Step(later, {"read_b:0"})).status_code(), static_cast<int>(Code::kFailedPrecondition));
  Get<tf::ResetResponse>("Reset", tf::ResetRequest());
  EXPECT_EQ(Run(Step(Create(Graph()), {"read:0"})).status_code(), static_cast<int>(Code::kFailedPrecondition));
}

TEST_F(DoorMaster, F250_PartialRunsGoOnWhereTheyWere) {
  const std::string handle = Create(Graph() + TypedText("z", "Add", {"y", "read"}));
  Run(Step(handle, {}, {"init"}));
  tf::PartialRunSetupRequest setup;
  setup.set_session_handle(handle);
  setup.add_feed("x:0");
  setup.add_fetch("read:0");
  setup.add_fetch("z:0");
  setup.set_request_id(77);
  const std::string run = Get<tf::PartialRunSetupResponse>("PartialRunSetup", setup).partial_run_handle();
  EXPECT_EQ(run, "1");
  ExpectError("PartialRunSetup", setup, Code::kAborted,
              "The same PartialRunSetup request was received twice. Request ID: 77");
  tf::RunStepRequest part = Step(handle, {"read:0"});
  part.set_partial_run_handle(run);
  EXPECT_EQ(One(part), 3);
  part = Step(handle, {"z:0"});
  part.set_partial_run_handle(run);
  Feed(part, "y:0", 1);
  EXPECT_EQ(Run(part).status_error_message(), "The feed y:0 was not specified in partial_run_setup.");
  part.clear_feed();
  Feed(part, "x:0", 1);
  EXPECT_EQ(One(part), 5);
  EXPECT_EQ(Run(part).status_error_message(), "Must run PartialRunSetup before performing partial runs");
  part.set_partial_run_handle("01");
  EXPECT_EQ(Run(part).status_error_message(), "Must run PartialRunSetup before performing partial runs");
}

TEST_F(DoorMaster, F318_APartOfARunEndsAtItsDeadlineOrLimit) {
  const std::string handle = Create(Graph() + Queue());
  tf::PartialRunSetupRequest setup;
  setup.set_session_handle(handle);
  setup.add_feed("x:0");
  setup.add_fetch("y:0");
  setup.add_fetch("take:0");
  tf::RunStepRequest part = Step(handle, {"take:0"});
  part.set_partial_run_handle(Get<tf::PartialRunSetupResponse>("PartialRunSetup", setup).partial_run_handle());
  const auto soon = cluster::Clock::now() + std::chrono::milliseconds(20);
  EXPECT_EQ(Ended(Begin(part, nullptr, soon)).status_code(), static_cast<int>(Code::kDeadlineExceeded));
  EXPECT_EQ(Run(part).status_error_message(), "Must run PartialRunSetup before performing partial runs");
  part.set_partial_run_handle(Get<tf::PartialRunSetupResponse>("PartialRunSetup", setup).partial_run_handle());
  part.set_options("\x10\x14");  // 20 ms
  EXPECT_EQ(Run(part).status_code(), static_cast<int>(Code::kDeadlineExceeded));
}

TEST_F(DoorMaster, F250_CallablesRunByHandle) {
  const std::string handle = Create(Graph());
  tf::MakeCallableRequest make;
  make.set_session_handle(handle);
  make.mutable_options()->add_feed("x:0");
  make.mutable_options()->add_fetch("y:0");
  const int64_t made = Get<tf::MakeCallableResponse>("MakeCallable", make).handle();
  tf::RunCallableRequest run;
  run.set_session_handle(handle);
  run.set_handle(made);
  run.add_feed(Bytes(5));
  const tf::RunCallableResponse response = Get<tf::RunCallableResponse>("RunCallable", run);
  ASSERT_EQ(response.fetch_size(), 1);
  EXPECT_EQ(Value(response.fetch(0)), 10);
  run.clear_feed();
  EXPECT_EQ(Call("RunCallable", run).status().code(), Code::kInvalidArgument);
  run.set_handle(made + 1);
  ExpectError("RunCallable", run, Code::kInvalidArgument, "No such callable handle: " + std::to_string(made + 1));
  tf::ReleaseCallableRequest release;
  release.set_session_handle(handle);
  release.set_handle(made);
  Get<tf::ReleaseCallableResponse>("ReleaseCallable", release);
  Get<tf::ReleaseCallableResponse>("ReleaseCallable", release);
  run.set_handle(made);
  ExpectError("RunCallable", run, Code::kInvalidArgument,
              "Attempted to run callable after handle was released: " + std::to_string(made));
  make.mutable_options()->set_fetch(0, "none:0");
  EXPECT_TRUE(Call("MakeCallable", make).status().message().starts_with("FetchOutputs node none:0: not found"));
  tf::TensorConnection& connection = *make.mutable_options()->add_tensor_connection();
  connection.set_to_tensor("x:0");
  EXPECT_EQ(Call("MakeCallable", make).status().code(), Code::kUnimplemented);
}

TEST_F(DoorMaster, F250_ARequestWithAnIdRunsOnce) {
  const std::string handle = Create(Graph());
  Run(Step(handle, {}, {"init"}));
  tf::RunStepRequest request = Step(handle, {"more:0"});
  request.set_request_id(-42);
  EXPECT_EQ(One(request), 5);
  EXPECT_EQ(Run(request).status_error_message(), "The same RunStep request was received twice. Request ID: -42");
  EXPECT_EQ(One(Step(handle, {"read:0"})), 5);
}

TEST_F(DoorMaster, F250_AReplyWhoseCallerWasGoneIsGivenToTheSameRequest) {
  const std::string handle = Create(Graph());
  Run(Step(handle, {}, {"init"}));
  tf::PartialRunSetupRequest setup;
  setup.set_session_handle(handle);
  setup.add_fetch("more:0");
  tf::RunStepRequest part = Step(handle, {"more:0"});
  part.set_partial_run_handle(Get<tf::PartialRunSetupResponse>("PartialRunSetup", setup).partial_run_handle());
  const auto gone = std::make_shared<runtime::Cancellation>();
  gone->Cancel(Status(Code::kCancelled, "gone"));
  EXPECT_EQ(Ended(Begin(part, gone)).status_code(), 0) << "a part of a run goes on without its caller";
  EXPECT_EQ(master_->counts().kept, 1u);
  const tf::RunStepResponse again = Ended(Begin(part));
  ASSERT_EQ(again.tensor_size(), 1) << again.status_error_message();
  EXPECT_EQ(Value(again.tensor(0).tensor()), 5);
  EXPECT_EQ(master_->counts().kept, 0u);
  EXPECT_EQ(master_->counts().repeated, 1u);
  EXPECT_EQ(One(Step(handle, {"read:0"})), 5) << "the step ran once";
}

TEST_F(DoorMaster, F318_AStepEndsWithItsDeadlineItsCallerOrItsLimit) {
  const std::string handle = Create(Graph() + Queue());
  const auto soon = [] { return cluster::Clock::now() + std::chrono::milliseconds(20); };
  const int late = static_cast<int>(Code::kDeadlineExceeded);
  EXPECT_EQ(Ended(Begin(Step(handle, {"take:0"}), nullptr, soon())).status_code(), late);
  tf::RunStepRequest limited = Step(handle, {"take:0"});
  tf::RunOptions options;
  options.set_timeout_in_ms(20);
  limited.set_options(Serialized(options));
  EXPECT_EQ(Run(limited).status_code(), late);
  const auto caller = std::make_shared<runtime::Cancellation>();
  auto waiting = Begin(Step(handle, {"take:0"}), caller);
  WaitForSteps(1);
  caller->Cancel(Status(Code::kCancelled, "the caller has gone"));
  EXPECT_EQ(Ended(std::move(waiting)).status_code(), static_cast<int>(Code::kCancelled));
  const auto far = cluster::Clock::now() + std::chrono::hours(24 * 365 * 20);
  EXPECT_EQ(Ended(Begin(Step(handle, {"two:0"}), nullptr, far)).tensor_size(), 1);
  tf::ConfigProto config;
  config.set_operation_timeout_in_ms(20);
  EXPECT_EQ(Run(Step(Create(Graph() + Queue(), config), {"take:0"})).status_code(), late);
}

TEST_F(DoorMaster, F092_TheEndOfTheMasterEndsStepsAndSessions) {
  auto waiting = Begin(Step(Create(Graph() + Queue()), {"take:0"}));
  WaitForSteps(1);
  master_->Close();
  EXPECT_EQ(Ended(std::move(waiting)).status_code(), static_cast<int>(Code::kCancelled));
  EXPECT_EQ(Call("CreateSession", tf::CreateSessionRequest()).status().code(), Code::kFailedPrecondition);
}

TEST_F(DoorMaster, F250_SettingsOfTheClientArePartlyItsOwnMachines) {
  tf::ConfigProto config;
  config.set_use_per_session_threads(true);
  tf::CreateSessionRequest request;
  request.set_config(Serialized(config));
  ExpectError("CreateSession", request, Code::kInvalidArgument,
              "Distributed session does not support session thread pool options.");
  config.set_use_per_session_threads(false);
  (*config.mutable_device_count())["GPU"] = 4;
  config.mutable_gpu_options()->set_visible_device_list("3,2");
  config.set_allow_soft_placement(true);
  EXPECT_EQ(One(Step(Create(Graph() + NodeText("g", "Neg", {"two"}, {{"T", "type: DT_FLOAT"}}, "/gpu:7"), config),
                     {"g:0"})),
            -2);
  config.set_allow_soft_placement(false);
  const std::string on_gpu = NodeText("g", "Neg", {"two"}, {{"T", "type: DT_FLOAT"}}, "/gpu:7");
  const std::string strict = Create(Graph() + on_gpu, config);
  EXPECT_EQ(Run(Step(strict, {"g:0"})).status_code(), static_cast<int>(Code::kInvalidArgument));
  config.add_device_filters("/job:local/nonsense");
  request.set_config(Serialized(config));
  EXPECT_EQ(Call("CreateSession", request).status().code(), Code::kInvalidArgument);
}

TEST_F(DoorMaster, F250_TracesAndPartitionsComeIfTheyAreAsked) {
  tf::RunStepRequest request = Step(Create(Graph()), {"y:0"});
  Feed(request, "x:0", 1);
  tf::RunOptions options;
  options.set_trace_level(tf::RunOptions::FULL_TRACE);
  options.set_output_partition_graphs(true);
  request.set_options(Serialized(options));
  const tf::RunStepResponse response = Run(request);
  tf::RunMetadata metadata;
  ASSERT_TRUE(metadata.ParseFromString(response.metadata())) << response.status_error_message();
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  EXPECT_EQ(metadata.step_stats().dev_stats(0).device(), "/job:local/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(metadata.partition_graphs_size(), 1);
}

TEST_F(DoorMaster, F092_DevicesAreListedWithTheirIncarnation) {
  const tf::ListDevicesResponse all = Get<tf::ListDevicesResponse>("ListDevices", tf::ListDevicesRequest());
  ASSERT_GE(all.local_device_size(), 1);
  EXPECT_EQ(all.local_device(0).name(), "/job:local/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(all.local_device(0).device_type(), "CPU");
  EXPECT_NE(all.local_device(0).incarnation(), 0u);
  tf::ListDevicesRequest request;
  request.set_session_handle(Create(""));
  EXPECT_EQ(Get<tf::ListDevicesResponse>("ListDevices", request).SerializeAsString(), all.SerializeAsString());
}

TEST_F(DoorMaster, F246_AMasterOfAClusterRunsStepsInItsTasks) {
  const TaskName worker{"worker", 0}, ps{"ps", 0};
  testing::LocalCluster tasks({worker, ps});
  Start({.task = worker, .workers = tasks.workers()});
  const std::string far = NodeText("v", "VariableV2", {}, {{"dtype", "type: DT_FLOAT"}, {"shape", "shape { }"}},
                                   "/job:ps") +
                          ConstText("two", "DT_FLOAT", {}, "float_val: 2") +
                          NodeText("init", "Assign", {"v", "two"}, {{"T", "type: DT_FLOAT"}}, "/job:ps") +
                          NodeText("y", "Square", {"v"}, {{"T", "type: DT_FLOAT"}}, "/job:worker");
  const std::string first = Create(far), second = Create(far);
  tf::RunStepResponse response = Run(Step(first, {"y:0"}));
  EXPECT_EQ(response.status_code(), static_cast<int>(Code::kFailedPrecondition));
  EXPECT_TRUE(response.status_error_message().starts_with("From /job:ps/replica:0/task:0:\n"))
      << response.status_error_message();
  EXPECT_EQ(Run(Step(first, {}, {"init"})).status_code(), 0);
  EXPECT_EQ(One(Step(second, {"y:0"})), 4);
  const tf::ListDevicesResponse devices = Get<tf::ListDevicesResponse>("ListDevices", tf::ListDevicesRequest());
  ASSERT_EQ(devices.remote_device_size(), 1);
  EXPECT_EQ(devices.remote_device(0).name(), "/job:ps/replica:0/task:0/device:CPU:0");
  tf::ConfigProto alone;
  alone.add_device_filters("/job:worker");
  const std::string filtered = Create(far, alone);
  EXPECT_EQ(Run(Step(filtered, {}, {"init"})).status_code(), static_cast<int>(Code::kInvalidArgument));
  tf::ListDevicesRequest of_session;
  of_session.set_session_handle(filtered);
  EXPECT_EQ(Get<tf::ListDevicesResponse>("ListDevices", of_session).local_device_size(), 1);
  tf::ResetRequest reset;
  reset.add_device_filters("/job:worker");
  Get<tf::ResetResponse>("Reset", reset);
  EXPECT_EQ(One(Step(Create(far), {"y:0"})), 4) << "the ps was not reset";
  Get<tf::ResetResponse>("Reset", tf::ResetRequest());
  EXPECT_EQ(Run(Step(Create(far), {"y:0"})).status_code(), static_cast<int>(Code::kFailedPrecondition));
  master_ = nullptr;
}

}  // namespace
}  // namespace weir::door
