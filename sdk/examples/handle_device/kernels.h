// Kernels of the example's device.
#ifndef WEIR_SDK_EXAMPLES_HANDLE_DEVICE_KERNELS_H_
#define WEIR_SDK_EXAMPLES_HANDLE_DEVICE_KERNELS_H_

#include "sdk/cpp/kernel.h"

namespace handle_device {

/// What a small dense network and its gradients need, for floats.
void AddKernels(weir::sdk::KernelTable& k);

}  // namespace handle_device

#endif  // WEIR_SDK_EXAMPLES_HANDLE_DEVICE_KERNELS_H_
