// `weir bench`: percentiles of many runs, and the time of a run by what it is spent on.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/session/options.h"
#include "core/session/resolve.h"
#include "core/session/session.h"
#include "tools/weir/commands.h"
#include "tools/weir/run_request.h"

namespace weir::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTracedRuns = 5;

/// Where the time of runs goes, in microseconds per run. Work on a stream is enqueued, and runs beside the rest.
struct Split {
  double to_device = 0;  // copies to a device's own memory
  double to_host = 0;    // copies from there, and fetches of values there
  double enqueue = 0;    // calls that hand work to a device with streams
  double compute = 0;    // all other work
  double rest = 0;       // of the run's time: scheduling, feeds, fetches
};

/// Where spans run and values lie.
class Devices {
 public:
  explicit Devices(const session::Runtime& runtime) {
    for (const auto& device : runtime.plugins->devices().all()) {
      if (device->has_streams()) streams_.insert(device->name());
      if (!device->host_memory()) away_.insert(device->name());
    }
  }
  bool HasStreams(const std::string& device) const { return streams_.contains(device); }
  bool IsAway(const std::string& memory) const { return away_.contains(memory); }

 private:
  std::set<std::string> streams_, away_;
};

void AddTo(Split& split, const trace::StepTrace& step, const Devices& devices) {
  double spans_us = 0;
  for (const trace::Span& span : step.spans) {
    const double us = static_cast<double>(span.end_ns - span.start_ns) / 1e3;
    spans_us += us;
    const bool away = devices.IsAway(span.device);
    const bool arrives = !span.outputs.empty() && devices.IsAway(span.outputs[0].memory);
    if (span.op == "copy") {
      (arrives ? split.to_device : split.to_host) += us;
    } else if (span.op == "fetch") {
      (away ? split.to_host : split.compute) += us;
    } else {
      (devices.HasStreams(span.device) ? split.enqueue : split.compute) += us;
    }
  }
  split.rest += std::max(0.0, static_cast<double>(step.total_ns) / 1e3 - spans_us);
}

/// Nearest rank.
double Quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

struct Measured {
  std::vector<double> us;  // by run, sorted
  double seconds = 0;      // of all of them
  Split split;
};

Result<Measured> Measure(const BenchOptions& options, const graph::Definition& graph, const Request& request) {
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  const Devices devices(*runtime);
  session::SessionOptions session_options = session::SessionOptionsFrom(runtime->config);
  session_options.default_device = options.run.device;
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session,
              session::Session::Make(std::move(runtime), graph, std::move(session_options)));
  const auto run = [&](bool traced, session::RunReport* report) {
    session::RunOptions run_options;
    run_options.trace = traced;
    return session->Run(request.feeds, request.fetches, options.run.targets, run_options, report).status();
  };
  for (const std::string& init : options.run.inits) {
    WEIR_TRY(session->Run(request.feeds, {}, std::span(&init, 1)).status());
  }
  for (int i = 0; i < options.warmup; ++i) WEIR_TRY(run(false, nullptr));
  Measured measured;
  for (int i = 0; i < options.run.runs; ++i) {
    const auto begin = Clock::now();
    WEIR_TRY(run(false, nullptr));
    measured.us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  measured.seconds = std::accumulate(measured.us.begin(), measured.us.end(), 0.0) / 1e6;
  std::ranges::sort(measured.us);
  for (int i = 0; i < kTracedRuns; ++i) {
    session::RunReport report;
    WEIR_TRY(run(true, &report));
    AddTo(measured.split, report.trace, devices);
  }
  return measured;
}

}  // namespace

Status BenchGraph(const BenchOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const graph::Definition graph, ReadGraph(options.run.graph));
  WEIR_ASSIGN(const Request request, MakeRequest(options.run, graph));
  WEIR_ASSIGN(const Measured measured, Measure(options, graph, request));
  const std::vector<double>& us = measured.us;
  const double mean = measured.seconds * 1e6 / static_cast<double>(us.size());
  const std::vector<std::pair<const char*, double>> figures = {{"min", us.front()},         {"mean", mean},
                                                               {"p50", Quantile(us, 0.5)},  {"p90", Quantile(us, 0.9)},
                                                               {"p95", Quantile(us, 0.95)}, {"p99", Quantile(us, 0.99)},
                                                               {"max", us.back()}};
  const double per_second = measured.seconds > 0 ? static_cast<double>(us.size()) / measured.seconds : 0;
  report["runs"] = us.size();
  report["warmup"] = options.warmup;
  report["runs_per_second"] = per_second;
  report["us"] = Json::object();
  Table table({"us", ""});
  for (const auto& [name, value] : figures) {
    report["us"][name] = value;
    table.Add({name, fmt::format("{:.1f}", value)});
  }
  console.Print(table);
  console.Print(fmt::format("{} runs, {:.1f} a second", us.size(), per_second));
  const std::vector<std::pair<const char*, double>> parts = {{"copies to devices", measured.split.to_device},
                                                             {"enqueue", measured.split.enqueue},
                                                             {"compute", measured.split.compute},
                                                             {"copies from devices", measured.split.to_host},
                                                             {"rest", measured.split.rest}};
  const std::vector<const char*> fields = {"to_device", "enqueue", "compute", "to_host", "rest"};
  report["split_us"] = Json::object();
  Table split({"a traced run", "us"});
  for (size_t i = 0; i < parts.size(); ++i) {
    const double per_run = parts[i].second / kTracedRuns;
    report["split_us"][fields[i]] = per_run;
    split.Add({parts[i].first, fmt::format("{:.1f}", per_run)});
  }
  console.Print(split);
  return Status();
}

}  // namespace weir::cli
