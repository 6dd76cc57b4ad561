#include "core/compile/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/io/cache_folder.h"
#include "core/io/crc32c.h"
#include "core/io/files.h"

namespace weir::compile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "WEIRRGN1";
constexpr std::string_view kExtension = ".region";

static_assert(std::endian::native == std::endian::little, "numbers in files are little-endian");

std::string NumberBytes(uint64_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

uint64_t NumberAt(std::string_view text, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, text.data() + at, sizeof number);
  return number;
}

std::string PathOf(std::string_view key, io::CacheUse use) {
  const std::string folder = io::CacheFolder("regions", use);
  return folder.empty() ? folder : folder + "/" + HashText(key) + std::string(kExtension);
}

struct KeptFile {
  fs::file_time_type written;
  fs::path path;
  uint64_t bytes = 0;
};

/// Removes the oldest files until a quarter of the room is free.
void MakeRoom(const fs::path& folder) {
  std::vector<KeptFile> files;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code own;
    if (entry->path().extension() != kExtension || !entry->is_regular_file(own)) continue;
    KeptFile file{entry->last_write_time(own), entry->path(), entry->file_size(own)};
    if (own) continue;
    bytes += file.bytes;
    files.push_back(std::move(file));
  }
  if (files.size() <= Store::kMostFiles && bytes <= Store::kMostBytes) return;
  std::ranges::sort(files, {}, &KeptFile::written);
  size_t left = files.size();
  for (const KeptFile& file : files) {
    if (left <= Store::kMostFiles * 3 / 4 && bytes <= Store::kMostBytes * 3 / 4) break;
    fs::remove(file.path, error);
    bytes -= file.bytes;
    --left;
  }
}

}  // namespace

std::string HashText(std::string_view text) {
  // FNV-1a with two starts.
  uint64_t a = 0xcbf29ce484222325, b = 0x9ae16a3b2f90404f;
  for (const char c : text) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    b = (b ^ static_cast<unsigned char>(c)) * 0x9e3779b97f4a7c15;
    b ^= b >> 29;
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

Result<std::string> Store::Read(std::string_view key) {
  const std::string path = PathOf(key, io::CacheUse::kRead);
  if (path.empty() || !io::FileExists(path)) return NotFound("no file is kept for the region");
  constexpr size_t kHead = kMagic.size() + 2 * sizeof(uint64_t), kTail = sizeof(uint64_t);
  const uint64_t most = kHead + kTail + key.size() + kMostFileBytes;
  Result<std::string> file = io::ReadFile(path, most);
  if (!file.ok()) return DataLoss("{}", file.status().message());
  const std::string_view text = *file;
  if (text.size() < kHead + kTail || !text.starts_with(kMagic)) return DataLoss("{} is no file of a region", path);
  const std::string_view body = text.substr(0, text.size() - kTail);
  if (NumberAt(text, body.size()) != io::Crc32c(body)) return DataLoss("{} is damaged: its checksum is wrong", path);
  const uint64_t key_size = NumberAt(text, kMagic.size()), size = NumberAt(text, kMagic.size() + sizeof(uint64_t));
  const uint64_t rest = body.size() - kHead;
  if (key_size > rest || size != rest - key_size) return DataLoss("{} is damaged: its lengths are wrong", path);
  if (text.substr(kHead, key_size) != key) return DataLoss("{} is of another region or compiler", path);
  return std::string(text.substr(kHead + key_size, size));
}

void Store::Write(std::string_view key, std::string_view bytes) {
  if (bytes.size() > kMostFileBytes) return;
  const std::string path = PathOf(key, io::CacheUse::kWrite);
  if (path.empty()) return;
  std::string text(kMagic);
  text += NumberBytes(key.size());
  text += NumberBytes(bytes.size());
  text += key;
  text += bytes;
  text += NumberBytes(io::Crc32c(text));
  const std::string temporary = io::TemporaryName(path);
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file || !io::RenameFile(temporary, path).ok()) {
    (void)io::RemoveFile(temporary);
    return;
  }
  MakeRoom(fs::path(path).parent_path());
}

void Store::Remove(std::string_view key) {
  const std::string path = PathOf(key, io::CacheUse::kRead);
  if (!path.empty()) (void)io::RemoveFile(path);
}

}  // namespace weir::compile
