// The compilers of a process: what they propose, what they compiled, and what is kept of it.
#ifndef WEIR_CORE_COMPILE_COMPILERS_H_
#define WEIR_CORE_COMPILE_COMPILERS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/compile/executable.h"
#include "core/compile/region.h"
#include "core/compile/target.h"
#include "core/kernel/compiler_entry.h"

namespace weir::compile {

/// A set of a candidate's nodes that a compiler wants.
struct Proposal {
  size_t compiler = 0;          // number
  std::vector<uint32_t> nodes;  // ascending
  double predicted_ns = 0;
  double compile_ns = 0;  // NaN: unknown
  std::string reason;
};

struct CompileLimits {
  std::chrono::milliseconds time{10000};  // of a call; a compiler that exceeds it is not called again
  uint64_t max_tiles = 1;
  bool keep = true;  // files in the cache folder
};

/// Executables by key, handed from the stage that compiles to the one that plans.
using Executables = std::map<std::string, std::shared_ptr<const Executable>, std::less<>>;

/// Thread-safe.
class Compilers {
 public:
  /// `isa`: the widest instruction set allowed, "x86-64" to "x86-64-v4".
  Compilers(std::vector<kernel::CompilerEntry> entries, std::string isa);

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const std::string& name(size_t compiler) const { return entries_[compiler].plugin; }
  /// The target for a device of the platform; `profile` may be null.
  Target TargetFor(std::string_view platform, const weir_profile* profile) const;

  /// The proposals of all compilers for a candidate, which may be a loop. Faults of plugins are added to `notes`, each
  /// text once in the process.
  std::vector<Proposal> Claim(const Target& target, const Region& candidate, std::chrono::milliseconds limit,
                              std::vector<std::string>& notes);

  struct Compiled {
    std::string key;
    std::shared_ptr<const Executable> executable;
  };
  /// The region compiled: an executable that is still in use, or read from a file, or made now and kept in a file.
  /// Damaged or stale files are made anew, and `notes` says so, as of errors other than Unimplemented. An error of the
  /// compiler is remembered for the region.
  /// DeadlineExceeded if it takes too long: the compiler is asked to cancel and is not called again; Unimplemented from
  /// then on.
  Result<Compiled> Compile(size_t compiler, const Target& target, const Region& region, const CompileLimits& limits,
                           std::vector<std::string>& notes);

 private:
  struct Job;
  std::string KeyOf(size_t compiler, const Target& target, const Region& region, uint64_t max_tiles) const;
  Result<std::shared_ptr<const Executable>> Make(size_t compiler, const std::string& key, const Target& target,
                                                 const Region& region, const CompileLimits& limits,
                                                 std::vector<std::string>& notes);
  bool IsHung(size_t compiler);
  void SetHung(size_t compiler);
  void Note(std::string text, std::vector<std::string>& notes);

  const std::vector<kernel::CompilerEntry> entries_;
  const std::string isa_;
  std::mutex mutex_;  // protects everything below
  std::set<size_t> hung_;
  std::map<std::string, std::weak_ptr<const Executable>> alive_;  // by key
  std::map<std::string, Status> failed_;                          // by key
  std::set<std::string> told_;                                    // notes
};

}  // namespace weir::compile

#endif  // WEIR_CORE_COMPILE_COMPILERS_H_
