// Calls between tasks through sockets on loopback.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/worker_server.h"
#include "core/graph/graph_def.h"
#include "core/runtime/cancellation.h"
#include "tests/support/text_graph.h"
#include "tests/support/wired_cluster.h"
#include "tests/unit/cluster/fake_worker.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::FakeWorker;
using testing::In;
using testing::NodeLine;
using testing::Until;
using testing::WiredCluster;
using testing::WirePair;

const TaskName kWirePs{"ps", 0}, kWireWorker{"worker", 0};
const char kAtPs[] = "/job:ps/task:0";
const char kAtWorker[] = "/job:worker/task:0";
NodeLine At(NodeLine node, const char* device) {
  node.device = device;
  return node;
}

class Wire : public ::testing::Test {
 protected:
  /// A session on a graph of these nodes.
  std::unique_ptr<session::Session> Open(const WiredCluster& cluster, const std::vector<NodeLine>& nodes) {
    Result<graph::Definition> made = testing::MakeGraph(nodes);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) return nullptr;
    graphs_.push_back(std::make_unique<graph::Definition>(std::move(*made)));
    auto session = cluster.Open(*graphs_.back());
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.ok() ? std::move(*session) : nullptr;
  }
  static Result<std::vector<Tensor>> Run(session::Session& session, const std::vector<std::string>& fetches,
                                         const std::vector<std::string>& targets = {},
                                         const std::vector<session::Feed>& feeds = {}) {
    session::RunOptions options;
    options.timeout_in_ms = 120000;
    return session.Run(feeds, fetches, targets, options);
  }
  std::vector<std::unique_ptr<graph::Definition>> graphs_;
};

TEST_F(Wire, F244_F249_F252_OneClientRunsItsStepsInTasksBehindSockets) {
  WiredCluster cluster({kWireWorker, kWirePs});
  const auto session = Open(cluster, {At(testing::Placeholder("x", PartialShape::Of({2})), kAtWorker),
                                      {"a", "Neg", {"x"}, testing::kFloat, kAtPs},
                                      {"b", "Square", {"a"}, testing::kFloat, kAtWorker},
                                      {"c", "Add", {"b", "a"}, testing::kFloat, kAtPs}});
  ASSERT_NE(session, nullptr);
  for (int i = 0; i < 20; ++i) {
    const auto got = Run(*session, {"c:0", "b:0"}, {}, {{"x:0", Tensor::Vector<float>({2, 3})}});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({2, 6})));
    EXPECT_TRUE((*got)[1].SameBits(Tensor::Vector<float>({4, 9})));
  }
  EXPECT_EQ(cluster.worker(kWirePs).counts().parts, 1u);
  EXPECT_TRUE(Until([&] { return cluster.worker(kWirePs).counts().steps == 0; }));
}

TEST(WireThreads, AShortStepRunsOnTheThreadThatGotIt) {
  WirePair pair;
  pair.fake->is_short = true;
  // One at a time; the one before may count for a moment after its reply.
  const auto there = [&] { return pair.fake->Locked([](const FakeWorker& fake) { return fake.steps_there; }); };
  ASSERT_TRUE(Until([&] {
    StepRequest request;
    request.feeds = {Tensor::Scalar<float>(5)};
    const auto reply = pair.Step(std::move(request));
    return !reply.ok() || there() >= 20;
  }));
  EXPECT_EQ(there(), 20);
}

TEST(WireThreads, AStepThatIsNotShortAfterAllHoldsUpNoOther) {
  WirePair pair;
  pair.fake->is_short = pair.fake->blocks = true;
  const auto there = [&] { return pair.fake->Locked([](const FakeWorker& fake) { return fake.steps_there; }); };
  std::promise<Status> first;
  pair.far->RunStep({}, StepDone([&](const Result<std::vector<Tensor>>& got) { first.set_value(got.status()); }));
  ASSERT_TRUE(Until([&] { return there() == 1; }));
  const auto second = pair.Step({});  // on another thread
  EXPECT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(there(), 1);
  EXPECT_TRUE(pair.Receive("k").ok());
  auto ended = first.get_future();
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_TRUE(pair.far->CleanupStep(5, 6).ok());
  EXPECT_TRUE(ended.get().ok());
}

/// Every type that can cross, with a shape of rank 0 to 3 and without elements.
std::vector<Tensor> AllTypes() {
  std::vector<Tensor> all;
  for (int number = 1; number <= 32; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!IsKnown(dtype) || !HasFixedSize(dtype)) continue;
    for (const Shape& shape : {Shape(), Shape{3}, Shape{2, 0, 5}, Shape{2, 3, 4}}) {
      Result<Tensor> made = Tensor::Make(dtype, shape);
      EXPECT_TRUE(made.ok()) << made.status().ToString();
      std::byte* const at = made->mutable_raw();
      for (uint64_t i = 0; i < made->bytes(); ++i) {
        at[i] = static_cast<std::byte>(dtype == DType::kBool ? i % 2 : i * 37 + static_cast<uint64_t>(number));
      }
      all.push_back(std::move(*made));
    }
  }
  all.push_back(Tensor::String("a text"));
  all.push_back(Tensor::Vector<std::string>({"", std::string("\0\xff", 2), std::string(100000, 'x')}));
  all.push_back(Tensor::Of<std::string>(Shape{0, 7}, {}));
  return all;
}

TEST_F(Wire, F249_AllCallsOfAWorkerCross) {
  const WirePair pair;
  FakeWorker& fake = *pair.fake;
  Worker& far = *pair.far;
  fake.status.incarnation = 99;
  fake.status.draining = true;
  fake.status.devices.push_back(testing::AnyDevice(kWirePs));
  const auto status = far.GetStatus(In(testing::kSoon));
  ASSERT_TRUE(status.ok()) << status.status().ToString();
  EXPECT_EQ(status->task, kWirePs);
  EXPECT_EQ(status->incarnation, 99u);
  EXPECT_TRUE(status->draining);
  ASSERT_EQ(status->devices.size(), 1u);
  testing::ExpectSame(status->devices[0], fake.status.devices[0]);

  WorkerSessionSpec spec;
  spec.handle = 5;
  spec.incarnation = 99;
  spec.isolate_state = true;
  spec.fusion = false;
  spec.inter_op = 3;
  EXPECT_TRUE(far.CreateSession(spec, In(testing::kSoon)).ok());
  const WorkerSessionSpec got = fake.Locked([](const FakeWorker& f) { return f.spec; });
  EXPECT_EQ(got.handle, 5u);
  EXPECT_EQ(got.incarnation, 99u);
  EXPECT_TRUE(got.isolate_state && got.allow_soft_placement && got.constant_folding && !got.fusion);
  EXPECT_EQ(got.inter_op, 3);
  EXPECT_TRUE(fake.Locked([](const FakeWorker& f) { return f.has_deadline; }));

  const std::string graph(300000, 'g');
  const auto part = far.RegisterPart(5, graph, In(testing::kSoon));
  ASSERT_TRUE(part.ok()) << part.status().ToString();
  EXPECT_EQ(fake.Locked([](const FakeWorker& f) { return f.graph; }), graph);
  EXPECT_EQ(part->id, 8u);
  EXPECT_EQ(part->feeds, (std::vector<int>{0, 2}));
  EXPECT_EQ(part->fetches, std::vector<int>{1});
  EXPECT_EQ(far.RegisterPart(13, graph, In(testing::kSoon)).status().code(), Code::kAborted);
  EXPECT_TRUE(far.DeregisterPart(5, 8).ok());
  EXPECT_EQ(far.DeleteSession(13).message(), "Session 13 is not found");
  EXPECT_TRUE(far.DeleteSession(5).ok());
  EXPECT_TRUE(far.ResetContainers({"a", "b"}).ok());
  EXPECT_TRUE(far.CancelStep(5, 6, InvalidArgument("because")).ok());
  EXPECT_TRUE(far.CleanupStep(5, 6).ok());
  for (const char* call :
       {"DeregisterPart 8", "ResetContainers a b", "CancelStep 5 6 INVALID_ARGUMENT: because", "CleanupStep 6"}) {
    EXPECT_TRUE(Until([&] { return fake.Has(call); })) << call;
  }
}

TEST_F(Wire, F249_FeedsAndFetchesOfAllTypesCrossBitEqual) {
  const WirePair pair;
  StepRequest request;
  request.session = 5;
  request.part = 8;
  request.step = 0xabc;
  request.request = 17;
  request.alone = true;
  request.deadline = In(testing::kSoon);
  request.feeds = AllTypes();
  const auto got = pair.Step(std::move(request));
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  const std::vector<Tensor> wanted = AllTypes();
  ASSERT_EQ(got->size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE((*got)[i].SameBits(wanted[i])) << Name(wanted[i].dtype()) << wanted[i].shape().ToString();
  }
  const StepRequest last = pair.fake->Locked([](const FakeWorker& f) { return f.last; });
  EXPECT_EQ(last.session, 5u);
  EXPECT_EQ(last.part, 8u);
  EXPECT_EQ(last.step, 0xabcu);
  EXPECT_EQ(last.request, 17u);
  EXPECT_TRUE(last.alone);
  EXPECT_NE(last.deadline, Clock::time_point::max());
}

TEST_F(Wire, F332_ALargeTensorCrossesBitEqual) {
  const WirePair pair;
  const int64_t elements = (WEIR_SANITIZER_KIND == 0 ? 100 : 6) << 18;
  Result<Tensor> made = Tensor::Make(DType::kFloat, Shape{elements});
  ASSERT_TRUE(made.ok());
  uint32_t next = 1;
  for (float& element : made->mutable_as<float>()) {
    next = next * 1664525 + 1013904223;
    element = static_cast<float>(next >> 8);
  }
  pair.fake->value = *made;
  const auto got = pair.Receive("k");
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE(got->value.SameBits(*made));
  StepRequest request;
  request.feeds = {*made, Tensor::Scalar<float>(2), *made};
  const auto echoed = pair.Step(std::move(request));
  ASSERT_TRUE(echoed.ok()) << echoed.status().ToString();
  EXPECT_TRUE((*echoed)[2].SameBits(*made));
}

TEST_F(Wire, F333_SmallCallsOvertakeALargeOne) {
  const WirePair pair;
  pair.fake->value = *Tensor::Make(DType::kUint8, Shape{int64_t{WEIR_SANITIZER_KIND == 0 ? 32 : 4} << 20});
  std::atomic<int> large{0};
  for (int i = 0; i < 3; ++i) {
    pair.far->RecvTensor({5, 6, "k"}, runtime::Rendezvous::Received([&](const Result<runtime::Message>& came) {
                           EXPECT_TRUE(came.ok());
                           ++large;
                         }));
  }
  for (int i = 0; i < 50; ++i) {
    StepRequest request;
    request.feeds = {Tensor::Scalar<float>(static_cast<float>(i))};
    const auto got = pair.Step(std::move(request));
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[0].as<float>()[0], static_cast<float>(i));
  }
  EXPECT_TRUE(Until([&] { return large == 3; }));
}

TEST_F(Wire, F249_DeadValuesAndErrorsCross) {
  const WirePair pair;
  const auto dead = pair.Receive("dead");
  ASSERT_TRUE(dead.ok());
  EXPECT_TRUE(dead->dead);
  EXPECT_FALSE(dead->value.valid());
  const auto bad = pair.Receive("bad");
  EXPECT_EQ(bad.status().code(), Code::kAborted);
  EXPECT_EQ(bad.status().message(), "no such key");
  EXPECT_EQ(bad.status().node(), "n");
  EXPECT_EQ(bad.status().where(), "model.py:3");
}

TEST_F(Wire, F250_CallsOfAMasterCross) {
  const WirePair pair;
  EXPECT_EQ(*pair.Master("RunStep", "bytes"), "RunStep:127.0.0.1:bytes");
  const std::string large(3000000, 'z');
  EXPECT_EQ(*pair.Master("ExtendSession", large), "ExtendSession:127.0.0.1:" + large);
  const auto failed = pair.Master("Fail", "x");
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(failed.status().message(), "bad x");
}

TEST_F(Wire, F250_ACallOfAMasterIsCancelledAtTheServer) {
  const WirePair pair;
  const auto cancellation = std::make_shared<runtime::Cancellation>();
  std::promise<Result<std::string>> ended;
  MasterCall call{"Wait", "", In(testing::kSoon), "", cancellation};
  pair.far_master->Call(std::move(call), MasterDone([&](Result<std::string> r) { ended.set_value(std::move(r)); }));
  ASSERT_TRUE(Until([&] { return pair.master->waiting() == 1; }));
  cancellation->Cancel(Cancelled("enough"));
  EXPECT_EQ(ended.get_future().get().status().code(), Code::kCancelled);
  EXPECT_TRUE(Until([&] { return pair.master->waiting() == 0; }));
}

TEST_F(Wire, F250_ACallEndsAtItsDeadline) {
  const WirePair pair;
  const auto late = pair.Master("Wait", "", In(std::chrono::milliseconds(50)));
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded);
  EXPECT_NE(late.status().message().find("has not answered by the deadline"), std::string::npos);
  EXPECT_TRUE(Until([&] { return pair.master->waiting() == 0; }));
}

TEST_F(Wire, F120_TasksMeetOverAUnixSocket) {
  const std::string folder = ::testing::TempDir() + "/weir_wire_" + std::to_string(::getpid());
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  {
    WiredCluster cluster({kWireWorker, kWirePs}, {}, "unix:" + folder + "/");
    const auto session = Open(cluster, {At(testing::Placeholder("x", PartialShape::Of({})), kAtWorker),
                                        {"y", "Neg", {"x"}, testing::kFloat, kAtPs}});
    ASSERT_NE(session, nullptr);
    const auto got = Run(*session, {"y:0"}, {}, {{"x:0", Tensor::Scalar<float>(4)}});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[0].as<float>()[0], -4);
  }
  EXPECT_EQ(::rmdir(folder.c_str()), 0);  // the sockets are gone
}

TEST_F(Wire, F253_VariablesOfATaskOutliveTheSessionsOfItsClients) {
  WiredCluster cluster({kWireWorker, kWirePs});
  const op::AttrList scalar = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
  const std::vector<NodeLine> nodes = {{"v", "VariableV2", {}, scalar, kAtPs},
                                       At(testing::Const("c", Tensor::Scalar<float>(3)), kAtPs),
                                       {"init", "Assign", {"v", "c"}, testing::kFloat, kAtPs},
                                       {"more", "AssignAdd", {"v", "c"}, testing::kFloat, kAtPs},
                                       {"y", "Identity", {"v"}, testing::kFloat, kAtWorker}};
  {
    const auto first = Open(cluster, nodes);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(Run(*first, {"y:0"}).status().code(), Code::kFailedPrecondition);
    ASSERT_TRUE(Run(*first, {}, {"init"}).ok());
    ASSERT_TRUE(Run(*first, {}, {"more"}).ok());
  }
  EXPECT_TRUE(Until([&] { return cluster.worker(kWirePs).counts().sessions == 0; }));
  const auto second = Open(cluster, nodes);
  ASSERT_NE(second, nullptr);
  const auto got = Run(*second, {"y:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ((*got)[0].as<float>()[0], 6);
}

}  // namespace
}  // namespace weir::cluster
