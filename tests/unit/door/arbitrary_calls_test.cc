// Calls with bytes that no client sends.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph_def.h"
#include "tests/fuzz/dice.h"
#include "tests/unit/door/door_master.h"

namespace weir::door {
namespace {

/// A request with some of its bytes changed, left out, repeated or taken from another one.
std::string Mutated(std::string request, const std::string& other, fuzz::Dice& dice) {
  for (int64_t changes = dice.Between(0, 4); changes > 0; --changes) {
    const size_t at = dice.Below(request.size() + 1);
    switch (dice.Below(5)) {
      case 0:
        if (at < request.size()) request[at] = static_cast<char>(dice.Next());
        break;
      case 1:
        request.resize(at);
        break;
      case 2:
        request.insert(at, 1 + dice.Below(3), static_cast<char>(dice.Next()));
        break;
      case 3:
        request.erase(at, 1 + dice.Below(4));
        break;
      default: {
        const size_t from = dice.Below(other.size());
        request.insert(at, other.substr(from, dice.Below(40)));
      }
    }
  }
  return request;
}

TEST_F(DoorMaster, F250_ArbitraryCallsGetAnAnswer) {
  Limits limits;
  limits.request_bytes = 4096;
  limits.expansion_bytes = 1 << 20;
  limits.sessions = limits.callables = 5;
  limits.kept = {.bytes = 10000, .replies = 3};
  Start({.task = kLocal, .limits = limits});
  Result<graph::Definition> graph = graph::ParseGraph(Graph() + Queue(), *testing::RuntimeOf(kLocal)->ops);
  ASSERT_TRUE(graph.ok());
  const Result<std::string> bytes = graph::ExportGraphDef(*graph);
  ASSERT_TRUE(bytes.ok());
  fuzz::Dice dice(20240917);
  std::string handle = Create(*bytes), partial = "1";
  size_t good = 0, bad = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::pair<std::string, std::string>> calls;
    const auto add = [&](const char* method, auto request) {
      request.set_session_handle(handle);
      calls.emplace_back(method, Serialized(request));
    };
    tf::CreateSessionRequest create;
    create.set_graph_def(*bytes);
    calls.emplace_back("CreateSession", Serialized(create));
    tf::RunStepRequest step = Step(handle, {"y:0", "size:0"}, {"init", "put"});
    Feed(step, "x:0", 1);
    calls.emplace_back("RunStep", Serialized(step));
    step.set_partial_run_handle(partial);
    calls.emplace_back("RunStep", Serialized(step));
    tf::ExtendSessionRequest extend;
    extend.set_graph_def(TypedText("n" + std::to_string(i), "Neg", {"two"}));
    add("ExtendSession", extend);
    tf::PartialRunSetupRequest setup;
    setup.add_feed("x:0");
    setup.add_fetch("y:0");
    add("PartialRunSetup", setup);
    tf::MakeCallableRequest make;
    make.mutable_options()->add_feed("x:0");
    make.mutable_options()->add_fetch("y:0");
    add("MakeCallable", make);
    tf::RunCallableRequest run;
    run.add_feed(Bytes(2));
    run.set_handle(static_cast<int64_t>(dice.Below(3)));
    add("RunCallable", run);
    add("ReleaseCallable", tf::ReleaseCallableRequest());
    add("ListDevices", tf::ListDevicesRequest());
    add("CloseSession", tf::CloseSessionRequest());
    calls.emplace_back("Reset", "");
    const auto& [method, request] = dice.Of(calls);
    cluster::MasterCall call{.method = method, .request = Mutated(request, dice.Of(calls).second, dice), .peer = "h"};
    call.deadline = cluster::Clock::now() + kMostWait;
    const Result<std::string> reply = master_->Answer(call);
    ++(reply.ok() ? good : bad);
    ASSERT_TRUE(reply.ok() || !reply.status().message().empty()) << method;
    tf::CreateSessionResponse created;
    if (method == "CreateSession" && reply.ok() && created.ParseFromString(*reply)) handle = created.session_handle();
  }
  EXPECT_GT(good, 200u);
  EXPECT_GT(bad, 200u);
  Get<tf::ResetResponse>("Reset", tf::ResetRequest());
  EXPECT_EQ(Run(Step(Create(Graph()), {"two:0"})).tensor_size(), 1) << "the master goes on";
}

}  // namespace
}  // namespace weir::door
