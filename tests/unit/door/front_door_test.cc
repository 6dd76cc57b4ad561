// Front doors as transports: a table of this test's own, and the plugin grpc where it was built.
#include "core/door/front_door.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/runtime/cancellation.h"
#include "tests/support/local_cluster.h"
#include "tests/unit/door/memory_door.h"

namespace weir::door {
namespace {

constexpr std::chrono::seconds kPatience{60};

/// Answers "Echo" with the request, "Fail" with an error, and "Wait" when it is cancelled.
class Echo final : public cluster::MasterService {
 public:
  void Call(cluster::MasterCall call, cluster::MasterDone done) override {
    if (call.method == "Echo") {
      const bool none = call.deadline == cluster::Clock::time_point::max();
      return done(call.request + (none ? "" : " soon") + (call.peer.empty() ? " from nobody" : ""));
    }
    if (call.method == "Fail") return done(Aborted("no {}", call.request));
    auto waiting = std::make_shared<Waiting>();
    waiting->done = std::move(done);
    waiting->cancellation = call.cancellation;
    const bool registered = waiting->on_cancel.Register(*call.cancellation, [waiting = waiting.get(), this] {
      waiting->done(Cancelled("gave up"));
      ended_.set_value();
    });
    if (!registered) {
      waiting->done(Cancelled("gave up at once"));
      ended_.set_value();
    }
    waiting_.push_back(std::move(waiting));
    begun_.set_value();
  }
  void WaitUntilBegun() { EXPECT_EQ(begun_.get_future().wait_for(kPatience), std::future_status::ready); }
  void WaitUntilEnded() { EXPECT_EQ(ended_.get_future().wait_for(kPatience), std::future_status::ready); }

 private:
  struct Waiting {
    cluster::MasterDone done;
    std::shared_ptr<runtime::Cancellation> cancellation;
    runtime::CancelCallback on_cancel;
  };
  std::vector<std::shared_ptr<Waiting>> waiting_;
  std::promise<void> begun_, ended_;
};

Result<std::string> Ask(cluster::MasterService& master, cluster::MasterCall call) {
  auto promise = std::make_shared<std::promise<Result<std::string>>>();
  std::future<Result<std::string>> reply = promise->get_future();
  master.Call(std::move(call), cluster::MasterDone([promise](Result<std::string> result) {
                promise->set_value(std::move(result));
              }));
  if (reply.wait_for(kPatience) == std::future_status::ready) return reply.get();
  return DeadlineExceeded("there is no answer");
}

TEST(FrontDoor, F250_OpenListenersTakeNewCertificates) {
  const auto transport = MakeFrontDoor(MemoryDoor::Entry());
  cluster::ListenOptions options;
  options.address = "localhost:0";
  const auto first = transport->Listen({nullptr, std::make_shared<Echo>()}, options);
  const auto second = transport->Listen({nullptr, std::make_shared<Echo>()}, options);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status().ToString() << second.status().ToString();
  cluster::LocalEnd self;
  self.security.tls_certificate = "new.pem";
  MemoryDoor::Renewed().clear();
  EXPECT_TRUE(transport->Renew(self).ok());
  EXPECT_EQ(MemoryDoor::Renewed(), (std::vector<std::string>{"new.pem", "new.pem"}));
  self.security.tls_certificate = "none.pem";
  EXPECT_EQ(transport->Renew(self).code(), Code::kInvalidArgument);
  (*first)->Close();
  self.security.tls_certificate = "newer.pem";
  EXPECT_TRUE(transport->Renew(self).ok());
  EXPECT_EQ(MemoryDoor::Renewed(), (std::vector<std::string>{"new.pem", "new.pem", "newer.pem"}));
}

TEST(FrontDoor, TheReasonIsNamedIfNoPluginSpeaksAScheme) {
  const auto runtime = testing::RuntimeOf({"local", 0});
  ASSERT_NE(runtime, nullptr);
  const auto door = FrontDoor(*runtime->plugins, "carrier-pigeon");
  EXPECT_EQ(door.status().code(), Code::kNotFound);
  EXPECT_NE(door.status().message().find("no plugin speaks 'carrier-pigeon'; schemes: "), std::string::npos);
}

/// A listener and its client, by the plugin grpc or within the process.
class Door : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    door_ = MakeFrontDoor(MemoryDoor::Entry());
    if (GetParam() == std::string_view("grpc")) {
      const auto runtime = testing::RuntimeOf({"local", 0});
      ASSERT_NE(runtime, nullptr);
      auto door = FrontDoor(*runtime->plugins, "grpc");
      if (!door.ok()) GTEST_SKIP() << door.status().message();
      door_ = *door;
    }
    services_.master = master_;
    options_.address = "127.0.0.1:0";
    auto listener = door_->Listen(services_, options_);
    ASSERT_TRUE(listener.ok()) << listener.status().ToString();
    listener_ = std::move(*listener);
    auto client = door_->ConnectMaster(listener_->address(), {});
    ASSERT_TRUE(client.ok()) << client.status().ToString();
    client_ = *client;
  }

  const std::shared_ptr<Echo> master_ = std::make_shared<Echo>();
  std::shared_ptr<cluster::Transport> door_;
  cluster::Services services_;
  cluster::ListenOptions options_;
  std::unique_ptr<cluster::Listener> listener_;
  std::shared_ptr<cluster::MasterService> client_;
};

INSTANTIATE_TEST_SUITE_P(, Door, ::testing::Values("memory", "grpc"),
                         [](const auto& parameter) { return std::string(parameter.param); });

class GrpcDoor : public Door {};
INSTANTIATE_TEST_SUITE_P(, GrpcDoor, ::testing::Values("grpc"));

TEST_P(Door, F248_F250_BytesAndErrorsCrossBothWays) {
  EXPECT_EQ(door_->scheme(), GetParam());
  const std::string large(5 << 20, 'x');
  const std::string bytes("\x00\xff\x0a", 3);
  EXPECT_EQ(Ask(*client_, {.method = "Echo", .request = bytes}), bytes);
  EXPECT_EQ(Ask(*client_, {.method = "Echo", .request = ""}), std::string());
  EXPECT_EQ(Ask(*client_, {.method = "Echo", .request = large}), large);
  const auto deadline = cluster::Clock::now() + std::chrono::hours(1);
  EXPECT_EQ(Ask(*client_, {.method = "Echo", .request = "a", .deadline = deadline}), "a soon");
  const Status failed = Ask(*client_, {.method = "Fail", .request = "luck"}).status();
  EXPECT_EQ(failed.code(), Code::kAborted);
  EXPECT_EQ(failed.message(), "no luck");
}

TEST_P(Door, F250_ACallEndsWithItsCaller) {
  const auto caller = std::make_shared<runtime::Cancellation>();
  std::promise<Result<std::string>> reply;
  client_->Call({.method = "Wait", .cancellation = caller}, cluster::MasterDone([&](Result<std::string> result) {
                  reply.set_value(std::move(result));
                }));
  master_->WaitUntilBegun();
  caller->Cancel(Cancelled("enough"));
  auto ended = reply.get_future();
  ASSERT_EQ(ended.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(ended.get().status().code(), Code::kCancelled);
  master_->WaitUntilEnded();
  EXPECT_TRUE(listener_->Drain(cluster::Clock::now() + kPatience).ok());
}

TEST_P(GrpcDoor, F250_ACallEndsAtItsDeadline) {
  // The client is connected, and the call has time to reach the server.
  EXPECT_TRUE(Ask(*client_, {.method = "Echo"}).ok());
  const auto deadline = cluster::Clock::now() + std::chrono::milliseconds(WEIR_SANITIZER_KIND == 0 ? 500 : 3000);
  EXPECT_EQ(Ask(*client_, {.method = "Wait", .deadline = deadline}).status().code(), Code::kDeadlineExceeded);
  master_->WaitUntilEnded();
  const auto past = cluster::Clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(Ask(*client_, {.method = "Echo", .deadline = past}).status().code(), Code::kDeadlineExceeded);
}

TEST_P(Door, F248_AListenerThatDrainsRefusesAndThenCloses) {
  EXPECT_TRUE(Ask(*client_, {.method = "Echo"}).ok());
  EXPECT_TRUE(listener_->Drain(cluster::Clock::now() + kPatience).ok());
  EXPECT_EQ(Ask(*client_, {.method = "Echo"}).status().code(), Code::kUnavailable);
  listener_->Close();
  listener_->Close();
  EXPECT_EQ(Ask(*client_, {.method = "Echo"}).status().code(), Code::kUnavailable);
}

TEST_P(Door, F248_ClosingEndsTheCallsUnderWay) {
  std::promise<Result<std::string>> reply;
  client_->Call({.method = "Wait"}, cluster::MasterDone([&](Result<std::string> result) {
                  reply.set_value(std::move(result));
                }));
  master_->WaitUntilBegun();
  EXPECT_EQ(listener_->Drain(cluster::Clock::now() + std::chrono::milliseconds(5)).code(), Code::kDeadlineExceeded);
  listener_->Close();
  auto ended = reply.get_future();
  ASSERT_EQ(ended.wait_for(kPatience), std::future_status::ready);
  EXPECT_FALSE(ended.get().ok());
}

TEST_P(GrpcDoor, F248_StrangersAndAddressesThatCannotBeUsed) {
  // Bytes that are no HTTP/2, beside a client that goes on.
  const std::string address = listener_->address();
  const uint16_t port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  std::vector<int> strangers;
  for (int i = 0; i < 20; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string garbage = i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : std::string("\x00\x01\xff\xfe", 4);
    EXPECT_EQ(send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL), static_cast<ssize_t>(garbage.size()));
    strangers.push_back(fd);
  }
  EXPECT_EQ(Ask(*client_, {.method = "Echo", .request = "still"}), "still");
  for (const int fd : strangers) close(fd);
  EXPECT_EQ(Ask(*client_, {.method = "Echo", .request = "there"}), "there");

  options_.address = address;
  EXPECT_EQ(door_->Listen(services_, options_).status().code(), Code::kFailedPrecondition) << "the address is taken";
  options_.address = "0.0.0.0:0";
  EXPECT_EQ(door_->Listen(services_, options_).status().code(), Code::kFailedPrecondition) << "it is not protected";
  options_.self.security.insecure_listen = true;
  EXPECT_TRUE(door_->Listen(services_, options_).ok());
  options_.address = "no address";
  EXPECT_EQ(door_->Listen(services_, options_).status().code(), Code::kInvalidArgument);
  options_.address = "127.0.0.1:0";
  options_.self.security.tls_certificate = options_.self.security.tls_key = "/no/such/file";
  EXPECT_EQ(door_->Listen(services_, options_).status().code(), Code::kInvalidArgument);
  options_.self.security = {.token = "secret"};
  EXPECT_EQ(door_->Listen(services_, options_).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(door_->Listen({}, options_).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(door_->ConnectWorker({"ps", 0}, address, {}).status().code(), Code::kUnimplemented);
  EXPECT_EQ(door_->ConnectMaster("nowhere", {}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weir::door
