#include <atomic>
#include <thread>

#include "core/base/errors.h"
#include "core/kernel/context.h"
#include "core/tensor/buffer.h"
#include "tests/unit/kernel/toy_ops.h"

namespace weir::kernel {
namespace {

using ComputeFn = int32_t (*)(void* state, weir_ctx* ctx, weir_error* error);

// Device memory for these tests: counts the requested bytes.
class CountingAllocator : public Allocator {
 public:
  Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override {
    ++calls;
    if (bytes > limit) return ResourceExhausted("the toy has {} bytes, {} were asked for", limit, bytes);
    return HostAllocator().Allocate(bytes);
  }
  int calls = 0;
  uint64_t limit = 1 << 20;
};

class DynamicTest : public ::testing::Test {
 protected:
  void Use(std::string_view op, op::AttrList attrs, ComputeFn compute) {
    node_ = std::make_unique<ToyNode>(op, std::move(attrs));
    record_ = ToyRecord(op);
    record_.compute = compute;
    entry_ = {&record_, "toy", "toy.so", 0};
  }
  void UseAdd(ComputeFn compute) { Use("ToyAdd", {{"T", op::AttrValue(DType::kFloat)}}, compute); }
  Result<std::vector<Tensor>> Run(std::vector<Tensor> inputs, std::vector<DType> types) {
    WEIR_ASSIGN(auto kernel, DynamicKernel::Make(entry_, node_->node(), nullptr));
    return kernel->Compute(std::move(inputs), types,
                           {.allocator = &allocator_, .step_id = 42, .cancellation = &cancellation_});
  }

  std::unique_ptr<ToyNode> node_;
  weir_kernel record_{};
  KernelEntry entry_;
  CountingAllocator allocator_;
  runtime::Cancellation cancellation_;
};

weir_tensor In(weir_ctx* ctx, uint32_t i) {
  weir_tensor tensor{};
  tensor.struct_size = sizeof(tensor);
  EXPECT_EQ(HostTable().input(ctx, i, &tensor), WEIR_OK);
  return tensor;
}

weir_tensor Out(weir_ctx* ctx, uint32_t i, std::vector<int64_t> dims, weir_error* error, int32_t wanted = WEIR_OK) {
  weir_tensor tensor{};
  tensor.struct_size = sizeof(tensor);
  const weir_shape shape{static_cast<uint32_t>(dims.size()), 0, dims.data()};
  EXPECT_EQ(HostTable().output(ctx, i, &shape, &tensor, error), wanted);
  return tensor;
}

TEST_F(DynamicTest, OutputShapeFromData) {
  UseAdd([](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
    const weir_tensor x = In(ctx, 0);
    EXPECT_NE(x.flags & WEIR_TENSOR_READ_ONLY, 0u);
    const weir_tensor z = Out(ctx, 0, {x.dims[0] - 1, 1}, error);
    EXPECT_EQ(z.flags & WEIR_TENSOR_READ_ONLY, 0u);
    for (int64_t i = 0; i + 1 < x.dims[0]; ++i) {
      static_cast<float*>(z.buf.host)[i] = static_cast<const float*>(x.buf.host)[i + 1];
    }
    EXPECT_EQ(HostTable().step_id(ctx), 42);
    EXPECT_EQ(HostTable().cancelled(ctx), 0);
    return WEIR_OK;
  });
  const auto outputs = Run({Tensor::Vector<float>({1, 2, 3}), Tensor::Scalar<float>(0)}, {DType::kFloat});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_TRUE((*outputs)[0].SameBits(Tensor::Of<float>(Shape::Of({2, 1}), {2, 3})));
  EXPECT_EQ(allocator_.calls, 1);
}

TEST_F(DynamicTest, ListInputsAndStrings) {
  Use("ToyJoin", {{"N", op::AttrValue(int64_t{2})}, {"T", op::AttrValue(DType::kString)}},
      [](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
        uint32_t first = 9, count = 9;
        EXPECT_EQ(HostTable().input_range(ctx, Str("values"), &first, &count), WEIR_OK);
        EXPECT_EQ(first, 0u);
        EXPECT_EQ(count, 2u);
        EXPECT_EQ(HostTable().input_range(ctx, Str("axis"), &first, &count), WEIR_OK);
        EXPECT_EQ(first, 2u);
        EXPECT_EQ(HostTable().input_range(ctx, Str("none"), &first, &count), WEIR_NOT_FOUND);
        std::string joined;
        for (uint32_t i = 0; i < 2; ++i) {
          const weir_tensor in = In(ctx, i);
          EXPECT_EQ(in.buf.host, nullptr) << "the layout of strings is not shown";
          EXPECT_EQ(HostTable().string_visit(
                        &in,
                        [](void* arg, uint64_t, weir_str text) -> int32_t {
                          *static_cast<std::string*>(arg) += Text(text);
                          return 0;
                        },
                        &joined),
                    WEIR_OK);
          EXPECT_EQ(HostTable().string_set(&in, 0, Str("no")), WEIR_FAILED_PRECONDITION);
        }
        const weir_tensor all = Out(ctx, 0, {}, error);
        EXPECT_EQ(HostTable().string_set(&all, 0, Str(joined)), WEIR_OK);
        EXPECT_EQ(HostTable().string_set(&all, 1, Str("x")), WEIR_OUT_OF_RANGE);
        const weir_tensor texts = Out(ctx, 1, {2}, error);
        EXPECT_EQ(HostTable().string_set(&texts, 1, Str(std::string_view("a\0b", 3))), WEIR_OK);
        const auto stop = [](void*, uint64_t i, weir_str) -> int32_t { return i == 0 ? 77 : 78; };
        EXPECT_EQ(HostTable().string_visit(&texts, stop, nullptr), 77);
        const weir_tensor axis = In(ctx, 2);
        EXPECT_EQ(HostTable().string_visit(&axis, stop, nullptr), WEIR_INVALID_ARGUMENT);
        return WEIR_OK;
      });
  const auto outputs = Run({Tensor::Vector<std::string>({"ab", "c"}), Tensor::String("d"), Tensor::Scalar<int32_t>(0)},
                           {DType::kString, DType::kString});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_EQ((*outputs)[0].scalar<std::string>(), "abcd");
  EXPECT_EQ((*outputs)[1].as<std::string>()[1], std::string("a\0b", 3));
  EXPECT_EQ(allocator_.calls, 0) << "strings are host tensors";
}

TEST_F(DynamicTest, HostOutputsComeFromTheHost) {
  UseAdd([](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
    Out(ctx, 0, {1}, error);
    return WEIR_OK;
  });
  record_.host_outputs = 1;
  ASSERT_TRUE(Run({Tensor::Scalar<float>(1), Tensor::Scalar<float>(1)}, {DType::kFloat}).ok());
  EXPECT_EQ(allocator_.calls, 0);
}

TEST_F(DynamicTest, ForwardsOnlyUnsharedBuffers) {
  UseAdd([](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
    const weir_tensor x = In(ctx, 0);
    if (HostTable().forward(ctx, 0, 0) == 0) {
      const weir_tensor z = Out(ctx, 0, {x.dims[0]}, error);
      static_cast<float*>(z.buf.host)[0] = -1;
    } else {
      static_cast<float*>(x.buf.host)[0] = 8;
      EXPECT_EQ(HostTable().forward(ctx, 0, 0), 0) << "it is an output now";
    }
    EXPECT_EQ(HostTable().forward(ctx, 5, 0), 0);
    EXPECT_EQ(HostTable().forward(ctx, 0, 5), 0);
    return WEIR_OK;
  });
  Tensor held = Tensor::Vector<float>({1});
  auto outputs = Run({held, Tensor::Scalar<float>(0)}, {DType::kFloat});
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0].as<float>()[0], -1);
  EXPECT_EQ(held.as<float>()[0], 1);

  const std::byte* where = held.raw();
  std::vector<Tensor> inputs;
  inputs.push_back(std::move(held));
  inputs.push_back(Tensor::Scalar<float>(0));
  outputs = Run(std::move(inputs), {DType::kFloat});
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0].as<float>()[0], 8);
  EXPECT_EQ((*outputs)[0].raw(), where);
  outputs = Run({Tensor::Vector<float>({1}), Tensor::Scalar<float>(0)}, {DType::kDouble});
  ASSERT_TRUE(outputs.ok());
  EXPECT_NE((*outputs)[0].bytes(), 4u) << "another element size takes no input";
}

TEST_F(DynamicTest, SetOutputSharesUnderAnotherShape) {
  UseAdd([](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
    weir_tensor x = In(ctx, 0);
    const int64_t dims[] = {2, 2};
    x.rank = 2;
    x.dims = dims;
    EXPECT_EQ(HostTable().set_output(ctx, 0, &x, error), WEIR_OK);
    x.dtype = WEIR_INT32;
    EXPECT_EQ(HostTable().set_output(ctx, 0, &x, error), WEIR_INVALID_ARGUMENT);
    x.dtype = WEIR_FLOAT32;
    x.buf.handle += 64;
    EXPECT_EQ(HostTable().set_output(ctx, 0, &x, error), WEIR_INVALID_ARGUMENT) << "memory of nobody";
    EXPECT_EQ(HostTable().set_output(ctx, 3, &x, error), WEIR_OUT_OF_RANGE);
    return WEIR_OK;
  });
  const Tensor x = Tensor::Vector<float>({1, 2, 3, 4});
  const auto outputs = Run({x, Tensor::Scalar<float>(0)}, {DType::kFloat});
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0].raw(), x.raw());
  EXPECT_EQ((*outputs)[0].shape(), Shape::Of({2, 2}));
}

TEST_F(DynamicTest, BadRequestsGetCodesAndTexts) {
  UseAdd([](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
    weir_tensor tensor{};
    tensor.struct_size = sizeof(tensor);
    EXPECT_EQ(HostTable().input(ctx, 2, &tensor), WEIR_OUT_OF_RANGE);
    EXPECT_EQ(HostTable().input(ctx, 0, nullptr), WEIR_INVALID_ARGUMENT);
    Out(ctx, 0, {-1}, error, WEIR_INVALID_ARGUMENT);
    Out(ctx, 0, {int64_t{1} << 40, int64_t{1} << 40}, error, WEIR_INVALID_ARGUMENT);
    Out(ctx, 1, {1}, error, WEIR_OUT_OF_RANGE);
    EXPECT_EQ(HostTable().output(ctx, 0, nullptr, &tensor, nullptr), WEIR_INVALID_ARGUMENT);
    weir_buf buf{};
    buf.struct_size = sizeof(buf);
    EXPECT_EQ(HostTable().temp(ctx, 100, WEIR_SPACE_PINNED, &buf, error), WEIR_INVALID_ARGUMENT);
    EXPECT_EQ(HostTable().temp(ctx, 100, WEIR_SPACE_DEVICE, &buf, error), WEIR_OK);
    EXPECT_GE(buf.bytes, 100u);
    EXPECT_EQ(HostTable().temp(ctx, 100, WEIR_SPACE_HOST, &buf, error), WEIR_OK);
    Out(ctx, 0, {int64_t{1} << 30}, error, WEIR_RESOURCE_EXHAUSTED);
    return WEIR_RESOURCE_EXHAUSTED;
  });
  const auto outputs = Run({Tensor::Scalar<float>(1), Tensor::Scalar<float>(1)}, {DType::kFloat});
  EXPECT_EQ(outputs.status().code(), Code::kResourceExhausted);
  EXPECT_NE(outputs.status().message().find("the toy has"), std::string::npos) << "the host's text comes through";
}

TEST_F(DynamicTest, UnsetOutputIsAnError) {
  UseAdd([](void*, weir_ctx*, weir_error*) -> int32_t { return WEIR_OK; });
  const Status status = Run({Tensor::Scalar<float>(1), Tensor::Scalar<float>(1)}, {DType::kFloat}).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("left output 0 unset"), std::string::npos);
}

TEST_F(DynamicTest, CancellationIsSeen) {
  UseAdd([](void*, weir_ctx* ctx, weir_error*) -> int32_t {
    return HostTable().cancelled(ctx) != 0 ? WEIR_CANCELLED : WEIR_OK;
  });
  cancellation_.Cancel(Cancelled("by the test"));
  EXPECT_EQ(Run({Tensor::Scalar<float>(1), Tensor::Scalar<float>(1)}, {DType::kFloat}).status().code(),
            Code::kCancelled);
}

TEST_F(DynamicTest, StateIsMadeOnceAndDestroyed) {
  static int live, calls;
  live = calls = 0;
  UseAdd([](void* state, weir_ctx* ctx, weir_error* error) -> int32_t {
    ++calls;
    static_cast<float*>(Out(ctx, 0, {}, error).buf.host)[0] = static_cast<float>(++*static_cast<int*>(state));
    return WEIR_OK;
  });
  record_.flags = WEIR_KERNEL_STATEFUL;
  record_.create = [](const void*, const weir_node* node, weir_device*, void** state, weir_error*) -> int32_t {
    EXPECT_EQ(Text(HostTable().node_op(node)), "ToyAdd");
    ++live;
    *state = new int(0);
    return WEIR_OK;
  };
  record_.destroy = [](void* state) {
    --live;
    delete static_cast<int*>(state);
  };
  {
    auto kernel = DynamicKernel::Make(entry_, node_->node(), nullptr);
    ASSERT_TRUE(kernel.ok());
    const DType types[] = {DType::kFloat};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) ASSERT_TRUE((*kernel)->Compute({}, types, {.step_id = i}).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto last = (*kernel)->Compute({}, types, {});
    EXPECT_EQ((*last)[0].scalar<float>(), 801) << "calls of a stateful kernel are serialized";
  }
  EXPECT_EQ(live, 0);
  record_.create = [](const void*, const weir_node*, weir_device*, void**, weir_error* error) -> int32_t {
    return device::Report(error, WEIR_INVALID_ARGUMENT, "bad attr");
  };
  const Status refused = DynamicKernel::Make(entry_, node_->node(), nullptr).status();
  EXPECT_EQ(refused.message(), "bad attr");
  EXPECT_EQ(live, 0) << "what was not created is not destroyed";
}

TEST_F(DynamicTest, ThrowingKernelIsAnError) {
  UseAdd([](void*, weir_ctx*, weir_error*) -> int32_t { throw 7; });
  const Status status = Run({}, {DType::kFloat}).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("let an exception escape"), std::string::npos);
}

TEST_F(DynamicTest, PlacesOfOperandsBeyondThe64thAreThoseOfTheirArgument) {
  Use("ToyJoin", {{"N", op::AttrValue(int64_t{70})}, {"T", op::AttrValue(DType::kInt32)}},
      [](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
        const weir_tensor axis = In(ctx, 70), value = In(ctx, 69);
        EXPECT_EQ(HostTable().set_output(ctx, 0, &value, error), WEIR_INVALID_ARGUMENT) << "it is on the device";
        EXPECT_EQ(HostTable().set_output(ctx, 0, &axis, error), WEIR_OK);
        EXPECT_EQ(value.flags & WEIR_TENSOR_READ_ONLY, 0u) << "the list is written";
        EXPECT_NE(axis.flags & WEIR_TENSOR_READ_ONLY, 0u);
        Out(ctx, 1, {}, error);
        return WEIR_OK;
      });
  record_.host_inputs = 2;
  record_.host_outputs = 1;
  record_.variable_writes = 1;
  std::vector<Tensor> inputs;
  for (int32_t i = 0; i < 71; ++i) inputs.push_back(Tensor::Scalar<int32_t>(i));
  const auto outputs = Run(inputs, {DType::kInt32, DType::kString});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_EQ((*outputs)[0].scalar<int32_t>(), 70);
}

TEST_F(DynamicTest, VariablesToWriteAreWritable) {
  UseAdd([](void*, weir_ctx* ctx, weir_error* error) -> int32_t {
    EXPECT_EQ(In(ctx, 0).flags & WEIR_TENSOR_READ_ONLY, 0u);
    EXPECT_NE(In(ctx, 1).flags & WEIR_TENSOR_READ_ONLY, 0u);
    EXPECT_EQ(HostTable().forward(ctx, 0, 0), 0) << "a variable's value stays the variable's";
    Out(ctx, 0, {}, error);
    return WEIR_OK;
  });
  record_.variable_writes = 1;
  ASSERT_TRUE(Run({Tensor::Scalar<float>(1), Tensor::Scalar<float>(1)}, {DType::kFloat}).ok());
}

/// Calls of a kernel that completes later, by the cancellation of their steps.
class LaterTest : public DynamicTest {
 protected:
  struct Started {
    runtime::Cancellation step;
    Later later;
    Status ended = Internal("not yet");
    int completions = 0;
  };

  void SetUp() override {
    handles_.clear();
    UseAdd([](void*, weir_ctx* ctx, weir_error*) -> int32_t {
      handles_.push_back(ctx);
      return WEIR_OK;
    });
    record_.flags |= WEIR_KERNEL_ASYNC | WEIR_KERNEL_STATEFUL;
    Result<std::unique_ptr<DynamicKernel>> made = DynamicKernel::Make(entry_, node_->node(), nullptr);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    kernel_ = std::move(*made);
  }
  void Start(Started& call) {
    call.later.done = runtime::Completion([&call](const Result<std::vector<Tensor>>& outputs) {
      call.ended = outputs.status();
      ++call.completions;
    });
    kernel_->Start({input_, input_}, {DType::kFloat}, {.allocator = &allocator_, .cancellation = &call.step},
                   call.later);
  }

  inline static std::vector<weir_ctx*> handles_;  // of the calls that have begun
  const Tensor input_ = Tensor::Scalar<float>(1);
  std::unique_ptr<DynamicKernel> kernel_;
};

TEST_F(LaterTest, ACallThatQueuesIsWithdrawnByItsStep) {
  Started first, second;
  Start(first);
  Start(second);
  ASSERT_EQ(handles_.size(), 1u) << "calls of a stateful kernel follow each other";
  second.step.Cancel(Cancelled("enough"));
  EXPECT_EQ(second.ended.code(), Code::kCancelled) << second.ended.ToString();
  EXPECT_EQ(first.completions, 0);
  CompletePending(handles_[0], Aborted("over"));
  EXPECT_EQ(first.ended.code(), Code::kAborted) << first.ended.ToString();
  EXPECT_EQ(first.completions + second.completions, 2);
  EXPECT_EQ(handles_.size(), 1u);
}

TEST_F(LaterTest, ACallKeepsNoInputWhenItsStepMayEnd) {
  Started call;
  long owners = 0;
  call.later.done = runtime::Completion(
      [&](const Result<std::vector<Tensor>>&) { owners = input_.buffer().use_count(); });
  kernel_->Start({input_, input_}, {DType::kFloat}, {.allocator = &allocator_}, call.later);
  ASSERT_EQ(handles_.size(), 1u);
  EXPECT_EQ(input_.buffer().use_count(), 3);
  CompletePending(handles_[0], Aborted("over"));
  EXPECT_EQ(owners, 1);
}

}  // namespace
}  // namespace weir::kernel
