// Loops that a compiler takes as a whole, against the same loops op by op. Numbers are rows of the feature list.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "core/client/extra.h"
#include "core/client/graph/graph_internal.h"
#include "core/plugin/compatible.h"
#include "core/runtime/cancellation.h"
#include "core/session/runtime.h"
#include "core/session/session.h"
#include "core/tensor/number.h"
#include "tests/support/text_graph.h"

namespace weir::test {
namespace {

using session::CompileRegions;

/// A new graph that is the default graph during the lifetime of the object.
struct Fresh {
  Graph graph;
  AsDefault in{graph};
  std::string error() const { return graph.status().ToString(); }
};
Output Real(std::string_view name) { return Placeholder(DType::kFloat, PartialShape::Of({}), name); }
LoopCondFn Below(int limit) {
  return [limit](const LoopVars& v) { return Less(v[0], limit); };
}

using testing::NodeLine;
using Names = std::vector<std::string>;

const std::shared_ptr<session::Runtime>& SharedRuntime() {
  static const std::shared_ptr<session::Runtime> runtime = *session::Runtime::Default();
  return runtime;
}

/// A compiler with code for this processor.
bool HasCompiler() {
  const std::string isa = plugin::IsaText("auto");
  if (isa != "x86-64-v3" && isa != "x86-64-v4") return false;
  for (const kernel::CompilerEntry& entry : SharedRuntime()->plugins->compilers()) {
    if (entry.plugin == "compiler_llvm") return true;
  }
  return false;
}

struct CompiledRun {
  Status status;
  std::vector<Tensor> values;
  std::string step;  // as text, with what became of each region
  size_t loops() const {
    size_t count = 0;
    for (size_t at = step.find(" loop=["); at != std::string::npos; at = step.find(" loop=[", at + 1)) ++count;
    return count;
  }
};

CompiledRun RunGraph(const graph::Definition& graph, const std::vector<session::Feed>& feeds, const Names& fetches,
                     CompileRegions regions, const session::RunOptions& run = {}, int threads = 1) {
  session::SessionOptions options;
  options.compile_regions = regions;
  options.keep_compiled_regions = false;
  options.compile_limit_ms = 120000;
  options.inter_op_parallelism_threads = threads;
  CompiledRun ran;
  const auto session = session::Session::Make(SharedRuntime(), graph, options);
  if (!session.ok()) return {session.status(), {}, {}};
  const Result<std::string> step = (*session)->ExplainStage(session::Stage::kGraph, feeds, fetches, {});
  if (step.ok()) ran.step = *step;
  Result<std::vector<Tensor>> values = (*session)->Run(feeds, fetches, {}, run);
  ran.status = values.status();
  if (values.ok()) ran.values = std::move(*values);
  return ran;
}

void ExpectSameNumbers(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].dtype(), b[i].dtype());
    ASSERT_EQ(a[i].shape(), b[i].shape());
    for (int64_t j = 0; j < a[i].elements(); ++j) {
      const double x = ElementAsDouble(a[i], j), y = ElementAsDouble(b[i], j);
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << "value " << i << ": " << x << " and " << y;
    }
    if (!IsFloating(a[i].dtype())) {
      ASSERT_EQ(std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()), 0) << i;
    }
  }
}

/// Runs the graph compiled and not; both have the same numbers, and the compiled step has so many loops.
void CompareRuns(const graph::Definition& graph, const std::vector<session::Feed>& feeds, const Names& fetches,
                 size_t loops) {
  const CompiledRun plain = RunGraph(graph, feeds, fetches, CompileRegions::kOff);
  ASSERT_TRUE(plain.status.ok()) << plain.status.ToString();
  EXPECT_EQ(plain.loops(), 0u);
  for (const int threads : {1, 4}) {
    const CompiledRun compiled = RunGraph(graph, feeds, fetches, CompileRegions::kOn, {}, threads);
    ASSERT_TRUE(compiled.status.ok()) << compiled.status.ToString() << compiled.step;
    EXPECT_EQ(compiled.loops(), loops) << compiled.step;
    ExpectSameNumbers(compiled.values, plain.values);
  }
}

/// A loop of TensorFlow 1's ops under construction. Names of values: "m0" in the condition, "b0" in the body.
class RawLoop {
 public:
  explicit RawLoop(std::string name = "w") : frame_(std::move(name)) {}

  void Variable(DType type, const std::string& start) {
    const std::string n = std::to_string(variables_.size());
    variables_.push_back(type);
    Add({"e" + n, "Enter", {start}, {{"T", type}, {"frame_name", frame_}}});
    Add({"m" + n, "Merge", {"e" + n, "n" + n}, {{"T", type}, {"N", int64_t{2}}}});
  }
  void Invariant(const std::string& name, DType type, const std::string& value) {
    Add({name, "Enter", {value}, {{"T", type}, {"frame_name", frame_}, {"is_constant", true}}});
  }
  void Add(NodeLine node) { nodes_.push_back(std::move(node)); }
  /// The condition is complete; the body follows.
  void While(const std::string& condition) {
    Add({"go", "LoopCond", {condition}});
    for (size_t i = 0; i < variables_.size(); ++i) {
      const std::string n = std::to_string(i);
      Add({"s" + n, "Switch", {"m" + n, "go"}, {{"T", variables_[i]}}});
      Add({"b" + n, "Identity", {"s" + n + ":1"}, {{"T", variables_[i]}}});
    }
  }
  /// Ends the body. Results are y0, y1 …
  std::vector<NodeLine> End(const Names& next) {
    for (size_t i = 0; i < variables_.size(); ++i) {
      const std::string n = std::to_string(i);
      Add({"n" + n, "NextIteration", {next[i]}, {{"T", variables_[i]}}});
      Add({"x" + n, "Exit", {"s" + n}, {{"T", variables_[i]}}});
      Add({"y" + n, "Identity", {"x" + n}, {{"T", variables_[i]}}});
    }
    return nodes_;
  }

 private:
  const std::string frame_;
  std::vector<DType> variables_;
  std::vector<NodeLine> nodes_;
};

const op::AttrList kInts = {{"T", DType::kInt32}};

TEST(CompiledLoops, F021_a_loop_of_scalars_is_one_region) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  Fresh f;
  const Output x = Real("x"), limit = Placeholder(DType::kInt32, PartialShape::Of({}), "limit");
  const LoopVars ends = WhileLoop([&](const LoopVars& v) { return Less(v[0], limit); },
                                  [](const LoopVars& v) {
                                    return LoopVars{v[0] + 1, v[1] * 0.5f + 1.0f, v[2] + v[0]};
                                  },
                                  {0, x, 7});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  const graph::Definition& graph = Internals(f.graph).definition;
  const Names fetches = {ends[0].name(), ends[1].name(), ends[2].name()};
  for (const int trips : {0, 1, 2, 9, 300000, -5}) {
    SCOPED_TRACE(trips);
    CompareRuns(graph, {{"x:0", Tensor::Scalar<float>(3)}, {"limit:0", Tensor::Scalar<int32_t>(trips)}}, fetches, 1);
  }
  const CompiledRun told = RunGraph(graph, {{"x:0", Tensor::Scalar<float>(3)}, {"limit:0", Tensor::Scalar<int32_t>(3)}},
                                    fetches, CompileRegions::kOn);
  EXPECT_NE(told.step.find("compiled by compiler_llvm: "), std::string::npos) << told.step;
  EXPECT_NE(told.step.find("loop "), std::string::npos) << told.step;
  const CompiledRun chosen =
      RunGraph(graph, {{"x:0", Tensor::Scalar<float>(3)}, {"limit:0", Tensor::Scalar<int32_t>(3)}}, fetches,
               CompileRegions::kAuto);
  EXPECT_EQ(chosen.loops(), 1u) << "the gain of a loop repays its compilation\n" << chosen.step;
}

TEST(CompiledLoops, F021_variables_exchange_values_and_stay) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  RawLoop loop;
  loop.Add(testing::Placeholder("count", PartialShape::Of({}), DType::kInt32));
  loop.Add(testing::Placeholder("by", PartialShape::Of({1}), DType::kInt32));
  loop.Add(testing::Const("zero", Tensor::Scalar<int32_t>(0)));
  loop.Add(testing::Const("one", Tensor::Scalar<int32_t>(1)));
  loop.Add(testing::Const("many", Tensor::Scalar<int32_t>(17)));
  loop.Add(testing::Const("first", Tensor::Of<int32_t>(Shape::Of({1}), {1})));
  loop.Add(testing::Const("yes", Tensor::Scalar<bool>(true)));
  loop.Variable(DType::kInt32, "zero");   // counts
  loop.Variable(DType::kInt32, "first");  // a, b = b, a + b * by
  loop.Variable(DType::kInt32, "first");
  loop.Variable(DType::kInt32, "by");     // stays
  loop.Variable(DType::kInt32, "count");  // stays, and only the condition reads it
  loop.Variable(DType::kBool, "yes");     // a part of the next condition
  loop.Invariant("step", DType::kInt32, "one");
  loop.Add({"fewer", "Less", {"m0", "m4"}, kInts});
  loop.Add({"both", "LogicalAnd", {"fewer", "m5"}});
  loop.While("both");
  loop.Add({"i", "AddV2", {"b0", "step"}, kInts});
  loop.Add({"product", "Mul", {"b2", "b3"}, kInts});
  loop.Add({"sum", "AddV2", {"b1", "product"}, kInts});
  loop.Add({"more", "Less", {"b0", "many"}, kInts});
  const Result<graph::Definition> graph = testing::MakeGraph(loop.End({"i", "b2", "sum", "b3", "b4", "more"}));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  for (const int count : {0, 1, 2, 30}) {
    SCOPED_TRACE(count);
    CompareRuns(*graph,
                {{"count:0", Tensor::Scalar<int32_t>(count)}, {"by:0", Tensor::Of<int32_t>(Shape::Of({1}), {2})}},
                {"y0:0", "y1:0", "y2:0", "y3:0", "y4:0", "y5:0"}, 1);
  }
}

#if defined(WEIR_KERNEL_DTYPES_SHORT)
constexpr DType kTypes[] = {DType::kFloat, DType::kInt32, DType::kInt64, DType::kBool};
#else
constexpr DType kTypes[] = {DType::kFloat, DType::kFloat,    DType::kInt32, DType::kBool, DType::kDouble, DType::kInt64,
                            DType::kHalf,  DType::kBfloat16, DType::kUint8, DType::kInt8, DType::kInt16};
#endif

/// A random loop: a counter and one to five variables of any types and of one shape, through exact ops.
class RandomLoop {
 public:
  explicit RandomLoop(uint32_t seed) : dice_(seed) {
    const PartialShape shapes[] = {PartialShape::Of({}),   PartialShape::Of({1}),     PartialShape::Of({1, 1}),
                                   PartialShape::Of({}),   PartialShape::Of({3}),     PartialShape::Of({17}),
                                   PartialShape::Of({64}), PartialShape::Of({2, 50}), PartialShape::Of({5, 67})};
    shape_ = shapes[Pick(static_cast<int>(std::size(shapes)))];
    const int variables = 1 + Pick(5);
    loop_.Add(testing::Placeholder("limit", PartialShape::Of({}), DType::kInt32));
    loop_.Add(testing::Const("zero", Tensor::Scalar<int32_t>(0)));
    std::vector<DType> types;
    for (int i = 0; i < variables; ++i) {
      types.push_back(kTypes[Pick(static_cast<int>(std::size(kTypes)))]);
      AddInput("in" + std::to_string(i), types.back());
    }
    AddInput("same", types[0]);
    loop_.Variable(DType::kInt32, "zero");
    for (int i = 0; i < variables; ++i) loop_.Variable(types[static_cast<size_t>(i)], "in" + std::to_string(i));
    loop_.Invariant("fixed", types[0], "same");
    loop_.Invariant("until", DType::kInt32, "limit");
    loop_.Add({"less", "Less", {"m0", "until"}, kInts});
    loop_.While("less");
    loop_.Add(testing::Const("one", Tensor::Scalar<int32_t>(1)));
    loop_.Add({"next", "AddV2", {"b0", "one"}, kInts});
    for (int i = 0; i < variables; ++i) values_.push_back({"b" + std::to_string(i + 1), types[static_cast<size_t>(i)]});
    loop_.Add({"held", "Identity", {"fixed", "^b0"}, {{"T", types[0]}}});
    values_.push_back({"held", types[0]});
    loop_.Add({"count", "Cast", {"b0"}, {{"SrcT", DType::kInt32}, {"DstT", types[0]}}});
    const bool is_flag = types[0] == DType::kBool;
    loop_.Add({"mixed",
               is_flag ? "LogicalAnd" : "AddV2",
               {"fixed", "count"},
               is_flag ? op::AttrList() : op::AttrList{{"T", types[0]}}});
    values_.push_back({"mixed", types[0]});
    const int ops = 1 + Pick(20);
    for (int i = 0; i < ops; ++i) Grow();
    Names next = {"next"};
    fetches_ = {"y0:0"};
    for (int i = 0; i < variables; ++i) {
      next.push_back(OfType(types[static_cast<size_t>(i)]));
      fetches_.push_back("y" + std::to_string(i + 1) + ":0");
    }
    nodes_ = loop_.End(next);
  }

  const std::vector<NodeLine>& nodes() const { return nodes_; }
  const Names& fetches() const { return fetches_; }
  std::vector<session::Feed> Feeds(int trips) const {
    std::vector<session::Feed> feeds = feeds_;
    feeds.push_back({"limit:0", Tensor::Scalar<int32_t>(trips)});
    return feeds;
  }

 private:
  struct Made {
    std::string name;
    DType type;
  };
  int Pick(int n) { return static_cast<int>(dice_() % static_cast<uint32_t>(n)); }

  void AddInput(const std::string& name, DType type) {
    loop_.Add(testing::Placeholder(name, shape_, type));
    Result<Shape> shape = shape_.ToShape();
    Result<Tensor> value = Tensor::Make(type, *shape);
    for (int64_t i = 0; i < shape->elements(); ++i) SetElement(*value, static_cast<size_t>(i), Pick(41) - 20);
    feeds_.push_back({name + ":0", *value});
  }

  static void SetElement(Tensor& to, size_t i, int number) {
    switch (to.dtype()) {
      case DType::kBool:
        to.mutable_as<bool>()[i] = number > 0;
        break;
      case DType::kFloat:
        to.mutable_as<float>()[i] = static_cast<float>(number) / 8;
        break;
      case DType::kDouble:
        to.mutable_as<double>()[i] = number / 8.0;
        break;
      case DType::kInt32:
        to.mutable_as<int32_t>()[i] = number;
        break;
      case DType::kInt64:
        to.mutable_as<int64_t>()[i] = number;
        break;
      case DType::kInt16:
        to.mutable_as<int16_t>()[i] = static_cast<int16_t>(number);
        break;
      case DType::kInt8:
        to.mutable_as<int8_t>()[i] = static_cast<int8_t>(number);
        break;
      case DType::kUint8:
        to.mutable_as<uint8_t>()[i] = static_cast<uint8_t>(number + 20);
        break;
      default: {  // half and bfloat16: 1 to 2
        const auto bits =
            static_cast<uint16_t>(to.dtype() == DType::kHalf ? 0x3c00 + 16 * (number + 20) : 0x3f80 + number + 20);
        std::memcpy(to.mutable_raw() + i * sizeof bits, &bits, sizeof bits);
      }
    }
  }

  /// A value of the type, made from another one if need be.
  std::string OfType(DType type) {
    std::vector<std::string> fitting;
    for (const Made& value : values_) {
      if (value.type == type) fitting.push_back(value.name);
    }
    if (!fitting.empty()) {  // late values depend on more
      const int late = Pick(static_cast<int>(std::min<size_t>(fitting.size(), 3)));
      return fitting[fitting.size() - 1 - static_cast<size_t>(late)];
    }
    const Made from = values_[static_cast<size_t>(Pick(static_cast<int>(values_.size())))];
    return Push("Cast", {from.name}, type, {{"SrcT", from.type}, {"DstT", type}});
  }

  std::string Push(const std::string& op, const Names& inputs, DType type, const op::AttrList& attrs) {
    const std::string name = "o" + std::to_string(values_.size());
    loop_.Add({name, op, inputs, attrs});
    values_.push_back({name, type});
    return name;
  }

  void Grow() {
    const Made x = values_[static_cast<size_t>(Pick(static_cast<int>(values_.size())))];
    const op::AttrList typed = {{"T", x.type}};
    if (x.type == DType::kBool) {
      const char* const ops[] = {"LogicalAnd", "LogicalOr", "LogicalNot"};
      const int op = Pick(5);
      if (op < 2) return (void)Push(ops[op], {x.name, OfType(x.type)}, x.type, {});
      if (op == 2) return (void)Push(ops[op], {x.name}, x.type, {});
      if (op == 3) {
        const DType type = kTypes[Pick(static_cast<int>(std::size(kTypes)))];
        const std::string yes = OfBody(type), no = OfBody(type);
        if (!yes.empty()) return (void)Push("SelectV2", {x.name, yes, no}, type, {{"T", type}});
      }
    }
    const DType to = kTypes[Pick(static_cast<int>(std::size(kTypes)))];
    if (Pick(6) == 0) return (void)Push("Cast", {x.name}, to, {{"SrcT", x.type}, {"DstT", to}});
    if (x.type == DType::kBool) return;
    const char* const unary[] = {"Neg", "Abs", "Square"};
    const char* const binary[] = {"AddV2", "Sub", "Mul", "Maximum", "Minimum"};
    const char* const tests[] = {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"};
    const bool is_unsigned = x.type == DType::kUint8;
    switch (Pick(4)) {
      case 0:
        return (void)Push(unary[is_unsigned ? 2 : Pick(3)], {x.name}, x.type, typed);
      case 1:
        return (void)Push(tests[Pick(6)], {x.name, OfType(x.type)}, DType::kBool, typed);
      default:
        return (void)Push(binary[Pick(5)], {x.name, OfType(x.type)}, x.type, typed);
    }
  }
  /// A value of the type, if there is one.
  std::string OfBody(DType type) const {
    for (const Made& value : values_) {
      if (value.type == type) return value.name;
    }
    return {};
  }

  std::mt19937 dice_;
  RawLoop loop_;
  PartialShape shape_;
  std::vector<Made> values_;  // in the body
  std::vector<NodeLine> nodes_;
  Names fetches_;
  std::vector<session::Feed> feeds_;
};

TEST(CompiledLoops, F021_random_loops_have_the_numbers_of_their_ops) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  constexpr uint32_t kLoops = WEIR_SANITIZER_KIND != 0 ? 8 : 40;
  for (uint32_t seed = 0; seed < kLoops; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomLoop loop(seed);
    const Result<graph::Definition> graph = testing::MakeGraph(loop.nodes());
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    const int trips[] = {0, 1, 2, 7, 40};
    CompareRuns(*graph, loop.Feeds(trips[seed % 5]), loop.fetches(), 1);
    if (HasFailure()) return;
  }
}

TEST(CompiledLoops, F021_the_inner_loop_of_two_is_compiled) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  Fresh f;
  const Output x = Real("x");
  const auto inner = [](const Output& start, const Operand& limit) {
    return WhileLoop([&](const LoopVars& v) { return Less(v[0], limit); },
                     [](const LoopVars& v) {
                       return LoopVars{v[0] + 1, v[1] * 0.5f + Cast(v[0], DType::kFloat)};
                     },
                     {0, start})[1];
  };
  const Output y = WhileLoop(Below(5),
                             [&](const LoopVars& v) {
                               return LoopVars{v[0] + 1, inner(v[1], v[0])};
                             },
                             {0, x})[1];
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  CompareRuns(Internals(f.graph).definition, {{"x:0", Tensor::Scalar<float>(0.3f)}}, {y.name()}, 1);
}

TEST(CompiledLoops, F021_an_endless_loop_ends_with_its_step) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  Fresh f;
  const Output start = Placeholder(DType::kInt32, PartialShape::Of({}), "start");
  const Output y = WhileLoop([](Output i) { return GreaterEqual(i * 0, 0); }, [](Output i) { return i + 1; }, start);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  const graph::Definition& graph = Internals(f.graph).definition;
  const std::vector<session::Feed> feeds = {{"start:0", Tensor::Scalar<int32_t>(0)}};
  session::RunOptions options;
  options.timeout_in_ms = 50;
  const CompiledRun late = RunGraph(graph, feeds, {y.name()}, CompileRegions::kOn, options);
  EXPECT_EQ(late.loops(), 1u) << late.step;
  EXPECT_EQ(late.status.code(), Code::kDeadlineExceeded) << late.status.ToString();
  runtime::Cancellation cancellation;
  options.timeout_in_ms = 0;
  options.cancellation = &cancellation;
  CompiledRun cancelled;
  std::thread runs([&] { cancelled = RunGraph(graph, feeds, {y.name()}, CompileRegions::kOn, options); });
  cancellation.Cancel(Cancelled("enough"));
  runs.join();
  EXPECT_EQ(cancelled.status.code(), Code::kCancelled) << cancelled.status.ToString();
}

TEST(CompiledLoops, F021_a_loop_with_kept_values_for_its_gradient_is_left_alone) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  Fresh f;
  const Output x = Real("x");
  const Output y = WhileLoop(Below(6),
                             [&](const LoopVars& v) {
                               return LoopVars{v[0] + 1, v[1] * v[1] * 0.25f + x};
                             },
                             {0, x})[1];
  const Result<std::vector<Gradient>> gradients = Gradients({y}, {x});
  ASSERT_TRUE(gradients.ok()) << gradients.status().ToString();
  const Output dx = (*gradients)[0].values;
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  const graph::Definition& graph = Internals(f.graph).definition;
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Scalar<float>(0.7f)}};
  CompareRuns(graph, feeds, {y.name(), dx.name()}, 0);
  EXPECT_EQ(RunGraph(graph, feeds, {dx.name()}, CompileRegions::kOn).loops(), 0u);
}

TEST(CompiledLoops, F021_a_loop_whose_next_value_is_always_there_has_no_end) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  RawLoop loop;
  loop.Add(testing::Placeholder("in", PartialShape::Of({}), DType::kInt32));
  loop.Variable(DType::kInt32, "in");
  loop.Variable(DType::kInt32, "in");
  loop.Invariant("same", DType::kInt32, "in");
  loop.Add({"less", "Less", {"m0", "same"}, kInts});
  loop.While("less");
  loop.Add({"next", "AddV2", {"b0", "b1"}, kInts});
  const Result<graph::Definition> graph = testing::MakeGraph(loop.End({"next", "same"}));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  session::RunOptions options;
  options.timeout_in_ms = 20;
  const std::vector<session::Feed> feeds = {{"in:0", Tensor::Scalar<int32_t>(1)}};
  const CompiledRun run = RunGraph(*graph, feeds, {"y0:0", "y1:0"}, CompileRegions::kOn, options);
  EXPECT_EQ(run.loops(), 0u) << run.step;
  EXPECT_FALSE(run.status.ok());
}

TEST(CompiledLoops, F021_what_may_fail_has_effects_or_is_no_scalar_stays) {
  if (!HasCompiler()) GTEST_SKIP() << "no compiler_llvm in this build, or none for this processor";
  const std::pair<const char*, std::function<Output(Output)>> bodies[] = {
      {"division by a number that is not known", [](Output i) { return FloorDiv(100, i + 1) + i + 1; }},
      {"an array", [](Output i) { return i + ReduceSum(Tile(Reshape(i, {1}), {3}) * 0) + 1; }},
      {"an op without code", [](Output i) { return i + SizeOf(Range(0, i + 1)) - i; }},
  };
  for (const auto& [what, body] : bodies) {
    SCOPED_TRACE(what);
    Fresh f;
    const Output start = Placeholder(DType::kInt32, PartialShape::Of({}), "start");
    const Output y = WhileLoop([](Output i) { return Less(i, 9); }, body, start);
    ASSERT_TRUE(f.graph.status().ok()) << f.error();
    CompareRuns(Internals(f.graph).definition, {{"start:0", Tensor::Scalar<int32_t>(0)}}, {y.name()}, 0);
  }
}

}  // namespace
}  // namespace weir::test
