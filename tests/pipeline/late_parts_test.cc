// Libraries that few processes need are mapped by their first use, not by the start.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/session/runtime.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::Placeholder;

bool IsMapped(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  const std::string all(std::istreambuf_iterator<char>(maps), {});
  return all.find(file) != std::string::npos;
}

/// Runs "y" of a graph.
Status RunOnce(const Result<std::shared_ptr<Runtime>>& runtime, const std::vector<testing::NodeLine>& nodes,
               const std::vector<Feed>& feeds) {
  WEIR_TRY(runtime.status());
  WEIR_ASSIGN(const graph::Definition graph, testing::MakeGraph(nodes));
  WEIR_ASSIGN(const std::unique_ptr<Session> session, Session::Make(*runtime, graph, {}));
  return session->Run(feeds, std::vector<std::string>{"y:0"}, {}).status();
}

// Each test is a process of its own under ctest; in one process others may have run such ops before.

TEST(LateParts, ImageLibrariesAreMappedByAnImageOp) {
  if (WEIR_HAVE_IMAGE_PLUGIN == 0) GTEST_SKIP() << "a build without image libraries";
  const bool before = IsMapped("kernels_image/codecs.so");
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
  const Status negated =
      RunOnce(runtime, {Placeholder("x", PartialShape(Shape::Of({1}))), {"y", "Neg", {"x"}, testing::kFloat}},
              {{"x:0", Tensor::Vector<float>({1})}});
  ASSERT_TRUE(negated.ok()) << negated.ToString();
  for (const char* library : {"kernels_image/codecs.so", "libpng", "libjpeg", "libgif"}) {
    EXPECT_TRUE(before || !IsMapped(library)) << library;
  }
  const Status encoded = RunOnce(runtime,
                                 {Placeholder("x", PartialShape(Shape::Of({1, 1, 1})), DType::kUint8),
                                  {"y", "EncodePng", {"x"}, {{"T", DType::kUint8}}}},
                                 {{"x:0", Tensor::Of<uint8_t>(Shape::Of({1, 1, 1}), {7})}});
  EXPECT_TRUE(encoded.ok()) << encoded.ToString();
  EXPECT_TRUE(IsMapped("kernels_image/codecs.so") && IsMapped("libpng"));
}

TEST(LateParts, TheStartMapsNoLibraryOfTls) {
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  EXPECT_TRUE(IsMapped("plugins/remote.so"));
  EXPECT_FALSE(IsMapped("remote/tls.so") || IsMapped("libssl"));
}

TEST(LateParts, OpenBlasIsMappedByItsFirstKernel) {
  if (WEIR_HAVE_OPENBLAS_PLUGIN == 0) GTEST_SKIP() << "a build without OpenBLAS";
  const bool before = IsMapped("kernels_openblas/gemm.so");
  plugin::LoadOptions options;
  options.deny = {"kernels_eigen", "kernels_onednn"};
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Load(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  EXPECT_TRUE(IsMapped("plugins/kernels_openblas.so"));
  EXPECT_EQ(IsMapped("kernels_openblas/gemm.so"), before);
  const PartialShape square(Shape::Of({2, 2}));
  const Tensor ones = Tensor::Of<float>(Shape::Of({2, 2}), {1, 1, 1, 1});
  const Status multiplied = RunOnce(
      runtime, {Placeholder("a", square), Placeholder("b", square), {"y", "MatMul", {"a", "b"}, testing::kFloat}},
      {{"a:0", ones}, {"b:0", ones}});
  EXPECT_TRUE(multiplied.ok()) << multiplied.ToString();
  EXPECT_TRUE(IsMapped("kernels_openblas/gemm.so"));
}

}  // namespace
}  // namespace weir::session
