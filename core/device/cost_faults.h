// Figures of cost/1 that cannot be meant.
#ifndef WEIR_CORE_DEVICE_COST_FAULTS_H_
#define WEIR_CORE_DEVICE_COST_FAULTS_H_

#include <string>
#include <vector>

#include "sdk/abi/cost.h"

namespace weir::device {

/// Describes figures that are zero where that is impossible, negative, infinite, or beyond all hardware: "launch_ns is
/// -3, wanted 0.001 to 1e+08". Replaces them by NaN, which means unknown, unless they make the device slow.
std::vector<std::string> ClearFaults(weir_profile& profile);
std::vector<std::string> ClearFaults(weir_link& link);

/// The first few descriptions and the number of the others.
std::string ListFaults(const std::vector<std::string>& faults);

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_COST_FAULTS_H_
