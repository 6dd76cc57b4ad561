// `weir config`, --config and --set on the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/e2e/cli_process.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;

// An environment without configuration files and variables of the test's user.
std::map<std::string, std::string> Bare(const ScratchFolder& folder) {
  return {{"XDG_CONFIG_HOME", folder.path()}, {"WEIR_CONFIG", ""}};
}

Json Find(const Json& values, const std::string& key) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const Json& v) { return v["key"] == key; });
  return found == values.end() ? Json() : *found;
}

TEST(CliConfig, F351_F352_EffectiveValuesSayWhereTheyCameFrom) {
  const ScratchFolder folder;
  const std::string file =
      folder.Write("my.toml", "inter_op_parallelism_threads = 2\n[gpu_options]\nallow_growth = true\n");
  auto environment = Bare(folder);
  environment["WEIR_LOG_DEVICE_PLACEMENT"] = "true";
  environment["WEIR_INTER_OP_PARALLELISM_THREADS"] = "7";
  const Ended shown =
      Weir({"config", "show", "--effective", "--json", "--config", file, "--set", "gpu_options.allow_growth=false"},
           environment);
  ASSERT_EQ(shown.status, 0) << shown.err;
  const Json answer = shown.json();
  EXPECT_EQ(answer["schema"], 1);
  EXPECT_EQ(answer["files"], Json::array({file}));
  const Json& values = answer["values"];
  EXPECT_EQ(Find(values, "inter_op_parallelism_threads")["value"], 2);
  EXPECT_EQ(Find(values, "inter_op_parallelism_threads")["source"], file + ":1");
  EXPECT_EQ(Find(values, "gpu_options.allow_growth")["value"], false);
  EXPECT_EQ(Find(values, "gpu_options.allow_growth")["source"], "--set");
  EXPECT_EQ(Find(values, "log_device_placement")["source"], "environment WEIR_LOG_DEVICE_PLACEMENT");
  EXPECT_EQ(Find(values, "allow_soft_placement")["source"], "default");
  EXPECT_EQ(Find(values, "placement.algorithm")["value"], "costsim");

  EXPECT_EQ(Find(values, "graph_options.timeline_step")["note"], "not in this version: only the default is accepted");

  const Ended set = Weir({"config", "show"}, environment);
  EXPECT_EQ(set.status, 0);
  EXPECT_NE(set.out.find("environment WEIR_INTER_OP_PARALLELISM_THREADS"), std::string::npos) << set.out;
  EXPECT_EQ(set.out.find("allow_soft_placement"), std::string::npos) << set.out;
}

TEST(CliConfig, UsersFileIsRead) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "weir");
  const std::string file = folder.Write("weir/weir.toml", "log_device_placement = true\n");
  EXPECT_NE(Weir({"config", "show"}, Bare(folder)).out.find(file + ":1"), std::string::npos);
  folder.Write("weir/weir.toml", "log_device_placment = true\n");
  const Ended broken = Weir({"devices"}, Bare(folder));
  EXPECT_EQ(broken.status, 1);
  EXPECT_EQ(broken.first_error_line(), "weir: INVALID_ARGUMENT: " + file +
                                           ":1: unknown key 'log_device_placment' (nearest: 'log_device_placement'); "
                                           "`weir config show --effective` lists all keys");
}

TEST(CliConfig, CheckNamesTheFirstFault) {
  const ScratchFolder folder;
  const std::string good =
      folder.Write("good.toml", "[gpu_options]\nallow_growth = true\n[device.\"GPU:7\"]\nlaunch_us = 3\n");
  const Ended checked = Weir({"config", "check", good}, Bare(folder));
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_NE(checked.out.find(good + ": 2 keys, no fault"), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find("note: device.\"GPU:7\": there is no such device"), std::string::npos) << checked.out;
  const std::string bad = folder.Write("bad.toml", "\n[plugin.cpuu]\nx = 1\n");
  const Ended fault = Weir({"config", "check", bad}, Bare(folder));
  EXPECT_EQ(fault.status, 1);
  EXPECT_NE(fault.err.find(bad + ":3: no plugin 'cpuu'"), std::string::npos) << fault.err;
  EXPECT_NE(fault.err.find("nearest: 'cpu'"), std::string::npos) << fault.err;
  const std::string proto = folder.Write("config.pbtxt", "gpu_options { allow_growth: true }\n");
  EXPECT_EQ(Weir({"config", "check", proto}, Bare(folder)).status, 0);
  const Ended missing = Weir({"config", "check", folder / "none.toml"}, Bare(folder));
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(missing.err.starts_with("weir: NOT_FOUND: ")) << missing.err;
}

TEST(CliConfig, F352_AMistypedVariableIsToldOnce) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", "node { name: 'n' op: 'NoOp' }");
  auto environment = Bare(folder);
  environment["WEIR_ALOW_SOFT_PLACEMENT"] = "false";
  const std::string note = "environment WEIR_ALOW_SOFT_PLACEMENT is no key (nearest: WEIR_ALLOW_SOFT_PLACEMENT)\n";
  const Ended run = Weir({"run", graph, "--target", "n"}, environment);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "weir: note: " + note);
  const Ended shown = Weir({"config", "show"}, environment);
  EXPECT_NE(shown.out.find("note: " + note), std::string::npos) << shown.out;
  EXPECT_EQ(shown.err, "");
}

TEST(CliConfig, KeysTakeEffectInOtherCommands) {
  const ScratchFolder folder;
  const Ended two = Weir({"devices", "--json", "--set", "device_count.CPU=2"}, Bare(folder));
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(two.json()["devices"].size(), 2u) << two.out;
  const Ended capped = Weir({"devices", "--json", "--set", "device.CPU:0.memory_limit_mb=64"}, Bare(folder));
  ASSERT_EQ(capped.status, 0) << capped.err;
  EXPECT_EQ(capped.json()["devices"][0]["memory_bytes"], 64 << 20);
  const Ended noted = Weir({"devices", "--set", "plugins.deny=cpuu"}, Bare(folder));
  EXPECT_NE(noted.out.find("note: --set: plugins.deny: no plugin 'cpuu' in "), std::string::npos) << noted.out;
  const Ended none = Weir({"devices", "--set", "plugins.deny=cpu"}, Bare(folder));
  EXPECT_EQ(none.status, 0);
  EXPECT_NE(none.out.find("no device"), std::string::npos) << none.out;
  const Ended unknown = Weir({"devices", "--set", "placement.algoritm=tf"}, Bare(folder));
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("--set: unknown key 'placement.algoritm' (nearest: 'placement.algorithm'"),
            std::string::npos)
      << unknown.err;
  const Ended later = Weir({"devices", "--set", "graph_options.timeline_step=3"}, Bare(folder));
  EXPECT_EQ(later.status, 1);
  EXPECT_TRUE(later.err.starts_with("weir: UNIMPLEMENTED: --set: graph_options.timeline_step = 3")) << later.err;
}

}  // namespace
}  // namespace weir::testing
