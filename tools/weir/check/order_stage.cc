// Stage order: kernels of stream devices behind slow work, and on several streams at once.
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
#include "tools/weir/cases/kernel_run.h"
#include "tools/weir/check/case_file.h"
#include "tools/weir/check/kernel_set.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/slow_copy.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using cases::CallMode;
using cases::OpCase;
using kernel::KernelEntry;

constexpr int kStreamCounts[] = {1, 2, 4};
constexpr int kRowsOfKernel = 2;  // that it takes
constexpr int64_t kMostElements = 20000;
// All chains together take a few seconds, each of them longer than a thread is likely to be kept from its work.
constexpr double kAllChainsNs = 4e9, kLeastChainNs = 1e6, kMostChainNs = 2e7;

// A row whose values tell whether the inputs were there.
bool Tells(const OpCase& row) {
  if (row.fails || row.any || row.inputs.empty() || (!row.by_reference && row.outputs.empty())) return false;
  for (const Tensor& input : row.inputs) {
    if (input.elements() == 0 || input.elements() > kMostElements) return false;
  }
  return true;
}

class OrderExam {
 public:
  OrderExam(const KernelSet& set, const std::vector<OpCase>& rows, Recorder& recorder)
      : set_(set), rows_(rows), recorder_(recorder) {}

  Status Run() {
    for (const auto& [platform, device] : set_.devices()) {
      if (!device->has_streams()) continue;
      const double chains = static_cast<double>(set_.registry().size()) * kRowsOfKernel * (1 + 2 + 4);
      WEIR_ASSIGN(const std::unique_ptr<SlowCopies> slow,
                  SlowCopies::Make(*device, std::clamp(kAllChainsNs / chains, kLeastChainNs, kMostChainNs)));
      for (const OpCase& row : rows_) {
        if (!Tells(row)) continue;
        for (const KernelEntry* entry : set_.registry().Find(row.view(), platform)) {
          if (taken_[entry] < kRowsOfKernel && Take(*entry, row, *device, *slow)) ++taken_[entry];
        }
      }
    }
    Report();
    return {};
  }

 private:
  bool Take(const KernelEntry& entry, const OpCase& row, device::Device& device, SlowCopies& slow) {
    bool any = false;
    for (const CallMode mode : {CallMode::kPrepared, CallMode::kDynamic}) {
      // Values that are wrong without haste are not a matter of order.
      const Status plain = cases::RunKernel(entry, row, device, mode);
      if (!plain.ok()) continue;
      for (const int streams : kStreamCounts) {
        recorder_.Begin(streams == 1 ? "WEIR-ORDER-01" : "WEIR-ORDER-02");
        recorder_.Note(row.ToString());
        const Status status = cases::RunKernelOnStreams(entry, row, device, mode, streams, slow.Sender());
        if (status.code() == Code::kUnimplemented) continue;
        any = any_ = true;
        several_ = several_ || streams > 1;
        if (status.ok()) continue;
        FaultList& faults = streams == 1 ? late_ : mixed_;
        faults.Add(row.def->name,
                   fmt::format("{}, {}, behind a slow copy on {}: {}", row.ToString(), Name(mode),
                               streams == 1 ? "its stream" : fmt::format("{} streams", streams), status.message()));
        return true;
      }
    }
    return any;
  }

  void Report() {
    recorder_.Try("WEIR-ORDER-01", [&]() -> Finding {
      if (!late_.empty()) return Status(FailedPrecondition("{}", late_.ToString()));
      return any_ ? Finding(Status()) : Finding::Skip("no op case fits its kernels");
    });
    recorder_.Try("WEIR-ORDER-02", [&]() -> Finding {
      if (!mixed_.empty()) return Status(FailedPrecondition("{}", mixed_.ToString()));
      return several_ ? Finding(Status()) : Finding::Skip("no kernel may be called on several streams at once");
    });
  }

  const KernelSet& set_;
  const std::vector<OpCase>& rows_;
  Recorder& recorder_;
  std::map<const KernelEntry*, int> taken_;
  FaultList late_, mixed_;
  bool any_ = false, several_ = false;
};

}  // namespace

std::vector<RuleResult> OrderStage(const Target& target) {
  return RunInChild("WEIR-ORDER-00", target.time_limit_ms, [&](Recorder& recorder) {
    KernelSet set(target);
    std::vector<OpCase> rows;
    bool ready = false;
    recorder.Try("WEIR-ORDER-00", [&]() -> Finding {
      const Result<Subject> subject = Subject::Start(target);
      if (!subject.ok()) return subject.status();
      (void)set.Add(*subject, target.path);  // WEIR-KERNEL-01 has the faults
      if (set.empty()) return Finding::Skip("it has no kernels");
      Finding found = set.OpenDevices(*subject);
      if (found.verdict != Verdict::kPass) return found;
      const bool streams =
          std::ranges::any_of(set.devices(), [](const auto& device) { return device.second->has_streams(); });
      if (!streams) return Finding::Skip("the devices of its kernels have no streams");
      Result<std::vector<OpCase>> read = CasesOf(target, set.Ops());
      if (!read.ok()) return Finding::Skip(read.status().message());
      rows = std::move(*read);
      ready = true;
      return Status();
    });
    if (!ready) return;
    const Status run = OrderExam(set, rows, recorder).Run();
    if (!run.ok()) recorder.Try("WEIR-ORDER-00", [&] { return run; });
  });
}

}  // namespace weir::check
