// Calls of single nodes: kernels chosen and prepared per call, kernels of the host, strings.
#include "core/execute/node_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/execute/string_ids_internal.h"
#include "core/session/runtime.h"
#include "tests/support/text_graph.h"

namespace weir::execute {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

using Tensors = std::vector<Tensor>;

/// The node named "n" of a graph, called on the CPU.
class OneNode {
 public:
  explicit OneNode(const std::vector<NodeLine>& nodes, kernel::BuiltinKernel builtin = {})
      : graph_(MakeGraph(nodes)), builtin_(std::move(builtin)) {
    const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
    EXPECT_TRUE(runtime.ok() && graph_.ok()) << graph_.status().ToString();
    if (!runtime.ok() || !graph_.ok()) return;
    runtime_ = *runtime;
    plan::CallSpec call;
    call.graph = &*graph_;
    call.node = &graph_->node(testing::At(*graph_, "n").node);
    for (const auto& device : runtime_->plugins->devices().all()) {
      if (device->host_memory() && call.device == nullptr) call.device = device.get();
    }
    call.resources = &resources_;
    call.registry = &runtime_->plugins->kernels();
    if (builtin_.fn || builtin_.async) {
      call.builtin = &builtin_;
    } else if (call.device != nullptr) {
      call.kernels = call.registry->Find(call.node->attrs(), call.device->info().platform);
    }
    call_ = std::make_unique<NodeCall>(std::move(call));
  }

  NodeCall& call() { return *call_; }
  Result<Tensors> Run(Tensors inputs) { return call_->Run(std::move(inputs)); }

 private:
  Result<graph::Definition> graph_;
  std::shared_ptr<session::Runtime> runtime_;
  runtime::NodeResources resources_;
  kernel::BuiltinKernel builtin_;
  std::unique_ptr<NodeCall> call_;
};

Tensor Floats(const std::vector<float>& values) { return Tensor::Vector<float>(values); }

std::vector<NodeLine> SumOfAxes() {
  return {Placeholder("x", PartialShape()),
          Placeholder("axes", PartialShape(), DType::kInt32),
          {"n", "Sum", {"x", "axes"}, {{"T", DType::kFloat}, {"Tidx", DType::kInt32}}}};
}

TEST(NodeCall, ServesMoreShapesThanItRemembers) {
  OneNode neg({Placeholder("x", PartialShape()), {"n", "Neg", {"x"}, kFloat}});
  for (int round = 0; round < 3; ++round) {
    for (int elements = 0; elements < 20; ++elements) {
      const Result<Tensors> made = neg.Run({Floats(std::vector<float>(static_cast<size_t>(elements), 2.0f))});
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      EXPECT_TRUE((*made)[0].SameBits(Floats(std::vector<float>(static_cast<size_t>(elements), -2.0f))));
    }
  }
}

TEST(NodeCall, TellsOperandsApartWhoseValuesDecide) {
  OneNode sum(SumOfAxes());
  const Result<Tensor> x = Floats({1, 2, 3, 4, 5, 6}).Reshaped(Shape::Of({2, 3}));
  ASSERT_TRUE(x.ok());
  for (int round = 0; round < 2; ++round) {
    for (const auto& [axis, wanted] :
         std::vector<std::pair<int32_t, std::vector<float>>>{{0, {5, 7, 9}}, {1, {6, 15}}, {-1, {6, 15}}}) {
      const Result<Tensors> made = sum.Run({*x, Tensor::Vector<int32_t>({axis})});
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      EXPECT_TRUE((*made)[0].SameBits(Floats(wanted))) << axis;
    }
    const Result<Tensors> whole = sum.Run({*x, Tensor::Vector<int32_t>({})});
    ASSERT_TRUE(whole.ok());
    EXPECT_TRUE((*whole)[0].SameBits(*x)) << "over no axes";
  }
}

TEST(NodeCall, OverwritesOnlyAnInputThatNobodyElseHolds) {
  OneNode neg({Placeholder("x", PartialShape()), {"n", "Neg", {"x"}, kFloat}});
  Tensors inputs = {Floats(std::vector<float>(64, 3.0f))};
  const std::byte* const memory = inputs[0].raw();
  Result<Tensors> made = neg.Run(std::move(inputs));
  ASSERT_TRUE(made.ok());
  const bool knows_owners = WEIR_SANITIZER_KIND != 2;  // core/execute/unshared.h
  EXPECT_EQ((*made)[0].raw() == memory, knows_owners);
  const Tensor held = Floats(std::vector<float>(64, 3.0f));
  made = neg.Run({held});
  ASSERT_TRUE(made.ok());
  EXPECT_NE((*made)[0].raw(), held.raw());
  EXPECT_EQ(held.as<float>()[0], 3.0f);
}

TEST(NodeCall, ErrorsNameTheNode) {
  OneNode sum(SumOfAxes());
  const Result<Tensors> made = sum.Run({Floats({1, 2}), Tensor::Vector<int32_t>({4})});
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(made.status().node(), "n");
  EXPECT_NE(made.status().message().find("Invalid reduction dimension"), std::string::npos) << made.status().ToString();
}

TEST(NodeCall, ChecksWhatAKernelOfTheHostGives) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape()), {"n", "Neg", {"x"}, kFloat}};
  const auto gives = [](Tensors outputs) {
    kernel::BuiltinKernel kernel;
    kernel.fn = [outputs](kernel::BuiltinCall& call) {
      call.outputs = outputs;
      return Status();
    };
    return kernel;
  };
  EXPECT_TRUE(OneNode(nodes, gives({Floats({1})})).Run({Floats({2})}).ok());
  const Status none = OneNode(nodes, gives({})).Run({Floats({2})}).status();
  EXPECT_EQ(none.code(), Code::kInternal);
  EXPECT_NE(none.message().find("Neg gave 0 outputs, wanted 1"), std::string::npos) << none.ToString();
  const Status other = OneNode(nodes, gives({Tensor::Scalar<int32_t>(1)})).Run({Floats({2})}).status();
  EXPECT_EQ(other.code(), Code::kInternal);
  EXPECT_NE(other.message().find("output 0 of Neg came as int32, wanted float"), std::string::npos) << other.ToString();
}

TEST(NodeCall, WaitsForACallThatCompletesLater) {
  std::vector<std::thread> threads;
  kernel::BuiltinKernel kernel;
  kernel.async = [&threads](kernel::BuiltinCall call, runtime::Completion done) {
    threads.emplace_back([inputs = std::move(call.inputs), done = std::move(done)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done(std::move(inputs));
    });
  };
  OneNode later({Placeholder("x", PartialShape()), {"n", "Neg", {"x"}, kFloat}}, std::move(kernel));
  const Result<Tensors> made = later.Run({Floats({2, 3})});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_TRUE((*made)[0].SameBits(Floats({2, 3})));
  for (std::thread& thread : threads) thread.join();
}

TEST(NodeCall, AnAsynchronousCallThatIsDroppedFails) {
  kernel::BuiltinKernel kernel;
  kernel.async = [](kernel::BuiltinCall, runtime::Completion) {};
  OneNode never({Placeholder("x", PartialShape()), {"n", "Neg", {"x"}, kFloat}}, std::move(kernel));
  const Status status = never.Run({Floats({2})}).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.node(), "n");
}

TEST(NodeCall, MovesStringsByNumbers) {
  OneNode reverse({Placeholder("x", PartialShape(), DType::kString),
                   Placeholder("axis", PartialShape(), DType::kInt32),
                   {"n", "ReverseV2", {"x", "axis"}, {{"T", DType::kString}, {"Tidx", DType::kInt32}}}});
  const Tensor words = Tensor::Vector<std::string>({"a", "", "longer than what a string holds itself", "a"});
  const Result<Tensors> made = reverse.Run({words, Tensor::Vector<int32_t>({0})});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const auto got = (*made)[0].as<std::string>();
  EXPECT_EQ(std::vector<std::string>(got.begin(), got.end()),
            (std::vector<std::string>{"a", "longer than what a string holds itself", "", "a"}));
}

TEST(StringIds, EqualStringsHaveOneNumber) {
  StringIds ids;
  const Result<Tensor> first = ids.Encode(Tensor::Vector<std::string>({"x", "", "y", "x"}));
  const Result<Tensor> second = ids.Encode(Tensor::Vector<std::string>({"y", "z"}));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(first->SameBits(Tensor::Vector<int64_t>({1, 0, 2, 1})));
  EXPECT_TRUE(second->SameBits(Tensor::Vector<int64_t>({2, 3})));
  const Result<Tensor> back = ids.Decode(Tensor::Vector<int64_t>({3, 0, 1}));
  ASSERT_TRUE(back.ok());
  const auto words = back->as<std::string>();
  EXPECT_EQ(std::vector<std::string>(words.begin(), words.end()), (std::vector<std::string>{"z", "", "x"}));
  for (const int64_t unknown : {int64_t{-1}, int64_t{4}}) {
    EXPECT_EQ(ids.Decode(Tensor::Vector<int64_t>({unknown})).status().code(), Code::kInternal);
  }
  const Tensor numbers = Floats({1, 2});
  const Result<Tensor> same = ids.Encode(numbers);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->raw(), numbers.raw());
}

TEST(StringIds, AttributesNameNumbersInstead) {
  const op::AttrList attrs = {
      {"T", DType::kString}, {"Tidx", DType::kInt32}, {"types", std::vector<DType>{DType::kFloat, DType::kString}}};
  const op::AttrList numbered = WithoutStrings(attrs);
  EXPECT_EQ(numbered[0].second, op::AttrValue(DType::kInt64));
  EXPECT_EQ(numbered[1].second, op::AttrValue(DType::kInt32));
  EXPECT_EQ(numbered[2].second, op::AttrValue(std::vector<DType>{DType::kFloat, DType::kInt64}));
}

}  // namespace
}  // namespace weir::execute
