#include "core/io/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "core/base/errors.h"
#include "core/io/files.h"

namespace weir::io {
namespace {

// Smaller files are copied in less time than a mapping takes.
constexpr uint64_t kLeastMapped = 64 << 10;

// A mapping of the whole file behind `fd`; null if the file system has none.
std::shared_ptr<const void> MapWhole(int fd, size_t size) {
  void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (pages == MAP_FAILED) return nullptr;
  return std::shared_ptr<const void>(pages, [size](const void* at) { munmap(const_cast<void*>(at), size); });
}

}  // namespace

Result<FileBytes> FileBytes::Open(const std::string& path, uint64_t limit_bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) >= kLeastMapped) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, path);
    std::shared_ptr<const void> pages;
    const bool found = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const uint64_t size = found ? static_cast<uint64_t>(info.st_size) : 0;
    if (size >= kLeastMapped && size <= limit_bytes) pages = MapWhole(fd, size);
    close(fd);
    if (size > limit_bytes) return ResourceExhausted("{}: larger than the limit of {} bytes", path, limit_bytes);
    if (pages != nullptr) return FileBytes({static_cast<const char*>(pages.get()), size}, pages);
  }
  WEIR_ASSIGN(std::string contents, ReadFile(path, limit_bytes));
  const auto held = std::make_shared<const std::string>(std::move(contents));
  return FileBytes(*held, held);
}

}  // namespace weir::io
