// The commands devices, plugins, check, ops, help, and properties of all commands: JSON, exit codes, error texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/e2e/cli_process.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

std::string PluginFile(const std::string& name) { return std::string(WEIR_PLUGINS) + "/" + name; }

TEST(CliHelp, EveryCommandDescribesItself) {
  const Ended all = Weir({"--help"});
  EXPECT_EQ(all.status, 0);
  EXPECT_EQ(all.err, "");
  for (const char* command : {"devices", "plugins", "check", "ops", "run", "explain", "ckpt", "config"}) {
    EXPECT_NE(all.out.find(command), std::string::npos) << command;
    const Ended one = Weir({command, "--help"});
    EXPECT_EQ(one.status, 0) << command;
    for (const char* option : {"--help", "--json", "--log-level", "--version", "--config", "--set"}) {
      EXPECT_NE(one.out.find(option), std::string::npos) << command << " " << option;
    }
  }
  const std::string run = Weir({"run", "--help"}).out;
  for (const char* option : {"--feed", "--fetch", "--target", "--init", "--out-dir", "--device", "--runs", "--trace",
                             "--metadata", "--check-numerics", "--dump-command", "GRAPH"}) {
    EXPECT_NE(run.find(option), std::string::npos) << option;
  }
}

TEST(CliHelp, VersionNamesTheAbi) {
  const Ended version = Weir({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(version.out.starts_with("weir ")) << version.out;
  EXPECT_NE(version.out.find("plugin ABI 1."), std::string::npos) << version.out;
  EXPECT_EQ(Weir({"run", "--version"}).out, version.out);
  Json json = Weir({"--version", "--json"}).json();
  EXPECT_EQ(json["schema"], 1);
  EXPECT_NE(version.out.find(json["version"].get<std::string>()), std::string::npos);
}

struct Misuse {
  const char* name;
  std::vector<std::string> words;
  std::vector<std::string> said;
};

class CliMisuse : public TestWithParam<Misuse> {};

TEST_P(CliMisuse, ExitsWithTwoAndNamesTheFault) {
  const Ended plain = Weir(GetParam().words);
  EXPECT_EQ(plain.status, 2);
  EXPECT_EQ(plain.out, "");
  const std::string line = plain.first_error_line();
  EXPECT_TRUE(line.starts_with("weir: INVALID_ARGUMENT: ")) << line;
  for (const std::string& part : GetParam().said) EXPECT_NE(line.find(part), std::string::npos) << line;

  std::vector<std::string> words = GetParam().words;
  words.emplace_back("--json");
  const Ended json = Weir(words);
  EXPECT_EQ(json.status, 2);
  Json answer = json.json();
  ASSERT_TRUE(answer.is_object()) << json.out;
  EXPECT_EQ(answer["schema"], 1);
  EXPECT_EQ(answer["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ("weir: INVALID_ARGUMENT: " + answer["error"]["message"].get<std::string>(), json.first_error_line());
  EXPECT_TRUE(answer["error"].contains("node"));
  EXPECT_TRUE(answer["error"].contains("where"));
}

INSTANTIATE_TEST_SUITE_P(Cli, CliMisuse,
                         ValuesIn(std::vector<Misuse>{
                             {"NoCommand", {}, {"--help"}},
                             {"UnknownCommand", {"plugin"}, {"no command 'plugin'", "'plugins'"}},
                             {"UnknownCommandAfterOptions", {"--set", "a=b", "plugin"}, {"no command 'plugin'"}},
                             {"UnknownPart", {"config", "sho"}, {"no command 'config sho'", "nearest: 'show'"}},
                             {"EmptyConfig", {"devices", "--config", ""}, {"--config: wanted a file"}},
                             {"UnknownOption", {"devices", "--colour"}, {"--colour", "weir devices --help"}},
                             {"RunWithoutGraph", {"run"}, {"graph"}},
                             {"FeedWithoutName", {"run", "g.pb", "--feed", "=1"}, {"'=1' is not NAME=VALUE"}},
                             {"FeedWithoutValue", {"run", "g.pb", "--feed", "x"}, {"'x' is not NAME=VALUE"}},
                             {"NoRuns", {"run", "g.pb", "--runs", "0"}, {"--runs"}},
                             {"RunsThatAreNoNumber", {"run", "g.pb", "--runs", "many"}, {"--runs"}},
                             {"UnknownStage", {"check", "cpu.so", "--stage", "cosmetics"}, {"cosmetics"}},
                             {"UnknownLogLevel", {"devices", "--log-level", "loud"}, {"loud"}},
                             {"CheckWithoutPlugin", {"check"}, {"plugin"}},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(CliDevices, F116_F312_ListsWhatPluginsBring) {
  const Ended ended = Weir({"devices", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  Json answer = ended.json();
  EXPECT_EQ(answer["schema"], 1);
  const Json devices = answer["devices"];
  const auto cpu = std::find_if(devices.begin(), devices.end(), [](const Json& d) { return d["kind"] == "CPU"; });
  ASSERT_NE(cpu, devices.end()) << ended.out;
  EXPECT_EQ((*cpu)["name"], "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ((*cpu)["platform"], "cpu");
  EXPECT_EQ((*cpu)["plugin"], "cpu");
  EXPECT_GT((*cpu)["memory_bytes"].get<uint64_t>(), 0u);
  const auto flags = (*cpu)["flags"].get<std::vector<std::string>>();
  EXPECT_NE(std::find(flags.begin(), flags.end(), "unified_memory"), flags.end()) << ended.out;

  const auto has = [&](const char* list, const char* name) {
    return std::find(answer[list].begin(), answer[list].end(), name) != answer[list].end();
  };
  EXPECT_TRUE(has("compiled", "kernels_eigen") && has("loaded", "kernels_eigen")) << ended.out;
  const Ended denied = Weir({"devices", "--json", "--set", "plugins.deny=kernels_eigen"});
  answer = denied.json();
  EXPECT_TRUE(has("compiled", "kernels_eigen")) << denied.out;
  EXPECT_FALSE(has("loaded", "kernels_eigen")) << denied.out;

  const Ended text = Weir({"devices", "--log-level", "error"});
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("/job:localhost/replica:0/task:0/device:CPU:0"), std::string::npos) << text.out;
}

TEST(CliColour, OnlyOnATerminalThatMayHaveIt) {
  const std::string escape = "\x1b[";
  const std::map<std::string, std::string> capable = {{"TERM", "xterm-256color"}, {"NO_COLOR", ""}};
  EXPECT_EQ(Weir({"plugins"}, capable).out.find(escape), std::string::npos);
  const Ended terminal = WeirOnTerminal({"plugins"}, capable);
  EXPECT_EQ(terminal.status, 0);
  EXPECT_NE(terminal.out.find(escape + "32mloaded" + escape + "0m"), std::string::npos) << terminal.out;
  for (const auto& [name, value] : std::map<std::string, std::string>{{"NO_COLOR", "1"}, {"TERM", "dumb"}}) {
    std::map<std::string, std::string> plain = capable;
    plain[name] = value;
    EXPECT_EQ(WeirOnTerminal({"plugins"}, plain).out.find(escape), std::string::npos) << name;
  }
  EXPECT_EQ(WeirOnTerminal({"plugins", "--json"}, capable).out.find(escape), std::string::npos);
}

TEST(CliPlugins, EveryFileHasAVerdict) {
  const Ended ended = Weir({"plugins", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  Json answer = ended.json();
  EXPECT_EQ(answer["schema"], 1);
  std::map<std::string, Json> by_name;
  for (const Json& plugin : answer["plugins"]) {
    for (const char* key : {"file", "name", "version", "verdict", "reason", "devices", "kernels"}) {
      EXPECT_TRUE(plugin.contains(key)) << key;
    }
    const std::string verdict = plugin["verdict"];
    EXPECT_TRUE(verdict == "loaded" || verdict == "passed-over") << plugin;
    if (verdict == "loaded") by_name.emplace(plugin["name"], plugin);  // the first file of a plugin
  }
  ASSERT_TRUE(by_name.contains("cpu")) << ended.out;
  EXPECT_EQ(by_name["cpu"]["verdict"], "loaded");
  EXPECT_EQ(by_name["cpu"]["devices"], 1);
  ASSERT_TRUE(by_name.contains("kernels_eigen")) << ended.out;
  EXPECT_GT(by_name["kernels_eigen"]["kernels"].get<int>(), 10);

  EXPECT_EQ(Weir({"plugins"}).out.find(WEIR_PLUGINS), std::string::npos);
  EXPECT_NE(Weir({"plugins", "--why"}).out.find(PluginFile("cpu.so")), std::string::npos);
}

TEST(CliOps, OneOpInFull) {
  const Ended ended = Weir({"ops", "Add", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  Json answer = ended.json();
  EXPECT_EQ(answer["schema"], 1);
  ASSERT_EQ(answer["ops"].size(), 1u);
  const Json& add = answer["ops"][0];
  EXPECT_EQ(add["name"], "Add");
  EXPECT_EQ(add["inputs"], Json({"x: T", "y: T"}));
  EXPECT_EQ(add["outputs"], Json({"z: T"}));
  EXPECT_EQ(add["attrs"][0]["name"], "T");
  EXPECT_EQ(add["attrs"][0]["type"], "type");
  EXPECT_EQ(add["gradient"], true);
  bool eigen_adds_floats = false;
  for (const Json& kernel : add["kernels"]) {
    const auto types = kernel["types"]["T"].get<std::vector<std::string>>();
    eigen_adds_floats |= kernel["plugin"] == "kernels_eigen" && kernel["platform"] == "cpu" &&
                         std::find(types.begin(), types.end(), "float") != types.end();
  }
  EXPECT_TRUE(eigen_adds_floats) << add["kernels"].dump();

  const std::string text = Weir({"ops", "Add"}).out;
  EXPECT_TRUE(text.starts_with("Add(x: T, y: T) -> (z: T)\n")) << text;
  EXPECT_NE(text.find("kernels_eigen"), std::string::npos) << text;
}

TEST(CliOps, AllOpsInEveryForm) {
  Json all = Weir({"ops", "--json"}).json();
  ASSERT_TRUE(all.is_object());
  EXPECT_GT(all["ops"].size(), 100u);
  const std::string text = Weir({"ops"}).out;
  EXPECT_NE(text.find("\nPlaceholder "), std::string::npos);
  const std::string markdown = Weir({"ops", "--markdown"}).out;
  EXPECT_TRUE(markdown.starts_with("| op |")) << markdown.substr(0, 100);
  EXPECT_EQ(static_cast<size_t>(std::count(markdown.begin(), markdown.end(), '\n')), all["ops"].size() + 2);
}

TEST(CliOps, F323_says_when_an_op_gives_the_same_bits_again) {
  const std::string table = Weir({"ops"}).out;
  EXPECT_NE(table.find("same bits"), std::string::npos) << table.substr(0, 200);
  EXPECT_NE(Weir({"ops", "RandomUniform"}).out.find("\n  same bits: with equal seeds\n"), std::string::npos);
  EXPECT_EQ(Weir({"ops", "AddV2", "--json"}).json()["ops"][0]["same_bits"], "always");
  EXPECT_EQ(Weir({"ops", "AssignAddVariableOp", "--json"}).json()["ops"][0]["same_bits"], "with equal state");
  EXPECT_NE(Weir({"ops", "--markdown"}).out.find(" | not promised |"), std::string::npos);
}

TEST(CliOps, UnknownOpNamesTheNearest) {
  const Ended ended = Weir({"ops", "MatMull", "--json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.json()["error"]["code"], "NOT_FOUND");
  EXPECT_FALSE(ended.json().contains("ops"));
  EXPECT_NE(ended.first_error_line().find("'MatMul'"), std::string::npos) << ended.err;
}

TEST(CliCheck, GoodPluginPasses) {
  const ScratchFolder folder;
  const std::string junit = folder / "report.xml";
  const Ended ended =
      Weir({"check", PluginFile("cpu.so"), "--stage", "static", "--stage", "load", "--junit", junit, "--json"});
  ASSERT_EQ(ended.status, 0) << ended.out << ended.err;
  Json answer = ended.json();
  EXPECT_EQ(answer["schema"], 1);
  ASSERT_EQ(answer["stages"].size(), 2u);
  EXPECT_EQ(answer["stages"][0]["name"], "static");
  ASSERT_FALSE(answer["stages"][0]["rules"].empty());
  for (const Json& rule : answer["stages"][0]["rules"]) {
    EXPECT_TRUE(rule["id"].get<std::string>().starts_with("WEIR-")) << rule.dump();
    EXPECT_NE(rule["verdict"], "fail") << rule.dump();
  }
  EXPECT_NE(ReadWhole(junit).find("<testsuite"), std::string::npos);
}

TEST(CliCheck, FilesOtherThanPluginsFail) {
  const ScratchFolder folder;
  const std::string file = folder.Write("text.so", "no library");
  const Ended ended = Weir({"check", file, "--stage", "static", "--json"});
  EXPECT_EQ(ended.status, 1);
  Json answer = ended.json();
  ASSERT_TRUE(answer.is_object()) << ended.out;
  EXPECT_EQ(answer["schema"], 1);
  EXPECT_TRUE(answer.contains("error")) << ended.out;
  EXPECT_TRUE(ended.first_error_line().starts_with("weir: ")) << ended.err;

  const Ended missing = Weir({"check", folder / "missing.so"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(missing.first_error_line().starts_with("weir: NOT_FOUND: ")) << missing.err;
}

TEST(CliModel, F346_ShowsInputsOutputsAndARunnableCommand) {
  const ScratchFolder folder;
  const std::string graph =
      folder.Write("g.pbtxt", PlaceholderText("x", "DT_FLOAT", {-1, 784}) + PlaceholderText("on", "DT_BOOL", {1}) +
                                  PlaceholderText("unused", "DT_INT32", {3}) + TypedText("y", "Neg", {"x"}) +
                                  TypedText("flag", "Identity", {"on"}, "DT_BOOL") +
                                  TypedText("u", "Identity", {"unused"}, "DT_INT32"));
  const Ended ended = Weir({"model", "show", graph, "--fetch", "y", "--fetch", "flag", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json answer = ended.json();
  EXPECT_EQ(answer["inputs"], Json::parse(R"([{"name":"x","dtype":"float","shape":[null,784],"required":true},
                            {"name":"on","dtype":"bool","shape":[1],"required":true}])"));
  EXPECT_EQ(answer["outputs"], Json::parse(R"([{"name":"y","dtype":"float","shape":[null,784]},
                                               {"name":"flag","dtype":"bool","shape":[1]}])"));
  const std::string command = answer["command"];
  EXPECT_EQ(command, "weir run " + graph + " --feed x=1x784xf32=0 --feed on=1xi1=false --fetch y --fetch flag");
  const Ended run = Weir({"run", graph, "--feed", "x=1x784xf32=0", "--feed", "on=1xi1=false", "--fetch", "y", "--fetch",
                          "flag", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.json()["fetches"][0]["shape"], Json({1, 784}));
  const Ended again =
      Weir({"model", "run", graph, "--input", "x=2x784xf32=0.5", "--fetch", "y", "--dump-command", "--json"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(
      again.json()["command"].get<std::string>().ends_with("weir run " + graph + " --feed x=2x784xf32=0.5 --fetch y"));
  EXPECT_EQ(Weir({"model", "show", graph, "--json"}).json()["inputs"].size(), 3u) << "of all outputs";
  const Ended text = Weir({"model", "show", graph, "--fetch", "y"});
  EXPECT_NE(text.out.find("[?,784]"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("weir run "), std::string::npos) << text.out;
}

TEST(CliModel, F346_ValuesOfAllElementsAreChecked) {
  const ScratchFolder folder;
  const std::string graph = folder.Write(
      "g.pbtxt", PlaceholderText("x", "DT_INT32", {2, -1}) + TypedText("y", "Identity", {"x"}, "DT_INT32"));
  const std::string scalar =
      folder.Write("s.pbtxt", PlaceholderText("s", "DT_FLOAT", {}) + TypedText("t", "Identity", {"s"}));
  const auto run = [&](const std::string& value) { return Weir({"run", graph, "--feed", "x=" + value, "--json"}); };
  const Json one = Weir({"run", scalar, "--feed", "s=f32=1.5", "--json"}).json()["fetches"][0];
  EXPECT_EQ(one["shape"], Json::array());
  EXPECT_NE(one["first_values"].get<std::string>().find("1.5"), std::string::npos) << one;
  EXPECT_EQ(run("2x3xi32=7").json()["fetches"][0]["first_values"], "[[7 7 7][7 7 7]]");
  EXPECT_NE(run("2x3xf32=7").err.find("wanted 'int32', which is written i32"), std::string::npos);
  EXPECT_NE(run("2x3xi32=[7]").err.find("wanted one value after '2x3xi32='"), std::string::npos);
  for (const char* bad : {"2x3xi32=", "2xxi32=1", "2x-1xi32=1", "3x3xi32=1", "9999999999x9999999999xi32=1"}) {
    EXPECT_EQ(run(bad).status, 1) << bad;
  }
}

/// A file of measured times with one point; `times` is the object "ns".
std::string ProfileText(const std::string& machine, const std::string& times, const std::string& extents = "[32,784]") {
  return R"({"weir_calibration": 1, "machine": ")" + machine + R"(", "points": [{"op": "MatMul", "dtype": "float32",
         "flags": ["transpose_b"], "inputs": [)" +
         extents + R"(, [512,784]], "constant": [1], "ns": )" + times + "}]}";
}

TEST(CliProfile, F344_ShowsMergesAndComparesMeasuredTimes) {
  const ScratchFolder folder;
  const std::string a = folder.Write("a.json", ProfileText("m", R"({"kernels_eigen": 2000, "kernels_onednn": 1000})"));
  const std::string b = folder.Write("b.json", ProfileText("m", R"({"kernels_eigen": 500})"));
  const std::string c = folder.Write("c.json", ProfileText("m", R"({"kernels_eigen": 7})", "[64,784]"));
  const std::string key = "MatMul float32 [32,784] constant [512,784] transpose_b";
  const Ended shown = Weir({"profile", "show", a, "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(shown.json()["machine"], "m");
  EXPECT_EQ(shown.json()["points"][0]["fastest"], "kernels_onednn");
  const Ended text = Weir({"profile", "show", a});
  for (const std::string& part : {key, std::string("2 us"), std::string("1 us"), std::string("1 points of m")}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << text.out;
  }
  const std::string all = folder / "all.json";
  const Ended merged = Weir({"profile", "merge", a, b, c, "--out", all, "--json"});
  ASSERT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(merged.json()["points"], 2);
  const Json points = Weir({"profile", "show", all, "--json"}).json()["points"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0]["ns"], Json::parse(R"({"kernels_eigen": 500, "kernels_onednn": 1000})"));
  EXPECT_EQ(points[0]["fastest"], "kernels_eigen");
  const Ended diff = Weir({"profile", "diff", a, b, "--json"});
  ASSERT_EQ(diff.status, 0) << diff.err;
  EXPECT_EQ(diff.json()["times"],
            Json::parse(R"([
      {"point": ")" + key +
                        R"(", "plugin": "kernels_eigen", "first_ns": 2000.0, "second_ns": 500.0, "ratio": 0.25},
      {"point": ")" + key +
                        R"(", "plugin": "kernels_onednn", "first_ns": 1000.0, "second_ns": null, "ratio": null}])"));
}

TEST(CliProfile, F344_BadFilesAreRefused) {
  const ScratchFolder folder;
  const std::string a = folder.Write("a.json", ProfileText("m", R"({"kernels_eigen": 2000})"));
  const std::string other = folder.Write("b.json", ProfileText("n", R"({"kernels_eigen": 2000})"));
  const Ended machines = Weir({"profile", "merge", a, other, "--out", folder / "all.json"});
  EXPECT_EQ(machines.status, 1);
  EXPECT_NE(machines.err.find("times of two machines do not compare"), std::string::npos) << machines.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "all.json"));
  for (const std::string& bad : {std::string("{"), ProfileText("m", R"({"kernels_eigen": 0})"),
                                 std::string(R"({"weir_calibration": 1, "points": [{"op": 1}]})")}) {
    const Ended ended = Weir({"profile", "show", folder.Write("bad.json", bad)});
    EXPECT_EQ(ended.status, 1) << bad;
    EXPECT_TRUE(ended.first_error_line().starts_with("weir: INVALID_ARGUMENT: ")) << ended.err;
  }
  EXPECT_EQ(Weir({"profile", "merge", a}).status, 2) << "without --out";
}

/// The environment with this cache folder.
std::map<std::string, std::string> CachedIn(const ScratchFolder& folder) { return {{"XDG_CACHE_HOME", folder.path()}}; }

TEST(CliProfile, F344_CalibrateWritesAFileThatIsUsedByDefault) {
  const ScratchFolder cache;
  const Ended made = Weir({"profile", "calibrate", "--seconds", "2", "--json"}, CachedIn(cache));
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string file = made.json()["file"];
  EXPECT_TRUE(file.starts_with(cache.path() + "/weir/profiles/")) << file;
  EXPECT_GT(made.json()["points"], 0);
  EXPECT_GT(made.json()["skipped"], 0) << "2 s are not enough for all points";
  for (const char* rate : {"float32", "float64", "memory", "cache"}) EXPECT_GT(made.json()["rates"][rate], 0) << rate;
  EXPECT_EQ(Weir({"profile", "show", file}).status, 0);
  const Ended devices = Weir({"devices", "--json"}, CachedIn(cache));
  EXPECT_EQ(devices.json()["devices"][0]["measured"], true) << devices.out;
  EXPECT_EQ(devices.err, "");
  for (const char* setting : {"placement.profile=\"off\"", "deterministic=true"}) {
    const Ended pinned = Weir({"devices", "--json", "--set", setting}, CachedIn(cache));
    EXPECT_EQ(pinned.json()["devices"][0]["measured"], false) << setting << pinned.out;
  }
  const Ended other = Weir({"devices", "--json", "--set", "plugins.isa=\"x86-64\""}, CachedIn(cache));
  EXPECT_EQ(other.json()["devices"][0]["measured"], false) << "it is of another instruction set";
}

TEST(CliProfile, F344_DamagedForeignAndStaleFilesArePassedOverWithANote) {
  const ScratchFolder cache;
  const Ended made = Weir({"profile", "calibrate", "--seconds", "0", "--json"}, CachedIn(cache));
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string file = made.json()["file"];
  const Json good = Json::parse(ReadWhole(file));
  Json foreign = good, stale = good, rate = good;
  foreign["device"] = "another processor";
  stale["plugins"]["kernels_eigen"] = "0.0.1";
  rate["rates"]["memory"] = -1;
  const std::pair<std::string, std::string> cases[] = {{"{\"weir_calib", "not a JSON text"},
                                                       {foreign.dump(), "it is of 'another processor'"},
                                                       {stale.dump(), "other kernel sets"},
                                                       {rate.dump(), "rate memory is not positive"}};
  for (const auto& [text, why] : cases) {
    ASSERT_EQ(
        std::filesystem::path(cache.Write("weir/profiles/" + std::filesystem::path(file).filename().string(), text)),
        std::filesystem::path(file));
    const Ended ended = Weir({"devices", "--json"}, CachedIn(cache));
    EXPECT_EQ(ended.status, 0) << why;
    EXPECT_EQ(ended.json()["devices"][0]["measured"], false) << why;
    EXPECT_TRUE(ended.err.starts_with("weir: note: ") && ended.err.find(why) != std::string::npos) << ended.err;
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
  }
}

TEST(CliProfile, F298_RunsAreRecordedUsedShownComparedAndCleared) {
  const ScratchFolder cache;
  const std::string graph = cache.Write("sum.pbtxt", PlaceholderText("x", "DT_FLOAT", {-1, 2}) +
                                                         TypedText("a", "Neg", {"x"}) + TypedText("y", "Exp", {"a"}));
  const Ended made =
      Weir({"profile", "record", graph, "--feed", "x=[[1,2]]", "--runs", "4", "--json"}, CachedIn(cache));
  ASSERT_EQ(made.status, 0) << made.err;
  ASSERT_EQ(made.json()["files"].size(), 1u) << made.out;
  const std::string file = made.json()["files"][0];
  EXPECT_TRUE(file.starts_with(cache.path() + "/weir/profiles/") && file.ends_with(".measured.json")) << file;
  EXPECT_GE(made.json()["times"], 1);
  const Ended explained = Weir({"explain", graph, "--feed", "x=[[1,2]]", "--json"}, CachedIn(cache));
  EXPECT_EQ(explained.json()["nodes"][0]["candidates"][0]["provenance"], "measured") << explained.out;
  const Ended off =
      Weir({"explain", graph, "--feed", "x=[[1,2]]", "--json", "--set", "placement.profile=\"off\""}, CachedIn(cache));
  EXPECT_EQ(off.json()["nodes"][0]["candidates"][0]["provenance"], "analytic") << off.out;
  const Ended shown = Weir({"profile", "show", file});
  EXPECT_NE(shown.out.find("Neg float[1,2]"), std::string::npos) << shown.out;
  EXPECT_EQ(Weir({"profile", "diff", file, file, "--json"}).json()["times"].size(), made.json()["times"]);
  const std::string all = cache / "all.json";
  EXPECT_EQ(Weir({"profile", "merge", file, file, "--out", all, "--json"}).json()["times"], made.json()["times"]);
  // A file of another device is refused where it is named, and passed over with a note where it is found.
  Json other = Json::parse(ReadWhole(file));
  other["devices"] = Json::object({{"GPU of another machine", other["devices"].begin().value()}});
  const std::string foreign = cache.Write("foreign.json", other.dump());
  const Ended refused = Weir({"run", graph, "--feed", "x=[[1,2]]", "--set", "placement.profile=\"" + foreign + "\""});
  EXPECT_EQ(refused.status, 1);
  for (const char* part : {"FAILED_PRECONDITION", "has times of [GPU of another machine]", "`weir profile record"}) {
    EXPECT_NE(refused.err.find(part), std::string::npos) << part << refused.err;
  }
  cache.Write("weir/profiles/" + std::filesystem::path(file).filename().string(), other.dump());
  const Ended passed = Weir({"explain", graph, "--feed", "x=[[1,2]]", "--json"}, CachedIn(cache));
  EXPECT_EQ(passed.status, 0) << passed.err;
  EXPECT_NE(passed.err.find("is not used: it has no times of"), std::string::npos) << passed.err;
  const Ended cleared = Weir({"profile", "clear", "--json"}, CachedIn(cache));
  EXPECT_EQ(cleared.json()["removed"].size(), 1u) << cleared.out;
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(Weir({"profile", "clear", "--json"}, CachedIn(cache)).json()["removed"].size(), 0u);
}

}  // namespace
}  // namespace weir::testing
