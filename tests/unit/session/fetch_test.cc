// The memory of fetched tensors, and the cost of fetching.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/tensor/buffer.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/flow.h"
#include "tests/unit/session/open.h"

#if WEIR_SANITIZER_KIND == 0
namespace {
thread_local int blocks = 0;  // heap allocations of this thread
}
void* operator new(size_t bytes) {
  ++blocks;
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
#endif

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

constexpr int64_t kFloatsOfMiB = 1 << 18;  // 1 MiB

Tensor FilledMiB(float value, int64_t elements = kFloatsOfMiB) {
  return Tensor::Vector<float>(std::vector<float>(static_cast<size_t>(elements), value));
}

/// Views of a feed x and of a constant c, and a computed value.
std::vector<NodeLine> Views() {
  return {Placeholder("x", PartialShape::Of({-1})),
          {"same", "Identity", {"x"}, kFloat},
          {"still", "StopGradient", {"same"}, kFloat},
          Const("rows", Tensor::Vector<int32_t>({2, -1})),
          {"matrix", "Reshape", {"still", "rows"}, {{"T", DType::kFloat}, {"Tshape", DType::kInt32}}},
          Const("c", FilledMiB(5)),
          {"constant", "Identity", {"c"}, kFloat},
          {"square", "Square", {"x"}, kFloat},
          {"neg", "Neg", {"x"}, kFloat}};
}

const std::vector<std::string> kOfFeed = {"same:0", "still:0", "matrix:0"};
const std::vector<std::string> kOfConstant = {"c:0", "constant:0"};
const std::vector<std::string> kComputed = {"square:0", "neg:0"};

std::vector<std::string> AllViews() {
  std::vector<std::string> all = kOfFeed;
  all.insert(all.end(), kOfConstant.begin(), kOfConstant.end());
  all.insert(all.end(), kComputed.begin(), kComputed.end());
  return all;
}

/// Runs `call`, which feeds x and fetches AllViews, and changes feeds and fetches between calls. Kernels that wait
/// return their input.
template <class Call>
void ExpectSharedUntilWritten(const Call& call, bool waiting = false) {
  Tensor x = FilledMiB(3);
  std::vector<Tensor> first = call(x);
  ASSERT_EQ(first.size(), AllViews().size());
  for (size_t i = 0; i < kOfFeed.size(); ++i) EXPECT_EQ(first[i].raw(), x.raw()) << kOfFeed[i] << " was copied";
  EXPECT_EQ(first[2].shape(), Shape::Of({2, kFloatsOfMiB / 2}));
  const std::byte* const constant = first[3].raw();
  EXPECT_EQ(first[4].raw(), constant) << "the constant was copied";
  x.mutable_as<float>()[7] = 9;
  for (Tensor& fetched : first) fetched.mutable_as<float>()[8] += 1;
  EXPECT_EQ(x.as<float>()[7], 9);
  EXPECT_EQ(x.as<float>()[8], 3);
  const std::vector<float> values = {3, 3, 3, 5, 5, waiting ? 3.0f : 9.0f, waiting ? 3.0f : -3.0f};
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].as<float>()[7], values[i]) << AllViews()[i];
    EXPECT_EQ(first[i].as<float>()[8], values[i] + 1) << AllViews()[i];
  }
  const std::vector<Tensor> second = call(FilledMiB(2));
  ASSERT_EQ(second.size(), first.size());
  EXPECT_EQ(second[3].raw(), constant) << "the graph's constant has kept its memory";
  const std::vector<float> later = {2, 2, 2, 5, 5, waiting ? 2.0f : 4.0f, waiting ? 2.0f : -2.0f};
  for (size_t i = 0; i < second.size(); ++i) {
    EXPECT_EQ(second[i].as<float>()[8], later[i]) << AllViews()[i];
    EXPECT_EQ(first[i].as<float>()[7], values[i]) << AllViews()[i] << " of the first run";
  }
}

TEST(Fetches, OfFeedsAndConstantsShareTheirMemoryUntilOneIsWritten) {
  const Result<graph::Definition> graph = MakeGraph(Views());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const std::unique_ptr<Session> session = Open(*graph);
  ASSERT_NE(session, nullptr);
  ExpectSharedUntilWritten([&](const Tensor& x) {
    Result<std::vector<Tensor>> got = session->Run(std::vector<Feed>{{"x:0", x}}, AllViews(), {});
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    return got.ok() ? *got : std::vector<Tensor>();
  });
  const Result<CallableHandle> handle = session->MakeCallable({{"x:0"}, AllViews(), {}});
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  ExpectSharedUntilWritten([&](const Tensor& x) {
    std::vector<Tensor> got;
    const Status status = session->RunCallable(*handle, std::vector<Tensor>{x}, &got);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return got;
  });
}

TEST(Fetches, OfParallelOpsShareToo) {
  Flow f(Views());  // square and neg wait for each other
  const auto call = [&](const Tensor& x) {
    Result<std::vector<Tensor>> got = f.session->Run(std::vector<Feed>{{"x:0", x}}, AllViews(), {});
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    return got.ok() ? *got : std::vector<Tensor>();
  };
  ExpectSharedUntilWritten(call, true);
}

TEST(Fetches, ChosenByAMergeShareToo) {
  std::vector<NodeLine> nodes = Choice();
  nodes[3].op = nodes[4].op = "Identity";  // y = x either way
  const Result<graph::Definition> graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const std::unique_ptr<Session> session = Open(*graph);
  ASSERT_NE(session, nullptr);
  for (const bool p : {true, false}) {
    const Tensor x = FilledMiB(3);
    const auto got =
        session->Run(std::vector<Feed>{{"p:0", Tensor::Scalar(p)}, {"x:0", x}}, std::vector<std::string>{"y:0"}, {});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[0].raw(), x.raw());
  }
}

TEST(Fetches, OfPartsOfARunAreTheCallers) {
  const Result<graph::Definition> graph = MakeGraph(Views());
  const std::unique_ptr<Session> session = Open(*graph);
  const auto handle =
      session->PRunSetup(std::vector<std::string>{"x:0"}, std::vector<std::string>{"same:0", "neg:0"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  Tensor x = FilledMiB(3);
  const std::span<float> held = x.mutable_as<float>();
  Result<std::vector<Tensor>> same =
      session->PRun(*handle, std::vector<Feed>{{"x:0", x}}, std::vector<std::string>{"same:0"});
  ASSERT_TRUE(same.ok()) << same.status().ToString();
  held[0] = 7;  // the caller owns the memory of a part's feeds again
  (*same)[0].mutable_as<float>()[1] = 8;
  const auto neg = session->PRun(*handle, {}, std::vector<std::string>{"neg:0"});
  ASSERT_TRUE(neg.ok()) << neg.status().ToString();
  EXPECT_EQ((*neg)[0].as<float>()[0], -3);
  EXPECT_EQ((*neg)[0].as<float>()[1], -3);
  EXPECT_EQ((*same)[0].as<float>()[0], 3);
}

TEST(Fetches, OfMemoryThatIsOnlyLentAreCopies) {
  const Result<graph::Definition> graph = MakeGraph(Views());
  const std::unique_ptr<Session> session = Open(*graph);
  alignas(kBufferAlignment) float lent[64];
  for (const uint64_t offset : {uint64_t{0}, uint64_t{sizeof(float)}}) {  // the second is not aligned
    std::fill(std::begin(lent), std::end(lent), 3.0f);
    const Result<Tensor> x =
        Tensor::Over(DType::kFloat, Shape::Of({32}), WrapHostMemory(lent, sizeof(lent), nullptr), offset);
    ASSERT_TRUE(x.ok());
    const auto got = session->Run(std::vector<Feed>{{"x:0", *x}}, kOfFeed, {});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    std::fill(std::begin(lent), std::end(lent), 4.0f);
    for (const Tensor& fetched : *got) EXPECT_TRUE(fetched.as<float>()[0] == 3 && fetched.as<float>()[31] == 3);
  }
}

TEST(Fetches, OfVariablesNeverAliasThem) {
  const op::AttrList shape = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({kFloatsOfMiB})}};
  for (const bool resource : {false, true}) {
    SCOPED_TRACE(resource ? "resource" : "reference");
    const op::AttrList type = {{resource ? "dtype" : "T", DType::kFloat}};
    std::vector<NodeLine> nodes = {
        Placeholder("x", PartialShape::Of({kFloatsOfMiB})),
        {"v", resource ? "VarHandleOp" : "VariableV2", {}, shape},
        {"set", resource ? "AssignVariableOp" : "Assign", {"v", "x"}, type},
        {"read", resource ? "ReadVariableOp" : "Identity", {"v"}, type},
        {"view", "Reshape", {"read", "flat"}, {{"T", DType::kFloat}, {"Tshape", DType::kInt32}}},
        {"add", resource ? "AssignAddVariableOp" : "AssignAdd", {"v", "x"}, type}};
    nodes.insert(nodes.begin(), Placeholder("flat", PartialShape::Of({1}), DType::kInt32));
    const Result<graph::Definition> graph = MakeGraph(nodes);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    const std::unique_ptr<Session> session = Open(*graph);
    Tensor x = FilledMiB(3);
    const std::vector<Feed> feeds = {{"x:0", x}, {"flat:0", Tensor::Vector<int32_t>({-1})}};
    ASSERT_TRUE(session->Run(feeds, {}, std::vector<std::string>{"set"}).ok());
    const std::vector<std::string> fetches =
        resource ? std::vector<std::string>{"read:0", "view:0"} : std::vector<std::string>{"read:0", "view:0", "v:0"};
    Result<std::vector<Tensor>> first = session->Run(feeds, fetches, {});
    ASSERT_TRUE(first.ok()) << first.status().ToString();
    for (Tensor& fetched : *first) {
      EXPECT_EQ(fetched.buffer().use_count(), 1) << "somebody else has this memory";
      EXPECT_NE(fetched.raw(), x.raw());
      fetched.mutable_as<float>()[0] = 100;
    }
    x.mutable_as<float>()[0] = 200;
    ASSERT_TRUE(session->Run(feeds, {}, std::vector<std::string>{"add"}).ok());
    const Result<std::vector<Tensor>> second = session->Run(feeds, fetches, {});
    ASSERT_TRUE(second.ok());
    for (const Tensor& fetched : *second) EXPECT_EQ(fetched.as<float>()[0], 6);
    for (const Tensor& fetched : *first) EXPECT_EQ(fetched.as<float>()[1], 3);
  }
}

TEST(Fetches, OutliveTheSessionAndItsGraph) {
  std::vector<Tensor> got;
  {
    const Result<graph::Definition> graph = MakeGraph(Views());
    const std::unique_ptr<Session> session = Open(*graph);
    Result<std::vector<Tensor>> fetched = session->Run(std::vector<Feed>{{"x:0", FilledMiB(3)}}, AllViews(), {});
    ASSERT_TRUE(fetched.ok());
    got = std::move(*fetched);
  }
  EXPECT_EQ(got[0].as<float>()[kFloatsOfMiB - 1], 3);
  EXPECT_EQ(got[3].as<float>()[kFloatsOfMiB - 1], 5);
  EXPECT_EQ(got[5].as<float>()[kFloatsOfMiB - 1], 9);
}

TEST(Fetches, MayTakeThePlaceOfTheFeeds) {
  const Result<graph::Definition> graph = MakeGraph(Views());
  const std::unique_ptr<Session> session = Open(*graph);
  const Result<CallableHandle> handle = session->MakeCallable({{"x:0"}, {"neg:0", "same:0"}, {}});
  ASSERT_TRUE(handle.ok());
  std::vector<Tensor> state = {FilledMiB(3)};
  for (int i = 0; i < 3; ++i) {
    const Status status = session->RunCallable(*handle, std::span(state).first(1), &state);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(state[0].as<float>()[0], -3);
  EXPECT_EQ(state[1].as<float>()[0], 3);
}

#if WEIR_SANITIZER_KIND == 0  // whose allocators take the place of the heap's
TEST(Fetches, OfAFewBytesTakeNoBlockOfTheHeap) {
  const op::AttrList shape = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({4})}};
  std::vector<NodeLine> nodes = Views();
  nodes.push_back({"v", "VariableV2", {}, shape});
  nodes.push_back({"set", "Assign", {"v", "x"}, kFloat});
  nodes.push_back({"r", "VarHandleOp", {}, shape});
  nodes.push_back({"set_r", "AssignVariableOp", {"r", "x"}, {{"dtype", DType::kFloat}}});
  nodes.push_back({"read", "ReadVariableOp", {"r"}, {{"dtype", DType::kFloat}}});
  const Result<graph::Definition> graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const std::unique_ptr<Session> session = Open(*graph);
  const std::vector<Tensor> feeds = {FilledMiB(3, 4)};
  ASSERT_TRUE(session->Run(std::vector<Feed>{{"x:0", feeds[0]}}, {}, std::vector<std::string>{"set", "set_r"}).ok());
  std::vector<std::string> fetches = AllViews();
  fetches.insert(fetches.end(), {"v:0", "read:0"});
  const Result<CallableHandle> handle = session->MakeCallable({{"x:0"}, fetches, {}});
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  constexpr int kKept = 5;  // earlier results still held by the caller
  std::deque<std::vector<Tensor>> results(kKept, std::vector<Tensor>(fetches.size()));
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Status status = session->RunCallable(*handle, feeds, &results[static_cast<size_t>(i % kKept)]);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  };
  run(3 * kKept);
  const int before = blocks;
  ASSERT_GT(before, 0) << "blocks are not counted";
  run(100);
  EXPECT_EQ(blocks, before);
  EXPECT_EQ(results[0][5].as<float>()[0], 9);
  EXPECT_EQ(results[0][7].as<float>()[0], 3);
}
#endif

}  // namespace
}  // namespace weir::session
