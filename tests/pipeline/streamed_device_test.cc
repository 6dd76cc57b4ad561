// Dynamic kernels on a device with streams (tests/plugin/streamed.cc) see the effects of earlier enqueued work.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::kFloat;

// The parameter is the number of inter-op threads: one runs the tape, two run tasks.
class StreamedDevice : public ::testing::TestWithParam<int> {};

TEST_P(StreamedDevice, DynamicKernelsReadInTheOrderOfTheStream) {
  plugin::LoadOptions load;
  load.folders = {WEIR_STREAMED_PLUGINS};
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Load(load);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  const char* const there = "/device:STREAMED:0";
  const Result<graph::Definition> graph = testing::MakeGraph({testing::Placeholder("x", PartialShape()),
                                                              {"a", "Abs", {"x"}, kFloat, there},
                                                              {"b", "Neg", {"a"}, kFloat, there},
                                                              {"c", "Neg", {"b"}, kFloat, there},
                                                              {"d", "Abs", {"c"}, kFloat, there},
                                                              {"e", "Neg", {"a"}, kFloat, there},
                                                              {"f", "Abs", {"e"}, kFloat, there}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  SessionOptions options;
  options.inter_op_parallelism_threads = GetParam();
  const Result<std::unique_ptr<Session>> session = Session::Make(*runtime, *graph, options);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  for (int run = 1; run <= 10; ++run) {
    const Tensor x =
        Tensor::Vector<float>(std::vector<float>(static_cast<size_t>(run % 3 + 1), static_cast<float>(run)));
    const std::vector<Feed> feeds = {{"x:0", x}};
    const auto got = (*session)->Run(feeds, std::vector<std::string>{"d:0", "b:0", "f:0"}, {});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    for (const Tensor& y : *got) EXPECT_TRUE(y.SameBits(x)) << run << ": " << y.SummarizeValues();
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, StreamedDevice, ::testing::Values(1, 2));

}  // namespace
}  // namespace weir::session
