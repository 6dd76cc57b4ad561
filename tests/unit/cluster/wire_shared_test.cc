// Large bodies through memory that both processes map: when it is used, and what a false peer gets.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/worker_messages.h"
#include "plugins/remote/shared_memory.h"
#include "tests/unit/cluster/raw_peer.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::Came;
using testing::In;
using testing::MessageHeadOf;
using testing::RawPeer;
using testing::RawServer;
using testing::SocketTransport;
using testing::StepOf;
using testing::WirePair;
using weir_remote::FrameType;

Tensor Pattern(int64_t bytes, int seed) {
  Result<Tensor> made = Tensor::Make(DType::kUint8, Shape{bytes});
  EXPECT_TRUE(made.ok()) << made.status();
  std::byte* const at = made->mutable_raw();
  for (int64_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>((i * 131 + seed) >> 3);
  return *std::move(made);
}

StepRequest StepWith(std::vector<Tensor> feeds, uint64_t step = 1) {
  StepRequest request;
  request.session = 5;
  request.part = 3;
  request.step = step;
  request.request = step;
  request.feeds = std::move(feeds);
  return request;
}

weir_remote::Identity NeighbourIdentity() {
  weir_remote::Identity own;
  own.job = "ps";
  own.incarnation = 0xabc;
  own.capabilities = weir_remote::kCanShareMemory;
  own.host = weir_remote::HostId();
  return own;
}

TEST(WireShared, F249_LargeTensorsCrossBitEqual) {
  for (const bool socket_only : {false, true}) {
    LocalEnd client;
    client.socket_only = socket_only;
    const WirePair pair({}, client);
    for (int round = 0; round < 3; ++round) {
      const std::vector<Tensor> feeds = {Pattern(70000 + round, round), Pattern(3 << 19, round), Pattern(3, round),
                                         Pattern((1 << 18) + 1, round)};
      const auto fetches = pair.Step(StepWith(feeds));
      ASSERT_TRUE(fetches.ok()) << fetches.status();
      ASSERT_EQ(fetches->size(), feeds.size());
      for (size_t i = 0; i < feeds.size(); ++i) EXPECT_TRUE((*fetches)[i].SameBits(feeds[i])) << round << " " << i;
    }
  }
}

TEST(WireShared, F249_ManyCallsShareTheMemory) {
  const WirePair pair;
  std::vector<std::promise<Result<std::vector<Tensor>>>> ended(8);
  std::vector<Tensor> sent;
  for (size_t i = 0; i < ended.size(); ++i) {
    sent.push_back(Pattern(300000 * static_cast<int64_t>(1 + i % 4), static_cast<int>(i)));
    pair.far->RunStep(StepWith({sent.back()}, i + 1), StepDone([&ended, i](Result<std::vector<Tensor>> result) {
                        ended[i].set_value(std::move(result));
                      }));
  }
  for (size_t i = 0; i < ended.size(); ++i) {
    const auto fetches = ended[i].get_future().get();
    ASSERT_TRUE(fetches.ok()) << fetches.status();
    EXPECT_TRUE(fetches->front().SameBits(sent[i])) << i;
  }
}

/// The bytes of the body of a step's feed, as a server that the test plays gets them; and which of them came in memory.
struct Taken {
  std::string body;
  size_t shared = 0;
};

/// Takes one request with a large body. Answers an offer of memory with `reason`, or opens it.
void TakeRequest(RawPeer& peer, const std::string& reason, std::unique_ptr<weir_remote::SharedView>& view, size_t bytes,
                 Taken& taken, uint32_t& stream) {
  taken = {};
  Came came;
  while (taken.body.size() < bytes) {
    ASSERT_TRUE(peer.Read(came));
    if (came.header.is(FrameType::kOpen)) {
      weir_remote::SharedOffer offer;
      ASSERT_TRUE(weir_remote::DecodeOffer(came.meta, offer).ok());
      ASSERT_TRUE(!reason.empty() || weir_remote::SharedView::Open(offer, view).ok());
      peer.Send(FrameType::kOpen, 0, weir_remote::EncodeAnswer({reason}));
    } else if (came.header.is(FrameType::kRequest)) {
      stream = came.header.stream;
    } else if ((came.header.flags & weir_remote::kFrameShared) != 0) {
      weir_remote::SharedChunk chunk;
      ASSERT_TRUE(weir_remote::DecodeChunk(came.meta, chunk).ok());
      ASSERT_NE(view, nullptr);
      std::string part(chunk.bytes, '\0');
      view->Take(chunk, std::as_writable_bytes(std::span(part)), bytes);
      taken.body += part;
      taken.shared += part.size();
    } else {
      taken.body += came.body;
    }
  }
}

void ReplyWithNothing(RawPeer& peer, uint32_t stream) {
  peer.Send(FrameType::kResponse, stream, MessageHeadOf(0, *Encode(WireReply()), {}));
}

/// How many bytes of a second step came through memory, by this answer to the offer.
size_t SharedBytesAfter(const weir_remote::Identity& identity, const std::string& reason) {
  constexpr size_t kBytes = 1 << 19;
  RawServer server;
  const auto far = *SocketTransport()->ConnectWorker({"ps", 0}, server.address(), {});
  std::unique_ptr<RawPeer> peer;
  std::unique_ptr<weir_remote::SharedView> view;
  Taken taken;
  for (int step = 1; step <= 3; ++step) {
    const Tensor feed = Pattern(kBytes, step);
    auto ended = std::async(std::launch::async, [&] { return StepOf(*far, StepWith({feed}, step)).status(); });
    if (!peer) {
      peer = server.Accept();
      EXPECT_TRUE(peer->Welcome(identity));
    }
    uint32_t stream = 0;
    TakeRequest(*peer, reason, view, kBytes, taken, stream);
    EXPECT_EQ(taken.body, std::string(reinterpret_cast<const char*>(feed.raw()), kBytes)) << step;
    ReplyWithNothing(*peer, stream);
    EXPECT_TRUE(ended.get().ok());
  }
  return taken.shared;
}

TEST(WireShared, F249_ANeighbourGetsTheBytesInMemory) {
  EXPECT_EQ(SharedBytesAfter(NeighbourIdentity(), ""), size_t{1} << 19);
}

TEST(WireShared, F249_OthersGetThemOverTheSocket) {
  EXPECT_EQ(SharedBytesAfter(NeighbourIdentity(), "no"), 0u);
  weir_remote::Identity stranger = NeighbourIdentity();
  stranger.host = "another machine";
  EXPECT_EQ(SharedBytesAfter(stranger, ""), 0u);
  stranger = NeighbourIdentity();
  stranger.capabilities = 0;
  EXPECT_EQ(SharedBytesAfter(stranger, ""), 0u);
}

TEST(WireShared, F249_AFalseOfferIsAnsweredWithTheReason) {
  const WirePair pair;
  const auto peer = RawPeer::Dial(pair.listener->address());
  weir_remote::Identity own = NeighbourIdentity();
  own.job = "";
  ASSERT_TRUE(peer->ShakeHands(own));
  // No descriptor of a process has this number.
  const weir_remote::SharedOffer offer{1, INT32_MAX, weir_remote::kSharedBytes, std::string(16, 's')};
  peer->Send(FrameType::kOpen, 0, weir_remote::EncodeOffer(offer));
  Came came;
  ASSERT_TRUE(peer->Read(came));
  weir_remote::SharedAnswer answer;
  ASSERT_TRUE(came.header.is(FrameType::kOpen) && weir_remote::DecodeAnswer(came.meta, answer).ok());
  EXPECT_NE(answer.reason.find("cannot be opened"), std::string::npos) << answer.reason;
  // The connection goes on; a place in memory that was refused ends it.
  peer->Send(FrameType::kRequest, 1, MessageHeadOf(1, "", {}));
  ASSERT_TRUE(peer->Read(came));
  EXPECT_TRUE(came.header.is(FrameType::kResponse));
  peer->Send(FrameType::kData, 1, weir_remote::EncodeChunk({0, 1}), "", weir_remote::kFrameShared);
  EXPECT_EQ(peer->ReadToEnd().first, static_cast<int>(Code::kInvalidArgument));
  EXPECT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());
}

TEST(WireShared, F249_PlacesBeyondTheMemoryEndTheConnection) {
  const WirePair pair;
  for (const weir_remote::SharedChunk& bad :
       {weir_remote::SharedChunk{weir_remote::kSlots, 1}, weir_remote::SharedChunk{0, weir_remote::kSlotBytes + 1},
        weir_remote::SharedChunk{1, 401}, weir_remote::SharedChunk{0, 0}}) {
    std::unique_ptr<weir_remote::SharedSource> source;
    ASSERT_TRUE(weir_remote::SharedSource::Make(source).ok());
    const auto peer = RawPeer::Dial(pair.listener->address());
    weir_remote::Identity own = NeighbourIdentity();
    own.job = "";
    ASSERT_TRUE(peer->ShakeHands(own));
    peer->Send(FrameType::kOpen, 0, weir_remote::EncodeOffer(source->offer()));
    Came came;
    weir_remote::SharedAnswer answer;
    ASSERT_TRUE(peer->Read(came) && weir_remote::DecodeAnswer(came.meta, answer).ok());
    EXPECT_EQ(answer.reason, "");
    WireRequest request;
    request.method = Method::kRunStep;
    request.tensors = {{DType::kFloat, Shape{100}}};
    peer->Send(FrameType::kRequest, 1, MessageHeadOf(6, *Encode(request), {400}));
    peer->Send(FrameType::kData, 1, weir_remote::EncodeChunk(bad), "", weir_remote::kFrameShared);
    EXPECT_EQ(peer->ReadToEnd().first, static_cast<int>(Code::kInvalidArgument));
  }
  EXPECT_TRUE(pair.far->GetStatus(In(testing::kSoon)).ok());
  EXPECT_EQ(pair.fake->steps, 0);
}

}  // namespace
}  // namespace weir::cluster
