#include "core/kernel/host.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/runtime/blocking_pool.h"
#include "tests/unit/kernel/toy_ops.h"

namespace weir::kernel {
namespace {

weir_attr Attr(const weir_node& node, std::string_view name) {
  weir_attr attr{};
  attr.struct_size = sizeof(attr);
  EXPECT_EQ(HostTable().attr(&node, Str(name), &attr), WEIR_OK) << name;
  return attr;
}

TEST(HostTable, EveryFunctionIsThere) {
  const weir_host& host = HostTable();
  EXPECT_EQ(host.struct_size, sizeof(weir_host));
  const auto* words = reinterpret_cast<void* const*>(reinterpret_cast<const char*>(&host) + 8);
  for (size_t i = 0; i < (sizeof(weir_host) - 8) / sizeof(void*); ++i) EXPECT_NE(words[i], nullptr) << "function " << i;
}

TEST(HostTable, ScalarAttributes) {
  ToyNode node("ToyJoin", {{"T", op::AttrValue(RefType(DType::kFloat))}, {"count", op::AttrValue(int64_t{-3})}});
  EXPECT_EQ(Text(HostTable().node_name(&node.node())), "scope/toy");
  EXPECT_EQ(Text(HostTable().node_op(&node.node())), "ToyJoin");
  const weir_attr count = Attr(node.node(), "count");
  EXPECT_EQ(count.type, uint32_t{WEIR_VALUE_INT});
  EXPECT_EQ(count.i, -3);
  const weir_attr type = Attr(node.node(), "T");
  EXPECT_EQ(type.type, uint32_t{WEIR_VALUE_DTYPE});
  EXPECT_EQ(type.i, WEIR_FLOAT32) << "references do not cross";
  const weir_attr yes = Attr(node.node(), "yes");
  EXPECT_EQ(yes.type, uint32_t{WEIR_VALUE_BOOL});
  EXPECT_EQ(yes.i, 1);
  const weir_attr text = Attr(node.node(), "text");
  EXPECT_EQ(text.type, uint32_t{WEIR_VALUE_STRING});
  EXPECT_EQ(Text(text.s), "hi");
  const weir_attr where = Attr(node.node(), "where");
  EXPECT_EQ(where.type, uint32_t{WEIR_VALUE_SHAPE});
  EXPECT_EQ(where.shape.rank, WEIR_UNKNOWN_RANK);
}

TEST(HostTable, ListAttributes) {
  ToyNode node("ToyJoin", {{"Tall", op::AttrValue(std::vector<DType>{DType::kInt32, DType::kBool})}});
  const weir_attr dims = Attr(node.node(), "dims");
  EXPECT_EQ(dims.type, uint32_t{WEIR_VALUE_INT | WEIR_VALUE_LIST});
  ASSERT_EQ(dims.count, 2u);
  EXPECT_EQ(dims.ints[1], 2);
  const weir_attr ratios = Attr(node.node(), "ratios");
  EXPECT_EQ(ratios.type, uint32_t{WEIR_VALUE_FLOAT | WEIR_VALUE_LIST});
  EXPECT_EQ(ratios.floats[0], 0.5);
  const weir_attr flags = Attr(node.node(), "flags");
  ASSERT_EQ(flags.count, 2u);
  EXPECT_EQ(flags.bools[0], 1);
  EXPECT_EQ(flags.bools[1], 0);
  const weir_attr names = Attr(node.node(), "names");
  ASSERT_EQ(names.count, 2u);
  EXPECT_EQ(Text(names.strings[1]), "bc");
  const weir_attr types = Attr(node.node(), "Tall");
  EXPECT_EQ(types.type, uint32_t{WEIR_VALUE_DTYPE | WEIR_VALUE_LIST});
  ASSERT_EQ(types.count, 2u);
  EXPECT_EQ(types.dtypes[1], uint32_t{WEIR_BOOL});
}

TEST(HostTable, ShapesTensorsAndFunctions) {
  ToyNode node("ToyJoin", {{"s", op::AttrValue(std::vector<PartialShape>{PartialShape::Of({2, -1}), PartialShape()})},
                           {"t", op::AttrValue(Tensor::Vector<int32_t>({4, 5}))},
                           {"ts", op::AttrValue(std::vector<Tensor>{Tensor::Scalar<float>(3)})},
                           {"f", op::AttrValue(op::FuncRef{"body", nullptr})},
                           {"empty", op::AttrValue(op::EmptyList{})},
                           {"dims", op::AttrValue(op::EmptyList{})}});
  const weir_attr shapes = Attr(node.node(), "s");
  ASSERT_EQ(shapes.count, 2u);
  EXPECT_EQ(shapes.shapes[0].rank, 2u);
  EXPECT_EQ(shapes.shapes[0].dims[1], WEIR_UNKNOWN_DIM);
  EXPECT_EQ(shapes.shapes[1].rank, WEIR_UNKNOWN_RANK);
  const weir_attr tensor = Attr(node.node(), "t");
  ASSERT_EQ(tensor.type, uint32_t{WEIR_VALUE_TENSOR});
  EXPECT_EQ(tensor.tensor->dims[0], 2);
  EXPECT_EQ(static_cast<const int32_t*>(tensor.tensor->buf.host)[1], 5);
  EXPECT_NE(tensor.tensor->flags & WEIR_TENSOR_READ_ONLY, 0u);
  EXPECT_EQ(Attr(node.node(), "ts").tensors[0].rank, 0u);
  const weir_attr function = Attr(node.node(), "f");
  EXPECT_EQ(function.type, uint32_t{WEIR_VALUE_FUNC});
  EXPECT_EQ(Text(function.s), "body");
  EXPECT_EQ(Attr(node.node(), "empty").type, uint32_t{WEIR_VALUE_LIST});
  EXPECT_EQ(Attr(node.node(), "dims").type, uint32_t{WEIR_VALUE_LIST | WEIR_VALUE_INT})
      << "typed by the op's definition";
}

TEST(HostTable, MissingAttributesAndOldCallers) {
  ToyNode node("ToyAdd", {});
  weir_attr attr{};
  attr.struct_size = sizeof(attr);
  EXPECT_EQ(HostTable().attr(&node.node(), Str("nope"), &attr), WEIR_NOT_FOUND);
  EXPECT_EQ(HostTable().attr(nullptr, Str("scale"), &attr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(HostTable().attr(&node.node(), Str("scale"), nullptr), WEIR_INVALID_ARGUMENT);
  attr.struct_size = 0;
  EXPECT_EQ(HostTable().attr(&node.node(), Str("scale"), &attr), WEIR_INVALID_ARGUMENT);

  // A caller built with a shorter struct gets only the fields that fit, and no byte more.
  std::memset(&attr, 0x5a, sizeof(attr));
  attr.struct_size = offsetof(weir_attr, s);
  ASSERT_EQ(HostTable().attr(&node.node(), Str("scale"), &attr), WEIR_OK);
  EXPECT_EQ(attr.f, 1.5);
  EXPECT_EQ(attr.struct_size, offsetof(weir_attr, s));
  EXPECT_EQ(reinterpret_cast<const unsigned char*>(&attr)[offsetof(weir_attr, s)], 0x5a);
}

TEST(HostTable, ConstantInputs) {
  ToyNode toy("ToyAdd", {});
  const Tensor known = Tensor::Scalar<int32_t>(9);
  weir_tensor value{};
  value.struct_size = sizeof(value);
  EXPECT_EQ(HostTable().constant_input(&toy.node(), 1, &value), WEIR_NOT_FOUND);
  toy.node().constant_input = [&](int i) { return i == 1 ? &known : nullptr; };
  EXPECT_EQ(HostTable().constant_input(&toy.node(), 0, &value), WEIR_NOT_FOUND);
  ASSERT_EQ(HostTable().constant_input(&toy.node(), 1, &value), WEIR_OK);
  EXPECT_EQ(*static_cast<const int32_t*>(value.buf.host), 9);
}

TEST(HostTable, MemoryIsAlignedAndTracked) {
  const uint64_t before = PluginHostBytes();
  for (const uint64_t alignment : {1u, 8u, 64u, 4096u}) {
    for (const uint64_t bytes : {0u, 1u, 1000u}) {
      void* block = HostTable().host_alloc(bytes, alignment);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      std::memset(block, 1, bytes);
      EXPECT_EQ(PluginHostBytes(), before + bytes);
      HostTable().host_free(block);
    }
  }
  EXPECT_EQ(HostTable().host_alloc(8, 3), nullptr) << "no power of two";
  EXPECT_EQ(HostTable().host_alloc(8, 0), nullptr);
  EXPECT_EQ(HostTable().host_alloc(uint64_t{1} << 62, 8), nullptr);
  HostTable().host_free(nullptr);
  EXPECT_EQ(PluginHostBytes(), before);
}

TEST(HostTable, LogHasALevel) {
  ::testing::internal::CaptureStderr();
  HostTable().log(WEIR_LOG_INFO, "a/b/quiet.cc", 1, Str("unheard"));
  HostTable().log(WEIR_LOG_WARNING, "a/b/loud.cc", 12, Str("heard"));
  SetLogLevel(WEIR_LOG_DEBUG);
  EXPECT_EQ(HostTable().enabled(WEIR_LOG_DEBUG), 1);
  HostTable().log(WEIR_LOG_DEBUG, nullptr, 0, Str("now"));
  SetLogLevel(WEIR_LOG_WARNING);
  EXPECT_EQ(HostTable().enabled(WEIR_LOG_INFO), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "weir: W loud.cc:12] heard\nweir: D ?:0] now\n");
}

TEST(HostTable, ParallelForCoversTheRange) {
  std::vector<int> hits(100);
  HostTable().parallel_for(
      nullptr, hits.size(), 7,
      [](void* arg, uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i) ++(*static_cast<std::vector<int>*>(arg))[i];
      },
      &hits);
  for (const int hit : hits) EXPECT_EQ(hit, 1);
}

TEST(HostTable, ScheduleRunsElsewhereAndNests) {
  struct Shared {
    std::atomic<int> waiting{0};
    std::atomic<int> done{0};
  } shared;
  const auto leaf = [](void* arg) { ++static_cast<Shared*>(arg)->done; };
  static void (*const run_leaf)(void*) = leaf;
  // Each parent waits for the leaf that it schedules: with too few threads none would end.
  const auto parent = [](void* arg) {
    auto* to = static_cast<Shared*>(arg);
    ++to->waiting;
    const int before = to->done;
    ASSERT_EQ(HostTable().schedule(run_leaf, arg, 0), WEIR_OK);
    while (to->done == before) std::this_thread::yield();
    --to->waiting;
  };
  for (int i = 0; i < 8; ++i) ASSERT_EQ(HostTable().schedule(parent, &shared, 0), WEIR_OK);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((shared.done < 8 || shared.waiting > 0) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(shared.done, 8);
  EXPECT_EQ(shared.waiting, 0);
  EXPECT_EQ(HostTable().schedule(nullptr, nullptr, 0), WEIR_INVALID_ARGUMENT);
}

TEST(HostTable, NodeResourcesOutliveTheNode) {
  runtime::NodeResources resources;
  static int made;
  made = 0;
  const auto make = [](void* arg) -> void* { return ++made, new int(*static_cast<int*>(arg)); };
  const auto destroy = [](void* object) { delete static_cast<int*>(object); };
  int seed = 5;
  void* first = nullptr;
  for (int i = 0; i < 2; ++i) {
    ToyNode toy("ToyAdd", {});
    EXPECT_EQ(HostTable().node_resource(&toy.node(), Str("k"), make, destroy, &seed), nullptr) << "nowhere to keep it";
    toy.node().resources = &resources;
    void* object = HostTable().node_resource(&toy.node(), Str("k"), make, destroy, &seed);
    ASSERT_NE(object, nullptr);
    if (i == 1) {
      EXPECT_EQ(object, first);
    }
    first = object;
  }
  EXPECT_EQ(made, 1);
}

TEST(ErrorRecord, TurnsIntoStatus) {
  EXPECT_TRUE(ErrorRecord().ToStatus(WEIR_OK, "f").ok());
  EXPECT_EQ(ErrorRecord().ToStatus(WEIR_NOT_FOUND, "f").message(), "f failed without a text");
  const Status odd = ErrorRecord().ToStatus(99, "f");
  EXPECT_EQ(odd.code(), Code::kUnknown);
  EXPECT_NE(odd.message().find("code 99"), std::string::npos);

  ErrorRecord long_text;
  device::Report(long_text.get(), WEIR_INTERNAL, std::string(5000, 'x'));
  EXPECT_EQ(long_text.ToStatus(WEIR_ABORTED, "f").message().size(), 1024u);
  EXPECT_EQ(long_text.ToStatus(WEIR_INTERNAL, "f").message().substr(0, 4), "f: x") << "a fault names the call";
  EXPECT_EQ(device::Report(nullptr, WEIR_ABORTED, "x"), WEIR_ABORTED);

  const Status thrown = CallPlugin("f", [](weir_error*) -> int32_t { throw std::runtime_error("oops"); });
  EXPECT_EQ(thrown.code(), Code::kInternal);
  EXPECT_EQ(thrown.message(), "f let an exception escape: oops");
}

}  // namespace
}  // namespace weir::kernel
