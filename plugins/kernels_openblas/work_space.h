// OpenBLAS's work space, one per computing thread.
#ifndef WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_
#define WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_

namespace weir::kernels_openblas {

/// Allocates the calling thread's work space for the library's next call; it is kept until the thread ends. False if
/// the system has no memory for it. Takes no lock.
bool HaveWorkSpace();

}  // namespace weir::kernels_openblas

#endif  // WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_
