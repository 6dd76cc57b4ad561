// The functions of families.h for random numbers, sequences and sound.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_SEQUENCE_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_SEQUENCE_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

[[gnu::cold]] void AddAudio(sdk::KernelTable& k);
[[gnu::cold]] void AddCategorical(sdk::KernelTable& k);
[[gnu::cold]] void AddCtc(sdk::KernelTable& k);
[[gnu::cold]] void AddCtcBeam(sdk::KernelTable& k);
[[gnu::cold]] void AddRecurrent(sdk::KernelTable& k);
[[gnu::cold]] void AddRecurrentGrad(sdk::KernelTable& k);
[[gnu::cold]] void AddRejection(sdk::KernelTable& k);
[[gnu::cold]] void AddReverseSequence(sdk::KernelTable& k);
[[gnu::cold]] void AddSamplers(sdk::KernelTable& k);
[[gnu::cold]] void AddStatelessRandom(sdk::KernelTable& k);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_SEQUENCE_FAMILIES_H_
