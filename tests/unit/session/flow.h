// Steps with control flow, on the device of the tests or on a CPU with kernels that wait (tests/plugin/waiting.cc).
#ifndef WEIR_TESTS_UNIT_SESSION_FLOW_H_
#define WEIR_TESTS_UNIT_SESSION_FLOW_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/execute/tier_chooser.h"
#include "core/session/session.h"
#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"

namespace weir::session {

/// The CPU with kernels that wait, see tests/plugin/waiting.cc.
inline std::shared_ptr<Runtime> Waiting() {
  static const std::shared_ptr<Runtime> kRuntime = [] {
    plugin::LoadOptions options;
    options.folders = {WEIR_WAITING_PLUGINS};
    Result<std::shared_ptr<Runtime>> loaded = Runtime::Load(options);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return loaded.ok() ? *loaded : nullptr;
  }();
  return kRuntime;
}

struct Flow {
  explicit Flow(const std::vector<testing::NodeLine>& nodes, SessionOptions options = {}, int inter_op = 4)
      : graph(testing::MakeGraph(nodes)), options(std::move(options)) {
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    this->options.inter_op_parallelism_threads = inter_op;
    Open();
  }
  /// A new session.
  void Open() {
    Result<std::unique_ptr<Session>> made = Session::Make(Waiting(), *graph, options);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    session = std::move(*made);
  }
  /// Opens a new session every few runs, so that the tier chooser never measures waiting kernels in sequence.
  void OpenForRun(int run) {
    if (run % execute::TierChooser::kFirstCheck == 0) Open();
  }
  Result<std::vector<Tensor>> Run(const std::vector<std::string>& fetches, const RunOptions& options = {}) {
    const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({1, 2})}};
    const std::vector<std::string> none;
    return session->Run(feeds, fetches, none, options);
  }
  Result<graph::Definition> graph;
  SessionOptions options;
  std::unique_ptr<Session> session;
};

/// y = p ? x * x : -x, with both branches live only on demand; z = y + x.
inline std::vector<testing::NodeLine> Choice() {
  const op::AttrList merge = {{"T", DType::kFloat}, {"N", int64_t{2}}};
  return {testing::Placeholder("p", PartialShape(Shape()), DType::kBool),
          testing::Placeholder("x", PartialShape()),
          {"s", "Switch", {"x", "p"}, testing::kFloat},
          {"square", "Square", {"s:1"}, testing::kFloat},
          {"neg", "Neg", {"s:0"}, testing::kFloat},
          {"y", "Merge", {"neg", "square"}, merge},
          {"z", "AddV2", {"y", "x"}, testing::kFloat}};
}

/// Runs the nodes twice in one session on the device of the tests.
inline Result<std::vector<Tensor>> RunNodes(const std::vector<testing::NodeLine>& nodes, const std::vector<Feed>& feeds,
                                            const std::vector<std::string>& fetches,
                                            const std::vector<std::string>& targets = {}, bool fold = true) {
  WEIR_ASSIGN(const std::shared_ptr<Runtime> runtime, Runtime::Default());
  WEIR_ASSIGN(const graph::Definition graph, testing::MakeGraph(nodes));
  SessionOptions options;
  options.constant_folding = fold;
  options.default_device = testing::TestDevice();
  WEIR_ASSIGN(const std::unique_ptr<Session> session, Session::Make(runtime, graph, options));
  Result<std::vector<Tensor>> first = session->Run(feeds, fetches, targets);
  if (!first.ok()) return first;
  return session->Run(feeds, fetches, targets);  // reuses the plan: the first run must leave no trace
}

inline const testing::NodeLine kX = testing::Placeholder("x", PartialShape::Of({2}));

inline op::AttrList In(const char* frame, DType type, bool constant = false) {
  return {{"T", type}, {"frame_name", std::string(frame)}, {"is_constant", constant}};
}

/// The nodes of `while (i < n)` over `variables`, each initialised from the node of its name with the suffix "_0". The
/// body reads a variable as "v_b" and computes "v_n"; the exit is "v_x". `counter` is the int32 variable counted.
inline std::vector<testing::NodeLine> Loop(const std::string& frame, const std::string& n, const std::string& one,
                                           const std::string& counter, std::vector<std::string> variables,
                                           const std::vector<testing::NodeLine>& body) {
  const op::AttrList integer = {{"T", DType::kInt32}};
  variables.insert(variables.begin(), counter);
  std::vector<testing::NodeLine> nodes = {{frame + "_n", "Enter", {n}, In(frame.c_str(), DType::kInt32, true)},
                                          {frame + "_one", "Enter", {one}, In(frame.c_str(), DType::kInt32, true)}};
  const auto type = [&](const std::string& v) { return v == counter ? DType::kInt32 : DType::kFloat; };
  for (const std::string& v : variables) nodes.push_back({v + "_e", "Enter", {v + "_0"}, In(frame.c_str(), type(v))});
  for (const std::string& v : variables) {
    nodes.push_back({v + "_m", "Merge", {v + "_e", v + "_r"}, {{"T", type(v)}, {"N", int64_t{2}}}});
  }
  nodes.push_back({frame + "_less", "Less", {counter + "_m", frame + "_n"}, integer});
  nodes.push_back({frame + "_on", "LoopCond", {frame + "_less"}});
  for (const std::string& v : variables) {
    nodes.push_back({v + "_s", "Switch", {v + "_m", frame + "_on"}, {{"T", type(v)}}});
    nodes.push_back({v + "_b", "Identity", {v + "_s:1"}, {{"T", type(v)}}});
    nodes.push_back({v + "_x", "Exit", {v + "_s"}, {{"T", type(v)}}});
  }
  nodes.push_back({counter + "_n", "AddV2", {counter + "_b", frame + "_one"}, integer});
  nodes.insert(nodes.end(), body.begin(), body.end());
  for (const std::string& v : variables) nodes.push_back({v + "_r", "NextIteration", {v + "_n"}, {{"T", type(v)}}});
  return nodes;
}

inline void Append(std::vector<testing::NodeLine>& to, const std::vector<testing::NodeLine>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Nodes around a loop: n, one, and variables that start with x, or with 0 for counters.
inline std::vector<testing::NodeLine> Around(const std::vector<std::string>& variables,
                                             const std::vector<std::string>& counters) {
  std::vector<testing::NodeLine> nodes = {testing::Placeholder("x", PartialShape::Of({2})),
                                          testing::Const("n", Tensor::Scalar<int32_t>(3)),
                                          testing::Const("one", Tensor::Scalar<int32_t>(1))};
  for (const std::string& v : variables) nodes.push_back({v + "_0", "Identity", {"x"}, testing::kFloat});
  for (const std::string& v : counters) nodes.push_back(testing::Const(v + "_0", Tensor::Scalar<int32_t>(0)));
  return nodes;
}

}  // namespace weir::session

#endif  // WEIR_TESTS_UNIT_SESSION_FLOW_H_
