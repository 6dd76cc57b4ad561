// The source of a region: a CUDA C++ kernel of which every thread computes elements of all results.
#ifndef WEIR_PLUGINS_COMPILER_NVRTC_SOURCE_H_
#define WEIR_PLUGINS_COMPILER_NVRTC_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sdk/abi/compiler.h"

namespace weir::compiler_nvrtc {

inline constexpr uint32_t kMostPointers = 128;  // inputs and outputs of a kernel
inline constexpr uint32_t kMostNodes = 256;     // of a kernel
inline constexpr int kThreads = 256;            // of a block
inline constexpr const char* kEntry = "weir_region";

/// The value of this number.
const weir_region_value& ValueOf(const weir_region& region, uint32_t number);

/// Elements of a shape; none if there are none, or more than a kernel counts (2^40), or more axes than 16.
std::optional<int64_t> ElementsOf(const weir_shape& shape);

/// Whether the node can be part of a kernel whose results have the shape `dims`: there is code for it, its result has
/// the shape, and its operands are broadcast to it. Else `why` says what is not.
bool FitsKernel(const weir_region& region, const weir_region_node& node, const weir_shape& dims, std::string* why);

/// `extern "C" __global__ void <name>(inputs..., outputs...)`, to stand behind the preludes. Pointers come in the
/// order of the registers; threads and blocks may be any number. None, with a reason, if a node has no code. Pure:
/// equal regions give equal texts.
std::optional<std::string> SourceOf(const weir_region& region, std::string_view name, std::string* why);

}  // namespace weir::compiler_nvrtc

#endif  // WEIR_PLUGINS_COMPILER_NVRTC_SOURCE_H_
