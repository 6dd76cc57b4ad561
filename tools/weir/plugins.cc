#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/session/runtime.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

Paint PaintOf(plugin::Verdict verdict) {
  switch (verdict) {
    case plugin::Verdict::kLoaded:
      return Paint::kGood;
    case plugin::Verdict::kRefused:
    case plugin::Verdict::kCrashed:
    case plugin::Verdict::kHung:
      return Paint::kBad;
    default:
      return Paint::kFaint;
  }
}

}  // namespace

Status ShowPlugins(const PluginsOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  const plugin::Catalogue& catalogue = *runtime->plugins;
  report["folders"] = catalogue.folders();
  report["plugins"] = Json::array();
  std::vector<Cell> headings = {"file", "name", "version", "verdict", "devices", "kernels"};
  if (options.why) headings.emplace_back("why");
  Table table(std::move(headings));
  for (const plugin::FileReport& file : catalogue.CheckedFiles()) {
    const std::string verdict(plugin::Name(file.verdict));
    report["plugins"].push_back({{"file", file.file},
                                 {"name", file.name},
                                 {"version", file.version},
                                 {"verdict", verdict},
                                 {"reason", file.reason},
                                 {"devices", file.devices},
                                 {"kernels", file.kernels}});
    std::vector<Cell> row = {options.why ? file.file : io::BaseName(file.file),
                             file.name,
                             file.version,
                             Cell(verdict, PaintOf(file.verdict)),
                             std::to_string(file.devices),
                             std::to_string(file.kernels)};
    if (options.why) row.emplace_back(OnOneLine(file.reason));
    table.Add(std::move(row));
  }
  if (!catalogue.files().empty()) {
    console.Print(table);
  } else {
    console.Print(fmt::format("no plugins in {}; set WEIR_PLUGIN_PATH to use other folders",
                              fmt::join(catalogue.folders(), ", ")));
  }
  PrintNotes(runtime->plugins->config_notes(), console, report);
  return Status();
}

}  // namespace weir::cli
