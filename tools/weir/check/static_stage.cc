// Stage static: properties of the file, checked without running its code.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/plugin/compatible.h"
#include "core/plugin/note.h"
#include "core/plugin/scan.h"
#include "tools/weir/check/elf_file.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"

namespace weir::check {
namespace {

Status CheckNoteContents(const plugin::PluginNote& note) {
  if (note.kinds == 0) return InvalidArgument("the note lists neither devices nor kernels");
  if ((note.kinds & WEIR_KIND_KERNELS) != 0 && note.targets.empty()) {
    return InvalidArgument("the plugin has kernels, but its note names no platform");
  }
  if (note.version.empty()) return InvalidArgument("the note has no version");
  if (note.op_set_max != 0 && note.op_set_min > note.op_set_max) {
    return InvalidArgument("the op set has the empty range {} to {}", note.op_set_min, note.op_set_max);
  }
  return {};
}

Status CheckExports(const ElfFile& file) {
  if (file.exports == std::vector<std::string>{WEIR_PLUGIN_QUERY_SYMBOL}) return {};
  if (file.exports.empty()) return InvalidArgument("it exports nothing, wanted {}", WEIR_PLUGIN_QUERY_SYMBOL);
  return InvalidArgument("it exports {} symbols, wanted only {}: {}", file.exports.size(), WEIR_PLUGIN_QUERY_SYMBOL,
                         fmt::join(file.exports, ", "));
}

Status CheckImports(const ElfFile& file) {
  for (const std::string& name : file.imports) {
    if (name.starts_with("weir_") || name.starts_with("_ZN4weir") || name.starts_with("_ZNK4weir")) {
      return InvalidArgument("it imports '{}' of the core", name);
    }
  }
  const auto core = std::find_if(file.needed.begin(), file.needed.end(),
                                 [](const std::string& name) { return name.starts_with("libweir"); });
  if (core != file.needed.end()) return InvalidArgument("it is linked with {}", *core);
  return {};
}

Status CheckHardening(const ElfFile& file) {
  if (file.text_relocations) return InvalidArgument("it has text relocations");
  if (file.executable_stack) return InvalidArgument("it requires an executable stack");
  if (!file.relro || !file.bind_now) return InvalidArgument("it is linked without -z relro -z now");
  return {};
}

Status CheckRunPath(const ElfFile& file) {
  for (const std::string& path : file.run_paths) {
    if (path != "$ORIGIN" && !path.starts_with("$ORIGIN/"))
      return InvalidArgument("its run path has '{}', wanted $ORIGIN", path);
  }
  return {};
}

}  // namespace

std::vector<RuleResult> StaticStage(const Target& target) {
  return RunInChild("WEIR-NOTE-01", target.time_limit_ms, [&](Recorder& recorder) {
    const Result<plugin::PluginNote> note = plugin::ReadNoteFile(target.path);
    recorder.Try("WEIR-NOTE-01", [&] { return note.status(); });
    if (note.ok()) {
      recorder.Try("WEIR-NOTE-02", [&]() -> Status {
        const plugin::HostTraits host = plugin::HostTraits::Current();
        WEIR_TRY(plugin::CheckCompatible(*note, host));
        return plugin::CheckIsa(*note, host);
      });
      recorder.Try("WEIR-NOTE-03", [&] { return CheckNoteContents(*note); });
    }
    const Result<ElfFile> file = ElfFile::Read(target.path);
    if (!recorder.Try("WEIR-ELF-01", [&] { return file.ok() ? CheckExports(*file) : file.status(); })) {
      if (!file.ok()) return;
    }
    recorder.Try("WEIR-ELF-02", [&] { return CheckImports(*file); });
    recorder.Try("WEIR-ELF-03", [&]() -> Status {
      if (file->unique.empty()) return {};
      return InvalidArgument("unique symbols: {}", fmt::join(file->unique, ", "));
    });
    recorder.Try("WEIR-ELF-04", [&] { return CheckHardening(*file); });
    recorder.Try("WEIR-ELF-05", [&] { return CheckRunPath(*file); });
    recorder.Try("WEIR-ELF-06", [&]() -> Status {
      const Status scanned = plugin::ScanFile(target.path).status();
      return scanned.code() == Code::kPermissionDenied ? scanned : Status();
    });
  });
}

}  // namespace weir::check
