// Devices of another process in sessions of this one, over sockets on loopback.
#include "core/cluster/remote_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/guest_worker.h"
#include "core/place/place.h"
#include "core/runtime/resource.h"
#include "tests/support/own_loopback.h"
#include "tests/support/text_graph.h"
#include "tests/support/wired_cluster.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::In;
using testing::NodeLine;
using testing::SocketTransport;
using testing::Until;
using testing::WiredCluster;
using testing::WirePair;

const TaskName kThisProcess{"localhost", 0}, kFirstServer{"worker", 0}, kSecondServer{"worker", 1};
const char kOnRemote[] = "/job:remote/task:0/device:CPU:0";
const char kOnOther[] = "/job:remote/task:1/device:CPU:0";
const char kOnHere[] = "/job:localhost/task:0/device:CPU:0";
const op::AttrList kRemoteScalar = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
const op::AttrList kRemoteQueued = {{"component_types", std::vector<DType>{DType::kFloat}}};
constexpr std::chrono::seconds kLongest{60};

NodeLine PutOn(NodeLine node, const char* device) {
  node.device = device;
  return node;
}

/// This process's runtime with the devices of servers.
Result<std::shared_ptr<session::Runtime>> AttachTo(const std::vector<std::string>& addresses,
                                                 const std::vector<std::string>& required = {},
                                                 const std::string& token_file = {}, bool own_cpu = false) {
  auto own = std::make_shared<session::Runtime>(*testing::RuntimeOf(kThisProcess));
  own->config.cluster.remote_devices = addresses;
  own->config.cluster.required_devices = required;
  own->config.cluster.remote_own_cpu = own_cpu;
  own->config.cluster.remote_limit_ms = 60000;
  own->config.cluster.token_file = token_file;
  return AttachRemoteDevices(own);
}

/// A server for each task, which know nothing of one another.
struct RemoteServers {
  explicit RemoteServers(const std::vector<TaskName>& tasks) {
    for (const TaskName& task : tasks) {
      all.push_back(
          std::make_unique<WiredCluster>(std::vector<TaskName>{task}, LocalEnd{}, testing::OwnLoopback() + ":0"));
      addresses.push_back(all.back()->task(task).listener->address());
    }
  }
  std::vector<std::unique_ptr<WiredCluster>> all;
  std::vector<std::string> addresses;
};

class RemoteDevice : public ::testing::Test {
 protected:
  std::unique_ptr<session::Session> Open(const std::shared_ptr<session::Runtime>& runtime,
                                         const std::vector<NodeLine>& nodes, session::SessionOptions options = {}) {
    Result<graph::Definition> made = testing::MakeGraph(nodes);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) return nullptr;
    graphs_.push_back(std::make_unique<graph::Definition>(std::move(*made)));
    options.placement_log = [](const std::string&) {};
    auto session = session::Session::Make(runtime, *graphs_.back(), std::move(options));
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.ok() ? std::move(*session) : nullptr;
  }
  static Result<std::vector<Tensor>> Run(session::Session& session, const std::vector<std::string>& fetches,
                                         const std::vector<std::string>& targets = {},
                                         const std::vector<session::Feed>& feeds = {},
                                         session::RunReport* report = nullptr) {
    session::RunOptions options;
    options.timeout_in_ms = 120000;
    return session.Run(feeds, fetches, targets, options, report);
  }
  static float Value(const Result<std::vector<Tensor>>& fetched) {
    EXPECT_TRUE(fetched.ok()) << fetched.status().ToString();
    return fetched.ok() ? *(*fetched)[0].scalar<float>() : std::numeric_limits<float>::quiet_NaN();
  }
  static Tensor Square(int64_t rows) {
    Tensor made = *Tensor::Make(DType::kFloat, *Shape::Make(std::vector<int64_t>{rows, rows}));
    for (float& element : made.mutable_as<float>()) element = 0.5f;
    return made;
  }
  std::shared_ptr<session::Runtime> AttachAll(const RemoteServers& servers) {
    auto runtime = AttachTo(servers.addresses);
    EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
    return runtime.ok() ? std::move(*runtime) : nullptr;
  }

  std::vector<std::unique_ptr<graph::Definition>> graphs_;
};

TEST_F(RemoteDevice, DevicesAreListedWithTheirProcessAndAMeasuredLink) {
  const RemoteServers servers({kFirstServer, kSecondServer});
  const auto runtime = AttachAll(servers);
  ASSERT_NE(runtime, nullptr);
  std::vector<std::string> names, addresses;
  for (const auto& device : runtime->plugins->devices().all()) {
    names.push_back(device->name());
    addresses.push_back(device->info().elsewhere);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"/job:localhost/replica:0/task:0/device:CPU:0",
                                             "/job:remote/replica:0/task:0/device:CPU:0",
                                             "/job:remote/replica:0/task:1/device:CPU:0"}));
  EXPECT_EQ(addresses, (std::vector<std::string>{"", servers.addresses[0], servers.addresses[1]}));
  const std::shared_ptr<device::Device>& far = runtime->plugins->devices().all()[1];
  const auto link = far->Link(WEIR_SPACE_DEVICE, nullptr, WEIR_SPACE_HOST);
  ASSERT_TRUE(link.ok());
  EXPECT_EQ(link->provenance, static_cast<uint32_t>(WEIR_PROVENANCE_MEASURED));
  ASSERT_EQ(runtime->remote->servers().size(), 2u);
  const session::RemoteServer& server = runtime->remote->servers()[0];
  EXPECT_TRUE(server.status.ok());
  EXPECT_EQ(server.address, servers.addresses[0]);
  EXPECT_DOUBLE_EQ(server.latency_us * 1e3, link->latency_ns);
  EXPECT_GT(server.latency_us, 0);
  EXPECT_GT(server.gbps, 0);
  ASSERT_NE(far->profile(), nullptr);
  EXPECT_EQ(far->profile()->bandwidth_bytes_per_ns,
            testing::RuntimeOf(kFirstServer)->plugins->devices().all()[0]->profile()->bandwidth_bytes_per_ns);
}

TEST_F(RemoteDevice, VariablesLiveThereAndEndWithTheSession) {
  const RemoteServers servers({kFirstServer});
  const auto runtime = AttachAll(servers);
  ASSERT_NE(runtime, nullptr);
  LocalWorker& far = servers.all[0]->worker(kFirstServer);
  const std::vector<NodeLine> nodes = {
      PutOn({"v", "VariableV2", {}, kRemoteScalar}, kOnRemote),
      PutOn(testing::Const("zero", Tensor::Scalar(3.f)), kOnRemote),
      {"init", "Assign", {"v", "zero"}, testing::kFloat},
      testing::Placeholder("by", PartialShape::Of({})),
      {"add", "AssignAdd", {"v", "by"}, testing::kFloat},
      PutOn({"twice", "Add", {"add", "add"}, testing::kFloat}, kOnHere)};
  auto session = Open(runtime, nodes);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(far.counts().sessions, 1u);
  ASSERT_TRUE(Run(*session, {}, {"init"}).ok());
  EXPECT_EQ(Value(Run(*session, {"add"}, {}, {{"by", Tensor::Scalar(2.f)}})), 5);
  EXPECT_EQ(Value(Run(*session, {"twice"}, {}, {{"by", Tensor::Scalar(1.f)}})), 12);
  EXPECT_EQ(Value(Run(*session, {"v"})), 6);
  EXPECT_EQ(session->resources()->size(), 0u) << "the variable is elsewhere";
  // Another session has state of its own.
  auto other = Open(runtime, nodes);
  EXPECT_EQ(Run(*other, {"v"}).status().code(), Code::kFailedPrecondition);
  other.reset();
  session.reset();
  const LocalWorker::Counts counts = far.counts();
  EXPECT_EQ(counts.sessions + counts.parts + counts.steps + counts.running, 0u);
}

/// The value of a predicate chooses the branch; the other one is dead.
TEST_F(RemoteDevice, F249_ValuesStringsAndDeadValuesCrossBothWays) {
  const RemoteServers servers({kFirstServer, kSecondServer});
  const auto runtime = AttachAll(servers);
  ASSERT_NE(runtime, nullptr);
  const op::AttrList string = {{"T", DType::kString}};
  session::SessionOptions options;
  options.constant_folding = false;
  const auto session = Open(
      runtime,
      {testing::Placeholder("x", PartialShape::Of({})), testing::Placeholder("p", PartialShape::Of({}), DType::kBool),
       PutOn({"a", "Neg", {"x"}, testing::kFloat}, kOnRemote), PutOn({"b", "Square", {"a"}, testing::kFloat}, kOnHere),
       PutOn({"c", "Add", {"a", "b"}, testing::kFloat}, kOnRemote),
       PutOn({"d", "Sub", {"c", "x"}, testing::kFloat}, kOnHere),
       // Between two servers, with a control edge.
       PutOn({"e", "Mul", {"c", "a"}, testing::kFloat}, kOnOther),
       PutOn({"f", "Identity", {"d", "^e"}, testing::kFloat}, kOnRemote),
       PutOn({"choice", "Switch", {"x", "p"}, testing::kFloat}, kOnRemote),
       PutOn({"yes", "Neg", {"choice:1"}, testing::kFloat}, kOnOther),
       PutOn({"no", "Identity", {"choice:0"}, testing::kFloat}, kOnHere),
       PutOn({"merged", "Merge", {"no", "yes"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}}, kOnRemote),
       PutOn(testing::Const("s", Tensor::Vector<std::string>({"one", "", std::string("\0x", 2)})), kOnRemote),
       PutOn({"t", "Identity", {"s"}, string}, kOnHere), PutOn({"u", "Identity", {"t"}, string}, kOnOther)},
      options);
  ASSERT_NE(session, nullptr);
  for (const bool p : {true, false}) {
    session::RunReport report;
    const auto got = Run(*session, {"d", "e", "f", "merged", "u"}, {},
                         {{"x", Tensor::Scalar(3.f)}, {"p", Tensor::Scalar(p)}});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ(*(*got)[0].scalar<float>(), 3);
    EXPECT_EQ(*(*got)[1].scalar<float>(), -18);
    EXPECT_EQ(*(*got)[2].scalar<float>(), 3);
    EXPECT_EQ(*(*got)[3].scalar<float>(), p ? -3 : 3);
    EXPECT_EQ((*got)[4].as<std::string>()[2], std::string("\0x", 2));
  }
}

TEST_F(RemoteDevice, AStepThatNeedsNoneRunsInThisProcessAsAWhole) {
  const RemoteServers servers({kFirstServer});
  const auto runtime = AttachAll(servers);
  ASSERT_NE(runtime, nullptr);
  const std::vector<NodeLine> nodes = {testing::Placeholder("x", PartialShape::Of({64, 64})),
                                       testing::Placeholder("y", PartialShape::Of({64, 64})),
                                       {"m", "MatMul", {"x", "y"}, testing::kFloat},
                                       {"r", "Relu", {"m"}, testing::kFloat},
                                       {"n", "MatMul", {"r", "y"}, testing::kFloat},
                                       {"z", "Add", {"n", "m"}, testing::kFloat}};
  const Tensor square = Square(64);
  const auto plan_of = [&](const std::shared_ptr<session::Runtime>& of) {
    const auto session = Open(of, nodes);
    session::RunReport report;
    EXPECT_TRUE(Run(*session, {"z"}, {}, {{"x", square}, {"y", square}}, &report).ok());
    const std::vector<std::string> fetches = {"z"};
    const std::vector<session::Feed> feeds = {{"x", square}, {"y", square}};
    const auto text = session->ExplainStage(session::Stage::kPlan, feeds, fetches, {});
    EXPECT_TRUE(text.ok()) << text.status().ToString();
    EXPECT_EQ(report.placement.size(), 1u);
    std::string plan = *text;
    if (const size_t line = plan.find("space 1 "); line != std::string::npos) {
      plan.erase(line, plan.find('\n', line) + 1 - line);
    }
    return plan;
  };
  EXPECT_EQ(plan_of(runtime), plan_of(testing::RuntimeOf(kThisProcess)));
  EXPECT_EQ(servers.all[0]->worker(kFirstServer).counts().parts, 0u);
}

TEST_F(RemoteDevice, NodesGoThereByCostUnlessTheLinkIsSlow) {
  const RemoteServers servers({kFirstServer});
  // The kernels of this process are so slow that a transfer pays.
  const std::shared_ptr<device::Device>& own = testing::RuntimeOf({"slow", 0})->plugins->devices().all()[0];
  device::CostFigures slow;
  slow.peak_flops_per_ns[static_cast<int>(DType::kFloat)] = 1e-4;
  slow.bandwidth_bytes_per_ns = slow.cache_bandwidth_bytes_per_ns = 1e-4;
  own->SetMeasuredCosts(slow);
  for (const bool own_cpu : {true, false}) {
    const auto attached = AttachTo(servers.addresses, {}, {}, own_cpu);
    ASSERT_TRUE(attached.ok()) << attached.status().ToString();
    const std::shared_ptr<session::Runtime>& runtime = *attached;
    device::DeviceSet devices;
    devices.Add(own);
    devices.Add(runtime->plugins->devices().all()[1]);
    auto other = std::make_shared<session::Runtime>(*runtime);
    other->plugins = runtime->plugins->WithDevices(std::move(devices));
    other->remote = nullptr;  // only placement is looked at
    const auto device_of = [&](const place::PlaceOptions::LinkFigures& link) {
      auto placement = std::make_shared<place::PlaceOptions>();
      for (const char* way : {"CPU:0->/job:remote/replica:0/task:0/device:CPU:0",
                              "/job:remote/replica:0/task:0/device:CPU:0->CPU:0"}) {
        placement->links[way] = link;
      }
      session::SessionOptions options;
      options.placement = placement;
      const auto session = Open(other,
                                {testing::Placeholder("x", PartialShape::Of({256, 256})),
                                 {"m", "MatMul", {"x", "x"}, testing::kFloat},
                                 {"n", "MatMul", {"m", "m"}, testing::kFloat}},
                                options);
      const std::vector<session::Feed> feeds = {{"x", Square(256)}};
      const std::vector<std::string> fetches = {"n"};
      const auto explained = session->ExplainPlacement(feeds, fetches, {});
      EXPECT_TRUE(explained.ok()) << explained.status().ToString();
      return std::string(explained->placed.back().device);
    };
    // A CPU of this machine is no faster for being another process's.
    EXPECT_EQ(device_of({1e4, 1}).find("/job:remote") != std::string::npos, own_cpu);
    EXPECT_EQ(device_of({1e15, 1e-9}).find("/job:remote"), std::string::npos);
  }
}

/// A step that waits in a queue of the remote device.
const std::vector<NodeLine> kWaitsThere = {
    PutOn({"v", "VariableV2", {}, kRemoteScalar}, kOnRemote),
    PutOn(testing::Const("one", Tensor::Scalar(1.f)), kOnRemote),
    {"init", "Assign", {"v", "one"}, testing::kFloat}, PutOn({"q", "FIFOQueueV2", {}, kRemoteQueued}, kOnRemote),
    {"get", "QueueDequeueV2", {"q"}, kRemoteQueued}, PutOn({"here", "Neg", {"get"}, testing::kFloat}, kOnHere)};

TEST_F(RemoteDevice, F331_ALostProcessEndsStepsAndIsGotAnewByTheNextSession) {
  const RemoteServers servers({kFirstServer});
  WiredCluster& server = *servers.all[0];
  const auto runtime = AttachAll(servers);
  ASSERT_NE(runtime, nullptr);
  EXPECT_TRUE(runtime->remote->UpToDate());
  const auto session = Open(runtime, kWaitsThere);
  ASSERT_TRUE(Run(*session, {}, {"init"}).ok());
  auto waiting = std::async(std::launch::async, [&] { return Run(*session, {"here"}).status(); });
  ASSERT_TRUE(Until([&] { return server.worker(kFirstServer).counts().running == 1; }));
  server.Stop(kFirstServer);
  const Status lost = waiting.get();
  EXPECT_EQ(lost.code(), Code::kUnavailable) << lost.ToString();
  for (const std::string& part :
       {std::string("From /job:remote/replica:0/task:0"), servers.addresses[0], std::string("while step "),
        std::string("their variables with them"), std::string("begin a new session")}) {
    EXPECT_NE(lost.message().find(part), std::string::npos) << part << " in " << lost;
  }
  EXPECT_FALSE(runtime->remote->UpToDate());
  const Status later = Run(*session, {"v"}).status();
  EXPECT_EQ(later.code(), Code::kUnavailable) << later.ToString();
  EXPECT_NE(later.message().find("were lost before this step"), std::string::npos) << later;

  server.Start(kFirstServer, servers.addresses[0]);
  EXPECT_FALSE(runtime->remote->UpToDate()) << "another incarnation";
  const Status stale = Run(*session, {"v"}).status();
  EXPECT_EQ(stale.code(), Code::kUnavailable) << "the new process has no such session: " << stale.ToString();
  const auto anew = AttachAll(servers);
  ASSERT_NE(anew, nullptr);
  const auto second = Open(anew, kWaitsThere);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(Run(*second, {"v"}).status().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Run(*second, {}, {"init"}).ok());
  EXPECT_EQ(Value(Run(*second, {"v"})), 1);
}

TEST_F(RemoteDevice, ASessionEndsInTheOtherProcessWithItsConnection) {
  const RemoteServers servers({kFirstServer});
  LocalWorker& far = servers.all[0]->worker(kFirstServer);
  const auto client = *SocketTransport()->ConnectWorker({}, servers.addresses[0], {});
  const auto guest = std::make_shared<GuestWorker>(TaskName{"remote", 0}, servers.addresses[0], client);
  WorkerSessionSpec spec;
  spec.handle = 7;
  spec.incarnation = far.incarnation();
  ASSERT_TRUE(guest->CreateSession(spec, In(kLongest)).ok());
  EXPECT_EQ(far.counts().sessions, 1u);
  spec.handle = 8;
  ASSERT_TRUE(client->CreateSession(spec, In(kLongest)).ok());
  std::promise<Status> ended;
  auto held = client->HoldSession(8, [&](const Status& why) { ended.set_value(why); });
  held.reset();
  EXPECT_EQ(ended.get_future().get().code(), Code::kCancelled);
  EXPECT_TRUE(Until([&] { return far.counts().sessions == 1; }));
  EXPECT_TRUE(guest->DeleteSession(7).ok());
  EXPECT_EQ(far.counts().sessions, 0u);
}

TEST_F(RemoteDevice, AProcessThatIsNotThereIsSaidAndOnlyMissedIfItIsRequired) {
  const RemoteServers servers({kFirstServer});
  const std::string nobody = testing::OwnLoopback() + ":1";
  const auto runtime = AttachTo({nobody, servers.addresses[0]});
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  const auto& listed = (*runtime)->remote->servers();
  EXPECT_EQ(listed[0].status.code(), Code::kUnavailable);
  EXPECT_NE(listed[0].status.message().find(nobody), std::string::npos) << listed[0].status;
  EXPECT_TRUE(listed[1].status.ok());
  EXPECT_EQ((*runtime)->plugins->devices().all().size(), 2u);
  EXPECT_TRUE((*runtime)->remote->UpToDate());
  // A request for what is missing is relaxed, or an error.
  const std::vector<NodeLine> nodes = {testing::Placeholder("x", PartialShape::Of({})),
                                       PutOn({"y", "Neg", {"x"}, testing::kFloat}, "/device:GPU:3"),
                                       PutOn({"z", "Neg", {"x"}, testing::kFloat}, "/job:remote/task:1/device:GPU:0")};
  EXPECT_EQ(Value(Run(*Open(*runtime, nodes), {"y"}, {}, {{"x", Tensor::Scalar(1.f)}})), -1);
  EXPECT_EQ(Value(Run(*Open(*runtime, nodes), {"z"}, {}, {{"x", Tensor::Scalar(1.f)}})), -1);
  session::SessionOptions strict;
  strict.allow_soft_placement = false;
  const Status refused = Run(*Open(*runtime, nodes, strict), {"z"}, {}, {{"x", Tensor::Scalar(1.f)}}).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument) << refused.ToString();

  const Status missed = AttachTo({}, {nobody}).status();
  EXPECT_EQ(missed.code(), Code::kUnavailable);
  EXPECT_NE(missed.message().find("cluster.required_devices: those of " + nobody), std::string::npos) << missed;
  EXPECT_EQ(AttachTo({nobody, nobody}).status().code(), Code::kInvalidArgument);
  const auto bad = AttachTo({"no port", "rdma://localhost:1"});
  ASSERT_TRUE(bad.ok()) << bad.status().ToString();
  EXPECT_EQ((*bad)->remote->servers()[0].status.code(), Code::kInvalidArgument);
  EXPECT_EQ((*bad)->remote->servers()[1].status.code(), Code::kNotFound);
}

/// What a session learns of a process that says this.
struct DeviceOffer {
  explicit DeviceOffer(std::vector<device::DeviceDescription> devices, const LocalEnd& end = {}) : pair(end) {
    pair.fake->status.incarnation = 99;
    pair.fake->status.devices = std::move(devices);
  }
  Result<std::shared_ptr<session::Runtime>> Take(const std::string& token_file = {}) const {
    return AttachTo({pair.listener->address()}, {}, token_file);
  }
  Status Refusal() const {
    auto runtime = Take();
    EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
    if (!runtime.ok()) return runtime.status();
    EXPECT_EQ((*runtime)->plugins->devices().all().size(), 1u);
    return (*runtime)->remote->servers()[0].status;
  }
  WirePair pair;
};

TEST_F(RemoteDevice, WhatAProcessOffersIsChecked) {
  device::DeviceDescription card = testing::AnyDevice({"ps", 0});
  const auto has = [](const Status& status, const std::string& text) {
    EXPECT_NE(status.message().find(text), std::string::npos) << text << " in " << status;
  };
  has(DeviceOffer({}).Refusal(), "offers no device");
  has(DeviceOffer({card, card}).Refusal(), "two devices GPU:1");
  device::DeviceDescription plain = card;
  plain.profile.reset();
  has(DeviceOffer(std::vector<device::DeviceDescription>(2000, plain)).Refusal(), "2000 devices, at most 1024");
  device::DeviceDescription huge = card;
  huge.info.memory_bytes = uint64_t{1} << 60;
  has(DeviceOffer({huge}).Refusal(), "bytes of memory, which no device has");
  device::DeviceDescription ours = card;
  ours.info.name.job = "localhost";
  has(DeviceOffer({card, ours}).Refusal(), "has the device /job:localhost");
  DeviceOffer draining({card});
  draining.pair.fake->status.draining = true;
  has(draining.Refusal(), "draining");
  // Our own names alone are another process's, and figures that are none are unknown.
  ours.profile->bandwidth_bytes_per_ns = -1;
  ours.profile->launch_ns = std::numeric_limits<double>::infinity();
  const auto named = DeviceOffer({ours}).Take();
  ASSERT_TRUE(named.ok()) << named.status().ToString();
  ASSERT_EQ((*named)->plugins->devices().all().size(), 2u) << (*named)->remote->servers()[0].status;
  device::Device& far = *(*named)->plugins->devices().all()[1];
  EXPECT_EQ(far.name(), "/job:remote/replica:0/task:0/device:GPU:1");
  EXPECT_TRUE(std::isnan(far.profile()->bandwidth_bytes_per_ns));
  EXPECT_TRUE(std::isnan(far.profile()->launch_ns));
  LocalEnd guarded;
  guarded.security.token = "secret";
  const Status unproven = DeviceOffer({card}, guarded).Refusal();
  EXPECT_EQ(unproven.code(), Code::kUnauthenticated) << unproven;
  has(unproven, "asks for a token");
  EXPECT_EQ(DeviceOffer({card}).Take("/no/such/token").status().code(), Code::kNotFound);
}

/// Kernels that only the other process has: for a platform that no plugin here serves.
TEST_F(RemoteDevice, KernelsOfTheOtherProcessCount) {
  DeviceOffer offer({testing::AnyDevice({"ps", 0})});
  kernel::KernelDescription neg;
  neg.op = "Neg";
  neg.platform = "cuda";
  neg.plugin = "kernels_cuda";
  neg.types = {{"T", uint64_t{1} << static_cast<int>(DType::kFloat)}};
  kernel::KernelDescription unknown = neg, misfit = neg, elsewhere = neg;
  unknown.op = "NoOpOfOurs";
  misfit.types.front().first = "NoAttrOfNeg";
  elsewhere.op = "Square";
  elsewhere.platform = "hip";
  offer.pair.fake->kernels = {neg, unknown, misfit, elsewhere};
  const auto runtime = offer.Take();
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  session::SessionOptions strict;
  strict.allow_soft_placement = false;
  auto alone = std::make_shared<session::Runtime>(**runtime);
  alone->remote = nullptr;  // only placement is looked at
  const auto device_of = [&](const char* op) {
    const auto session = Open(alone,
                              {testing::Placeholder("x", PartialShape::Of({})),
                               PutOn({"y", op, {"x"}, testing::kFloat}, "/job:remote/task:0/device:GPU:1")},
                              strict);
    const std::vector<session::Feed> feeds = {{"x", Tensor::Scalar(1.f)}};
    const std::vector<std::string> fetches = {"y"};
    const auto explained = session->ExplainPlacement(feeds, fetches, {});
    return explained.ok() ? std::string(explained->placed.back().device) : explained.status().ToString();
  };
  EXPECT_EQ(device_of("Neg"), "/job:remote/replica:0/task:0/device:GPU:1");
  EXPECT_NE(device_of("Square").find("INVALID_ARGUMENT"), std::string::npos) << device_of("Square");
  // Of a set of kernels that both have, the other process's cost as here.
  const RemoteServers servers({kFirstServer});
  const auto cpus = AttachAll(servers);
  ASSERT_NE(cpus, nullptr);
  size_t with_estimate = 0;
  for (const kernel::KernelEntry* entry : cpus->plugins->kernels().ForOp("MatMul")) {
    const std::string_view platform(entry->record->platform.data, entry->record->platform.size);
    if (platform == "cpu@" + servers.addresses[0] && entry->record->estimate != nullptr) ++with_estimate;
  }
  EXPECT_GT(with_estimate, 0u);
}

TEST_F(RemoteDevice, AValueSentToATaskThatAsksForItsOwnIsRefused) {
  const RemoteServers servers({kFirstServer});
  LocalWorker& far = servers.all[0]->worker(kFirstServer);
  const auto client = *SocketTransport()->ConnectWorker(kFirstServer, servers.addresses[0], {});
  WorkerSessionSpec spec;
  spec.handle = 9;
  spec.incarnation = far.incarnation();
  ASSERT_TRUE(client->CreateSession(spec, In(kLongest)).ok());
  const auto send = [&](uint64_t session, Tensor value, bool dead) {
    std::promise<Status> ended;
    client->SendTensor({session, 3, "k"}, {std::move(value), dead}, [&](const Status& s) { ended.set_value(s); });
    return ended.get_future().get();
  };
  EXPECT_EQ(send(9, Tensor::Scalar(1.f), false).code(), Code::kFailedPrecondition);
  EXPECT_EQ(send(1, Tensor::Scalar(1.f), false).code(), Code::kAborted);
  EXPECT_TRUE(client->DeleteSession(9).ok());
}

TEST(RemoteDeviceCalls, CrossTheWire) {
  const WirePair pair;
  kernel::KernelDescription kernel;
  kernel.op = "MatMul";
  kernel.platform = "cuda/13";
  kernel.plugin = "kernels_cuda";
  kernel.flags = 5;
  kernel.cost_class = 1;
  kernel.priority = -3;
  kernel.host_inputs = kernel.variable_writes = uint64_t{1} << 63;
  kernel.host_outputs = kernel.variable_reads = 2;
  kernel.flops_per_element = 0.5;
  kernel.types = {{"T", 6}, {"U", uint64_t{1} << 62}};
  pair.fake->kernels = {kernel};
  const auto got = pair.far->GetKernels(In(kLongest));
  ASSERT_TRUE(got.ok() && got->size() == 1) << got.status().ToString();
  const kernel::KernelDescription& came = got->front();
  EXPECT_EQ(std::tie(came.op, came.platform, came.plugin, came.flags, came.cost_class, came.priority),
            std::tie(kernel.op, kernel.platform, kernel.plugin, kernel.flags, kernel.cost_class, kernel.priority));
  EXPECT_EQ(std::tie(came.host_inputs, came.host_outputs, came.variable_reads, came.variable_writes),
            std::tie(kernel.host_inputs, kernel.host_outputs, kernel.variable_reads, kernel.variable_writes));
  EXPECT_EQ(came.flops_per_element, kernel.flops_per_element);
  EXPECT_EQ(came.types, kernel.types);

  const auto send = [&](const std::string& key, runtime::Message message) {
    std::promise<Status> ended;
    pair.far->SendTensor({5, 6, key}, std::move(message), [&](const Status& status) { ended.set_value(status); });
    return ended.get_future().get();
  };
  EXPECT_TRUE(send("v", {Tensor::Vector<float>({1, 2, 3}), false}).ok());
  EXPECT_TRUE(send("d", {Tensor(), true}).ok());
  EXPECT_EQ(send("bad", {Tensor::Scalar(1.f), false}).code(), Code::kAborted);
  pair.fake->Locked([](const testing::FakeWorker& fake) {
    EXPECT_EQ(fake.sent.size(), 3u);
    EXPECT_EQ(fake.sent[0].second.value.as<float>()[2], 3);
    EXPECT_TRUE(fake.sent[1].second.dead);
    return 0;
  });
  EXPECT_TRUE(pair.far->Measure(0, In(kLongest)).ok());
  EXPECT_TRUE(pair.far->Measure(3 << 20, In(kLongest)).ok());
  EXPECT_EQ(pair.far->Measure(17 << 20, In(kLongest)).status().code(), Code::kResourceExhausted);
  WorkerSessionSpec spec;
  spec.known_as = {"remote", 3};
  ASSERT_TRUE(pair.far->CreateSession(spec, In(kLongest)).ok());
  pair.fake->Locked([](const testing::FakeWorker& fake) {
    EXPECT_EQ(fake.spec.known_as.ToString(), "/job:remote/replica:0/task:3");
    return 0;
  });
}

TEST(MeasureLink, OfATaskInThisProcessThereIsNone) {
  testing::LocalCluster cluster({kFirstServer});
  EXPECT_EQ(MeasureLink(cluster.worker(kFirstServer), In(kLongest)).status().code(), Code::kUnimplemented);
}

}  // namespace
}  // namespace weir::cluster
