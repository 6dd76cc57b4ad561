#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/graph/graph_def.h"
#include "core/io/files.h"
#include "core/ops/declare_all.h"
#include "core/session/options.h"
#include "core/session/resolve.h"
#include "core/session/run_metadata.h"
#include "core/session/session.h"
#include "core/session/tracer.h"
#include "tools/weir/commands.h"
#include "tools/weir/run_files.h"
#include "tools/weir/run_request.h"

namespace weir::cli {
namespace {

constexpr int64_t kValuesShown = 6;

struct Timing {
  std::vector<double> ms;  // in order of the runs

  // Nearest rank.
  double Quantile(double q) const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
  }
};

struct Outcome {
  std::vector<Tensor> tensors;  // of the last run
  session::RunReport report;
  Timing timing;
  session::Tracer::Counts traced;       // with --trace
  std::string metadata;                 // of the last run, with --metadata
};

Result<std::shared_ptr<session::Tracer>> OpenTrace(const RunCommandOptions& options) {
  if (options.trace.empty()) return std::shared_ptr<session::Tracer>();
  session::TracerOptions tracer{.path = options.trace};
  int64_t* const fields[] = {&tracer.skip, &tracer.wait, &tracer.warmup, &tracer.active, &tracer.repeat};
  for (size_t i = 0; i < std::min(options.trace_schedule.size(), std::size(fields)); ++i) {
    *fields[i] = options.trace_schedule[i];
  }
  tracer.limit_bytes = static_cast<uint64_t>(options.trace_limit_mb * 1e6);
  return session::Tracer::Open(tracer);
}

Result<Outcome> Execute(const RunCommandOptions& options, const graph::Definition& graph, const Request& request) {
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  session::SessionOptions session_options = session::SessionOptionsFrom(runtime->config);
  session_options.default_device = options.device;
  // The command's own output says where nodes are; several devices are worth a line of the session.
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session,
              session::Session::Make(std::move(runtime), graph, std::move(session_options)));
  for (const std::string& init : options.inits) {
    WEIR_ASSIGN(const std::vector<Tensor> nothing, session->Run(request.feeds, {}, std::span(&init, 1)));
  }
  WEIR_ASSIGN(const std::shared_ptr<session::Tracer> tracer, OpenTrace(options));
  Outcome outcome;
  for (int run = 0; run < options.runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    session::RunOptions run_options;
    const session::Tracer::Run traced = tracer ? tracer->Begin() : session::Tracer::Run();
    run_options.trace = traced.traced() || !options.metadata.empty();
    run_options.output_partition_graphs = !options.metadata.empty();
    run_options.check_numerics = options.check_numerics;
    session::RunReport report;
    Result<std::vector<Tensor>> fetched =
        session->Run(request.feeds, request.fetches, options.targets, run_options, &report);
    if (!options.metadata.empty() && run + 1 == options.runs) {
      WEIR_ASSIGN(outcome.metadata, session::RunMetadata(graph, report));
    }
    if (traced.traced()) tracer->End(traced, report.trace);
    if (run == 0) outcome.report = std::move(report);
    if (!fetched.ok()) return fetched.status();
    outcome.tensors = std::move(*fetched);
    outcome.timing.ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  if (tracer) {
    WEIR_TRY(tracer->Close());
    outcome.traced = tracer->counts();
  }
  return outcome;
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// An equivalent command line for any folder, with explicit fetches.
std::string CommandLine(const RunCommandOptions& options, const Request& request) {
  std::string line;
  if (const char* folders = std::getenv("WEIR_PLUGIN_PATH"); folders != nullptr && folders[0] != '\0') {
    line = "WEIR_PLUGIN_PATH=" + ShellQuoted(folders) + " ";
  }
  line += "weir run " + ShellQuoted(Absolute(options.graph));
  const auto add = [&line](std::string_view flag, const std::string& value) {
    line += fmt::format(" {} {}", flag, ShellQuoted(value));
  };
  for (const auto& [flag, value] : options.config_words) add(flag, flag == "--config" ? Absolute(value) : value);
  for (const std::string& feed : options.feeds) {
    const auto [name, value] = SplitFeed(feed);
    add("--feed", name + "=" + (IsFile(value) ? Absolute(value) : value));
  }
  for (const std::string& fetch : request.fetches) add("--fetch", fetch);
  for (const std::string& target : options.targets) add("--target", target);
  for (const std::string& init : options.inits) add("--init", init);
  if (!options.out_dir.empty()) add("--out-dir", Absolute(options.out_dir));
  if (!options.device.empty()) add("--device", options.device);
  if (options.runs != 1) add("--runs", std::to_string(options.runs));
  if (!options.trace.empty()) add("--trace", Absolute(options.trace));
  if (!options.trace_schedule.empty()) {
    line += fmt::format(" --trace-schedule {}", fmt::join(options.trace_schedule, ","));
  }
  if (options.trace_limit_mb > 0) line += fmt::format(" --trace-limit {}", options.trace_limit_mb);
  if (!options.metadata.empty()) add("--metadata", Absolute(options.metadata));
  if (options.check_numerics) line += " --check-numerics";
  return line;
}

void Fill(const Request& request, const Outcome& outcome, Json& report) {
  Json fetches = Json::array();
  for (size_t i = 0; i < request.fetches.size(); ++i) {
    const Tensor& tensor = outcome.tensors[i];
    fetches.push_back({{"name", request.fetches[i]},
                       {"dtype", Name(tensor.dtype())},
                       {"shape", std::vector<int64_t>(tensor.shape().dims().begin(), tensor.shape().dims().end())},
                       {"file", request.files.empty() ? Json(nullptr) : Json(request.files[i])},
                       {"first_values", tensor.SummarizeValues(kValuesShown)}});
  }
  report["fetches"] = std::move(fetches);
  report["run_ms"] = outcome.timing.Quantile(0.5);
  report["runs"] = {{"count", outcome.timing.ms.size()},
                    {"first_ms", outcome.timing.ms.front()},
                    {"min_ms", outcome.timing.Quantile(0)},
                    {"median_ms", outcome.timing.Quantile(0.5)},
                    {"p90_ms", outcome.timing.Quantile(0.9)}};
  report["placement"] = Json::object();
  for (const auto& [device, nodes] : outcome.report.placement) report["placement"][device] = nodes;
}

void Print(const Request& request, const Outcome& outcome, const Console& console) {
  if (!request.fetches.empty()) {
    Table table({"name", "dtype", "shape", "first values"});
    for (size_t i = 0; i < request.fetches.size(); ++i) {
      const Tensor& tensor = outcome.tensors[i];
      table.Add(
          {request.fetches[i], Name(tensor.dtype()), tensor.shape().ToString(), tensor.SummarizeValues(kValuesShown)});
    }
    console.Print(table);
  }
  for (const std::string& file : request.files) console.Print("wrote " + file);
  for (const auto& [device, nodes] : outcome.report.placement) {
    console.Print(fmt::format("{} {} on {}", nodes, nodes == 1 ? "node" : "nodes", device));
  }
  const Timing& timing = outcome.timing;
  if (timing.ms.size() == 1) {
    console.Print(fmt::format("ran in {:.3f} ms", timing.ms.front()));
  } else {
    console.Print(fmt::format("{} runs: first {:.3f} ms, min {:.3f} ms, median {:.3f} ms, p90 {:.3f} ms",
                              timing.ms.size(), timing.ms.front(), timing.Quantile(0), timing.Quantile(0.5),
                              timing.Quantile(0.9)));
  }
}

}  // namespace

Status RunGraph(const RunCommandOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const graph::Definition graph, ReadGraph(options.graph));
  WEIR_ASSIGN(const Request request, MakeRequest(options, graph));
  if (!options.out_dir.empty()) WEIR_TRY(io::MakeDirectories(options.out_dir));
  if (options.dump_command) console.Print(CommandLine(options, request));
  WEIR_ASSIGN(const Outcome outcome, Execute(options, graph, request));
  if (outcome.traced.dropped > 0) console.Print("the trace reached its limit: later runs are not in it");
  if (!options.trace.empty()) report["traced_runs"] = outcome.traced.written;
  if (!options.metadata.empty()) WEIR_TRY(io::WriteFileAtomically(options.metadata, outcome.metadata));
  for (size_t i = 0; i < request.files.size(); ++i) {
    if (Status written = WriteOutput(request.files[i], outcome.tensors[i]); !written.ok()) {
      return written.Prepend(fmt::format("fetch '{}': ", request.fetches[i]));
    }
  }
  Fill(request, outcome, report);
  if (options.dump_command) report["command"] = CommandLine(options, request);
  Print(request, outcome, console);
  return Status();
}

}  // namespace weir::cli
