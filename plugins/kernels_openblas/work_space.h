// OpenBLAS's work space, one for each thread that computes.
#ifndef WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_
#define WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_

namespace weir::kernels_openblas {

/// Gives the calling thread the work space that the library's next call asks for; kept until the thread ends. False
/// when the system has no memory for it. Takes no lock.
bool HaveWorkSpace();

}  // namespace weir::kernels_openblas

#endif  // WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_
