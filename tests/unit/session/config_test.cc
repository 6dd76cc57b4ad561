// Effects of a configuration on devices, memory and sessions: the CPU and the toy device of sdk/examples.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/config/toml.h"
#include "core/place/place.h"
#include "core/session/options.h"
#include "core/session/runtime.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::Placeholder;

constexpr uint64_t kMiB = 1048576;
Result<config::Config> Read(const std::string& toml) {
  config::Settings settings;
  WEIR_TRY(config::ReadToml(toml, "weir.toml", settings));
  WEIR_ASSIGN(config::Config config, settings.Build());
  config.plugins.folders = {std::string(std::getenv("WEIR_BUILD_DIR")) + "/lib/weir/examples"};
  return config;
}

// A runtime for this TOML alone, with the toy device and the usual plugins.
Result<std::shared_ptr<Runtime>> Load(const std::string& toml) {
  WEIR_ASSIGN(const config::Config config, Read(toml));
  return Runtime::Load(LoadOptionsFrom(config));
}

// The runtime of a program with this configuration.
Result<std::shared_ptr<Runtime>> ForProgram(const config::Config& config) {
  static const Status hermetic = Runtime::SetSources(config::Sources());
  return Runtime::For(config);
}
Result<std::shared_ptr<Runtime>> ForProgram(const std::string& toml) {
  WEIR_ASSIGN(const config::Config config, Read(toml));
  return ForProgram(config);
}

std::string Fault(const std::string& toml) {
  const auto runtime = Load(toml);
  EXPECT_FALSE(runtime.ok()) << toml;
  return runtime.status().message();
}

std::vector<std::string> Names(const Runtime& runtime, const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& device : runtime.plugins->devices().all()) {
    if (device->info().kind == kind) names.push_back(device->name());
  }
  return names;
}

device::Device* Toy(const Runtime& runtime, int id = 0) {
  return runtime.plugins->devices().Find("/job:localhost/replica:0/task:0/device:TOY:" + std::to_string(id));
}

TEST(Config, F281_F119_FractionCapsTheArena) {
  const auto runtime = Load("gpu_options.per_process_gpu_memory_fraction = 0.5");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  device::Device* toy = Toy(**runtime);
  ASSERT_NE(toy, nullptr);
  EXPECT_EQ(toy->info().memory_bytes, 32 * kMiB);
  EXPECT_TRUE(toy->allocator().Allocate(20 * kMiB).ok());
  const auto first = toy->allocator().Allocate(20 * kMiB);
  const auto second = toy->allocator().Allocate(20 * kMiB);
  EXPECT_EQ(second.status().code(), Code::kResourceExhausted);
  EXPECT_NE(second.status().message().find(
                "in use of a limit of 33554432, set by weir.toml:1: gpu_options.per_process_gpu_memory_fraction"),
            std::string::npos)
      << second.status().message();
  EXPECT_EQ(toy->memory_use().reserved, 32 * kMiB);
}

TEST(Config, F281_GpuOptionsAreAMessageWithinTheConfiguration) {
  config::Config config = *Read("");
  config.gpu_options = config::GpuOptions{.per_process_gpu_memory_fraction = 0.25};
  const auto runtime = ForProgram(config);
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  const auto graph = MakeGraph({Placeholder("x", PartialShape()), {"y", "Relu", {"x"}, kFloat, "/device:TOY:0"}});
  ASSERT_TRUE(graph.ok());
  const auto session = Session::Make(*runtime, *graph, SessionOptionsFrom((*runtime)->config));
  ASSERT_TRUE(session.ok());
  const auto run = [&](uint64_t bytes) {
    const std::vector<Feed> feeds = {{"x", Tensor::Vector<float>(std::vector<float>(bytes / sizeof(float)))}};
    return (*session)->Run(feeds, std::vector<std::string>{"y"}, {}).status();
  };
  EXPECT_TRUE(run(kMiB).ok());
  const Status full = run(17 * kMiB);
  EXPECT_EQ(full.code(), Code::kResourceExhausted) << full.ToString();
  EXPECT_NE(full.message().find("limit of 16777216 bytes"), std::string::npos) << full.ToString();
}

TEST(Config, F313_ALimitHoldsOrIsAnError) {
  for (const char* misspelt : {"gpu_options.per_process_gpu_memory_fracton = 0.5", "[device.TOY]\nmemory_limit = 4",
                               "[device.TOY]\ngpu_mem_limit = 4"}) {
    const Status refused = Read(misspelt).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << misspelt;
    EXPECT_NE(refused.message().find("unknown key"), std::string::npos) << refused.message();
  }
  const auto runtime = ForProgram("[device.TOY]\nmemory_limit_mb = 4");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  EXPECT_TRUE(Toy(**runtime)->allocator().Allocate(3 * kMiB).ok());
  EXPECT_EQ(Toy(**runtime)->allocator().Allocate(5 * kMiB).status().code(), Code::kResourceExhausted);
  // Too late for this process, which has already read its configuration: an error.
  const Status late = Runtime::SetSources(config::Sources());
  EXPECT_EQ(late.code(), Code::kFailedPrecondition);
  EXPECT_NE(late.message().find("was read already"), std::string::npos) << late.message();
}

TEST(Config, F313_ALaterSessionsLimitHoldsAsTheFirstOnes) {
  const auto graph =
      MakeGraph({Placeholder("x", PartialShape()), {"y", "Relu", {"x"}, kFloat}, {"z", "Relu", {"y"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  const auto run = [&](const std::string& toml, size_t mib, const std::string& fetch = "z") {
    const auto runtime = ForProgram(toml);
    if (!runtime.ok()) return runtime.status();
    const auto session = Session::Make(*runtime, *graph, SessionOptionsFrom((*runtime)->config));
    if (!session.ok()) return session.status();
    const std::vector<Feed> feeds = {{"x", *Tensor::Make(DType::kFloat, Shape::Of({static_cast<int64_t>(mib << 18)}))}};
    const std::vector<std::string> fetches = {fetch};
    return (*session)->Run(feeds, fetches, {}).status();
  };
  EXPECT_TRUE(run("", 32).ok());
  const Status small = run("[device.\"CPU:0\"]\nmemory_limit_mb = 8", 32);
  EXPECT_EQ(small.code(), Code::kResourceExhausted) << small.message();
  EXPECT_NE(small.message().find("memory_limit_mb"), std::string::npos) << small.message();
  EXPECT_TRUE(run("[device.\"CPU:0\"]\nmemory_limit_mb = 128", 32).ok());
  const Status returned = run("[device.\"CPU:0\"]\nmemory_limit_mb = 8", 32, "y");
  EXPECT_EQ(returned.code(), Code::kResourceExhausted) << returned.message();
}

TEST(Config, F313_AProgramsLimitOnADeviceThatIsNotThereIsAnError) {
  Result<config::Config> config = Read("");
  ASSERT_TRUE(config.ok());
  config->device["XPU:0"].memory_limit_mb = 8;
  const auto whole = config::Overlay(*config, {});
  ASSERT_TRUE(whole.ok());
  const Status refused = Runtime::Load(LoadOptionsFrom(*whole)).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_TRUE(refused.message().starts_with("device.\"XPU:0\": there is no such device; devices: "))
      << refused.message();
  // A file may serve several machines, so unknown devices are only noted.
  const auto noted = Load("[device.\"XPU:0\"]\nmemory_limit_mb = 8");
  ASSERT_TRUE(noted.ok()) << noted.status().message();
  EXPECT_EQ((*noted)->plugins->config_notes().size(), 1u);
}

// Plugins are started once, with the options of the session that came first.
TEST(Config, F313_WhatAPluginWasStartedWithCannotChange) {
  const auto first = ForProgram("");
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto& options = (*first)->plugins->options();
  ASSERT_TRUE(options.contains("kernels_openblas") || options.contains("kernels_onednn"));
  const Status later = ForProgram("plugins.isa = \"x86-64-v2\"").status();
  EXPECT_EQ(later.code(), Code::kInvalidArgument);
  EXPECT_NE(later.message().find("plugins.isa"), std::string::npos) << later.message();
  EXPECT_NE(later.message().find("was started with \"auto\" in this process"), std::string::npos) << later.message();
}

TEST(Config, CapSmallerThanTheLargestTensorFailsTheStep) {
  const auto runtime = Load("[device.TOY]\nmemory_limit_mb = 1");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  const auto graph = MakeGraph({Placeholder("x", PartialShape()), {"y", "Relu", {"x"}, kFloat, "/device:TOY:0"}});
  ASSERT_TRUE(graph.ok());
  const auto session = Session::Make(*runtime, *graph, SessionOptionsFrom((*runtime)->config));
  ASSERT_TRUE(session.ok());
  const std::vector<Feed> small = {{"x", Tensor::Vector<float>(std::vector<float>(1000))}};
  const std::vector<Feed> large = {{"x", Tensor::Vector<float>(std::vector<float>(1000000))}};
  const std::vector<std::string> fetches = {"y"};
  EXPECT_TRUE((*session)->Run(small, fetches, {}).ok());
  const auto run = (*session)->Run(large, fetches, {});
  ASSERT_EQ(run.status().code(), Code::kResourceExhausted) << run.status().message();
  for (const char* part : {"OOM when allocating", "device:TOY:0", "more than its whole limit of 1048576 bytes",
                           "weir.toml:2: device.TOY.memory_limit_mb", "Its largest values:", "y (Relu) float"}) {
    EXPECT_NE(run.status().message().find(part), std::string::npos) << part << "\n" << run.status().message();
  }
  EXPECT_TRUE((*session)->Run(small, fetches, {}).ok()) << "the session goes on";
}

TEST(Config, F118_GrowthStartsSmallAndNeverShrinks) {
  const auto grown = Load("gpu_options.allow_growth = true");
  ASSERT_TRUE(grown.ok()) << grown.status().message();
  device::Device* toy = Toy(**grown);
  { const auto buffer = toy->allocator().Allocate(100); }
  EXPECT_LT(toy->memory_use().reserved, 64 * kMiB / 20);
  const uint64_t before = toy->memory_use().reserved;
  { const auto buffer = toy->allocator().Allocate(10 * kMiB); }
  EXPECT_GE(toy->memory_use().reserved, before + 10 * kMiB);
  const uint64_t after = toy->memory_use().reserved;
  { const auto buffer = toy->allocator().Allocate(100); }
  EXPECT_EQ(toy->memory_use().reserved, after);
  const auto whole = Load("");
  ASSERT_TRUE(whole.ok());
  ASSERT_TRUE(Toy(**whole)->allocator().Allocate(100).ok());
  EXPECT_EQ(Toy(**whole)->memory_use().reserved, 64 * kMiB);
}

TEST(Config, GrowthAndCapCompose) {
  const auto runtime = Load(
      "gpu_options.allow_growth = true\n[device.\"TOY:0\"]\nmemory_limit_mb = 4\n"
      "initial_memory_mb = 2");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  device::Device* toy = Toy(**runtime);
  ASSERT_TRUE(toy->allocator().Allocate(100).ok());
  EXPECT_EQ(toy->memory_use().reserved, 2 * kMiB);
  EXPECT_TRUE(toy->allocator().Allocate(2 * kMiB).ok());
  EXPECT_EQ(toy->allocator().Allocate(5 * kMiB).status().code(), Code::kResourceExhausted);
  EXPECT_LE(toy->memory_use().reserved, 4 * kMiB);
}

TEST(Config, VirtualDevicesShareTheHardwareAndNotTheMemory) {
  const auto runtime = Load("[device.\"TOY:0\"]\nvirtual_memory_limit_mb = [8, 16]");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  ASSERT_EQ(Names(**runtime, "TOY").size(), 2u);
  device::Device* first = Toy(**runtime, 0);
  device::Device* second = Toy(**runtime, 1);
  EXPECT_EQ(first->info().memory_bytes, 8 * kMiB);
  EXPECT_EQ(second->info().memory_bytes, 16 * kMiB);
  EXPECT_EQ(*first->Open(), *second->Open());
  EXPECT_EQ(first->allocator().Allocate(10 * kMiB).status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(second->allocator().Allocate(10 * kMiB).ok());

  const auto graph = MakeGraph({Placeholder("x", PartialShape::Of({4})),
                                {"a", "Relu", {"x"}, kFloat, "/device:TOY:0"},
                                {"b", "Relu", {"x"}, kFloat, "/device:TOY:1"}});
  ASSERT_TRUE(graph.ok());
  const auto session = Session::Make(*runtime, *graph, SessionOptionsFrom((*runtime)->config));
  ASSERT_TRUE(session.ok());
  const std::vector<std::string> fetches = {"a", "b"};
  const auto run = (*session)->Run(std::vector<Feed>{{"x", Tensor::Vector<float>({-1, 2, -3, 4})}}, fetches, {});
  ASSERT_TRUE(run.ok()) << run.status().message();
  for (const Tensor& tensor : *run) EXPECT_TRUE(tensor.SameBits(Tensor::Vector<float>({0, 2, 0, 4})));
}

TEST(Config, F018_DeviceCountGivesTwoCpus) {
  const auto runtime = Load("device_count.CPU = 2\ndevice_count.TOY = 0");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  EXPECT_EQ(Names(**runtime, "CPU"), (std::vector<std::string>{"/job:localhost/replica:0/task:0/device:CPU:0",
                                                               "/job:localhost/replica:0/task:0/device:CPU:1"}));
  EXPECT_TRUE(Names(**runtime, "TOY").empty());
}

TEST(Config, VisibleDevicesOfOneKind) {
  EXPECT_EQ(Names(**Load("[device.TOY]\nvisible_device_list = \"toy-0\""), "TOY").size(), 1u);
  EXPECT_NE(Fault("[device.TOY]\nvisible_device_list = \"1\"")
                .find("weir.toml:2: device.TOY.visible_device_list: 'visible_device_list' listed an invalid TOY id '1' "
                      "but visible device count is 1"),
            std::string::npos);
}

TEST(Config, FractionAboveOneOnADeviceWithoutUnifiedMemory) {
  EXPECT_NE(Fault("gpu_options = {per_process_gpu_memory_fraction = 1.5, experimental.use_unified_memory = true}")
                .find("toy-0 (toy accelerator) has no unified memory"),
            std::string::npos);
}

TEST(ConfigOfPlugins, F353_PluginsCheckTheirOwnTables) {
  EXPECT_NE(Fault("[plugin.toy]\nmemory_byte = 1")
                .find("weir.toml:2: plugin 'toy' has no option 'memory_byte' (nearest: 'memory_bytes')"),
            std::string::npos);
  EXPECT_NE(Fault("[plugin.toy]\nmemory_bytes = \"much\"")
                .find("weir.toml:2: plugin.toy.memory_bytes: wanted an integer from 1048576 to 1073741824, got the "
                      "string \"much\""),
            std::string::npos);
  EXPECT_NE(Fault("[plugin.toy]\nmemory_bytes = 1").find("wanted an integer from 1048576"), std::string::npos);
  // A fault of the configuration is not attributed to the plugin.
  const auto runtime = Load("[plugin.toy]\nmemory_bytes = 2097152");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  EXPECT_EQ(Toy(**runtime)->info().memory_bytes, 2 * kMiB);
  EXPECT_EQ(Toy(**runtime)->allocator().Allocate(3 * kMiB).status().code(), Code::kResourceExhausted);
  const std::vector<plugin::PluginOption>& options = (*runtime)->plugins->options().at("toy");
  ASSERT_EQ(options.size(), 1u);
  EXPECT_EQ(options[0].origin.ToString(), "weir.toml:2");
  EXPECT_NE(Fault("[plugin.toy]\nmemory_bytes = 4194304").find("was started with 2097152 in this process"),
            std::string::npos);
}

TEST(Config, F353_TablesOfUnknownPlugins) {
  EXPECT_NE(Fault("[plugin.toyy]\nx = 1").find("weir.toml:2: no plugin 'toyy' in "), std::string::npos);
  EXPECT_NE(Fault("[plugin.toyy]\nx = 1").find("nearest: 'toy'"), std::string::npos);
}

TEST(Config, DeclaredCostsReplaceThePlugins) {
  const auto runtime = Load("[device.\"TOY:0\"]\npeak_gflops.f32 = 99\nlaunch_us = 3");
  ASSERT_TRUE(runtime.ok());
  const weir_profile* profile = Toy(**runtime)->profile();
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->peak_flops_per_ns[1], 99);
  EXPECT_EQ(profile->launch_ns, 3000);
  EXPECT_EQ(profile->bandwidth_bytes_per_ns, 8) << "the plugin's own";
}

TEST(Config, SessionsThatAskAlikeShareDevices) {
  const auto plain = ForProgram("");
  const auto soft = ForProgram("allow_soft_placement = false\nlog_device_placement = true");
  const auto capped = ForProgram("[device.TOY]\nmemory_limit_mb = 8");
  const auto insisting = ForProgram("gpu_options.allow_growth = false");
  ASSERT_TRUE(plain.ok() && soft.ok() && capped.ok() && insisting.ok());
  EXPECT_EQ((*plain)->plugins, (*soft)->plugins);
  EXPECT_EQ((*plain)->plugins, (*insisting)->plugins);
  EXPECT_NE((*plain)->plugins, (*capped)->plugins);
  EXPECT_FALSE(SessionOptionsFrom((*soft)->config).allow_soft_placement);
  EXPECT_TRUE(SessionOptionsFrom((*plain)->config).allow_soft_placement);
}

TEST(Config, F280_SoftPlacementAndItsLogInOneSession) {
  const auto graph = MakeGraph({Placeholder("x", PartialShape::Of({2})), {"y", "Square", {"x"}, kFloat, "/gpu:7"}});
  ASSERT_TRUE(graph.ok());
  const std::vector<std::string> fetches = {"y"};
  const std::vector<Feed> feeds = {{"x", Tensor::Vector<float>({2, 3})}};
  const auto run = [&](const std::string& toml) {
    const auto runtime = Load(toml);
    EXPECT_TRUE(runtime.ok()) << runtime.status().message();
    const auto session = Session::Make(*runtime, *graph, SessionOptionsFrom((*runtime)->config));
    return (*session)->Run(feeds, fetches, {});
  };
  ::testing::internal::CaptureStderr();
  const auto soft = run("allow_soft_placement = true\nlog_device_placement = true");
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(soft.ok()) << soft.status().message();
  EXPECT_NE(log.find("y: (Square): /job:localhost/replica:0/task:0/device:CPU:0\n"), std::string::npos) << log;
  const auto hard = run("allow_soft_placement = false");
  EXPECT_EQ(hard.status().code(), Code::kInvalidArgument);
  EXPECT_NE(hard.status().message().find("Cannot assign a device for operation y"), std::string::npos);
}

TEST(Config, OptimizerKeysReachTheSession) {
  const auto options = [](const std::string& toml) { return SessionOptionsFrom((*Load(toml))->config); };
  EXPECT_TRUE(options("").constant_folding && options("").common_subexpressions && options("").fusion);
  const SessionOptions off = options("[graph_options.optimizer_options]\nopt_level = \"L0\"");
  EXPECT_FALSE(off.constant_folding || off.common_subexpressions || off.fusion);
  const SessionOptions some = options(
      "[graph_options.optimizer_options]\nopt_level = \"L0\"\ndo_constant_folding = true\n"
      "max_folded_constant_in_bytes = 12");
  EXPECT_TRUE(some.constant_folding);
  EXPECT_FALSE(some.common_subexpressions);
  EXPECT_EQ(some.max_folded_bytes, 12u);
  EXPECT_FALSE(options("graph_options.rewrite_options.constant_folding = \"OFF\"").constant_folding);
  EXPECT_FALSE(options("graph_options.rewrite_options.remapping = \"OFF\"").fusion);
  EXPECT_FALSE(options("graph_options.rewrite_options.common_subgraph_elimination = \"OFF\"").common_subexpressions);
}

TEST(Config, ExecutorAndPlacerGetTheirKeys) {
  const auto runtime = Load(
      "inter_op_parallelism_threads = 2\nintra_op_parallelism_threads = 3\noperation_timeout_in_ms = 200\n"
      "[placement]\nalgorithm = \"single\"\n[link.\"CPU:0->TOY:0\"]\ngbps = 4");
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  const SessionOptions options = SessionOptionsFrom((*runtime)->config);
  EXPECT_EQ(options.inter_op_parallelism_threads, 2);
  EXPECT_EQ(options.intra_op_parallelism_threads, 3);
  EXPECT_EQ(options.operation_timeout_in_ms, 200);
  ASSERT_NE(options.placement, nullptr);
  EXPECT_EQ(options.placement->algorithm, place::Algorithm::kSingle);
  EXPECT_EQ(options.placement->links.at("CPU:0->TOY:0").bytes_per_ns, 4);
}

TEST(Config, StrictLoadingFailsOnARefusedPluginThatIsNotDenied) {
  const auto denied = Load("plugins.deny = [\"toy\"]\nplugins.strict = true");
  ASSERT_TRUE(denied.ok()) << denied.status().message();
  EXPECT_TRUE(Names(**denied, "TOY").empty());
  // A second plugin of that name is refused.
  namespace fs = std::filesystem;
  Result<config::Config> config = Read("plugins.strict = true");
  ASSERT_TRUE(config.ok());
  std::string folder = (fs::temp_directory_path() / "weir_strict_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  fs::copy_file(fs::path(config->plugins.folders[0]) / "toy.so", fs::path(folder) / "toy.so");
  config->plugins.folders.push_back(folder);
  EXPECT_NE(Runtime::Load(LoadOptionsFrom(*config)).status().message().find("a second plugin named 'toy'"),
            std::string::npos);
  config->plugins.strict = false;
  EXPECT_TRUE(Runtime::Load(LoadOptionsFrom(*config)).ok());
  fs::remove_all(folder);
}

TEST(Config, F352_WhatIsAboutNothingHereIsNoted) {
  Result<config::Config> config = Read("device_count.\"CPU:0\" = 2");
  ASSERT_TRUE(config.ok());
  config->plugins.deny = {"toi", "kernels_eigen"};
  config->plugins.folders.push_back("/nonexistent/folder");
  config->environment = {{"WEIR_TOY_LEVLE", "1"}, {"WEIR_TOYS", "1"}};
  const auto runtime = Runtime::Load(LoadOptionsFrom(*config));
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  const std::vector<std::string>& notes = (*runtime)->plugins->config_notes();
  ASSERT_EQ(notes.size(), 4u);
  EXPECT_NE(notes[0].find("plugins.deny: no plugin 'toi' in "), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("(nearest: 'toy')"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("plugins.folders: there is no /nonexistent/folder"), std::string::npos) << notes[1];
  EXPECT_NE(notes[2].find("device_count.\"CPU:0\": there is no such device"), std::string::npos) << notes[2];
  EXPECT_NE(notes[3].find("environment WEIR_TOY_LEVLE: plugin 'toy' has no such option"), std::string::npos);
}

TEST(Config, TheKindOfADeviceIsCaseSensitive) {
  for (const char* name : {"toy:0", "Toy"}) {
    const auto runtime = Load(fmt::format("[device.\"{}\"]\nallow_growth = true", name));
    const std::string wanted = std::string(name) == "Toy" ? "TOY" : "TOY:0";
    EXPECT_NE(runtime.status().message().find(fmt::format("there is no device '{}'; wanted '{}'", name, wanted)),
              std::string::npos)
        << runtime.status().ToString();
  }
}

TEST(Config, TablesOfMissingDevicesAreNoted) {
  const auto runtime = Load("[device.\"GPU:0\"]\nallow_growth = true\n[device.\"TOY:0\"]\nallow_growth = true");
  ASSERT_TRUE(runtime.ok());
  ASSERT_EQ((*runtime)->plugins->config_notes().size(), 1u);
  EXPECT_NE((*runtime)->plugins->config_notes()[0].find("device.\"GPU:0\": there is no such device; devices: "),
            std::string::npos);
}

}  // namespace
}  // namespace weir::session
