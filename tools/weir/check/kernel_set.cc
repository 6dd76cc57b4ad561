#include "tools/weir/check/kernel_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "core/plugin/compatible.h"
#include "core/plugin/note.h"

namespace weir::check {

using kernel::KernelEntry;
using kernel::Text;

namespace {
constexpr size_t kOpsShown = 4;
}

Status KernelSet::Add(const Subject& subject, const std::string& path) {
  const weir_kernels_api* api = subject.kernels();
  if (!WEIR_HAS(api, kernels)) return {};
  WEIR_ASSIGN(const plugin::PluginNote note, plugin::ReadNoteFile(path));
  const std::string file = std::filesystem::path(path).filename().string();
  std::string refused;
  for (uint64_t i = 0; i < api->kernel_count; ++i) {
    const Status added =
        registry_.Add(*target_.ops, {api->kernels[i], note.name, file, plugin::IsaLevel(note.isa), nullptr});
    if (!added.ok()) refused += (refused.empty() ? "" : "; ") + added.message();
  }
  return refused.empty() ? Status() : InvalidArgument("{}", refused);
}

Finding KernelSet::OpenDevices(const Subject& subject) {
  for (const KernelEntry* entry : registry_.All()) {
    const std::string platform(Text(entry->record->platform));
    if (devices_.contains(platform)) continue;
    Result<std::unique_ptr<device::Device>> device = DeviceFor(target_, subject, platform);
    if (!device.ok()) return Finding::Skip(device.status().message());
    devices_[platform] = std::move(*device);
  }
  return Status();
}

device::Device& KernelSet::DeviceOf(const KernelEntry& entry) const {
  return *devices_.at(std::string(Text(entry.record->platform)));
}

std::set<std::string> KernelSet::Ops() const {
  std::set<std::string> ops;
  for (const KernelEntry* entry : registry_.All()) ops.insert(std::string(Text(entry->record->op)));
  return ops;
}

std::unique_ptr<KernelSet> CpuKernels(const Target& target, const Subject& subject) {
  auto set = std::make_unique<KernelSet>(target);
  for (const std::string& path : OtherPlugins(target, WEIR_KIND_KERNELS)) {
    const Result<plugin::PluginNote> note = plugin::ReadNoteFile(path);
    const Result<plugin::PluginNote> own = plugin::ReadNoteFile(target.path);
    if (!note.ok() || std::ranges::find(note->targets, "cpu") == note->targets.end()) continue;
    if (own.ok() && own->name == note->name) continue;  // another build of the plugin under test
    const Result<Subject> other = Subject::Start(target, path);
    if (other.ok()) (void)set->Add(*other, path);
  }
  if (set->OpenDevices(subject).verdict != Verdict::kPass) return std::make_unique<KernelSet>(target);
  return set;
}

void FaultList::Add(std::string_view op, std::string text) {
  if (!first_.emplace(op, std::move(text)).second) ++more_;
}

std::string FaultList::ToString() const {
  std::string text;
  size_t shown = 0;
  for (const auto& [op, fault] : first_) {
    if (++shown > kOpsShown) break;
    text += (text.empty() ? "" : "; ") + fault;
  }
  const size_t more = static_cast<size_t>(more_) + (first_.size() > kOpsShown ? first_.size() - kOpsShown : 0);
  return more == 0 ? text : fmt::format("{} (and {} more)", text, more);
}

}  // namespace weir::check
