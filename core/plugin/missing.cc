#include "core/plugin/missing.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <algorithm>

#include "core/base/legible.h"
#include "core/plugin/child.h"

namespace weir::plugin {
namespace {

constexpr size_t kMostNames = 64;

/// Path of the dynamic linker of this process; empty if unknown.
std::string LinkerPath() {
  Dl_info info;
  const auto base = reinterpret_cast<void*>(getauxval(AT_BASE));
  const bool known = base != nullptr && dladdr(base, &info) != 0 && info.dli_fname != nullptr;
  return known && info.dli_fname[0] == '/' ? info.dli_fname : "";
}

}  // namespace

std::string WithAllMissing(std::string failure, const std::string& path) {
  constexpr auto kLimit = std::chrono::seconds(2);  // usually takes a few milliseconds
  if (failure.find("cannot open shared object file") == std::string::npos) return failure;
  const std::vector<std::string> missing = MissingLibraries(path, kLimit);
  if (missing.size() < 2) return failure;
  return fmt::format("{}; all that is missing: {}", failure, fmt::join(missing, ", "));
}

std::vector<std::string> NotFoundIn(std::string_view list) {
  constexpr std::string_view kNotFound = " => not found";
  std::vector<std::string> names;
  while (!list.empty() && names.size() < kMostNames) {
    std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(line.size() + 1, list.size()));
    if (!line.ends_with(kNotFound)) continue;
    line.remove_suffix(kNotFound.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    std::string name = LegibleLine(line);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> MissingLibraries(const std::string& path, std::chrono::milliseconds limit) {
  const std::string linker = LinkerPath();
  // In a privileged process the linker ignores the variable.
  if (linker.empty() || getauxval(AT_SECURE) != 0) return {};
  const ChildEnd end = RunChild({linker, path}, {"LD_TRACE_LOADED_OBJECTS=1"}, limit);
  return end.late ? std::vector<std::string>() : NotFoundIn(end.output);
}

}  // namespace weir::plugin
