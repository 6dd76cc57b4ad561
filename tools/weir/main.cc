// The command `weir`: parses the command line, runs one command, prints errors in one form.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/base/nearest.h"
#include "core/cluster/remote_devices.h"
#include "core/config/sources.h"
#include "core/kernel/host.h"
#include "core/session/runtime.h"
#include "sdk/abi/host.h"
#include "sdk/abi/plugin.h"
#include "tools/weir/check/check.h"
#include "tools/weir/cluster_commands.h"
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

  // The settings of the process, overridden by the command line.
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

// One value per occurrence, so that the option never consumes the next word.
CLI::Option* AddList(CLI::App& app, const std::string& flag, std::vector<std::string>& list, const std::string& type,
                     const std::string& what) {
  return app.add_option(flag, list, what)->type_name(type)->allow_extra_args(false);
}

void AddGlobalOptions(CLI::App& app, GlobalOptions& global) {
  std::vector<std::string> levels;
  for (const auto& [name, level] : kLogLevels) levels.push_back(name);
  app.add_flag("--json", global.json, "Print one JSON object with \"schema\": 1")->group("Everywhere");
  app.add_option("--log-level", global.log_level,
                 "Lowest level of log lines on standard error: debug, info, warning or error. info adds a line about "
                 "each placement on one device")
      ->check(CLI::IsMember(levels))
      ->type_name("LEVEL")
      ->group("Everywhere");
  app.add_option("--config", global.config, "Also read this configuration (TOML, or ConfigProto: .pb, .pbtxt)")
      ->check(CLI::Validator(
          [](const std::string& file) { return std::string(file.empty() ? "wanted a file, got ''" : ""); }, ""))
      ->type_name("FILE")
      ->group("Everywhere");
  AddList(app, "--set", global.sets, "KEY=VALUE", "Set a configuration key; repeatable")->group("Everywhere");
  app.set_help_flag("-h,--help", "Print this help and exit")->group("Everywhere");
  app.set_version_flag("--version", kVersionText)->group("Everywhere");
}

void AddRun(CLI::App& app, RunCommandOptions& options, Command& chosen) {
  CLI::App* run = app.add_subcommand("run", "Run a GraphDef file");
  run->add_option("graph", options.graph, "GraphDef, binary or text")->required()->type_name("GRAPH");
  AddList(*run, "--feed,--input", options.feeds, "NAME=VALUE",
          "Value of a tensor: an .npy file, JSON such as [[1,2],[3,4]], true, \"text\", nan, inf, or a shape with type "
          "and the value of all elements, such as 2x3xf32=0; repeatable")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.find('=') == std::string::npos || text.front() == '=' ? "'" + text + "' is not NAME=VALUE" : "";
          },
          ""));
  AddList(*run, "--fetch", options.fetches, "NAME",
          "Tensor to compute; repeatable. Without --fetch and --target: all outputs that no node reads");
  AddList(*run, "--target", options.targets, "NAME", "Node to run without fetching anything; repeatable");
  AddList(*run, "--init", options.inits, "NAME", "Node to run first, in the same session; repeatable");
  run->add_option("--out-dir", options.out_dir, "Write each fetch to DIR/<name, \"/\" and \":\" as \"_\">.npy")
      ->type_name("DIR");
  run->add_option("--device", options.device, "Device for nodes without a device, such as CPU:0")->type_name("DEVICE");
  run->add_option("--runs", options.runs, "Run N times; print first, minimum, median and 90th percentile")
      ->check(CLI::Range(1, 1000000000))
      ->type_name("N");
  run->add_option("--trace", options.trace,
                  "Write a Chrome trace, or with the suffix .pftrace one in Perfetto's format")
      ->type_name("FILE");
  run->add_option("--trace-schedule", options.trace_schedule,
                  "Runs in the trace: SKIP,WAIT,WARMUP,ACTIVE,REPEAT. After SKIP runs, cycles of WAIT runs that are "
                  "not traced, WARMUP that are traced and left out, ACTIVE that are written; REPEAT cycles, 0 = all")
      ->delimiter(',')
      ->expected(1, 5)
      ->check(CLI::NonNegativeNumber)
      ->type_name("N,…");
  run->add_option("--trace-limit", options.trace_limit_mb, "Largest size of the trace: later runs are left out")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("MB");
  run->add_option("--metadata", options.metadata,
                  "Write TensorFlow's RunMetadata of the last run: times, partition graphs")
      ->type_name("FILE");
  run->add_flag("--check-numerics", options.check_numerics, "Stop at the first op that produces a NaN or an infinity");
  run->add_flag("--dump-command", options.dump_command, "Print the full command line that repeats this run");
  run->footer(
      "NAME without :i means :0.\n"
      "Examples:\n"
      "  weir run model.pb --feed x=[[1,2,3]] --fetch logits\n"
      "  weir run train.pbtxt --init init --feed x=x.npy --feed y=y.npy --target train --fetch loss --runs 100\n"
      "  weir run model.pb --feed x=x.npy --fetch logits --fetch top:1 --out-dir results --json");
  run->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return RunGraph(options, console, report); }; });
}

void AddModel(CLI::App& app, RunCommandOptions& options, Command& chosen) {
  CLI::App* model = app.add_subcommand("model", "Show what a graph wants as input, or run it");
  model->require_subcommand(1);
  AddRun(*model, options, chosen);
  CLI::App* show =
      model->add_subcommand("show", "Inputs and outputs with type and shape, and a command line that runs it");
  show->add_option("graph", options.graph, "GraphDef, binary or text")->required()->type_name("GRAPH");
  AddList(*show, "--fetch", options.fetches, "NAME", "As in `weir run`: only what this output needs; repeatable");
  AddList(*show, "--target", options.targets, "NAME", "As in `weir run`; repeatable");
  show->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return ShowModel(options, console, report); }; });
}

void AddExplain(CLI::App& app, ExplainOptions& options, Command& chosen) {
  CLI::App* explain =
      app.add_subcommand("explain", "Show the device of each node and the reasons; runs nothing but with --measure");
  explain
      ->add_option("graph", options.words,
                   "GraphDef, binary or text; with the word `memory`: the memory that a run needs on each device; "
                   "with `graph`: the optimised and placed step; with `plan`: the instructions that run it; "
                   "with `passes`: what each pass left")
      ->required()
      ->expected(1, 2)
      ->type_name("[memory|graph|plan|passes] GRAPH");
  AddList(*explain, "--feed", options.run.feeds, "NAME=VALUE",
          "As in `weir run`: the values give the shapes; repeatable")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.find('=') == std::string::npos || text.front() == '=' ? "'" + text + "' is not NAME=VALUE" : "";
          },
          ""));
  AddList(*explain, "--fetch", options.run.fetches, "NAME", "As in `weir run`; repeatable");
  AddList(*explain, "--target", options.run.targets, "NAME", "As in `weir run`; repeatable");
  explain->add_option("--device", options.run.device, "Device for nodes without a device, such as CPU:0")
      ->type_name("DEVICE");
  explain->add_option("--html", options.html, "Write a page with time line, memory, graph and nodes; it loads nothing")
      ->type_name("FILE");
  AddList(*explain, "--init", options.run.inits, "NAME", "With --measure, as in `weir run`; repeatable");
  explain->add_option("--measure", options.measure, "Run the graph this often and show the times beside the prediction")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  explain->add_option("--algorithm", options.algorithm, "Placement algorithm: costsim, whitepaper, tf or single")
      ->check(CLI::IsMember({"costsim", "whitepaper", "tf", "single"}))
      ->type_name("NAME");
  explain->add_flag("!--hard", options.soft, "Fail if a device request cannot be met");
  explain->callback([&] {
    options.what = options.words.size() == 2 ? options.words.front() : "";
    if (!std::set<std::string>{"", "memory", "graph", "plan", "passes"}.contains(options.what)) {
      throw CLI::ValidationError("graph",
                                 "wanted one graph, got '" + options.words[0] + "' and '" + options.words[1] + "'");
    }
    options.run.graph = options.words.back();
    chosen = [&](const Console& console, Json& report) { return ExplainGraph(options, console, report); };
  });
}

void AddCheck(CLI::App& app, const GlobalOptions& global, CheckCommandOptions& options, Command& chosen) {
  CLI::App* check =
      app.add_subcommand("check", "Test a plugin against the rules of the plugin ABI, in child processes");
  std::vector<std::string> stages;
  for (const std::string_view stage : check::StageNames()) stages.emplace_back(stage);
  check->add_option("plugin", options.plugin, "Plugin file")->type_name("PLUGIN.so");
  AddList(*check, "--stage", options.stages, "STAGE",
          fmt::format("Only this stage; repeatable: {}", fmt::join(stages, ", ")))
      ->check(CLI::IsMember(stages));
  check->add_flag("--rules", options.rules, "List the rules");
  check->add_option("--cases", options.cases, "Folder of op cases, instead of the installed one")->type_name("DIR");
  check->add_option("--time-limit", options.time_limit_s, "Limit for each trial, 120 by default")
      ->check(CLI::Range(1, 86400))
      ->type_name("SECONDS");
  check->add_option("--json-file", options.json, "Also write a JSON report; --json FILE.json is the same")
      ->type_name("FILE");
  check->add_option("--junit", options.junit, "Also write a JUnit report")->type_name("FILE");
  check->footer("Exit status 1 if a rule is broken. Options of the plugin: --set plugin.NAME.KEY=VALUE.");
  check->callback([&] {
    if (options.plugin.empty() && !options.rules) throw CLI::RequiredError("plugin");
    chosen = [&](const Console& console, Json& report) {
      options.sources = global.Sources();
      return CheckPlugin(options, console, report);
    };
  });
}

void AddConfig(CLI::App& app, const GlobalOptions& global, ConfigShowOptions& show, std::string& file,
               Command& chosen) {
  CLI::App* config = app.add_subcommand("config", "Show or check the configuration");
  config->require_subcommand(1);
  CLI::App* shown = config->add_subcommand("show", "List the keys that are set, with the source of each value");
  shown->add_flag("--effective", show.effective, "All keys and plugin options, with the values in force");
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

void AddCkpt(CLI::App& app, CkptOptions& options, Command& chosen) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "List, show, compare or verify checkpoints");
  ckpt->require_subcommand(1);
  using Run = Status (*)(const CkptOptions&, const Console&, Json&);
  const auto add = [&](const char* name, const char* what, int paths, Run run) {
    CLI::App* part = ckpt->add_subcommand(name, what);
    part->add_option("path", options.paths, "Prefix of a checkpoint, or a folder of checkpoints")
        ->required()
        ->expected(paths)
        ->type_name("PREFIX|DIR");
    AddList(*part, "--exclude", options.exclude, "REGEX",
            "Leave out tensors whose names it matches in part; repeatable");
    part->callback([&chosen, &options, run] {
      chosen = [&options, run](const Console& console, Json& report) { return run(options, console, report); };
    });
    return part;
  };
  add("ls", "List tensors with type, shape, size and location, or the checkpoints of a folder", 1, ListCheckpoint);
  CLI::App* show = add("show", "Print the values of tensors", 1, ShowCheckpoint);
  AddList(*show, "--tensor", options.tensors, "NAME", "Only this tensor; repeatable");
  add("stats", "Count parameters; print range, mean and deviation of each tensor, NaN and infinities", 1,
      CheckpointStats);
  add("diff", "Compare names, types, shapes and values of two checkpoints. Exit status 1 if any differ", 2,
      DiffCheckpoints);
  add("verify", "Read all data; report damage, missing data, overlaps and gaps. Exit status 1 if there is any", 1,
      VerifyCheckpoint);
}

void AddProfile(CLI::App& app, ProfileOptions& options, Command& chosen) {
  CLI::App* profile = app.add_subcommand("profile", "Make, show, merge or compare files of measured kernel times");
  profile->require_subcommand(1);
  using Run = Status (*)(const ProfileOptions&, const Console&, Json&);
  const auto add = [&](const char* name, const char* what, Run run) {
    CLI::App* part = profile->add_subcommand(name, what);
    part->callback([&chosen, &options, run] {
      chosen = [&options, run](const Console& console, Json& report) { return run(options, console, report); };
    });
    return part->add_option("file", options.files, "File of measured times, for `placement.profile`")
        ->required()
        ->type_name("FILE");
  };
  add("show", "Print the points with the time of each kernel", ShowProfile)->expected(1);
  add("diff", "Print the times of two files and their ratios", DiffProfiles)->expected(2);
  add("merge", "Write the points of all files to one; of equal points, the times of later files count", MergeProfiles);
  profile->get_subcommand("merge")
      ->add_option("--out", options.out, "The file to write")
      ->required()
      ->type_name("FILE");
  CLI::App* record = profile->add_subcommand(
      "record", "Run a graph and keep the times of its kernels and transfers for placement.profile = \"auto\"");
  record->add_option("graph", options.run.graph, "GraphDef, binary or text")->required()->type_name("GRAPH");
  AddList(*record, "--feed", options.run.feeds, "NAME=VALUE", "As in `weir run`; repeatable");
  AddList(*record, "--fetch", options.run.fetches, "NAME", "As in `weir run`; repeatable");
  AddList(*record, "--target", options.run.targets, "NAME", "As in `weir run`; repeatable");
  AddList(*record, "--init", options.run.inits, "NAME", "As in `weir run`; repeatable");
  record->add_option("--device", options.run.device, "Device for nodes without a device, such as CPU:0")
      ->type_name("DEVICE");
  options.run.runs = 10;
  record->add_option("--runs", options.run.runs, "Runs that count, after a first one that does not")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  record->add_option("--out", options.out, "The file to write instead of those in the cache folder")->type_name("FILE");
  record->callback([&chosen, &options] {
    chosen = [&options](const Console& console, Json& report) { return RecordProfile(options, console, report); };
  });
  profile->add_subcommand("clear", "Remove what calibrate and record wrote for the devices here")
      ->callback([&chosen, &options] {
        chosen = [&options](const Console& console, Json& report) { return ClearProfiles(options, console, report); };
      });
  CLI::App* calibrate = profile->add_subcommand(
      "calibrate", "Time the kernels of this CPU, for placement.profile = \"auto\", the default");
  calibrate->add_option("--out", options.out, "The file to write instead of the one in the cache folder")
      ->type_name("FILE");
  calibrate->add_option("--seconds", options.seconds, "Begin no measurement later")
      ->check(CLI::Range(0.0, 3600.0))
      ->type_name("N");
  calibrate->callback([&chosen, &options] {
    chosen = [&options](const Console& console, Json& report) { return CalibrateProfile(options, console, report); };
  });
}

void AddProfileSummary(CLI::App& app, ProfileOptions& options, Command& chosen) {
  CLI::App* summary = app.get_subcommand("profile")->add_subcommand(
      "summary", "Sum the spans of a trace that `weir run --trace` or session::Tracer wrote, most time first");
  summary->add_option("file", options.files, "Chrome trace")->required()->expected(1)->type_name("FILE");
  summary->add_option("--by", options.by, "op, device, op,device (default), kernel or node")
      ->check(CLI::IsMember({"op", "device", "op,device", "kernel", "node"}))
      ->type_name("KEY");
  summary->footer(
      "Columns: calls = spans; total, mean, max us = their times on the host, which for a device with streams are\n"
      "those of handing the work over; % = share of the times of all spans; output = bytes of all values made;\n"
      "kernels = files of the kernel sets; layout = values of data_format; fused from = with --by node, the nodes\n"
      "of the graph that a fused node stands for.");
  summary->callback([&chosen, &options] {
    chosen = [&options](const Console& console, Json& report) { return SummarizeProfile(options, console, report); };
  });
}

void AddRequest(CLI::App& command, RunCommandOptions& options) {
  command.add_option("graph", options.graph, "GraphDef, binary or text")->required()->type_name("GRAPH");
  AddList(command, "--feed", options.feeds, "NAME=VALUE", "As in `weir run`; repeatable");
  AddList(command, "--fetch", options.fetches, "NAME", "As in `weir run`; repeatable");
  AddList(command, "--target", options.targets, "NAME", "As in `weir run`; repeatable");
  command.add_option("--device", options.device, "Device for nodes without a device, such as CPU:0")
      ->type_name("DEVICE");
}

void AddBench(CLI::App& app, BenchOptions& options, Command& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "Run a graph many times; print percentiles and what a run spends on");
  AddRequest(*bench, options.run);
  AddList(*bench, "--init", options.run.inits, "NAME", "As in `weir run`; repeatable");
  options.run.runs = 100;
  bench->add_option("--runs", options.run.runs, "Runs to measure")->check(CLI::Range(1, 1000000000))->type_name("N");
  bench->add_option("--warmup", options.warmup, "Runs before them")->check(CLI::Range(0, 1000000000))->type_name("N");
  bench->footer(
      "The split is that of five further runs with traces. `enqueue` is the time of handing work to devices with\n"
      "streams, whose work runs beside the host; `compute` is all work on the host.");
  bench->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return BenchGraph(options, console, report); }; });
}

void AddGraph(CLI::App& app, DotOptions& options, Command& chosen) {
  CLI::App* graph = app.add_subcommand("graph", "Draw a graph");
  graph->require_subcommand(1);
  CLI::App* dot = graph->add_subcommand("dot", "The graph in the language of Graphviz: `weir graph dot G | dot -Tsvg`");
  AddRequest(*dot, options.run);
  dot->add_option("--color", options.color,
                  "Fill nodes by `device` (of a run with these feeds and fetches), `op`, or `request` (the device that "
                  "the graph names). Default: the variable WEIR_DOT_COLOR, else none")
      ->check(CLI::IsMember(DotColors()))
      ->type_name("KEY");
  dot->add_option("--out", options.out, "File to write")->type_name("FILE");
  dot->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return GraphAsDot(options, console, report); }; });
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
  CkptOptions checkpoint;
  ProfileOptions profile;
  DotOptions dot;
  BenchOptions bench;
  ClusterCommands cluster;
};

void Describe(CLI::App& app, Options& options, Command& chosen) {
  app.name("weir");
  app.description("weir runs dataflow graphs in TensorFlow's formats on the devices of its plugins.");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) { return std::string(error.what()); });
  app.footer(
      "`weir COMMAND --help` describes a command.\n"
      "Exit status: 0 success, 1 failure, 2 wrong usage. Errors: one line `weir: CODE: message` on standard error, "
      "with\n"
      "--json also {\"schema\":1,\"error\":{...}} on standard output.\n"
      "Configuration, highest priority first: --set, --config FILE, WEIR_CONFIG, ~/.config/weir/weir.toml,\n"
      "/etc/weir/weir.toml, an environment variable per key (`weir config show --effective` names all keys).\n"
      "WEIR_PLUGIN_PATH: plugin folders, separated by colons, instead of ../lib/weir/plugins.\n"
      "NO_COLOR: no colours on a terminal.");
  app.add_subcommand("devices", "List the devices of all plugins; opens none")->callback([&chosen] {
    chosen = ShowDevices;
  });
  CLI::App* plugins = app.add_subcommand("plugins", "List every file of the plugin folders with its verdict");
  plugins->add_flag("--why", options.plugins.why, "Full paths, and the reason for each verdict");
  plugins->callback([&] {
    chosen = [&](const Console& console, Json& report) { return ShowPlugins(options.plugins, console, report); };
  });
  AddCheck(app, options.global, options.check, chosen);
  CLI::App* ops = app.add_subcommand("ops", "List the ops, with kernels by plugin and element type");
  ops->add_option("name", options.ops.name, "Only this op, with all details")->type_name("NAME");
  ops->add_flag("--markdown", options.ops.markdown, "As a table in Markdown");
  ops->callback(
      [&] { chosen = [&](const Console& console, Json& report) { return ShowOps(options.ops, console, report); }; });
  AddRun(app, options.run, chosen);
  AddExplain(app, options.explain, chosen);
  AddModel(app, options.run, chosen);
  AddCkpt(app, options.checkpoint, chosen);
  AddProfile(app, options.profile, chosen);
  AddProfileSummary(app, options.profile, chosen);
  AddBench(app, options.bench, chosen);
  AddGraph(app, options.dot, chosen);
  AddConfig(app, options.global, options.config_show, options.config_file, chosen);
  AddClusterCommands(app, options.cluster, [&options] { return options.global.Sources(); },
                     [&chosen](Command command) { chosen = std::move(command); });
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

// Prints the report and the error, and returns the exit status.
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

// The parser's message with suggestions.
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

// Prints the parser's own output: help and version.
int PrintHelp(const CLI::App& app, const CLI::Success& asked) {
  std::ostringstream text;
  app.exit(asked, text, text);
  std::fputs(text.str().c_str(), stdout);
  Json none;
  return Finish(false, none, Status(), 0);
}

// `weir check … --json FILE.json` names a file, as no plugin is called so; --json alone is the flag of all commands.
std::vector<std::string> WithJsonFile(std::vector<std::string> words) {
  if (std::find(words.begin(), words.end(), "check") == words.end()) return words;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--json" && words[i + 1].ends_with(".json")) words[i] = "--json-file";
  }
  return words;
}

int Run(const std::vector<std::string>& given) {
  const std::vector<std::string> words = WithJsonFile(given);
  Options options;
  Command chosen;
  Json report = {{"schema", 1}};
  CLI::App app;
  Describe(app, options, chosen);
  // Searched in the words, as parsing may end before the flag.
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 pops words from the back
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
    cluster::UseRemoteDevices();
    status = session::Runtime::SetSources(options.global.Sources());
    if (status.ok()) status = chosen(Console(options.global.json), report);
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("out of memory");
  } catch (const std::exception& error) {
    status = Internal("{}", error.what());
  }
  const int of_cluster = options.cluster.exit_status;
  const int finished = Finish(options.global.json, report, status, of_cluster == 0 ? kFailed : of_cluster);
  return finished == 0 ? of_cluster : finished;
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
