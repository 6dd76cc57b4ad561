// Missing, broken, foreign and duplicate plugin files: each gets a verdict, and all other plugins work.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sdk/abi/plugin.h"
#include "tests/e2e/cli_process.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string Shipped(const std::string& name) { return std::string(WEIR_PLUGINS) + "/" + name; }

void CopyPlugin(const std::string& name, const std::string& to) { fs::copy_file(Shipped(name), to); }

/// Changes the note of `plugin` in this file.
void ChangeNote(const std::string& file, std::string_view plugin, const std::function<void(weir_note_desc&)>& change) {
  std::string bytes = ReadWhole(file);
  const std::string magic(WEIR_NOTE_MAGIC, 8);  // with its NUL
  size_t at = std::string::npos;
  for (size_t found = bytes.find(magic); found != std::string::npos; found = bytes.find(magic, found + 1)) {
    weir_note_desc desc;
    if (found + sizeof(desc) > bytes.size()) continue;
    std::memcpy(&desc, bytes.data() + found, sizeof(desc));
    if (std::string(desc.name) == plugin) at = found;
  }
  ASSERT_NE(at, std::string::npos) << file << " has no note";
  weir_note_desc desc;
  std::memcpy(&desc, bytes.data() + at, sizeof(desc));
  change(desc);
  std::memcpy(bytes.data() + at, &desc, sizeof(desc));
  std::ofstream(file, std::ios::binary) << bytes;
  fs::permissions(file, fs::perms(0755));
}

/// A copy of cpu.so with a changed note.
void CopyWithNote(const std::string& to, const std::function<void(weir_note_desc&)>& change) {
  CopyPlugin("cpu.so", to);
  ChangeNote(to, "cpu", change);
}

struct Verdict {
  std::string verdict;
  std::string reason;
  int devices = 0;
};

/// The verdicts of `weir plugins` by file name; the command must succeed.
std::map<std::string, Verdict> Verdicts(const std::string& folders) {
  const Ended ended = Weir({"plugins", "--why", "--json"}, {{"WEIR_PLUGIN_PATH", folders}});
  EXPECT_EQ(ended.status, 0) << ended.err;
  std::map<std::string, Verdict> verdicts;
  Json answer = ended.json();
  for (const Json& plugin : answer["plugins"]) {
    verdicts[fs::path(plugin["file"].get<std::string>()).filename()] = {plugin["verdict"], plugin["reason"],
                                                                        plugin["devices"]};
  }
  return verdicts;
}

std::string AddGraph() {
  return ConstText("a", "DT_FLOAT", {2}, "float_val: 1 float_val: 2") + PlaceholderText("x", "DT_FLOAT", {2}) +
         TypedText("y", "Add", {"a", "x"});
}

TEST(CliPluginFolder, EmptyOrMissingFoldersAreReported) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", AddGraph());
  const std::string empty = folder / "plugins";
  fs::create_directory(empty);
  for (const std::string& path : {empty, folder / "missing"}) {
    const std::map<std::string, std::string> environment = {{"WEIR_PLUGIN_PATH", path}};
    for (const char* command : {"devices", "plugins"}) {
      const Ended text = Weir({command}, environment);
      EXPECT_EQ(text.status, 0) << text.err;
      EXPECT_NE(text.out.find(path), std::string::npos) << text.out;
      Json json = Weir({command, "--json"}, environment).json();
      EXPECT_EQ(json[command], Json::array());
    }
    Json ops = Weir({"ops", "Add", "--json"}, environment).json();
    EXPECT_EQ(ops["ops"][0]["kernels"], Json::array());
    const Ended run = Weir({"run", graph, "--feed", "x=[1,2]", "--json"}, environment);
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.json()["error"]["code"], "FAILED_PRECONDITION");
    EXPECT_NE(run.first_error_line().find(path), std::string::npos) << run.err;
  }
}

TEST(CliPluginFolder, ForeignFilesAreNotPlugins) {
  const ScratchFolder folder;
  CopyPlugin("cpu.so", folder / "cpu.so");
  folder.Write("text.so", "#!/bin/sh\n");
  folder.Write("empty.so", "");
  folder.Write("readme.txt", "no library");
  fs::copy_file("/proc/self/exe", folder / "library.so");  // an ELF file without a note
  auto verdicts = Verdicts(folder.path());
  EXPECT_EQ(verdicts["cpu.so"].verdict, "loaded");
  EXPECT_EQ(verdicts["cpu.so"].devices, 1);
  for (const char* file : {"text.so", "empty.so", "library.so"}) {
    EXPECT_EQ(verdicts[file].verdict, "not-a-plugin") << file;
    EXPECT_NE(verdicts[file].reason, "") << file;
  }
  EXPECT_FALSE(verdicts.contains("readme.txt"));
}

struct NoteCase {
  const char* name;
  std::function<void(weir_note_desc&)> change;
  std::vector<std::string> said;
};

class CliPluginNote : public ::testing::TestWithParam<NoteCase> {};

TEST_P(CliPluginNote, RefusedBeforeAnyOfItsCodeRuns) {
  const ScratchFolder folder;
  CopyWithNote(folder / "odd.so", GetParam().change);
  CopyPlugin("cpu.so", folder / "zz_good.so");
  auto verdicts = Verdicts(folder.path());
  EXPECT_EQ(verdicts["odd.so"].verdict, "refused");
  for (const std::string& part : GetParam().said) {
    EXPECT_NE(verdicts["odd.so"].reason.find(part), std::string::npos) << verdicts["odd.so"].reason;
  }
  EXPECT_EQ(verdicts["zz_good.so"].verdict, "loaded") << verdicts["zz_good.so"].reason;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, CliPluginNote,
    ::testing::ValuesIn(std::vector<NoteCase>{
        {"AnotherMajor", [](weir_note_desc& d) { d.abi_major = WEIR_ABI_MAJOR + 1; }, {"major 2", "1"}},
        {"NewerMinorNeeded", [](weir_note_desc& d) { d.needs_minor = 999; }, {"999"}},
        {"AnotherSanitizer",
         [](weir_note_desc& d) {
           d.sanitizer = d.sanitizer == WEIR_SANITIZER_THREAD ? WEIR_SANITIZER_NONE : WEIR_SANITIZER_THREAD;
         },
         {"sanitizer"}},
        {"AnotherMachine",
         [](weir_note_desc& d) {
           d.machine = d.machine == WEIR_MACHINE_AARCH64 ? WEIR_MACHINE_X86_64 : WEIR_MACHINE_AARCH64;
         },
         {"machine"}},
        {"UnknownMustBits", [](weir_note_desc& d) { d.must_understand = 1u << 31; }, {"0x80000000"}},
        {"UnknownInstructionSet", [](weir_note_desc& d) { d.isa = 1u << 30; }, {"instruction-set bits 0x40000000"}},
        {"UnterminatedName", [](weir_note_desc& d) { std::memset(d.name, 'x', sizeof(d.name)); }, {"name"}},
        {"EmptyName", [](weir_note_desc& d) { std::memset(d.name, 0, sizeof(d.name)); }, {"name"}},
    }),
    [](const auto& info) { return info.param.name; });

// Plugin files above the cap are passed over on every CPU; they do not count as missing.
TEST(CliPlugins, F302_FormsForOtherInstructionsAreNoCauseOfAnything) {
  const ScratchFolder folder;
  CopyPlugin("cpu.so", folder / "cpu.so");
  CopyPlugin("kernels_eigen.so", folder / "kernels_eigen.so");
  CopyPlugin("kernels_eigen.so", folder / "kernels_eigen@v4.so");
  ChangeNote(folder / "kernels_eigen@v4.so", "kernels_eigen", [](weir_note_desc& d) { d.isa |= WEIR_ISA_X86_64_V4; });
  const std::map<std::string, std::string> environment = {
      {"WEIR_PLUGIN_PATH", folder.path()}, {"WEIR_PLUGINS_ISA", "x86-64-v3"}, {"WEIR_PLUGINS_STRICT", "true"}};
  const Ended listed = Weir({"plugins", "--why"}, environment);
  ASSERT_EQ(listed.status, 0) << listed.err;
  EXPECT_NE(listed.out.find("passed-over"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("needs x86-64-v4, "), std::string::npos) << listed.out;
  const std::string graph =
      folder.Write("g.pbtxt", PlaceholderText("x", "DT_FLOAT", {2}) +
                                  NodeText("y", "Relu", {"x"}, {{"T", "type: DT_FLOAT"}}, "/device:GPU:0"));
  const Ended soft = Weir({"run", graph, "--feed", "x=[1,2]", "--fetch", "y"}, environment);
  EXPECT_EQ(soft.status, 0) << soft.err;
  EXPECT_EQ(soft.err.find("not loaded"), std::string::npos) << soft.err;
  auto hard_placement = environment;
  hard_placement["WEIR_ALLOW_SOFT_PLACEMENT"] = "false";
  const Ended hard = Weir({"run", graph, "--feed", "x=[1,2]", "--fetch", "y"}, hard_placement);
  EXPECT_EQ(hard.status, 1);
  EXPECT_EQ(hard.err.find("not loaded"), std::string::npos) << hard.err;
}

TEST(CliPlugins, F304_ARequestForADeviceNamesThePluginAndItsMissingLibrary) {
  const ScratchFolder folder;
  CopyPlugin("cpu.so", folder / "cpu.so");
  CopyPlugin("kernels_eigen.so", folder / "kernels_eigen.so");
  const std::string graph =
      folder.Write("g.pbtxt", PlaceholderText("x", "DT_FLOAT", {2}) +
                                  NodeText("y", "Relu", {"x"}, {{"T", "type: DT_FLOAT"}}, "/device:GPU:0"));
  const std::map<std::string, std::string> hard = {{"WEIR_PLUGIN_PATH", folder.path()},
                                                   {"WEIR_ALLOW_SOFT_PLACEMENT", "false"}};
  const Ended without = Weir({"run", graph, "--feed", "x=[1,2]", "--fetch", "y"}, hard);
  EXPECT_EQ(without.status, 1);
  EXPECT_EQ(without.err.find("not loaded"), std::string::npos) << without.err;
  fs::copy_file(WEIR_MUTANTS "/vendor/broken.so", folder / "broken.so");
  const Ended with = Weir({"run", graph, "--feed", "x=[1,2]", "--fetch", "y"}, hard);
  EXPECT_EQ(with.status, 1);
  EXPECT_NE(with.err.find("{{node y}} was explicitly assigned to /device:GPU:0"), std::string::npos) << with.err;
  const size_t at = with.err.find("; not loaded: ");
  ASSERT_NE(at, std::string::npos) << with.err;
  EXPECT_NE(with.err.find("broken", at), std::string::npos) << with.err;
  EXPECT_NE(with.err.find("libweir_test_vendor.so.7", at), std::string::npos) << with.err;
}

// Kernels that choose their instruction set at run time get the cap.
TEST(CliPlugins, TheCapReachesPluginsThatChooseAsTheyRun) {
  const Ended shown = Weir({"config", "show", "--effective", "--json", "--set", "plugins.isa=x86-64-v3"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  const Json answer = shown.json();
  int told = 0;
  for (const Json& value : answer["values"]) {
    if (!value["key"].get<std::string>().starts_with("plugin.") || !value["key"].get<std::string>().ends_with(".isa"))
      continue;
    ++told;
    EXPECT_EQ(value["value"], "x86-64-v3") << value;
    EXPECT_EQ(value["source"], "--set") << value;
  }
  Json plugins = Weir({"plugins", "--json"}).json();
  int choosing = 0;
  for (const Json& plugin : plugins["plugins"]) {
    const std::string name = plugin["name"];
    choosing += name == "cpu" || name == "kernels_onednn" || name == "kernels_openblas" ? 1 : 0;
  }
  EXPECT_EQ(told, choosing);
}

// A crash in a constructor of the file ends only the process that probes it.
TEST(CliPlugins, AProbedPluginThatCrashesIsListed) {
  const ScratchFolder folder;
  CopyPlugin("cpu.so", folder / "cpu.so");
  fs::copy_file(std::string(WEIR_MUTANTS) + "/broken_8/broken.so", folder / "broken.so");
  const Ended ended = Weir({"plugins", "--why", "--json", "--set", "plugins.probe=true"},
                           {{"WEIR_PLUGIN_PATH", folder.path()}, {"XDG_CACHE_HOME", folder / "cache"}});
  ASSERT_EQ(ended.status, 0) << ended.err;
  std::map<std::string, Json> verdicts;
  Json answer = ended.json();
  for (const Json& plugin : answer["plugins"]) verdicts[plugin["name"]] = plugin;
  EXPECT_EQ(verdicts["cpu"]["verdict"], "loaded") << ended.out;
  EXPECT_EQ(verdicts["broken"]["verdict"], "crashed") << ended.out;
}

TEST(CliPluginFolder, SecondPluginOfANameIsRefusedAndNamesTheFirst) {
  const ScratchFolder folder;
  CopyPlugin("cpu.so", folder / "a.so");
  CopyPlugin("cpu.so", folder / "b.so");
  auto verdicts = Verdicts(folder.path());
  EXPECT_EQ(verdicts["a.so"].verdict, "loaded");
  EXPECT_EQ(verdicts["b.so"].verdict, "refused");
  EXPECT_NE(verdicts["b.so"].reason.find("'cpu'"), std::string::npos) << verdicts["b.so"].reason;
  EXPECT_NE(verdicts["b.so"].reason.find(folder / "a.so"), std::string::npos) << verdicts["b.so"].reason;
  Json devices = Weir({"devices", "--json"}, {{"WEIR_PLUGIN_PATH", folder.path()}}).json();
  EXPECT_EQ(devices["devices"].size(), 1u);
}

TEST(CliPluginFolder, FilesThatOthersMayWriteAreRefused) {
  const ScratchFolder folder;
  CopyPlugin("cpu.so", folder / "cpu.so");
  fs::permissions(folder / "cpu.so", fs::perms(0757));
  EXPECT_EQ(Verdicts(folder.path())["cpu.so"].verdict, "refused");
}

TEST(CliPluginFolder, CutFilesNeverLoadNorCrash) {
  const ScratchFolder folder;
  const std::string bytes = ReadWhole(Shipped("cpu.so"));
  for (const size_t kept : {size_t{4}, size_t{63}, size_t{64}, size_t{500}, size_t{4096}}) {
    folder.Write("cut.so", bytes.substr(0, kept));
    fs::permissions(folder / "cut.so", fs::perms(0755));
    const std::string verdict = Verdicts(folder.path())["cut.so"].verdict;
    EXPECT_TRUE(verdict == "refused" || verdict == "not-a-plugin") << kept << " bytes: " << verdict;
  }
}

TEST(CliPluginFolder, RelativeFoldersAreRefused) {
  const auto verdicts = Verdicts("plugins");
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts.begin()->second.verdict, "refused");
  EXPECT_NE(verdicts.begin()->second.reason.find("absolute"), std::string::npos) << verdicts.begin()->second.reason;
  const Ended devices = Weir({"devices"}, {{"WEIR_PLUGIN_PATH", "plugins"}});
  EXPECT_NE(devices.out.find("'plugins' is no absolute path"), std::string::npos) << devices.out;
}

TEST(CliPluginFolder, EachPluginMovedAwayTakesOnlyItsOwn) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", AddGraph());
  const std::string device_only = folder / "device_only";
  const std::string kernels_only = folder / "kernels_only";
  fs::create_directory(device_only);
  fs::create_directory(kernels_only);
  CopyPlugin("cpu.so", device_only + "/cpu.so");
  CopyPlugin("kernels_eigen.so", kernels_only + "/kernels_eigen.so");

  // Without kernels the device remains; ops without kernels run, all others report the missing plugin.
  const std::map<std::string, std::string> no_kernels = {{"WEIR_PLUGIN_PATH", device_only}};
  EXPECT_EQ(Weir({"devices", "--json"}, no_kernels).json()["devices"].size(), 1u);
  EXPECT_EQ(Weir({"run", graph, "--fetch", "a"}, no_kernels).status, 0);
  const Ended add = Weir({"run", graph, "--feed", "x=[1,2]", "--json"}, no_kernels);
  EXPECT_EQ(add.status, 1);
  EXPECT_EQ(add.json()["error"]["node"], "y") << add.out;
  EXPECT_NE(add.err.find("Add"), std::string::npos) << add.err;

  // Kernels without a device are listed with the reason.
  auto verdicts = Verdicts(kernels_only);
  EXPECT_EQ(verdicts["kernels_eigen.so"].verdict, "no-devices");
  EXPECT_NE(verdicts["kernels_eigen.so"].reason.find("cpu"), std::string::npos) << verdicts["kernels_eigen.so"].reason;
  EXPECT_EQ(Weir({"devices", "--json"}, {{"WEIR_PLUGIN_PATH", kernels_only}}).json()["devices"], Json::array());

  // Device and kernels from two folders work together.
  const Ended both =
      Weir({"run", graph, "--feed", "x=[1,2]", "--json"}, {{"WEIR_PLUGIN_PATH", device_only + ":" + kernels_only}});
  EXPECT_EQ(both.status, 0) << both.err;
  EXPECT_EQ(both.json()["fetches"][0]["first_values"], "[2 4]");
}

}  // namespace
}  // namespace weir::testing
