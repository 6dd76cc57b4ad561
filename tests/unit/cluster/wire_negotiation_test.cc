// Two transports to one task: which one is used, and what is said when the preferred one is not.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/negotiated_transport.h"
#include "core/plugin/catalogue.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::FakeWorker;
using testing::In;
using testing::Until;

const TaskName kNamed{"ps", 0};

/// The shipped plugins and the toy.
const plugin::Catalogue& BothTransports() {
  static const std::unique_ptr<plugin::Catalogue> catalogue = [] {
    config::Config config;
    config.plugins.isa = testing::TestIsa();
    plugin::LoadOptions options = session::LoadOptionsFrom(config);
    options.folders = plugin::SearchPath();
    options.folders.insert(options.folders.begin(), WEIR_TOY_TRANSPORT);
    return plugin::Catalogue::Load(*testing::RuntimeOf({"worker", 0})->ops, options);
  }();
  return *catalogue;
}

/// The toy's table with a count of calls and a switch that cuts it off.
std::atomic<int> toy_calls{0};
std::atomic<bool> toy_cut{false};
const weir_transport_api* real_toy = nullptr;

uint64_t CountedCall(weir_channel* channel, const weir_message* request, uint32_t flags, uint64_t time_left_ms,
                     const weir_receiver* receiver) {
  ++toy_calls;
  if (!toy_cut) return real_toy->call(channel, request, flags, time_left_ms, receiver);
  constexpr std::string_view kCut = "the cable is cut";
  receiver->done(receiver->ctx, WEIR_UNAVAILABLE, {kCut.data(), kCut.size()});
  return 0;
}

class Negotiation : public ::testing::Test {
 protected:
  void SetUp() override {
    toy_calls = 0;
    toy_cut = false;
  }
  /// "toy+weir" with a toy that can be cut.
  std::shared_ptr<Transport> Both() {
    std::shared_ptr<PluginTransport> toy, base;
    for (kernel::TransportEntry entry : BothTransports().transports()) {
      if (entry.plugin != "toy_transport") {
        base = MakeTransport(std::move(entry), ByteBudget::OfProcess());
        continue;
      }
      real_toy = entry.api;
      static weir_transport_api counted;
      counted = *entry.api;
      counted.call = &CountedCall;
      entry.api = &counted;
      toy = MakeTransport(std::move(entry), ByteBudget::OfProcess());
    }
    EXPECT_TRUE(toy != nullptr && base != nullptr);
    return MakeNegotiated({toy}, base, Note());
  }
  TransportNote Note() {
    return [this](const std::string& text) {
      const std::lock_guard<std::mutex> lock(mutex_);
      notes_ += text + "\n";
    };
  }
  std::string notes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return notes_;
  }
  std::unique_ptr<Listener> Listen(Transport& transport) {
    LocalEnd self;
    self.task = kNamed;
    fake_->status.incarnation = 7;
    auto made = transport.Listen({fake_, nullptr}, {"localhost:0", -1, self});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? *std::move(made) : nullptr;
  }
  static Status StepBy(Worker& worker) {
    StepRequest request;
    request.feeds = {Tensor::Vector<float>({1, 2, 3}), Tensor::String("text")};
    const auto got = testing::StepOf(worker, request);
    if (got.ok()) {
      EXPECT_TRUE((*got)[0].SameBits(request.feeds[0]));
      EXPECT_TRUE((*got)[1].SameBits(request.feeds[1]));
    }
    return got.status();
  }

  const std::shared_ptr<FakeWorker> fake_ = std::make_shared<FakeWorker>(kNamed);

 private:
  std::mutex mutex_;  // protects notes_
  std::string notes_;
};

TEST_F(Negotiation, F334_F120_APreferredTransportOfBothSidesIsUsed) {
  const auto both = Both();
  EXPECT_EQ(both->scheme(), "toy+weir");
  const auto listener = Listen(*both);
  const auto far = *both->ConnectWorker(kNamed, listener->address(), {});
  ASSERT_TRUE(far->GetStatus(In(testing::kSoon)).ok());
  const int before = toy_calls;
  EXPECT_TRUE(StepBy(*far).ok());
  EXPECT_TRUE(testing::ReceiveFrom(*far, "k").ok());
  EXPECT_EQ(toy_calls, before + 2);
  EXPECT_EQ(notes(), "");
}

TEST_F(Negotiation, F258_ATaskWithoutThePreferredTransportIsCalledByTheBase) {
  const auto listener = Listen(*testing::SocketTransport());
  const auto far = *Both()->ConnectWorker(kNamed, listener->address(), {});
  ASSERT_TRUE(far->GetStatus(In(testing::kSoon)).ok());
  EXPECT_TRUE(StepBy(*far).ok());
  EXPECT_EQ(toy_calls, 0);
  EXPECT_EQ(notes(),
            "/job:ps/replica:0/task:0: the transport 'toy' is not used: the task does not offer it; 'weir' is used "
            "instead\n");
}

TEST_F(Negotiation, F258_APreferredTransportThatDoesNotWorkIsLeftOut) {
  const auto both = Both();
  const auto listener = Listen(*both);
  toy_cut = true;
  const auto far = *both->ConnectWorker(kNamed, listener->address(), {});
  ASSERT_TRUE(far->GetStatus(In(testing::kSoon)).ok());
  EXPECT_NE(notes().find("'toy' is not used: the cable is cut; 'weir' is used instead"), std::string::npos) << notes();
  const int before = toy_calls;
  EXPECT_TRUE(StepBy(*far).ok());
  EXPECT_EQ(toy_calls, before);
}

TEST_F(Negotiation, F258_APreferredTransportThatFailsLaterIsLeft) {
  const auto both = Both();
  const auto listener = Listen(*both);
  const auto far = *both->ConnectWorker(kNamed, listener->address(), {});
  ASSERT_TRUE(far->GetStatus(In(testing::kSoon)).ok());
  ASSERT_TRUE(StepBy(*far).ok());
  toy_cut = true;
  EXPECT_EQ(StepBy(*far).code(), Code::kUnavailable);  // it may have run: it is not sent again
  EXPECT_NE(notes().find("'weir' is used from now on: the cable is cut"), std::string::npos) << notes();
  EXPECT_TRUE(StepBy(*far).ok());
}

TEST_F(Negotiation, F334_ATransportThatNoPluginBringsIsNamed) {
  const auto fallback = FindTransport(BothTransports(), "rdma+weir", Note());
  ASSERT_TRUE(fallback.ok()) << fallback.status().ToString();
  EXPECT_EQ((*fallback)->scheme(), "weir");
  EXPECT_NE(notes().find("no plugin brings the transport 'rdma'; there are: toy, weir"), std::string::npos) << notes();
  EXPECT_NE(notes().find("'weir' is used instead"), std::string::npos) << notes();
  const Status none = FindTransport(BothTransports(), "rdma").status();
  EXPECT_EQ(none.code(), Code::kNotFound);
  const auto found = FindTransport(BothTransports(), "toy+weir", Note());
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ((*found)->scheme(), "toy+weir");
}

}  // namespace
}  // namespace weir::cluster
