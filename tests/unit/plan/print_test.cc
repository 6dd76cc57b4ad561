// The text of plans, on tapes written by hand: what each instruction, task and memory shows.
#include "tests/unit/plan/hand_tape.h"

namespace weir::plan {
namespace {

class PrintTest : public HandTape {
 protected:
  /// The text without what every plan has in front: the first line, spaces and tasks are kept.
  std::string Text() const { return ToString(plan_); }
  /// The lines of instructions, with one space between words and without the node's name.
  std::string Tape() const {
    std::string text, line;
    const std::string all = ToString(plan_);
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = all.find('\n', begin);
      line = all.substr(begin, end - begin);
      begin = end + 1;
      if (!line.starts_with(' ')) continue;
      std::string words;
      for (const char c : line) {
        if (c == ' ' && (words.empty() || words.back() == ' ')) continue;
        words += c;
      }
      if (words.ends_with(' ')) words.pop_back();
      const size_t name = words.find(" n ");
      if (name != std::string::npos) words.replace(name, 3, " ");
      if (words.ends_with(" n")) words.resize(words.size() - 2);
      text += words + "\n";
    }
    return text;
  }
};

TEST_F(PrintTest, ValuesShowTypeShapeAndPlace) {
  const ValueId fed = Fed(), constant = tape_.AddConstant(Tensor::Vector<int32_t>({1, 2})), planned = New();
  const ValueId owned = tape_.NewValue(DType::kString, PartialShape(), kHostSpace, Placing::kAtRun);
  tape_.StorageAt(planned).offset = 192;
  tape_.StorageAt(fed).feed = 3;
  Emit(Opcode::kMove, {fed, constant}, {planned, owned});
  tape_.MakeFresh(planned);
  Emit(Opcode::kMove, {}, {planned});
  EXPECT_EQ(Tape(),
            "0 move %0 float[16] feed3 %1 int32[2] const -> %2 float[16] fresh %3 string[*] owned\n"
            "1 move -> %2 float[16] fresh\n");
}

TEST_F(PrintTest, MemoryOfADeviceIsNamed) {
  const ValueId away = tape_.NewValue(DType::kFloat, PartialShape::Of({2}), OwnSpace(DeviceId(1)), Placing::kPlanned);
  Emit(Opcode::kMove, {New()}, {away});
  plan_.arena_bytes = {64, 0, 128};
  EXPECT_EQ(Tape(), "0 move %1 float[16] @0 -> %0 float[2] @0 in 1\n");
  EXPECT_TRUE(Text().starts_with("tier T0, 1 instructions, 2 values, arena host 64 space 1 128\n")) << Text();
}

TEST_F(PrintTest, GuardsSayWhatTheyComputeFrom) {
  const ValueId p = New();
  const auto guard = [&](GuardStep step, const std::vector<ValueId>& inputs = {}) {
    plan_.guard_steps.push_back(step);
    Emit(Opcode::kGuard, inputs, {}).detail = static_cast<uint32_t>(plan_.guard_steps.size() - 1);
  };
  guard({GuardStep::Kind::kPredicate, GuardId(1), GuardId(2), kAlways, kAlways}, {p});
  guard({GuardStep::Kind::kAnd, GuardId(3), kAlways, GuardId(1), GuardId(2)});
  guard({GuardStep::Kind::kOr, GuardId(3), kAlways, GuardId(3), GuardId(1)});
  guard({GuardStep::Kind::kCopy, GuardId(4), kAlways, GuardId(3)});
  guard({GuardStep::Kind::kClear, GuardId(4)});
  EXPECT_EQ(Tape(),
            "0 guard %0 float[16] @0 g1 else g2 under g0\n"
            "1 guard g3 = g1 and g2\n"
            "2 guard g3 = g3 or g1\n"
            "3 guard g4 = g3\n"
            "4 guard g4 = 0\n");
}

TEST_F(PrintTest, JumpsSayWhereAndWhen) {
  Emit(Opcode::kSkip, {}, {}).detail = tape_.AddJump(GuardId(2), 5);
  Emit(Opcode::kRepeat, {}, {}).detail = tape_.AddJump(GuardId(1), 0);
  EXPECT_EQ(Tape(), "0 skip to 5 unless g2\n1 repeat to 0 if g1\n");
}

TEST_F(PrintTest, StacksAndDonatedMemoryHaveNumbers) {
  const ValueId made = New();
  tape_.StorageAt(made).home = Storage::Home::kMade;
  tape_.StorageAt(made).made = MadeId(2);
  Emit(Opcode::kMake, {}, {}).detail = 2;
  Emit(Opcode::kStack, {}, {}).detail = 1;
  Emit(Opcode::kPush, {made}, {}).detail = 1;
  Emit(Opcode::kPop, {}, {made}).detail = 0;
  EXPECT_EQ(Tape(),
            "0 make made2\n1 stack stack1\n2 push %0 float[16] made2 stack1\n3 pop -> %0 float[16] made2 stack0\n");
}

TEST_F(PrintTest, TransfersShowKeysLoopsAndGuards) {
  plan_.transfers.push_back({"a;1;b;x;", {"outer", "inner"}, GuardId(1)});
  plan_.transfers.push_back({"b;2;a;y;", {}, GuardId(3)});
  Emit(Opcode::kSend, {New()}, {}).detail = 0;
  Emit(Opcode::kRecv, {}, {New()}).detail = 1;
  EXPECT_EQ(Tape(),
            "0 send %0 float[16] @0 a;1;b;x;outer;inner if g1\n"
            "1 recv -> %1 float[16] @0 b;2;a;y; sets g3\n");
}

TEST_F(PrintTest, EventsAndStreams) {
  Instruction& record = Emit(Opcode::kRecord, {}, {});
  record.detail = 4;
  record.stream = StreamId(1);
  Emit(Opcode::kWait, {}, {}).detail = 4;
  EXPECT_EQ(Tape(), "0 record event 4 on stream 1\n1 wait event 4\n");
}

TEST_F(PrintTest, LocksAreInTheOrderOfVariables) {
  const ValueId v = Variable(), w = Variable();
  Instruction& assign = Emit(Opcode::kAssign, {v, w}, {});
  tape_.SetLocks({{tape_.VariableOf(w), false}, {tape_.VariableOf(v), true}}, assign);
  plan_.instructions.back().serialized = true;
  for (VariableUse& use : plan_.variables) use.node = graph_->Find("n");
  plan_.variables[VariableId(1)].choices = {VariableId(0), VariableId(3)};
  EXPECT_EQ(Tape(), "0 assign %0 float[*] var0 %1 float[*] var1 locks var0, shared var1 serialized\n");
  EXPECT_NE(Text().find("var1 n <unknown> one of var0, var3\n"), std::string::npos) << Text();
}

TEST_F(PrintTest, TasksAndTheOtherTier) {
  const ValueId x = Fed();
  const uint32_t first = tape_.position();
  const auto move = [&](const std::vector<ValueId>& from, double us) {
    const ValueId to = New();
    Emit(Opcode::kMove, from, {to}, {.ns = us * 1e3});
    return to;
  };
  const ValueId a = move({x}, 150), b = move({x}, 150);
  move({a, b}, 10);
  Repeat(first);
  Emit(Opcode::kMove, {x}, {New()}, {.ns = 1e3, .blocks = true});
  Cut();
  auto other = std::make_shared<ExecutionPlan>();
  other->arena_bytes = {640};
  plan_.other = other;
  const std::string text = Text();
  EXPECT_NE(text.find("tier T2, 5 instructions, 5 values, arena none\n"
                      "or tier T0, whichever runs prove to be faster, arena host 640\n"
                      "task 0 [0,4) after 0 loop of 3 tasks [0,3)\n"
                      "task 1 [0,1) after 0 before 3 in the body of 0\n"
                      "task 2 [1,2) after 0 before 3 in the body of 0\n"
                      "task 3 [2,3) after 2 in the body of 0\n"
                      "task 4 [4,5) after 0 blocking\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace weir::plan
