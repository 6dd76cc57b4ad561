#include "plugins/kernels_eigen/kernels/packed_product.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "plugins/kernels_eigen/kernels/panels.h"

namespace weir::kernels_eigen {
namespace {

/// Two independent hashes of the bytes of `n` floats.
std::pair<uint64_t, uint64_t> HashOf(const float* x, int64_t n) {
  uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    uint64_t word;
    std::memcpy(&word, x + i, sizeof word);
    a = (a ^ word) * 0x9fb21c651e98df25;
    a ^= a >> 29;
    b = (b + word) * 0xd6e8feb86659fd93;
    b ^= b >> 32;
  }
  for (; i < n; ++i) {
    uint32_t word;
    std::memcpy(&word, x + i, sizeof word);
    a = (a ^ word) * 0x9fb21c651e98df25;
    b = (b + word) * 0xd6e8feb86659fd93;
  }
  return {a ^ a >> 31, b ^ b >> 33};
}

/// Aligned to 64 bytes, or to huge pages, which the system is asked for. Null without memory.
float* NewElements(uint64_t bytes) {
  constexpr uint64_t kLine = 64, kHugePage = uint64_t{2} << 20;
  const uint64_t unit = bytes >= kHugePage / 2 ? kHugePage : kLine;
  const uint64_t size = (bytes + unit - 1) / unit * unit;
  auto* const elements = static_cast<float*>(std::aligned_alloc(unit, size));
#if defined(MADV_HUGEPAGE)
  if (elements != nullptr && unit == kHugePage) (void)madvise(elements, size, MADV_HUGEPAGE);
#endif
  return elements;
}

}  // namespace

uint64_t PackedMatrix::ScratchBytes(int64_t k, int64_t m) {
  return static_cast<uint64_t>(LeftScratch(m, k)) * sizeof(float);
}

uint64_t PackedMatrix::Bytes(int64_t k, int64_t n) {
  return static_cast<uint64_t>(PackedElements(k, n)) * sizeof(float);
}

std::shared_ptr<const PackedMatrix> PackedMatrix::Of(const float* b, bool transposed, int64_t k, int64_t n) {
  using Key = std::tuple<int64_t, int64_t, bool, uint64_t, uint64_t>;
  static std::mutex* const mutex = new std::mutex;  // protects known
  static auto* const known = new std::map<Key, std::weak_ptr<const PackedMatrix>>;
  const auto [first, second] = HashOf(b, k * n);
  const std::lock_guard<std::mutex> lock(*mutex);
  std::erase_if(*known, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const PackedMatrix>& slot = (*known)[{k, n, transposed, first, second}];
  if (std::shared_ptr<const PackedMatrix> packed = slot.lock()) return packed;
  const std::shared_ptr<PackedMatrix> made(new PackedMatrix);
  made->k_ = k;
  made->n_ = n;
  made->elements_ = NewElements(Bytes(k, n));
  if (made->elements_ == nullptr) return nullptr;
  PackPanels({b, transposed ? 1 : n, transposed ? k : 1}, k, n, made->elements_);
  slot = made;
  return made;
}

PackedMatrix::~PackedMatrix() { std::free(elements_); }

void PackedMatrix::Multiply(const float* a, int64_t row_step, int64_t depth_step, int64_t m, float* c, float* scratch,
                            const float* addend, int64_t addend_step) const {
  MultiplyPanels({a, row_step, depth_step}, elements_, m, k_, n_, c, n_, addend, addend_step, scratch);
}

}  // namespace weir::kernels_eigen
