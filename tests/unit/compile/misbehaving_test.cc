// Compilers that keep their contract, and those that do not: the nodes then run as kernels, and it is said once.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "core/compile/compilers.h"
#include "core/session/options.h"
#include "core/session/runtime.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"
#include "tests/unit/compile/test_compiler.h"

namespace weir::compile {
namespace {

using session::CompileRegions;
using testing::Fault;
using testing::TestCompiler;
using testing::Told;
using weir::testing::Const;
using weir::testing::kFloat;
using weir::testing::NodeLine;
using weir::testing::Placeholder;

using Names = std::vector<std::string>;

/// y = (-x)^2 + (-x), and z = the same negated: two values of one region.
std::vector<NodeLine> Nodes() {
  return {Placeholder("x", PartialShape::Of({16, 64})),
          {"n", "Neg", {"x"}, kFloat},
          {"s", "Square", {"n"}, kFloat},
          {"y", "AddV2", {"s", "n"}, kFloat},
          {"z", "Neg", {"y"}, kFloat}};
}

std::shared_ptr<session::Runtime> RuntimeWith(std::vector<kernel::CompilerEntry> entries) {
  auto runtime = std::make_shared<session::Runtime>(**session::Runtime::Default());
  runtime->compilers = std::make_shared<Compilers>(std::move(entries), "x86-64");
  return runtime;
}

struct Ran {
  Status status;
  std::vector<float> values;
  std::string notes;
  std::string text;
};

Ran RunNodes(const std::shared_ptr<session::Runtime>& runtime, CompileRegions regions,
             const Names& fetches = {"y:0", "z:0"}, bool deterministic = false) {
  Ran ran;
  const Result<graph::Definition> graph = weir::testing::MakeGraph(Nodes());
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  session::SessionOptions options;
  options.compile_regions = regions;
  options.keep_compiled_regions = false;
  options.compile_limit_ms = 200;
  options.deterministic = deterministic;
  options.placement_log = [&](const std::string& lines) { ran.notes += lines; };
  const auto session = session::Session::Make(runtime, *graph, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  std::vector<float> values(16 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 37 - 5;
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Of<float>(Shape::Of({16, 64}), values)}};
  const auto fetched = (*session)->Run(feeds, fetches, {});
  ran.status = fetched.status();
  for (const Tensor& tensor : fetched.ok() ? *fetched : std::vector<Tensor>()) {
    ran.values.insert(ran.values.end(), tensor.as<float>().begin(), tensor.as<float>().end());
  }
  const auto text = (*session)->ExplainStage(session::Stage::kGraph, feeds, fetches, {});
  if (text.ok()) ran.text = *text;
  return ran;
}

std::vector<float> Expected() { return RunNodes(RuntimeWith({}), CompileRegions::kOff).values; }

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class CompilersTest : public ::testing::Test {
 protected:
  void SetUp() override { Told().fault = Fault::kNone; }
  void TearDown() override {
    EXPECT_EQ(Told().alive, 0) << "executables were not destroyed";
    Told().fault = Fault::kNone;
  }
};

TEST_F(CompilersTest, F021_a_region_with_two_outputs_is_one_kernel) {
  const int before = Told().compiled;
  const Ran ran = RunNodes(RuntimeWith({TestCompiler()}), CompileRegions::kOn);
  ASSERT_TRUE(ran.status.ok()) << ran.status.ToString();
  EXPECT_EQ(ran.values, Expected());
  EXPECT_EQ(Told().compiled, before + 1) << "compiled once, and shared with the plan of explain";
  EXPECT_EQ(CountOf(ran.text, "_Region("), 1u) << ran.text;
  EXPECT_EQ(CountOf(ran.text, "Square("), 0u) << ran.text;
  EXPECT_NE(ran.text.find("region z (Neg n, Square s, AddV2 y, Neg z): compiled by test: "), std::string::npos)
      << ran.text;
  EXPECT_NE(ran.text.find("as told"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.notes.find("compiler"), std::string::npos) << ran.notes;
}

TEST_F(CompilersTest, F021_inner_values_can_be_fetched) {
  const auto runtime = RuntimeWith({TestCompiler()});
  const Ran all = RunNodes(runtime, CompileRegions::kOn, {"n:0", "s:0", "y:0", "z:0"});
  const Ran plain = RunNodes(runtime, CompileRegions::kOff, {"n:0", "s:0", "y:0", "z:0"});
  EXPECT_NE(all.text.find("_Region("), std::string::npos) << all.text;
  ASSERT_EQ(all.values.size(), 4u * 16 * 64);
  EXPECT_EQ(all.values, plain.values);
}

TEST_F(CompilersTest, F021_switches_turn_compilation_off) {
  const auto runtime = RuntimeWith({TestCompiler()});
  EXPECT_EQ(RunNodes(runtime, CompileRegions::kOff).text.find("compiled"), std::string::npos);
  const Result<graph::Definition> graph = weir::testing::MakeGraph(Nodes());
  session::SessionOptions options;
  options.compile_regions = CompileRegions::kOn;
  options.fusion = false;
  const auto session = session::Session::Make(runtime, *graph, options);
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Of<float>(Shape::Of({16, 64}), std::vector<float>(1024))}};
  const auto text = (*session)->ExplainStage(session::Stage::kGraph, feeds, Names{"y:0"}, {});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find("_Region("), std::string::npos) << *text;
}

TEST_F(CompilersTest, F021_keys_of_the_configuration_switch_compilation) {
  config::Config config;
  EXPECT_EQ(session::SessionOptionsFrom(config).compile_regions, CompileRegions::kAuto);
  EXPECT_TRUE(session::SessionOptionsFrom(config).keep_compiled_regions);
  config.plugins.compile_regions = "off";
  config.plugins.keep_regions = false;
  config.plugins.time_limit_ms = 77;
  EXPECT_EQ(session::SessionOptionsFrom(config).compile_regions, CompileRegions::kOff);
  EXPECT_FALSE(session::SessionOptionsFrom(config).keep_compiled_regions);
  EXPECT_EQ(session::SessionOptionsFrom(config).compile_limit_ms, 77);
  config.plugins.compile_regions = "on";
  EXPECT_EQ(session::SessionOptionsFrom(config).compile_regions, CompileRegions::kOn);
}

TEST_F(CompilersTest, F021_auto_compiles_where_the_gain_repays_it) {
  // 1,000 runs gain some microseconds each; the compilation is said to take one.
  const Ran ran = RunNodes(RuntimeWith({TestCompiler()}), CompileRegions::kAuto);
  EXPECT_NE(ran.text.find("compiled by test"), std::string::npos) << ran.text;
}

TEST_F(CompilersTest, F021_a_deterministic_session_has_equal_bits) {
  const auto runtime = RuntimeWith({TestCompiler()});
  const Ran first = RunNodes(runtime, CompileRegions::kOn, {"y:0"}, true),
            second = RunNodes(runtime, CompileRegions::kOn, {"y:0"}, true);
  ASSERT_FALSE(first.values.empty());
  EXPECT_EQ(first.values, second.values);
}

struct Bad {
  Fault fault;
  const char* note;  // a part of what is said; empty: nothing is
};

class MisbehavingTest : public CompilersTest, public ::testing::WithParamInterface<Bad> {};

TEST_P(MisbehavingTest, F021_leaves_the_nodes_to_kernels_and_is_told_once) {
  Told().fault = GetParam().fault;
  const auto runtime = RuntimeWith({TestCompiler()});
  const Ran ran = RunNodes(runtime, CompileRegions::kOn);
  ASSERT_TRUE(ran.status.ok()) << ran.status.ToString();
  EXPECT_EQ(ran.values, Expected());
  EXPECT_EQ(ran.text.find("compiled by test: "), ran.text.find("not compiled by test: ") == std::string::npos
                                                     ? std::string::npos
                                                     : ran.text.find("not compiled by test: ") + 4)
      << ran.text;
  EXPECT_EQ(ran.text.find("_Region("), std::string::npos) << ran.text;
  if (*GetParam().note == '\0') {
    EXPECT_EQ(ran.notes.find("compiler 'test'"), std::string::npos) << ran.notes;
  } else {
    EXPECT_EQ(CountOf(ran.notes, GetParam().note), 1u) << ran.notes;
  }
  while (Told().in_call != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

INSTANTIATE_TEST_SUITE_P(
    All, MisbehavingTest,
    ::testing::Values(
        Bad{Fault::kClaimsNothing, ""}, Bad{Fault::kClaimFails, "claim is broken"},
        Bad{Fault::kClaimThrows, "claim let an exception escape: from claim"},
        Bad{Fault::kClaimHangs, "claim did not end within 200 ms"},
        Bad{Fault::kClaimsBeyond, "it proposed node 4 of 4"}, Bad{Fault::kClaimsTwice, "it proposed node 3 of 4"},
        Bad{Fault::kClaimsNoNodes, "compiler 'test'"}, Bad{Fault::kClaimsNoTime, "a time that is no time"},
        Bad{Fault::kNotConvex, ""}, Bad{Fault::kCompileFails, "no code today"}, Bad{Fault::kDeclines, ""},
        Bad{Fault::kCompileThrows, "compile let an exception escape: from compile"},
        Bad{Fault::kCompileHangs, "compile did not end within 200 ms"},
        Bad{Fault::kNoExecutable, "it returned no executable"}, Bad{Fault::kWrongShape, "another shape than [16,64]"},
        Bad{Fault::kWrongType, "the type 2"}, Bad{Fault::kWrongCount, "its io_spec has 1 outputs, the region 2"},
        Bad{Fault::kWrongAlias, "lets output 0 share input 9"}, Bad{Fault::kTooManyTiles, "it has 1000 tiles"},
        Bad{Fault::kTooMuchScratch, "bytes of scratch"}, Bad{Fault::kSpecFails, "no spec today"}),
    [](const auto& info) { return "Fault" + std::to_string(static_cast<int>(info.param.fault)); });

TEST_F(CompilersTest, F021_a_set_that_is_not_convex_is_named) {
  Told().fault = Fault::kNotConvex;
  EXPECT_NE(RunNodes(RuntimeWith({TestCompiler()}), CompileRegions::kOn).text.find("the set is not convex"),
            std::string::npos);
}

TEST_F(CompilersTest, F021_a_compiler_that_hangs_is_asked_to_cancel_and_not_called_again) {
  Told().fault = Fault::kCompileHangs;
  Told().cancelled_seen = false;
  const auto runtime = RuntimeWith({TestCompiler()});
  const int before = Told().compiled;
  EXPECT_EQ(RunNodes(runtime, CompileRegions::kOn).values, Expected());
  EXPECT_EQ(RunNodes(runtime, CompileRegions::kOn).values, Expected());
  EXPECT_EQ(Told().compiled, before + 1);
  while (Told().in_call != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(Told().cancelled_seen);
}

TEST_F(CompilersTest, F021_a_second_session_is_not_told_again) {
  Told().fault = Fault::kCompileFails;
  const auto runtime = RuntimeWith({TestCompiler()});
  EXPECT_EQ(CountOf(RunNodes(runtime, CompileRegions::kOn).notes, "no code today"), 1u);
  const int compiled = Told().compiled;
  EXPECT_EQ(CountOf(RunNodes(runtime, CompileRegions::kOn).notes, "no code today"), 0u);
  EXPECT_EQ(Told().compiled, compiled) << "the error is remembered";
}

TEST_F(CompilersTest, F021_an_error_of_the_code_ends_the_step) {
  for (const Fault fault : {Fault::kExecuteFails, Fault::kExecuteThrows}) {
    Told().fault = fault;
    const Ran ran = RunNodes(RuntimeWith({TestCompiler()}), CompileRegions::kOn);
    EXPECT_EQ(ran.status.code(), fault == Fault::kExecuteFails ? Code::kAborted : Code::kInternal)
        << ran.status.ToString();
    EXPECT_NE(ran.status.message().find("{{node z}}"), std::string::npos) << ran.status.ToString();
  }
}

/// Both runs of a graph, compiled and not; the text of the compiled step goes to `text`.
void ExpectSame(const graph::Definition& graph, const std::vector<session::Feed>& feeds, const Names& fetches,
                std::string* text) {
  std::vector<std::vector<float>> values;
  for (const CompileRegions regions : {CompileRegions::kOn, CompileRegions::kOff}) {
    session::SessionOptions options;
    options.compile_regions = regions;
    options.keep_compiled_regions = false;
    const auto session = session::Session::Make(RuntimeWith({TestCompiler()}), graph, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    const auto fetched = (*session)->Run(feeds, fetches, {});
    ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
    std::vector<float>& all = values.emplace_back();
    for (const Tensor& tensor : *fetched) all.insert(all.end(), tensor.as<float>().begin(), tensor.as<float>().end());
    const auto explained = (*session)->ExplainStage(session::Stage::kGraph, feeds, fetches, {});
    if (regions == CompileRegions::kOn && explained.ok()) *text = *explained;
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST_F(CompilersTest, F021_a_value_that_lives_outside_a_branch_stays_outside) {
  const op::AttrList typed = kFloat;
  const Result<graph::Definition> graph =
      weir::testing::MakeGraph({Placeholder("x", PartialShape::Of({8})),
                                Placeholder("p", PartialShape::Of({}), DType::kBool),
                                {"switch", "Switch", {"x", "p"}, typed},
                                {"a", "Neg", {"x"}, typed},
                                {"b", "AddV2", {"a", "switch:1"}, typed},
                                {"c", "Square", {"b"}, typed},
                                {"d", "Neg", {"switch"}, typed},
                                {"e", "Square", {"d"}, typed},
                                {"m", "Merge", {"e", "c"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}},
                                {"y", "Square", {"a"}, typed}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  for (const bool taken : {false, true}) {
    const std::vector<session::Feed> feeds = {{"x:0", Tensor::Of<float>(Shape::Of({8}), {1, 2, 3, 4, 5, 6, 7, 8})},
                                              {"p:0", Tensor::Scalar<bool>(taken)}};
    std::string text;
    ExpectSame(*graph, feeds, {"m:0", "y:0", "a:0"}, &text);
    for (const char* const set : {" for a ->", " for b, c ->", " for d, e ->", " for y ->"}) {
      EXPECT_NE(text.find(set), std::string::npos) << set << "\n" << text;
    }
  }
}

TEST_F(CompilersTest, F021_the_body_of_a_loop_is_compiled) {
  // while (i < 10): x = (-x)^2 + x; i = i + 1
  const std::string int_type = "type: DT_INT32", float_type = "type: DT_FLOAT";
  const op::AttrList whole = {{"T", DType::kInt32}};
  const weir::testing::FunctionLine condition{
      "condition",
      {{"i", int_type}, {"x", float_type}},
      {{"r", "type: DT_BOOL"}},
      {Const("ten", Tensor::Scalar<int32_t>(10)), {"less", "Less", {"i", "ten:output:0"}, whole}},
      {{"r", "less:z:0"}}};
  const weir::testing::FunctionLine body{"body",
                                         {{"i", int_type}, {"x", float_type}},
                                         {{"next", int_type}, {"sum", float_type}},
                                         {Const("one", Tensor::Scalar<int32_t>(1)),
                                          {"add", "AddV2", {"i", "one:output:0"}, whole},
                                          {"n", "Neg", {"x"}, kFloat},
                                          {"s", "Square", {"n:y:0"}, kFloat},
                                          {"y", "AddV2", {"s:y:0", "x"}, kFloat}},
                                         {{"next", "add:z:0"}, {"sum", "y:z:0"}}};
  const Result<graph::Definition> graph =
      weir::testing::MakeGraph({Placeholder("x", PartialShape::Of({4})),
                                Const("zero", Tensor::Scalar<int32_t>(0)),
                                {"loop",
                                 "While",
                                 {"zero", "x"},
                                 {{"T", std::vector<DType>{DType::kInt32, DType::kFloat}},
                                  {"cond", weir::testing::Func("condition")},
                                  {"body", weir::testing::Func("body")}}},
                                {"y", "Identity", {"loop:1"}, kFloat}},
                               {condition, body});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  std::string text;
  ExpectSame(*graph, {{"x:0", Tensor::Of<float>(Shape::Of({4}), {0.1f, -0.2f, 0.05f, -0.5f})}}, {"y:0"}, &text);
  EXPECT_EQ(CountOf(text, "_Region("), 1u) << text;
}

TEST_F(CompilersTest, F021_another_compiler_takes_what_the_first_cannot) {
  static const weir_compiler_api refusing = [] {
    weir_compiler_api api = *TestCompiler().api;
    api.compile = [](const weir_compile_target*, const weir_region*, const weir_compile_options*, const weir_cancel*,
                     weir_executable**,
                     weir_error* error) { return device::Report(error, WEIR_UNIMPLEMENTED, "never"); };
    return api;
  }();
  const Ran ran = RunNodes(RuntimeWith({{&refusing, "refusing", "1", nullptr}, TestCompiler()}), CompileRegions::kOn);
  EXPECT_EQ(ran.values, Expected());
  EXPECT_NE(ran.text.find("not compiled by refusing: never"), std::string::npos) << ran.text;
  EXPECT_NE(ran.text.find("compiled by test: "), std::string::npos) << ran.text;
}

}  // namespace
}  // namespace weir::compile
