// A step to run without a session.
#ifndef WEIR_TESTS_UNIT_EXECUTE_COMPILED_H_
#define WEIR_TESTS_UNIT_EXECUTE_COMPILED_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/execute/plan_runner.h"
#include "core/session/compile.h"
#include "tests/support/text_graph.h"

namespace weir::execute {

/// A graph compiled for feeds of known shape.
class Compiled {
 public:
  /// `parallelism`: number of ops that may run in parallel; `max_tiles`: of one op.
  Compiled(Result<graph::Definition> graph, const std::vector<std::pair<std::string, Shape>>& feeds,
           const std::vector<std::string>& fetches, int parallelism = 1, bool fuse = true,
           uint64_t max_tiles = 1)
      : graph_(std::move(graph)) {
    options_.fusion = fuse;
    const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
    EXPECT_TRUE(runtime.ok() && graph_.ok());
    if (!runtime.ok() || !graph_.ok()) return;
    runtime_ = *runtime;
    graph::StepRequest request;
    for (const auto& [name, shape] : feeds) {
      const graph::Endpoint endpoint = testing::At(*graph_, name);
      request.feeds.push_back({endpoint, BaseType(graph_->TypeOf(endpoint)), PartialShape(shape)});
    }
    for (const std::string& name : fetches) request.fetches.push_back(testing::At(*graph_, name));
    const session::CompileContext context{*runtime_, options_, *resources_, node_resources_, parallelism,
                                          max_tiles};
    Result<session::Program> made = session::Compile(context, *graph_, request);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (made.ok()) program_ = std::move(*made);
  }

  PlanRunner& runner() const { return *program_.whole(); }
  Status Run(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetches, const StepArgs& step = {}) {
    return program_.Run(feeds, fetches, step);
  }
  uint64_t host_bytes() const { return runner().plan().host_device->memory_use().in_use; }

 private:
  Result<graph::Definition> graph_;
  std::shared_ptr<session::Runtime> runtime_;
  session::SessionOptions options_;
  std::shared_ptr<runtime::ResourceScope> resources_ = std::make_shared<runtime::ResourceScope>();
  runtime::NodeResources node_resources_;
  session::Program program_;
};

}  // namespace weir::execute

#endif  // WEIR_TESTS_UNIT_EXECUTE_COMPILED_H_
