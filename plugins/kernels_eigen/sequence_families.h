// The functions of families.h for random numbers, sequences and sound.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_SEQUENCE_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_SEQUENCE_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

void AddAudio(sdk::KernelTable& k);
void AddCategorical(sdk::KernelTable& k);
void AddCtc(sdk::KernelTable& k);
void AddCtcBeam(sdk::KernelTable& k);
void AddRecurrent(sdk::KernelTable& k);
void AddRecurrentGrad(sdk::KernelTable& k);
void AddRejection(sdk::KernelTable& k);
void AddReverseSequence(sdk::KernelTable& k);
void AddSamplers(sdk::KernelTable& k);
void AddStatelessRandom(sdk::KernelTable& k);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_SEQUENCE_FAMILIES_H_
