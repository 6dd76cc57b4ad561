#include "plugins/kernels_eigen/kernels/packed_product.h"

#include <sys/mman.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include "plugins/functors/shared_by_content.h"
#include "plugins/kernels_eigen/kernels/panels.h"

namespace weir::kernels_eigen {
namespace {

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

bool PackedMatrix::FillsPanels(int64_t n) { return 4 * n >= 3 * PackedElements(1, n); }

uint64_t PackedMatrix::Bytes(int64_t k, int64_t n) {
  return static_cast<uint64_t>(PackedElements(k, n)) * sizeof(float);
}

std::shared_ptr<const PackedMatrix> PackedMatrix::Make(std::string form, const float* b, int64_t k, int64_t n,
                                                       const std::function<void(float*)>& pack) {
  static auto* const known = new functors::SharedByContent<PackedMatrix>;
  return known->Of(std::move(form), b, k * n, [&]() -> std::shared_ptr<const PackedMatrix> {
    const std::shared_ptr<PackedMatrix> made(new PackedMatrix);
    made->k_ = k;
    made->n_ = n;
    made->elements_ = NewElements(Bytes(k, n));
    if (made->elements_ == nullptr) return nullptr;
    pack(made->elements_);
    return made;
  });
}

std::shared_ptr<const PackedMatrix> PackedMatrix::Of(const float* b, bool transposed, int64_t k, int64_t n) {
  std::string form = "whole";
  for (const int64_t number : {k, n, int64_t{transposed}}) functors::AppendBytes(number, &form);
  return Make(std::move(form), b, k, n, [&](float* to) {
    PackPanels({b, transposed ? 1 : n, transposed ? k : 1}, k, n, to);
  });
}

std::shared_ptr<const PackedMatrix> PackedMatrix::InParts(const float* b, std::span<const int64_t> depths, int64_t n) {
  std::string form = "parts";
  functors::AppendBytes(n, &form);
  for (const int64_t depth : depths) functors::AppendBytes(depth, &form);
  const int64_t k = std::accumulate(depths.begin(), depths.end(), int64_t{0});
  return Make(std::move(form), b, k, n, [&](float* to) {
    const float* from = b;
    for (const int64_t depth : depths) {
      PackRows({from, n, 1}, depth, n, to, 0, depth);
      from += depth * n;
      to += PackedElements(depth, n);
    }
  });
}

PackedMatrix::~PackedMatrix() { std::free(elements_); }

void PackedMatrix::Multiply(const float* a, int64_t row_step, int64_t depth_step, int64_t m, float* c, float* scratch,
                            const float* addend, int64_t addend_step) const {
  MultiplyPanels({a, row_step, depth_step}, elements_, m, k_, n_, c, n_, addend, addend_step, scratch);
}

}  // namespace weir::kernels_eigen
