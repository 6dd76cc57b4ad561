// FinishRows for plugins that are not compiled for one instruction set: the code is chosen when it is called.
#ifndef WEIR_PLUGINS_FUNCTORS_FINISH_ROWS_H_
#define WEIR_PLUGINS_FUNCTORS_FINISH_ROWS_H_

#include "plugins/functors/activation.h"
#include "sdk/cpp/cpu.h"

namespace weir::functors {

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void FinishRowsByAvx2(Activation activation, T* c, const T* bias, int64_t rows,
                                                  int64_t columns) {
  FinishRows(activation, c, bias, rows, columns);
}
template <class T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")]] void FinishRowsByAvx512(
    Activation activation, T* c, const T* bias, int64_t rows, int64_t columns) {
  FinishRows(activation, c, bias, rows, columns);
}
#endif

/// FinishRows with the widest vectors that the processor has and the plugin's option `isa` allows.
template <class T>
void FinishRowsHere(Activation activation, T* c, const T* bias, int64_t rows, int64_t columns) {
#if defined(__x86_64__)
  const sdk::Isa isa = sdk::ThisCpu().Below(sdk::HighestIsa());
  if (isa == sdk::Isa::kV4) return FinishRowsByAvx512(activation, c, bias, rows, columns);
  if (isa == sdk::Isa::kV3) return FinishRowsByAvx2(activation, c, bias, rows, columns);
#endif
  FinishRows(activation, c, bias, rows, columns);
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_FINISH_ROWS_H_
