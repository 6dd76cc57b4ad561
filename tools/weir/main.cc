// The command `weir`: parses the command line, runs one command, prints errors in one form.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/legible.h"
#include "core/base/nearest.h"
#include "core/config/sources.h"
#include "core/kernel/host.h"
#include "core/session/runtime.h"
#include "sdk/abi/host.h"
#include "sdk/abi/plugin.h"
#include "tools/weir/check/check.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

const std::string kAbiVersion = fmt::format("{}.{}", WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
const std::string kVersionText = fmt::format("weir {} (plugin ABI {})", WEIR_VERSION, kAbiVersion);

struct GlobalOptions {
  bool json = false;
  std::string log_level = "warning";
  std::string config;
  std::vector<std::string> sets;

  // What the process brings, and over it what the command line says.
  config::Sources Sources() const {
    config::Sources sources = config::Sources::OfProcess();
    if (!config.empty()) sources.files.push_back(config);
    sources.sets = sets;
    return sources;
  }
};

const std::vector<std::pair<std::string, int32_t>> kLogLevels = {
    {"debug", WEIR_LOG_DEBUG}, {"info", WEIR_LOG_INFO}, {"warning", WEIR_LOG_WARNING}, {"error", WEIR_LOG_ERROR}};

using Command = std::function<Status(const Console&, Json&)>;

// One value per occurrence, so that the next word is never swallowed.
CLI::Option* AddList(CLI::App& app, const std::string& flag, std::vector<std::string>& list, const std::string& type,
                     const std::string& what) {
  return app.add_option(flag, list, what)->type_name(type)->allow_extra_args(false);
}

void AddGlobalOptions(CLI::App& app, GlobalOptions& global) {
  std::vector<std::string> levels;
  for (const auto& [name, level] : kLogLevels) levels.push_back(name);
  app.add_flag("--json", global.json, "Print one JSON object with \"schema\": 1")->group("Everywhere");
  app.add_option("--log-level", global.log_level,
                 "What plugins may log to standard error: debug, info, warning or error")
      ->check(CLI::IsMember(levels))
      ->type_name("LEVEL")
      ->group("Everywhere");
  app.add_option("--config", global.config, "Read this configuration (TOML, or ConfigProto: .pb, .pbtxt) too")
      ->check(CLI::Validator(
          [](const std::string& file) { return std::string(file.empty() ? "wanted a file, got ''" : ""); }, ""))
      ->type_name("FILE")
      ->group("Everywhere");
  AddList(app, "--set", global.sets, "KEY=VALUE", "Set a key of the configuration; repeatable")->group("Everywhere");
  app.set_help_flag("-h,--help", "Print this help and exit")->group("Everywhere");
  app.set_version_flag("--version", kVersionText)->group("Everywhere");
}

void AddRun(CLI::App& app, RunCommandOptions& options, Command& chosen) {
  CLI::App* run = app.add_subcommand("run", "Run a GraphDef file");
  run->add_option("graph", options.graph, "GraphDef, binary or text")->required()->type_name("GRAPH");
  AddList(*run, "--feed", options.feeds, "NAME=VALUE",
          "Value of a tensor: an .npy file, or JSON as [[1,2],[3,4]], true, \"text\", nan, inf; repeatable")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.find('=') == std::string::npos || text.front() == '=' ? "'" + text + "' is not NAME=VALUE" : "";
          },
          ""));
  AddList(*run, "--fetch", options.fetches, "NAME",
          "Tensor to compute; repeatable. Without --fetch and --target: the outputs that nobody reads");
  AddList(*run, "--target", options.targets, "NAME", "Node to run without fetching anything; repeatable");
  AddList(*run, "--init", options.inits, "NAME", "Node to run first, in the same session; repeatable");
  run->add_option("--out-dir", options.out_dir, "Write each fetch to DIR/<name, \"/\" and \":\" as \"_\">.npy")
      ->type_name("DIR");
  run->add_option("--device", options.device, "Device for nodes that ask for none, as CPU:0")->type_name("DEVICE");
  run->add_option("--runs", options.runs, "Run that often; print first, minimum, median and 90th percentile")
      ->check(CLI::Range(1, 1000000000))
      ->type_name("N");
  run->add_option("--trace", options.trace, "Write a Chrome trace")->type_name("FILE");
  run->add_option("--metadata", options.metadata,
                  "Write TensorFlow's RunMetadata of the last run: times, partition graphs")
      ->type_name("FILE");
  run->add_flag("--check-numerics", options.check_numerics, "Stop at the first op that gives a NaN or an infinity");
  run->add_flag("--dump-command", options.dump_command, "Print the full command line that would do this again");
  run->footer(
      "NAME without :i means :0.\n"
      "Examples:\n"
      "  weir run model.pb --feed x=[[1,2,3]] --fetch logits\n"
      "  weir run train.pbtxt --init init --feed x=x.npy --feed y=y.npy --target train --fetch loss --runs 100\n"
      "  weir run model.pb --feed x=x.npy --fetch logits --fetch top:1 --out-dir results --json");
  run->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return RunGraph(options, console, report); }; });
}

void AddExplain(CLI::App& app, ExplainOptions& options, Command& chosen) {
  CLI::App* explain = app.add_subcommand("explain", "Say where a run would put each node, and why; runs nothing");
  explain
      ->add_option("graph", options.words,
                   "GraphDef, binary or text; after the word `memory`: what the run would need of each device's memory")
      ->required()
      ->expected(1, 2)
      ->type_name("[memory] GRAPH");
  AddList(*explain, "--feed", options.run.feeds, "NAME=VALUE",
          "As in `weir run`: the values give the shapes; repeatable")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.find('=') == std::string::npos || text.front() == '=' ? "'" + text + "' is not NAME=VALUE" : "";
          },
          ""));
  AddList(*explain, "--fetch", options.run.fetches, "NAME", "As in `weir run`; repeatable");
  AddList(*explain, "--target", options.run.targets, "NAME", "As in `weir run`; repeatable");
  explain->add_option("--device", options.run.device, "Device for nodes that ask for none, as CPU:0")
      ->type_name("DEVICE");
  explain->add_option("--algorithm", options.algorithm, "Placement algorithm: costsim, whitepaper, tf or single")
      ->check(CLI::IsMember({"costsim", "whitepaper", "tf", "single"}))
      ->type_name("NAME");
  explain->add_flag("!--hard", options.soft, "A request that cannot be met is an error");
  explain->callback([&] {
    options.memory = options.words.size() == 2;
    if (options.memory && options.words.front() != "memory") {
      throw CLI::ValidationError("graph",
                                 "wanted one graph, got '" + options.words[0] + "' and '" + options.words[1] + "'");
    }
    options.run.graph = options.words.back();
    chosen = [&](const Console& console, Json& report) { return ExplainGraph(options, console, report); };
  });
}

void AddCheck(CLI::App& app, CheckCommandOptions& options, Command& chosen) {
  CLI::App* check = app.add_subcommand("check", "Try a plugin against the rules of the plugin ABI, in child processes");
  std::vector<std::string> stages;
  for (const std::string_view stage : check::StageNames()) stages.emplace_back(stage);
  check->add_option("plugin", options.plugin, "Plugin file")->required()->type_name("PLUGIN.so");
  AddList(*check, "--stage", options.stages, "STAGE",
          fmt::format("Only this stage; repeatable: {}", fmt::join(stages, ", ")))
      ->check(CLI::IsMember(stages));
  check->add_option("--junit", options.junit, "Also write a JUnit report")->type_name("FILE");
  check->footer("Exit status 1 when a rule is broken.");
  check->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return CheckPlugin(options, console, report); }; });
}

void AddConfig(CLI::App& app, const GlobalOptions& global, ConfigShowOptions& show, std::string& file,
               Command& chosen) {
  CLI::App* config = app.add_subcommand("config", "Show or check the configuration");
  config->require_subcommand(1);
  CLI::App* shown = config->add_subcommand("show", "List the keys that are set, with where each value came from");
  shown->add_flag("--effective", show.effective, "All keys and plugins' options, with what took effect");
  shown->callback([&] {
    chosen = [&](const Console& console, Json& report) {
      show.sources = global.Sources();
      return ShowConfig(show, console, report);
    };
  });
  CLI::App* check = config->add_subcommand("check", "Check a file: keys, types, values, plugins' options, devices");
  check->add_option("file", file, "Configuration file")->required()->type_name("FILE");
  check->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return CheckConfig(file, console, report); }; });
}

void AddCkpt(CLI::App& app, std::string& path, Command& chosen) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "List or verify checkpoints");
  ckpt->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, Status (*run)(const std::string&, const Console&, Json&)) {
    CLI::App* part = ckpt->add_subcommand(name, what);
    part->add_option("path", path, "Prefix of a checkpoint, or a folder of checkpoints")
        ->required()
        ->type_name("PREFIX|DIR");
    part->callback([&chosen, &path, run] {
      chosen = [&path, run](const Console& console, Json& report) { return run(path, console, report); };
    });
  };
  add("ls", "List tensors with type, shape, size and place, or the checkpoints of a folder", ListCheckpoint);
  add("verify", "Read everything; say what is damaged, missing, overlaps or is left out. Exit status 1 if anything is",
      VerifyCheckpoint);
}

// All options of all commands; they outlive the parser.
struct Options {
  GlobalOptions global;
  PluginsOptions plugins;
  CheckCommandOptions check;
  OpsOptions ops;
  RunCommandOptions run;
  ExplainOptions explain;
  ConfigShowOptions config_show;
  std::string config_file;
  std::string checkpoint;
};

void Describe(CLI::App& app, Options& options, Command& chosen) {
  app.name("weir");
  app.description("weir runs dataflow graphs in TensorFlow's formats on the devices that plugins bring.");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) { return std::string(error.what()); });
  app.footer(
      "`weir COMMAND --help` describes a command.\n"
      "Exit status: 0 done, 1 failed, 2 wrong use. Errors: one line `weir: CODE: message` on standard error, with\n"
      "--json also {\"schema\":1,\"error\":{...}} on standard output.\n"
      "Configuration, the strongest first: --set, --config FILE, WEIR_CONFIG, ~/.config/weir/weir.toml,\n"
      "/etc/weir/weir.toml, a variable for each key (`weir config show --effective` names all keys).\n"
      "WEIR_PLUGIN_PATH: folders of plugins, separated by colons, instead of ../lib/weir/plugins.\n"
      "NO_COLOR: no colours on a terminal.");
  app.add_subcommand("devices", "List the devices that plugins bring; opens none")->callback([&chosen] {
    chosen = ShowDevices;
  });
  CLI::App* plugins = app.add_subcommand("plugins", "List every file of the plugin folders with its verdict");
  plugins->add_flag("--why", options.plugins.why, "Full paths, and the reason of each verdict");
  plugins->callback([&] {
    chosen = [&](const Console& console, Json& report) { return ShowPlugins(options.plugins, console, report); };
  });
  AddCheck(app, options.check, chosen);
  CLI::App* ops = app.add_subcommand("ops", "List the ops, with kernels by plugin and element type");
  ops->add_option("name", options.ops.name, "Only this op, in full")->type_name("NAME");
  ops->add_flag("--markdown", options.ops.markdown, "As a table in Markdown");
  ops->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return ShowOps(options.ops, console, report); }; });
  AddRun(app, options.run, chosen);
  AddExplain(app, options.explain, chosen);
  AddCkpt(app, options.checkpoint, chosen);
  AddConfig(app, options.global, options.config_show, options.config_file, chosen);
  AddGlobalOptions(app, options.global);
  for (CLI::App* command : app.get_subcommands({})) {
    AddGlobalOptions(*command, options.global);
    for (CLI::App* part : command->get_subcommands({})) AddGlobalOptions(*part, options.global);
  }
}

Json ErrorJson(const Status& error) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  return {{"code", CodeName(error.code())},
          {"message", error.message()},
          {"node", text_or_null(error.node())},
          {"where", text_or_null(error.where())}};
}

// Prints the report and the error, and makes them an exit status.
int Finish(bool json, Json& report, const Status& status, int status_of_error) {
  if (!status.ok()) report["error"] = ErrorJson(status);
  if (json) {
    const std::string text = report.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!status.ok()) {
    WarnOnStderr(fmt::format("weir: {}\n", OnOneLine(status.ToString())));
    return status_of_error;
  }
  if (written) return 0;
  fmt::print(stderr, "weir: {}\n", Unavailable("standard output cannot be written").ToString());
  return kFailed;
}

// The parser's message with what might have been meant.
Status WrongUse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  std::vector<std::string> names;
  for (const CLI::App* below : command->get_subcommands(nullptr)) names.push_back(below->get_name());
  const std::vector<std::string> rest = command->remaining();
  const auto word = std::find_if(rest.begin(), rest.end(), [](const std::string& w) { return !w.starts_with('-'); });
  if (!names.empty() && word != rest.end()) {
    return InvalidArgument("no command '{}{}'{}; commands: {}", path.empty() ? "" : path.substr(1) + " ", *word,
                           NearestHint(*word, std::vector<std::string_view>(names.begin(), names.end())),
                           fmt::join(names, ", "));
  }
  return InvalidArgument("{}; see `weir{} --help`", error.what(), path);
}

// What the parser has to say itself: help and version.
int PrintHelp(const CLI::App& app, const CLI::Success& asked) {
  std::ostringstream text;
  app.exit(asked, text, text);
  std::fputs(text.str().c_str(), stdout);
  Json none;
  return Finish(false, none, Status(), 0);
}

int Run(const std::vector<std::string>& words) {
  Options options;
  Command chosen;
  Json report = {{"schema", 1}};
  CLI::App app;
  Describe(app, options, chosen);
  // Asked of the words, as parsing may end before it comes to the flag.
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes words from the back
  } catch (const CLI::CallForVersion& version) {
    if (!json) return PrintHelp(app, version);
    report["version"] = WEIR_VERSION;
    report["abi"] = kAbiVersion;
    return Finish(true, report, Status(), 0);
  } catch (const CLI::Success& help) {
    return PrintHelp(app, help);
  } catch (const CLI::ParseError& error) {
    return Finish(json, report, WrongUse(app, error), kWrongUse);
  }
  for (const auto& [name, level] : kLogLevels) {
    if (name == options.global.log_level) kernel::SetLogLevel(level);
  }
  if (!options.global.config.empty()) options.run.config_words.emplace_back("--config", options.global.config);
  for (const std::string& set : options.global.sets) options.run.config_words.emplace_back("--set", set);
  Status status;
  try {
    status = session::Runtime::SetSources(options.global.Sources());
    if (status.ok()) status = chosen(Console(options.global.json), report);
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("out of memory");
  } catch (const std::exception& error) {
    status = Internal("{}", error.what());
  }
  return Finish(options.global.json, report, status, kFailed);
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  try {
    return weir::cli::Run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    weir::WarnOnStderr(fmt::format("weir: INTERNAL: {}\n", error.what()));
    return 1;
  }
}
