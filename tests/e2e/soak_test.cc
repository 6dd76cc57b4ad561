// Long runs against a server in another process: memory stays flat, and strangers do not disturb a good client.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/served.h"

namespace weir {
namespace {

using testing::AddressOf;
using testing::Limited;
using testing::Serve;
using testing::ServerProcess;
using testing::TargetOf;

// With sanitizers a step takes 10 to 50 times as long, and freed memory stays in quarantine.
constexpr int kShare = WEIR_SANITIZER_KIND == 0 ? 1 : 50;

int64_t KibOf(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

int64_t DescriptorsOf(pid_t process) {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd")) {
    ++count;
  }
  return count;
}

/// A server and this process, before and after.
class Flat {
 public:
  explicit Flat(const ServerProcess& server) : server_(server.pid()) {
    for (const pid_t process : {server_, getpid()}) before_.push_back({KibOf(process), DescriptorsOf(process)});
  }
  void Expect(int64_t most_kib, int64_t most_descriptors) const {
    size_t i = 0;
    for (const pid_t process : {server_, getpid()}) {
      const char* const who = process == server_ ? "the server" : "the client";
      const int64_t grown = KibOf(process) - before_[i].first;
      std::printf("%s grew by %lld KiB\n", who, static_cast<long long>(grown));
      if (WEIR_SANITIZER_KIND == 0) {
        EXPECT_LT(grown, most_kib) << who;
      }
      EXPECT_LE(DescriptorsOf(process), before_[i++].second + most_descriptors) << who;
    }
  }

 private:
  const pid_t server_;
  std::vector<std::pair<int64_t, int64_t>> before_;  // KiB in memory, descriptors
};

TEST(Soak, AHundredThousandNullStepsKeepMemoryFlat) {
  const auto server = Serve({});
  Graph graph;
  const AsDefault here(graph);
  const Operation nothing = NoOp();
  Session session(TargetOf(*server), graph, Limited());
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      const Status status = session.Run(nothing).status();
      ASSERT_TRUE(status.ok()) << i << ": " << status.ToString();
    }
  };
  run(5000 / kShare);
  const Flat flat(*server);
  run(100000 / kShare);
  flat.Expect(8 << 10, 0);
}

TEST(Soak, TenThousandStepsWithTensorsKeepMemoryFlat) {
  const auto server = Serve({});
  Graph graph;
  const AsDefault here(graph);
  const Output x = Placeholder(DType::kFloat, {-1}), y = Negative(x);
  Session session(TargetOf(*server), graph, Limited());
  std::mt19937 random(7);
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      // Sizes on both sides of those that travel with the head of a message.
      const size_t size = i % 100 == 0 ? 300000 : 1 + random() % 40000;
      const auto got = session.Run(y, {{x, Tensor::Vector<float>(std::vector<float>(size, 2.0f))}});
      ASSERT_TRUE(got.ok()) << i << ": " << got.status().ToString();
      ASSERT_EQ(got->tensor().elements(), static_cast<int64_t>(size));
      ASSERT_EQ(got->tensor().as<float>()[size - 1], -2.0f);
    }
  };
  run(1000 / kShare);
  const Flat flat(*server);
  run(10000 / kShare);
  flat.Expect(32 << 10, 0);
}

/// Connections of loopback to one port.
class Strangers {
 public:
  explicit Strangers(const std::string& address) {
    at_.sin_family = AF_INET;
    at_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at_.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  }
  ~Strangers() {
    for (const int file : open_) close(file);
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  /// Connects and says these bytes; -1 if there is no connection.
  int Add(const std::string& bytes) {
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0) return -1;
    open_.push_back(file);
    if (connect(file, reinterpret_cast<const sockaddr*>(&at_), sizeof at_) != 0) return -1;
    if (!bytes.empty()) static_cast<void>(send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    return file;
  }
  void CloseAll() {
    for (const int file : open_) close(file);
    open_.clear();
  }

 private:
  sockaddr_in at_ = {};
  std::vector<int> open_;
};

void RaiseDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(Soak, IdleHalfOpenAndNoisyStrangersDoNotDisturbAGoodClient) {
  RaiseDescriptorLimit();
  const auto server = Serve({});
  const std::string target = TargetOf(*server);
  Graph graph;
  const AsDefault here(graph);
  const Output x = Placeholder(DType::kFloat, {}), y = Negative(x);
  Session session(target, graph, Limited());
  ASSERT_TRUE(session.Run(y, {{x, 1.0}}).ok());
  const Flat flat(*server);
  {
    Strangers idle(AddressOf(target));
    std::atomic<bool> stop{false};
    std::atomic<int> said{0};
    std::thread noise([&] {
      Strangers noisy(AddressOf(target));
      std::mt19937 random(3);
      for (int i = 0; i < 1000; ++i) idle.Add({});
      for (int i = 0; i < 100; ++i) idle.Add("WEIR");  // the beginning of a frame
      do {
        std::string garbage(1 + random() % 5000, '\0');
        for (char& c : garbage) c = static_cast<char>(random());
        noisy.Add(garbage);
        if (++said % 50 == 0) noisy.CloseAll();
      } while (!stop);
    });
    int steps = 0;
    for (; steps < 20000 / kShare || said < 500; ++steps) {
      const auto got = session.Run(y, {{x, static_cast<float>(steps)}});
      if (!got.ok() || *got->scalar<float>() != -static_cast<float>(steps)) {
        ADD_FAILURE() << "step " << steps << ": " << got.status().ToString();
        break;
      }
    }
    stop = true;
    noise.join();
    // Another good client gets in.
    Session other(target, graph, Limited());
    EXPECT_TRUE(other.Run(y, {{x, 1.0}}).ok());
  }
  ASSERT_TRUE(session.Run(y, {{x, 1.0}}).ok());
  flat.Expect(32 << 10, 128);
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 143);
}

}  // namespace
}  // namespace weir
