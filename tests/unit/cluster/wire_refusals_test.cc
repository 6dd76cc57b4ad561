// What a listener refuses, and what it does with a peer that breaks the protocol. A good client works beside each.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/worker_messages.h"
#include "core/plugin/catalogue.h"
#include "tests/unit/cluster/raw_peer.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::Came;
using testing::In;
using testing::MessageHeadOf;
using testing::RawPeer;
using testing::SocketTransport;
using testing::Until;
using testing::WirePair;
using weir_remote::FrameType;

LocalEnd EndWith(const std::string& token, const std::string& cluster = "") {
  LocalEnd end;
  end.security.token = token;
  end.cluster_id = cluster;
  return end;
}

/// The error of a client of a server; both with these ends.
Status ErrorBetween(const LocalEnd& server, const LocalEnd& client) {
  const WirePair pair(server, client);
  const auto status = pair.far->GetStatus(In(testing::kSoon));
  EXPECT_EQ(pair.fake->waiting(), 0u);
  return status.status();
}

TEST(WireRefusals, F249_ATokenIsProvenByBothSides) {
  EXPECT_TRUE(ErrorBetween(EndWith("secret"), EndWith("secret")).ok());
  const Status wrong = ErrorBetween(EndWith("secret"), EndWith("guess"));
  EXPECT_EQ(wrong.code(), Code::kUnauthenticated);
  EXPECT_NE(wrong.message().find("/job:ps/task:0 at localhost:"), std::string::npos) << wrong;
  EXPECT_NE(wrong.message().find("the peer does not know the token"), std::string::npos) << wrong;
  EXPECT_EQ(wrong.message().find("secret"), std::string::npos);
  const Status none = ErrorBetween(EndWith("secret"), EndWith(""));
  EXPECT_EQ(none.code(), Code::kUnauthenticated);
  EXPECT_NE(none.message().find("the peer asks for a token, and none is configured"), std::string::npos) << none;
  const Status stranger = ErrorBetween(EndWith(""), EndWith("secret"));
  EXPECT_EQ(stranger.code(), Code::kUnauthenticated);
  EXPECT_NE(stranger.message().find("does not prove that it knows the token"), std::string::npos) << stranger;
}

TEST(WireRefusals, F249_AnotherClusterIsRefused) {
  EXPECT_TRUE(ErrorBetween(EndWith("", "a"), EndWith("", "a")).ok());
  const Status other = ErrorBetween(EndWith("", "a"), EndWith("", "b"));
  EXPECT_EQ(other.code(), Code::kPermissionDenied);
  EXPECT_NE(other.message().find("belongs to the cluster 'b', this is 'a'"), std::string::npos) << other;
}

TEST(WireRefusals, F249_AnotherTaskAtTheAddressIsRefused) {
  const WirePair pair;
  const auto wrong = *SocketTransport()->ConnectWorker({"ps", 1}, pair.listener->address(), {});
  const Status status = wrong->GetStatus(In(testing::kSoon)).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_NE(status.message().find("it is /job:ps/task:0, wanted /job:ps/task:1"), std::string::npos) << status;
}

TEST(WireRefusals, F249_AddressesAreChecked) {
  const auto listen = [](const std::string& address, bool insecure = false, const std::string& token = "") {
    ListenOptions options;
    options.address = address;
    options.self.security.insecure_listen = insecure;
    options.self.security.token = token;
    auto made = SocketTransport()->Listen({}, options);
    return made.ok() ? Status() : made.status();
  };
  for (const char* bad : {"localhost", ":1", "localhost:x", "localhost:70000", "unix:", "no.such.host.invalid:0"}) {
    EXPECT_EQ(listen(bad).code(), Code::kInvalidArgument) << bad;
    EXPECT_EQ(SocketTransport()->ConnectWorker({"ps", 0}, "x", {}).status().code(), Code::kInvalidArgument);
  }
  const Status open = listen("0.0.0.0:0");
  EXPECT_EQ(open.code(), Code::kFailedPrecondition);
  EXPECT_NE(open.message().find("neither a token nor TLS protects it"), std::string::npos) << open;
  EXPECT_TRUE(listen("0.0.0.0:0", true).ok());
  EXPECT_TRUE(listen("0.0.0.0:0", false, "secret").ok());
  const WirePair pair;
  const Status taken = listen(pair.listener->address());
  EXPECT_EQ(taken.code(), Code::kFailedPrecondition);
  EXPECT_NE(taken.message().find("cannot listen on localhost:"), std::string::npos) << taken;
  EXPECT_NE(taken.message().find("Address already in use"), std::string::npos) << taken;
  LocalEnd tls;
  tls.security.tls_certificate = "/nowhere.pem";
  EXPECT_FALSE(SocketTransport()->Listen({}, {"localhost:0", -1, tls}).ok());
}

TEST(WireRefusals, F249_AnInheritedSocketIsServed) {
  testing::RawServer parent;
  const std::string address = parent.address();
  const auto fake = std::make_shared<testing::FakeWorker>(TaskName{"ps", 0});
  LocalEnd self;
  self.task = {"ps", 0};
  auto listener = SocketTransport()->Listen({fake, nullptr}, {"", parent.Release(), self});
  ASSERT_TRUE(listener.ok()) << listener.status().ToString();
  EXPECT_EQ(testing::PortIn((*listener)->address()), testing::PortIn(address));
  const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, address, {});
  EXPECT_TRUE(far->GetStatus(In(testing::kSoon)).ok());
}

/// A way to break the protocol, and the error that ends the connection.
struct Breach {
  const char* name;
  bool open;  // after a good handshake
  void (*act)(RawPeer& peer);
  Code code;
  const char* text;
};

std::string RunStepMeta(const std::vector<TensorHead>& tensors) {
  WireRequest request;
  request.method = Method::kRunStep;
  request.tensors = tensors;
  return *Encode(request);
}
/// A RunStep of one feed of 100,000 floats, whose body is announced with `bytes`.
void BeginStep(RawPeer& peer, uint32_t stream, uint64_t bytes) {
  const std::string meta = RunStepMeta({{DType::kFloat, Shape{100000}}});
  peer.Send(FrameType::kRequest, stream, MessageHeadOf(6, meta, {bytes}));
}

const Breach kBreaches[] = {
    {"http", false, [](RawPeer& p) { p.SendBytes("GET / HTTP/1.1\r\nHost: localhost:2222\r\n\r\n"); }, Code::kDataLoss,
     "the bytes are no frame of weir"},
    {"zeros", false, [](RawPeer& p) { p.SendBytes(std::string(100000, '\0')); }, Code::kDataLoss, "no frame of weir"},
    {"a call first", false, [](RawPeer& p) { p.Send(FrameType::kRequest, 1, MessageHeadOf(1, "", {})); },
     Code::kInvalidArgument, "came during the handshake"},
    {"a ping first", false, [](RawPeer& p) { p.Send(FrameType::kPing); }, Code::kInvalidArgument,
     "came during the handshake"},
    {"a body first", false, [](RawPeer& p) { p.Send(FrameType::kData, 1, "", "xx"); }, Code::kInvalidArgument,
     "a body came before the handshake"},
    {"a long hello", false, [](RawPeer& p) { p.Send(FrameType::kHello, 0, std::string(5000, 'x')); },
     Code::kInvalidArgument, "at most 4096 are allowed now"},
    {"a bad hello", false, [](RawPeer& p) { p.Send(FrameType::kHello, 0, "\xff\xff\xff"); }, Code::kInvalidArgument,
     "malformed"},
    {"version 9", false,
     [](RawPeer& p) {
       weir_remote::Identity own = RawPeer::Stranger();
       own.least = own.most = weir_remote::ProtocolVersion(9, 0);
       p.Send(FrameType::kHello, 0, weir_remote::EncodeHello(own, std::string(16, 'n')));
     },
     Code::kFailedPrecondition, "speaks version 1.1 of the protocol, the peer 9.0"},
    {"no incarnation", false,
     [](RawPeer& p) {
       weir_remote::Identity own;
       p.Send(FrameType::kHello, 0, weir_remote::EncodeHello(own, std::string(16, 'n')));
     },
     Code::kInvalidArgument, "the incarnation 0"},
    {"a second hello", true, [](RawPeer& p) { p.Send(FrameType::kHello); }, Code::kInvalidArgument,
     "came after the handshake"},
    {"a lost frame", true,
     [](RawPeer& p) {
       p.SkipNumber();
       p.Send(FrameType::kPing);
     },
     Code::kDataLoss, "was expected"},
    {"a repeated stream", true,
     [](RawPeer& p) {
       BeginStep(p, 1, 400000);
       BeginStep(p, 1, 400000);
     },
     Code::kInvalidArgument, "which is not new"},
    {"stream 0", true, [](RawPeer& p) { p.Send(FrameType::kRequest, 0, MessageHeadOf(1, "", {})); },
     Code::kInvalidArgument, "which is not new"},
    {"a chunk of nothing", true, [](RawPeer& p) { p.Send(FrameType::kData, 7, "", "xx"); }, Code::kInvalidArgument,
     "unknown stream 7"},
    {"a chunk beyond its body", true,
     [](RawPeer& p) {
       BeginStep(p, 1, 400000);
       p.Send(FrameType::kData, 1, "", std::string(400001, 'x'));
     },
     Code::kInvalidArgument, "400000 were left of its body"},
    {"a chunk after its call", true,
     [](RawPeer& p) {
       p.Send(FrameType::kRequest, 1, MessageHeadOf(7, "", {}));
       p.Send(FrameType::kData, 2, "", "x");
     },
     Code::kInvalidArgument, "unknown stream 2"},
    {"a huge chunk", true,
     [](RawPeer& p) {
       BeginStep(p, 1, 400000);
       p.Send(FrameType::kData, 1, "", std::string((1 << 20) + 1, 'x'));
     },
     Code::kInvalidArgument, "at most 1048576 are allowed"},
    {"an empty chunk", true,
     [](RawPeer& p) {
       BeginStep(p, 1, 400000);
       p.Send(FrameType::kData, 1);
     },
     Code::kInvalidArgument, "an empty chunk"},
    {"a head that lies", true,
     [](RawPeer& p) {
       p.Send(FrameType::kRequest, 1, MessageHeadOf(6, RunStepMeta({{DType::kFloat, Shape{2}}}), {8}), "1234567");
     },
     Code::kInvalidArgument, "travels with a head that says 8"},
    {"sizes that overflow", true,
     [](RawPeer& p) {
       p.Send(FrameType::kRequest, 1, MessageHeadOf(6, "", {UINT64_MAX, 2}));
     },
     Code::kInvalidArgument, "more than 2^63 bytes"},
    {"a bad head", true, [](RawPeer& p) { p.Send(FrameType::kRequest, 1, "\x0a\xff"); }, Code::kInvalidArgument,
     "the head of a message is malformed"},
    {"a reply to a server", true, [](RawPeer& p) { p.Send(FrameType::kResponse, 1); }, Code::kInvalidArgument,
     "a server got a reply"},
    {"an error of a call", true, [](RawPeer& p) { p.Send(FrameType::kError, 1); }, Code::kInvalidArgument,
     "a server got an error"},
    {"a cancel of nothing", true, [](RawPeer& p) { p.Send(FrameType::kCancel, 9); }, Code::kInvalidArgument,
     "an unknown call was cancelled"},
    {"a message of nothing", true,
     [](RawPeer& p) { p.Send(FrameType::kTell, 9, MessageHeadOf(12, "", {})); }, Code::kInvalidArgument,
     "a message of an unknown call came"},
    {"a message without its body", true,
     [](RawPeer& p) {
       BeginStep(p, 1, 400000);
       p.Send(FrameType::kTell, 1, MessageHeadOf(12, "", {8}));
     },
     Code::kInvalidArgument, "the bodies of a message do not come with it"},
    {"a large message beside a call", true,
     [](RawPeer& p) {
       BeginStep(p, 1, 400000);
       p.Send(FrameType::kTell, 1, MessageHeadOf(12, "", {65537}), std::string(65537, 'x'));
     },
     Code::kInvalidArgument, "travels with a head that says 65537"},
    {"memory that nobody wants", true, [](RawPeer& p) { p.Send(FrameType::kOpen, 0, "\x08\x01"); },
     Code::kInvalidArgument, "memory was offered that is not wanted"},
    {"a chunk in no memory", true,
     [](RawPeer& p) {
       BeginStep(p, 1, 400000);
       p.Send(FrameType::kData, 1, "\x08\x01\x10\x01", "", weir_remote::kFrameShared);
     },
     Code::kInvalidArgument, "a chunk lies in memory that is not shared"},
    {"slots of no memory", true, [](RawPeer& p) { p.Send(FrameType::kCredit, 0, "\x10\x01"); },
     Code::kInvalidArgument, "slots of memory were released that is not shared"},
    {"credit of nothing", true, [](RawPeer& p) { p.Send(FrameType::kCredit, 9); }, Code::kInvalidArgument,
     "credit of an unknown stream"},
};

TEST(WireRefusals, F249_ABrokenProtocolEndsTheConnectionWithOneError) {
  const WirePair pair;
  for (const Breach& breach : kBreaches) {
    SCOPED_TRACE(breach.name);
    const auto peer = RawPeer::Dial(pair.listener->address());
    ASSERT_TRUE(!breach.open || peer->ShakeHands());
    breach.act(*peer);
    const auto [code, text] = peer->ReadToEnd();
    EXPECT_EQ(code, static_cast<int>(breach.code)) << text;
    EXPECT_NE(text.find(breach.text), std::string::npos) << text;
    EXPECT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());
  }
  EXPECT_EQ(pair.fake->steps, 0);
}

/// A request that is wrong in itself: its error comes as the reply, and the connection goes on.
struct BadRequest {
  const char* name;
  uint32_t method;
  std::string meta;
  std::vector<uint64_t> sizes;
  Code code;
  const char* text;
};

TEST(WireRefusals, F249_AWrongRequestGetsAnErrorAndTheConnectionGoesOn) {
  const auto budget = std::make_shared<ByteBudget>(1 << 20);
  const WirePair pair({}, {},
                      MakeTransport(testing::RuntimeOf({"worker", 0})->plugins->transports().at(0), budget));
  const std::string floats = RunStepMeta({{DType::kFloat, Shape{100000}}});
  const BadRequest all[] = {
      {"a method of later", 77, "", {}, Code::kUnimplemented, "method 77 is unknown"},
      {"no request", 6, "\xff\xff", {}, Code::kInvalidArgument, ""},
      {"a body too many", 1, "", {3}, Code::kInvalidArgument, "GetStatus came with 1 bodies"},
      {"a body too few", 4, "", {}, Code::kInvalidArgument, "RegisterPart came with 0 bodies"},
      {"a short tensor", 6, floats, {399999}, Code::kInvalidArgument, "has 399999 bytes, wanted 400000"},
      {"a missing tensor", 6, floats, {}, Code::kInvalidArgument, "1 tensors are announced and 0 bodies come"},
      {"a large graph", 4, "", {uint64_t{1} << 40}, Code::kResourceExhausted, "at most 2147483647 are taken"},
      {"a tensor above the budget",
       6,
       RunStepMeta({{DType::kFloat, Shape{1 << 20}}}),
       {4 << 20},
       Code::kResourceExhausted,
       "4194304 bytes for a message from another process, 0 of 1048576 are in use"},
      {"a variant", 6, RunStepMeta({{DType::kVariant, Shape{1}}}), {8}, Code::kUnimplemented, "variant"},
      {"strings of nothing",
       6,
       RunStepMeta({{DType::kString, Shape{int64_t{1} << 60}}}),
       {8},
       Code::kInvalidArgument,
       "tensor 0 of"},
      {"a cancel without a reason", 8, "", {}, Code::kInvalidArgument, "without a reason"},
  };
  const auto peer = RawPeer::Dial(pair.listener->address());
  ASSERT_TRUE(peer->ShakeHands());
  uint32_t stream = 0;
  for (const BadRequest& bad : all) {
    SCOPED_TRACE(bad.name);
    peer->Send(FrameType::kRequest, ++stream, MessageHeadOf(bad.method, bad.meta, bad.sizes));
    // What was on its way is thrown away.
    if (!bad.sizes.empty()) peer->Send(FrameType::kData, stream, "", std::string(5, 'x'));
    Came came;
    ASSERT_TRUE(peer->Read(came));
    ASSERT_TRUE(came.header.is(FrameType::kError));
    EXPECT_EQ(came.header.stream, stream);
    const auto [code, text] = RawPeer::ErrorOf(came);
    EXPECT_EQ(code, static_cast<int>(bad.code)) << text;
    EXPECT_NE(text.find(bad.text), std::string::npos) << text;
  }
  peer->Send(FrameType::kRequest, ++stream, MessageHeadOf(1, "", {}));
  Came came;
  ASSERT_TRUE(peer->Read(came));
  EXPECT_TRUE(came.header.is(FrameType::kResponse));
  EXPECT_EQ(pair.fake->steps, 0);
  EXPECT_EQ(budget->used(), 0u);
}

TEST(WireRefusals, F249_BoolsAndStringsAreChecked) {
  const WirePair pair;
  const auto peer = RawPeer::Dial(pair.listener->address());
  ASSERT_TRUE(peer->ShakeHands());
  const std::string eight(8, '\0');
  const std::pair<TensorHead, std::string> bad[] = {
      {{DType::kBool, Shape{3}}, std::string("\0\1\2", 3)},
      {{DType::kString, Shape{1}}, std::string("\5\0\0\0\0\0\0\0abc", 11)},
      {{DType::kString, Shape{1}}, std::string("\1\0\0\0\0\0\0\0abc", 11)},
      {{DType::kString, Shape{2}}, std::string("\377\377\377\377\377\377\377\377", 8) + eight},
      {{DType::kResource, Shape{1}}, "no proto"},
  };
  uint32_t stream = 0;
  for (const auto& [head, body] : bad) {
    peer->Send(FrameType::kRequest, ++stream, MessageHeadOf(6, RunStepMeta({head}), {body.size()}), body);
    Came came;
    ASSERT_TRUE(peer->Read(came));
    ASSERT_TRUE(came.header.is(FrameType::kResponse));
    weir_remote::FieldReader fields(came.meta);
    std::string meta;
    while (fields.Next()) {
      if (fields.field() == 3) meta = fields.text();
    }
    const auto reply = DecodeReply(meta);
    ASSERT_TRUE(reply.ok()) << reply.status().ToString();
    EXPECT_EQ(reply->status.code(), Code::kInvalidArgument) << stream;
  }
  EXPECT_EQ(pair.fake->steps, 0);
}

TEST(WireRefusals, F249_StrangersMakeRoomForAGoodClient) {
  LocalEnd self;
  self.peer_timeout = std::chrono::milliseconds(WEIR_SANITIZER_KIND == 0 ? 1000 : 4000);
  const WirePair pair(self);
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(RawPeer::Dial(pair.listener->address()));
    if (i % 3 == 0) silent.back()->SendBytes("WEIR");  // half a frame
  }
  EXPECT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());
  // All are gone after the time for a handshake.
  for (const auto& peer : silent) peer->ReadToEnd();
  EXPECT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());
}

}  // namespace
}  // namespace weir::cluster
