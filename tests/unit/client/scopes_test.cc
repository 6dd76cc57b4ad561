// Control-dependency, device, colocation, attribute and container scopes; stacks of defaults. Numbers are rows of the
// feature list.
#include <thread>

#include "core/client/graph/graph_internal.h"
#include "core/graph/graph_def.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

std::vector<std::string> ControlNames(const Operation& operation) {
  std::vector<std::string> names;
  for (const Operation& control : operation.control_inputs()) names.push_back(control.name());
  return names;
}
using Names = std::vector<std::string>;

Names ClassesOf(const Operation& operation) {
  for (const auto& [name, value] : operation.node().attrs().explicit_values()) {
    if (name == "_class") return *value.get<Names>();
  }
  return {};
}

TEST(ControlDependencies, F355_nesting_and_what_is_left_out) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  const Output before = x * 3.0f;
  const Output y = x + 1.0f;
  {
    const ControlDependencies after_y({y});
    const Operation a = NoOp("a");
    EXPECT_EQ(ControlNames(a), Names{"add"});
    {
      const ControlDependencies after_a({a});
      EXPECT_EQ(ControlNames(NoOp("b")), (Names{"add", "a"}));
      const Output k = Identity(y, "k");
      EXPECT_EQ(ControlNames(k.op()), Names{"a"});  // the other one is already an input
      EXPECT_TRUE(ControlNames(Identity(k).op()).empty());
      {
        const ControlDependencies none(std::nullopt);
        EXPECT_TRUE(ControlNames(NoOp("free")).empty());
        const ControlDependencies after_x({x});
        EXPECT_EQ(ControlNames(NoOp("x_only")), Names{"x"});
      }
      EXPECT_EQ(ControlNames(NoOp("back")), (Names{"add", "a"}));
    }
  }
  EXPECT_TRUE(ControlNames(before.op()).empty());
  EXPECT_TRUE(ControlNames(NoOp("outside")).empty());
}

TEST(ControlDependencies, F355_variables) {
  Fresh f;
  const Output x = Constant(1.0f, DType::kInvalid, "x");
  const Variable v(0.0f, {.name = "v"});
  {
    const ControlDependencies after({x});
    const Variable plain(1.0f, {.name = "plain"});
    const Variable got = GetVariable("got", Shape::Of({2}));
    for (const Operation& operation : f.graph.Operations()) {
      EXPECT_TRUE(ControlNames(operation).empty()) << operation.name();
    }
  }
  {
    const ControlDependencies after({v});
    EXPECT_EQ(ControlNames(NoOp("after_v")), Names{"v"});
  }
  Output read, five;
  {
    const ControlDependencies after({v.AssignAdd(1.0f)});
    read = v.ReadValue();
    five = Constant(5.0f);
  }
  EXPECT_EQ(read.op().name(), "read");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, read), 1);
  EXPECT_EQ(Value(session, five), 5);
  EXPECT_EQ(Value(session, v), 2);
  Output nothing;
  { const ControlDependencies bad({nothing}); }
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Control input must be an Operation"));
}

TEST(DeviceScopes, F104_nested_names_merge_and_none_clears) {
  Fresh f;
  const auto device = [](const char* name) { return NoOp(name).device(); };
  const DeviceScope ps("/job:ps");
  EXPECT_EQ(device("a"), "/job:ps");
  const DeviceScope gpu("/gpu:2");
  EXPECT_EQ(device("b"), "/job:ps/device:GPU:2");
  {
    const DeviceScope cpu("/device:CPU:*");
    EXPECT_EQ(device("c"), "/job:ps/device:CPU:2");
  }
  {
    const DeviceScope worker("/job:worker/task:1");
    EXPECT_EQ(device("d"), "/job:worker/task:1/device:GPU:2");
  }
  {
    const DeviceScope nothing("");
    EXPECT_EQ(device("e"), "/job:ps/device:GPU:2");
  }
  {
    const DeviceScope none(std::nullopt);
    EXPECT_EQ(device("f"), "");
    const DeviceScope task("/task:3");
    EXPECT_EQ(device("h"), "/task:3");
  }
  const auto nested = [&](const char* outer, const char* inner) {
    const DeviceScope none(std::nullopt);
    const DeviceScope one(outer), two(inner);
    return NoOp("n").device();
  };
  EXPECT_EQ(nested("/job:ps", "/gpu:0"), "/job:ps/device:GPU:0");
  EXPECT_EQ(nested("/gpu:1", "/job:ps/task:3"), "/job:ps/task:3/device:GPU:1");
  EXPECT_EQ(nested("/gpu:1", "/cpu:0"), "/device:CPU:0");
  for (const char* spelling : {"/cpu:0", "cpu:0", "device:CPU:0", "/device:CPU:0", "/device:cpu:0", "/CPU:0"}) {
    EXPECT_EQ(nested("", spelling), "/device:CPU:0") << spelling;
  }
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  { const DeviceScope bad("/foo:0"); }
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Unknown attribute: 'foo' in '/foo:0'"));
  { const DeviceScope two("/cpu:0/gpu:1"); }
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Cannot specify multiple device types: /cpu:0/gpu:1"));
}

TEST(DeviceScopes, functions_see_what_inner_scopes_ask_for) {
  Fresh f;
  const DeviceScope ps("/job:ps");
  std::vector<std::string> seen;
  const DeviceScope chooses([&](const Operation& operation) {
    seen.push_back(operation.type() + " " + operation.name() + " " + operation.device());
    return std::string("/device:GPU:7");
  });
  EXPECT_EQ(NoOp("i").device(), "/job:ps/device:GPU:7");
  const DeviceScope task("/task:9");
  EXPECT_EQ(NoOp("j").device(), "/job:ps/device:GPU:7");
  EXPECT_EQ(seen, (Names{"NoOp i ", "NoOp j /task:9"}));
}

TEST(Colocation, new_operations_join_group_and_device) {
  Fresh f;
  Output a;
  {
    const DeviceScope cpu("/cpu:1");
    a = Constant(1.0f, DType::kInvalid, "a");
  }
  const Variable v(1.0f, {.name = "v"});
  const DeviceScope w("/job:w");
  {
    const ColocateWith beside_a(a);
    const Operation b = NoOp("b");
    EXPECT_EQ(b.device(), "/device:CPU:1");
    EXPECT_EQ(ClassesOf(b), Names{"loc:@a"});
    {
      const ColocateWith beside_v(v);
      const Operation c = NoOp("c");
      EXPECT_EQ(c.device(), "/device:CPU:1");
      EXPECT_EQ(ClassesOf(c), (Names{"loc:@a", "loc:@v"}));
    }
    {
      const ColocateWith nothing(std::nullopt);
      const Operation d = NoOp("d");
      EXPECT_EQ(d.device(), "");
      EXPECT_TRUE(ClassesOf(d).empty());
    }
    const ColocateWith only_v(v, OuterColocation::kIgnore);
    EXPECT_EQ(ClassesOf(NoOp("d2")), Names{"loc:@v"});
  }
  const Operation assigned = v.AssignAdd(3.0f).op();
  EXPECT_EQ(assigned.device(), "");  // the reference's device
  EXPECT_EQ(ClassesOf(assigned), Names{"loc:@v"});
  const ColocateWith through(assigned);
  EXPECT_EQ(ClassesOf(NoOp("through")), Names{"loc:@v"});
}

TEST(Colocation, F371_reads_are_cached_where_asked) {
  Fresh f;
  const DeviceScope ps("/job:ps");
  const VariableScope scope("s", {.caching_device = "/cpu:0"});
  const Variable v = GetVariable("v", Shape::Of({2}), DType::kFloat, ZerosInitializer());
  EXPECT_EQ(v.op().device(), "/job:ps");
  EXPECT_EQ(v.initializer().device(), "/job:ps");
  EXPECT_EQ(v.value().op().device(), "/job:ps/device:CPU:0");
  EXPECT_TRUE(ClassesOf(v.value().op()).empty());
  EXPECT_EQ(v.initial_value().op().device(), "");
  EXPECT_EQ(ClassesOf(v.initial_value().op()), Names{"loc:@s/v"});
  EXPECT_EQ(ClassesOf(v.op()), Names{"loc:@s/v"});
  EXPECT_NE(v.ReadValue(), v.value());
  VariableArgs args;
  args.shape = Shape::Of({2});
  args.caching_device = [](const Operation&) { return std::string("/job:worker/cpu:0"); };
  EXPECT_EQ(GetVariable("w", args).value().op().device(), "/job:worker/device:CPU:0");
  const Variable plain(1.0f, {.name = "plain"});
  EXPECT_EQ(plain.value().op().device(), "/job:ps");
  EXPECT_EQ(ClassesOf(plain.value().op()), Names{"loc:@s/plain"});
  EXPECT_TRUE(ClassesOf(plain.op()).empty());
  args.caching_device = "/cpu:0";
  args.use_resource = true;
  const Variable r = GetVariable("r", args);
  EXPECT_EQ(r.value().name(), "s/r/Read/Identity:0");
  EXPECT_EQ(r.value(), r.snapshot());
  EXPECT_EQ(r.value().op().device(), "/device:CPU:0");
  EXPECT_EQ(r.value().op().inputs()[0].name(), "s/r/Read/ReadVariableOp:0");
  EXPECT_EQ(r.value().op().inputs()[0].op().device(), "/job:ps");
  EXPECT_EQ(r.ReadValue().op().inputs()[0].op().device(), "/device:CPU:0");
  EXPECT_EQ(r.ReadValue().op().device(), "/job:ps");
  EXPECT_EQ(Square(r).op().inputs()[0], r.snapshot());
}

TEST(AttrScopes, inner_ones_replace_and_switch_off) {
  Fresh f;
  const auto mark = [](const Operation& operation) -> std::string {
    for (const auto& [name, value] : operation.node().attrs().explicit_values()) {
      if (name == "_mark") return *value.get<std::string>();
    }
    return "";
  };
  const AttrScope one("_mark", std::string("one"));
  EXPECT_EQ(mark(NoOp()), "one");
  {
    const AttrScope two("_mark", std::string("two"));
    EXPECT_EQ(mark(NoOp()), "two");
    const AttrScope off("_mark", std::nullopt);
    EXPECT_EQ(mark(NoOp()), "");
  }
  EXPECT_EQ(mark(NoOp()), "one");
}

TEST(Containers, stateful_operations_keep_their_state_there) {
  Fresh f;
  const auto container = [](const Operation& operation) -> std::string {
    for (const auto& [name, value] : operation.node().attrs().explicit_values()) {
      if (name == "container") return *value.get<std::string>();
    }
    return "";
  };
  const ContainerScope outer("test1");
  const Variable one(1.0f);
  EXPECT_EQ(container(one.op()), "test1");
  {
    const ContainerScope inner("test2");
    EXPECT_EQ(container(Variable(1.0f).op()), "test2");
    const ContainerScope none("");
    EXPECT_EQ(container(Variable(1.0f).op()), "");
  }
  EXPECT_EQ(container(one.value().op()), "");
}

TEST(DefaultStacks, belong_to_a_thread_and_nest) {
  Graph one, two;
  const AsDefault in(one);
  EXPECT_EQ(&Graph::Default(), &one);
  Graph* elsewhere = nullptr;
  std::thread([&] {
    const AsDefault there(two);
    elsewhere = &Graph::Default();
  }).join();
  EXPECT_EQ(elsewhere, &two);
  {
    const AsDefault inner(two);
    EXPECT_EQ(&Graph::Default(), &two);
  }
  EXPECT_EQ(&Graph::Default(), &one);
}

TEST(DefaultStacks, wrong_nesting_is_an_error_and_leaves_the_rest_in_place) {
  Graph one, two;
  auto outer = std::make_unique<AsDefault>(one);
  auto inner = std::make_unique<AsDefault>(two);
  outer.reset();
  EXPECT_TRUE(
      Fails(one.TakeStatus(), Code::kFailedPrecondition, "Nesting violated for default stack of Graph objects"));
  EXPECT_EQ(&Graph::Default(), &two);
  inner.reset();
  Session first(one), second(one);
  auto lower = std::make_unique<AsDefaultSession>(first);
  auto upper = std::make_unique<AsDefaultSession>(second);
  lower.reset();
  EXPECT_TRUE(
      Fails(one.TakeStatus(), Code::kFailedPrecondition, "Nesting violated for default stack of Session objects"));
  EXPECT_EQ(Session::Default(), &second);
  upper.reset();
  EXPECT_EQ(Session::Default(), nullptr);
}

TEST(Scopes, imported_nodes_are_under_the_open_scopes) {
  std::string bytes;
  {
    Fresh f;
    const Output c = Constant(1.0f, DType::kInvalid, "layer/c");
    Identity(c, "layer/i");
    const Result<std::string> exported = graph::ExportGraphDef(Internals(f.graph).definition);
    ASSERT_TRUE(Succeeds(exported));
    bytes = *exported;
  }
  Fresh f;
  const Operation first = NoOp("first");
  {
    const DeviceScope ps("/job:ps");
    const ControlDependencies after({first});
    const NameScope q("q");
    ASSERT_TRUE(Succeeds(f.graph.Import(bytes)));
    ASSERT_TRUE(Succeeds(f.graph.Import(bytes, "p")));
  }
  EXPECT_EQ(NodeNames(f.graph), (Names{"first", "q/import/layer/c", "q/import/layer/i", "q/p/layer/c", "q/p/layer/i"}));
  const Operation c = *f.graph.OperationByName("q/p/layer/c"), i = *f.graph.OperationByName("q/p/layer/i");
  EXPECT_EQ(c.device(), "/job:ps");
  EXPECT_EQ(ControlNames(c), Names{"first"});
  EXPECT_TRUE(ControlNames(i).empty());
  EXPECT_TRUE(Fails(f.graph.Import(bytes, "_u"), Code::kInvalidArgument, "'_u' is not a valid scope name"));
}

/// A variable v on a device, c, and d colocated with c.
std::string SmallModel() {
  Fresh f;
  {
    const DeviceScope cpu("/cpu:0");
    const Variable v(1.0f, {.name = "v"});
  }
  const Output c = Constant(2.0f, DType::kInvalid, "c");
  const ColocateWith beside(c);
  Constant(3.0f, DType::kInvalid, "d");
  const Result<std::string> exported = ExportMetaGraph(f.graph);
  EXPECT_TRUE(Succeeds(exported));
  return exported.ok() ? *exported : "";
}

/// "name device groups", node by node.
Names Placed(Graph& graph) {
  Names all;
  for (const Operation& o : graph.Operations()) {
    const op::AttrValue* groups = o.node().attrs().Find("_class");
    all.push_back(o.name() + " " + o.device() + " " + (groups == nullptr ? "" : groups->ToString()));
  }
  return all;
}

TEST(Scopes, imported_nodes_go_where_those_beside_them_are) {
  const std::string bytes = SmallModel();
  {
    Fresh f;
    const DeviceScope gpu("/gpu:1");
    ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes)));
    EXPECT_EQ(Placed(f.graph),
              (Names{"v/initial_value /device:CPU:0 ", "v /device:CPU:0 ", "v/Assign /device:CPU:0 [\"loc:@v\"]",
                     "v/read /device:CPU:0 [\"loc:@v\"]", "c /device:GPU:1 ", "d /device:GPU:1 [\"loc:@c\"]"}));
  }
  Fresh f;
  const Operation z = NoOp("z");
  const ColocateWith beside(z);
  ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes)));
  const Names placed = Placed(f.graph);
  for (size_t i = 1; i < placed.size(); ++i) EXPECT_TRUE(placed[i].ends_with("  [\"loc:@z\"]")) << placed[i];
}

TEST(Scopes, imported_names_that_are_taken_are_changed) {
  const std::string bytes = SmallModel();
  Fresh f;
  ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes)));
  ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes)));
  const Names names = NodeNames(f.graph);
  EXPECT_EQ(Names(names.begin() + 6, names.end()),
            (Names{"v/initial_value_1", "v_1", "v/Assign_1", "v/read_1", "c_1", "d_1"}));
  EXPECT_EQ(Placed(f.graph)[11], "d_1  [\"loc:@c_1\"]");
  EXPECT_EQ(NoOp("v").name(), "v_2");
  ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes, f.graph, {.import_scope = "t/"})));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("t/v/Assign")));
  EXPECT_TRUE(Fails(ImportMetaGraph(bytes, f.graph, {.import_scope = "_u"}), Code::kInvalidArgument,
                    "'_u' is not a valid scope name"));
}

}  // namespace
}  // namespace weir::test
