#include "core/io/cache_folder.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace weir::io {

std::string CacheFolder(std::string_view name, CacheUse use) {
  namespace fs = std::filesystem;
  if (getauxval(AT_SECURE) != 0) return {};
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (cache != nullptr && cache[0] == '/') {
    folder = cache;
  } else if (home != nullptr && home[0] == '/') {
    folder = fs::path(home) / ".cache";
  } else {
    return {};
  }
  folder = folder / "weir" / name;
  std::error_code error;
  if (use == CacheUse::kWrite) fs::create_directories(folder, error);
  struct stat info;
  const bool own = stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
                   (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return own ? folder.string() : std::string();
}

}  // namespace weir::io
