// Values of a step that go along the call of a part.
#include "core/cluster/step_link.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/step_rendezvous.h"
#include "core/cluster/worker_messages.h"
#include "tests/support/text_graph.h"
#include "tests/support/wired_cluster.h"
#include "tests/unit/cluster/forwarding_worker.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster::step_link {
namespace {

using runtime::Message;
using testing::NodeLine;

const TaskName kWorker{"worker", 0}, kPs{"ps", 0};
const char kOnWorker[] = "/job:worker/task:0", kOnPs[] = "/job:ps/task:0";

/// Counts what is asked of a task.
class CountedTask final : public ForwardingWorker {
 public:
  using ForwardingWorker::ForwardingWorker;
  struct Calls {
    int steps = 0, asked = 0, sent = 0, cleanups = 0;
    bool operator==(const Calls&) const = default;
  };
  Calls Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(calls_, {});
  }

  void RunStep(StepRequest request, StepDone done) override {
    Count(&Calls::steps);
    ForwardingWorker::RunStep(std::move(request), std::move(done));
  }
  void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) override {
    Count(&Calls::asked);
    ForwardingWorker::RecvTensor(request, std::move(received));
  }
  void SendTensor(const TransferRequest& request, Message message, SendDone done) override {
    Count(&Calls::sent);
    ForwardingWorker::SendTensor(request, std::move(message), std::move(done));
  }
  Status CleanupStep(uint64_t session, uint64_t step) override {
    Count(&Calls::cleanups);
    return ForwardingWorker::CleanupStep(session, step);
  }

 private:
  void Count(int Calls::*what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++(calls_.*what);
  }
  std::mutex mutex_;  // protects calls_
  Calls calls_;
};

/// Two tasks behind sockets, each of which counts what it asks of the other. The master is in `worker`.
class LinkedTasks : public ::testing::Test {
 protected:
  LinkedTasks() {
    of_ps_ = Counted(kWorker, kPs);
    of_worker_ = Counted(kPs, kWorker);
  }
  std::shared_ptr<CountedTask> Counted(const TaskName& by, const TaskName& of) {
    const std::shared_ptr<Workers>& known = cluster_.task(by).workers;
    auto counted = std::make_shared<CountedTask>(*known->Find(of));
    known->Add(counted);
    return counted;
  }
  /// The value goes from ps to worker and back.
  static std::vector<NodeLine> ThereAndBack() {
    NodeLine x = testing::Placeholder("x", PartialShape::Of({-1}));
    x.device = kOnPs;
    return {x,
            {"a", "Neg", {"x"}, testing::kFloat, kOnPs},
            {"b", "Square", {"a"}, testing::kFloat, kOnWorker},
            {"c", "Sub", {"b", "a"}, testing::kFloat, kOnPs}};
  }
  /// Steps with a vector of so many elements 3: all give 12.
  void RunThereAndBack(int64_t elements, int steps) {
    const Result<graph::Definition> graph = testing::MakeGraph(ThereAndBack());
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    const auto session = cluster_.Open(*graph);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    Result<Tensor> x = Tensor::Make(DType::kFloat, Shape{elements});
    ASSERT_TRUE(x.ok());
    for (float& element : x->mutable_as<float>()) element = 3;
    of_ps_->Take();
    of_worker_->Take();
    for (int i = 0; i < steps; ++i) {
      const std::vector<session::Feed> feeds = {{"x:0", *x}};
      const auto c = (*session)->Run(feeds, std::vector<std::string>{"c:0"}, {});
      ASSERT_TRUE(c.ok()) << c.status().ToString();
      ASSERT_EQ(c->front().shape(), Shape{elements});
      for (const float element : c->front().as<float>()) ASSERT_EQ(element, 12.0F);
    }
  }

  testing::WiredCluster cluster_{{kWorker, kPs}};
  std::shared_ptr<CountedTask> of_ps_, of_worker_;
};

TEST_F(LinkedTasks, F249_SmallValuesOfAStepNeedNoCallsOfTheirOwn) {
  ASSERT_NO_FATAL_FAILURE(RunThereAndBack(16 << 10, 10));
  EXPECT_EQ(of_ps_->Take(), (CountedTask::Calls{.steps = 10}));
  EXPECT_EQ(of_worker_->Take(), CountedTask::Calls{});
  EXPECT_EQ(cluster_.CountsOf(kPs).steps, 0u);
  EXPECT_EQ(cluster_.CountsOf(kWorker).steps, 0u);
}

TEST_F(LinkedTasks, F249_LargeValuesOfAStepAreAskedForOnceTheyAreThere) {
  ASSERT_NO_FATAL_FAILURE(RunThereAndBack((16 << 10) + 1, 10));
  const CountedTask::Calls of_ps = of_ps_->Take();
  EXPECT_EQ(of_ps.steps, 10);
  EXPECT_EQ(of_ps.asked, 10);
  EXPECT_EQ(of_ps.sent, 0);
  EXPECT_EQ(of_worker_->Take(), (CountedTask::Calls{.asked = 10}));
}

TEST_F(LinkedTasks, F249_DeadValuesGoAlongTheCall) {
  NodeLine on = testing::Placeholder("on", PartialShape::Of({}), DType::kBool);
  on.device = kOnPs;
  NodeLine x = testing::Placeholder("x", PartialShape::Of({}));
  x.device = kOnPs;
  const std::vector<NodeLine> nodes = {on,
                                       x,
                                       {"s", "Switch", {"x", "on"}, testing::kFloat, kOnPs},
                                       {"t", "Neg", {"s:1"}, testing::kFloat, kOnWorker},
                                       {"f", "Square", {"s"}, testing::kFloat, kOnWorker},
                                       {"m", "Merge", {"t", "f"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}, kOnPs}};
  const Result<graph::Definition> graph = testing::MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = cluster_.Open(*graph);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  for (const bool taken : {true, false, true}) {
    const std::vector<session::Feed> feeds = {{"on:0", Tensor::Scalar<bool>(taken)}, {"x:0", Tensor::Scalar<float>(3)}};
    const auto m = (*session)->Run(feeds, std::vector<std::string>{"m:0"}, {});
    ASSERT_TRUE(m.ok()) << m.status().ToString();
    EXPECT_EQ(m->front().as<float>()[0], taken ? -3.0F : 9.0F);
  }
  EXPECT_EQ(of_ps_->Take().asked, 0);
  EXPECT_EQ(of_worker_->Take().asked, 0);
}

TEST_F(LinkedTasks, F249_StepsAtOnceKeepTheirStringsApart) {
  NodeLine x = testing::Placeholder("x", PartialShape::Of({}), DType::kString);
  x.device = kOnPs;
  const std::vector<NodeLine> nodes = {x,
                                       {"a", "StringUpper", {"x"}, {}, kOnPs},
                                       {"b", "StringLower", {"a"}, {}, kOnWorker},
                                       {"c", "StringJoin", {"a", "b"}, {{"N", int64_t{2}}}, kOnPs}};
  const Result<graph::Definition> graph = testing::MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = cluster_.Open(*graph);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  of_ps_->Take();
  const auto run = [&](const std::string& prefix) {
    for (int i = 0; i < 100; ++i) {
      const std::string digits = std::to_string(i);
      const std::vector<session::Feed> feeds = {{"x:0", Tensor::Scalar<std::string>(prefix + "q" + digits)}};
      const auto c = (*session)->Run(feeds, std::vector<std::string>{"c:0"}, {});
      ASSERT_TRUE(c.ok()) << c.status().ToString();
      EXPECT_EQ(c->front().as<std::string>()[0], prefix + "Q" + digits + prefix + "q" + digits);
    }
  };
  std::vector<std::thread> clients;
  for (const char* prefix : {"1", "2", "3"}) clients.emplace_back(run, prefix);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(of_ps_->Take(), (CountedTask::Calls{.steps = 300}));
  EXPECT_EQ(of_worker_->Take(), CountedTask::Calls{});
}

/// Keeps the step that runs; its links are what a test sends by.
class LinkedTask final : public Worker {
 public:
  const TaskName& task() const override { return kPs; }
  Result<WorkerStatus> GetStatus(Clock::time_point) override { return WorkerStatus(); }
  Status CreateSession(const WorkerSessionSpec&, Clock::time_point) override { return Status(); }
  Status DeleteSession(uint64_t) override { return Status(); }
  Result<PartHandle> RegisterPart(uint64_t, const std::string&, Clock::time_point) override { return PartHandle(); }
  Status DeregisterPart(uint64_t, uint64_t) override { return Status(); }
  void RunStep(StepRequest request, StepDone done) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    request_ = std::move(request);
    done_ = std::move(done);
    begun_ = true;
    changed_.notify_all();
  }
  void RecvTensor(const TransferRequest&, runtime::Rendezvous::Received received) override {
    received(Unimplemented("asked"));
  }
  Status TakeValue(const TransferRequest& request, Message message) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.emplace_back(request.key, std::move(message));
    changed_.notify_all();
    return Status();
  }
  Status CancelStep(uint64_t, uint64_t, const Status&) override { return Status(); }
  Status CleanupStep(uint64_t, uint64_t) override { return Status(); }
  Status ResetContainers(const std::vector<std::string>&) override { return Status(); }

  /// Waits for the step and so many values.
  bool Await(size_t values) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, testing::kSoon, [&] { return begun_ && values_.size() >= values; });
  }
  std::vector<std::pair<std::string, Message>> values() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_;
  }
  const StepRequest& request() const { return request_; }
  void End() { done_(std::vector<Tensor>()); }

 private:
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  StepRequest request_;
  StepDone done_;
  bool begun_ = false;
  std::vector<std::pair<std::string, Message>> values_;
};

Tensor Floats(int64_t count) {
  Result<Tensor> made = Tensor::Make(DType::kFloat, Shape{count});
  EXPECT_TRUE(made.ok());
  float next = 0;
  for (float& element : made->mutable_as<float>()) element = next++;
  return *std::move(made);
}

TEST(StepLink, ValuesCrossInOrderBothWaysBeforeTheReply) {
  const auto task = std::make_shared<LinkedTask>();
  LocalEnd self;
  self.task = kPs;
  self.incarnation = 99;
  const auto listener = testing::SocketTransport()->Listen({task, nullptr}, {"localhost:0", -1, self});
  ASSERT_TRUE(listener.ok()) << listener.status().ToString();
  const auto far = testing::SocketTransport()->ConnectWorker(kPs, (*listener)->address(), {});
  ASSERT_TRUE(far.ok()) << far.status().ToString();

  std::mutex mutex;
  std::vector<std::pair<std::string, Message>> came;
  const auto link = std::make_shared<StepLink>();
  link->own = kWorker;
  link->other = kPs;
  link->taken = [&](std::string_view key, Message message) {
    const std::lock_guard<std::mutex> lock(mutex);
    came.emplace_back(key, std::move(message));
  };
  StepRequest request;
  request.session = 5;
  request.step = 6;
  request.link = link;
  std::promise<Status> ended;
  // The channel has no connection yet: values wait for the request.
  (*far)->RunStep(std::move(request),
                  StepDone([&ended](const Result<std::vector<Tensor>>& r) { ended.set_value(r.status()); }));
  ASSERT_TRUE(link->send);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(link->send("k" + std::to_string(i), {Floats(i), false}));
  EXPECT_TRUE(link->send("dead", {Tensor(), true}));
  EXPECT_TRUE(link->send("strings", {Tensor::Scalar<std::string>("text"), false}));
  EXPECT_TRUE(link->send("most", {Floats(16 << 10), false}));
  EXPECT_FALSE(link->send("more", {Floats((16 << 10) + 1), false}));
  EXPECT_TRUE(link->send("more", Message()));
  ASSERT_TRUE(task->Await(104));
  const auto values = task->values();
  ASSERT_EQ(values.size(), 104u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(values[i].first, "k" + std::to_string(i));
    ASSERT_EQ(values[i].second.value.shape(), Shape{i});
    if (i > 0) {
      EXPECT_EQ(values[i].second.value.as<float>()[i - 1], static_cast<float>(i - 1));
    }
  }
  EXPECT_TRUE(values[100].second.dead);
  EXPECT_EQ(values[101].second.value.as<std::string>()[0], "text");
  EXPECT_EQ(values[102].second.value.as<float>()[16383], 16383.0F);
  EXPECT_FALSE(values[103].second.dead || values[103].second.value.valid());

  ASSERT_EQ(task->request().links.size(), 1u);
  const StepLink back = *task->request().links[0];
  EXPECT_EQ(back.other, kWorker);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(back.send("b" + std::to_string(i), {Floats(i), false}));
  task->End();
  EXPECT_TRUE(ended.get_future().get().ok());
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ASSERT_EQ(came.size(), 100u) << "all before the reply";
    for (int i = 0; i < 100; ++i) EXPECT_EQ(came[i].first, "b" + std::to_string(i));
  }
  EXPECT_TRUE(back.send("late", {Floats(1), false})) << "it goes nowhere";
  EXPECT_TRUE(link->send("late", {Floats(1), false}));
  (*listener)->Close();
}

TEST(StepLink, WhatIsNoValueIsRefused) {
  const auto budget = std::make_shared<ByteBudget>(1000);
  const uint32_t method = static_cast<uint32_t>(Method::kSendTensor);
  const Result<SentValue> sent = EncodeValue("k", {Floats(2), false});
  ASSERT_TRUE(sent.ok()) << sent.status().ToString();
  const std::span<const std::byte> body = sent->tensors.bodies()[0];
  const std::vector<uint64_t> sizes = {body.size()};
  const Result<CameValue> came = DecodeValue(method, sent->meta, sizes, body.data(), budget);
  ASSERT_TRUE(came.ok()) << came.status().ToString();
  EXPECT_EQ(came->key, "k");
  EXPECT_EQ(came->message.value.as<float>()[1], 1.0F);
  EXPECT_EQ(budget->used(), 0u);

  EXPECT_EQ(DecodeValue(6, sent->meta, sizes, body.data(), budget).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(DecodeValue(method, "\xff", sizes, body.data(), budget).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(DecodeValue(method, sent->meta, {}, nullptr, budget).status().code(), Code::kInvalidArgument);
  const std::vector<uint64_t> two = {4, 4}, short_one = {4};
  EXPECT_EQ(DecodeValue(method, sent->meta, two, body.data(), budget).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(DecodeValue(method, sent->meta, short_one, body.data(), budget).status().code(), Code::kInvalidArgument);
  WireRequest dead;
  dead.method = Method::kSendTensor;
  dead.dead = true;
  dead.tensors = sent->tensors.heads();
  EXPECT_EQ(DecodeValue(method, *Encode(dead), sizes, body.data(), budget).status().code(), Code::kInvalidArgument);
  const Result<SentValue> large = EncodeValue("k", {Floats(1000), false});
  ASSERT_TRUE(large.ok());
  const std::vector<uint64_t> many = {4000};
  EXPECT_EQ(DecodeValue(method, large->meta, many, large->tensors.bodies()[0].data(), budget).status().code(),
            Code::kResourceExhausted);
}

TEST(StepLink, AStepWithoutALinkTakesNoValues) {
  const testing::WirePair pair;
  pair.fake->holds = true;
  StepRequest request;
  request.session = 5;
  request.step = 6;
  const auto link = std::make_shared<StepLink>();
  link->other = kPs;  // and no own name: the server knows of none
  link->taken = [](std::string_view, Message) {};
  request.link = link;
  std::promise<Status> ended;
  pair.far->RunStep(std::move(request),
                    StepDone([&ended](const Result<std::vector<Tensor>>& r) { ended.set_value(r.status()); }));
  ASSERT_TRUE(link->send);
  EXPECT_TRUE(link->send("k", {Floats(1), false}));
  const Status status = ended.get_future().get();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("a message came along with RunStep"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace weir::cluster::step_link
