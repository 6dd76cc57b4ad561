// Constant operands in the layouts that primitives want.
#ifndef WEIR_PLUGINS_KERNELS_ONEDNN_PACKED_H_
#define WEIR_PLUGINS_KERNELS_ONEDNN_PACKED_H_

#include <oneapi/dnnl/dnnl.h>

#include <memory>

#include "sdk/cpp/status.h"

namespace weir::kernels_onednn {

/// Elements of an array in another layout; immutable, 64-byte aligned.
using PackedArray = std::shared_ptr<const float>;

/// Copies `elements` floats at `constant` from one layout into another, or finds the copy that a kernel prepared for an
/// equal array holds. Arrays count as equal if the layouts and a hash of 128 bits over all elements are. The elements
/// lie without gaps. ResourceExhausted without memory. Thread-safe.
int32_t Pack(const dnnl_memory_desc_t& from, const void* constant, int64_t elements, const dnnl_memory_desc_t& to,
             const sdk::Error& error, PackedArray* packed);

}  // namespace weir::kernels_onednn

#endif  // WEIR_PLUGINS_KERNELS_ONEDNN_PACKED_H_
