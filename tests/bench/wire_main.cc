// tools/bench wire: calls between two processes beside bare TCP in the same rounds.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/plugin_transport.h"
#include "core/session/runtime.h"
#include "tests/bench/measure.h"
#include "tests/bench/raw_tcp.h"
#include "tests/bench/wire_tls.h"

namespace weir::bench {
namespace {

using cluster::Clock;

constexpr int64_t kLargeBytes = int64_t{100} << 20;
constexpr size_t kSmallBytes = 64;
/// First bytes of messages of the probe: for the large value, and of the last of a round.
constexpr char kLarge = 'L', kLast = 'E';
constexpr int kRoundTrips = 200;  // of a round
constexpr double kMostOverRoundTrip = 1.5;
/// How messages are waited for, by weir and the probe.
enum class Waiting : uint8_t { kParked, kPolling };

/// Steps return their feeds; every key has the same large value.
class Echo final : public cluster::Worker {
 public:
  const cluster::TaskName& task() const override { return task_; }
  Result<cluster::WorkerStatus> GetStatus(Clock::time_point) override { return cluster::WorkerStatus(); }
  Status CreateSession(const cluster::WorkerSessionSpec&, Clock::time_point) override { return Status(); }
  Status DeleteSession(uint64_t) override { return Status(); }
  Result<cluster::PartHandle> RegisterPart(uint64_t, const std::string&, Clock::time_point) override {
    return cluster::PartHandle();
  }
  Status DeregisterPart(uint64_t, uint64_t) override { return Status(); }
  void RunStep(cluster::StepRequest request, cluster::StepDone done) override { done(std::move(request.feeds)); }
  void RecvTensor(const cluster::TransferRequest&, runtime::Rendezvous::Received received) override {
    received(runtime::Message{value_, false});
  }
  Status CancelStep(uint64_t, uint64_t, const Status&) override { return Status(); }
  Status CleanupStep(uint64_t, uint64_t) override { return Status(); }
  Status ResetContainers(const std::vector<std::string>&) override { return Status(); }

 private:
  static Tensor Large() {
    Result<Tensor> made = Tensor::Make(DType::kUint8, Shape{kLargeBytes});
    if (!made.ok()) return Tensor();
    std::memset(made->mutable_raw(), 7, kLargeBytes);
    return std::move(*made);
  }
  const cluster::TaskName task_{"ps", 0};
  const Tensor value_ = Large();
};

/// The far side of the probe: answers small messages, and a byte that asks for the large value. It polls, if it does,
/// from one message to the next, but not after the last of a round: what is measured beside it needs the CPU.
void ServeRaw(int listening, Waiting waiting) {
  const int peer = ::accept(listening, nullptr, nullptr);
  NoDelay(peer);
  const std::vector<char> large(kLargeBytes, 7);
  char small[kSmallBytes];
  bool polls = false;
  while ((polls ? PollAll : ReceiveAll)(peer, small, sizeof small)) {
    polls = waiting == Waiting::kPolling && small[0] != kLast;
    const bool sent =
        small[0] == kLarge ? SendAll(peer, large.data(), large.size()) : SendAll(peer, small, sizeof small);
    if (!sent) return;
  }
}

/// The same under TLS, for the large value.
void ServeTls(int listening, const OwnCertificate& certificate) {
  const int peer = ::accept(listening, nullptr, nullptr);
  NoDelay(peer);
  const std::unique_ptr<TlsLoop> loop = TlsLoop::Begin(peer, true, certificate);
  const std::vector<char> large(kLargeBytes, 7);
  char asked = 0;
  while (loop != nullptr && loop->Receive(&asked, sizeof asked)) {
    if (!loop->Send(large.data(), large.size())) return;
  }
}

/// The far process: writes its addresses to the pipe and serves until it is killed. `certificate` may be null.
int Serve(int pipe_end, const OwnCertificate* certificate, Waiting waiting) {
  sockaddr_in at{};
  const int listening = ListenOnLoopback(at);
  if (listening < 0) return 1;
  const auto runtime = session::Runtime::Default();
  if (!runtime.ok()) return 1;
  const auto transport = cluster::FindTransport(*(*runtime)->plugins, "weir");
  if (!transport.ok()) return 1;
  cluster::LocalEnd self;
  self.task = {"ps", 0};
  const auto listener = (*transport)->Listen({std::make_shared<Echo>(), nullptr}, {"localhost:0", -1, self});
  const std::string path = fmt::format("unix:/tmp/weir_bench_wire_{}", ::getpid());
  const auto local = (*transport)->Listen({std::make_shared<Echo>(), nullptr}, {path, -1, self});
  if (!listener.ok() || !local.ok()) return 1;
  std::string line = fmt::format("{} {} {}", ntohs(at.sin_port), (*listener)->address(), path);
  std::unique_ptr<cluster::Listener> secured;
  if (certificate != nullptr && !certificate->folder().empty()) {
    sockaddr_in tls_at{};
    const int tls_listening = ListenOnLoopback(tls_at);
    self.security = certificate->security();
    self.incarnation = cluster::RandomId();  // protection is by incarnation
    auto made = (*transport)->Listen({std::make_shared<Echo>(), nullptr}, {"localhost:0", -1, self});
    if (tls_listening < 0 || !made.ok()) return 1;
    secured = std::move(*made);
    std::thread([tls_listening, certificate] { ServeTls(tls_listening, *certificate); }).detach();
    line += fmt::format(" {} {}", ntohs(tls_at.sin_port), secured->address());
  }
  line += "\n";
  if (::write(pipe_end, line.data(), line.size()) < 0) return 1;
  ServeRaw(listening, waiting);
  return 0;
}

/// The end of a call that another thread tells.
class CallEnd {
 public:
  void Set(bool good) {
    state_ = good ? 1 : -1;
    state_.notify_one();
  }
  bool Wait(const cluster::Worker& worker) const {
    if (const runtime::WaitHelp* const help = worker.help()) help->Receive([this] { return state_ != 0; });
    state_.wait(0);
    return state_ == 1;
  }

 private:
  std::atomic<int> state_{0};
};

/// Seconds of one call, or -1.
template <class Start>
double WaitFor(const cluster::Worker& worker, Start&& start) {
  CallEnd ended;
  const auto begin = Clock::now();
  start(ended);
  if (!ended.Wait(worker)) return -1;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double StepUs(cluster::Worker& worker) {
  double sum = 0;
  for (int i = 0; i < kRoundTrips; ++i) {
    cluster::StepRequest request;
    request.feeds = {Tensor::Scalar<float>(1)};
    const double time = WaitFor(worker, [&](CallEnd& ended) {
      worker.RunStep(std::move(request), cluster::StepDone([&ended](const Result<std::vector<Tensor>>& fetches) {
                       ended.Set(fetches.ok());
                     }));
    });
    if (time < 0) return -1;
    sum += time;
  }
  return sum * 1e6 / kRoundTrips;
}

double TransferMs(cluster::Worker& worker) {
  const double time = WaitFor(worker, [&](CallEnd& ended) {
    worker.RecvTensor({1, 1, "k"}, runtime::Rendezvous::Received(
                                       [&ended](const Result<runtime::Message>& came) { ended.Set(came.ok()); }));
  });
  return time < 0 ? -1 : time * 1e3;
}

double RawStepUs(int raw, Waiting waiting) {
  char small[kSmallBytes] = {};
  const auto receive = waiting == Waiting::kPolling ? PollAll : ReceiveAll;
  const auto begin = Clock::now();
  for (int i = 0; i < kRoundTrips; ++i) {
    if (i == kRoundTrips - 1) small[0] = kLast;
    if (!SendAll(raw, small, sizeof small) || !receive(raw, small, sizeof small)) return -1;
  }
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kRoundTrips;
}

double RawTransferMs(int raw, std::vector<char>& to) {
  char small[kSmallBytes] = {kLarge};
  const auto begin = Clock::now();
  // Into fresh memory, as a tensor's.
  std::vector<char>().swap(to);
  to.reserve(kLargeBytes);
  if (!SendAll(raw, small, sizeof small) || !ReceiveAll(raw, to.data(), kLargeBytes)) return -1;
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// A connection to a port of loopback; -1 on failure.
int ConnectToPort(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(raw, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return -1;
  NoDelay(raw);
  return raw;
}

/// A tensor under TLS beside OpenSSL's loop over a connection of its own.
Result<Row> TlsRow(cluster::Transport& transport, int port, const std::string& address,
                   const OwnCertificate& certificate, int rounds) {
  cluster::LocalEnd end;
  end.socket_only = true;
  end.security = certificate.security();
  WEIR_ASSIGN(const auto by_tls, transport.ConnectWorker({"ps", 0}, address, end));
  const int connection = ConnectToPort(port);
  if (connection < 0) return Internal("the probe cannot connect for TLS");
  const std::unique_ptr<TlsLoop> loop = TlsLoop::Begin(connection, false, certificate);
  if (loop == nullptr) return Internal("the probe's handshake fails");
  std::vector<char> to;
  const auto probe = [&] {
    const auto begin = Clock::now();
    std::vector<char>().swap(to);
    to.reserve(kLargeBytes);
    if (!loop->Send("L", 1) || !loop->Receive(to.data(), kLargeBytes)) return -1.0;
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  Row row{"W05", "tensor of 100 MiB under TLS, TCP", "ms", 0, 0, "100 MiB by SSL_write and SSL_read over TCP"};
  const Status reached = by_tls->GetStatus(Clock::now() + std::chrono::seconds(10)).status();
  row.error = reached.ok() ? "" : reached.ToString();
  if (row.failed()) return row;
  Measure(
      rounds, [&] { return TransferMs(*by_tls); }, probe, &row);
  row.gate = row.limit * kMostOverTlsLoop;
  return row;
}

/// A null step beside the probe that waits in the same way.
Row StepRow(Row row, cluster::Worker& worker, int raw, Waiting waiting, int rounds) {
  static_cast<void>(StepUs(worker));
  Measure(
      rounds, [&] { return StepUs(worker); }, [&] { return RawStepUs(raw, waiting); }, &row);
  row.gate = row.limit * kMostOverRoundTrip;
  return row;
}

/// The same with threads that poll, in both processes.
Result<std::vector<Row>> PollingRows(const std::string& line, int rounds) {
  std::istringstream words(line);
  int raw_port = 0;
  std::string tcp, local;
  if (!(words >> raw_port >> tcp >> local)) return Internal("the far process did not start");
  const int raw = ConnectToPort(raw_port);
  if (raw < 0) return Internal("the probe cannot connect");
  WEIR_ASSIGN(const auto runtime, session::Runtime::Default());
  WEIR_ASSIGN(const auto transport, cluster::FindTransport(*runtime->plugins, "weir"));
  cluster::LocalEnd socket_only;
  socket_only.socket_only = true;
  WEIR_ASSIGN(const auto by_tcp, transport->ConnectWorker({"ps", 0}, tcp, socket_only));
  std::vector<Row> rows = {StepRow({"W06", "null remote step, 4 bytes each way, TCP, polling", "us", 0, 0,
                                    "round trip of 64 bytes over bare TCP, polling"},
                                   *by_tcp, raw, Waiting::kPolling, rounds)};
  ::close(raw);
  return rows;
}

Result<std::vector<Row>> Rows(const std::string& line, const OwnCertificate& certificate, int rounds) {
  std::istringstream words(line);
  int raw_port = 0, tls_port = 0;
  std::string tcp, local, tls;
  if (!(words >> raw_port >> tcp >> local)) return Internal("the far process did not start");
  words >> tls_port >> tls;
  const int raw = ConnectToPort(raw_port);
  if (raw < 0) return Internal("the probe cannot connect");
  WEIR_ASSIGN(const auto runtime, session::Runtime::Default());
  WEIR_ASSIGN(const auto transport, cluster::FindTransport(*runtime->plugins, "weir"));
  cluster::LocalEnd socket_only;
  socket_only.socket_only = true;
  WEIR_ASSIGN(const auto by_tcp, transport->ConnectWorker({"ps", 0}, tcp, socket_only));
  WEIR_ASSIGN(const auto by_unix, transport->ConnectWorker({"ps", 0}, local, {}));
  std::vector<char> to;
  const auto raw_transfer = [&] { return RawTransferMs(raw, to); };
  std::vector<Row> rows;
  const auto add = [&](Row row, const std::function<double()>& work, const std::function<double()>& probe) {
    static_cast<void>(work());
    Measure(rounds, work, probe, &row);
    rows.push_back(std::move(row));
  };
  const std::string round_trip = "round trip of 64 bytes over bare TCP", bare = "100 MiB over bare TCP";
  rows.push_back(StepRow({"W01", "null remote step, 4 bytes each way, TCP", "us", 0, 0, round_trip}, *by_tcp, raw,
                         Waiting::kParked, rounds));
  rows.push_back(StepRow({"W02", "null remote step, 4 bytes each way, Unix socket", "us", 0, 0, round_trip}, *by_unix,
                         raw, Waiting::kParked, rounds));
  add(
      {"W03", "tensor of 100 MiB, TCP", "ms", 0, 0, bare}, [&] { return TransferMs(*by_tcp); }, raw_transfer);
  add(
      {"W04", "tensor of 100 MiB, Unix socket with shared memory", "ms", 0, 0, bare},
      [&] { return TransferMs(*by_unix); }, raw_transfer);
  if (!tls.empty()) {
    WEIR_ASSIGN(Row under_tls, TlsRow(*transport, tls_port, tls, certificate, rounds));
    rows.push_back(std::move(under_tls));
  }
  ::close(raw);  // the far process ends with it
  return rows;
}

/// What `measure` makes of the line that the far process writes. Before any thread.
template <class Measured>
auto WithFarProcess(const OwnCertificate* certificate, Waiting waiting, Measured&& measure)
    -> decltype(measure(std::string())) {
  int ends[2];
  if (::pipe(ends) != 0) return Internal("no pipe can be made");
  const pid_t child = ::fork();
  if (child < 0) return Internal("no process can be started");
  if (child == 0) {
    ::close(ends[0]);
    _exit(Serve(ends[1], certificate, waiting));
  }
  ::close(ends[1]);
  std::string line;
  char byte = 0;
  while (::read(ends[0], &byte, 1) == 1 && byte != '\n') line += byte;
  ::close(ends[0]);
  auto result = measure(line);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (const size_t path = line.find("unix:"); path != std::string::npos) {
    ::unlink(line.substr(path + 5, line.find(' ', path) - path - 5).c_str());
  }
  return result;
}

/// The rows of a process whose threads poll, by a file; this one has its own settings of the plugin.
Result<std::vector<Row>> RowsOfPollingProcess(int rounds) {
  const auto measured = [rounds]() -> std::string {
    const std::string settings = fmt::format("/tmp/weir_bench_wire_{}.toml", ::getpid());
    std::ofstream(settings) << "[plugin.remote]\npoll_us = 1000\n";
    ::setenv("WEIR_CONFIG", settings.c_str(), 1);
    const auto measure = [rounds](const std::string& line) { return PollingRows(line, rounds); };
    const Result<std::vector<Row>> rows = WithFarProcess(nullptr, Waiting::kPolling, measure);
    ::unlink(settings.c_str());
    if (!rows.ok()) return "! " + rows.status().ToString();
    std::string text;
    for (const Row& row : *rows) {
      text += fmt::format("{}\n{}\n{}\n{} {} {} {}\n", row.id, row.what, row.limit_what, row.measured, row.fastest,
                          row.limit, row.gate);
    }
    return text;
  };
  int ends[2];
  if (::pipe(ends) != 0) return Internal("no pipe can be made");
  const pid_t child = ::fork();
  if (child < 0) return Internal("no process can be started");
  if (child == 0) {
    const std::string text = measured();
    _exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(size_t{64} << 10, '\0');
  size_t have = 0;
  for (ssize_t got = 0; (got = ::read(ends[0], text.data() + have, text.size() - have)) > 0;) {
    have += static_cast<size_t>(got);
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  text.resize(have);
  if (text.empty() || text.front() == '!') return Internal("the process that polls: {}", text);
  std::vector<Row> rows;
  std::istringstream lines(text);
  for (Row row; std::getline(lines, row.id) && std::getline(lines, row.what) && std::getline(lines, row.limit_what);) {
    row.unit = "us";
    lines >> row.measured >> row.fastest >> row.limit >> row.gate;
    lines.ignore();
    rows.push_back(row);
  }
  return rows;
}

int Main(int rounds, bool gates) {
  const OwnCertificate certificate;
  const Result<std::vector<Row>> polling = RowsOfPollingProcess(rounds);
  Result<std::vector<Row>> rows = WithFarProcess(
      &certificate, Waiting::kParked, [&](const std::string& line) { return Rows(line, certificate, rounds); });
  for (const Status& status : {rows.status(), polling.status()}) {
    if (status.ok()) continue;
    fmt::print(stderr, "{}\n", status.ToString());
    return 1;
  }
  rows->insert(rows->end(), polling->begin(), polling->end());
  fmt::print("{}\n{}", Machine(), Markdown(*rows));
  std::ofstream("build/bench/wire.json") << JsonText(*rows);
  std::vector<std::string> missed;
  for (const Row& row : *rows) {
    if (row.failed()) missed.push_back(fmt::format("{} {}: {}", row.id, row.what, row.error));
    if (row.missed())
      missed.push_back(fmt::format("{}: {:.1f} {}, gate {:.1f}", row.id, row.measured, row.unit, row.gate));
  }
  return gates ? TellMissed(missed) : 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const bool gates = argc > 2 && std::strcmp(argv[2], "--gates") == 0;
  return weir::bench::Main(rounds > 0 ? rounds : 15, gates);
}
