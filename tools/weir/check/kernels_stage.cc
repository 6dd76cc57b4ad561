// Stage kernels: runs every record on its device's memory, with random and empty inputs, and compares its results with
// each other.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/kernel/context.h"
#include "core/kernel/host.h"
#include "core/kernel/launch.h"
#include "core/kernel/registry.h"
#include "tools/weir/check/kernel_set.h"
#include "tools/weir/check/kernel_trial.h"
#include "tools/weir/check/prepared_run.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using kernel::KernelEntry;
using kernel::Text;

bool Same(const RunResult& a, const RunResult& b) { return a.outputs == b.outputs; }

// A fault of one kernel in one trial: rule and text.
struct Fault {
  std::string_view rule;
  std::string text;
};

class KernelExam {
 public:
  /// `device` is open.
  KernelExam(const KernelEntry& entry, device::Device& device, weir_device* handle)
      : entry_(entry), device_(device), handle_(handle) {}

  /// False if the kernel does not accept the trial: it declines, or fn reports an error.
  bool Take(const KernelTrial& trial) {
    Status taken = Unimplemented("it has no form");
    RunResult prepared;
    if (entry_.record->supports != nullptr) {
      refusal_ = kernel::Supports(entry_, trial.node(), trial.inputs(), trial.outputs(), handle_);
      if (!refusal_.ok()) return false;
    }
    if (WEIR_HAS(entry_.record, prepare) && !trial.has_strings()) taken = TakePrepared(trial, prepared);
    if (WEIR_HAS(entry_.record, compute)) {
      const Status dynamic = TakeDynamic(trial, taken.ok() ? &prepared : nullptr);
      if (!taken.ok()) taken = dynamic;
    }
    refusal_ = taken;
    return taken.ok();
  }

  const std::vector<Fault>& faults() const { return faults_; }
  /// The reason for not accepting the last trial.
  const Status& refusal() const { return refusal_; }

 private:
  void Blame(std::string_view rule, const KernelTrial& trial, std::string text) {
    faults_.push_back({trial.empty() ? "WEIR-KERNEL-09" : rule, fmt::format("{}: {}", trial.ToString(), text)});
  }

  // Error codes that fn and compute must not return for any operands.
  void BlameError(const KernelTrial& trial, const Status& status) {
    if (status.code() != Code::kInternal && status.code() != Code::kUnknown) return;
    Blame("WEIR-KERNEL-02", trial, status.ToString());
  }

  Status TakePrepared(const KernelTrial& trial, RunResult& first) {
    auto made = kernel::PreparedKernel::Make(entry_, trial.node(), trial.inputs(), trial.outputs(), handle_);
    if (!made.ok()) {
      if (made.status().code() == Code::kInternal) Blame("WEIR-KERNEL-04", trial, made.status().message());
      return made.status();
    }
    const std::shared_ptr<const kernel::PreparedKernel> shared = std::move(*made);
    const kernel::PreparedKernel& kernel = *shared;
    const auto run = [&](const RunOptions& options) { return RunPrepared(shared, trial, device_, options); };
    first = run({});
    Bounds(trial, first);
    BlameError(trial, first.status);
    if (!first.status.ok()) return first.status;
    if ((kernel.flags() & WEIR_KERNEL_STATEFUL) != 0) return {};
    const RunResult again = run({});
    if (!Same(first, again)) {
      Blame("WEIR-KERNEL-03", trial, "two calls with the same inputs differ");
      return {};
    }
    const RunResult other = run({.output_fill = 0x5a});
    if (!Same(first, other))
      Blame("WEIR-KERNEL-02", trial, "the result depends on what the output held before: it is not written whole");
    for (const weir_alias& alias : kernel.aliases()) {
      if (alias.kind != WEIR_ALIAS_MAY) continue;
      const RunResult in_place = run({.in_place = &alias});
      Bounds(trial, in_place);
      if (Same(first, in_place)) continue;
      Blame("WEIR-KERNEL-04", trial,
            fmt::format("with output {} in input {}'s place the result differs", alias.output, alias.input));
    }
    return {};
  }

  void Bounds(const KernelTrial& trial, const RunResult& run) {
    if (!run.overrun.empty()) Blame("WEIR-KERNEL-02", trial, fmt::format("fn writes {}", run.overrun));
    if (run.scratch_overrun)
      Blame("WEIR-KERNEL-05", trial, "fn writes beyond the scratch memory that prepare asked for");
    if (run.host_calls != 0)
      Blame("WEIR-KERNEL-06", trial, fmt::format("fn calls {} functions of the host", run.host_calls));
    if (!run.changed_input.empty()) Blame("WEIR-KERNEL-07", trial, fmt::format("fn changes {}", run.changed_input));
  }

  // Makes a call as in a step; all work on its stream is complete on return.
  Result<std::vector<Tensor>> Launched(kernel::DynamicKernel& kernel, std::vector<Tensor> inputs,
                                       std::span<const DType> types) {
    WEIR_ASSIGN(device::Streams* const streams, device_.streams());
    std::unique_ptr<device::Stream> stream;
    if (streams != nullptr) {
      WEIR_ASSIGN(stream, streams->Acquire());
    }
    Result<std::vector<Tensor>> outputs = kernel::LaunchDynamic(
        kernel, std::move(inputs), types, {.device = &device_, .stream = stream.get(), .step_id = 1});
    if (stream == nullptr) return outputs;
    const Status done = stream->Sync();
    streams->Release(std::move(stream));
    return outputs.ok() && !done.ok() ? Result<std::vector<Tensor>>(done) : std::move(outputs);
  }

  Result<std::vector<Tensor>> Compute(kernel::DynamicKernel& kernel, const KernelTrial& trial) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < trial.values().size(); ++i) {
      const kernel::OperandSpec& spec = trial.inputs()[i];
      WEIR_ASSIGN(Tensor copy, trial.values()[i].Clone());
      if (!spec.host && HasFixedSize(spec.dtype)) {
        WEIR_ASSIGN(copy, device_.FromHost(copy));
      }
      inputs.push_back(std::move(copy));
    }
    std::vector<DType> types;
    for (const kernel::OperandSpec& output : trial.outputs()) types.push_back(output.dtype);
    WEIR_ASSIGN(std::vector<Tensor> outputs, Launched(kernel, std::move(inputs), types));
    for (Tensor& output : outputs) {
      WEIR_ASSIGN(output, device_.ToHost(output));
    }
    return outputs;
  }

  Status TakeDynamic(const KernelTrial& trial, const RunResult* prepared) {
    const auto made = kernel::DynamicKernel::Make(entry_, trial.node(), handle_);
    if (!made.ok()) return made.status();
    const Result<std::vector<Tensor>> first = Compute(**made, trial);
    BlameError(trial, first.status());
    if (!first.ok()) return first.status();
    for (size_t i = 0; i < first->size(); ++i) {
      if (trial.inferred()[i].CompatibleWith((*first)[i].shape())) continue;
      Blame("WEIR-KERNEL-02", trial,
            fmt::format("output {} has shape {}, wanted {}", i, (*first)[i].shape().ToString(),
                        trial.inferred()[i].ToString()));
      return {};
    }
    if ((entry_.record->flags & WEIR_KERNEL_STATEFUL) != 0) return {};
    const Result<std::vector<Tensor>> again = Compute(**made, trial);
    for (size_t i = 0; i < first->size(); ++i) {
      if (!again.ok() || !(*first)[i].SameBits((*again)[i])) {
        Blame("WEIR-KERNEL-03", trial, "two calls of the dynamic form with the same inputs differ");
        return {};
      }
      if (prepared == nullptr) continue;
      const std::vector<uint8_t>& bytes = prepared->outputs[i];
      const bool equal = (*first)[i].bytes() == bytes.size() &&
                         (bytes.empty() || std::memcmp((*first)[i].raw(), bytes.data(), bytes.size()) == 0);
      if (!equal) Blame("WEIR-KERNEL-08", trial, fmt::format("output {} of the two forms differs", i));
    }
    return {};
  }

  const KernelEntry& entry_;
  device::Device& device_;
  weir_device* handle_;
  std::vector<Fault> faults_;
  Status refusal_;
};

// The rules checked for a kernel, in the order of the printed results.
constexpr std::string_view kExamRules[] = {"WEIR-KERNEL-02", "WEIR-KERNEL-03", "WEIR-KERNEL-04", "WEIR-KERNEL-05",
                                           "WEIR-KERNEL-06", "WEIR-KERNEL-07", "WEIR-KERNEL-08", "WEIR-KERNEL-09"};

// Tries all kernels of a plugin.
class Examination {
 public:
  Examination(const Target& target, const KernelSet& set) : target_(target), set_(set) {}

  Status Run(Recorder& recorder) {
    std::map<std::string_view, std::vector<std::string>> faults;
    std::map<std::string, std::string> not_taken;  // by op, the last reason
    bool any_taken = false;
    for (const KernelEntry* entry : set_.registry().All()) {
      device::Device& device = set_.DeviceOf(*entry);
      WEIR_ASSIGN(weir_device* const handle, device.Open());
      // A crash inside is attributed to the rule about bounds, or to the one about empty tensors.
      KernelExam exam(*entry, device, handle);
      const int taken =
          ForEachTrial(*target_.ops->Find(Text(entry->record->op)), *entry->record, [&](const KernelTrial& trial) {
            recorder.Begin(trial.empty() ? "WEIR-KERNEL-09" : "WEIR-KERNEL-02");
            recorder.Note(trial.ToString());
            return exam.Take(trial);
          });
      any_taken = any_taken || taken != 0;
      if (taken == 0 && exam.faults().empty()) {
        const std::string why = exam.refusal().ok() ? "no operands found for its op" : exam.refusal().ToString();
        not_taken[std::string(Text(entry->record->op))] = why;
      }
      for (const Fault& fault : exam.faults()) faults[fault.rule].push_back(fault.text);
    }
    for (const std::string_view rule : kExamRules) {
      const std::vector<std::string>& of_rule = faults[rule];
      recorder.Try(rule, [&]() -> Finding {
        if (of_rule.empty()) return any_taken ? Finding(Status()) : Finding::Skip("none of its kernels could be tried");
        return FailedPrecondition("{}{}", of_rule.front(),
                                  of_rule.size() > 1 ? fmt::format(" (and {} more)", of_rule.size() - 1) : "");
      });
    }
    if (!not_taken.empty()) {
      std::vector<std::string> ops;
      for (const auto& [op, reason] : not_taken) ops.push_back(fmt::format("{} ({})", op, reason));
      recorder.Try("WEIR-KERNEL-02", [&] {
        return Finding::Skip(fmt::format("no inputs found that these kernels accept: {}", fmt::join(ops, ", ")));
      });
    }
    return {};
  }

 private:
  const Target& target_;
  const KernelSet& set_;
};

}  // namespace

std::vector<RuleResult> KernelsStage(const Target& target) {
  return RunInChild("WEIR-KERNEL-00", target.time_limit_ms, [&](Recorder& recorder) {
    const Result<Subject> subject = Subject::Start(target);
    if (!subject.ok()) {
      recorder.Try("WEIR-KERNEL-00", [&] { return subject.status(); });
      return;
    }
    KernelSet set(target);
    recorder.Try("WEIR-KERNEL-01", [&] { return set.Add(*subject, target.path); });
    bool ready = false;
    recorder.Try("WEIR-KERNEL-00", [&]() -> Finding {
      if (set.empty()) return Finding::Skip("it has no kernels");
      Finding found = set.OpenDevices(*subject);
      ready = found.verdict == Verdict::kPass;
      return found;
    });
    if (!ready) return;
    const Status run = Examination(target, set).Run(recorder);
    if (!run.ok()) recorder.Try("WEIR-KERNEL-00", [&] { return run; });
  });
}

}  // namespace weir::check
