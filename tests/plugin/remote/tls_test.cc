// TLS without sockets: two sessions whose bytes the test carries.
#include "plugins/remote/tls.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificates.h"

namespace weir_remote {
namespace {

using weir::testing::Certificate;

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/weir_tls_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    authority_.Write(folder_ + "/authority");
    authority_.Signs({"ps"}).Write(folder_ + "/ps");
    Certificate::Authority("other").Signs({"stranger"}).Write(folder_ + "/stranger");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<TlsSession> Make(bool server, const std::string& stem = "ps") const {
    std::shared_ptr<const TlsContext> context;
    const std::string own = folder_ + "/" + stem;
    const WireError error = LoadTls({own + ".pem", own + ".key", folder_ + "/authority.pem"}, context);
    EXPECT_TRUE(error.ok()) << error.text;
    return TlsSession::Make(context, server, server ? "" : "localhost");
  }
  /// Gives `to` what `from` has to say, in pieces, and appends the plain bytes that come out.
  static WireError Carry(TlsSession& from, TlsSession& to, size_t piece, std::string& plain) {
    const std::string bytes = std::move(from.out());
    from.out().clear();
    for (size_t at = 0; at < bytes.size(); at += piece) {
      const std::string part = bytes.substr(at, piece);
      to.Came(std::as_bytes(std::span(part)));
      std::vector<std::byte> room(10000);
      for (size_t count = 1; count > 0;) {
        if (WireError error = to.Read(room, count); !error.ok()) return error;
        plain.append(reinterpret_cast<const char*>(room.data()), count);
      }
    }
    return {};
  }
  /// Leads the handshake to its end; the first error of each side.
  static void ShakeHands(TlsSession& client, TlsSession& server, size_t piece, WireError& of_client,
                         WireError& of_server) {
    std::string none;
    size_t count = 0;
    std::vector<std::byte> room(100);
    of_client = client.Read(room, count);
    for (int i = 0; i < 4; ++i) {
      if (of_server.ok()) of_server = Carry(client, server, piece, none);
      if (of_client.ok()) of_client = Carry(server, client, piece, none);
    }
    EXPECT_EQ(none, "");
  }

  std::string folder_;
  const Certificate authority_ = Certificate::Authority("cluster");
};

TEST_F(Tls, F249_BytesCrossInAnyPieces) {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}, size_t{1} << 20}) {
    const auto client = Make(false), server = Make(true);
    WireError of_client, of_server;
    ShakeHands(*client, *server, piece, of_client, of_server);
    ASSERT_TRUE(of_client.ok() && of_server.ok()) << of_client.text << of_server.text;
    ASSERT_TRUE(client->open() && server->open());
    std::string sent(50000, '\0'), got;
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 >> 2);
    ASSERT_TRUE(client->Write(std::as_bytes(std::span(sent))).ok());
    EXPECT_EQ(client->out().find(sent.substr(0, 64)), std::string::npos);
    ASSERT_TRUE(Carry(*client, *server, piece, got).ok());
    EXPECT_EQ(got, sent);
    EXPECT_TRUE(server->CheckTask("ps", 0).ok());
  }
}

TEST_F(Tls, F249_AStrangerIsRefusedByBothSides) {
  {
    const auto client = Make(false), server = Make(true, "stranger");
    WireError of_client, of_server;
    ShakeHands(*client, *server, 100000, of_client, of_server);
    EXPECT_EQ(of_client.code, WEIR_UNAUTHENTICATED);
    EXPECT_NE(of_client.text.find("its certificate 'CN = stranger' comes from 'CN = other'"), std::string::npos)
        << of_client.text;
    EXPECT_FALSE(client->open());
  }
  const auto client = Make(false, "stranger"), server = Make(true);
  WireError of_client, of_server;
  ShakeHands(*client, *server, 100000, of_client, of_server);
  EXPECT_EQ(of_server.code, WEIR_UNAUTHENTICATED);
  EXPECT_EQ(of_client.code, WEIR_UNAUTHENTICATED);
  EXPECT_NE(of_client.text.find("it does not know who signed"), std::string::npos) << of_client.text;
  EXPECT_FALSE(server->open());
}

TEST_F(Tls, F249_BytesThatWereChangedAreAnError) {
  const auto client = Make(false), server = Make(true);
  WireError of_client, of_server;
  ShakeHands(*client, *server, 100000, of_client, of_server);
  const std::string sent(100, 'x');
  ASSERT_TRUE(client->Write(std::as_bytes(std::span(sent))).ok());
  client->out()[50] ^= 1;
  std::string got;
  EXPECT_EQ(Carry(*client, *server, 100000, got).code, WEIR_DATA_LOSS);
  EXPECT_EQ(got, "");
}

}  // namespace
}  // namespace weir_remote
