// Products in the steps of recurrent blocks, of floats or halves, summed in floats.
#ifndef WEIR_PLUGINS_GPU_KERNELS_RECURRENT_H_
#define WEIR_PLUGINS_GPU_KERNELS_RECURRENT_H_

#include "plugins/gpu/kernels/storage.h"
#include "plugins/gpu/kernels/tiled.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {

/// A matrix whose elements are `row_step` and `column_step` apart. kTurned: it is stored as its transpose.
template <class S, bool kTurned = false>
struct StepMatrix {
  static constexpr bool kRowsContiguous = kTurned, kColumnsContiguous = !kTurned;
  Ptr<const char> data;
  int64_t first, row_step, column_step;
  S storage;
  WEIR_GPU_FN float operator()(int64_t, int64_t i, int64_t j) const {
    return storage.Load(data.get(), first + i * row_step + j * column_step);
  }
};
/// [rows, columns] from element `first` on; the transpose of such a matrix.
template <class S>
StepMatrix<S> StoredMatrix(Ptr<const char> data, int64_t columns, S storage, int64_t first = 0) {
  return {data, first, columns, 1, storage};
}
template <class S>
StepMatrix<S, true> TurnedMatrix(Ptr<const char> data, int64_t columns, S storage, int64_t first = 0) {
  return {data, first, 1, columns, storage};
}
inline StepMatrix<Exact<float>> FloatMatrix(const float* data, int64_t columns) {
  return StoredMatrix(Ptr<const char>(reinterpret_cast<const char*>(data)), columns, Exact<float>());
}

template <class S>
struct StepResult {
  Ptr<char> data;
  int64_t first, columns;
  S storage;
  WEIR_GPU_FN void operator()(int64_t, int64_t i, int64_t j, float x) const {
    storage.Store(data.get(), first + i * columns + j, x);
  }
};

/// c = a b, with a [m, k] and b [k, n]; zeros if k is 0. `first`: of c's elements.
template <class A, class B, class S>
int32_t MultiplyStep(const sdk::Env& env, int64_t m, int64_t n, int64_t k, const A& a, const B& b, Ptr<char> c,
                     S storage, int64_t first = 0) {
  if (m == 0 || n == 0) return WEIR_OK;
  return TiledProduct<float, A, B, StepResult<S>>(m, n, k, a, b, StepResult<S>{c, first, n, storage}).Enqueue(env, 1);
}
template <class A, class B>
int32_t MultiplyStep(const sdk::Env& env, int64_t m, int64_t n, int64_t k, const A& a, const B& b, float* c) {
  return MultiplyStep(env, m, n, k, a, b, Ptr<char>(reinterpret_cast<char*>(c)), Exact<float>());
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_RECURRENT_H_
