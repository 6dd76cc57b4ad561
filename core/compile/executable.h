// A compiled region.
#ifndef WEIR_CORE_COMPILE_EXECUTABLE_H_
#define WEIR_CORE_COMPILE_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/compile/region.h"
#include "core/kernel/compiler_entry.h"
#include "core/kernel/prepared.h"

namespace weir::compile {

/// Owns a plugin's executable, whose description was compared with the region. Immutable; calls may be concurrent.
class Executable {
 public:
  /// Takes over `made`, which is destroyed on errors. Internal if its io_spec is not that of the region, or names an
  /// alias, a size, an alignment or a number of tiles that cannot be.
  static Result<std::shared_ptr<const Executable>> Take(const kernel::CompilerEntry& compiler, weir_executable* made,
                                                        const Region& region, uint64_t max_tiles);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const kernel::CompilerEntry& compiler() const { return compiler_; }
  weir_executable* get() const { return made_; }
  /// The contract of a weir_kernel_fn; an exception becomes WEIR_INTERNAL.
  int32_t Run(const weir_reg* regs, const weir_env* env) const noexcept;
  const std::vector<weir_alias>& aliases() const { return aliases_; }
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t scratch_alignment() const { return scratch_alignment_; }
  uint64_t tiles() const { return tiles_; }
  const kernel::KernelEntry& entry() const { return entry_; }

 private:
  Executable(const kernel::CompilerEntry& compiler, weir_executable* made);
  Status ReadSpec(const Region& region, uint64_t max_tiles);

  const kernel::CompilerEntry compiler_;
  weir_executable* const made_;
  std::vector<weir_alias> aliases_;
  uint64_t scratch_bytes_ = 0;
  uint64_t scratch_alignment_ = 1;
  uint64_t tiles_ = 1;
  kernel::KernelEntry entry_;
};

/// The executable as a kernel of a plan, which keeps it alive.
std::unique_ptr<kernel::PreparedKernel> AsKernel(std::shared_ptr<const Executable> executable);

}  // namespace weir::compile

#endif  // WEIR_CORE_COMPILE_EXECUTABLE_H_
