#include "core/plugin/catalogue.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/config/logical_devices.h"
#include "core/config/value.h"
#include "core/kernel/host.h"
#include "core/kernel/roofline.h"
#include "core/kernel/vendor_ops.h"
#include "core/plugin/compatible.h"
#include "core/plugin/module.h"
#include "core/plugin/probe.h"
#include "core/plugin/scan.h"

namespace weir::plugin {
namespace {

namespace fs = std::filesystem;

// Folder of the library or command that contains this code.
fs::path OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&SearchPath), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error).parent_path();
}

std::string BaseName(const std::string& path) { return fs::path(path).filename().string(); }

std::string Join(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : "; ") + text;
  return joined;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kLoaded:
      return "loaded";
    case Verdict::kNotAPlugin:
      return "not-a-plugin";
    case Verdict::kPassedOver:
      return "passed-over";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kCrashed:
      return "crashed";
    case Verdict::kHung:
      return "hung";
    case Verdict::kNoDevices:
      return "no-devices";
  }
  return "refused";
}

std::vector<std::string> SearchPath() {
  const char* listed = getauxval(AT_SECURE) == 0 ? std::getenv("WEIR_PLUGIN_PATH") : nullptr;
  if (listed != nullptr && listed[0] != '\0') {
    std::vector<std::string> folders;
    const std::string_view text = listed;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(':', begin), text.size());
      if (end > begin) folders.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return folders;
  }
  return {UsualFolder()};
}

std::string UsualFolder() {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside_command = (command.parent_path() / ".." / "lib" / "weir" / "plugins").lexically_normal();
  if (!error && fs::is_directory(beside_command, error)) return beside_command.string();
  return (OwnFolder() / "weir" / "plugins").string();
}

// Fills a catalogue: scans all files, then loads device plugins, then kernel sets whose platform has a device.
class Loader {
 public:
  Loader(const op::OpRegistry& ops, const LoadOptions& options, Catalogue& catalogue)
      : ops_(ops),
        options_(options),
        catalogue_(catalogue),
        config_(std::make_shared<config::Config>(options.config)),
        host_(HostTraits::Current(config_->plugins.isa.value())),
        limit_(options.time_limit_ms) {}

  void Run() {
    catalogue_.folders_ = options_.folders.empty() ? SearchPath() : options_.folders;
    for (const std::string& folder : catalogue_.folders_) ScanFolder(folder);
    JudgeTooWide();
    // Kernels can be registered only for ops that are known.
    const auto kinds = [](const Candidate& candidate) { return candidate.file.note.kinds; };
    const auto load = [&](auto wanted) {
      for (Candidate& candidate : candidates_) {
        if (wanted(kinds(candidate)))
          (kinds(candidate) & WEIR_KIND_DEVICE) != 0 ? LoadDevices(candidate) : LoadOther(candidate);
      }
    };
    const auto only_ops = [](uint32_t of) {
      return (of & WEIR_KIND_OPS) != 0 && (of & (WEIR_KIND_DEVICE | WEIR_KIND_KERNELS | WEIR_KIND_COMPILER)) == 0;
    };
    load(only_ops);
    load([](uint32_t of) { return (of & WEIR_KIND_DEVICE) != 0; });
    AddDevices();
    const auto other = [&](uint32_t of) { return (of & WEIR_KIND_DEVICE) == 0 && !only_ops(of); };
    load([&](uint32_t of) { return other(of) && (of & WEIR_KIND_OPS) != 0; });
    load([&](uint32_t of) { return other(of) && (of & WEIR_KIND_OPS) == 0; });
    MarkForeign();
    std::sort(catalogue_.files_.begin(), catalogue_.files_.end(),
              [](const FileReport& a, const FileReport& b) { return a.file < b.file; });
    NoteUnusedConfig();
  }

 private:
  // A file with an acceptable note. Its report is added once the outcome is known.
  struct Candidate {
    ScannedFile file;
    FileReport report;
  };

  // A physical device, before the configuration defines the logical devices.
  struct Hardware {
    device::DeviceInfo info;
    std::shared_ptr<Module> module;
    std::shared_ptr<device::SharedHardware> shared;
  };

  void Finish(FileReport report, Verdict verdict, std::string reason) {
    report.verdict = verdict;
    report.reason = std::move(reason);
    catalogue_.files_.push_back(std::move(report));
  }
  void Refuse(FileReport report, const Status& status) {
    const Verdict verdict = status.code() == Code::kDeadlineExceeded ? Verdict::kHung
                            : status.code() == Code::kAborted        ? Verdict::kCrashed
                                                                     : Verdict::kRefused;
    Finish(std::move(report), verdict, status.message());
  }

  void ScanFolder(const std::string& folder) {
    FileReport report;
    report.file = folder;
    const Result<std::vector<std::string>> files = ListFolder(folder);
    if (!files.ok()) {
      if (files.status().code() != Code::kNotFound) Refuse(std::move(report), files.status());
      return;
    }
    for (const std::string& path : *files) Scan(path, folder);
  }

  void Scan(const std::string& path, const std::string& folder) {
    FileReport report;
    report.file = path;
    Result<ScannedFile> file = ScanFile(path, folder);
    if (!file.ok()) {
      const bool foreign = file.status().code() == Code::kNotFound;
      return Finish(std::move(report), foreign ? Verdict::kNotAPlugin : Verdict::kRefused, file.status().message());
    }
    const PluginNote& note = file->note;
    notes_.emplace(path, note);
    report.name = note.name;
    report.version = note.version;
    if (const Status fits = CheckCompatible(note, host_); !fits.ok()) return Refuse(std::move(report), fits);
    if (IsDenied(note.name)) {
      return Finish(std::move(report), Verdict::kRefused, "the configuration denies it");
    }
    if (!file->loadable.ok()) return Refuse(std::move(report), file->loadable);
    if (!CheckIsa(note, host_).ok()) return too_wide_.push_back({std::move(*file), std::move(report)});
    for (const Candidate& other : candidates_) {
      if (other.file.note.name != note.name || other.file.note.isa != note.isa) continue;
      return Finish(std::move(report), Verdict::kRefused,
                    fmt::format("a second plugin named '{}'; the first is {}", note.name, other.file.path));
    }
    candidates_.push_back({std::move(*file), std::move(report)});
  }

  // A build for wider instructions that cannot run here is passed over if another build of the plugin can run.
  void JudgeTooWide() {
    for (Candidate& wide : too_wide_) {
      const PluginNote& note = wide.file.note;
      const bool other = std::any_of(candidates_.begin(), candidates_.end(),
                                     [&](const Candidate& c) { return c.file.note.name == note.name; });
      Finish(std::move(wide.report), other ? Verdict::kPassedOver : Verdict::kRefused, CheckIsa(note, host_).message());
    }
  }

  // A refused file explains no failed request if it has no devices, and kernels only for platforms without a device.
  void MarkForeign() {
    for (FileReport& file : catalogue_.files_) {
      const auto found = notes_.find(file.file);
      if (!file.failed() || found == notes_.end() || (found->second.kinds & WEIR_KIND_DEVICE) != 0) continue;
      const std::vector<std::string>& targets = found->second.targets;
      file.foreign =
          (found->second.kinds & WEIR_KIND_KERNELS) == 0 ||
          std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return platforms_.contains(t); });
    }
  }

  // Null if the file was refused; its report has the reason.
  std::shared_ptr<Module> LoadModule(const Candidate& candidate) {
    const ScannedFile& file = candidate.file;
    if (config_->plugins.probe) {
      const std::string program = options_.probe_program.empty() ? ProbeProgram() : options_.probe_program;
      if (const Status tried = Probe(file, *config_, program, limit_); !tried.ok()) {
        if (tried.code() == Code::kUnavailable) catalogue_.config_faults_.push_back(tried);
        Refuse(candidate.report, tried);
        return nullptr;
      }
    }
    Result<std::shared_ptr<Module>> module = Module::Load(file, limit_, config_, calls_);
    if (!module.ok()) {
      if (module.status().code() == Code::kInvalidArgument) catalogue_.config_faults_.push_back(module.status());
      Refuse(candidate.report, module.status());
      return nullptr;
    }
    catalogue_.options_[file.note.name] = (*module)->options().all();
    return std::move(*module);
  }

  void LoadDevices(Candidate& candidate) {
    const std::shared_ptr<Module> module = LoadModule(candidate);
    if (!module) return;
    std::vector<std::string> faults;
    Result<std::vector<device::DeviceInfo>> found = module->Enumerate(limit_, faults, calls_);
    if (!found.ok()) return Refuse(candidate.report, found.status());
    FileReport& report = candidate.report;
    for (device::DeviceInfo& info : *found) {
      if (AddHardware(std::move(info), report.name, module, faults)) ++report.devices;
    }
    AddOps(candidate, *module, faults);
    AddKernels(candidate, *module, faults);
    AddInterfaces(candidate, module, faults);
    catalogue_.modules_.push_back(module);
    if (report.devices != 0) return Finish(report, Verdict::kLoaded, Join(faults));
    Finish(report, Verdict::kNoDevices, faults.empty() ? "no device found on this machine" : Join(faults));
  }

  // False if another plugin already provides the same hardware.
  bool AddHardware(device::DeviceInfo info, const std::string& plugin, const std::shared_ptr<Module>& module,
                   std::vector<std::string>& faults) {
    for (const Hardware& other : hardware_) {
      if (other.info.uid != info.uid || other.info.platform != info.platform) continue;
      faults.push_back(fmt::format("device '{}' is already provided by plugin '{}'", info.uid, other.info.plugin));
      return false;
    }
    info.plugin = plugin;
    const bool synchronous = (info.flags & WEIR_DEVICE_SYNC_ONLY) != 0;
    if (!synchronous && module->streams().stream != nullptr && !module->streams().Complete()) {
      faults.push_back(fmt::format("the table {} lacks functions; device '{}' is used without streams",
                                   WEIR_STREAM_INTERFACE, info.uid));
    }
    hardware_.push_back({std::move(info), module, nullptr});
    return true;
  }

  // Creates the logical devices from the hardware, kind by kind.
  void AddDevices() {
    std::set<std::string> done;
    for (const Hardware& first : hardware_) {
      const std::string& kind = first.info.kind;
      if (!done.insert(kind).second) continue;
      std::vector<const device::DeviceInfo*> infos;
      std::vector<Hardware*> of_kind;
      for (Hardware& hardware : hardware_) {
        if (hardware.info.kind != kind) continue;
        infos.push_back(&hardware.info);
        of_kind.push_back(&hardware);
      }
      const Result<std::vector<config::LogicalDevice>> devices = config::LogicalDevices(*config_, infos);
      if (!devices.ok()) {
        catalogue_.config_faults_.push_back(devices.status());
        continue;
      }
      for (size_t i = 0; i < devices->size(); ++i) {
        const config::LogicalDevice& device = (*devices)[i];
        AddDevice(*of_kind[device.hardware], device, static_cast<int>(i));
      }
    }
  }

  void AddDevice(Hardware& hardware, const config::LogicalDevice& device, int ordinal) {
    device::DeviceInfo info = hardware.info;
    info.name = {.job = options_.job, .replica = 0, .task = options_.task, .type = info.kind, .id = ordinal};
    info.memory_bytes = device.memory_bytes;
    if (device.enabled) info.flags &= ~static_cast<uint32_t>(WEIR_DEVICE_OPT_IN);
    device::DeviceExtras extras;
    extras.cost = device.cost;
    extras.options = hardware.module->options().View();
    extras.keep = hardware.module;
    extras.open_limit = std::chrono::milliseconds(config_->plugins.open_limit_ms);
    if (device.shared && !info.self_pool()) {
      if (!hardware.shared) hardware.shared = device::MakeSharedHardware();
      extras.hardware = hardware.shared;
    }
    platforms_.insert(info.platform);
    const bool synchronous = (info.flags & WEIR_DEVICE_SYNC_ONLY) != 0;
    auto made = std::make_shared<device::Device>(std::move(info), hardware.module->devices(), hardware.module->cost(),
                                                 device.memory, hardware.module, std::move(extras));
    if (!synchronous && hardware.module->streams().Complete()) made->SetStreamApis(hardware.module->streams());
    catalogue_.devices_.Add(std::move(made));
  }

  bool IsDenied(const std::string& name) const {
    return std::find(options_.deny.begin(), options_.deny.end(), name) != options_.deny.end();
  }

  // Settings of missing plugins are faults. Settings of missing devices, and missing folders and denied plugins, may be
  // meant for another machine and are only noted.
  void NoteUnusedConfig() {
    std::vector<std::string_view> names;
    for (const FileReport& file : catalogue_.files_) {
      if (!file.name.empty()) names.push_back(file.name);
      if (!config_->plugins.strict || !file.failed() || IsDenied(file.name)) continue;
      catalogue_.config_faults_.push_back(
          FailedPrecondition("plugins.strict: {} is {}: {}", file.file, Name(file.verdict), file.reason));
    }
    const auto no_plugin = [&](const std::string& where, const std::string& plugin) {
      return fmt::format("{}: no plugin '{}' in {}{}", where, plugin, fmt::join(catalogue_.folders_, ", "),
                         NearestHint(plugin, names));
    };
    for (const auto& [plugin, table] : config_->plugin) {
      if (table.empty() || std::find(names.begin(), names.end(), plugin) != names.end()) continue;
      catalogue_.config_faults_.push_back(
          InvalidArgument("{}", no_plugin(table.begin()->second.origin.ToString(), plugin)));
    }
    for (const std::string& plugin : options_.deny) {
      if (std::find(names.begin(), names.end(), plugin) != names.end()) continue;
      Note(no_plugin(config_->Where("plugins.deny"), plugin));
    }
    for (const std::string& folder : config_->plugins.folders) {
      std::error_code error;
      if (!fs::exists(folder, error))
        Note(fmt::format("{}: there is no {}", config_->Where("plugins.folders"), folder));
    }
    for (const auto& [name, table] : config_->device) NoteDevice({"device", name});
    for (const auto& [kind, count] : config_->device_count) NoteDevice({"device_count", kind});
    for (const auto& [variable, value] : config_->environment) NoteVariable(variable);
  }

  void Note(std::string note) { catalogue_.config_notes_.push_back(std::move(note)); }

  // `key`: {"device", "GPU:0" or "GPU"} or {"device_count", "GPU"}.
  void NoteDevice(const config::Path& key) {
    const std::string& name = key[1];
    const auto same = [&name](const std::string& text) {
      return std::equal(name.begin(), name.end(), text.begin(), text.end(),
                        [](unsigned char a, unsigned char b) { return std::toupper(a) == std::toupper(b); });
    };
    std::string there;
    for (const auto& device : catalogue_.devices_.all()) {
      const std::string& kind = device->info().kind;
      const std::string text = fmt::format("{}:{}", kind, *device->info().name.id);
      if (name == kind || (key[0] == "device" && name == text)) return;
      if (key[0] == "device" && (same(text) || same(kind))) {
        catalogue_.config_faults_.push_back(InvalidArgument("{}: there is no device '{}'; wanted '{}'",
                                                            config::ToString(key), name, same(kind) ? kind : text));
        return;
      }
      there += (there.empty() ? "" : ", ") + text;
    }
    std::string text = fmt::format("{}: there is no such device; devices: {}", config::ToString(key), there);
    if (key[0] == "device" && FromProgram(config::ToString(key))) {
      catalogue_.config_faults_.push_back(InvalidArgument("{}", text));
    } else {
      Note(std::move(text));
    }
  }

  // Files may be shared by machines. A limit that the program itself sets on a missing device must not be ignored.
  bool FromProgram(const std::string& table) const {
    return std::any_of(config_->origins.begin(), config_->origins.end(), [&](const auto& key) {
      return key.second.source == config::Source::kCallSite && key.first.starts_with(table + ".");
    });
  }

  // Notes a variable that has the prefix of a loaded plugin's options but names none of them.
  void NoteVariable(const std::string& variable) {
    std::vector<std::string> known;
    std::string owner;
    for (const auto& [plugin, options] : catalogue_.options_) {
      if (!variable.starts_with(VariableOf(plugin, "")) || plugin.size() < owner.size()) continue;
      owner = plugin;
      for (const PluginOption& option : options) known.push_back(VariableOf(plugin, option.key));
    }
    if (owner.empty() || std::find(known.begin(), known.end(), variable) != known.end()) return;
    Note(fmt::format("environment {}: plugin '{}' has no such option{}", variable, owner,
                     NearestHint(variable, std::vector<std::string_view>(known.begin(), known.end()))));
  }

  void LoadOther(Candidate& candidate) {
    const std::vector<std::string>& targets = candidate.file.note.targets;
    const bool served =
        std::any_of(targets.begin(), targets.end(), [&](const auto& t) { return platforms_.contains(t); });
    constexpr uint32_t kOtherParts =
        WEIR_KIND_COMPILER | WEIR_KIND_OPS | WEIR_KIND_TRANSPORT | WEIR_KIND_FRONT_DOOR;
    const bool other_parts = (candidate.file.note.kinds & kOtherParts) != 0;
    if ((candidate.file.note.kinds & WEIR_KIND_KERNELS) != 0 && !served && !other_parts) {
      std::string reason = targets.empty() ? "its note names no platform for its kernels"
                                           : fmt::format("no device of platform {}", fmt::join(targets, ", "));
      candidate.report.foreign = true;
      return Finish(candidate.report, Verdict::kNoDevices, std::move(reason));
    }
    const std::shared_ptr<Module> module = LoadModule(candidate);
    if (!module) return;
    std::vector<std::string> faults;
    AddOps(candidate, *module, faults);
    AddKernels(candidate, *module, faults);
    AddInterfaces(candidate, module, faults);
    catalogue_.modules_.push_back(module);
    Finish(candidate.report, Verdict::kLoaded, Join(faults));
  }

  void AddOps(const Candidate& candidate, const Module& module, std::vector<std::string>& faults) {
    if ((candidate.file.note.kinds & WEIR_KIND_OPS) == 0) return;
    if (module.ops() == nullptr) faults.push_back("its note declares ops, but it provides none");
    for (std::string& fault : kernel::DeclareVendorOps(module.ops(), candidate.report.name, ops_)) {
      faults.push_back(std::move(fault));
    }
  }

  // Whether the plugin has the table that its note declares.
  template <class Api>
  static bool Offers(const Candidate& candidate, uint32_t kind, const Api* api, std::string_view what,
                     std::string_view interface, std::vector<std::string>& faults) {
    if ((candidate.file.note.kinds & kind) == 0) return false;
    if (kernel::IsComplete(api)) return true;
    faults.push_back(fmt::format("its note declares a {}, but its table {} lacks functions", what, interface));
    return false;
  }

  void AddInterfaces(const Candidate& candidate, const std::shared_ptr<Module>& module,
                     std::vector<std::string>& faults) {
    const std::string& name = candidate.report.name;
    if (Offers(candidate, WEIR_KIND_COMPILER, module->compiler(), "compiler", WEIR_COMPILER_INTERFACE, faults)) {
      catalogue_.compilers_.push_back({module->compiler(), name, candidate.report.version, module});
    }
    if (Offers(candidate, WEIR_KIND_TRANSPORT, module->transport(), "transport", WEIR_TRANSPORT_INTERFACE, faults)) {
      catalogue_.transports_.push_back({module->transport(), name, module});
    }
    if (Offers(candidate, WEIR_KIND_FRONT_DOOR, module->front_door(), "front door", WEIR_FRONT_DOOR_INTERFACE,
               faults)) {
      catalogue_.front_doors_.push_back({module->front_door(), name, module});
    }
  }

  void AddKernels(Candidate& candidate, const Module& module, std::vector<std::string>& faults) {
    const weir_kernels_api* api = module.kernels();
    if (!WEIR_HAS(api, kernels)) {
      if ((candidate.file.note.kinds & WEIR_KIND_KERNELS) != 0)
        faults.push_back("its note declares kernels, but it provides none");
      return;
    }
    const PluginNote& note = candidate.file.note;
    const std::string file = BaseName(candidate.file.path);
    const auto add = options_.check_kernels_on_use ? &kernel::KernelRegistry::AddOnUse : &kernel::KernelRegistry::Add;
    for (uint64_t i = 0; i < api->kernel_count; ++i) {
      kernel::KernelEntry entry;
      entry.record = api->kernels[i];
      entry.plugin = note.name;
      entry.file = file;
      entry.isa_level = IsaLevel(note.isa);
      const Status added = (catalogue_.kernels_.*add)(ops_, std::move(entry));
      if (added.ok()) {
        ++candidate.report.kernels;
        if (std::string fault = kernel::WorkFault(*api->kernels[i]); !fault.empty()) faults.push_back(std::move(fault));
      } else {
        faults.push_back(added.message());
      }
    }
  }

  const op::OpRegistry& ops_;
  const LoadOptions& options_;
  Catalogue& catalogue_;
  const std::shared_ptr<const config::Config> config_;
  const HostTraits host_;
  const std::chrono::milliseconds limit_;
  TimedCalls calls_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> too_wide_;
  std::vector<Hardware> hardware_;  // in stable order: by plugin file name, then in enumeration order
  std::set<std::string> platforms_;
  std::map<std::string, PluginNote> notes_;  // by path
};

std::unique_ptr<Catalogue> Catalogue::WithDevices(device::DeviceSet devices) const {
  auto other = std::make_unique<Catalogue>(*this);
  other->devices_ = std::move(devices);
  return other;
}

std::unique_ptr<Catalogue> Catalogue::WithDevices(device::DeviceSet devices, kernel::KernelRegistry kernels,
                                                  std::shared_ptr<const void> keep) const {
  std::unique_ptr<Catalogue> other = WithDevices(std::move(devices));
  other->kernels_ = std::move(kernels);
  other->keep_ = std::move(keep);
  return other;
}

std::vector<std::string> Catalogue::Absent() const {
  std::vector<std::string> absent;
  std::set<std::string> named;
  for (const FileReport& file : files_) {
    if ((!file.failed() && file.verdict != Verdict::kNoDevices) || file.foreign) continue;
    const bool loaded = std::any_of(files_.begin(), files_.end(), [&](const FileReport& other) {
      return other.verdict == Verdict::kLoaded && other.name == file.name;
    });
    // Of several builds of a plugin, the first by name needs the least.
    if (!loaded && (file.name.empty() || named.insert(file.name).second))
      absent.push_back((file.name.empty() ? file.file : file.name) + ": " + file.reason);
  }
  return absent;
}

std::vector<FileReport> Catalogue::CheckedFiles() const {
  std::vector<FileReport> files = files_;
  for (const kernel::RecordFault& fault : kernels_.Faults()) {
    for (FileReport& file : files) {
      if (file.failed() || file.name != fault.plugin || BaseName(file.file) != fault.file) continue;
      --file.kernels;
      file.reason += (file.reason.empty() ? "" : "; ") + fault.message;
    }
  }
  return files;
}

std::unique_ptr<Catalogue> Catalogue::Load(const op::OpRegistry& ops, const LoadOptions& options) {
  auto catalogue = std::make_unique<Catalogue>();
  catalogue->kernels_ = options.kernels;
  Loader(ops, options, *catalogue).Run();
  return catalogue;
}

}  // namespace weir::plugin
