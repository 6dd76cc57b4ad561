// Processes of `weir serve` and what clients and tests ask of them.
#ifndef WEIR_TESTS_E2E_SERVED_H_
#define WEIR_TESTS_E2E_SERVED_H_

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/client/extra.h"
#include "tests/e2e/server_process.h"

namespace weir::testing {

/// `before`: the words of a program that starts the server, such as nsenter.
inline std::unique_ptr<ServerProcess> Serve(const std::vector<std::string>& flags,
                                            const ServerProcess::Variables& variables = {},
                                            std::vector<std::string> before = {}) {
  before.insert(before.end(), {WEIR_COMMAND, "serve"});
  before.insert(before.end(), flags.begin(), flags.end());
  return std::make_unique<ServerProcess>(before, variables);
}
/// The target that a server prints once it listens.
inline std::string TargetOf(ServerProcess& server) { return server.ReadPast(" at "); }
inline std::string AddressOf(const std::string& target) { return target.substr(target.find("//") + 2); }

/// Limits for what must happen, so that a fault fails the test instead of hanging it.
inline ConfigProto Limited() { return {.operation_timeout_in_ms = 120000}; }

/// The body of a page; empty if nothing answers.
inline std::string Get(const std::string& address, const std::string& path) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::string answer;
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (connect(file, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0 &&
      send(file, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char bytes[4096];
    for (ssize_t got = read(file, bytes, sizeof(bytes)); got > 0; got = read(file, bytes, sizeof(bytes))) {
      answer.append(bytes, static_cast<size_t>(got));
    }
  }
  close(file);
  return answer;
}

/// The number after `text`, from `from` on; -1 if there is none.
inline int64_t NumberAfter(const std::string& all, const std::string& text, size_t from = 0) {
  const size_t at = all.find(text, from);
  return at == std::string::npos ? -1 : std::atoll(all.c_str() + at + text.size());
}

/// A counter on the first ps, read from elsewhere.
struct Counter {
  explicit Counter(Graph& graph) {
    const AsDefault here(graph);
    const DeviceScope on("/job:ps/task:0");
    value = Variable(0.0, {.name = "counter"});
    init = value.initializer();
    add = value.AssignAdd(1.0);
  }
  Variable value;
  Operation init;
  Output add;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_SERVED_H_
