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
  /// `parallelism`: ops that may run at once.
  Compiled(Result<graph::Graph> graph, const std::vector<std::pair<std::string, Shape>>& feeds,
           const std::vector<std::string>& fetches, int parallelism = 1)
      : graph_(std::move(graph)) {
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
    const session::CompileContext context{*runtime_, options_, *resources_, node_resources_, parallelism};
    Result<std::unique_ptr<PlanRunner>> made = session::Compile(context, *graph_, request);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (made.ok()) runner_ = std::move(*made);
  }

  PlanRunner& runner() { return *runner_; }
  Status Run(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetches, const StepArgs& step = {}) {
    return runner_->Run(feeds, fetches, step);
  }
  uint64_t host_bytes() const { return runner_->plan().host_device->memory_use().in_use; }

 private:
  Result<graph::Graph> graph_;
  std::shared_ptr<session::Runtime> runtime_;
  session::SessionOptions options_;
  std::shared_ptr<kernel::ResourceScope> resources_ = std::make_shared<kernel::ResourceScope>();
  kernel::NodeResources node_resources_;
  std::unique_ptr<PlanRunner> runner_;
};

}  // namespace weir::execute

#endif  // WEIR_TESTS_UNIT_EXECUTE_COMPILED_H_
