// Reports of a run in TensorFlow's messages, and checks for NaN and infinity.
#include "core/session/run_metadata.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/proto/parse.h"
#include "core/session/options.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/open.h"
#include "weir/proto/run_metadata.pb.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

using Names = std::vector<std::string>;
constexpr char kCpuPrefix[] = "/job:localhost/replica:0/task:0/device:CPU:";

const tf::NodeDef* Find(const tf::GraphDef& graph, const std::string& name) {
  for (const tf::NodeDef& node : graph.node()) {
    if (node.name() == name) return &node;
  }
  return nullptr;
}

NodeLine On(int cpu, NodeLine line) {
  line.device = "/cpu:" + std::to_string(cpu);
  return line;
}

/// The partition graphs of a run on two CPUs that feeds x.
std::vector<tf::GraphDef> PartsOf(const std::vector<NodeLine>& nodes, const Names& fetches) {
  const Result<graph::Definition> graph = MakeGraph(nodes);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  config::Config config;
  config.device_count["CPU"] = 2;
  const auto session = Open(*graph, config);
  const Result<RunOptions> options = ParseRunOptions("trace_level: FULL_TRACE output_partition_graphs: true");
  EXPECT_TRUE(options.ok()) << options.status().ToString();
  if (session == nullptr || !options.ok()) return {};
  RunReport report;
  const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({0, 1})}};
  EXPECT_TRUE(session->Run(feeds, fetches, {}, *options, &report).ok());
  const Result<std::string> bytes = RunMetadata(*graph, report);
  tf::RunMetadata metadata;
  EXPECT_TRUE(bytes.ok() && metadata.ParseFromString(*bytes)) << bytes.status().ToString();
  return {metadata.partition_graphs().begin(), metadata.partition_graphs().end()};
}

TEST(RunMetadata, F018_PartitionGraphsSendAValueOnce) {
  const std::vector<tf::GraphDef> parts =
      PartsOf({Placeholder("x", PartialShape::Of({2})), On(0, {"nu", "Exp", {"x"}, kFloat}),
               On(1, {"alpha", "Neg", {"nu"}, kFloat}), On(1, {"beta", "AddV2", {"nu", "alpha"}, kFloat})},
              {"beta:0"});
  ASSERT_EQ(parts.size(), 2u);
  const tf::GraphDef &first = parts[0], &second = parts[1];
  EXPECT_EQ(first.node_size(), 3) << first.DebugString();
  EXPECT_EQ(second.node_size(), 4) << second.DebugString();
  ASSERT_NE(Find(first, "_arg_x_0_0"), nullptr);
  ASSERT_NE(Find(first, "nu"), nullptr);
  EXPECT_EQ(Find(first, "nu")->input(0), "_arg_x_0_0");
  EXPECT_EQ(Find(first, "nu")->device(), kCpuPrefix + std::string("0"));
  const tf::NodeDef *send = Find(first, "nu/_0"), *received = Find(second, "nu/_1");
  ASSERT_TRUE(send != nullptr && received != nullptr);
  EXPECT_EQ(send->op(), "_Send");
  EXPECT_EQ(received->op(), "_Recv");
  EXPECT_EQ(send->attr().at("tensor_name").s(), received->attr().at("tensor_name").s());
  EXPECT_EQ(received->attr().at("recv_device").s(), kCpuPrefix + std::string("1"));
  EXPECT_EQ(Find(second, "alpha")->input(0), "nu/_1");
  EXPECT_EQ(Find(second, "beta")->input(0), "nu/_1");
  EXPECT_EQ(Find(second, "_retval_beta_0_0")->input(0), "beta");
}

TEST(RunMetadata, ControlEdgesBetweenPartsAreTokensThatCross) {
  const std::vector<tf::GraphDef> parts =
      PartsOf({Placeholder("x", PartialShape::Of({2})), On(0, {"a", "Exp", {"x"}, kFloat}),
               On(1, {"b", "Neg", {"x", "^a"}, kFloat}), On(1, {"c", "Square", {"x", "^a"}, kFloat})},
              {"a:0", "b:0", "c:0"});
  ASSERT_EQ(parts.size(), 2u);
  const tf::NodeDef *b = Find(parts[1], "b"), *c = Find(parts[1], "c");
  ASSERT_TRUE(b != nullptr && c != nullptr && b->input_size() == 2 && c->input_size() == 2);
  EXPECT_EQ(b->input(1), c->input(1)) << "one token for both";
  const tf::NodeDef* arrived = Find(parts[1], b->input(1).substr(1));
  ASSERT_NE(arrived, nullptr) << b->input(1);
  EXPECT_EQ(arrived->op(), "Identity");
  const tf::NodeDef* received = Find(parts[1], arrived->input(0));
  ASSERT_NE(received, nullptr);
  const auto sends = [&](const tf::NodeDef& node) {
    return node.op() == "_Send" && node.attr().at("tensor_name").s() == received->attr().at("tensor_name").s();
  };
  const auto send = std::find_if(parts[0].node().begin(), parts[0].node().end(), sends);
  ASSERT_NE(send, parts[0].node().end());
  const tf::NodeDef* token = Find(parts[0], send->input(0));
  ASSERT_NE(token, nullptr);
  EXPECT_EQ(token->op(), "Const");
  EXPECT_EQ(token->input(0), "^a");
}

TEST(RunMetadata, StepStatsHaveALabelledEntryForEachOp) {
  const Result<graph::Definition> graph = MakeGraph(
      {Placeholder("x", PartialShape::Of({2})), {"y", "Exp", {"x"}, kFloat}, {"z", "AddV2", {"x", "y"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  const auto session = Open(*graph);
  ASSERT_NE(session, nullptr);
  RunOptions options;
  options.trace = true;
  RunReport report;
  const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({0, 1})}};
  ASSERT_TRUE(session->Run(feeds, Names{"z:0"}, {}, options, &report).ok());
  tf::RunMetadata metadata;
  ASSERT_TRUE(metadata.ParseFromString(*RunMetadata(*graph, report)));
  EXPECT_EQ(metadata.partition_graphs_size(), 0) << "not asked for";
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  const tf::DeviceStepStats& device = metadata.step_stats().dev_stats(0);
  EXPECT_EQ(device.device(), kCpuPrefix + std::string("0"));
  std::map<std::string, const tf::NodeExecStats*> labels;
  for (const tf::NodeExecStats& stats : device.node_stats()) labels[stats.timeline_label()] = &stats;
  ASSERT_TRUE(labels.contains("y = Exp(x)"));
  ASSERT_TRUE(labels.contains("z = AddV2(x, y)"));
  const tf::NodeExecStats& exp = *labels["y = Exp(x)"];
  EXPECT_EQ(exp.node_name(), "y");
  EXPECT_EQ(exp.memory(0).allocator_name(), "CPU");
  EXPECT_EQ(exp.memory(0).total_bytes(), 8);
  ASSERT_EQ(exp.output_size(), 1);
  const tf::TensorDescription& given = exp.output(0).tensor_description();
  EXPECT_EQ(given.dtype(), tf::DT_FLOAT);
  ASSERT_EQ(given.shape().dim_size(), 1);
  EXPECT_EQ(given.shape().dim(0).size(), 2);
  EXPECT_EQ(given.allocation_description().requested_bytes(), 8);
  EXPECT_EQ(given.allocation_description().allocator_name(), "CPU");
  EXPECT_EQ(exp.all_start_micros(), exp.all_start_nanos() / 1000);
  EXPECT_LE(exp.all_start_nanos() + exp.all_end_rel_nanos(), labels["z = AddV2(x, y)"]->all_start_nanos());
  EXPECT_EQ(device.thread_names().at(0), "caller");
}

TEST(RunMetadata, StepStatsHaveTheOutputsOfOpsAndFetches) {
  const Result<graph::Definition> graph =
      MakeGraph({Placeholder("x", PartialShape::Of({40, 40})), {"y", "MatMul", {"x", "x"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  const auto session = Open(*graph);
  ASSERT_NE(session, nullptr);
  RunOptions options;
  options.trace = true;
  RunReport report;
  const std::vector<Feed> feeds = {{"x:0", *Tensor::Make(DType::kFloat, Shape::Of({40, 40}))}};
  ASSERT_TRUE(session->Run(feeds, Names{"y:0"}, {}, options, &report).ok());
  tf::RunMetadata metadata;
  ASSERT_TRUE(metadata.ParseFromString(*RunMetadata(*graph, report)));
  std::map<std::string, int> outputs;  // by label
  for (const tf::NodeExecStats& stats : metadata.step_stats().dev_stats(0).node_stats()) {
    outputs[stats.timeline_label()] = stats.output_size();
  }
  EXPECT_EQ(outputs, (std::map<std::string, int>{{"y = MatMul(x, x)", 1}, {"y = fetch(y)", 0}}))
      << "its scratch memory is no output";
}

TEST(RunMetadata, RunOptionsAsAMessage) {
  const Result<RunOptions> options = ParseRunOptions(
      "timeout_in_ms: 7 inter_op_thread_pool: -1 "
      "report_tensor_allocations_upon_oom: true");
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(options->timeout_in_ms, 7);
  EXPECT_EQ(options->inter_op_thread_pool, -1);
  EXPECT_FALSE(options->trace);
  EXPECT_FALSE(options->output_partition_graphs);
  tf::RunOptions message;
  message.set_trace_level(tf::RunOptions::FULL_TRACE);
  EXPECT_TRUE(ParseRunOptions(message.SerializeAsString())->trace);
  EXPECT_FALSE(ParseRunOptions("timeout: 7").ok());
  const Status watched = ParseRunOptions("debug_options { debug_tensor_watch_opts { node_name: 'y' } }").status();
  EXPECT_EQ(watched.code(), Code::kUnimplemented);
  EXPECT_NE(watched.message().find("'y'"), std::string::npos);

  const Result<graph::Definition> graph = MakeGraph({Const("k", Tensor::Scalar<float>(1))});
  const auto session = Open(*graph);
  ASSERT_NE(session, nullptr);
  RunOptions other;
  other.inter_op_thread_pool = 3;
  EXPECT_EQ(session->Run({}, Names{"k:0"}, {}, other).status().message(), "Invalid inter_op_thread_pool: 3");
  other.inter_op_thread_pool = -1;
  EXPECT_TRUE(session->Run({}, Names{"k:0"}, {}, other).ok());
}

/// Returns the error of a checked run.
std::string Fault(const Result<graph::Definition>& graph, const std::vector<Feed>& feeds, const Names& fetches) {
  if (!graph.ok()) return graph.status().ToString();
  const auto session = Open(*graph);
  if (session == nullptr) return "no session";
  RunOptions options;
  options.check_numerics = true;
  const Result<std::vector<Tensor>> got = session->Run(feeds, fetches, {}, options);
  const Result<std::vector<Tensor>> unchecked = session->Run(feeds, fetches, {});
  EXPECT_TRUE(unchecked.ok()) << unchecked.status().ToString();
  return got.ok() ? "fine" : got.status().message();
}

TEST(CheckNumerics, F322_StopsAtTheFirstOpThatGivesNanOrInf) {
  const auto graph = [] {
    return MakeGraph({Placeholder("x", PartialShape::Of({3})),
                      {"square", "Square", {"x"}, kFloat},
                      {"log", "Log", {"square"}, kFloat},
                      {"sum", "AddV2", {"log", "x"}, kFloat},
                      {"diff", "Sub", {"log", "log"}, kFloat}});
  };
  EXPECT_EQ(Fault(graph(), {{"x:0", Tensor::Vector<float>({1, 2, 4})}}, {"sum:0", "diff:0"}), "fine");
  const std::string fault = Fault(graph(), {{"x:0", Tensor::Vector<float>({1, 0, 2})}}, {"sum:0", "diff:0"});
  EXPECT_TRUE(fault.starts_with("log:0 : Tensor had Inf values\n\t Log on " + (kCpuPrefix + std::string("0")) +
                                " gave float [3]: "))
      << fault;
  EXPECT_NE(fault.find("mean 0.693147, 1 Inf\n\t input 0: float [3]: min 0, max 4, mean 1.66667"), std::string::npos)
      << fault;
  EXPECT_NE(fault.find("[[{{node log}}]]"), std::string::npos) << fault;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string first = Fault(graph(), {{"x:0", Tensor::Vector<float>({nan, 0, 2})}}, {"sum:0"});
  EXPECT_TRUE(first.starts_with("square:0 : Tensor had NaN values")) << first;
  EXPECT_NE(first.find("input 0: float [3]: min 0, max 2, mean 1, 1 NaN"), std::string::npos) << first;
  const std::string folded = Fault(MakeGraph({Const("zero", Tensor::Scalar<float>(0)),
                                              {"log", "Log", {"zero"}, kFloat},
                                              {"twice", "AddV2", {"log", "log"}, kFloat}}),
                                   {}, {"twice:0"});
  EXPECT_TRUE(folded.starts_with("log:0 : ")) << "constants are not folded: " << folded;
}

TEST(CheckNumerics, F322_InsideCondsAndLoops) {
  const op::AttrList merge = {{"T", DType::kFloat}, {"N", int64_t{2}}};
  const auto cond = [&] {
    return MakeGraph({Placeholder("p", PartialShape::Of({}), DType::kBool),
                      Placeholder("x", PartialShape::Of({})),
                      {"switch", "Switch", {"x", "p"}, kFloat},
                      {"bad", "Log", {"switch:1"}, kFloat},
                      {"good", "Neg", {"switch"}, kFloat},
                      {"merge", "Merge", {"good", "bad"}, merge}});
  };
  const Feed x = {"x:0", Tensor::Scalar<float>(0)};
  EXPECT_EQ(Fault(cond(), {{"p:0", Tensor::Scalar(false)}, x}, {"merge:0"}), "fine");
  const std::string taken = Fault(cond(), {{"p:0", Tensor::Scalar(true)}, x}, {"merge:0"});
  EXPECT_TRUE(taken.starts_with("bad:0 : Tensor had Inf values")) << taken;
  // while (1 / x < 10) { x -= 1; }, from 3: the fourth quotient is infinite.
  const auto enter = [](const char* name, const char* input, bool constant) {
    return NodeLine{
        name, "Enter", {input}, {{"T", DType::kFloat}, {"frame_name", std::string("w")}, {"is_constant", constant}}};
  };
  const std::string looping = Fault(MakeGraph({Placeholder("x", PartialShape::Of({})),
                                               Const("one", Tensor::Scalar<float>(1)),
                                               Const("ten", Tensor::Scalar<float>(10)),
                                               enter("ex", "x", false),
                                               enter("eone", "one", true),
                                               enter("eten", "ten", true),
                                               {"mx", "Merge", {"ex", "nx"}, merge},
                                               {"quotient", "RealDiv", {"eone", "mx"}, kFloat},
                                               {"less", "Less", {"quotient", "eten"}, kFloat},
                                               {"cond", "LoopCond", {"less"}},
                                               {"sx", "Switch", {"mx", "cond"}, kFloat},
                                               {"bx", "Sub", {"sx:1", "eone"}, kFloat},
                                               {"nx", "NextIteration", {"bx"}, kFloat},
                                               {"out", "Exit", {"sx"}, kFloat}}),
                                    {{"x:0", Tensor::Scalar<float>(3)}}, {"out:0"});
  EXPECT_TRUE(looping.starts_with("quotient:0 : Tensor had Inf values")) << looping;
}

TEST(CheckNumerics, F322_InsideUpdatesOfVariables) {
  const Result<graph::Definition> graph =
      MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}}},
                 Placeholder("x", PartialShape::Of({})),
                 {"init", "Assign", {"v", "x"}, kFloat},
                 {"step", "ApplyGradientDescent", {"v", "x", "x"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = Open(*graph);
  ASSERT_NE(session, nullptr);
  RunOptions options;
  options.check_numerics = true;
  const auto run = [&](float x, const char* target) {
    return session->Run(std::vector<Feed>{{"x:0", Tensor::Scalar<float>(x)}}, {}, Names{target}, options).status();
  };
  ASSERT_TRUE(run(1, "init").ok());
  EXPECT_TRUE(run(2, "step").ok());
  const Status bad = run(1e30f, "step");
  EXPECT_NE(bad.message().find("step:0 : Tensor had Inf values"), std::string::npos) << bad.ToString();
}

}  // namespace
}  // namespace weir::session
