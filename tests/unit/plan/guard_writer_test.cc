// When guard bytes are set on a tape, and where values are copied to other memories.
#include "core/plan/emit_context_internal.h"
#include "tests/unit/plan/hand_tape.h"

namespace weir::plan {
namespace {

using graph::Endpoint;

class GuardWriterTest : public HandTape {
 protected:
  /// The guard instructions: "g3 = g1 and g2", one after the other.
  std::string Steps() const {
    std::string text;
    for (const GuardStep& step : plan_.guard_steps) {
      text += text.empty() ? "" : "; ";
      const int to = step.to.number(), a = step.a.number(), b = step.b.number();
      text += step.kind == GuardStep::Kind::kAnd     ? fmt::format("g{} = g{} and g{}", to, a, b)
              : step.kind == GuardStep::Kind::kOr    ? fmt::format("g{} = g{} or g{}", to, a, b)
              : step.kind == GuardStep::Kind::kCopy  ? fmt::format("g{} = g{}", to, a)
              : step.kind == GuardStep::Kind::kClear ? fmt::format("g{} = 0", to)
                                                     : fmt::format("g{} else g{}", to, step.otherwise.number());
    }
    return text;
  }

  StepGuards guards_;
  GuardWriter writer_{guards_, tape_};
  const Endpoint p_{1, 0}, q_{2, 0};
};

TEST_F(GuardWriterTest, AConjunctionIsSetOnceFromItsParts) {
  const GuardId p = guards_.set.With(kAlways, p_, true), q = guards_.set.With(kAlways, q_, false);
  const GuardId both = guards_.set.And(p, q);
  writer_.MarkSet(p);  // as a Switch does
  writer_.MarkSet(q);
  writer_.Under(both);
  Kernel({});
  writer_.Under(both);
  Kernel({});
  EXPECT_EQ(Steps(), fmt::format("g{} = g{} and g{}", both.number(), p.number(), q.number()));
  EXPECT_EQ(plan_.instructions[0].opcode, Opcode::kGuard);
  EXPECT_EQ(tape_.shape().guards, (std::vector<GuardId>{kAlways, both, both})) << "guards themselves are always set";
}

TEST_F(GuardWriterTest, PartsOfPartsComeFirst) {
  const GuardId p = guards_.set.With(kAlways, p_, true), q = guards_.set.With(kAlways, q_, true);
  const GuardId r = guards_.set.With(kAlways, {3, 0}, true);
  const GuardId pq = guards_.set.And(p, q), pqr = guards_.set.And(pq, r);
  for (const GuardId guard : {p, q, r}) writer_.MarkSet(guard);
  writer_.Ensure(pqr);
  EXPECT_EQ(Steps(), fmt::format("g{} = g{} and g{}; g{} = g{} and g{}", pq.number(), p.number(), q.number(),
                                 pqr.number(), pq.number(), r.number()));
  EXPECT_TRUE(writer_.IsSet(pq));
}

TEST_F(GuardWriterTest, TheConstantGuardAndThoseOfSwitchesNeedNothing) {
  writer_.Ensure(kAlways);
  writer_.Ensure(guards_.set.With(kAlways, p_, true));
  EXPECT_EQ(Steps(), "");
}

TEST_F(GuardWriterTest, WhatALoopSetsIsForgottenBehindIt) {
  const GuardId p = guards_.set.With(kAlways, p_, true), q = guards_.set.With(kAlways, q_, true);
  const GuardId both = guards_.set.And(p, q);
  writer_.MarkSet(p);
  writer_.MarkSet(q);
  const IndexedVector<GuardId, bool> before = writer_.Sets();
  writer_.Ensure(both);
  EXPECT_TRUE(writer_.IsSet(both));
  writer_.Restore(before);
  EXPECT_FALSE(writer_.IsSet(both));
  EXPECT_TRUE(writer_.IsSet(p));
  writer_.Ensure(both);
  EXPECT_EQ(plan_.guard_steps.size(), 2u) << "set again";
}

TEST_F(GuardWriterTest, BytesAreClearedCopiedAndJoined) {
  const GuardId a = guards_.set.Of({RunCondition::Kind::kReturns, 1}),
                b = guards_.set.Of({RunCondition::Kind::kLive, 2});
  writer_.Clear(a);
  writer_.Or(a, b);
  writer_.Copy(b, a);
  EXPECT_EQ(Steps(), fmt::format("g{0} = 0; g{0} = g{0} or g{1}; g{1} = g{0}", a.number(), b.number()));
  EXPECT_TRUE(writer_.IsSet(b));
}

TEST_F(GuardWriterTest, StringsStayOnTheHostAndCopiesAreShared) {
  device::DeviceInfo info;
  const weir_device_api api{};
  device::Device device(info, &api, nullptr, device::MemoryOptions());
  plan_.devices = {nullptr, &device};
  const PlanOptions options;
  graph::Placement placement;
  EmitContext context(options, step_, placement, guards_, tape_);
  const SpaceId away = OwnSpace(DeviceId(1));
  const ValueId text = tape_.NewScalar(DType::kString, Placing::kAtRun), x = New();
  EXPECT_EQ(*context.Located(text, away), text);
  EXPECT_EQ(*context.Located(x, kHostSpace), x) << "it is there";
  const GuardId p = guards_.set.With(kAlways, p_, true);
  tape_.SetGuard(p);
  const ValueId guarded = *context.Located(x, away);
  EXPECT_NE(guarded, x);
  EXPECT_EQ(*context.Located(x, away), guarded) << "copied once";
  tape_.SetGuard(kAlways);
  const ValueId always = *context.Located(x, away);
  EXPECT_NE(always, guarded) << "the copy under the guard may not have been made";
  tape_.SetGuard(p);
  EXPECT_EQ(*context.Located(x, away), always);
  EXPECT_EQ(plan_.instructions.size(), 2u);
  const ValueId v = Variable();
  EXPECT_NE(*context.Located(v, away), *context.Located(v, away)) << "a variable may change between two reads";
  EXPECT_EQ(plan_.LocksOf(plan_.instructions.back()).size(), 1u);
}

}  // namespace
}  // namespace weir::plan
