// weir as an engine of a benchmark harness that runs several runtimes in one round: workloads are a GraphDef and a
// description in JSON; `engine WORKLOAD.json SAMPLES` answers once, `engine --serve` reads commands, one per line:
// `load WORKLOAD.json`, `time SAMPLES`, `drop`. Answers are JSON lines; the answer for a workload that cannot run is
// {"skip": reason}.
//
// A description of kind "events" has params.n, the number of scalar events to write. Any other has graph, mode
// ("steady", or "load" and "once": not repeated), feeds {name, dtype, shape, seed, lo, hi}, fetches, targets, init,
// check_runs, check_fetches, optimizer ("off": no rewriting and no compiled regions).
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/graph_def.h"
#include "core/io/event_file.h"
#include "core/io/file_bytes.h"
#include "core/io/summary.h"
#include "core/session/session.h"
#include "core/tensor/number.h"
#include "tests/bench/measure.h"

namespace weir::bench {
namespace {

using Json = nlohmann::json;

/// Element i of a seeded array (splitmix64), the same for every engine.
uint64_t HashAt(uint64_t seed, uint64_t i) {
  uint64_t z = ((seed << 40) + i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

Result<Tensor> Fill(const Json& feed) {
  WEIR_ASSIGN(const Shape shape, Shape::Make(feed.at("shape").get<std::vector<int64_t>>()));
  const std::string dtype = feed.at("dtype");
  const uint64_t seed = feed.at("seed");
  const double lo = feed.at("lo"), hi = feed.at("hi");
  if (dtype != "float32" && dtype != "int32") return Unimplemented("a feed of {}", dtype);
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype == "int32" ? DType::kInt32 : DType::kFloat, shape));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const uint64_t hash = HashAt(seed, static_cast<uint64_t>(i));
    const auto at = static_cast<size_t>(i);
    if (dtype == "int32") {
      tensor.mutable_as<int32_t>()[at] =
          static_cast<int32_t>(lo) + static_cast<int32_t>(hash % static_cast<uint64_t>(hi - lo));
    } else {
      tensor.mutable_as<float>()[at] =
          static_cast<float>(lo) + static_cast<float>(hi - lo) * (static_cast<float>(hash >> 40) / (1 << 24));
    }
  }
  return tensor;
}

/// [sum, sum of absolute values, count] of each value, for comparing engines.
Json Summarize(const std::vector<Tensor>& values) {
  Json all = Json::array();
  for (const Tensor& value : values) {
    double sum = 0, absolute = 0;
    for (int64_t i = 0; i < value.elements(); ++i) {
      const double element = ElementAsDouble(value, i);
      sum += element;
      absolute += std::abs(element);
    }
    all.push_back({sum, absolute, value.elements()});
  }
  return all;
}

/// One workload, loaded and initialised.
class Loaded {
 public:
  static Result<std::unique_ptr<Loaded>> Make(const std::shared_ptr<session::Runtime>& runtime,
                                              const std::string& path) {
    std::unique_ptr<Loaded> loaded(new Loaded(runtime));
    std::ifstream file(path);
    if (!file) return NotFound("{} cannot be read", path);
    loaded->description_ = Json::parse(file);
    const std::filesystem::path graph = std::filesystem::path(path).parent_path() / loaded->description_.at("graph");
    loaded->file_ = graph.string();
    loaded->once_ = loaded->Text("mode") == "load" || loaded->Text("mode") == "once";
    loaded->whole_ = loaded->Text("mode") == "load";
    if (loaded->Text("kind") == "events") {
      WEIR_TRY(loaded->PrepareEvents());
    } else {
      WEIR_TRY(loaded->Prepare());
    }
    return loaded;
  }

  const Json& check() const { return check_; }

  /// ns of one run, `samples` times.
  Result<Json> Time(int samples) {
    Json times = Json::array();
    if (!once_ && inner_ == 0 && samples > 0) Calibrate();
    for (int i = 0; i < samples; ++i) {
      times.push_back(TimeNs([&] {
                        for (int64_t run = 0; run < (once_ ? 1 : inner_); ++run) Step();
                      }) /
                      static_cast<double>(once_ ? 1 : inner_));
    }
    if (!status_.ok()) return status_;
    return times;
  }

 private:
  explicit Loaded(std::shared_ptr<session::Runtime> runtime) : runtime_(std::move(runtime)) {}

  std::string Text(const char* key) const {
    const Json value = description_.value(key, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
  }
  std::vector<std::string> Names(const char* key) const {
    const Json value = description_.value(key, Json());
    return value.is_array() ? value.get<std::vector<std::string>>() : std::vector<std::string>();
  }

  Status Open() {
    session_.reset();
    WEIR_ASSIGN(const io::FileBytes file, io::FileBytes::Open(file_, uint64_t{2} << 30));
    graph::ImportOptions import;
    import.owner = file.owner();
    WEIR_ASSIGN(graph::Definition graph, graph::ParseGraph(file.bytes(), *runtime_->ops, import));
    graph_ = std::make_unique<graph::Definition>(std::move(graph));
    session::SessionOptions options;
    options.inter_op_parallelism_threads = options.intra_op_parallelism_threads = 1;
    options.constant_folding = options.common_subexpressions = options.fusion = Text("optimizer") == "on";
    if (options.fusion) options.compile_regions = session::CompileRegions::kAuto;  // the configuration's default
    WEIR_ASSIGN(session_, session::Session::Make(runtime_, *graph_, options));
    return {};
  }

  Status Prepare() {
    if (Text("kind") == "remote") return Unimplemented("a workload of several tasks");
    session::CallableOptions call;
    for (const Json& feed : description_.at("feeds")) {
      WEIR_ASSIGN(Tensor value, Fill(feed));
      call.feeds.push_back(feed.at("name"));
      named_.emplace_back(call.feeds.back(), value);
      feeds_.push_back(std::move(value));
    }
    call.fetches = Names("fetches");
    call.targets = Names("targets");
    WEIR_TRY(Open());
    const std::vector<std::string> init = {Text("init")}, check_fetches = Names("check_fetches");
    if (!init[0].empty()) WEIR_TRY(session_->Run({}, {}, init).status());
    std::vector<Tensor> values;
    for (int run = 0; run < description_.value("check_runs", 1); ++run) {
      WEIR_ASSIGN(values, session_->Run(named_, call.fetches, call.targets));
    }
    if (!check_fetches.empty()) {
      WEIR_ASSIGN(values, session_->Run({}, check_fetches, {}));
    }
    check_ = Summarize(values);
    if (Text("kind") == "null") WEIR_TRY(CheckThatItRuns(call));
    if (!whole_) {
      WEIR_ASSIGN(call_, session_->MakeCallable(call));
    }
    return {};
  }

  Status PrepareEvents() {
    events_ = description_.at("params").at("n");
    check_ = Json::array();
    return WriteEvents();
  }

  /// Writes a file of scalar events, as for a model's summaries.
  Status WriteEvents() {
    const std::string folder = (std::filesystem::path(file_).parent_path() / "events_weir").string();
    WEIR_ASSIGN(const std::unique_ptr<io::EventWriter> writer, io::EventWriter::Create(folder));
    for (int64_t i = 0; i < events_; ++i) {
      WEIR_TRY(writer->AddSummary(io::ScalarSummary("loss", static_cast<float>(i)), i));
    }
    WEIR_TRY(writer->Close());
    std::filesystem::remove(writer->path());
    return {};
  }

  /// Refuses a graph that is pruned completely, since its time says nothing about the cost of its ops.
  Status CheckThatItRuns(const session::CallableOptions& call) {
    session::RunReport report;
    WEIR_TRY(session_->Run(named_, call.fetches, call.targets, {}, &report).status());
    const int64_t items = description_.value("items", int64_t{1});
    if (report.instructions >= items) return {};
    return Unimplemented("{} of the {} ops are pruned: their time is none of an op", items - report.instructions,
                         items);
  }

  void Step() {
    if (!status_.ok()) return;
    if (events_ != 0) {
      status_ = WriteEvents();
      return;
    }
    if (!whole_) {
      status_ = session_->RunCallable(call_, feeds_, &fetched_);
      return;
    }
    status_ = Open();
    if (status_.ok()) status_ = session_->Run(named_, Names("fetches"), Names("targets")).status();
  }

  /// Warms up, then sets the number of runs that take about 40 ms.
  void Calibrate() {
    for (double spent = 0, runs = 0; status_.ok() && (runs < 3 || (runs < 200 && spent < 400e6)); ++runs) {
      spent += TimeNs([&] { Step(); });
    }
    int64_t runs = 0;
    for (double spent = 0; status_.ok() && spent < 20e6; ++runs) spent += TimeNs([&] { Step(); });
    inner_ = std::max<int64_t>(1, 2 * runs);
  }

  std::shared_ptr<session::Runtime> runtime_;
  Json description_, check_;
  std::string file_;
  bool once_ = false;   // a sample is one run
  bool whole_ = false;  // a run is parse, session and first run
  int64_t events_ = 0;  // events written per run; 0 = a graph is loaded
  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<session::Session> session_;
  session::CallableHandle call_ = 0;
  std::vector<session::Feed> named_;
  std::vector<Tensor> feeds_, fetched_;
  Status status_;
  int64_t inner_ = 0;
};

class Engine {
 public:
  explicit Engine(std::shared_ptr<session::Runtime> runtime) : runtime_(std::move(runtime)) {}

  /// The answer to one command.
  Json Answer(const std::string& command, const std::string& argument) {
    try {
      const Result<Json> answer = Do(command, argument);
      if (answer.ok()) return *answer;
      return {{"skip", answer.status().ToString().substr(0, 300)}};
    } catch (const std::exception& error) {  // an invalid description
      return {{"skip", error.what()}};
    }
  }

 private:
  Result<Json> Do(const std::string& command, const std::string& argument) {
    if (command == "load") {
      loaded_.reset();
      Status status;
      const double ns = TimeNs([&] {
        Result<std::unique_ptr<Loaded>> loaded = Loaded::Make(runtime_, argument);
        status = loaded.status();
        if (loaded.ok()) loaded_ = std::move(*loaded);
      });
      if (!status.ok()) return status;
      return Json{{"check", loaded_->check()}, {"load_ns", ns}, {"rss_mib", PeakMiB()}};
    }
    if (command == "drop") {
      loaded_.reset();
      return Json::object();
    }
    if (command != "time") return InvalidArgument("unknown command '{}'", command);
    if (loaded_ == nullptr) return FailedPrecondition("nothing is loaded");
    WEIR_ASSIGN(const Json times, loaded_->Time(std::stoi(argument)));
    return Json{{"ns", times}, {"check", loaded_->check()}, {"rss_mib", PeakMiB()}};
  }

  static int64_t PeakMiB() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  }

  std::shared_ptr<session::Runtime> runtime_;
  std::unique_ptr<Loaded> loaded_;
};

int Main(int argc, char** argv) {
  const bool serve = argc == 2 && std::string_view(argv[1]) == "--serve";
  if (!serve && argc != 3) {
    std::fputs("usage: weir_bench_engine WORKLOAD.json SAMPLES | --serve\n", stderr);
    return 2;
  }
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load({});
  if (!runtime.ok()) {
    std::fprintf(stderr, "weir: %s\n", runtime.status().ToString().c_str());
    return 1;
  }
  Engine engine(*runtime);
  if (!serve) {
    Json answer = engine.Answer("load", argv[1]);
    if (!answer.contains("skip")) answer = engine.Answer("time", argv[2]);
    std::cout << answer.dump() << std::endl;
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    std::cout << engine.Answer(line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1)).dump()
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(argc, argv); }
