// Rows of the fault table about certificates: of a parameter server that a worker dials, and of a process whose devices
// a session of this one uses.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/client/extra.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/fault_table.h"
#include "tests/e2e/served.h"
#include "tests/support/certificates.h"

namespace weir {
namespace {

using testing::AddressOf;
using testing::AllFaults;
using testing::Certificate;
using testing::CertificateSpec;
using testing::FaultRow;
using testing::Limited;
using testing::ScratchFolder;
using testing::Serve;
using testing::ServerProcess;
using testing::TargetOf;
using testing::Weir;

using Words = std::vector<std::string>;

/// Certificates of two authorities in files of one folder, and what uses them.
class Certified {
 public:
  Certified() {
    authority_.Write(folder_ / "authority");
    foreign_.Write(folder_ / "foreign");
    Make("server", {"server"});
    Make("client", {"client"});
  }
  void Make(const std::string& stem, const CertificateSpec& spec) const {
    authority_.Signs(spec).Write(folder_ / stem);
  }
  void MakeForeign(const std::string& stem, const CertificateSpec& spec) const {
    foreign_.Signs(spec).Write(folder_ / stem);
  }
  std::string Path(const std::string& name) const { return folder_ / name; }
  Words Flags(const std::string& stem) const {
    return {"--tls-certificate", Path(stem + ".pem"), "--tls-key",
            Path(stem + ".key"), "--tls-authorities", Path("authority.pem")};
  }
  /// Of a client with these files.
  ConfigProto Config(const std::string& stem) const {
    ConfigProto config = Limited();
    config.cluster.tls_certificate = Path(stem + ".pem");
    config.cluster.tls_key = Path(stem + ".key");
    config.cluster.tls_authorities = Path("authority.pem");
    config.cluster.remote_limit_ms = 60000;
    return config;
  }

 private:
  const ScratchFolder folder_;
  const Certificate authority_ = Certificate::Authority("cluster authority");
  const Certificate foreign_ = Certificate::Authority("another authority");
};

struct Refused {
  const char* name;
  bool of_server;  // whose certificate it is
  CertificateSpec spec;
  bool foreign;
  Code code;
  std::vector<std::string> texts;  // each in the message: the fault, and its cure
};
const std::vector<Refused>& RefusedCertificates() {
  static const std::vector<Refused> all = {
      {"its certificate has expired",
       true,
       {"old one", "DNS:localhost,IP:127.0.0.1", -7000, -60},
       false,
       Code::kUnauthenticated,
       {"its certificate 'CN = old one' expired at ", "give it a new one"}},
      {"its certificate is for later",
       true,
       {"early one", "DNS:localhost,IP:127.0.0.1", 3000, 6000},
       false,
       Code::kUnauthenticated,
       {"its certificate 'CN = early one' is not valid before ", "compare the clocks"}},
      {"its certificate is of another authority",
       true,
       {"stranger"},
       true,
       Code::kUnauthenticated,
       {"comes from 'CN = another authority', which is not among tls_authorities", "certificate of one of them"}},
      {"its certificate is for another host",
       true,
       {"elsewhere", "DNS:other.example"},
       false,
       Code::kUnauthenticated,
       {"its certificate 'CN = elsewhere' is not for the host ", "use a name of the certificate in the address"}},
      {"its certificate is for another task",
       true,
       {"other", "URI:weir:/job:evaluator/task:3"},
       false,
       Code::kPermissionDenied,
       {"and its certificate is for weir:/job:evaluator/task:3"}},
      {"the caller's has expired",
       false,
       {"old caller", "DNS:localhost,IP:127.0.0.1", -7000, -60},
       false,
       Code::kUnauthenticated,
       {"the certificate of this process has expired: renew tls_certificate"}},
      {"the caller's is of another authority",
       false,
       {"strange caller"},
       true,
       Code::kUnauthenticated,
       {"it does not know who signed the certificate of this process", "tls_authorities"}},
  };
  return all;
}

/// Takes the files of `stem` again, and waits until they count.
void Renew(ServerProcess& server) {
  server.Signal(SIGHUP);
  server.ReadPast("the configuration was read again");
}

TEST(FaultMatrix, T12_F249_CertificatesOfRemoteDevicesThatAreRefused) {
  for (const Refused& one : RefusedCertificates()) {
    FaultRow row("T12", std::string("remote device start-up, ") + one.name);
    const Certified files;
    const std::string bad = one.of_server ? "server" : "client";
    one.foreign ? files.MakeForeign(bad, one.spec) : files.Make(bad, one.spec);
    const auto server = Serve(files.Flags("server"));
    const std::string address = AddressOf(TargetOf(*server));
    ConfigProto config = files.Config("client");
    Graph graph;
    const AsDefault here(graph);
    Output there;
    {
      const DeviceScope on("/job:remote/task:0");
      there = Negative(Constant(2.0));
    }
    // Missed where they are required; otherwise what needs them not goes on.
    config.cluster.required_devices = {address};
    std::vector<std::string> texts = one.texts;
    texts.insert(texts.end(), {address, "cluster.required_devices"});
    {
      Session session(graph, config);
      row.Told(session.Run(there).status(), {one.code}, texts);
    }
    config.cluster.required_devices.clear();
    config.cluster.remote_devices = {address};
    {
      Session session(graph, config);
      const Status sum = session.Run(Add(Constant(1.0), Constant(2.0))).status();
      EXPECT_TRUE(sum.ok()) << sum.ToString();
    }
    // A good certificate at the same path, for both ends.
    files.Make(bad, {"renewed"});
    if (one.of_server) Renew(*server);
    if (!one.of_server) {
      files.Make("client2", {"renewed caller"});
      config = files.Config("client2");
      config.cluster.remote_devices = {address};
    }
    Session session(graph, config);
    const auto got = session.Run(there);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ(*got->scalar<float>(), -2);
  }
}

TEST(FaultMatrix, T12_F249_CertificatesOfTasksThatAreRefused) {
  for (const Refused& one : RefusedCertificates()) {
    if (!AllFaults() && one.code != Code::kPermissionDenied && one.of_server) continue;
    FaultRow row("T12", std::string("ps start-up, ") + one.name);
    const Certified files;
    files.Make("worker", {"worker"});
    const std::string bad = one.of_server ? "server" : "worker";
    one.foreign ? files.MakeForeign(bad, one.spec) : files.Make(bad, one.spec);
    Words of_ps = files.Flags("server");
    of_ps.insert(of_ps.end(), {"--cluster", "ps=127.0.0.1:0"});
    const auto ps = Serve(of_ps);
    Words of_worker = files.Flags("worker");
    of_worker.insert(of_worker.end(), {"--cluster", "ps=" + AddressOf(TargetOf(*ps)) + ",worker=127.0.0.1:0", "--job",
                                       "worker", "--task", "0"});
    const auto worker = Serve(of_worker);
    const std::string target = TargetOf(*worker);
    Graph graph;
    const testing::Counter counter(graph);
    ConfigProto config = files.Config("client");
    std::vector<std::string> texts = one.texts;
    texts.emplace_back("/job:ps/");
    if (!one.of_server) {
      // The client meets the worker's certificate first.
      texts = {target.substr(target.find("//") + 2)};
    }
    Status last;
    {
      Session session(target, graph, config);
      row.Told(session.Run(counter.init).status(), {one.code}, texts);
    }
    files.Make(bad, {"renewed"});
    Renew(one.of_server ? *ps : *worker);
    Session session(target, graph, config);
    const Status healthy = session.Run(counter.init).status();
    EXPECT_TRUE(healthy.ok()) << healthy.ToString();
  }
}

TEST(FaultMatrix, T12_F249_AKeyThatDoesNotMatchIsToldAtTheStart) {
  {
    FaultRow row("T12", "remote device start-up, its key is of another certificate");
    const Certified files;
    const auto ended = Weir({"serve", "--listen", "127.0.0.1:0", "--tls-certificate", files.Path("server.pem"),
                             "--tls-key", files.Path("client.key"), "--tls-authorities", files.Path("authority.pem")});
    EXPECT_EQ(ended.status, 1);
    row.Told(Status(Code::kInvalidArgument, ended.err), {Code::kInvalidArgument},
             {"INVALID_ARGUMENT", "client.key' is not the key of tls_certificate '"});
  }
  FaultRow row("T12", "remote device start-up, the caller's key is of another certificate");
  const Certified files;
  const auto server = Serve(files.Flags("server"));
  ConfigProto config = files.Config("client");
  config.cluster.tls_key = files.Path("server.key");
  config.cluster.required_devices = {AddressOf(TargetOf(*server))};
  Graph graph;
  const AsDefault here(graph);
  const Output three = Add(Constant(1.0), Constant(2.0));
  {
    Session session(graph, config);
    row.Told(session.Run(three).status(), {Code::kInvalidArgument},
             {"server.key' is not the key of tls_certificate '", config.cluster.required_devices.front()});
  }
  config.cluster.tls_key = files.Path("client.key");
  Session session(graph, config);
  const Status healthy = session.Run(three).status();
  EXPECT_TRUE(healthy.ok()) << healthy.ToString();
}

TEST(FaultMatrix, T12_F249_OneSideAloneUnderTls) {
  const Certified files;
  Graph graph;
  const AsDefault here(graph);
  const Output three = Add(Constant(1.0), Constant(2.0));
  {
    FaultRow row("T12", "remote device start-up, the caller speaks no TLS");
    const auto server = Serve(files.Flags("server"));
    ConfigProto plain = Limited();
    plain.cluster.remote_limit_ms = 60000;
    plain.cluster.required_devices = {AddressOf(TargetOf(*server))};
    Session session(graph, plain);
    row.Told(session.Run(three).status(), {Code::kFailedPrecondition},
             {"this side takes TLS only: set tls_certificate, tls_key and tls_authorities"});
  }
  FaultRow row("T12", "remote device start-up, it speaks no TLS");
  const auto server = Serve({});
  ConfigProto config = files.Config("client");
  config.cluster.required_devices = {AddressOf(TargetOf(*server))};
  Session session(graph, config);
  row.Told(session.Run(three).status(), {Code::kFailedPrecondition},
           {"it does not speak TLS: set tls_certificate, tls_key and tls_authorities there"});
}

}  // namespace
}  // namespace weir
