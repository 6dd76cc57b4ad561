// FinishRows for plugins that are not compiled for one instruction set: the code is chosen when it is called.
#ifndef WEIR_PLUGINS_FUNCTORS_FINISH_ROWS_H_
#define WEIR_PLUGINS_FUNCTORS_FINISH_ROWS_H_

#include "plugins/functors/activation.h"
#include "sdk/cpp/cpu.h"

namespace weir::functors {

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void FinishRowsByAvx2(const Finish& finish, T* c, const T* bias, const T* addend,
                                                  int64_t rows, int64_t columns) {
  FinishRows(finish, c, bias, addend, rows, columns);
}
template <class T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")]] void FinishRowsByAvx512(
    const Finish& finish, T* c, const T* bias, const T* addend, int64_t rows, int64_t columns) {
  FinishRows(finish, c, bias, addend, rows, columns);
}
#endif

/// FinishRows with the widest vectors that the processor has and the plugin's option `isa` allows.
template <class T>
void FinishRowsHere(const Finish& finish, T* c, const std::type_identity_t<T>* bias,
                    const std::type_identity_t<T>* addend, int64_t rows, int64_t columns) {
#if defined(__x86_64__)
  const sdk::Isa isa = sdk::ThisCpu().Below(sdk::HighestIsa());
  if (isa == sdk::Isa::kV4) return FinishRowsByAvx512(finish, c, bias, addend, rows, columns);
  if (isa == sdk::Isa::kV3) return FinishRowsByAvx2(finish, c, bias, addend, rows, columns);
#endif
  FinishRows(finish, c, bias, addend, rows, columns);
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_FINISH_ROWS_H_
