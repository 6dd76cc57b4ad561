#include "core/io/file_pattern.h"

#include <fnmatch.h>

#include <algorithm>

#include "core/io/files.h"

namespace weir::io {
namespace {

constexpr const char* kSpecial = "*?[\\";

/// Appends the existing paths below `folder` that match the parts of the pattern from `rest` on. Folders that cannot be
/// listed have no matches.
void AppendMatches(const std::string& folder, std::string_view rest, std::vector<std::string>& paths) {
  const size_t slash = rest.find('/');
  const std::string part(rest.substr(0, slash));
  std::string_view below = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  while (below.starts_with('/')) below.remove_prefix(1);
  const bool last = slash == std::string_view::npos;
  const auto take = [&](const std::string& name) {
    const std::string path = folder.ends_with('/') ? folder + name : folder + "/" + name;
    if (last) {
      paths.push_back(path);
    } else {
      AppendMatches(path, below, paths);
    }
  };
  if (part.find_first_of(kSpecial) == std::string::npos) {
    if (FileExists(JoinPath(folder, part))) take(part);
    return;
  }
  const Result<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (fnmatch(part.c_str(), name.c_str(), FNM_PATHNAME) == 0) take(name);
  }
}

}  // namespace

Result<std::vector<std::string>> MatchingPaths(const std::string& pattern) {
  std::vector<std::string> paths;
  const size_t special = pattern.find_first_of(kSpecial);
  if (special == std::string::npos) {
    if (!pattern.empty() && FileExists(pattern)) paths.push_back(pattern);
    return paths;
  }
  const size_t slash = pattern.rfind('/', special);
  if (slash == std::string::npos) {
    AppendMatches(".", pattern, paths);
  } else {
    AppendMatches(slash == 0 ? "/" : pattern.substr(0, slash), std::string_view(pattern).substr(slash + 1), paths);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace weir::io
