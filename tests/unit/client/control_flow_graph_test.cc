// Conds and loops as graphs, compared node by node with those of TensorFlow 2.17 with control flow v2 off
// (control_flow_graphs.txt, made by control_flow_oracle.py). Each test here builds the same graph as the function of
// its name there.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "core/client/containers/queue.h"
#include "core/client/containers/tensor_array.h"
#include "core/client/control_flow/control_flow_context.h"
#include "core/client/control_flow/elementwise_loops.h"
#include "core/client/ops/check_ops.h"
#include "tests/unit/client/fresh.h"
#include "weir/proto/control_flow.pb.h"

namespace weir::test {
namespace {

Output Int(int value, std::string_view name = "Const") { return Constant(value, DType::kInt32, name); }

std::string Joined(std::vector<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string AttrText(const graph::Node& node, std::string_view name) {
  const op::AttrValue* value = node.attrs().Find(name);
  if (value == nullptr) return "";
  std::string text;
  if (const auto* list = value->get<std::vector<std::string>>()) text = Joined(*list);
  if (const auto* string = value->get<std::string>()) text = *string;
  if (const auto* flag = value->get<bool>()) text = *flag ? "true" : "false";
  if (const auto* number = value->get<int64_t>()) text = std::to_string(*number);
  return " " + std::string(name) + "=" + text;
}

/// A line of control_flow_graphs.txt. Classes are only those of control flow, since TensorFlow also sets them on
/// assignments.
std::string NodeLine(const Operation& operation) {
  std::vector<std::string> inputs, controls;
  for (const Output& input : operation.inputs()) {
    const std::string name = input.name();
    inputs.push_back(name.ends_with(":0") ? name.substr(0, name.size() - 2) : name);
  }
  for (const Operation& control : operation.control_inputs()) controls.push_back("^" + control.name());
  std::ranges::sort(controls);
  inputs.insert(inputs.end(), controls.begin(), controls.end());
  std::string line = operation.name() + " = " + operation.type() + "(" + Joined(inputs) + ")";
  for (const char* attr : {"_class", "frame_name", "is_constant", "parallel_iterations"}) {
    if (operation.type().starts_with("Assign") && attr == std::string_view("_class")) continue;
    line += AttrText(operation.node(), attr);
  }
  return operation.device().empty() ? line : line + " device=" + operation.device();
}

std::string Commas(const auto& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ",") + text;
  return all;
}

/// The head, the fields shared by conds and loops, and the nested contexts.
template <class Def>
void AddLines(const Def& def, const std::string& head, const std::string& indent, std::vector<std::string>* lines);

void AddContext(const tf::CondContextDef& def, const std::string& indent, std::vector<std::string>* lines) {
  AddLines(def,
           fmt::format("cond {} pred={} pivot={} branch={}", def.context_name(), def.pred_name(), def.pivot_name(),
                       def.branch()),
           indent, lines);
}

void AddContext(const tf::WhileContextDef& def, const std::string& indent, std::vector<std::string>* lines) {
  AddLines(def,
           fmt::format("while {} parallel_iterations={} back_prop={} swap_memory={} pivot={} pivot_for_pred={} "
                       "pivot_for_body={} exits={} enters={} maximum_iterations={}",
                       def.context_name(), def.parallel_iterations(), int{def.back_prop()}, int{def.swap_memory()},
                       def.pivot_name(), def.pivot_for_pred_name(), def.pivot_for_body_name(),
                       Commas(def.loop_exit_names()), Commas(def.loop_enter_names()), def.maximum_iterations_name()),
           indent, lines);
}

template <class Def>
void AddLines(const Def& def, const std::string& head, const std::string& indent, std::vector<std::string>* lines) {
  std::set<std::string> external;
  for (const auto& [outside, inside] : def.values_def().external_values()) external.insert(outside + ">" + inside);
  lines->push_back(indent + head + " values=" + Commas(def.values_def().values()) + " external=" + Commas(external));
  for (const tf::ControlFlowContextDef& nested : def.nested_contexts()) {
    if (nested.has_cond_ctxt()) AddContext(nested.cond_ctxt(), indent + "  ", lines);
    if (nested.has_while_ctxt()) AddContext(nested.while_ctxt(), indent + "  ", lines);
  }
}

std::vector<std::string> Lines(Graph& graph) {
  std::vector<std::string> lines;
  std::vector<Operation> operations = graph.Operations();
  std::ranges::sort(operations, {}, &Operation::name);
  for (const Operation& operation : operations) lines.push_back(NodeLine(operation));
  for (const char* key : {"cond_context", "while_context"}) {
    for (const CollectionEntry& entry : graph.GetCollection(key)) {
      const Result<std::string> bytes = entry.context->Serialize();
      EXPECT_TRUE(Succeeds(bytes));
      tf::CondContextDef cond;
      tf::WhileContextDef loop;
      if (key == std::string_view("cond_context") && cond.ParseFromString(*bytes)) AddContext(cond, "", &lines);
      if (key == std::string_view("while_context") && loop.ParseFromString(*bytes)) AddContext(loop, "", &lines);
    }
  }
  return lines;
}

/// TensorFlow's graph of the case.
std::vector<std::string> Expected(const std::string& name) {
  std::istringstream file(ReadText(std::string(WEIR_TEST_TABLES) + "/control_flow_graphs.txt"));
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("== ")) {
      inside = line.substr(3) == name;
    } else if (inside) {
      lines.push_back(line);
    }
  }
  return lines;
}

/// Compares sorted sets of lines; equally named nodes in another order show up in the inputs.
void ExpectGraph(const std::string& name, const std::function<void()>& build) {
  Fresh f;
  build();
  ASSERT_TRUE(Succeeds(f.graph.status())) << name;
  const std::vector<std::string> wanted = Expected(name);
  ASSERT_FALSE(wanted.empty()) << name << " is not in control_flow_graphs.txt";
  const std::vector<std::string> made = Lines(f.graph);
  for (const std::string& line : wanted) {
    EXPECT_NE(std::ranges::find(made, line), made.end()) << name << ": TensorFlow has " << line;
  }
  for (const std::string& line : made) {
    EXPECT_NE(std::ranges::find(wanted, line), wanted.end()) << name << ": TensorFlow does not have " << line;
  }
}

std::vector<std::pair<Output, BranchFn>> TwoBranches(const Output& x, const Output& y) {
  return {{Less(x, y), [] { return Constant(1.0f); }}, {Greater(x, y), [] { return Constant(2.0f); }}};
}

TEST(ControlFlowGraph, F173_cond) {
  ExpectGraph("cond_of_values", [] {
    const Output x = Real("x"), y = Real("y");
    Cond(
        Less(x, y),
        [&] {
          const Output product = x * y;
          return x + product;
        },
        [&] { return Square(y); });
  });
  ExpectGraph("cond_that_returns_outer_values", [] {
    const Output p = Flag("p"), x = Real("x");
    Cond(
        p, [&] { return x; }, [] { return Constant(2.0f); });
  });
  ExpectGraph("cond_of_operations", [] {
    const Output p = Flag("p");
    const Variable v(1.0f, {.name = "v"});
    Cond(
        p, [&] { return Group({v.AssignAdd(1.0f)}); }, [] { return NoOp(); });
  });
  ExpectGraph("cond_of_lists", [] {
    const Output p = Flag("p");
    const Variable v(1.0f, {.name = "v"});
    Cond(
        p,
        [&] {
          const Output assigned = v.Assign(2.0f);
          return std::vector<Output>{assigned + 1.0f, v + 0.0f};
        },
        [&] {
          return std::vector<Output>{v * 1.0f, Constant(3.0f)};
        });
  });
  ExpectGraph("cond_in_cond", [] {
    const Output p = Flag("p"), q = Flag("q"), x = Real("x");
    Cond(
        p,
        [&] {
          return Cond(
              q, [&] { return x * 2.0f; }, [&] { return x; });
        },
        [&] { return x - 1.0f; });
  });
}

TEST(ControlFlowGraph, F173_cond_and_control_dependencies) {
  ExpectGraph("cond_under_control", [] {
    const Output p = Flag("p"), x = Real("x");
    const Output a = Identity(x, "a");
    const ControlDependencies after({a.op()});
    Cond(
        p, [] { return Constant(1.0f); }, [&] { return x * 2.0f; });
  });
  ExpectGraph("control_within_cond", [] {
    const Output p = Flag("p"), x = Real("x");
    const Output a = Identity(x, "a");
    Cond(
        p,
        [&] {
          const ControlDependencies after({a.op()});
          return Constant(1.0f);
        },
        [&] {
          const Output b = Constant(4.0f, DType::kInvalid, "b");
          const ControlDependencies after({b.op()});
          return Constant(1.0f, DType::kInvalid, "c");
        });
  });
}

TEST(ControlFlowGraph, F174_case) {
  ExpectGraph("case_with_default", [] {
    const Output x = Real("x"), y = Real("y");
    Case(TwoBranches(x, y), [] { return Constant(3.0f); });
  });
  ExpectGraph("case_exclusive", [] {
    const Output x = Real("x"), y = Real("y");
    Case(TwoBranches(x, y), [] { return Constant(3.0f); }, {.exclusive = true});
  });
  ExpectGraph("case_without_default", [] {
    const Output x = Real("x"), y = Real("y");
    Case(TwoBranches(x, y));
  });
  ExpectGraph("case_of_one", [] {
    const Output x = Real("x"), y = Real("y");
    std::vector<std::pair<Output, BranchFn>> both = TwoBranches(x, y);
    both.pop_back();
    Case(both);
  });
}

TEST(ControlFlowGraph, F177_loop) {
  ExpectGraph("loop", [] {
    const Output i = Int(0, "i"), a = Constant(1.0f, DType::kInvalid, "a");
    WhileLoop([](const LoopVars& v) { return Less(v[0], 10); },
              [](const LoopVars& v) {
                const Output next = v[0] + 1;
                const Output twice = 2.0f * v[1];
                return LoopVars{next, twice + Cast(v[0], DType::kFloat)};
              },
              {i, a});
  });
  ExpectGraph("loop_of_literals", [] {
    WhileLoop([](const LoopVars& v) { return Less(v[0], 3); },
              [](const LoopVars& v) {
                return LoopVars{v[0] + 1, v[1]};
              },
              {0, 1.5f});
  });
  ExpectGraph("loop_that_assigns", [] {
    const Variable v(1.0f, {.name = "v"});
    WhileLoop([](Output i) { return Less(i, 3); },
              [&](Output i) {
                const Output next = i + 1;
                return Tuple({next}, {v.AssignAdd(1.0f)})[0];
              },
              Int(0));
  });
}

TEST(ControlFlowGraph, F392_loop_arguments) {
  ExpectGraph("loop_with_captures", [] {
    const Output x = Real("x"), n = Placeholder(DType::kInt32, PartialShape::Of({}), "n");
    WhileLoop([&](const LoopVars& v) { return Less(v[0], n); },
              [&](const LoopVars& v) {
                const Output next = v[0] + 1;
                const Output product = v[1] * x;
                return LoopVars{next, product + x};
              },
              {Int(0), Constant(0.0f)}, {.parallel_iterations = 3, .back_prop = false, .swap_memory = true});
  });
  ExpectGraph("loop_with_maximum", [] {
    WhileLoop([](Output i) { return Less(i, 10); }, [](Output i) { return i + 1; }, Int(0, "i"),
              {.maximum_iterations = 3});
  });
  ExpectGraph("loop_of_two_with_maximum", [] {
    const Output i = Int(0, "i"), a = Constant(1.0f, DType::kInvalid, "a");
    WhileLoop([](const LoopVars& v) { return Less(v[0], 10); },
              [](const LoopVars& v) {
                const Output next = v[0] + 1;
                return LoopVars{next, 2.0f * v[1]};
              },
              {i, a}, {.maximum_iterations = 3});
  });
  ExpectGraph("loop_on_a_device", [] {
    const Output x = [] {
      const DeviceScope other("/cpu:1");
      return Real("x");
    }();
    const DeviceScope on("/cpu:0");
    WhileLoop([](Output a) { return Less(a, 9.0f); }, [&](Output a) { return a + x; }, Constant(0.0f));
  });
}

TEST(ControlFlowGraph, F177_nesting) {
  ExpectGraph("loop_in_loop", [] {
    const Output x = Real("x");
    const auto body = [&](const LoopVars& outer) {
      const auto inner = [&](const LoopVars& v) {
        const Output next = v[0] + 1;
        const Output product = v[1] * x;
        return LoopVars{next, product + Cast(outer[0], DType::kFloat)};
      };
      const LoopVars made = WhileLoop([](const LoopVars& v) { return Less(v[0], 2); }, inner, {Int(0), outer[1]});
      return LoopVars{outer[0] + 1, made.size() == 2 ? made[1] : Output()};
    };
    WhileLoop([](const LoopVars& v) { return Less(v[0], 2); }, body, {Int(0), x});
  });
  ExpectGraph("cond_in_loop", [] {
    const Output x = Real("x");
    const auto body = [&](const LoopVars& v) {
      const Output even = Equal(FloorMod(v[0], 2), 0);
      const Output next = v[0] + 1;
      return LoopVars{next, Cond(
                                even, [&] { return v[1] + x; },
                                [&] {
                                  const Output two = Constant(2.0f);
                                  return two * v[1];
                                })};
    };
    WhileLoop([](const LoopVars& v) { return Less(v[0], 4); }, body, {Int(0), x});
  });
  ExpectGraph("loop_in_cond", [] {
    const Output x = Real("x"), p = Flag("p");
    const auto loop = [&] {
      const LoopVars exits = WhileLoop([](const LoopVars& v) { return Less(v[0], 3); },
                                       [&](const LoopVars& v) {
                                         const Output next = v[0] + 1;
                                         return LoopVars{next, v[1] * x};
                                       },
                                       {Int(0), x});
      return exits.size() == 2 ? exits[1] : Output();
    };
    Cond(p, loop, [&] { return x; });
  });
}

TEST(ControlFlowGraph, F177_loop_and_control_dependencies) {
  ExpectGraph("loop_under_control", [] {
    const Output x = Real("x");
    const Output c = Identity(x, "c"), b = Identity(x, "b");
    const Output start = Int(0);
    const ControlDependencies after({c.op()});
    WhileLoop([](Output i) { return Less(i, 3); },
              [&](Output i) {
                const ControlDependencies inner({b.op()});
                Int(3);
                return i + 1;
              },
              start);
  });
  ExpectGraph("control_within_loop", [] {
    WhileLoop([](Output i) { return Less(i, 3); },
              [](Output i) {
                const Output c = Int(7, "c");
                const Output d = [&] {
                  const ControlDependencies after({c.op()});
                  return Identity(i, "d");
                }();
                return d + 1;
              },
              Int(0));
  });
}

TEST(ControlFlowGraph, F176_tuple_and_with_dependencies) {
  ExpectGraph("tuples", [] {
    const Output a = Real("a"), b = Real("b");
    const Output product = a * b, sum = a + b;
    const std::vector<Output> gated = Tuple({product, Output(), sum});
    ASSERT_EQ(gated.size(), 3u);
    EXPECT_FALSE(gated[1].exists());
    Tuple({a, b}, {NoOp("z")});
  });
  ExpectGraph("with_dependencies", [] {
    const Output a = Real("a"), b = Real("b");
    WithDependencies({a}, b);
  });
}

TEST(ControlFlowGraph, F390_assertion_is_a_cond) {
  ExpectGraph("assertion", [] {
    const Output p = Flag("p"), x = Real("x");
    Assert(p, {"text", x}, {.summarize = 5});
  });
}

Output RealVector(std::string_view name, int64_t size) { return Placeholder(DType::kFloat, {size}, name); }

TEST(ControlFlowGraph, F178_loops_over_slices) {
  ExpectGraph("mapped", [] {
    MapFn([](const Output& e) { return e * 2.0f; }, Placeholder(DType::kFloat, {-1, 2}, "x"));
    const Output a = RealVector("a", 3), b = RealVector("b", 3);
    MapFn([](const List<Output>& e) -> List<Output> { return {e[0] + e[1]}; }, {a, b},
          {.dtype = {DType::kFloat}, .name = "sums"});
  });
  ExpectGraph("folded", [] {
    const Output x = RealVector("x", -1);
    const FoldFunction sum = [](const Output& a, const Output& e) { return a + e; };
    const FoldFunction difference = [](const Output& a, const Output& e) { return a - e; };
    FoldL(sum, x);
    FoldR(difference, x, {.initializer = 1.0f});
    FoldR(difference, RealVector("y", 4));
  });
  ExpectGraph("scanned", [] {
    Scan([](const Output& a, const Output& e) { return a + e; }, RealVector("x", 3));
    Scan([](const Output& a, const Output& e) { return a * e; }, RealVector("y", -1),
         {.initializer = 2.0f, .reverse = true});
  });
}

TEST(ControlFlowGraph, F178_F394_arrays_of_tensors) {
  ExpectGraph("array_of_tensors", [] {
    const Output x = RealVector("x", 2);
    const TensorArray array =
        TensorArray(DType::kFloat, 3, {.name = "ta"}).Write(0, x).Write(1, {1.0f, 2.0f}, "second");
    array.Read(1);
    array.Stack();
    array.Gather({1, 0});
    array.Concat();
    array.Grad("g").Size();
    const TensorArray other =
        TensorArray(DType::kFloat, 0, {.dynamic_size = true}).Unstack(Placeholder(DType::kFloat, {-1, 2}, "y"));
    other.Size();
    other.Stack();
    const TensorArray pieces = TensorArray(DType::kFloat, 2, {.infer_shape = false}).Split(RealVector("z", 5), {2, 3});
    pieces.Concat();
    pieces.Close();
  });
}

TEST(ControlFlowGraph, F379_F380_queues) {
  ExpectGraph("queue", [] {
    const FIFOQueue q(3, {DType::kFloat}, {.shapes = {PartialShape(Shape())}, .name = "q"});
    q.Enqueue(1.0f);
    q.DequeueMany(2);
    q.Size();
    q.Close();
    q.IsClosed();
    q.DequeueUpTo(2);
    q.EnqueueMany({{1.0f, 2.0f}});
    const NameScope scope("s");
    const FIFOQueue two(5, {DType::kInt32, DType::kFloat});
    two.Enqueue({1, 2.0f});
    two.Dequeue();
    two.Dequeue("taken");
  });
}

TEST(ControlFlowGraph, F390_comparisons_that_are_checked) {
  ExpectGraph("comparisons_that_are_checked", [] {
    const Output x = Placeholder(DType::kInt32, {2}, "x"), y = RealVector("y", 2);
    AssertEqual(x, {1, 2});
    AssertLess(y, {3.0f, 4.0f}, {.message = "too large"});
    AssertPositive(x);
    AssertNonNegative(y);
    AssertRank(y, 1);
    AssertRank(Placeholder(DType::kFloat, PartialShape(), "z"), 2);
    AssertType(x, DType::kInt32);
  });
  ExpectGraph("numerics_that_are_checked", [] {
    Log(Real("x"));
    AddCheckNumericsOps();
  });
}

TEST(ControlFlowGraph, F064_resources_are_read_where_they_are_used) {
  ExpectGraph("resources_as_operands", [] {
    const Variable r({1.0f, 2.0f}, {.name = "r", .use_resource = true});
    const Variable s(3.0f, {.name = "s", .use_resource = true});
    const Output x = Real("x");
    const std::vector<Output> uses = {
        r + 1.0f, 1.0f - r, r * s, x / s, -r, Square(r), ReduceSum(r), Concat({r, {1.0f}, r}, 0), AddN({r, r})};
    EXPECT_EQ(uses[2].shape(), PartialShape::Of({2}));
    BiasAdd(Reshape(r, {1, 2}), r);
    s.AssignAdd(1);
    s.Assign(s);
    const DeviceScope host("/cpu:0");
    Relu(r);
    r.ReadValue();
  });
  ExpectGraph("cond_of_resources", [] {
    const Output p = Flag("p");
    const Variable r(1.0f, {.name = "r", .use_resource = true});
    Cond(
        p,
        [&] {
          const ControlDependencies after(r.AssignAdd(1.0f).op().control_inputs());
          return r * 10.0f;
        },
        [&] { return r.value(); });
  });
  ExpectGraph("loop_of_resources", [] {
    const Variable r(1.0f, {.name = "r", .use_resource = true});
    WhileLoop([&](const Output& i) { return Less(i, r); },
              [&](const Output& i) {
                const ControlDependencies after(r.AssignAdd(1.0f).op().control_inputs());
                return i + r;
              },
              r);
  });
}

TEST(ControlFlowGraph, F062_initial_values_that_read_variables) {
  ExpectGraph("initial_values_that_read", [] {
    const Variable a(1.0f, {.name = "a"}), b(2.0f, {.name = "b", .collections = {keys::kLocalVariables}});
    const Variable n(2.0f, {.name = "n", .collections = {"others"}});
    const Output x = b * a;
    {
      const NameScope scope("s");
      const Output square = x * x;
      const Variable d(square + a, {.name = "d"});
    }
    GetVariable("e", {.initializer = x * n});
    const Variable f(a, {.name = "f", .use_resource = true});
  });
}

}  // namespace
}  // namespace weir::test
