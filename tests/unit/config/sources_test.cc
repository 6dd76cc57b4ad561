// Precedence of the sources, and the source of each value.
#include <fmt/format.h>

#include "core/config/sources.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/config/document.h"
#include "core/config/schema.h"
#include "core/config/toml.h"

namespace weir::config {
namespace {

namespace fs = std::filesystem;

class SourcesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "weir_config_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  fs::path folder_;
};

std::string SourceOf(const Config& config, const std::string& key) {
  const auto found = config.origins.find(key);
  return found == config.origins.end() ? Origin().ToString() : found->second.ToString();
}

TEST_F(SourcesTest, F309_PrecedenceFromTheEnvironmentToTheCallSite) {
  Sources sources;
  const std::string key = "inter_op_parallelism_threads";
  const auto value_and_source = [&](const Sources& from, const Config& call_site = {}) {
    const Result<Loaded> loaded = Load(from);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    const Result<Config> whole = Overlay(call_site, loaded->settings);
    EXPECT_TRUE(whole.ok()) << whole.status().message();
    return std::to_string(whole->inter_op_parallelism_threads) + " " + SourceOf(*whole, key);
  };
  EXPECT_EQ(value_and_source(sources), "0 default");
  sources.environment = {{"WEIR_INTER_OP_PARALLELISM_THREADS", "1"}};
  EXPECT_EQ(value_and_source(sources), "1 environment WEIR_INTER_OP_PARALLELISM_THREADS");
  const std::string system = Write("system.toml", "\ninter_op_parallelism_threads = 2\n");
  sources.usual_files = {system, (folder_ / "missing.toml").string()};
  EXPECT_EQ(value_and_source(sources), "2 " + system + ":2");
  const std::string own = Write("own.toml", "inter_op_parallelism_threads = 3\n");
  sources.files = {own};
  EXPECT_EQ(value_and_source(sources), "3 " + own + ":1");
  sources.sets = {"inter_op_parallelism_threads=4"};
  EXPECT_EQ(value_and_source(sources), "4 --set");
  EXPECT_EQ(value_and_source(sources, Config{.inter_op_parallelism_threads = 5}), "5 call site");
}

TEST_F(SourcesTest, F309_AllowGrowthForTheWholeSystem) {
  Sources sources;
  sources.usual_files = {Write("weir.toml", "[gpu_options]\nallow_growth = true\n")};
  EXPECT_TRUE(Load(sources)->config.gpu_options.allow_growth);
  sources.sets = {"gpu_options.allow_growth=false"};
  EXPECT_FALSE(Load(sources)->config.gpu_options.allow_growth);
  EXPECT_TRUE(Load({.environment = {{"WEIR_GPU_OPTIONS_ALLOW_GROWTH", "1"}}})->config.gpu_options.allow_growth);
}

TEST_F(SourcesTest, F352_SetReadsItsTextAsTheKeysType) {
  Sources sources;
  sources.sets = {"device.\"GPU:0\".allow_growth=true",
                  "device.GPU:0.memory_limit_mb=12.5",
                  "plugins.deny=a,b",
                  "gpu_options.experimental.virtual_devices.0.memory_limit_mb=100,200",
                  "device_count.CPU=2",
                  "placement.pin.\"a=b\"=/cpu:0",
                  "plugin.toy.level=7",
                  "gpu_options.visible_device_list=0,1"};
  const Result<Loaded> loaded = Load(sources);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const Config& config = loaded->config;
  EXPECT_EQ(config.device.at("GPU:0").allow_growth, std::optional<bool>(true));
  EXPECT_EQ(config.device.at("GPU:0").memory_limit_mb, 12.5);
  EXPECT_EQ(config.plugins.deny, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.gpu_options.experimental.virtual_devices.at(0).memory_limit_mb, (std::vector<double>{100, 200}));
  EXPECT_EQ(config.device_count.at("CPU"), 2);
  EXPECT_EQ(config.placement.pin.at("a=b"), "/cpu:0");
  EXPECT_TRUE(config.plugin.at("toy").at("level").given.text);
  EXPECT_EQ(config.gpu_options.visible_device_list, "0,1");
}

TEST_F(SourcesTest, F352_TomlIsUnderstoodInSetAndVariables) {
  using Names = std::vector<std::string>;
  const auto denied = [](const std::string& text) {
    const Result<Loaded> loaded = Load({.environment = {{"WEIR_PLUGINS_DENY", text}}});
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return loaded.ok() ? loaded->config.plugins.deny : Names();
  };
  EXPECT_EQ(denied("[\"a\", 'b,c']"), (Names{"a", "b,c"}));
  EXPECT_EQ(denied("\"a,b\""), (Names{"a", "b"}));
  EXPECT_EQ(denied("[]"), Names());
  EXPECT_EQ(denied("7"), Names{"7"});
  const Result<Loaded> set = Load(
      {.sets = {"gpu_options.experimental.virtual_devices.0.memory_limit_mb=[100, 2e2]", "placement.algorithm=\"tf\"",
                "inter_op_parallelism_threads=0x10", "placement.log_file=[x", "placement.profile=/a\nb = 1"}});
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(set->config.gpu_options.experimental.virtual_devices.at(0).memory_limit_mb,
            (std::vector<double>{100, 200}));
  EXPECT_EQ(set->config.placement.algorithm, "tf");
  EXPECT_EQ(set->config.inter_op_parallelism_threads, 16);
  EXPECT_EQ(set->config.placement.log_file, "[x");
  EXPECT_EQ(set->config.placement.profile, "/a\nb = 1");
  EXPECT_NE(Load({.sets = {"plugins.deny=[a, b]"}}).status().message().find("wanted an array of strings, got"),
            std::string::npos);
}

TEST_F(SourcesTest, FaultsNameTheSource) {
  const auto fault = [](const Sources& sources) { return Load(sources).status().message(); };
  EXPECT_NE(fault({.sets = {"placement.algorithmm=tf"}}).find("--set: unknown key 'placement.algorithmm' (nearest:"),
            std::string::npos);
  EXPECT_NE(fault({.sets = {"gpu_options.experimental.virtual_devices[0].memory_limit_mb=1"}})
                .find("; there is 'gpu_options.experimental.virtual_devices.0.memory_limit_mb' and "
                      "'device.\"GPU:0\".memory_limit_mb'"),
            std::string::npos);
  EXPECT_NE(fault({.sets = {"allow_soft_placement"}}).find("wanted KEY=VALUE"), std::string::npos);
  EXPECT_NE(fault({.sets = {"device.\"GPU:0.x=1"}}).find("wanted KEY=VALUE"), std::string::npos);
  EXPECT_NE(fault({.sets = {"a..b=1"}}).find("wanted a name in column 3"), std::string::npos);
  EXPECT_NE(fault({.sets = {"plugin.toy=1"}}).find("wanted plugin.NAME.KEY"), std::string::npos);
  EXPECT_NE(
      fault({.environment = {{"WEIR_ALLOW_SOFT_PLACEMENT", "maybe"}}})
          .find("environment WEIR_ALLOW_SOFT_PLACEMENT: allow_soft_placement: wanted true or false, got the string "
                "\"maybe\""),
      std::string::npos);
  const Result<Loaded> missing = Load({.files = {(folder_ / "no.toml").string()}});
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find("no.toml"), std::string::npos);
}

TEST_F(SourcesTest, UnknownVariablesAreReportedAndKeptForPlugins) {
  const Result<Loaded> loaded =
      Load({.environment = {{"WEIR_ALLOW_SOFT_PLACMENT", "1"}, {"WEIR_TOY_LEVEL", "3"}, {"WEIR_PLUGIN_PATH", "/x"}}});
  ASSERT_TRUE(loaded.ok());
  ASSERT_EQ(loaded->notes.size(), 1u);
  EXPECT_NE(loaded->notes[0].find("nearest: WEIR_ALLOW_SOFT_PLACEMENT"), std::string::npos) << loaded->notes[0];
  EXPECT_EQ(loaded->config.environment.at("WEIR_TOY_LEVEL"), "3");
  EXPECT_FALSE(loaded->config.environment.contains("WEIR_PLUGIN_PATH"));
}

TEST_F(SourcesTest, F352_MistypedVariablesAreToldAndOthersAreNot) {
  const auto notes = [](const std::string& name) { return Load({.environment = {{name, "1"}}})->notes; };
  const std::pair<const char*, const char*> rows[] = {
      {"WEIR_ALOW_SOFT_PLACEMENT", "WEIR_ALLOW_SOFT_PLACEMENT"},
      {"WEIR_PLUGINS_PATH", "WEIR_PLUGIN_PATH"},
      {"WEIR_CONFG", "WEIR_CONFIG"},
      {"WEIR_PLUGIN_ISA", "WEIR_PLUGINS_ISA"},
      {"WEIR_GPU_OPTION_ALLOW_GROWTH", "WEIR_GPU_OPTIONS_ALLOW_GROWTH"}};
  for (const auto& [mistyped, meant] : rows) {
    EXPECT_EQ(notes(mistyped),
              std::vector<std::string>{fmt::format("environment {} is no key (nearest: {})", mistyped, meant)});
  }
  for (const char* known : {"WEIR_CONFIG", "WEIR_PLUGIN_PATH", "WEIR_TEST_DATA", "WEIR_VENV", "WEIR_JOBS",
                            "WEIR_TEST_MINUTES", "WEIR_BUILD_DIR", "WEIR_SOURCE_DIR", "WEIR_TEST_DEVICE",
                            "WEIR_TOY_LEVEL", "WEIR_TOY_MEMORY_BYTES", "WEIR_KERNELS_ONEDNN_ISA"}) {
    const Result<Loaded> loaded = Load({.environment = {{known, "1"}}});
    EXPECT_EQ(loaded->notes, std::vector<std::string>()) << known;
  }
}

// Runs as another user, since root may read everything.
TEST_F(SourcesTest, AUsualFileThatCannotBeReachedIsLeftOutWithANote) {
  const fs::path closed = folder_ / "closed";
  fs::create_directory(closed);
  std::ofstream(closed / "weir.toml") << "allow_soft_placement = false\n";
  fs::permissions(closed, fs::perms::none);
  fs::permissions(folder_, fs::perms(0755));
  const std::string file = (closed / "weir.toml").string();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(2);
    const Result<Loaded> usual = Load({.usual_files = {file}});
    const bool told = usual.ok() && usual->notes.size() == 1 && usual->files.empty() &&
                      usual->notes[0] == file + "; Permission denied: the file is left out";
    const bool refused = Load({.files = {file}}).status().code() == Code::kPermissionDenied;
    _exit(told && refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  fs::permissions(closed, fs::perms::owner_all);
  EXPECT_EQ(status, 0);
  const Result<Loaded> below = Load({.usual_files = {"/dev/null/.config/weir/weir.toml"}});
  ASSERT_TRUE(below.ok()) << below.status().message();
  EXPECT_TRUE(below->notes.empty());
}

TEST_F(SourcesTest, NumbersOutOfRangeAreShownAsNumbers) {
  const auto fault = [](const std::string& set) { return Load({.sets = {set}}).status().message(); };
  EXPECT_EQ(fault("placement.unknown_dim=0"),
            "--set: placement.unknown_dim: wanted an integer from 1, got the integer 0");
  EXPECT_EQ(fault("device.CPU:0.memory_fraction=-3"),
            "--set: device.\"CPU:0\".memory_fraction: wanted a number from 0 to 1024, got the float -3.0");
  EXPECT_EQ(fault("placement.unknown_dim=many"),
            "--set: placement.unknown_dim: wanted an integer from 1, got the string \"many\"");
}

TEST_F(SourcesTest, ProcessesWithPrivilegesTakeNoPlacesFromVariables) {
  Sources sources;
  sources.environment = {{"WEIR_PLUGINS_FOLDERS", "/tmp/evil"}, {"WEIR_PLUGINS_DENY", "rocm"}};
  EXPECT_EQ(Load(sources)->config.plugins.folders, std::vector<std::string>{"/tmp/evil"});
  sources.privileged = true;
  const Result<Loaded> loaded = Load(sources);
  EXPECT_TRUE(loaded->config.plugins.folders.empty());
  EXPECT_EQ(loaded->config.plugins.deny, std::vector<std::string>{"rocm"});
  EXPECT_EQ(loaded->notes.size(), 1u);
}

TEST_F(SourcesTest, ACallSiteMayInsistOnDefaults) {
  Settings file;
  ASSERT_TRUE(ReadToml("allow_soft_placement = false\nlog_device_placement = true\nplacement.algorithm = \"tf\"\n"
                       "[gpu_options]\nallow_growth = true\nper_process_gpu_memory_fraction = 0.5\n",
                       "weir.toml", file)
                  .ok());
  const Result<Config> silent = Overlay(Config(), file);
  ASSERT_TRUE(silent.ok());
  EXPECT_FALSE(silent->allow_soft_placement);
  EXPECT_EQ(silent->placement.algorithm, "tf");
  Config config{.gpu_options = {.allow_growth = false}, .allow_soft_placement = true};
  config.log_device_placement = false;
  config.placement.algorithm = "costsim";
  config.gpu_options.per_process_gpu_memory_fraction = 0;
  const Result<Config> whole = Overlay(config, file);
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->allow_soft_placement);
  EXPECT_FALSE(whole->log_device_placement);
  EXPECT_FALSE(whole->gpu_options.allow_growth);
  EXPECT_EQ(whole->gpu_options.per_process_gpu_memory_fraction, 0);
  EXPECT_EQ(whole->placement.algorithm, "costsim");
  EXPECT_EQ(whole->origins.at("allow_soft_placement").ToString(), "call site");
}

TEST_F(SourcesTest, CallSiteReportsTheGivenValue) {
  Config config{.device_count = {{"GPU", 0}}, .gpu_options = {.per_process_gpu_memory_fraction = 0.7}};
  config.device["TOY"].allow_growth = false;
  config.plugin["toy"]["level"] = {{int64_t{3}, false}, {}};
  Settings settings;
  ASSERT_TRUE(AddCallSite(config, settings).ok());
  EXPECT_EQ(settings.all().size(), 4u);
  const Result<Config> whole = settings.Build();
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->device_count, config.device_count);
  EXPECT_EQ(whole->gpu_options.per_process_gpu_memory_fraction, 0.7);
  EXPECT_EQ(whole->device.at("TOY").allow_growth, std::optional<bool>(false));
  EXPECT_EQ(std::get<int64_t>(whole->plugin.at("toy").at("level").given.value), 3);
  config.gpu_options.per_process_gpu_memory_fraction = -1;
  Settings others;
  EXPECT_EQ(AddCallSite(config, others).code(), Code::kInvalidArgument);
}

TEST_F(SourcesTest, VariablesOfKeysAreDifferent) {
  std::set<std::string> names;
  for (const Key& key : Schema()) {
    if (const std::string name = EnvironmentName(key); !name.empty()) {
      EXPECT_TRUE(names.insert(name).second) << name;
    }
  }
}

}  // namespace
}  // namespace weir::config
