// Peers that die, fall silent, come back, or are replaced.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/cluster/worker_messages.h"
#include "core/graph/graph_def.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/own_loopback.h"
#include "tests/support/text_graph.h"
#include "tests/unit/cluster/raw_peer.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::Came;
using testing::In;
using testing::MessageHeadOf;
using testing::RawPeer;
using testing::RawServer;
using testing::ReceiveFrom;
using testing::SocketTransport;
using testing::StepOf;
using testing::Until;
using testing::WiredCluster;
using testing::WirePair;
using weir_remote::FrameType;

weir_remote::Identity PsIdentity(uint64_t incarnation = 0xabc) {
  weir_remote::Identity own;
  own.job = "ps";
  own.incarnation = incarnation;
  return own;
}

StepRequest AnyStep(uint64_t step = 0x1f) {
  StepRequest request;
  request.session = 5;
  request.part = 3;
  request.step = step;
  request.request = 1;
  request.feeds = {Tensor::Scalar<float>(1)};
  return request;
}

/// What a server that the test plays does with the first call on a connection.
using Act = void (*)(RawPeer& peer, const Came& call);

/// The error of a step in a task that acts like this.
Status ErrorOfStep(Act act, std::chrono::milliseconds peer_timeout = std::chrono::seconds(60)) {
  RawServer server;
  LocalEnd self;
  self.peer_timeout = peer_timeout;
  const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, server.address(), self);
  auto ended = std::async(std::launch::async, [&] { return StepOf(*far, AnyStep()).status(); });
  const auto peer = server.Accept();
  EXPECT_TRUE(peer->Welcome(PsIdentity()));
  Came call;
  EXPECT_TRUE(peer->Read(call));
  EXPECT_TRUE(call.header.is(FrameType::kRequest));
  act(*peer, call);
  return ended.get();
}

void ExpectNames(const Status& status, const std::string& reason) {
  EXPECT_EQ(status.code(), Code::kUnavailable) << status;
  for (const std::string& part : {std::string("/job:ps/task:0 (incarnation 0000000000000abc) at localhost:"), reason,
                                  std::string("waiting: part 3 of step 1f in /job:ps/replica:0/task:0")}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part << " in " << status;
  }
}

TEST(WireFaults, F330_ThePeerOfAStepIsKilled) {
  ExpectNames(ErrorOfStep([](RawPeer& peer, const Came&) { peer.Close(); }), "it closed the connection");
  ExpectNames(ErrorOfStep([](RawPeer& peer, const Came&) { peer.Reset(); }), "Connection reset by peer");
}

TEST(WireFaults, F330_ThePeerOfAStepIsStopped) {
  // Its kernel acknowledges everything, as that of a stopped process does.
  constexpr int kSilentMs = WEIR_SANITIZER_KIND == 0 ? 1000 : 4000;  // enough for a handshake on a busy machine
  ExpectNames(ErrorOfStep([](RawPeer&, const Came&) {}, std::chrono::milliseconds(kSilentMs)),
              "it has sent nothing for " + std::to_string(kSilentMs) + " ms and counts as lost");
}

TEST(WireFaults, F330_ThePeerOfAStepSaysGoodbye) {
  ExpectNames(ErrorOfStep([](RawPeer& peer, const Came&) { peer.Send(FrameType::kBye); }), "it has shut down");
}

TEST(WireFaults, F330_ThePeerOfAStepBreaksTheProtocol) {
  const auto code_of = [](Act act) { return ErrorOfStep(act).code(); };
  EXPECT_EQ(code_of([](RawPeer& peer, const Came&) { peer.SendBytes(std::string(64, 'x')); }), Code::kDataLoss);
  EXPECT_EQ(code_of([](RawPeer& peer, const Came& call) {
              peer.Send(FrameType::kResponse, call.header.stream + 1, MessageHeadOf(0, "", {}));
            }),
            Code::kInvalidArgument);
  EXPECT_EQ(code_of([](RawPeer& peer, const Came&) { peer.Send(FrameType::kRequest, 9, MessageHeadOf(1, "", {})); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code_of([](RawPeer& peer, const Came& call) {
              peer.Send(FrameType::kResponse, call.header.stream, MessageHeadOf(0, "\xff\xff", {}));
            }),
            Code::kInvalidArgument);
  // A tensor whose bytes do not fit its shape.
  EXPECT_EQ(code_of([](RawPeer& peer, const Came& call) {
              WireReply reply;
              reply.tensors = {{DType::kFloat, Shape{2}}};
              peer.Send(FrameType::kResponse, call.header.stream, MessageHeadOf(0, *Encode(reply), {9}), "123456789");
            }),
            Code::kInvalidArgument);
}

TEST(WireFaults, F330_ATensorThatIsCutOffIsAnError) {
  const Status status = ErrorOfStep([](RawPeer& peer, const Came& call) {
    WireReply reply;
    reply.tensors = {{DType::kFloat, Shape{100000}}};
    peer.Send(FrameType::kResponse, call.header.stream, MessageHeadOf(0, *Encode(reply), {400000}));
    peer.Send(FrameType::kData, call.header.stream, "", std::string(100000, 'x'));
    peer.Reset();
  });
  ExpectNames(status, "Connection reset by peer");
}

TEST(WireFaults, F331_ACallIsSentOnceAndTheNextOneConnectsAnew) {
  RawServer server;
  const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, server.address(), {});
  int calls = 0;
  for (const uint64_t incarnation : {0xabc, 0xdef}) {
    auto ended = std::async(std::launch::async, [&] { return StepOf(*far, AnyStep()).status(); });
    const auto peer = server.Accept();
    ASSERT_TRUE(peer->Welcome(PsIdentity(incarnation)));
    Came call;
    ASSERT_TRUE(peer->Read(call));
    ++calls;
    peer->Reset();
    EXPECT_EQ(ended.get().code(), Code::kUnavailable);
  }
  EXPECT_EQ(calls, 2);
}

TEST(WireFaults, F331_AMasterWaitsForATaskThatStartsLater) {
  const std::string address = testing::OwnLoopback() + ":61997";
  const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, address, {});
  const Status now = StepOf(*far, AnyStep()).status();
  EXPECT_EQ(now.code(), Code::kUnavailable);
  EXPECT_NE(now.message().find("/job:ps/task:0 at " + address + " cannot be reached: Connection refused"),
            std::string::npos)
      << now;
  const Status late = far->GetStatus(In(std::chrono::milliseconds(200))).status();
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_NE(late.message().find("cannot be reached: Connection refused"), std::string::npos) << late;
  auto status = std::async(std::launch::async, [&] { return far->GetStatus(In(testing::kSoon)); });
  const auto fake = std::make_shared<testing::FakeWorker>(TaskName{"ps", 0});
  LocalEnd self;
  self.task = {"ps", 0};
  const auto listener = SocketTransport()->Listen({fake, nullptr}, {address, -1, self});
  ASSERT_TRUE(listener.ok()) << listener.status().ToString();
  EXPECT_TRUE(status.get().ok());
}

TEST(WireFaults, F331_ARestartedTaskFencesItsPredecessor) {
  const WirePair pair;
  const auto connect = [&](uint64_t incarnation) {
    LocalEnd self;
    self.task = {"worker", 0};
    self.incarnation = incarnation;
    return *SocketTransport()->ConnectWorker({"ps", 0}, pair.listener->address(), self);
  };
  pair.fake->holds = true;
  const auto first = connect(1);
  auto ended = std::async(std::launch::async, [&] { return StepOf(*first, AnyStep()).status(); });
  ASSERT_TRUE(Until([&] { return pair.fake->waiting() == 1; }));
  const auto second = connect(2);
  EXPECT_TRUE(second->GetStatus(In(testing::kSoon)).ok());
  const Status fenced = ended.get();
  EXPECT_EQ(fenced.code(), Code::kAborted) << fenced;
  EXPECT_NE(fenced.message().find("was restarted: a newer incarnation has connected"), std::string::npos) << fenced;
  EXPECT_TRUE(Until([&] { return pair.fake->waiting() == 0; }));
  const Status back = first->GetStatus(In(testing::kSoon)).status();
  EXPECT_EQ(back.code(), Code::kAborted) << back;
  EXPECT_NE(back.message().find("was restarted"), std::string::npos) << back;
  EXPECT_TRUE(second->GetStatus(In(testing::kSoon)).ok());
}

TEST(WireFaults, F331_TheSessionsOfAMasterThatWasRestartedEnd) {
  const WirePair pair;
  const auto open = [&](const TaskName& task, uint64_t incarnation, uint64_t session) {
    LocalEnd self;
    self.task = task;
    self.incarnation = incarnation;
    const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, pair.listener->address(), self);
    WorkerSessionSpec spec;
    spec.handle = session;
    EXPECT_TRUE(far->CreateSession(spec, In(testing::kSoon)).ok());
  };
  open({"worker", 0}, 1, 21);
  open({"worker", 0}, 1, 22);
  open({"worker", 1}, 7, 23);
  EXPECT_FALSE(pair.fake->Has("DeleteSession"));
  open({"worker", 0}, 2, 24);
  for (const char* const ended : {"DeleteSession 21", "DeleteSession 22"}) EXPECT_TRUE(pair.fake->Has(ended)) << ended;
  for (const char* const kept : {"DeleteSession 23", "DeleteSession 24"}) EXPECT_FALSE(pair.fake->Has(kept)) << kept;
}

TEST(WireFaults, F331_ASessionThatEndsDuringAnOutageIsDeletedLater) {
  const WirePair pair;
  testing::FaultProxy proxy(pair.listener->address());
  LocalEnd self;
  self.task = {"worker", 0};
  const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, proxy.address(), self);
  WorkerSessionSpec spec;
  spec.handle = 31;
  EXPECT_TRUE(far->CreateSession(spec, In(testing::kSoon)).ok());
  proxy.PauseAccept();
  proxy.Reset();
  EXPECT_EQ(far->DeleteSession(31).code(), Code::kUnavailable);
  EXPECT_FALSE(pair.fake->Has("DeleteSession 31"));
  proxy.ResumeAccept();
  spec.handle = 32;
  EXPECT_TRUE(far->CreateSession(spec, In(testing::kSoon)).ok());
  EXPECT_TRUE(Until([&] { return pair.fake->Has("DeleteSession 31"); }));
  EXPECT_FALSE(pair.fake->Has("DeleteSession 32"));
}

TEST(WireFaults, F330_AStepEndsWhenItsMasterIsLost) {
  const WirePair pair;
  pair.fake->holds = true;
  const auto master = RawPeer::Dial(pair.listener->address());
  ASSERT_TRUE(master->ShakeHands());
  WireRequest request;
  request.method = Method::kRunStep;
  request.session = 5;
  request.step = 0x1f;
  master->Send(FrameType::kRequest, 1, MessageHeadOf(6, *Encode(request), {}));
  ASSERT_TRUE(Until([&] { return pair.fake->waiting() == 1; }));
  master->Reset();
  EXPECT_TRUE(Until([&] { return pair.fake->Has("CancelStep 5 31 UNAVAILABLE: the caller at 127.0.0.1"); }));
  EXPECT_TRUE(Until([&] { return pair.fake->Has("CleanupStep 31"); }));
  EXPECT_EQ(pair.fake->waiting(), 0u);
}

TEST(WireFaults, F330_ADrainWaitsForStepsAndRefusesNewOnes) {
  const WirePair pair;
  pair.fake->holds = true;
  auto ended = std::async(std::launch::async, [&] { return pair.Step(AnyStep()); });
  ASSERT_TRUE(Until([&] { return pair.fake->waiting() == 1; }));
  const Status busy = pair.listener->Drain(In(std::chrono::milliseconds(10)));
  EXPECT_EQ(busy.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(busy.message(), "1 calls are still under way");
  const Status refused = pair.Step(AnyStep(2)).status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.message().find("is draining"), std::string::npos) << refused;
  EXPECT_TRUE(pair.Receive("k").ok());  // steps under way need it
  pair.fake->Finish();
  EXPECT_TRUE(ended.get().ok());
  EXPECT_TRUE(pair.listener->Drain(In(testing::kSoon)).ok());
  pair.listener->Close();
  const Status gone = pair.Step(AnyStep(3)).status();
  EXPECT_EQ(gone.code(), Code::kUnavailable) << gone;
}

TEST(WireFaults, F330_AClosedListenerFreesItsPort) {
  std::string address = testing::OwnLoopback() + ":0";
  for (int i = 0; i < 3; ++i) {
    const auto fake = std::make_shared<testing::FakeWorker>(TaskName{"ps", 0});
    LocalEnd self;
    self.task = {"ps", 0};
    auto listener = SocketTransport()->Listen({fake, nullptr}, {address, -1, self});
    ASSERT_TRUE(listener.ok()) << listener.status().ToString();
    address = (*listener)->address();
    const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, address, {});
    EXPECT_TRUE(far->GetStatus(In(testing::kSoon)).ok());
    (*listener)->Close();
  }
}

TEST(WireFaults, F330_F331_ATaskOfAClusterIsLostAndComesBack) {
  const TaskName ps{"ps", 0}, worker{"worker", 0};
  WiredCluster cluster({worker, ps}, {}, testing::OwnLoopback() + ":0");
  const auto made = testing::MakeGraph(
      {testing::Placeholder("x", PartialShape::Of({})), {"y", "Neg", {"x"}, testing::kFloat, "/job:ps/task:0"}});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const auto run = [](session::Session& session) {
    session::RunOptions options;
    options.timeout_in_ms = 120000;
    const std::vector<session::Feed> feeds = {{"x:0", Tensor::Scalar<float>(4)}};
    return session.Run(feeds, std::vector<std::string>{"y:0"}, {}, options);
  };
  auto session = cluster.Open(*made);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  ASSERT_TRUE(run(**session).ok());
  const std::string address = cluster.task(ps).listener->address();
  cluster.Stop(ps);
  const Status lost = run(**session).status();
  EXPECT_EQ(lost.code(), Code::kUnavailable) << lost;
  EXPECT_NE(lost.message().find("/job:ps/"), std::string::npos) << lost;
  cluster.Start(ps, address);
  cluster.Connect(ps);
  const Status stale = run(**session).status();
  EXPECT_EQ(stale.code(), Code::kAborted) << stale;
  session->reset();
  session = cluster.Open(*made);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const auto again = run(**session);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ((*again)[0].as<float>()[0], -4);
}

}  // namespace
}  // namespace weir::cluster
