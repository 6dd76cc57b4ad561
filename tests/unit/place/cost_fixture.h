// Devices with made-up plugins and declared costs, and graphs placed on them.
#ifndef WEIR_TESTS_UNIT_PLACE_COST_FIXTURE_H_
#define WEIR_TESTS_UNIT_PLACE_COST_FIXTURE_H_

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/optimize/optimize.h"
#include "core/place/place.h"
#include "tests/support/text_graph.h"

namespace weir::place {

/// The declared figures of a test device.
struct Declared {
  double flops_per_ns = 1;
  double launch_ns = 1;
  double link_bytes_per_ns = 10;
};

/// Profiles by device handle: handle k is &slots[k].
struct Slot {
  Declared declared;
};
inline Slot slots[4];

inline Slot& SlotOf(weir_device* device) { return *reinterpret_cast<Slot*>(device); }

inline int32_t OpenSlot(weir_str uid, const weir_opt*, uint64_t, weir_device** device, weir_error*) {
  *device = reinterpret_cast<weir_device*>(&slots[uid.data[0] - '0']);
  return WEIR_OK;
}
inline void CloseSlot(weir_device*) {}

inline int32_t ProfileOf(weir_device* device, weir_profile* profile, weir_error*) {
  const Declared& declared = SlotOf(device).declared;
  profile->provenance = WEIR_PROVENANCE_DATASHEET;
  for (double& peak : profile->peak_flops_per_ns) peak = declared.flops_per_ns;
  profile->bandwidth_bytes_per_ns = 1000;
  profile->launch_ns = declared.launch_ns;
  return WEIR_OK;
}

inline int32_t LinkOf(weir_device* device, uint32_t, weir_device*, uint32_t, weir_link* link, weir_error*) {
  link->latency_ns = 1000;
  link->bandwidth_pageable_bytes_per_ns = SlotOf(device).declared.link_bytes_per_ns;
  return WEIR_OK;
}

inline const weir_device_api* DeviceApi() {
  static const weir_device_api api = [] {
    weir_device_api made{};
    made.struct_size = sizeof(made);
    made.open = OpenSlot;
    made.close = CloseSlot;
    return made;
  }();
  return &api;
}
inline const weir_cost_api kCosts = {sizeof(weir_cost_api), 0, ProfileOf, LinkOf, nullptr};

using testing::kFloat;

/// CPU:0 (10 flops per ns, in host memory) and GPU:0, GPU:1 (10,000 flops per ns, separate memory). All have MatMul,
/// Neg and Exp; only the CPU has Log.
class CostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    slots[0].declared = {.flops_per_ns = 10, .launch_ns = 3};
    slots[1].declared = slots[2].declared = {.flops_per_ns = 10'000, .launch_ns = 5000};
    AddDevice("CPU:0", "cpu", '0', WEIR_DEVICE_UNIFIED_MEMORY);
    AddDevice("GPU:0", "gpu", '1', 0);
    AddDevice("GPU:1", "gpu", '2', 0);
    for (const char* op : {"MatMul", "Neg", "Exp"}) {
      Register(op, "cpu");
      Register(op, "gpu");
    }
    Register("Log", "cpu");
  }

  void AddDevice(const std::string& name, const char* platform, char slot, uint32_t flags,
                 const device::CostFigures& figures = {}) {
    device::DeviceInfo info;
    info.name = *device::ParseDeviceName("/job:localhost/replica:0/task:0/device:" + name);
    info.kind = name.substr(0, 3);
    info.platform = platform;
    info.class_id = platform;
    info.plugin = std::string("test_") + platform;
    info.uid = std::string(1, slot);
    info.flags = flags;
    info.memory_bytes = uint64_t{1} << 30;
    devices_.Add(std::make_shared<device::Device>(info, DeviceApi(), &kCosts, device::MemoryOptions(), nullptr,
                                                  device::DeviceExtras{.cost = figures}));
  }

  weir_kernel& Register(const char* op, const char* platform) {
    weir_kernel& record = records_.emplace_back();
    record.struct_size = sizeof(record);
    record.op = {op, std::string_view(op).size()};
    record.platform = {platform, std::string_view(platform).size()};
    record.cost_class = std::string_view(op) == "MatMul" ? WEIR_CLASS_GEMM : WEIR_CLASS_ELEMENTWISE;
    record.flops_per_element = std::string_view(op) == "MatMul" ? 2048 : 1;
    record.prepare = [](const void*, const weir_prep_args*, weir_prepared*, weir_error*) -> int32_t {
      return WEIR_UNIMPLEMENTED;
    };
    record.unprepare = [](weir_prepared*) {};
    const Status added = kernels_.Add(*ops(), {&record, std::string("test_") + platform, "test.so", 0});
    EXPECT_TRUE(added.ok()) << added.ToString();
    return record;
  }

  static const op::OpRegistry* ops() {
    static const Result<graph::Definition> graph = testing::MakeGraph({});
    return &graph->ops();
  }

  /// Places the nodes for `fetches`; x is fed with `size` x `size` floats, or has an unknown shape if `size` is
  /// negative.
  Result<Explanation> Explained(const std::vector<testing::NodeLine>& nodes, const std::vector<std::string>& fetches,
                                int64_t size, PlaceOptions options = {}) {
    Result<graph::Definition> made = testing::MakeGraph(nodes);
    if (!made.ok()) return made.status();
    graphs_.push_back(std::make_unique<graph::Definition>(std::move(*made)));
    const graph::Definition& graph = *graphs_.back();
    graph::StepRequest request;
    for (const std::string& fetch : fetches) request.fetches.push_back(testing::At(graph, fetch));
    request.feeds = {
        {testing::At(graph, "x"), DType::kFloat, size < 0 ? PartialShape::OfRank(2) : PartialShape::Of({size, size})}};
    WEIR_ASSIGN(const graph::StepGraph step, optimize::Optimize({}, graph, request, nullptr));
    options.explain = PlaceOptions::Explain::kAll;
    Explanation explanation;
    WEIR_ASSIGN(const graph::Placement placement, Place(options, step, devices_, kernels_, &explanation));
    // The explanation and the placement must agree.
    size_t report = 0;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      if (step.nodes[i].kind != graph::StepNode::Kind::kOp) continue;
      EXPECT_EQ(explanation.nodes[report].name, step.nodes[i].name());
      EXPECT_EQ(explanation.nodes[report].device, placement.devices[static_cast<size_t>(placement.device_of[i])]);
      ++report;
    }
    return explanation;
  }

  static std::string DeviceOf(const Explanation& explanation, const std::string& name) {
    for (const NodeReport& node : explanation.nodes) {
      if (node.name == name) return node.device.substr(node.device.rfind("device:") + 7);
    }
    return "?";
  }
  static const NodeReport& Node(const Explanation& explanation, const std::string& name) {
    for (const NodeReport& node : explanation.nodes) {
      if (node.name == name) return node;
    }
    static const NodeReport none;
    ADD_FAILURE() << "no node " << name;
    return none;
  }

  std::deque<weir_kernel> records_;
  device::DeviceSet devices_;
  kernel::KernelRegistry kernels_;
  std::vector<std::unique_ptr<graph::Definition>> graphs_;
};

inline const testing::NodeLine kX = testing::Placeholder("x", PartialShape());

}  // namespace weir::place

#endif  // WEIR_TESTS_UNIT_PLACE_COST_FIXTURE_H_
