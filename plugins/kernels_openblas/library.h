// OpenBLAS in a file of its own, lib/weir/kernels_openblas/gemm.so, loaded when the first kernel is prepared. Its
// tables of kernels for all processors take a hundred pages, which a process that chooses other kernels saves.
#ifndef WEIR_PLUGINS_KERNELS_OPENBLAS_LIBRARY_H_
#define WEIR_PLUGINS_KERNELS_OPENBLAS_LIBRARY_H_

#include <cblas.h>

#include <cstdint>

#include "sdk/cpp/isa.h"
#include "sdk/cpp/status.h"

namespace weir::kernels_openblas {

/// Members have the names of their functions.
struct Library {
  decltype(&::cblas_sgemm) cblas_sgemm;
  decltype(&::cblas_dgemm) cblas_dgemm;
  decltype(&::cblas_cgemm) cblas_cgemm;
  decltype(&::cblas_zgemm) cblas_zgemm;
  decltype(&::cblas_sgemv) cblas_sgemv;
  decltype(&::cblas_dgemv) cblas_dgemv;
  /// Allocates the calling thread's work space for the library's next call; it is kept until the thread ends. False if
  /// the system has no memory for it. Takes no lock.
  bool (*have_work_space)();
};

/// Loads OpenBLAS, once in a process, and limits it to the instruction set of the option `isa`. Unimplemented with the
/// reason if it cannot be used. Thread-safe.
int32_t LoadOpenBlas(const sdk::Error& error);
/// All functions; LoadOpenBlas must have succeeded.
const Library& OpenBlas();

/// What gemm.so exports: the functions, of kernels up to `highest`. Called once.
using LibraryFn = const Library* (*)(sdk::Isa highest);

}  // namespace weir::kernels_openblas

// To be raised with each change of Library.
#define WEIR_OPENBLAS_SYMBOL "weir_openblas_1"

#endif  // WEIR_PLUGINS_KERNELS_OPENBLAS_LIBRARY_H_
