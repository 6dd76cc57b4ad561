// The serial archive hands out work space from a table without locks, so that two threads in it at once would share a
// piece. Every request goes to memory of the calling thread instead; pages are touched only as products need them.
#include "plugins/kernels_openblas/work_space.h"

#include <sys/mman.h>

#include <cstddef>
#include <memory>

namespace weir::kernels_openblas {
namespace {

/// Bytes that the library may use: BUFFER_SIZE of its common.h, of which 128 MiB is the largest for x86-64, twice.
constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // spares address translations, where the system has such pages

class WorkSpace {
 public:
  WorkSpace() = default;
  ~WorkSpace() {
    if (base_ != nullptr) munmap(mapped_, kBytes + kHugePage);
  }
  WorkSpace(const WorkSpace&) = delete;
  WorkSpace& operator=(const WorkSpace&) = delete;

  void* Get() {
    if (base_ != nullptr) return base_;
    mapped_ = mmap(nullptr, kBytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0);
    if (mapped_ == MAP_FAILED) return nullptr;
    std::size_t room = kBytes + kHugePage;
    base_ = mapped_;
    std::align(kHugePage, kBytes, base_, room);
    (void)madvise(base_, kBytes, MADV_HUGEPAGE);
    return base_;
  }

 private:
  void* mapped_ = nullptr;
  void* base_ = nullptr;  // in it
};

thread_local WorkSpace work_space;

}  // namespace

bool HaveWorkSpace() { return work_space.Get() != nullptr; }

}  // namespace weir::kernels_openblas

/// Called wherever the archive's interface asks for work space (linker option --wrap): once for a product, given back
/// before the product returns.
extern "C" void* __wrap_blas_memory_alloc(int) { return weir::kernels_openblas::work_space.Get(); }
extern "C" void __wrap_blas_memory_free(void*) {}
