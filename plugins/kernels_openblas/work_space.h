// OpenBLAS's work space, one per computing thread.
#ifndef WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_
#define WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_

namespace weir::kernels_openblas {

/// See Library.
bool HaveWorkSpace();

}  // namespace weir::kernels_openblas

#endif  // WEIR_PLUGINS_KERNELS_OPENBLAS_WORK_SPACE_H_
