// Estimated kernel times from declared work and device rates.
#ifndef WEIR_CORE_KERNEL_ROOFLINE_H_
#define WEIR_CORE_KERNEL_ROOFLINE_H_

#include <span>
#include <string>

#include "core/kernel/prepared.h"
#include "core/tensor/dtype.h"
#include "sdk/abi/cost.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// Returns `otherwise` for a figure that is NaN, infinite or not positive.
double KnownOr(double figure, double otherwise);

/// Work of a record without `estimate`: its class, flops per element of the largest operand, every operand moved once.
weir_cost DeclaredWork(const weir_kernel& record, std::span<const OperandSpec> inputs,
                       std::span<const OperandSpec> outputs);

/// What is wrong with the work that a record declares, or empty. A faulty figure counts as not declared.
std::string WorkFault(const weir_kernel& record);

/// Assumed rates of a device without declared ones: modest, so that missing figures do not attract work.
inline constexpr double kAssumedFlopsPerNs = 1;
inline constexpr double kAssumedBytesPerNs = 10;

/// launch + fixed + max(flops / (peak * efficiency * saturation), bytes / (bandwidth * efficiency * saturation)) in ns,
/// or `cost.whole_ns` if set. Bytes that fit the device's cache use the cache bandwidth. `profile` may be null;
/// `launch_ns` is used if it has no launch time.
double RooflineNs(const weir_cost& cost, const weir_profile* profile, DType dtype, double launch_ns = 0);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_ROOFLINE_H_
