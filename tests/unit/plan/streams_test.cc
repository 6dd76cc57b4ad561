// The streams of instructions and the events between them, on tapes written by hand.
#include "core/plan/streams_internal.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/plan/lifetimes_internal.h"
#include "core/plan/stream_events_internal.h"
#include "core/plan/tape_builder_internal.h"
#include "tests/support/text_graph.h"

namespace weir::plan {
namespace {

int32_t OpenNothing(weir_str, const weir_opt*, uint64_t, weir_device** device, weir_error*) {
  static int opened;
  *device = reinterpret_cast<weir_device*>(&opened);
  return WEIR_OK;
}

weir_device_api DeviceApi() {
  weir_device_api api{};
  api.struct_size = sizeof(api);
  api.open = OpenNothing;
  api.close = [](weir_device*) {};
  return api;
}

weir_cost_api CostApi() {
  weir_cost_api api{};
  api.struct_size = sizeof(api);
  api.profile = [](weir_device*, weir_profile* profile, weir_error*) -> int32_t {
    profile->copy_engines = 1;
    return WEIR_OK;
  };
  return api;
}

/// A CPU (device 0), two devices with streams and copy engines (1 and 2), one with streams alone (3).
class StreamsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<graph::Definition> graph = testing::MakeGraph({{"n", "NoOp", {}}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    tape_.SetOrigin(*graph_->Find("n"));
    for (int d = 0; d < 4; ++d) {
      device::DeviceInfo info;
      info.flags = d == 0 ? WEIR_DEVICE_UNIFIED_MEMORY : 0;
      const bool copies = d == 1 || d == 2;
      devices_.push_back(
          std::make_unique<device::Device>(info, &api_, copies ? &cost_ : nullptr, device::MemoryOptions()));
      if (d != 0) devices_.back()->SetStreamApis({.stream = &streams_});
      plan_.devices.push_back(devices_.back().get());
    }
    plan_.host_device = devices_[0].get();
  }

  /// A value in the memory of a device, or (0) the host's.
  ValueId New(int device) {
    const SpaceId space = device == 0 ? kHostSpace : OwnSpace(DeviceId(device));
    return tape_.NewValue(DType::kFloat, PartialShape::Of({4}), space, Placing::kPlanned);
  }
  ValueId Fed() {
    const ValueId value = New(0);
    tape_.StorageAt(value).home = Storage::Home::kFeed;
    return value;
  }
  void Launch(int device, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) {
    Instruction& kernel = tape_.Emit(device == 0 ? Opcode::kKernel : Opcode::kStreamKernel, inputs, outputs);
    kernel.fn = [](void*, const weir_reg*, const weir_env*) -> int32_t { return WEIR_OK; };
    kernel.device = DeviceId(device);
    kernel.memory = device == 0 ? kHostSpace : OwnSpace(DeviceId(device));
    names_.push_back("k" + std::to_string(device));
  }
  /// The value in the memory of another device.
  ValueId Copy(ValueId from, int device) {
    const ValueId to = New(device);
    CopyTo(from, to);
    return to;
  }
  void CopyTo(ValueId from, ValueId to) {
    tape_.Emit(Opcode::kCopy, {from}, {to}).memory = tape_.StorageAt(to).space;
    names_.push_back("copy");
  }
  void Fetch(ValueId value) {
    tape_.Emit(Opcode::kFetch, {value}, {}).memory = tape_.StorageAt(value).space;
    names_.push_back("fetch");
  }
  void Repeat(uint32_t first) {
    tape_.AddLoop(first, FrameId(1));
    const uint32_t jump = tape_.AddJump(GuardId(1), first);
    tape_.Emit(Opcode::kRepeat, {}, {}).detail = jump;
    names_.push_back("repeat");
  }

  /// Plans the streams, and gives the tape as "k1@s0 +e0@s0 -e0@s1 -e0@host": kernels and copies with their stream,
  /// records and waits.
  std::string Planned() {
    instructions_of_.assign(1, {0, tape_.position()});
    PlanStreams(tape_.shape(), tape_.notes(), instructions_of_, plan_);
    std::string text;
    size_t next = 0;
    for (const Instruction& instruction : plan_.instructions) {
      const bool records = instruction.opcode == Opcode::kRecord, waits = instruction.opcode == Opcode::kWait;
      const std::string event = std::to_string(instruction.detail);
      text += text.empty() ? "" : " ";
      text += records ? "+e" + event : waits ? "-e" + event : names_[next++];
      if (instruction.stream.valid()) text += "@s" + std::to_string(instruction.stream.number());
      if (waits && !instruction.stream.valid()) text += "@host";
    }
    EXPECT_EQ(instructions_of_[0].end, plan_.instructions.size());
    EXPECT_EQ(tape_.notes().size(), plan_.instructions.size());
    EXPECT_EQ(tape_.shape().guards.size(), plan_.instructions.size());
    return text;
  }
  std::string Streams() const {
    std::string text;
    for (const PlannedStream& stream : plan_.streams) {
      const char* const use[] = {"computes", "uploads", "downloads"};
      text += std::string(text.empty() ? "" : " ") + std::to_string(stream.device.number()) + ":" +
              use[static_cast<int>(stream.use)];
    }
    return text;
  }
  bool IsApart(ValueId value) const { return tape_.StorageAt(value).apart; }

  const weir_device_api api_ = DeviceApi();
  const weir_cost_api cost_ = CostApi();
  const weir_stream_api streams_{};
  std::unique_ptr<graph::Definition> graph_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  ExecutionPlan plan_;
  TapeBuilder tape_{plan_};
  std::vector<std::string> names_;
  IndexedVector<graph::NodeId, Range> instructions_of_;
};

TEST_F(StreamsTest, ATapeOfTheHostHasNone) {
  const ValueId x = Fed(), y = New(0);
  Launch(0, {x}, {y});
  Fetch(y);
  EXPECT_EQ(Planned(), "k0 fetch");
  EXPECT_TRUE(plan_.streams.empty());
  EXPECT_EQ(plan_.event_count, 0u);
}

TEST_F(StreamsTest, CopiesWithNothingBesideThemStayOnTheComputingStream) {
  const ValueId x = Copy(Fed(), 1), y = New(1);
  Launch(1, {x}, {y});
  Fetch(y);
  EXPECT_EQ(Planned(), "copy@s0 k1@s0 fetch@s0");
  EXPECT_EQ(Streams(), "1:computes");
  EXPECT_FALSE(IsApart(x));
}

TEST_F(StreamsTest, AnUploadRunsBesideTheKernelThatDoesNotReadIt) {
  const ValueId x = Copy(Fed(), 1), w = Copy(Fed(), 1), a = New(1), y = New(1);
  Launch(1, {x}, {a});
  Launch(1, {a, w}, {y});
  Fetch(y);
  EXPECT_EQ(Planned(), "copy@s1 +e0@s1 copy@s1 +e1@s1 -e0@s0 k1@s0 -e1@s0 k1@s0 fetch@s0");
  EXPECT_EQ(Streams(), "1:computes 1:uploads");
  EXPECT_TRUE(IsApart(x));
  EXPECT_FALSE(IsApart(a)) << "one stream uses it";
}

TEST_F(StreamsTest, ALaterWaitImpliesTheEarlierOnes) {
  const ValueId x = Copy(Fed(), 1), w = Copy(Fed(), 1), a = New(1), b = New(1), y = New(1);
  Launch(1, {a}, {b});
  Launch(1, {w}, {a});
  Launch(1, {x}, {y});
  Launch(1, {w, x}, {b});
  EXPECT_EQ(Planned(), "copy@s1 copy@s1 +e0@s1 k1@s0 -e0@s0 k1@s0 k1@s0 k1@s0");
}

TEST_F(StreamsTest, ADownloadRunsBesideTheKernelsBehindIt) {
  const ValueId x = Copy(Fed(), 1), a = New(1), b = New(1), y = New(0);
  Launch(1, {x}, {a});
  const ValueId down = Copy(a, 0);
  Launch(1, {a}, {b});
  Launch(0, {down}, {y});
  Fetch(b);
  EXPECT_EQ(Planned(), "copy@s0 k1@s0 +e0@s0 -e0@s1 copy@s1 +e1@s1 k1@s0 +e2@s0 -e1@host k0 -e2@s1 fetch@s1");
  EXPECT_EQ(Streams(), "1:computes 1:downloads");
}

TEST_F(StreamsTest, ADownloadThatTheHostNeedsAtOnceStaysOnTheComputingStream) {
  const ValueId x = Copy(Fed(), 1), a = New(1), y = New(0);
  Launch(1, {x}, {a});
  const ValueId down = Copy(a, 0);
  Launch(0, {down}, {y});
  Launch(1, {x}, {a});
  EXPECT_EQ(Planned(), "copy@s0 k1@s0 copy@s0 +e0@s0 -e0@host k0 k1@s0");
}

TEST_F(StreamsTest, TheHostWaitsOnceForWhatItReadsTwice) {
  const ValueId x = Copy(Fed(), 3), a = New(3), y = New(0), z = New(0);
  Launch(3, {x}, {a});
  const ValueId down = Copy(a, 0);
  Launch(0, {down}, {y});
  Launch(0, {down}, {z});
  EXPECT_EQ(Planned(), "copy@s0 k3@s0 copy@s0 +e0@s0 -e0@host k0 k0");
  EXPECT_EQ(Streams(), "3:computes") << "it has no copy engines";
  const Instruction& wait = plan_.instructions[4];
  ASSERT_EQ(wait.outputs, 1) << "what the host waits for, which orders the tasks that read it behind the wait";
  EXPECT_EQ(plan_.slots[wait.first_slot].value, down);
}

TEST_F(StreamsTest, AWriteWaitsForTheReadersOnOtherStreams) {
  const ValueId x = Copy(Fed(), 1), a = New(1);
  Launch(1, {x}, {a});
  const ValueId down = Copy(a, 0);
  Launch(1, {x}, {a});  // a is overwritten
  Fetch(down);
  EXPECT_EQ(Planned(), "copy@s0 k1@s0 +e0@s0 -e0@s1 copy@s1 +e1@s1 -e1@s0 k1@s0 -e1@host fetch");
}

TEST_F(StreamsTest, AWaitUnderAGuardSaysNothingOutsideOfIt) {
  const ValueId x = Copy(Fed(), 1), a = New(1), b = New(1), c = New(1);
  Launch(1, {a}, {b});
  tape_.SetGuard(GuardId(1));
  Launch(1, {x}, {b});
  Launch(1, {x}, {c});
  tape_.SetGuard(kAlways);
  Launch(1, {x}, {b});
  Launch(1, {x}, {c});
  EXPECT_EQ(Planned(), "copy@s1 +e0@s1 k1@s0 -e0@s0 k1@s0 k1@s0 -e0@s0 k1@s0 k1@s0");
}

TEST_F(StreamsTest, InALoopACopyWaitsForTheIterationBefore) {
  const ValueId h = New(0), target = New(1), a = New(1);
  Launch(0, {}, {h});
  const uint32_t first = tape_.position();
  CopyTo(h, target);
  Launch(1, {target}, {a});
  Repeat(first);
  EXPECT_EQ(Planned(), "k0 -e1@s1 copy@s1 +e0@s1 -e0@s0 k1@s0 +e1@s0 repeat");
  ASSERT_EQ(tape_.shape().loops.size(), 1u);
  EXPECT_EQ(tape_.shape().loops[0].first, 1u) << "the wait is in the loop";
  EXPECT_EQ(tape_.shape().loops[0].last, 7u);
  EXPECT_EQ(plan_.jumps[0].target, 1u);
}

TEST_F(StreamsTest, WhatALoopReadsFromOutsideIsWaitedForInside) {
  const ValueId x = Copy(Fed(), 1), a = New(1), b = New(1);
  Launch(1, {a}, {b});
  const uint32_t first = tape_.position();
  Launch(1, {x}, {a});
  Repeat(first);
  Launch(1, {x}, {b});
  EXPECT_EQ(Planned(), "copy@s1 +e0@s1 k1@s0 -e0@s0 k1@s0 repeat k1@s0");
}

TEST_F(StreamsTest, ExchangedStoragesCountAsOne) {
  const ValueId x = Copy(Fed(), 1), y = New(1), a = New(1), b = New(1);
  Launch(1, {a}, {b});
  tape_.Emit(Opcode::kSwap, {}, {x, y});
  names_.push_back("swap");
  Launch(1, {y}, {a});
  Launch(1, {x}, {b});
  EXPECT_EQ(Planned(), "copy@s1 +e0@s1 k1@s0 swap -e0@s0 k1@s0 k1@s0");
  EXPECT_TRUE(IsApart(x));
  EXPECT_TRUE(IsApart(y));
}

TEST_F(StreamsTest, ReadersOfAMergeWaitForItsInputs) {
  const ValueId x = Copy(Fed(), 1), w = Copy(Fed(), 1), a = New(1), b = New(1);
  Launch(1, {a}, {b});
  const std::vector<ValueId> inputs = {x, w};
  const ValueId chosen = tape_.AddChoice(inputs, OwnSpace(DeviceId(1)));
  tape_.Emit(Opcode::kMerge, inputs, std::vector<ValueId>{chosen});
  names_.push_back("merge");
  Launch(1, {chosen}, {b});
  EXPECT_EQ(Planned(), "copy@s1 copy@s1 +e0@s1 k1@s0 merge -e0@s0 k1@s0") << "the later event stands for both";
}

TEST_F(StreamsTest, CopiesBetweenDevicesOrderTheirComputingStreams) {
  const ValueId x = Copy(Fed(), 1), a = New(1), y = New(2);
  Launch(1, {x}, {a});
  const ValueId there = Copy(a, 2);
  Launch(2, {there}, {y});
  EXPECT_EQ(Planned(), "copy@s0 k1@s0 copy@s1 k2@s1") << "the run has no event of the plan for them";
  EXPECT_FALSE(IsApart(there));
}

TEST_F(StreamsTest, StoragesApartShareNoMemory) {
  const ValueId x = Copy(Fed(), 1), a = New(1), b = New(1);
  Launch(1, {a}, {b});
  Launch(1, {x}, {b});
  const ValueId late = Copy(Fed(), 1);  // x is dead by now, but the kernel that reads it may still run
  Launch(1, {late}, {b});
  EXPECT_EQ(Planned(), "copy@s1 +e0@s1 k1@s0 -e0@s0 k1@s0 copy@s1 +e1@s1 -e1@s0 k1@s0");
  ASSERT_TRUE(LayOutArena(tape_.shape(), plan_).ok());
  EXPECT_NE(tape_.StorageAt(x).offset, tape_.StorageAt(late).offset);
  EXPECT_EQ(plan_.arena_bytes[OwnSpace(DeviceId(1))], 4u * 64) << "a, b, x and late";
}

TEST_F(StreamsTest, ACopyThatNothingReadsSharesNoMemory) {
  const ValueId up = Copy(Fed(), 1), a = New(1), b = New(1), y = New(0), z = New(0);
  Launch(1, {}, {a});
  const ValueId w = Copy(Fed(), 1);
  Launch(1, {a, w}, {b});
  const ValueId down = Copy(b, 0);
  Launch(1, {b}, {a});
  Launch(0, {}, {y});
  Launch(0, {y}, {z});
  EXPECT_EQ(Planned(), "copy@s1 k1@s0 copy@s1 +e0@s1 -e0@s0 k1@s0 +e1@s0 -e1@s2 copy@s2 k1@s0 k0 k0");
  EXPECT_TRUE(IsApart(up)) << "the memory is in the order of the computing stream";
  EXPECT_TRUE(IsApart(down)) << "the memory is in the order of the host";
  EXPECT_FALSE(IsApart(a));
  ASSERT_TRUE(LayOutArena(tape_.shape(), plan_).ok());
  for (const ValueId other : {a, b, w}) EXPECT_NE(tape_.StorageAt(up).offset, tape_.StorageAt(other).offset);
  for (const ValueId other : {y, z}) EXPECT_NE(tape_.StorageAt(down).offset, tape_.StorageAt(other).offset);
}

TEST_F(StreamsTest, ACallKeepsTheStreamsOfCopies) {
  const ValueId x = Copy(Fed(), 1), w = Copy(Fed(), 1), a = New(1), y = New(1);
  const auto call = [&](const std::vector<ValueId>& inputs, ValueId output) {
    tape_.StorageAt(output).home = Storage::Home::kOwned;
    tape_.Emit(Opcode::kCall, inputs, std::vector<ValueId>{output}).device = DeviceId(1);
    names_.push_back("call");
  };
  call({x}, a);
  call({a, w}, y);
  Fetch(y);
  EXPECT_EQ(Planned(), "copy@s1 +e0@s1 copy@s1 +e1@s1 -e0@s0 call@s0 -e1@s0 call@s0 fetch@s0");
  EXPECT_EQ(Streams(), "1:computes 1:uploads");
}

TEST_F(StreamsTest, AKernelMayWorkInPlaceOfWhatWasHandedOverToItsStream) {
  const ValueId x = Copy(Fed(), 1), a = New(1), b = New(1), y = New(1), z = New(1);
  Launch(1, {a}, {b});
  Launch(1, {x}, {y});
  tape_.AllowSharing(0, 0);
  const ValueId down = Copy(b, 0);  // beside the next kernel
  Launch(1, {b}, {z});
  tape_.AllowSharing(0, 0);
  Fetch(down);
  EXPECT_EQ(Planned(), "copy@s1 +e0@s1 k1@s0 +e1@s0 -e0@s0 k1@s0 -e1@s2 copy@s2 +e2@s2 k1@s0 -e2@host fetch");
  ASSERT_TRUE(LayOutArena(tape_.shape(), plan_).ok());
  EXPECT_EQ(tape_.StorageAt(x).offset, tape_.StorageAt(y).offset);
  EXPECT_NE(tape_.StorageAt(b).offset, tape_.StorageAt(z).offset) << "the copy may still read it";
}

}  // namespace
}  // namespace weir::plan
