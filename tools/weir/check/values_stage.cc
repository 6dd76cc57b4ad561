// Stage values: every kernel on the op cases, and on operands found for it where no case says the values.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "tools/weir/cases/case_table.h"
#include "tools/weir/cases/case_values.h"
#include "tools/weir/cases/kernel_run.h"
#include "tools/weir/check/case_file.h"
#include "tools/weir/check/kernel_set.h"
#include "tools/weir/check/kernel_trial.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using cases::CallMode;
using cases::OpCase;
using kernel::KernelEntry;

// A trial as a case without values.
OpCase CaseOf(const op::OpDef& def, const KernelTrial& trial) {
  OpCase c;
  c.def = &def;
  c.attrs = trial.attrs();
  c.text = trial.ToString();
  const Result<op::Signature> signature = op::Expand(c.view());
  if (signature.ok()) c.signature = *signature;
  c.inputs = trial.values();
  return c;
}

class ValueExam {
 public:
  ValueExam(const Target& target, const KernelSet& set, const KernelSet& cpu, const std::vector<OpCase>& rows,
            Recorder& recorder)
      : target_(target), set_(set), cpu_(cpu), rows_(rows), recorder_(recorder) {}

  void Run() {
    for (const OpCase& row : rows_) {
      for (const auto& [platform, device] : set_.devices()) {
        for (const KernelEntry* entry : set_.registry().Find(row.view(), platform)) Take(*entry, row, *device);
      }
    }
    for (const KernelEntry* entry : set_.registry().All()) {
      if (!compared_.contains(entry)) TryTrials(*entry);
    }
    Report();
  }

 private:
  void Take(const KernelEntry& entry, const OpCase& row, device::Device& device) {
    if (row.fails) return TakeRefused(entry, row, device);
    if (row.any) {
      (void)TakeByCpu(entry, row, device);
      return;
    }
    recorder_.Begin("WEIR-VALUE-01");
    recorder_.Note(row.ToString());
    for (const CallMode mode : cases::kCallModes) {
      const Status status = cases::RunKernel(entry, row, device, mode);
      if (status.code() == Code::kUnimplemented) continue;
      compared_.insert(&entry);
      if (status.ok()) continue;
      wrong_.Add(row.def->name, fmt::format("{}, {}: {}", row.ToString(), Name(mode), status.message()));
      return;
    }
  }

  // A kernel may refuse in its own words.
  void TakeRefused(const KernelEntry& entry, const OpCase& row, device::Device& device) {
    recorder_.Begin("WEIR-VALUE-03");
    recorder_.Note(row.ToString());
    OpCase refused = row;
    refused.error.clear();
    for (const CallMode mode : {CallMode::kPrepared, CallMode::kDynamic}) {
      const Status status = cases::RunKernel(entry, refused, device, mode);
      if (status.code() == Code::kUnimplemented) continue;
      any_refused_ = true;
      if (status.ok()) continue;
      taken_.Add(row.def->name,
                 fmt::format("{}, {}: it is not refused, or as an internal error", row.ToString(), Name(mode)));
      return;
    }
  }

  // True if the CPU has values for the operands.
  bool TakeByCpu(const KernelEntry& entry, const OpCase& row, device::Device& device) {
    for (const auto& [platform, host] : cpu_.devices()) {
      for (const KernelEntry* other : cpu_.registry().Find(row.view(), platform)) {
        if (((entry.record->flags | other->record->flags) & WEIR_KERNEL_STATEFUL) != 0) continue;
        recorder_.Begin("WEIR-VALUE-02");
        recorder_.Note(row.ToString());
        Result<std::vector<Tensor>> wanted = cases::KernelOutputs(*other, row, *host);
        if (!wanted.ok()) continue;
        OpCase with = row;
        with.any = with.by_reference = false;
        with.outputs = std::move(*wanted);
        if (with.tolerance == 0) with.tolerance = kTolerance;
        const Status status = cases::RunKernel(entry, with, device, CallMode::kPrepared);
        const bool dynamic = status.code() == Code::kUnimplemented;
        Judge(entry, row, dynamic ? cases::RunKernel(entry, with, device, CallMode::kDynamic) : status);
        return true;
      }
    }
    return false;
  }

  void Judge(const KernelEntry& entry, const OpCase& row, const Status& status) {
    if (status.code() == Code::kUnimplemented) return;
    compared_.insert(&entry);
    any_by_cpu_ = true;
    if (status.ok()) return;
    unlike_cpu_.Add(row.def->name, fmt::format("{}: {}, as the CPU's kernel gives", row.text, status.message()));
  }

  void TryTrials(const KernelEntry& entry) {
    const op::OpDef& def = *target_.ops->Find(kernel::Text(entry.record->op));
    device::Device& device = set_.DeviceOf(entry);
    ForEachTrial(def, *entry.record,
                 [&](const KernelTrial& trial) { return TakeByCpu(entry, CaseOf(def, trial), device); });
  }

  static Finding Conclude(bool tried, const FaultList& faults, std::string_view untried) {
    if (!faults.empty()) return Status(FailedPrecondition("{}", faults.ToString()));
    return tried ? Finding(Status()) : Finding::Skip(std::string(untried));
  }

  void Report() {
    std::set<std::string> untold;
    bool by_rows = false;
    for (const KernelEntry* entry : set_.registry().All()) {
      if (!compared_.contains(entry)) untold.insert(std::string(kernel::Text(entry->record->op)));
      by_rows = by_rows || compared_.contains(entry);
    }
    recorder_.Try("WEIR-VALUE-01", [&] { return Conclude(by_rows, wrong_, "no op case fits its kernels"); });
    recorder_.Try("WEIR-VALUE-02", [&] {
      return Conclude(any_by_cpu_, unlike_cpu_, "nothing is left that the CPU's kernels could be asked for");
    });
    recorder_.Try("WEIR-VALUE-03", [&]() -> Finding {
      if (!taken_.empty()) return Finding::Warn(taken_.ToString());
      return any_refused_ ? Finding(Status()) : Finding::Skip("no op case is refused by an op of its kernels");
    });
    if (untold.empty()) return;
    recorder_.Try("WEIR-VALUE-01", [&] {
      return Finding::Skip(fmt::format("neither op cases nor the CPU's kernels say what these kernels give: {}",
                                       fmt::join(untold, ", ")));
    });
  }

  static constexpr double kTolerance = 1e-5;  // of one operation in single precision, another order of sums included

  const Target& target_;
  const KernelSet& set_;
  const KernelSet& cpu_;
  const std::vector<OpCase>& rows_;
  Recorder& recorder_;
  std::set<const KernelEntry*> compared_;
  FaultList wrong_, unlike_cpu_, taken_;
  bool any_by_cpu_ = false, any_refused_ = false;
};

}  // namespace

std::vector<RuleResult> ValuesStage(const Target& target) {
  return RunInChild("WEIR-VALUE-00", target.time_limit_ms, [&](Recorder& recorder) {
    KernelSet set(target);
    std::unique_ptr<KernelSet> cpu;
    std::vector<OpCase> rows;
    bool ready = false;
    recorder.Try("WEIR-VALUE-00", [&]() -> Finding {
      const Result<Subject> subject = Subject::Start(target);
      if (!subject.ok()) return subject.status();
      (void)set.Add(*subject, target.path);  // WEIR-KERNEL-01 has the faults
      if (set.empty()) return Finding::Skip("it has no kernels");
      Finding found = set.OpenDevices(*subject);
      if (found.verdict != Verdict::kPass) return found;
      Result<std::vector<OpCase>> read = CasesOf(target, set.Ops());
      if (!read.ok()) return Finding::Skip(read.status().message());
      rows = std::move(*read);
      cpu = CpuKernels(target, *subject);
      ready = true;
      return Status();
    });
    if (ready) ValueExam(target, set, *cpu, rows, recorder).Run();
  });
}

}  // namespace weir::check
