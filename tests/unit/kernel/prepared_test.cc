#include "core/kernel/prepared.h"

#include <cmath>

#include "tests/unit/kernel/toy_ops.h"

namespace weir::kernel {
namespace {

// Results of the toy kernel, set by tests.
struct Answer {
  int32_t code = WEIR_OK;
  weir_prepared prepared{};
  int prepared_count = 0;
  int unprepared_count = 0;
  weir_prep_args seen{};
  std::vector<weir_operand> inputs;
  std::vector<std::vector<int64_t>> dims;
  int64_t constant = 0;
} answer;

int32_t Prepare(const void*, const weir_prep_args* args, weir_prepared* prepared, weir_error* error) {
  ++answer.prepared_count;
  answer.seen = *args;
  for (uint32_t i = 0; i < args->input_count; ++i) {
    answer.inputs.push_back(*args->inputs[i]);
    answer.dims.emplace_back(args->inputs[i]->shape.dims, args->inputs[i]->shape.dims + args->inputs[i]->shape.rank);
    if (args->inputs[i]->value != nullptr)
      answer.constant = *static_cast<const float*>(args->inputs[i]->value->buf.host);
  }
  if (answer.code != WEIR_OK) return device::Report(error, answer.code, "not today");
  const uint32_t capacity = prepared->struct_size;
  *prepared = answer.prepared;
  prepared->struct_size = capacity;
  return WEIR_OK;
}
void Unprepare(weir_prepared*) { ++answer.unprepared_count; }
int32_t Nothing(void*, const weir_reg*, const weir_env*) { return WEIR_OK; }

class PreparedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    answer = Answer();
    answer.prepared.fn = Nothing;
    record_ = ToyRecord("ToyAdd");
    record_.prepare = Prepare;
    record_.unprepare = Unprepare;
    record_.flags = WEIR_KERNEL_STATEFUL;
    entry_ = {&record_, "toy", "toy.so", 0};
  }
  Result<std::unique_ptr<PreparedKernel>> Make() {
    return PreparedKernel::Make(entry_, node_.node(), inputs_, outputs_, nullptr);
  }
  void Refused(std::string_view part) {
    const auto kernel = Make();
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.status().code(), Code::kInternal);
    EXPECT_NE(kernel.status().message().find(part), std::string::npos) << kernel.status().message();
    EXPECT_EQ(answer.unprepared_count, answer.prepared_count) << "what was prepared has to be given back";
  }

  weir_kernel record_{};
  KernelEntry entry_;
  ToyNode node_{"ToyAdd", {{"T", op::AttrValue(DType::kFloat)}}};
  Tensor one_ = Tensor::Of<float>(Shape::Of({1}), {1});
  std::vector<OperandSpec> inputs_ = {{.dtype = RefType(DType::kFloat), .shape = Shape::Of({2, 3}), .variable = true},
                                      {.dtype = DType::kFloat, .shape = Shape::Of({1}), .value = &one_, .host = true}};
  std::vector<OperandSpec> outputs_ = {{.dtype = DType::kFloat, .shape = Shape::Of({2, 3})}};
};

TEST_F(PreparedTest, GivesOperandsAndKeepsTheAnswer) {
  static const weir_alias alias{0, 0, WEIR_ALIAS_MAY, 0};
  answer.prepared.aliases = &alias;
  answer.prepared.alias_count = 1;
  answer.prepared.scratch_bytes = 100;
  answer.prepared.flags = WEIR_KERNEL_DETERMINISTIC;
  {
    auto kernel = Make();
    ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
    EXPECT_EQ((*kernel)->fn(), &Nothing);
    EXPECT_EQ((*kernel)->scratch_bytes(), 100u);
    EXPECT_EQ((*kernel)->scratch_alignment(), 64u);
    EXPECT_EQ((*kernel)->flags(), uint32_t{WEIR_KERNEL_STATEFUL | WEIR_KERNEL_DETERMINISTIC});
    EXPECT_EQ((*kernel)->aliases().size(), 1u);
    EXPECT_EQ((*kernel)->tiles(), 1u);
    EXPECT_EQ(answer.unprepared_count, 0);
  }
  EXPECT_EQ(answer.unprepared_count, 1);
  ASSERT_EQ(answer.inputs.size(), 2u);
  EXPECT_EQ(answer.seen.output_count, 1u);
  EXPECT_EQ(answer.inputs[0].dtype, uint32_t{WEIR_FLOAT32}) << "reference types do not cross";
  EXPECT_EQ(answer.inputs[0].flags, uint32_t{WEIR_OPERAND_VARIABLE});
  EXPECT_EQ(answer.inputs[0].space, uint32_t{WEIR_SPACE_DEVICE});
  EXPECT_EQ(answer.dims[0], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(answer.inputs[1].flags, uint32_t{WEIR_OPERAND_CONSTANT});
  EXPECT_EQ(answer.inputs[1].space, uint32_t{WEIR_SPACE_HOST});
  EXPECT_EQ(answer.constant, 1);
}

TEST_F(PreparedTest, F323_AsksForTheSameBitsWhereTheSessionDoes) {
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(answer.seen.deterministic, 0u);
  node_.node().deterministic = true;
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(answer.seen.deterministic, 1u);
}

TEST_F(PreparedTest, PassesOnThePluginsRefusal) {
  answer.code = WEIR_UNIMPLEMENTED;
  const auto kernel = Make();
  EXPECT_EQ(kernel.status().code(), Code::kUnimplemented);
  EXPECT_EQ(kernel.status().message(), "not today");
  EXPECT_EQ(answer.unprepared_count, 0) << "nothing was prepared";
  record_.prepare = nullptr;
  EXPECT_EQ(Make().status().code(), Code::kUnimplemented);
}

TEST_F(PreparedTest, RefusesWrongAliases) {
  weir_alias alias{2, 0, WEIR_ALIAS_MAY, 0};
  answer.prepared.aliases = &alias;
  answer.prepared.alias_count = 1;
  Refused("alias of input 2");
  alias = {0, 1, WEIR_ALIAS_MAY, 0};
  Refused("output 1");
  alias = {1, 0, WEIR_ALIAS_MAY, 0};
  Refused("output 0 of 24 bytes cannot share input 1 of 4 bytes");
  answer.prepared.aliases = nullptr;
  Refused("announced but missing");
  const weir_alias twice[] = {{0, 0, WEIR_ALIAS_MUST, 0}, {0, 0, WEIR_ALIAS_MUST, 0}};
  answer.prepared.aliases = twice;
  answer.prepared.alias_count = 2;
  Refused("two inputs at once");
}

TEST_F(PreparedTest, NoFunctionOnlyForViews) {
  answer.prepared.fn = nullptr;
  Refused("there is no function");
  static const weir_alias view{0, 0, WEIR_ALIAS_MUST, 0};
  answer.prepared.aliases = &view;
  answer.prepared.alias_count = 1;
  const auto kernel = Make();
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ((*kernel)->fn(), nullptr);
}

TEST_F(PreparedTest, RefusesOddScratchAlignment) {
  answer.prepared.scratch_bytes = 8;
  answer.prepared.scratch_alignment = 48;
  Refused("alignment 48");
}

TEST_F(PreparedTest, AsksSupportsAndEstimate) {
  EXPECT_TRUE(Supports(entry_, node_.node(), inputs_, outputs_, nullptr).ok());
  EXPECT_EQ(Estimate(entry_, node_.node(), inputs_, outputs_, nullptr, nullptr).status().code(), Code::kUnimplemented);
  record_.supports = [](const weir_prep_args* args, weir_error* error) -> int32_t {
    return args->inputs[0]->shape.rank == 2 ? device::Report(error, WEIR_UNIMPLEMENTED, "rank 2 is too much") : WEIR_OK;
  };
  const Status status = Supports(entry_, node_.node(), inputs_, outputs_, nullptr);
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_EQ(status.message(), "rank 2 is too much");

  static double flops;
  record_.estimate = [](const weir_prep_args*, const weir_profile*, weir_cost* cost, weir_error*) -> int32_t {
    cost->flops = flops;
    return WEIR_OK;
  };
  flops = 6;
  const auto cost = Estimate(entry_, node_.node(), inputs_, outputs_, nullptr, nullptr);
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->flops, 6);
  EXPECT_TRUE(std::isnan(cost->whole_ns)) << "what it did not say stays unknown";
  for (const double bad : {-1.0, HUGE_VAL, std::nan("")}) {
    flops = bad;
    EXPECT_EQ(Estimate(entry_, node_.node(), inputs_, outputs_, nullptr, nullptr).status().code(), Code::kInternal)
        << bad;
  }
}

}  // namespace
}  // namespace weir::kernel
