// Requested and actual devices of operations: replicas, optimisers, device lists. Numbers are rows of the feature list.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Names = std::vector<std::string>;

std::string DeviceOf(Graph& graph, const std::string& name) {
  const Result<Operation> operation = graph.OperationByName(name);
  return operation.ok() ? operation->device() : operation.status().ToString();
}

DeviceRequest Setter(const ReplicaDeviceOptions& options) {
  const Result<DeviceRequest> setter = ReplicaDeviceSetter(options);
  EXPECT_TRUE(Succeeds(setter));
  return setter.ok() ? *setter : DeviceRequest();
}

const std::map<std::string, std::vector<std::string>> kCluster = {
    {"ps", {"ps0:2222", "ps1:2222"}}, {"worker", {"worker0:2222", "worker1:2222", "worker2:2222"}}};

// As TensorFlow 2.17 places the same program.
TEST(ReplicaDevices, F111_variables_go_round_the_servers_and_the_rest_to_the_worker) {
  Fresh f;
  {
    const DeviceScope replica(Setter({.cluster = kCluster}));
    const Variable v1(1.0f, {.name = "v1"}), v2(1.0f, {.name = "v2"});
    {
      const DeviceScope gpu("/gpu:1");
      const Variable v3(1.0f, {.name = "v3"});
      Constant(1.0f, DType::kFloat, "c");
    }
    {
      const DeviceScope other("/job:other");
      const Variable v4(1.0f, {.name = "v4"});
    }
    {
      const DeviceScope task("/job:ps/task:7");
      const Variable v5(1.0f, {.name = "v5"});
    }
    const Variable v6(1.0f, {.name = "v6"});
  }
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  const std::map<std::string, std::string> wanted = {
      {"v1", "/job:ps/task:0"},
      {"v1/initial_value", "/job:worker"},
      {"v1/Assign", "/job:ps/task:0"},
      {"v1/read", "/job:ps/task:0"},
      {"v2", "/job:ps/task:1"},
      {"v2/read", "/job:ps/task:1"},
      {"v3", "/job:ps/task:0/device:GPU:1"},
      {"v3/Assign", "/job:ps/task:0/device:GPU:1"},
      {"v3/initial_value", "/job:worker/device:GPU:1"},
      {"c", "/job:worker/device:GPU:1"},
      {"v4", "/job:other"},
      {"v4/initial_value", "/job:other"},
      {"v5", "/job:ps/task:7"},
      {"v6", "/job:ps/task:0"},
  };
  for (const auto& [name, device] : wanted) EXPECT_EQ(DeviceOf(f.graph, name), device) << name;
}

TEST(ReplicaDevices, F111_options) {
  Fresh f;
  {
    const DeviceScope replica(Setter({.ps_tasks = 1, .worker_device = "/job:worker/task:1", .merge_devices = false}));
    {
      const DeviceScope gpu("/gpu:1");
      EXPECT_EQ(Variable(1.0f, {.name = "n1"}).op().device(), "/device:GPU:1");
    }
    EXPECT_EQ(Constant(1.0f, DType::kFloat, "n2").op().device(), "/job:worker/task:1");
    EXPECT_EQ(Variable(1.0f, {.name = "n3"}).op().device(), "/job:ps/task:0");
  }
  {
    const DeviceScope replica(Setter({.ps_tasks = 3, .ps_device = "/job:p/cpu:0", .ps_ops = {"Const"}}));
    EXPECT_EQ(Constant(1.0f, DType::kFloat, "p1").op().device(), "/job:p/task:0/device:CPU:0");
    EXPECT_EQ(Variable(1.0f, {.name = "p2"}).op().device(), "/job:worker");
    EXPECT_EQ(DeviceOf(f.graph, "p2/initial_value"), "/job:p/task:1/device:CPU:0");
  }
  {
    const DeviceScope replica(Setter({.ps_tasks = 9, .ps_strategy = [](const Operation& operation) {
                                        return static_cast<int>(operation.name().size());
                                      }}));
    EXPECT_EQ(Variable(1.0f, {.name = "four"}).op().device(), "/job:ps/task:4");
  }
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  EXPECT_TRUE(Setter({}).clears);
  EXPECT_TRUE(Setter({.cluster = {{{"worker", {"w:1"}}}}}).clears);
  EXPECT_TRUE(Fails(ReplicaDeviceSetter({.ps_tasks = 1, .ps_device = "/foo:0"}), Code::kInvalidArgument,
                    "Unknown attribute: 'foo' in '/foo:0'"));
}

TEST(OptimizerPlacement, F113_updates_and_slots_go_with_their_variable) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  Variable v;
  {
    const DeviceScope gpu("/gpu:1");
    v = Variable(3.0f, {.name = "v"});
  }
  const Output loss = (w * w) * v;
  EXPECT_EQ(GradientDescentOptimizer(0.1).Minimize(loss).name(), "GradientDescent");
  MomentumOptimizer(0.1, 0.9).Minimize(loss);
  AdamOptimizer().Minimize(loss);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  const auto beside = [&](const std::string& name) {
    const Result<Operation> operation = f.graph.OperationByName(name);
    const op::AttrValue* groups = operation.ok() ? operation->node().attrs().Find("_class") : nullptr;
    return groups == nullptr ? "" : groups->ToString();
  };
  const std::string gpu = "/device:GPU:1";
  const std::map<std::string, std::pair<std::string, std::string>> wanted = {
      {"GradientDescent/update_w/ApplyGradientDescent", {"", "loc:@w"}},
      {"GradientDescent/update_v/ApplyGradientDescent", {gpu, "loc:@v"}},
      {"w/Momentum", {"", "loc:@w"}},
      {"w/Momentum/Initializer/zeros", {"", "loc:@w"}},
      {"w/Momentum/Assign", {"", "loc:@w"}},
      {"v/Momentum", {gpu, "loc:@v"}},
      {"v/Momentum/read", {gpu, "loc:@v"}},
      {"Momentum/update_v/ApplyMomentum", {gpu, "loc:@v"}},
      {"beta1_power", {gpu, "loc:@v"}},  // with the variable whose name comes first
      {"beta2_power/Assign", {gpu, "loc:@v"}},
      {"Adam/mul", {gpu, "loc:@v"}},
      {"Adam/Assign", {gpu, "loc:@v"}},
  };
  for (const auto& [name, where] : wanted) {
    EXPECT_EQ(DeviceOf(f.graph, name), where.first) << name;
    EXPECT_EQ(beside(name), "[\"" + where.second + "\"]") << name;
  }
  EXPECT_EQ(DeviceOf(f.graph, "GradientDescent/NoOp_1"), gpu) << "one group of updates per device";
  EXPECT_EQ(DeviceOf(f.graph, "GradientDescent/learning_rate"), "");
}

TEST(OptimizerPlacement, F113_names_of_gradients_and_updates) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  const Output loss = w * w;
  const size_t before = NodeNames(f.graph).size();
  const Variable step(Tensor::Scalar<int64_t>(0), {.name = "step", .trainable = false});
  GradientDescentOptimizer(0.1).Minimize(loss, {.global_step = step});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Names names = NodeNames(f.graph);
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(before));
  for (const char* name :
       {"gradients/Shape", "gradients/grad_ys_0", "gradients/mul_grad/Mul", "gradients/mul_grad/Mul_1",
        "gradients/mul_grad/tuple/group_deps", "gradients/mul_grad/tuple/control_dependency",
        "gradients/mul_grad/tuple/control_dependency_1", "gradients/AddN", "GradientDescent/learning_rate",
        "GradientDescent/update_w/ApplyGradientDescent", "GradientDescent/update", "GradientDescent"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  const auto of_product = [](const std::string& name) { return name.starts_with("gradients/mul_grad/"); };
  EXPECT_EQ(std::ranges::count_if(names, of_product), 5) << "operands of one known shape were not broadcast";
  EXPECT_EQ(f.graph.OperationByName("GradientDescent")->type(), "AssignAdd");
  const NameScope tower("tower_0");
  const Output y = Multiply(w, Constant(3.0f, DType::kFloat, "three"), "y");
  ASSERT_TRUE(Succeeds(Gradients({y}, {w.value()})));
  EXPECT_TRUE(f.graph.OperationByName("tower_0/gradients/tower_0/y_grad/Mul").ok());
}

TEST(InGraphReplication, F114_F128_two_towers_give_the_seeds_sum_on_any_number_of_devices) {
  Fresh f;
  std::vector<Operand> towers;
  for (const char* device : {"/device:GPU:2", "/device:GPU:3"}) {
    const DeviceScope on(device);
    const Output a = Constant({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
    const Output b = Constant({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}});
    towers.emplace_back(MatMul(a, b));
  }
  Output sum;
  {
    const DeviceScope cpu("/cpu:0");
    sum = AddN(towers);
  }
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  for (const int cpus : {1, 2, 4}) {
    ConfigProto config;
    config.device_count["CPU"] = cpus;
    config.graph_options.optimizer_options.opt_level = "L0";  // otherwise the sum is folded
    Session session(f.graph, config);
    ASSERT_TRUE(Succeeds(session.status()));
    EXPECT_EQ(Values(session, sum), (std::vector<double>{44, 56, 98, 128})) << cpus;
    EXPECT_EQ(session.ListDevices().size(), static_cast<size_t>(cpus));
  }
  // As in the feature's example: the nodes are folded, and each is still logged; hard placement finds no GPU.
  for (const bool soft : {true, false}) {
    ConfigProto config;
    config.allow_soft_placement = soft;
    config.log_device_placement = true;
    Session session(f.graph, config);
    ::testing::internal::CaptureStderr();
    const Status ran = session.Run(sum).status();
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(ran.ok(), soft) << ran.ToString();
    EXPECT_EQ(log.find("MatMul_1: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0\n") != std::string::npos, soft)
        << log;
    if (!soft) {
      EXPECT_NE(ran.message().find("was explicitly assigned to /device:GPU:2"), std::string::npos) << ran.ToString();
    }
  }
}

// An op that reads a reference itself, without the read that a variable makes, keeps the device that it asks for.
TEST(VariablePlacement, F112_AVariableOnOneDeviceIsReadOnAnother) {
  Fresh f;
  Variable v;
  {
    const DeviceScope on("/cpu:0");
    v = Variable({{1.0f, 2.0f}, {3.0f, 4.0f}}, {.name = "v"});
  }
  Output read, direct, after;
  {
    const DeviceScope on("/cpu:1");
    const Output x = Placeholder(DType::kFloat, {2, 2}, "x");
    read = MatMul(v, x, {.name = "read"});
    direct = BuildOp("MatMul", {v.handle(), x}, {}, "direct").output(0);
    const ControlDependencies changed({v.AssignAdd(Ones(Shape{2, 2}))});
    after = BuildOp("MatMul", {v.handle(), x}, {}, "after").output(0);
  }
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  ConfigProto config;
  config.device_count["CPU"] = 2;
  config.allow_soft_placement = false;
  config.graph_options.optimizer_options.opt_level = "L0";  // otherwise the products of the identity are merged
  Session session(f.graph, config);
  ASSERT_TRUE(session.status().ok()) << session.status().ToString();
  Initialize(session);
  const Feeds identity = {{"x:0", {{1.0f, 0.0f}, {0.0f, 1.0f}}}};
  using Figures = std::vector<double>;
  EXPECT_EQ(Values(session, read, identity), (Figures{1, 2, 3, 4}));
  EXPECT_EQ(Values(session, direct, identity), (Figures{1, 2, 3, 4}));
  EXPECT_EQ(Values(session, after, identity), (Figures{2, 3, 4, 5}));
  std::map<std::string, std::string> devices;
  for (const session::PlacedNode& node : session.Placement()) devices[node.node] = node.device;
  for (const char* node : {"read", "direct", "after"}) EXPECT_TRUE(devices[node].ends_with("/device:CPU:1")) << node;
  for (const char* node : {"v", "v/Assign", "AssignAdd"}) EXPECT_TRUE(devices[node].ends_with("/device:CPU:0")) << node;
}

TEST(DeviceList, F116_names_types_and_memory) {
  Fresh f;
  Constant(1.0f);
  ConfigProto config;
  config.device_count["CPU"] = 2;
  Session session(f.graph, config);
  const std::vector<session::DeviceAttributes> devices = session.ListDevices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(devices[1].name, "/job:localhost/replica:0/task:0/device:CPU:1");
  for (const session::DeviceAttributes& device : devices) {
    EXPECT_EQ(device.device_type, "CPU");
    EXPECT_GT(device.memory_limit_bytes, 0u);  // the machine's memory; TensorFlow always reports 268435456
  }
  const Result<std::vector<session::DeviceAttributes>> local = ListLocalDevices();
  ASSERT_TRUE(Succeeds(local));
  ASSERT_FALSE(local->empty());
  EXPECT_EQ((*local)[0].name, "/device:CPU:0");
}

TEST(DeviceList, F312_compiled_loaded_visible_and_used_are_told_apart) {
  Fresh f;
  Output y;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({2}), "x");
  {
    const DeviceScope cpu("/cpu:1");
    y = Square(x);
  }
  ConfigProto config;
  config.device_count["CPU"] = 3;
  config.plugins.deny = {"kernels_openblas"};
  Session session(f.graph, config);
  ASSERT_TRUE(Succeeds(session.status()));
  const auto has = [](const Names& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  session::DeviceReport report = session.ReportDevices();
  EXPECT_TRUE(has(report.compiled, "cpu") && has(report.compiled, "kernels_eigen"));
  EXPECT_TRUE(has(report.loaded, "cpu"));
  EXPECT_FALSE(has(report.loaded, "kernels_openblas"));
  EXPECT_EQ(report.visible.size(), 3u);
  EXPECT_EQ(report.used, Names());
  ASSERT_TRUE(Succeeds(session.Run(y, {{x, {1.0f, 2.0f}}})));
  report = session.ReportDevices();
  EXPECT_EQ(report.used, Names{"/job:localhost/replica:0/task:0/device:CPU:1"});
}

// As TensorFlow 2.17 places the same program.
TEST(ResourcePlacement, nodes_of_a_variable_are_where_its_handle_is) {
  Fresh f;
  const Output x = Constant(1.0f, DType::kInvalid, "x");
  const DeviceScope chooses([](const Operation& operation) {
    return operation.type() == "VarHandleOp" ? std::string("/cpu:7") : operation.device();
  });
  const Variable v(1.0f, {.name = "v", .use_resource = true});
  EXPECT_EQ(v.initializer().device(), "/device:CPU:7");
  EXPECT_EQ(v.snapshot().op().device(), "/device:CPU:7");
  const ColocateWith beside(x);
  const Variable w(1.0f, {.name = "w", .use_resource = true});
  EXPECT_TRUE(w.op().node().attrs().Has("_class"));
  EXPECT_FALSE(w.initializer().node().attrs().Has("_class"));
}

TEST(ResourcePlacement, dependencies_keep_outer_colocation) {
  Fresh f;
  const Output x = Constant(1.0f, DType::kInvalid, "x"), y = Constant(1.0f, DType::kInvalid, "y");
  const ColocateWith beside(y);
  const Output after = WithDependencies({x}, x);
  const auto* classes = after.op().node().attrs().Find("_class");
  ASSERT_NE(classes, nullptr);
  EXPECT_EQ(*classes->get<Names>(), (Names{"loc:@x", "loc:@y"}));
}

}  // namespace
}  // namespace weir::test
