// A compiled region: PTX, with what it takes and gives, and its form in bytes.
#ifndef WEIR_PLUGINS_COMPILER_NVRTC_EXECUTABLE_H_
#define WEIR_PLUGINS_COMPILER_NVRTC_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugins/compiler_nvrtc/libraries.h"
#include "plugins/functors/kept_regions.h"
#include "sdk/abi/compiler.h"
#include "sdk/cpp/status.h"

namespace weir::compiler_nvrtc {

/// Everything about an executable but the kernel in the driver.
struct Description {
  std::vector<functors::Described> inputs, outputs;
  int64_t elements = 1;  // of each output
  std::string ptx;

  /// Of a region that SourceOf takes.
  static Description Of(const weir_region& region, std::string ptx);
  std::string ToBytes() const;
  /// False with a reason for bytes that are damaged or of another build of the plugin.
  static bool FromBytes(std::span<const uint8_t> bytes, Description* description, std::string* why);
  /// WEIR_COMPAT_*.
  static int32_t Compare(std::span<const uint8_t> bytes);
};

/// Text on which the code depends beside region and target.
std::string BuildText();

class Executable {
 public:
  /// `kernel` may be null: then the executable can be kept, but not run.
  Executable(Description description, std::unique_ptr<LoadedKernel> kernel);
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  std::string Serialize() const { return description_.ToBytes(); }
  void FillSpec(weir_executable_spec* spec) const;
  /// Enqueues the kernel on the stream of the call.
  int32_t Run(const weir_reg* regs, const weir_env* env) const;

 private:
  const Description description_;
  const std::unique_ptr<LoadedKernel> kernel_;
  std::vector<weir_region_value> values_;  // inputs, then outputs
  std::vector<const weir_region_value*> pointers_;
  std::vector<weir_alias> aliases_;
};

}  // namespace weir::compiler_nvrtc

#endif  // WEIR_PLUGINS_COMPILER_NVRTC_EXECUTABLE_H_
