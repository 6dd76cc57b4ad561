#include "core/plugin/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/errors.h"
#include "core/config/value.h"
#include "core/io/cache_folder.h"
#include "core/plugin/catalogue.h"
#include "core/plugin/child.h"
#include "core/plugin/module.h"
#include "core/plugin/options.h"

namespace weir::plugin {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSurvived = "survived\n";
constexpr std::string_view kHung = "hung\n";

/// Arguments after file and limit: a --set for each option of the plugin, "--", and the variables that may set an
/// option.
std::vector<std::string> Words(const std::string& plugin, const config::Config& config) {
  std::vector<std::string> words;
  const auto set = [&](const config::Path& key, const std::string& value) {
    words.push_back(config::ToString(key) + "=" + value);
  };
  set({"plugins", "isa"}, config.plugins.isa.value());
  if (const auto table = config.plugin.find(plugin); table != config.plugin.end()) {
    for (const auto& [key, setting] : table->second) {
      const auto* text = setting.given.text ? std::get_if<std::string>(&setting.given.value) : nullptr;
      set({"plugin", plugin, key}, text != nullptr ? *text : config::ToToml(setting.given.value));
    }
  }
  words.emplace_back("--");
  const std::string prefix = VariableOf(plugin, "");
  for (const auto& [name, value] : config.environment) {
    if (name.starts_with(prefix)) words.push_back(name + "=" + value);
  }
  return words;
}

/// A name that identifies a trial: FNV-1a of all its inputs.
std::string NameOfTrial(const ScannedFile& file, const std::string& program, const std::vector<std::string>& words) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](const void* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
  };
  add(&file.identity, sizeof(file.identity));
  add(file.path.c_str(), file.path.size() + 1);
  if (const Result<FileIdentity> tool = FileIdentity::Of(program); tool.ok()) add(&*tool, sizeof(*tool));
  for (const std::string& word : words) add(word.c_str(), word.size() + 1);
  return fmt::format("{}-{:016x}", file.note.name, hash);
}

Status Outcome(const ChildEnd& end, const std::string& program, std::chrono::milliseconds limit) {
  if (!end.started) return Unavailable("plugins.probe: {} cannot be run", program);
  if (end.output.ends_with(kSurvived)) return {};
  if (end.late || end.output.ends_with(kHung)) {
    return DeadlineExceeded("a trial in a process of its own did not end: a call may take {} ms", limit.count());
  }
  if (WIFSIGNALED(end.status)) {
    return Aborted("a trial in a process of its own ended by signal {} ({})", WTERMSIG(end.status),
                   strsignal(WTERMSIG(end.status)));
  }
  if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == 127) {
    return Unavailable("plugins.probe: {} cannot be run", program);
  }
  return Aborted("it ended the process in which it was tried, with status {}", WEXITSTATUS(end.status));
}

}  // namespace

std::string ProbeProgram() { return (fs::path(UsualFolder()).parent_path() / "weir-probe").string(); }

Status Probe(const ScannedFile& file, const config::Config& config, const std::string& program,
             std::chrono::milliseconds limit) {
  static std::mutex* const mutex = new std::mutex;  // protects known and serializes trials
  static auto* const known = new std::map<std::string, Status>;
  const std::vector<std::string> words = Words(file.note.name, config);
  const std::string name = NameOfTrial(file, program, words), folder = io::CacheFolder("probed", io::CacheUse::kWrite);
  const std::lock_guard lock(*mutex);
  if (const auto earlier = known->find(name); earlier != known->end()) return earlier->second;
  const std::string mark = folder.empty() ? "" : folder + "/" + name;
  if (!mark.empty() && access(mark.c_str(), F_OK) == 0) return {};
  std::vector<std::string> arguments = {program, file.path, std::to_string(limit.count())};
  arguments.insert(arguments.end(), words.begin(), words.end());
  // The limit covers loading and init together, and enumerate again; the remaining work is short.
  Status outcome = Outcome(RunChild(arguments, {}, 2 * limit + std::chrono::seconds(2)), program, limit);
  if (outcome.code() == Code::kUnavailable) return outcome;
  if (outcome.ok() && !mark.empty()) {
    if (const int made = open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); made >= 0) close(made);
  }
  return known->emplace(name, std::move(outcome)).first->second;
}

Status TryFile(const std::string& path, const config::Config& config, const op::OpRegistry& ops,
               std::chrono::milliseconds limit) {
  WEIR_ASSIGN(const ScannedFile file, ScanFile(path));
  TimedCalls calls;
  WEIR_ASSIGN(const std::shared_ptr<Module> module,
              Module::Load(file, limit, std::make_shared<const config::Config>(config), calls));
  std::vector<std::string> faults;
  if ((file.note.kinds & WEIR_KIND_DEVICE) != 0) WEIR_TRY(module->Enumerate(limit, faults, calls).status());
  const weir_kernels_api* kernels = module->kernels();
  if (!WEIR_HAS(kernels, kernels)) return {};
  kernel::KernelRegistry registry;
  for (uint64_t i = 0; i < kernels->kernel_count; ++i) {
    kernel::KernelEntry entry;
    entry.record = kernels->kernels[i];
    entry.plugin = file.note.name;
    (void)registry.Add(ops, std::move(entry));
  }
  return {};
}

}  // namespace weir::plugin
