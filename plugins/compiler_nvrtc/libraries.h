// NVRTC and the CUDA driver, opened when they are first needed: the plugin links neither, and no header of CUDA is
// needed to build it. Thread-safe.
#ifndef WEIR_PLUGINS_COMPILER_NVRTC_LIBRARIES_H_
#define WEIR_PLUGINS_COMPILER_NVRTC_LIBRARIES_H_

#include <cstdint>
#include <memory>
#include <string>

namespace weir::compiler_nvrtc {

/// Compute capability for which source is compiled. PTX runs on this and later ones.
inline constexpr const char* kArchitecture = "compute_80";

/// Compiles CUDA C++ to PTX, without fused products and sums. False with a reason, which is the compiler's log if there
/// is one: NVRTC is not installed, or refuses the source.
bool CompileToPtx(const std::string& source, std::string* ptx, std::string* why);

/// Whether a card can run code: the driver is installed and new enough. Opened once; `why` is the one reason.
bool HasDriver(std::string* why);

/// A kernel in the driver, loaded into a card's context when it is first launched there.
class LoadedKernel {
 public:
  /// Null with a reason. `ptx` ends with a zero byte behind its text.
  static std::unique_ptr<LoadedKernel> Load(const std::string& ptx, const char* entry, std::string* why);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  /// Enqueues `blocks` blocks of `threads` threads on a CUstream. `arguments`: an address for each pointer of the
  /// kernel. Returns 0 or the driver's code. Several calls at once.
  int Launch(uint64_t stream, uint32_t blocks, uint32_t threads, void** arguments) const;
  /// The driver's name of a code.
  static const char* NameOf(int code);

 private:
  LoadedKernel() = default;
  void* library_ = nullptr;  // CUlibrary
  void* kernel_ = nullptr;   // CUkernel, which launches take in place of a CUfunction
};

}  // namespace weir::compiler_nvrtc

#endif  // WEIR_PLUGINS_COMPILER_NVRTC_LIBRARIES_H_
