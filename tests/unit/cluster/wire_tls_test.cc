// TLS between tasks: what is accepted, what is refused and with which text, and how it is renewed.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/certificates.h"
#include "tests/unit/cluster/raw_peer.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::Certificate;
using testing::CertificateSpec;
using testing::In;
using testing::RawPeer;
using testing::SocketTransport;
using testing::WirePair;

/// Two authorities, and certificates of them in files of a folder of its own.
class WireTls : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/weir_tls_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    authority_.Write(Path("authority"));
    foreign_.Write(Path("foreign"));
    Make(authority_, "ps", {"ps"});
    Make(authority_, "client", {"client", ""});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& stem) const { return folder_ + "/" + stem; }
  void Make(const Certificate& authority, const std::string& stem, const CertificateSpec& spec) const {
    authority.Signs(spec).Write(Path(stem));
  }
  /// An end with the certificate `stem`, which trusts the authority `trusted`.
  LocalEnd End(const std::string& stem, const std::string& token = "", const std::string& trusted = "authority") const {
    LocalEnd end;
    end.security.tls_certificate = Path(stem) + ".pem";
    end.security.tls_key = Path(stem) + ".key";
    end.security.tls_authorities = Path(trusted) + ".pem";
    end.security.token = token;
    return end;
  }
  /// The first error between these ends; the text names the task and its address.
  static Status Between(const LocalEnd& server, const LocalEnd& client) {
    const WirePair pair(server, client);
    const Status status = pair.far->GetStatus(In(testing::kSoon)).status();
    EXPECT_EQ(pair.fake->waiting(), 0u);
    if (!status.ok()) {
      EXPECT_TRUE(status.message().starts_with("/job:ps/task:0 ")) << status;
      EXPECT_NE(status.message().find(" at localhost:"), std::string::npos) << status;
    }
    return status;
  }
  static void Expect(const Status& status, Code code, const std::string& text) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(text), std::string::npos) << status;
  }
  static Status ListenWith(const LocalEnd& self, const std::string& address = "localhost:0") {
    return SocketTransport()->Listen({}, {address, -1, self}).status();
  }

  std::string folder_;
  const Certificate authority_ = Certificate::Authority("cluster authority");
  const Certificate foreign_ = Certificate::Authority("another authority");
};

TEST_F(WireTls, F249_StepsAndTensorsCrossUnderTls) {
  const WirePair pair(End("ps", "secret"), End("client", "secret"));
  Result<Tensor> large = Tensor::Make(DType::kUint8, Shape{1 << 20});
  ASSERT_TRUE(large.ok());
  std::byte* const at = large->mutable_raw();
  for (uint64_t i = 0; i < large->bytes(); ++i) at[i] = static_cast<std::byte>(i * 31 >> 7);
  pair.fake->value = *large;
  StepRequest request;
  request.feeds = {*large, Tensor::Scalar<float>(2), Tensor::String("text")};
  const auto fetches = pair.Step(request);
  ASSERT_TRUE(fetches.ok()) << fetches.status();
  ASSERT_EQ(fetches->size(), 3u);
  EXPECT_TRUE((*fetches)[0].SameBits(*large));
  EXPECT_TRUE((*fetches)[1].SameBits(Tensor::Scalar<float>(2)));
  const auto message = pair.Receive("k");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(message->value.SameBits(*large));
  EXPECT_TRUE(pair.Master("RunStep", std::string(100000, 'x')).ok());
}

TEST_F(WireTls, F249_ATokenCountsUnderTls) {
  Expect(Between(End("ps", "secret"), End("client", "guess")), Code::kUnauthenticated, "does not know the token");
  Expect(Between(End("ps", "secret"), End("client")), Code::kUnauthenticated, "asks for a token");
}

TEST_F(WireTls, F249_ACertificateThatIsNotAcceptedSaysWhy) {
  Make(authority_, "old", {"old one", "DNS:localhost", -7000, -60});
  Make(authority_, "early", {"early one", "DNS:localhost", 3000, 6000});
  Make(foreign_, "stranger", {"stranger"});
  Make(authority_, "elsewhere", {"elsewhere", "DNS:other.example,IP:192.0.2.1"});
  struct Case {
    const char *server, *client, *text;
  };
  const Case all[] = {
      {"old", "client", "its certificate 'CN = old one' expired at "},
      {"early", "client", "its certificate 'CN = early one' is not valid before "},
      {"stranger", "client",
       "its certificate 'CN = stranger' comes from 'CN = another authority', which is not among tls_authorities"},
      {"elsewhere", "client", "its certificate 'CN = elsewhere' is not for the host 'localhost'"},
      {"ps", "old", "it says that the certificate of this process has expired: renew tls_certificate"},
      {"ps", "early", "it refuses the certificate of this process"},
      {"ps", "stranger", "it does not know who signed the certificate of this process"},
  };
  for (const Case& one : all) {
    SCOPED_TRACE(std::string(one.server) + " " + one.client);
    Expect(Between(End(one.server), End(one.client)), Code::kUnauthenticated, one.text);
  }
  // A server that trusts others only.
  Expect(Between(End("ps", "", "foreign"), End("client")), Code::kUnauthenticated, "does not know who signed");
}

TEST_F(WireTls, F249_PlainAndSecuredSidesAreToldApart) {
  Expect(Between(End("ps"), LocalEnd()), Code::kFailedPrecondition,
         "it ended the connection: this side takes TLS only: set tls_certificate, tls_key and tls_authorities");
  Expect(Between(LocalEnd(), End("client")), Code::kFailedPrecondition,
         "it does not speak TLS: set tls_certificate, tls_key and tls_authorities there, or remove them here");
}

TEST_F(WireTls, F249_ACertificateNamesTheTasksThatItsOwnerMayBe) {
  Make(authority_, "as_ps", {"as ps", "URI:weir:/job:ps/task:0"});
  Make(authority_, "as_any_ps", {"as any ps", "URI:weir:/job:worker/task:3,URI:weir:/job:ps"});
  Make(authority_, "as_worker", {"as worker", "URI:weir:/job:worker/task:0"});
  EXPECT_TRUE(Between(End("as_ps"), End("client")).ok());
  EXPECT_TRUE(Between(End("as_any_ps"), End("client")).ok());
  Expect(Between(End("as_worker"), End("client")), Code::kPermissionDenied,
         "it says to be /job:ps/task:0, and its certificate is for weir:/job:worker/task:0");
  LocalEnd client = End("as_worker");
  client.task = {"worker", 0};
  EXPECT_TRUE(Between(End("ps"), client).ok());
  client.task = {"worker", 1};
  client.incarnation = 5;
  Expect(Between(End("ps"), client), Code::kPermissionDenied, "it says to be /job:worker/task:1");
}

TEST_F(WireTls, F249_FilesAreCheckedAtTheStart) {
  const auto with = [this](std::string Security::*member, const std::string& path) {
    LocalEnd end = End("ps");
    end.security.*member = path;
    const Status listened = ListenWith(end);
    EXPECT_EQ(SocketTransport()->ConnectWorker({"ps", 0}, "localhost:1", end).status().code(), listened.code());
    return listened;
  };
  Expect(with(&Security::tls_certificate, Path("none.pem")), Code::kInvalidArgument,
         "none.pem': it cannot be read: No such file or directory");
  Expect(with(&Security::tls_authorities, Path("ps.key")), Code::kInvalidArgument, "it has no certificates in PEM");
  Expect(with(&Security::tls_certificate, Path("ps.key")), Code::kInvalidArgument, "it has no certificate in PEM");
  Expect(with(&Security::tls_key, Path("ps.pem")), Code::kInvalidArgument, "it has no private key in PEM");
  Expect(with(&Security::tls_key, Path("client.key")), Code::kInvalidArgument, "is not the key of tls_certificate");
  Expect(with(&Security::tls_key, ""), Code::kInvalidArgument, "tls_key is missing");
  EXPECT_TRUE(ListenWith(End("ps"), "0.0.0.0:0").ok());
}

TEST_F(WireTls, F249_GarbageAtASecuredListenerEndsAlone) {
  const WirePair pair(End("ps"), End("client"));
  const std::string hello("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10), alert("\x15\x03\x03\x00\x02\x02\x28", 7);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), hello, hello + std::string(70000, 'x'), alert,
                                   std::string(1, '\x16')}) {
    const auto peer = RawPeer::Dial(pair.listener->address());
    peer->SendBytes(bytes);
    EXPECT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());
  }
  EXPECT_EQ(pair.fake->steps, 0);
}

TEST_F(WireTls, F249_NewConnectionsUseWhatWasRenewed) {
  LocalEnd server = End("ps", "first");
  server.task = {"ps", 0};
  server.incarnation = 0x7e57;
  LocalEnd client = End("client", "first");
  client.incarnation = 0xc11e;
  const WirePair pair(server, client);
  ASSERT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());
  const auto fresh = [&](const LocalEnd& end) {
    const auto far = SocketTransport()->ConnectWorker({"ps", 0}, pair.listener->address(), end);
    return far.ok() ? (*far)->GetStatus(In(testing::kSoon)).status() : far.status();
  };
  // The same files with certificates of another authority, and another token.
  Make(foreign_, "ps", {"ps"});
  foreign_.Write(Path("authority"));
  server.security.token = "second";
  ASSERT_TRUE(SocketTransport()->Renew(server).ok());
  EXPECT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());  // the open connection stays
  Make(foreign_, "new_client", {"new client", ""});
  EXPECT_TRUE(fresh(End("new_client", "second")).ok());
  EXPECT_EQ(fresh(End("new_client", "first")).code(), Code::kUnauthenticated);
  EXPECT_EQ(fresh(End("client", "second")).code(), Code::kUnauthenticated);
  // Files that are wrong change nothing.
  server.security.tls_key = Path("none");
  Expect(SocketTransport()->Renew(server), Code::kInvalidArgument, "tls_key");
  EXPECT_TRUE(fresh(End("new_client", "second")).ok());
  // A channel's next connection uses the new ones, too.
  client.security = End("new_client", "second").security;
  ASSERT_TRUE(SocketTransport()->Renew(client).ok());
  EXPECT_TRUE(pair.far_master != nullptr && pair.Master("any", "").ok());
}

TEST_F(WireTls, F249_AListenerForOtherMachinesKeepsItsProtection) {
  LocalEnd self = End("ps");
  self.incarnation = 0x0badcafe;
  const auto listener = SocketTransport()->Listen({}, {"0.0.0.0:0", -1, self});
  ASSERT_TRUE(listener.ok()) << listener.status();
  self.security = {};
  Expect(SocketTransport()->Renew(self), Code::kFailedPrecondition, "neither a token nor TLS would protect it");
  self.security.token = "secret";
  EXPECT_TRUE(SocketTransport()->Renew(self).ok());
}

}  // namespace
}  // namespace weir::cluster
