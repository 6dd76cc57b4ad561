#include "plugins/kernels_eigen/kernels/packed_product.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "plugins/functors/content_hash.h"

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

namespace weir::kernels_eigen {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kRows = 12;  // of c at once: 24 sums, two vectors of b and one of a fill the registers
#else
constexpr int kVectorBytes = 32;
constexpr int kRows = 6;
#endif
using Vector = float __attribute__((vector_size(kVectorBytes)));
using UnalignedVector = float __attribute__((vector_size(kVectorBytes), aligned(4)));

constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(float));
constexpr int64_t kPanelColumns = 2 * kLanes;  // of a panel
constexpr int64_t kDepth = 256;                // rows of a panel that stay in the first caches
constexpr int64_t kMostRows = 240;             // of a, whose factors stay in the second cache

Vector MultiplyAdd(Vector x, Vector y, Vector z) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(y), reinterpret_cast<__m512>(z)));
#elif defined(__FMA__)
  return reinterpret_cast<Vector>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(x), reinterpret_cast<__m256>(y), reinterpret_cast<__m256>(z)));
#else
  return x * y + z;
#endif
}

Vector Broadcast(const float* x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(_mm512_set1_ps(*x));
#elif defined(__FMA__)
  return reinterpret_cast<Vector>(_mm256_broadcast_ss(x));
#else
  return Vector{} + *x;
#endif
}

struct Block {
  const float* a;  // the factors of all rows for one p, then for the next
  const float* b;  // a panel's rows
  int64_t depth;
  float* c;
  int64_t c_step;
  int64_t columns;  // at most kPanelColumns
  bool adds;        // to c
};

/// kCount rows of c by the columns of one panel.
template <int kCount>
void Inner(const Block& block) {
  Vector sums[kCount][2];
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) sums[i][0] = sums[i][1] = Vector{};
  const float* b = block.b;
  const float* a = block.a;
  for (int64_t p = 0; p < block.depth; ++p, b += kPanelColumns, a += kCount) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) {
      const Vector factor = Broadcast(a + i);
      sums[i][0] = MultiplyAdd(factor, b0, sums[i][0]);
      sums[i][1] = MultiplyAdd(factor, b1, sums[i][1]);
    }
  }
  if (block.columns == kPanelColumns) {
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) {
      auto* to = reinterpret_cast<UnalignedVector*>(block.c + i * block.c_step);
      to[0] = block.adds ? to[0] + sums[i][0] : sums[i][0];
      to[1] = block.adds ? to[1] + sums[i][1] : sums[i][1];
    }
    return;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
    alignas(64) float row[kPanelColumns];
    auto* const whole = reinterpret_cast<Vector*>(row);
    whole[0] = sums[i][0];
    whole[1] = sums[i][1];
    float* to = block.c + i * block.c_step;
    for (int64_t j = 0; j < block.columns; ++j) to[j] = block.adds ? to[j] + row[j] : row[j];
  }
}

using InnerFn = void (*)(const Block& block);
template <size_t... kIndex>
constexpr std::array<InnerFn, kRows> InnerTable(std::index_sequence<kIndex...>) {
  return {Inner<static_cast<int>(kIndex) + 1>...};
}
constexpr std::array<InnerFn, kRows> kInner = InnerTable(std::make_index_sequence<kRows>());

/// Calls body(row, count) for blocks of rows. The rest is cut into two nearly equal blocks: few rows do not hide the
/// latency of the sums.
template <class Body>
void ForBlocks(int64_t m, Body&& body) {
  for (int64_t row = 0; row < m;) {
    const int64_t left = m - row;
    const int64_t count = left >= 2 * kRows || left == kRows ? kRows : left > kRows ? (left + 1) / 2 : left;
    body(row, count);
    row += count;
  }
}

int64_t Panels(int64_t n) { return (n + kPanelColumns - 1) / kPanelColumns; }

}  // namespace

uint64_t PackedMatrix::ScratchBytes(int64_t k, int64_t m) {
  return static_cast<uint64_t>(std::min(m, kMostRows) * std::min(k, kDepth)) * sizeof(float);
}

bool PackedMatrix::FillsPanels(int64_t n) { return 4 * n >= 3 * Panels(n) * kPanelColumns; }

uint64_t PackedMatrix::Bytes(int64_t k, int64_t n) {
  return static_cast<uint64_t>(k) * static_cast<uint64_t>(Panels(n) * kPanelColumns) * sizeof(float);
}

std::shared_ptr<const PackedMatrix> PackedMatrix::Of(const float* b, bool transposed, int64_t k, int64_t n) {
  using Key = std::tuple<int64_t, int64_t, bool, uint64_t, uint64_t>;
  static std::mutex* const mutex = new std::mutex;  // protects known
  static auto* const known = new std::map<Key, std::weak_ptr<const PackedMatrix>>;
  const auto [first, second] = functors::ContentHash(b, k * n);
  const std::lock_guard<std::mutex> lock(*mutex);
  std::erase_if(*known, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const PackedMatrix>& slot = (*known)[{k, n, transposed, first, second}];
  if (std::shared_ptr<const PackedMatrix> packed = slot.lock()) return packed;
  const std::shared_ptr<PackedMatrix> made(new PackedMatrix);
  made->k_ = k;
  made->n_ = n;
  const uint64_t bytes = (Bytes(k, n) + 63) / 64 * 64;
  made->elements_ = static_cast<float*>(std::aligned_alloc(64, bytes));
  if (made->elements_ == nullptr) return nullptr;
  made->Pack(b, transposed);
  slot = made;
  return made;
}

PackedMatrix::~PackedMatrix() { std::free(elements_); }

void PackedMatrix::Pack(const float* b, bool transposed) {
  float* to = elements_;
  for (int64_t from = 0; from < k_; from += kDepth) {
    const int64_t end = std::min(k_, from + kDepth);
    for (int64_t panel = 0; panel < Panels(n_); ++panel) {
      const int64_t column = panel * kPanelColumns, width = std::min(kPanelColumns, n_ - column);
      for (int64_t p = from; p < end; ++p, to += kPanelColumns) {
        for (int64_t j = 0; j < width; ++j) to[j] = transposed ? b[(column + j) * k_ + p] : b[p * n_ + column + j];
        std::fill(to + width, to + kPanelColumns, 0.0f);
      }
    }
  }
}

void PackedMatrix::Multiply(const float* a, int64_t row_step, int64_t depth_step, int64_t m, float* c,
                            float* scratch) const {
  for (int64_t row = 0; row < m; row += kMostRows) {
    MultiplyRows(a + row * row_step, row_step, depth_step, std::min(kMostRows, m - row), c + row * n_, scratch);
  }
}

void PackedMatrix::MultiplyRows(const float* a, int64_t row_step, int64_t depth_step, int64_t m, float* c,
                                float* scratch) const {
  const float* b = elements_;
  for (int64_t from = 0; from < k_; from += kDepth) {
    const int64_t depth = std::min(kDepth, k_ - from);
    float* to = scratch;
    ForBlocks(m, [&](int64_t row, int64_t count) {
      const float* first = a + row * row_step + from * depth_step;
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t p = 0; p < depth; ++p) to[p * count + i] = first[i * row_step + p * depth_step];
      }
      to += count * depth;
    });
    for (int64_t panel = 0; panel < Panels(n_); ++panel, b += depth * kPanelColumns) {
      Block block{scratch, b, depth, c + panel * kPanelColumns, n_, std::min(kPanelColumns, n_ - panel * kPanelColumns),
                  from > 0};
      ForBlocks(m, [&](int64_t, int64_t count) {
        kInner[static_cast<size_t>(count - 1)](block);
        block.a += count * depth;
        block.c += count * n_;
      });
    }
  }
}

}  // namespace weir::kernels_eigen
