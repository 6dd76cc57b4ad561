#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "core/config/document.h"
#include "core/config/value.h"
#include "core/session/options.h"
#include "core/session/runtime.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

Json JsonOf(const config::Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

struct Row {
  config::Shown shown;
  std::string note;
};

// The value in force of every key, including plugin options.
std::vector<Row> Effective(const session::Runtime& runtime) {
  std::vector<Row> rows;
  for (config::Shown& shown : config::List(runtime.config, config::Show::kAll)) {
    if (shown.key.starts_with("plugin.")) continue;  // added below, with its type
    const bool idle = shown.effect == config::Effect::kHint && shown.source != config::Origin().ToString();
    const bool absent = shown.effect == config::Effect::kNotYet;
    rows.push_back({std::move(shown), idle     ? "accepted, without effect"
                                      : absent ? "not in this version: only the default is accepted"
                                               : ""});
  }
  for (const auto& [plugin, options] : runtime.plugins->options()) {
    for (const plugin::PluginOption& option : options) {
      rows.push_back(
          {{config::ToString({"plugin", plugin, option.key}), option.value, option.origin.ToString()}, option.doc});
    }
  }
  return rows;
}

}  // namespace

void PrintNotes(const std::vector<std::string>& notes, const Console& console, Json& report) {
  report["notes"] = notes;
  for (const std::string& note : notes) console.Print("note: " + note);
}

Status ShowConfig(const ConfigShowOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const config::Loaded loaded, config::Load(options.sources));
  std::vector<std::string> notes = loaded.notes;
  size_t told = 0;  // notes that the runtime has written to standard error
  std::vector<Row> rows;
  if (options.effective) {
    WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
    rows = Effective(*runtime);
    told = notes.size();
    const std::vector<std::string>& more = runtime->plugins->config_notes();
    notes.insert(notes.end(), more.begin(), more.end());
  } else {
    for (config::Shown& shown : config::List(loaded.config, config::Show::kSet)) rows.push_back({std::move(shown), ""});
  }
  report["files"] = loaded.files;
  report["values"] = Json::array();
  Table table({"key", "value", "source", options.effective ? "note" : ""});
  for (const Row& row : rows) {
    report["values"].push_back(
        {{"key", row.shown.key}, {"value", JsonOf(row.shown.value)}, {"source", row.shown.source}, {"note", row.note}});
    table.Add({row.shown.key, config::ToToml(row.shown.value), row.shown.source, Cell(row.note, Paint::kFaint)});
  }
  if (!rows.empty()) {
    console.Print(table);
  } else {
    console.Print("nothing is set; `weir config show --effective` lists all keys");
  }
  report["notes"] = notes;
  for (size_t i = told; i < notes.size(); ++i) console.Print("note: " + notes[i]);
  return Status();
}

Status CheckConfig(const std::string& file, const Console& console, Json& report) {
  config::Sources sources;
  sources.files = {file};
  WEIR_ASSIGN(config::Loaded loaded, config::Load(sources));
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime,
              session::Runtime::Load(session::LoadOptionsFrom(loaded.config)));
  const std::vector<std::string>& more = runtime->plugins->config_notes();
  loaded.notes.insert(loaded.notes.end(), more.begin(), more.end());
  const size_t keys = loaded.settings.all().size();
  report["file"] = file;
  report["keys"] = keys;
  console.Print(fmt::format("{}: {} {}, no fault", file, keys, keys == 1 ? "key" : "keys"));
  PrintNotes(loaded.notes, console, report);
  return Status();
}

}  // namespace weir::cli
