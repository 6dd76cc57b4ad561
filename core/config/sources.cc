#include "core/config/sources.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/config/config_proto.h"
#include "core/config/schema.h"
#include "core/config/toml.h"
#include "core/io/files.h"

namespace weir::config {
namespace {

constexpr std::string_view kPrefix = "WEIR_";
constexpr const char* kSystemFile = "/etc/weir/weir.toml";
constexpr size_t kMaxTextBytes = size_t{1} << 16;
// Variables for users that are not keys.
constexpr std::string_view kOtherVariables[] = {"CONFIG", "PLUGIN_PATH"};
// Variables of the build and the tests, which are not misspelt keys.
constexpr std::string_view kDevelopment[] = {"BUILD_DIR", "SOURCE_DIR", "TEST_DATA",  "TEST_MINUTES", "TEST_DEVICE",
                                             "VENV",      "JOBS",       "ASYNC_CUTS", "WRITE_LAYOUT"};

bool IsConfigProto(std::string_view path) {
  constexpr std::string_view kEndings[] = {".pb", ".pbtxt", ".prototxt", ".textproto"};
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](auto ending) { return path.ends_with(ending); });
}

std::string UserFile() {
  const char* base = std::getenv("XDG_CONFIG_HOME");
  if (base != nullptr && base[0] == '/') return std::string(base) + "/weir/weir.toml";
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.config/weir/weir.toml" : "";
}

Status ReadEnvironment(const Sources& sources, Settings& settings, std::vector<std::string>& notes) {
  std::map<std::string, std::string> rest = sources.environment;
  std::vector<std::string> names;
  for (const Key& key : Schema()) {
    const std::string name = EnvironmentName(key);
    if (name.empty()) continue;
    names.push_back(name.substr(kPrefix.size()));
    const auto found = rest.find(name);
    if (found == rest.end()) continue;
    const Origin origin{Source::kEnvironment, name};
    if (found->second.size() > kMaxTextBytes) {
      return InvalidArgument("{}: {} bytes, at most {} are allowed", origin.ToString(), found->second.size(),
                             kMaxTextBytes);
    }
    if (sources.privileged && key.names_place) {
      notes.push_back(origin.ToString() + " is not read by a process with privileges");
    } else {
      WEIR_ASSIGN(Path path, ParsePath(key.path));
      WEIR_TRY(settings.Set(std::move(path), {found->second, true}, origin));
    }
    rest.erase(found);
  }
  std::vector<std::string_view> known(names.begin(), names.end());
  known.insert(known.end(), std::begin(kOtherVariables), std::end(kOtherVariables));
  for (auto& [name, value] : rest) {
    const std::string_view own = std::string_view(name).substr(kPrefix.size());
    const auto is = [own](std::string_view other) { return own == other; };
    if (std::any_of(std::begin(kOtherVariables), std::end(kOtherVariables), is) ||
        std::any_of(std::begin(kDevelopment), std::end(kDevelopment), is)) {
      continue;
    }
    const std::vector<std::string> near = NearestNames(own, known, 1);
    if (!near.empty()) notes.push_back(fmt::format("environment {} is no key (nearest: {}{})", name, kPrefix, near[0]));
    settings.AddVariable(name, value);
  }
  return {};
}

// Parses "a.b=c", split at the first "=" outside quotes.
Status ReadSet(const std::string& text, Settings& settings) {
  if (text.size() > kMaxTextBytes)
    return InvalidArgument("--set: {} bytes, at most {} are allowed", text.size(), kMaxTextBytes);
  char quote = 0;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (quote == 0 && text[at] == '=') break;
    if (text[at] == quote) {
      quote = 0;
    } else if (quote == 0 && (text[at] == '"' || text[at] == '\'')) {
      quote = text[at];
    }
  }
  if (at == text.size()) return InvalidArgument("--set {}: wanted KEY=VALUE, as gpu_options.allow_growth=true", text);
  Result<Path> path = ParsePath(std::string_view(text).substr(0, at));
  if (!path.ok()) return path.status().Prepend("--set: ");
  return settings.Set(std::move(*path), {text.substr(at + 1), true}, {.source = Source::kSet});
}

}  // namespace

Sources Sources::OfProcess() {
  Sources sources;
  sources.privileged = getauxval(AT_SECURE) != 0;
  sources.usual_files.emplace_back(kSystemFile);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos) {
      sources.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  if (sources.privileged) return sources;
  if (std::string user = UserFile(); !user.empty()) sources.usual_files.push_back(std::move(user));
  const auto named = sources.environment.find("WEIR_CONFIG");
  if (named != sources.environment.end() && !named->second.empty()) sources.files.push_back(named->second);
  return sources;
}

Status ReadFile(const std::string& path, Settings& settings, std::vector<std::string>& notes) {
  WEIR_ASSIGN(const std::string bytes, io::ReadFile(path, kMaxFileBytes));
  if (IsConfigProto(path)) return ReadConfigProto(bytes, {Source::kFile, path}, settings, notes);
  return ReadToml(bytes, path, settings);
}

Result<Loaded> Load(const Sources& sources) {
  Loaded loaded;
  WEIR_TRY(ReadEnvironment(sources, loaded.settings, loaded.notes));
  for (const std::string& path : sources.usual_files) {
    std::error_code error;
    if (!std::filesystem::exists(path, error) && !error) continue;
    const Status read = ReadFile(path, loaded.settings, loaded.notes);
    if (read.code() == Code::kNotFound) continue;
    if (read.code() == Code::kPermissionDenied) {
      loaded.notes.push_back(fmt::format("{}: the file is left out", read.message()));
      continue;
    }
    WEIR_TRY(read);
    loaded.files.push_back(path);
  }
  for (const std::string& path : sources.files) {
    WEIR_TRY(ReadFile(path, loaded.settings, loaded.notes));
    loaded.files.push_back(path);
  }
  for (const std::string& set : sources.sets) WEIR_TRY(ReadSet(set, loaded.settings));
  WEIR_ASSIGN(loaded.config, loaded.settings.Build());
  return loaded;
}

}  // namespace weir::config
