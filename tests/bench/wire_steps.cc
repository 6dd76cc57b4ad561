// Steps at a server by weir's own client, for tests/bench/wire_peers.py: weir_bench_wire_steps TARGET GRAPH.pb.
//
// Lines of standard input, each answered by the nanoseconds of one time, or a reason that begins with "!":
//   run TIMES FEEDS FETCHES TARGETS   steps; lists with commas, "-" for none; a feed is NAME:FLOATS, a vector of ones,
//                                     or a scalar for 0
//   raw TIMES OUT IN                  so many bytes there and back over bare TCP, to memory that is new each time
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/client/distributed/remote_session.h"
#include "tests/bench/measure.h"
#include "tests/bench/raw_tcp.h"

namespace weir::bench {
namespace {

/// What the probe asks of its far side: the bytes that follow, and those to send back.
struct Wanted {
  uint64_t out = 0, in = 0;
};

void ServeProbe(int listening) {
  const int peer = ::accept(listening, nullptr, nullptr);
  NoDelay(peer);
  Wanted wanted;
  std::vector<char> given, back;
  while (ReceiveAll(peer, &wanted, sizeof wanted)) {
    given.resize(wanted.out);
    back.resize(wanted.in, 7);
    if (!ReceiveAll(peer, given.data(), given.size()) || !SendAll(peer, back.data(), wanted.in)) return;
  }
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> items;
  std::istringstream from(list == "-" ? "" : list);
  for (std::string item; std::getline(from, item, ',');) items.push_back(item);
  return items;
}

Result<std::vector<session::Feed>> Feeds(const std::string& list) {
  std::vector<session::Feed> feeds;
  for (const std::string& item : Split(list)) {
    const size_t colon = item.rfind(':');
    const int64_t floats = std::stoll(item.substr(colon + 1));
    WEIR_ASSIGN(Tensor value, Tensor::Make(DType::kFloat, floats == 0 ? Shape() : Shape{floats}));
    for (float& number : value.mutable_as<float>()) number = 1;
    feeds.emplace_back(item.substr(0, colon) + ":0", std::move(value));
  }
  return feeds;
}

class Client {
 public:
  static Result<std::unique_ptr<Client>> Make(const std::string& target, const std::string& graph, int raw) {
    auto made = std::make_unique<Client>();
    made->raw_ = raw;
    std::ifstream file(graph, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    WEIR_TRY(made->graph_.Import(bytes, ""));
    WEIR_ASSIGN(made->session_, ConnectSession(made->graph_, target, config::Config()));
    return made;
  }

  Result<double> Answer(const std::string& line) {
    std::istringstream words(line);
    std::string kind, feeds, fetches, targets;
    int times = 0;
    words >> kind >> times;
    Status status;
    double ns = 0;
    if (kind == "run") {
      words >> feeds >> fetches >> targets;
      WEIR_ASSIGN(const std::vector<session::Feed> fed, Feeds(feeds));
      const std::vector<std::string> fetched = Split(fetches), run = Split(targets);
      ns = TimeNs([&] {
        for (int i = 0; i < times && status.ok(); ++i) status = session_->Run(fed, fetched, run, {}, nullptr).status();
      });
    } else {
      Wanted wanted;
      words >> wanted.out >> wanted.in;
      const std::vector<char> out(wanted.out, 1);
      ns = TimeNs([&] {
        for (int i = 0; i < times && status.ok(); ++i) status = Probe(wanted, out);
      });
    }
    if (!status.ok()) return status;
    return ns / times;
  }

 private:
  Status Probe(const Wanted& wanted, const std::vector<char>& out) const {
    std::vector<char> in;
    in.reserve(wanted.in);
    const bool went = SendAll(raw_, &wanted, sizeof wanted) && SendAll(raw_, out.data(), out.size()) &&
                      ReceiveAll(raw_, in.data(), wanted.in);
    return went ? Status() : Unavailable("the probe's far side has gone");
  }

  Graph graph_;
  std::unique_ptr<SessionInterface> session_;
  int raw_ = -1;
};

int Main(const std::string& target, const std::string& graph) {
  sockaddr_in at{};
  const int listening = ListenOnLoopback(at);
  const pid_t child = listening < 0 ? -1 : ::fork();  // before any thread
  if (child < 0) return 1;
  if (child == 0) {
    ServeProbe(listening);
    _exit(0);
  }
  const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
  Result<std::unique_ptr<Client>> client = Unavailable("the probe cannot connect");
  if (::connect(raw, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) {
    NoDelay(raw);
    client = Client::Make(target, graph, raw);
  }
  if (!client.ok()) fmt::print(stderr, "{}\n", client.status().ToString());
  for (std::string line; client.ok() && std::getline(std::cin, line);) {
    const Result<double> ns = (*client)->Answer(line);
    fmt::print("{}\n", ns.ok() ? fmt::format("{:.0f}", *ns) : "!" + ns.status().message());
    std::fflush(stdout);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return client.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  if (argc == 3) return weir::bench::Main(argv[1], argv[2]);
  fmt::print(stderr, "usage: weir_bench_wire_steps TARGET GRAPH.pb\n");
  return 2;
}
