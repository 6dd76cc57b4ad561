#include "plugins/remote/handshake.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugins/remote/fields.h"

namespace weir_remote {
namespace {

/// Stands for HMAC-SHA256: depends on every byte and on the key, and is no secret.
MacBytes TestMac(std::string_view key, std::string_view data) {
  MacBytes mac{};
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t round = 0; round < mac.size(); ++round) {
    for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    mac[round] = static_cast<std::byte>(hash >> 32);
  }
  return mac;
}

Identity Task(const std::string& job, uint64_t incarnation) {
  Identity identity;
  identity.build = "b";
  identity.job = job;
  identity.task = 2;
  identity.incarnation = incarnation;
  identity.cluster = "c";
  identity.capabilities = 5;
  identity.host = "h";
  return identity;
}

const std::string kNonce1(kNonceBytes, '1'), kNonce2(kNonceBytes, '2');

Handshake Client(const Identity& own, const std::string& token = {}) {
  return Handshake::Client(own, token, TestMac, kNonce1);
}
Handshake Server(const Identity& own, const std::string& token = {}) {
  return Handshake::Server(own, token, TestMac, kNonce2, 77);
}

FrameHeader Of(FrameType type) {
  FrameHeader header;
  header.type = static_cast<uint8_t>(type);
  return header;
}

struct Outcome {
  WireError client, server;
};

/// Carries frames until neither side has any, or one ends.
Outcome Talk(Handshake& client, Handshake& server) {
  Outcome outcome;
  std::vector<Outgoing> to_server = client.Begin(), to_client;
  while ((!to_server.empty() || !to_client.empty()) && outcome.client.ok() && outcome.server.ok()) {
    std::vector<Outgoing> next_to_server, next_to_client;
    for (const Outgoing& frame : to_server) outcome.server = server.Take(Of(frame.type), frame.meta, next_to_client);
    for (const Outgoing& frame : to_client) outcome.client = client.Take(Of(frame.type), frame.meta, next_to_server);
    to_server = next_to_server;
    to_client = next_to_client;
  }
  return outcome;
}

TEST(Handshake, BothSidesKnowEachOther) {
  for (const std::string token : {"", "secret"}) {
    Handshake client = Client(Task("worker", 3), token), server = Server(Task("ps", 4), token);
    const Outcome outcome = Talk(client, server);
    ASSERT_TRUE(outcome.client.ok() && outcome.server.ok()) << outcome.client.text << outcome.server.text;
    ASSERT_TRUE(client.peer() && server.peer());
    EXPECT_EQ(client.peer()->identity.job, "ps");
    EXPECT_EQ(client.peer()->identity.incarnation, 4u);
    EXPECT_EQ(client.peer()->session, 77u);
    EXPECT_EQ(server.peer()->identity.job, "worker");
    EXPECT_EQ(server.peer()->identity.task, 2u);
    EXPECT_EQ(server.peer()->capabilities, 5u);
    EXPECT_EQ(client.peer()->version, kProtocol);
  }
}

TEST(Handshake, TheLowerMinorAndTheCommonCapabilitiesAreUsed) {
  Identity old = Task("worker", 3), later = Task("ps", 4);
  later.most = ProtocolVersion(1, 6);
  old.most = ProtocolVersion(1, 2);
  later.capabilities = 6;
  Handshake client = Client(old), server = Server(later);
  const Outcome outcome = Talk(client, server);
  ASSERT_TRUE(outcome.client.ok() && outcome.server.ok()) << outcome.client.text;
  EXPECT_EQ(client.peer()->version, ProtocolVersion(1, 2));
  EXPECT_EQ(server.peer()->version, ProtocolVersion(1, 2));
  EXPECT_EQ(client.peer()->capabilities, 4u);
}

TEST(Handshake, ARefusalNamesBothVersions) {
  Identity other = Task("worker", 3);
  other.least = other.most = ProtocolVersion(2, 1);
  Handshake client = Client(other), server = Server(Task("ps", 4));
  const Outcome outcome = Talk(client, server);
  EXPECT_EQ(outcome.server.code, WEIR_FAILED_PRECONDITION);
  EXPECT_EQ(outcome.server.text, "this side speaks version 1.1 of the protocol, the peer 2.1");
  EXPECT_FALSE(server.peer());
}

TEST(Handshake, TokensAreProvenBothWays) {
  struct Row {
    const char* client;
    const char* server;
    int32_t at_client, at_server;
  };
  for (const Row& row : std::vector<Row>{{"a", "b", WEIR_OK, WEIR_UNAUTHENTICATED},
                                         {"", "b", WEIR_UNAUTHENTICATED, WEIR_OK},
                                         {"a", "", WEIR_UNAUTHENTICATED, WEIR_OK}}) {
    Handshake client = Client(Task("worker", 3), row.client), server = Server(Task("ps", 4), row.server);
    const Outcome outcome = Talk(client, server);
    EXPECT_EQ(outcome.client.code, row.at_client) << row.client << "/" << row.server;
    EXPECT_EQ(outcome.server.code, row.at_server) << row.client << "/" << row.server;
    EXPECT_FALSE(client.peer());
  }
}

TEST(Handshake, AProofHoldsForOneConnectionAndOneHello) {
  Handshake first = Client(Task("worker", 3), "secret");
  std::vector<Outgoing> hello = first.Begin(), challenge, proof;
  Handshake server = Server(Task("ps", 4), "secret");
  ASSERT_TRUE(server.Take(Of(FrameType::kHello), hello[0].meta, challenge).ok());
  ASSERT_TRUE(first.Take(Of(FrameType::kAuth), challenge[0].meta, proof).ok());
  // Replayed on another connection, whose nonce differs.
  Handshake other = Handshake::Server(Task("ps", 4), "secret", TestMac, std::string(kNonceBytes, '3'), 1);
  std::vector<Outgoing> out;
  ASSERT_TRUE(other.Take(Of(FrameType::kHello), hello[0].meta, out).ok());
  EXPECT_EQ(other.Take(Of(FrameType::kAuth), proof[0].meta, out).code, WEIR_UNAUTHENTICATED);
  // Moved to the hello of another task.
  Handshake moved = Server(Task("ps", 4), "secret");
  out.clear();
  ASSERT_TRUE(moved.Take(Of(FrameType::kHello), EncodeHello(Task("chief", 3), kNonce1), out).ok());
  EXPECT_EQ(moved.Take(Of(FrameType::kAuth), proof[0].meta, out).code, WEIR_UNAUTHENTICATED);
  // The client's proof is not the server's.
  FieldWriter answer;
  answer.Text(13, "x");
  EXPECT_FALSE(first.Take(Of(FrameType::kHelloAck), proof[0].meta, out).ok());
  EXPECT_FALSE(first.peer());
}

TEST(Handshake, AnotherClusterIsRefusedAfterTheProof) {
  Identity stranger = Task("worker", 3);
  stranger.cluster = "other";
  Handshake client = Client(stranger, "secret"), server = Server(Task("ps", 4), "secret");
  const Outcome outcome = Talk(client, server);
  EXPECT_EQ(outcome.server.code, WEIR_PERMISSION_DENIED);
  EXPECT_EQ(outcome.server.text, "the peer belongs to the cluster 'other', this is 'c'");
}

TEST(Handshake, FramesOutOfOrderEndIt) {
  const std::string hello = EncodeHello(Task("worker", 3), kNonce1);
  std::vector<Outgoing> out;
  for (uint8_t type = 1; type <= kLastFrameType; ++type) {
    FrameHeader header;
    header.type = type;
    Handshake server = Server(Task("ps", 4), "secret");
    EXPECT_EQ(server.Take(header, hello, out).ok(), type == static_cast<uint8_t>(FrameType::kHello)) << int{type};
    Handshake client = Client(Task("worker", 3), "secret");
    static_cast<void>(client.Begin());
    EXPECT_FALSE(client.Take(header, "", out).ok()) << int{type};
    EXPECT_FALSE(client.Take(Of(FrameType::kHelloAck), hello, out).ok());
  }
  Handshake twice = Server(Task("ps", 4), "secret");
  ASSERT_TRUE(twice.Take(Of(FrameType::kHello), hello, out).ok());
  EXPECT_EQ(twice.Take(Of(FrameType::kHello), hello, out).code, WEIR_INVALID_ARGUMENT);
}

TEST(Handshake, HellosThatAreMalformed) {
  Identity read;
  EXPECT_EQ(DecodeHello("", read).code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(DecodeHello("\xff", read).code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(DecodeHello(EncodeHello(Task("worker", 0), kNonce1), read).text, "a hello has the incarnation 0");
  EXPECT_FALSE(DecodeHello(EncodeHello(Task(std::string(600, 'j'), 1), kNonce1), read).ok());
  Identity none = Task("worker", 1);
  none.least = ProtocolVersion(2, 0);
  EXPECT_EQ(DecodeHello(EncodeHello(none, kNonce1), read).text, "a hello has no versions");
  const std::string good = EncodeHello(Task("worker", 1), kNonce1);
  for (size_t cut = 0; cut < good.size(); ++cut) {
    const std::string bytes = good.substr(0, cut);
    const bool good = DecodeHello(bytes, read).ok();
    EXPECT_TRUE(!good || read.incarnation == 1u) << cut;
  }
  FieldWriter later;  // a field that a later minor adds
  later.Text(99, "new");
  EXPECT_TRUE(DecodeHello(good + later.bytes(), read).ok());
  EXPECT_EQ(read.job, "worker");
}

TEST(Incarnations, ANewerOneFencesTheOlder) {
  Incarnations known;
  EXPECT_EQ(known.Admit("ps", 0, 10).fenced, 0u);
  EXPECT_TRUE(known.Admit("ps", 0, 10).resumed);
  const Incarnations::Verdict restarted = known.Admit("ps", 0, 11);
  EXPECT_TRUE(restarted.error.ok());
  EXPECT_EQ(restarted.fenced, 10u);
  EXPECT_FALSE(restarted.resumed);
  const Incarnations::Verdict old = known.Admit("ps", 0, 10);
  EXPECT_EQ(old.error.code, WEIR_ABORTED);
  EXPECT_NE(old.error.text.find("was restarted"), std::string::npos);
  EXPECT_TRUE(known.Admit("ps", 1, 10).error.ok());
  EXPECT_EQ(known.Admit("ps", 1, 0).error.code, WEIR_INVALID_ARGUMENT);
}

TEST(SameSecret, ComparesAllBytes) {
  EXPECT_TRUE(SameSecret("", ""));
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("abc", "ab"));
  EXPECT_FALSE(SameSecret("", "a"));
}

}  // namespace
}  // namespace weir_remote
