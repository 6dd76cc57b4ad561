// Stage gradients: graphs of op cases with their gradients, on the plugin's device and on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/client/session/session.h"
#include "core/client/session/session_interface.h"
#include "core/kernel/host.h"
#include "core/plugin/note.h"
#include "core/session/options.h"
#include "core/session/runtime.h"
#include "core/tensor/number.h"
#include "tools/weir/cases/gradient_graph.h"
#include "tools/weir/check/case_file.h"
#include "tools/weir/check/kernel_set.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using cases::OpCase;
using kernel::Text;

constexpr int kRowsOfOp = 4;

// Relative error of a chain of a few ops.
double ChainTolerance(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
    case DType::kComplex128:
      return 1e-9;
    case DType::kHalf:
    case DType::kBfloat16:
      return 5e-2;
    default:
      return 1e-4;
  }
}

Status Alike(const Tensor& got, const Tensor& wanted) {
  if (got.dtype() != wanted.dtype() || !(got.shape() == wanted.shape())) {
    return Internal("shape {} on the device, {} on the CPU", got.shape().ToString(), wanted.shape().ToString());
  }
  if (!IsFloating(got.dtype())) return {};  // gradients are of floating-point types
  const double tolerance = ChainTolerance(got.dtype());
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double x = ElementAsDouble(got, i), y = ElementAsDouble(wanted, i);
    const bool same = std::isfinite(y) ? std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y))
                                       : (std::isnan(y) ? std::isnan(x) : x == y);
    if (!same) return Internal("element {} is {} on the device, {} on the CPU", i, x, y);
  }
  return {};
}

class GradientExam {
 public:
  GradientExam(const Target& target, std::string plugin, Recorder& recorder)
      : target_(target), plugin_(std::move(plugin)), recorder_(recorder) {}

  // Skip if there is nothing to compare.
  Finding Load() {
    plugin::LoadOptions options;
    options.folders = target_.folders;
    options.config = *target_.config;
    Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
    if (!runtime.ok()) return runtime.status();
    runtime_ = std::move(*runtime);
    for (const plugin::FileReport& file : runtime_->plugins->files()) {
      if (file.file != target_.path || !file.failed()) continue;
      return Status(FailedPrecondition("the core does not load it: {}", file.reason));
    }
    std::set<std::string> platforms;
    for (const kernel::KernelEntry* entry : runtime_->plugins->kernels().All()) {
      if (entry->host != nullptr || entry->plugin != plugin_) continue;
      ops_.insert(std::string(Text(entry->record->op)));
      platforms.insert(std::string(Text(entry->record->platform)));
    }
    if (ops_.empty()) return Finding::Skip("it has no kernels for a device that is here");
    for (const auto& device : runtime_->plugins->devices().all()) {
      const device::DeviceInfo& info = device->info();
      const std::string name = fmt::format("{}:{}", info.kind, info.name.id.value_or(0));
      if (info.platform == "cpu" && cpu_.empty()) cpu_ = name;
      if (info.platform != "cpu" && platforms.contains(info.platform) && device_.empty()) device_ = name;
    }
    if (device_.empty()) return Finding::Skip("its kernels are the CPU's, with which others are compared");
    if (cpu_.empty()) return Finding::Skip("no CPU is beside it");
    return Status();
  }

  Finding Run() {
    std::set<std::string> all;
    for (const op::OpDef* def : target_.ops->All()) all.insert(def->name);
    const Result<std::vector<OpCase>> rows = CasesOf(target_, all);
    if (!rows.ok()) return Finding::Skip(rows.status().message());
    std::map<std::string, int> of_op;
    FaultList faults;
    int compared = 0;
    for (const OpCase& row : *rows) {
      if (!row.differentiable() || of_op[row.def->name] >= kRowsOfOp) continue;
      recorder_.Note(row.ToString());
      const Status status = Compare(row);
      if (status.code() == Code::kUnimplemented || status.code() == Code::kCancelled) continue;
      ++of_op[row.def->name];
      ++compared;
      if (!status.ok()) faults.Add(row.def->name, fmt::format("{}: {}", row.ToString(), status.message()));
    }
    if (!faults.empty()) return Status(FailedPrecondition("{}", faults.ToString()));
    return compared > 0 ? Finding(Status()) : Finding::Skip("no graph of an op case with gradients has an op of it");
  }

 private:
  // Unimplemented: no op of the graph is one of the plugin's. Cancelled: the CPU cannot run it.
  Status Compare(const OpCase& row) {
    Graph graph;
    Feeds feeds;
    const Result<std::vector<Output>> fetches = cases::AddGradients(row, graph, &feeds);
    if (!fetches.ok()) return Cancelled("{}", fetches.status().message());
    const std::vector<Operation> operations = graph.Operations();
    const bool ours =
        std::ranges::any_of(operations, [&](const Operation& op) { return ops_.contains(std::string(op.type())); });
    if (!ours) return Unimplemented("it has none of its ops");
    session::SessionOptions options = session::SessionOptionsFrom(*target_.config);
    options.constant_folding = false;
    options.allow_soft_placement = true;
    options.default_device = cpu_;
    Session on_cpu(graph, InProcess(graph, options, runtime_));
    options.default_device = device_;
    Session on_device(graph, InProcess(graph, options, runtime_));
    WEIR_TRY(on_device.status());
    const Result<std::vector<Tensor>> wanted = EvalAll(*fetches, feeds, on_cpu);
    if (!wanted.ok()) return Cancelled("{}", wanted.status().message());
    WEIR_ASSIGN(const std::vector<Tensor> got, EvalAll(*fetches, feeds, on_device));
    for (size_t i = 0; i < got.size(); ++i) {
      const Status same = Alike(got[i], (*wanted)[i]);
      if (!same.ok()) return same.Prepend(i == 0 ? "the output: " : fmt::format("gradient {}: ", i));
    }
    return {};
  }

  static Result<std::vector<Tensor>> EvalAll(const std::vector<Output>& fetches, const Feeds& feeds, Session& session) {
    WEIR_TRY(session.status());
    std::vector<Tensor> values;
    for (const Output& fetch : fetches) {
      WEIR_ASSIGN(Tensor value, Eval(fetch, feeds, &session));
      values.push_back(std::move(value));
    }
    return values;
  }

  const Target& target_;
  const std::string plugin_;
  Recorder& recorder_;
  std::shared_ptr<session::Runtime> runtime_;
  std::set<std::string> ops_;
  std::string cpu_, device_;
};

}  // namespace

std::vector<RuleResult> GradientsStage(const Target& target) {
  return RunInChild("WEIR-GRAD-00", target.time_limit_ms, [&](Recorder& recorder) {
    const Result<plugin::PluginNote> note = plugin::ReadNoteFile(target.path);
    if (!note.ok()) {
      recorder.Try("WEIR-GRAD-00", [&] { return note.status(); });
      return;
    }
    GradientExam exam(target, note->name, recorder);
    bool ready = false;
    recorder.Try("WEIR-GRAD-00", [&]() -> Finding {
      if ((note->kinds & WEIR_KIND_KERNELS) == 0) return Finding::Skip("it has no kernels");
      Finding loaded = exam.Load();
      ready = loaded.verdict == Verdict::kPass;
      return loaded;
    });
    if (ready) recorder.Try("WEIR-GRAD-01", [&] { return exam.Run(); });
  });
}

}  // namespace weir::check
