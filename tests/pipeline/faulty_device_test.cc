// A session on a device with faulty kernels (tests/plugin/faulty.cc): the step ends with an error that names the node,
// and only the loss of the device ends more than the step.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::kFloat;

class FaultyDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    plugin::LoadOptions options;
    options.folders = {WEIR_FAULTY_PLUGINS};
    options.config.plugins.open_limit_ms = 100;
    Result<std::shared_ptr<Runtime>> runtime = Runtime::Load(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
  }

  /// y = op(x, x) or op(x) on the faulty device, and z = x + x on the same device.
  void Open(const std::string& op, const SessionOptions& options = {},
            const PartialShape& shape = PartialShape::Of({2}), const std::string& device = "/device:FAULTY:0") {
    const std::vector<std::string> inputs =
        op == "Mul" ? std::vector<std::string>{"x", "x"} : std::vector<std::string>{"x"};
    Result<graph::Definition> graph = testing::MakeGraph({testing::Placeholder("x", shape),
                                                          {"y", op, inputs, kFloat, device},
                                                          {"z", "AddV2", {"x", "x"}, kFloat, "/device:FAULTY:0"}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    Result<std::unique_ptr<Session>> session = Session::Make(runtime_, *graph_, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(*session);
  }
  Result<std::vector<Tensor>> Run(const std::string& fetch, const std::vector<float>& x = {1, 2}) {
    const auto size = static_cast<int64_t>(x.size());
    const std::vector<Feed> feeds = {{"x", Tensor::Of<float>(Shape::Of({size}), x)}};
    return session_->Run(feeds, std::vector<std::string>{fetch}, {});
  }
  /// Runs y, and checks the error code and that the text has each part.
  void Expect(Code code, const std::vector<std::string>& parts) {
    const Status status = Run("y").status();
    EXPECT_EQ(status.code(), code) << status.ToString();
    for (const std::string& part : parts) {
      EXPECT_NE(status.message().find(part), std::string::npos) << "no '" << part << "' in: " << status.message();
    }
  }

  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<Session> session_;
};

constexpr const char* kHere = "/job:localhost/replica:0/task:0/device:FAULTY:0";
constexpr const char* kAtY = "[[{{node y}}]]";

TEST_F(FaultyDeviceTest, ALostDeviceFailsTheSession) {
  Open("Exp");
  ASSERT_TRUE(Run("z").ok());
  Expect(Code::kUnavailable, {"the device was lost", kHere, "it fell off the bus", kAtY});
  const Status later = Run("z").status();
  EXPECT_EQ(later.code(), Code::kUnavailable) << "a kernel that works";
  EXPECT_NE(later.message().find("it fell off the bus"), std::string::npos) << later.ToString();
}

TEST_F(FaultyDeviceTest, F318_ADeviceThatDoesNotOpenIsGivenUpAndTheRestWorks) {
  Open("Mul", {}, PartialShape::Of({2}), "/device:STUCK:0");
  for (int i = 0; i < 2; ++i) {
    Expect(Code::kDeadlineExceeded, {"cannot open /job:localhost/replica:0/task:0/device:STUCK:0 (faulty)",
                                     "within 100 ms (plugins.open_limit_ms)", kAtY});
  }
  EXPECT_EQ(Run("y").status().message().find("OOM"), std::string::npos) << "no memory is short";
  EXPECT_TRUE(Run("z").ok());
  EXPECT_TRUE(session_->Close().ok());
}

TEST_F(FaultyDeviceTest, F318_AKernelThatPollsEndsAtTheDeadline) {
  SessionOptions options;
  options.operation_timeout_in_ms = 100;
  Open("Round", options);
  Expect(Code::kDeadlineExceeded, {"Timed out waiting for notification"});
}

TEST_F(FaultyDeviceTest, ScratchMemoryHasTheRequestedAlignment) {
  for (const char* op : {"Sqrt", "Rsqrt"}) {
    for (const PartialShape& shape :
         {PartialShape::Of({2}), PartialShape()}) {  // in the plan's arena, and as a separate allocation
      Open(op, {}, shape);
      const Result<std::vector<Tensor>> misfit = Run("y");
      ASSERT_TRUE(misfit.ok()) << misfit.status().ToString();
      EXPECT_EQ((*misfit)[0].as<float>()[0], 0) << op;
    }
  }
}

TEST_F(FaultyDeviceTest, MoreScratchMemoryThanThereIsNamesTheNode) {
  for (const char* op : {"Tanh", "Sigmoid"}) {
    Open(op);
    Expect(Code::kResourceExhausted, {"bytes of scratch memory", op, "faulty.so", kAtY});
    EXPECT_TRUE(Run("z").ok());
  }
}

TEST_F(FaultyDeviceTest, EveryKindOfRefusalNamesTheNode) {
  struct Row {
    const char* op;
    Code code;
    std::vector<std::string> parts;
  };
  for (const Row& row : {Row{"Abs", Code::kInvalidArgument, {"prepare refuses"}},
                         Row{"Sign", Code::kInternal, {"thrown in prepare", "kernel Sign", "faulty.so"}},
                         Row{"Floor", Code::kInvalidArgument, {"create refuses"}},
                         Row{"Ceil", Code::kInvalidArgument, {"negative dimensions"}}}) {
    SCOPED_TRACE(row.op);
    Open(row.op);
    Expect(row.code, row.parts);
    Expect(row.code, {kAtY});
    EXPECT_TRUE(Run("z").ok());
  }
}

TEST_F(FaultyDeviceTest, AFunctorThatThrowsFailsTheStep) {
  for (const std::vector<float>& x : {std::vector<float>{2, 1}, std::vector<float>{1}}) {
    const PartialShape shape = PartialShape::Of({static_cast<int64_t>(x.size())});
    for (const char* op : {"Square", "Mul"}) {
      Open(op, {}, shape);
      const Status status = Run("y", x).status();
      EXPECT_EQ(status.code(), Code::kInternal) << status.ToString();
      EXPECT_NE(status.message().find(op == std::string("Mul") ? "a pair of one kind" : "an element is one"),
                std::string::npos)
          << status.ToString();
    }
  }
}

TEST_F(FaultyDeviceTest, ADeviceThatNeedsAResetIsOpenedAgainForTheNextSession) {
  runtime_ = nullptr;
  config::Config config;
  config.plugins.folders = {WEIR_FAULTY_PLUGINS};
  const auto load = [&] {
    Result<std::shared_ptr<Runtime>> runtime = Runtime::For(config);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
  };
  for (int round = 0; round < 3; ++round) {
    load();
    Open("Neg");
    ASSERT_TRUE(Run("z").ok()) << round;
    Expect(Code::kUnavailable, {"the device was lost", kHere, "the engine hangs", "it needs a reset", kAtY});
    // As long as this session is open, a second one gets the lost device.
    const std::unique_ptr<Session> first = std::move(session_);
    load();
    Open("Neg");
    EXPECT_EQ(Run("z").status().code(), Code::kUnavailable);
    session_ = nullptr;
    runtime_ = nullptr;
  }
}

// The last test, since the plugin remembers the loss.
TEST_F(FaultyDeviceTest, ALossThatOnlyHealthTellsFailsTheSession) {
  Open("Log");
  ASSERT_TRUE(Run("z").ok());
  Expect(Code::kUnavailable, {"the device was lost", kHere, "no answer", kAtY});
  EXPECT_EQ(Run("z").status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace weir::session
