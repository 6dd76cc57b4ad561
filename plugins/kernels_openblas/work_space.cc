// The serial archive hands out work space from a table without locks, so that two threads in it at once would share a
// piece. Every request goes to memory of the calling thread instead; pages are touched only as products need them.
#include "plugins/kernels_openblas/work_space.h"

#include <sys/mman.h>

#include <cstddef>

namespace weir::kernels_openblas {
namespace {

/// Bytes that the library may use: BUFFER_SIZE of its common.h, of which 128 MiB is the largest for x86-64, twice.
constexpr std::size_t kBytes = std::size_t{256} << 20;

class WorkSpace {
 public:
  WorkSpace() = default;
  ~WorkSpace() {
    if (base_ != nullptr) munmap(base_, kBytes);
  }
  WorkSpace(const WorkSpace&) = delete;
  WorkSpace& operator=(const WorkSpace&) = delete;

  void* Get() {
    if (base_ != nullptr) return base_;
    void* made = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) base_ = made;
    return base_;
  }

 private:
  void* base_ = nullptr;
};

thread_local WorkSpace work_space;

}  // namespace

bool HaveWorkSpace() { return work_space.Get() != nullptr; }

}  // namespace weir::kernels_openblas

/// Called wherever the archive's interface asks for work space (linker option --wrap): once for a product, given back
/// before the product returns.
extern "C" void* __wrap_blas_memory_alloc(int) { return weir::kernels_openblas::work_space.Get(); }
extern "C" void __wrap_blas_memory_free(void*) {}
