// Which of several kernels runs a node: by declared cost, by measured times, by what they support.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/plan/plan.h"
#include "tests/support/text_graph.h"

namespace weir::plan {
namespace {

int32_t OpenDevice(weir_str, const weir_opt*, uint64_t, weir_device** device, weir_error*) {
  static int opened;
  *device = reinterpret_cast<weir_device*>(&opened);
  return WEIR_OK;
}

int32_t Refuse(const weir_prep_args*, weir_error*) { return WEIR_UNIMPLEMENTED; }

class RankTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_.struct_size = sizeof(api_);
    api_.open = OpenDevice;
    api_.close = [](weir_device*) {};
    device::DeviceInfo info;
    info.flags = WEIR_DEVICE_UNIFIED_MEMORY;
    device_ = std::make_unique<device::Device>(info, &api_, nullptr, device::MemoryOptions());
    Result<graph::Definition> graph =
        testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({1024})), {"y", "Neg", {"x"}, testing::kFloat}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    operand_ = {DType::kFloat, Shape::Of({1024}), nullptr, false, true};
  }

  /// A kernel of `plugin` that declares this work.
  weir_kernel& Add(const std::string& plugin, double flops_per_element) {
    records_.push_back(std::make_unique<weir_kernel>());
    weir_kernel& record = *records_.back();
    record.struct_size = sizeof(record);
    record.op = {"Neg", 3};
    record.flops_per_element = flops_per_element;
    entries_.push_back(std::make_unique<kernel::KernelEntry>());
    entries_.back()->record = &record;
    entries_.back()->plugin = plugin;
    return record;
  }
  std::string Ranked() {
    std::vector<const kernel::KernelEntry*> kernels;
    for (const auto& entry : entries_) kernels.push_back(entry.get());
    declined_.clear();
    std::string text;
    for (const kernel::KernelEntry* entry :
         RankKernels(kernels, Node(), {&operand_, 1}, {&operand_, 1}, *device_, nullptr, &declined_)) {
      text += (text.empty() ? "" : " ") + entry->plugin;
    }
    return text;
  }
  weir_node Node() const {
    const graph::Node& node = *graph_->Find("y");
    return weir_node{node.name(), node.attrs(), [](int) { return nullptr; }, nullptr, {}, false};
  }
  double Declared(bool shapes_known) {
    return DeclaredNanoseconds(*entries_[0], Node(), {&operand_, 1}, {&operand_, 1}, shapes_known, *device_);
  }

  weir_device_api api_{};
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<graph::Definition> graph_;
  kernel::OperandSpec operand_;
  std::vector<std::unique_ptr<weir_kernel>> records_;
  std::vector<std::unique_ptr<kernel::KernelEntry>> entries_;
  std::string declined_;
};

TEST_F(RankTest, TheCheapestComesFirst) {
  Add("slow", 900);
  Add("fast", 100);
  Add("slower", 5000);
  EXPECT_EQ(Ranked(), "fast slow slower");
}

TEST_F(RankTest, EqualsStayInOrder) {
  Add("one", 100);
  Add("two", 100);
  EXPECT_EQ(Ranked(), "one two");
}

TEST_F(RankTest, AKernelThatRefusesIsLeftOutWithItsReason) {
  Add("odd", 1).supports = Refuse;
  Add("plain", 100);
  EXPECT_EQ(Ranked(), "plain");
  EXPECT_TRUE(declined_.starts_with("kernel Neg of odd: ")) << declined_;
}

TEST_F(RankTest, ASingleKernelIsAskedToo) {
  Add("odd", 1).supports = Refuse;
  EXPECT_EQ(Ranked(), "");
  EXPECT_FALSE(declined_.empty());
}

TEST_F(RankTest, ReasonsAreJoined) {
  Add("odd", 1).supports = Refuse;
  Add("strange", 1).supports = Refuse;
  EXPECT_EQ(Ranked(), "");
  EXPECT_NE(declined_.find("; kernel Neg of strange: "), std::string::npos) << declined_;
}

TEST_F(RankTest, WorkGrowsWithTheOperands) {
  Add("one", 100);
  const double small = Declared(true);
  operand_.shape = Shape::Of({1 << 20});
  EXPECT_GT(Declared(true), 100 * small);
}

TEST_F(RankTest, WithoutADeclarationOrShapesThereAreDefaults) {
  Add("one", 0);
  EXPECT_EQ(Declared(true), 1e6) << "worth a thread";
  entries_.clear();
  Add("two", 5);
  EXPECT_EQ(Declared(false), 1e3) << "shapes are not known";
  entries_.clear();
  Add("cheap", 0).flags = WEIR_KERNEL_INLINE_CHEAP;
  EXPECT_LT(Declared(true), 1e4);
}

}  // namespace
}  // namespace weir::plan
