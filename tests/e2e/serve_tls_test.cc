// Servers under TLS as processes, and what SIGHUP changes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "core/client/extra.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/server_process.h"
#include "tests/support/certificates.h"

namespace weir {
namespace {

using testing::Certificate;
using testing::Ended;
using testing::ScratchFolder;
using testing::ServerProcess;
using testing::Weir;

class ServeTls : public ::testing::Test {
 protected:
  void SetUp() override {
    authority_.Write(folder_ / "authority");
    authority_.Signs({"server"}).Write(folder_ / "server");
    authority_.Signs({"client"}).Write(folder_ / "client");
    WriteToken("token", "first");
  }
  void WriteToken(const std::string& name, const std::string& text) const {
    ASSERT_EQ(chmod(folder_.Write(name, text + "\n").c_str(), 0600), 0);
  }
  std::vector<std::string> Security(const std::string& certificate, const std::string& token) const {
    return {"--token-file",      folder_ / token,
            "--tls-certificate", folder_ / (certificate + ".pem"),
            "--tls-key",         folder_ / (certificate + ".key"),
            "--tls-authorities", folder_ / "authority.pem"};
  }
  /// `weir doctor` for the server at this address.
  static Ended Ask(const std::string& address, const std::vector<std::string>& security) {
    std::vector<std::string> words = {"doctor", "--cluster", "worker=" + address, "--limit", "60000"};
    words.insert(words.end(), security.begin(), security.end());
    return Weir(words);
  }

  const ScratchFolder folder_;
  const Certificate authority_ = Certificate::Authority("cluster");
};

TEST_F(ServeTls, F249_AServerUnderTlsTakesTheTokenAndTheCertificatesOfAReload) {
  std::vector<std::string> words = {WEIR_COMMAND, "serve", "--listen", "127.0.0.1:0", "--job", "worker", "--task", "0"};
  const std::vector<std::string> security = Security("server", "token");
  words.insert(words.end(), security.begin(), security.end());
  ServerProcess server(words);
  const std::string target = server.ReadPast(" at "), address = target.substr(target.find("//") + 2);
  WriteToken("old_token", "first");
  const Ended good = Ask(address, Security("client", "old_token"));
  EXPECT_EQ(good.status, 0) << good.out << good.err;
  const Ended plain = Ask(address, {});
  EXPECT_EQ(plain.status, 1);
  EXPECT_NE(plain.out.find("this side takes TLS only: set tls_certificate, tls_key and tls_authorities"),
            std::string::npos)
      << plain.out;

  // The same paths with another token and the certificates of another authority.
  const Certificate next = Certificate::Authority("next cluster");
  next.Write(folder_ / "authority");
  next.Signs({"server"}).Write(folder_ / "server");
  next.Signs({"new client"}).Write(folder_ / "new_client");
  WriteToken("token", "second");
  server.Signal(SIGHUP);
  server.ReadPast("the configuration was read again");
  const Ended renewed = Ask(address, Security("new_client", "token"));
  EXPECT_EQ(renewed.status, 0) << renewed.out << renewed.err;
  const Ended old_token = Ask(address, Security("new_client", "old_token"));
  EXPECT_EQ(old_token.status, 1);
  EXPECT_NE(old_token.out.find("does not know the token"), std::string::npos) << old_token.out;
  const Ended old_certificate = Ask(address, Security("client", "token"));
  EXPECT_EQ(old_certificate.status, 1);
  EXPECT_NE(old_certificate.out.find("it does not know who signed the certificate of this process"), std::string::npos)
      << old_certificate.out;

  // A file that is wrong leaves all as it was.
  folder_.Write("server.key", "no key\n");
  server.Signal(SIGHUP);
  EXPECT_NE(server.ReadPast("the old token and certificates stay: ").find("it has no private key in PEM"),
            std::string::npos);
  EXPECT_EQ(Ask(address, Security("new_client", "token")).status, 0);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 128 + SIGTERM);
}

TEST_F(ServeTls, F249_F250_TheDoorTakesTheCertificatesOfAReload) {
  if (WEIR_DOOR == 0) GTEST_SKIP() << "built without gRPC";
  ServerProcess server({WEIR_COMMAND, "serve", "--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--tls-certificate",
                        folder_ / "server.pem", "--tls-key", folder_ / "server.key", "--tls-authorities",
                        folder_ / "authority.pem"});
  const std::string line = server.ReadPast("grpc://"), target = "grpc://" + line.substr(line.rfind('/') + 1);
  constexpr int64_t kWillFailMs = 1500;
  const auto step = [&](const std::string& client, const std::string& authority, int64_t limit_ms = 60000) {
    ConfigProto config{.operation_timeout_in_ms = limit_ms};
    config.cluster.tls_certificate = folder_ / (client + ".pem");
    config.cluster.tls_key = folder_ / (client + ".key");
    config.cluster.tls_authorities = folder_ / (authority + ".pem");
    Graph graph;
    const AsDefault here(graph);
    const Output one = Constant(1.0);
    Session session(target, graph, config);
    return session.Run(one).status();
  };
  const Status first = step("client", "authority");
  EXPECT_TRUE(first.ok()) << first.ToString();

  const Certificate next = Certificate::Authority("next cluster");
  next.Write(folder_ / "next_authority");
  next.Signs({"new client"}).Write(folder_ / "new_client");
  EXPECT_FALSE(step("new_client", "next_authority", kWillFailMs).ok());
  next.Write(folder_ / "authority");
  next.Signs({"server"}).Write(folder_ / "server");
  server.Signal(SIGHUP);
  server.ReadPast("the configuration was read again");
  const Status renewed = step("new_client", "next_authority");
  EXPECT_TRUE(renewed.ok()) << renewed.ToString();
  EXPECT_FALSE(step("client", "next_authority", kWillFailMs).ok()) << "signed by the authority of before";

  folder_.Write("server.key", "no key\n");
  server.Signal(SIGHUP);
  server.ReadPast("the old token and certificates stay: ");
  const Status kept = step("new_client", "next_authority");
  EXPECT_TRUE(kept.ok()) << kept.ToString();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 128 + SIGTERM);
}

TEST_F(ServeTls, F249_AServerWithoutItsKeyDoesNotStart) {
  const Ended ended = Weir({"serve", "--listen", "127.0.0.1:0", "--tls-certificate", folder_ / "server.pem"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("tls_key is missing"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace weir
