// The serial archive allocates work space from a table without locks, so two threads in it at once would share an
// entry. Every request is redirected to memory of the calling thread; pages become resident only when products touch
// them.
#include "plugins/kernels_openblas/work_space.h"

#include <sys/mman.h>

#include <cstddef>
#include <memory>

namespace weir::kernels_openblas {
namespace {

/// Bytes that the library may use: twice BUFFER_SIZE of its common.h, whose largest value for x86-64 is 128 MiB.
constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // reduces TLB misses if the system has such pages

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
  void* base_ = nullptr;  // the aligned start inside the mapping
};

thread_local WorkSpace work_space;

}  // namespace

bool HaveWorkSpace() { return work_space.Get() != nullptr; }

}  // namespace weir::kernels_openblas

/// Replaces the archive's allocation of work space (linker option --wrap): called once per product, and freed before
/// the product returns.
extern "C" void* __wrap_blas_memory_alloc(int) { return weir::kernels_openblas::work_space.Get(); }
extern "C" void __wrap_blas_memory_free(void*) {}
