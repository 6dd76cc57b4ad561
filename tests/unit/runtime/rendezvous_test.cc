#include "core/runtime/rendezvous.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::runtime {
namespace {

TEST(Rendezvous, KeysAreTensorFlows) {
  EXPECT_EQ(TransferKey("/job:a/task:0/device:CPU:0", 0x1f, "/job:b/task:1/device:CPU:0", "edge_5_v"),
            "/job:a/task:0/device:CPU:0;000000000000001f;/job:b/task:1/device:CPU:0;edge_5_v;");
  EXPECT_EQ(IterationKey({}), "0:0");
  const std::vector<Iteration> loop = {{"while/while_context", 7}};
  EXPECT_EQ(IterationKey(loop), "1496156560211570566:7");
  EXPECT_EQ(FrameHash(""), 9328806548029283899u);
  const std::vector<Iteration> nested = {{"outer", 3}, {"inner", 1}};
  EXPECT_EQ(IterationKey(nested), std::to_string(FrameHash(";0;outer;3;inner")) + ":1");
}

struct Taken {
  Status status;
  std::vector<float> values;
  int deaths = 0;
  Rendezvous::Received Next() {
    return Rendezvous::Received([this](const Result<Message>& came) {
      status = came.status();
      if (!came.ok()) return;
      deaths += came->dead ? 1 : 0;
      if (came->value.valid()) values.push_back(came->value.as<float>()[0]);
    });
  }
};

TEST(Rendezvous, MessagesOfAKeyComeInOrderAndOnce) {
  LocalRendezvous rendezvous;
  Taken taken;
  const Tensor one = Tensor::Scalar<float>(1);
  ASSERT_TRUE(rendezvous.Send("k", {one}).ok());
  ASSERT_TRUE(rendezvous.Send("k", {Tensor::Scalar<float>(2)}).ok());
  ASSERT_TRUE(rendezvous.Send("other", {Tensor::Scalar<float>(9)}).ok());
  for (int i = 0; i < 4; ++i) rendezvous.RecvAsync("k", taken.Next());
  EXPECT_EQ(taken.values, (std::vector<float>{1, 2}));
  ASSERT_TRUE(rendezvous.Send("k", {Tensor(), true}).ok());
  ASSERT_TRUE(rendezvous.Send("k", {Tensor::Scalar<float>(3)}).ok());
  EXPECT_EQ(taken.values, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(taken.deaths, 1);
}

TEST(Rendezvous, TheTensorItselfIsHandedOn) {
  LocalRendezvous rendezvous;
  const Tensor sent = Tensor::Vector<float>({1, 2, 3});
  const void* came = nullptr;
  rendezvous.RecvAsync("k", Rendezvous::Received([&](const Result<Message>& message) { came = message->value.raw(); }));
  ASSERT_TRUE(rendezvous.Send("k", {sent}).ok());
  EXPECT_EQ(came, sent.raw());
}

TEST(Rendezvous, AnAbortEndsAllWhoWaitAndAllWhoCome) {
  LocalRendezvous rendezvous;
  Taken waiting, late;
  rendezvous.RecvAsync("k", waiting.Next());
  rendezvous.Abort(Unavailable("the peer is gone"));
  rendezvous.Abort(Internal("too late"));
  EXPECT_EQ(waiting.status.code(), Code::kUnavailable);
  rendezvous.RecvAsync("k", late.Next());
  EXPECT_EQ(late.status.message(), "the peer is gone");
  EXPECT_EQ(rendezvous.Send("k", {}).code(), Code::kUnavailable);
}

TEST(Rendezvous, ItsEndCancelsPendingReceives) {
  Taken waiting;
  { LocalRendezvous().RecvAsync("k", waiting.Next()); }
  EXPECT_EQ(waiting.status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace weir::runtime
