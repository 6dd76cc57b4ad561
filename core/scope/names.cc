#include "core/scope/names.h"

#include <cctype>

#include "core/base/errors.h"

namespace weir::scope {
namespace {

const std::string kRoot;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool IsScopeCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '\\' || c == '-' || c == '/' ||
         c == '>';
}

/// At the root a name must not start with a character of "_\-/>".
Status CheckName(std::string_view name, bool at_root) {
  bool good = !name.empty();
  for (const char c : name) good = good && IsScopeCharacter(c);
  if (good && at_root) good = std::isalnum(static_cast<unsigned char>(name[0])) || name[0] == '.';
  return good ? Status() : InvalidArgument("'{}' is not a valid scope name", name);
}

}  // namespace

std::string Names::Unique(std::string_view name) {
  const std::string base = Lower(name);
  int& next = used_[base];
  if (next++ == 0) return std::string(name);
  int suffix = next - 1;
  while (used_.contains(base + "_" + std::to_string(suffix))) ++suffix;
  used_[base] = suffix + 1;
  const std::string tail = "_" + std::to_string(suffix);
  used_[base + tail] = 1;
  return std::string(name) + tail;
}

void Names::MarkUsed(std::string_view name) { used_.emplace(Lower(name), 1); }

Result<std::string> Names::Enter(std::string_view name) {
  std::string path;
  if (!name.empty()) {
    WEIR_TRY(CheckName(name, current().empty()));
    path = name.back() == '/' ? std::string(name) : Unique(current() + std::string(name)) + "/";
  }
  scopes_.push_back(path);
  return path;
}

void Names::Leave() {
  if (!scopes_.empty()) scopes_.pop_back();
}

const std::string& Names::current() const { return scopes_.empty() ? kRoot : scopes_.back(); }

Result<std::string> Names::ForOperation(std::string_view name) {
  WEIR_TRY(CheckName(name, current().empty()));
  if (name.back() == '/') {
    used_.emplace(Lower(name.substr(0, name.size() - 1)), 1);
    return std::string(name.substr(0, name.size() - 1));
  }
  return Unique(current() + std::string(name));
}

}  // namespace weir::scope
