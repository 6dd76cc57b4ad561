// A profiler that is attached to a running server.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/client/extra.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/served.h"

namespace weir {
namespace {

using testing::AddressOf;
using testing::Ended;
using testing::Limited;
using testing::ReadWhole;
using testing::ScratchFolder;
using testing::Serve;
using testing::TargetOf;
using testing::Weir;

/// Runs steps at a server until it is destroyed.
class BusyClient {
 public:
  explicit BusyClient(const std::string& target) {
    const AsDefault here(graph_);
    weights_ = Variable(Fill({256, 256}, 0.5f), {.name = "weights"});
    const Output x = Fill({64, 256}, 1.0f);
    const Output product = MatMul(x, weights_);
    loss_ = ReduceMean(Square(product));
    session_ = std::make_unique<Session>(target, graph_, Limited());
    const Status ready = session_->Run(weights_.initializer()).status();
    EXPECT_TRUE(ready.ok()) << ready.ToString();
    EXPECT_TRUE(session_->Run(loss_).ok());
    runner_ = std::thread([this] {
      while (!ends_) failed_ = failed_ || !session_->Run(loss_).ok();
    });
  }
  ~BusyClient() { End(); }
  void End() {
    ends_ = true;
    if (runner_.joinable()) runner_.join();
    EXPECT_FALSE(failed_);
    session_.reset();
  }

 private:
  Graph graph_;
  Variable weights_;
  Output loss_;
  std::unique_ptr<Session> session_;
  std::atomic<bool> ends_{false}, failed_{false};
  std::thread runner_;
};

const nlohmann::json* LineOf(const nlohmann::json& lines, const std::string& field, const std::string& value) {
  for (const nlohmann::json& line : lines) {
    if (line[field] == value) return &line;
  }
  return nullptr;
}

TEST(ServeProfile, F345_AttachesToARunningServer) {
  const ScratchFolder folder;
  const auto server = Serve({"--listen", "127.0.0.1:0"});
  const std::string target = TargetOf(*server), address = AddressOf(target);
  BusyClient client(target);
  const std::string trace = folder / "trace.json";
  const Ended ended = Weir({"profile", "attach", address, "--seconds", "0.3", "--out", trace, "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const nlohmann::json report = ended.json();
  EXPECT_EQ(report["task"], "/job:localhost/replica:0/task:0");
  EXPECT_GT(report["parts"], 0);
  EXPECT_EQ(report["dropped"], 0);
  const std::string device = "/job:localhost/replica:0/task:0/device:CPU:0";
  const nlohmann::json* const product = LineOf(report["lines"], "op", "MatMul");
  ASSERT_NE(product, nullptr) << report["lines"];
  EXPECT_EQ((*product)["device"], device);
  EXPECT_GT((*product)["total_us"], 0);
  const int64_t calls = (*product)["calls"];
  EXPECT_EQ((*product)["output_bytes"], calls * 64 * 256 * 4) << "memory by op";
  const nlohmann::json* const memory = LineOf(report["memory"], "device", device);
  ASSERT_NE(memory, nullptr) << report["memory"];
  EXPECT_EQ((*memory)["variables"], 256 * 256 * 4);
  EXPECT_GE((*memory)["in_use"], 256 * 256 * 4);
  EXPECT_GE((*memory)["peak"], (*memory)["in_use"]);
  EXPECT_NE(LineOf(report["holders"], "what", "variable weights float [256,256]"), nullptr) << report["holders"];

  // The same from the file; other keys; as text.
  const Ended summary = Weir({"profile", "summary", trace, "--json"});
  EXPECT_EQ(summary.json()["lines"], report["lines"]);
  const Ended text = Weir({"profile", "attach", "weir://" + address, "--seconds", "0.2", "--by", "node"});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part : {"MatMul", "variable weights", "in use", "output"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in " << text.out;
  }
  // Without steps, the memory is still told.
  client.End();
  const Ended idle = Weir({"profile", "attach", address, "--seconds", "0", "--json"});
  ASSERT_EQ(idle.status, 0) << idle.err;
  EXPECT_EQ(idle.json()["parts"], 0);
  EXPECT_NE(LineOf(idle.json()["holders"], "what", "variable weights float [256,256]"), nullptr) << idle.out;
}

TEST(ServeProfile, F345_OneProfilerAtATimeWhoseEndDetachesIt) {
  const auto server = Serve({"--listen", "127.0.0.1:0"});
  const std::string address = AddressOf(TargetOf(*server));
  std::unique_ptr<testing::ServerProcess> first;
  const auto has_ended = [&first] {
    siginfo_t info{};
    const int code = ::waitid(P_PID, static_cast<id_t>(first->pid()), &info, WEXITED | WNOHANG | WNOWAIT);
    return code == 0 && info.si_pid != 0;
  };
  Ended second;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  do {
    // The first may come while the second is attached.
    if (first == nullptr || has_ended()) {
      first = std::make_unique<testing::ServerProcess>(
          std::vector<std::string>{WEIR_COMMAND, "profile", "attach", address, "--seconds", "600"});
    }
    second = Weir({"profile", "attach", address, "--seconds", "0"});
  } while (second.status == 0 && std::chrono::steady_clock::now() < end);
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.err.find("another profiler is attached"), std::string::npos) << second.err;
  first->Signal(SIGKILL);
  EXPECT_EQ(first->Wait(), 128 + SIGKILL);
  do {
    second = Weir({"profile", "attach", address, "--seconds", "0"});
  } while (second.status != 0 && std::chrono::steady_clock::now() < end);
  EXPECT_EQ(second.status, 0) << second.err;
}

TEST(ServeProfile, F345_WhatCannotBeAttachedToIsSaid) {
  const Ended nobody = Weir({"profile", "attach", "127.0.0.1:1", "--seconds", "1"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_NE(nobody.err.find("127.0.0.1:1"), std::string::npos) << nobody.err;
  EXPECT_EQ(Weir({"profile", "attach"}).status, 2);
  EXPECT_EQ(Weir({"profile", "attach", "127.0.0.1:1", "--seconds", "-1"}).status, 2);
}

}  // namespace
}  // namespace weir
