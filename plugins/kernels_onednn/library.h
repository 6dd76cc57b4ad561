// oneDNN's functions, found by name when the first kernel is prepared: mapping the library takes a millisecond, which a
// process that chooses other kernels saves.
#ifndef WEIR_PLUGINS_KERNELS_ONEDNN_LIBRARY_H_
#define WEIR_PLUGINS_KERNELS_ONEDNN_LIBRARY_H_

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>

#include "sdk/cpp/options.h"
#include "sdk/cpp/status.h"

// The two OpenMP functions that the plugin needs; not every compiler has <omp.h>.
extern "C" {
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);
}

#define WEIR_ONEDNN_FUNCTIONS(X)                         \
  X(dnnl_dilated_convolution_backward_data_desc_init)    \
  X(dnnl_dilated_convolution_backward_weights_desc_init) \
  X(dnnl_dilated_convolution_forward_desc_init)          \
  X(dnnl_engine_create)                                  \
  X(dnnl_logsoftmax_forward_desc_init)                   \
  X(dnnl_matmul_desc_init)                               \
  X(dnnl_memory_create)                                  \
  X(dnnl_memory_desc_equal)                              \
  X(dnnl_memory_desc_get_size)                           \
  X(dnnl_memory_desc_init_by_strides)                    \
  X(dnnl_memory_desc_init_by_tag)                        \
  X(dnnl_memory_destroy)                                 \
  X(dnnl_memory_set_data_handle)                         \
  X(dnnl_primitive_attr_create)                          \
  X(dnnl_primitive_attr_destroy)                         \
  X(dnnl_primitive_attr_set_scratchpad_mode)             \
  X(dnnl_primitive_create)                               \
  X(dnnl_primitive_desc_create)                          \
  X(dnnl_primitive_desc_destroy)                         \
  X(dnnl_primitive_desc_query_md)                        \
  X(dnnl_primitive_destroy)                              \
  X(dnnl_primitive_execute)                              \
  X(dnnl_reorder_primitive_desc_create)                  \
  X(dnnl_set_max_cpu_isa)                                \
  X(dnnl_sgemm)                                          \
  X(dnnl_softmax_forward_desc_init)                      \
  X(dnnl_stream_create)                                  \
  X(dnnl_stream_destroy)                                 \
  X(omp_get_max_threads)                                 \
  X(omp_set_num_threads)

namespace weir::kernels_onednn {

/// Members have the names of their functions.
struct Library {
#define WEIR_ONEDNN_MEMBER(name) decltype(&::name) name = nullptr;
  WEIR_ONEDNN_FUNCTIONS(WEIR_ONEDNN_MEMBER)
#undef WEIR_ONEDNN_MEMBER
};

/// Loads oneDNN, once in a process, and limits it to the instruction set of the option `isa`. Unimplemented with the
/// reason if it cannot be used. Thread-safe.
int32_t LoadOneDnn(const sdk::Error& error);
/// All functions; LoadOneDnn must have succeeded.
const Library& OneDnn();

/// A part of WEIR_PLUGIN: refuses the plugin where oneDNN is missing.
struct NeedsOneDnn {
  static int32_t Start(const sdk::Options& options, const sdk::Error& error);
};

}  // namespace weir::kernels_onednn

#endif  // WEIR_PLUGINS_KERNELS_ONEDNN_LIBRARY_H_
