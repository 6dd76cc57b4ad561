// Runs the graphs of the test data whose ops weir has, and compares the results with TensorFlow's. Every graph runs
// twice: with constant folding, and with every kernel in the plan.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/session/session.h"
#include "tests/e2e/tf_graphs.h"
#include "tests/support/test_data.h"
#include "tests/support/test_device.h"

namespace weir {
namespace {

using testing::TfGraph;

Status CheckGraph(const TfGraph& tested, const std::shared_ptr<session::Runtime>& runtime,
                  const session::SessionOptions& options) {
  WEIR_ASSIGN(const graph::Definition graph, tested.Parse(*runtime->ops));
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph, options));
  WEIR_ASSIGN(const std::vector<session::Feed> feeds, tested.Feeds());
  session::RunReport report;
  WEIR_ASSIGN(const std::vector<Tensor> results, session->Run(feeds, tested.Fetches(), {}, {}, &report));
  // A few values of 64 bytes do not test a layout; values that cross between streams lie apart.
  const bool large = report.arena_bytes > 4096 && testing::TestDevice().empty();
  if (large && static_cast<double>(report.arena_bytes) > 1.15 * static_cast<double>(report.live_bytes)) {
    return Internal("the arena has {} bytes for {} in use at once", report.arena_bytes, report.live_bytes);
  }
  return tested.Compare(results);
}

void CheckAll(session::SessionOptions options) {
  options.default_device = testing::TestDevice();
#ifdef WEIR_KERNEL_DTYPES_SHORT
  GTEST_SKIP() << "the kernels of this build take few element types";
#endif
  const std::string data = testing::TestData();
  if (data.empty()) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
  const Result<std::vector<TfGraph>> graphs = testing::ListTfGraphs(data);
  ASSERT_TRUE(graphs.ok()) << graphs.status().ToString();
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  int matched = 0, refused = 0, outside = 0;
  for (const TfGraph& tested : *graphs) {
    if (!tested.Runs(*(*runtime)->ops)) {
      ++outside;
      continue;
    }
    const Status status = CheckGraph(tested, *runtime, options);
    if (tested.Refused()) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << tested.name() << ": " << status.ToString();
      EXPECT_NE(status.message().find("incompatible with expected"), std::string::npos)
          << tested.name() << ": " << status.ToString();
      ++refused;
    } else if (status.ok()) {
      ++matched;
    } else {
      ADD_FAILURE() << tested.name() << ": " << status.ToString();
    }
  }
  std::cout << "tf_graphs: " << matched << " match, " << refused << " refused as TensorFlow refuses them, " << outside
            << " use ops that are not in the catalogue yet\n";
  EXPECT_GE(matched, 340);
}

TEST(TfGraphs, FoldedGraphsMatch) { CheckAll({}); }

TEST(TfGraphs, UnfoldedGraphsMatch) {
  session::SessionOptions options;
  options.constant_folding = false;
  CheckAll(options);
}

}  // namespace
}  // namespace weir
