// Comparison of a checkpoint with the tensors that a model needs.
#ifndef WEIR_CORE_IO_RESTORE_REPORT_H_
#define WEIR_CORE_IO_RESTORE_REPORT_H_

#include <string>
#include <vector>

namespace weir::io {

/// Differences between a checkpoint and the wanted tensors. Names are in the order of `wanted`, extra ones sorted.
struct RestoreReport {
  struct Mismatch {
    std::string name;
    std::string text;  // "checkpoint has float [3], wanted float [4]"
  };
  std::vector<std::string> matched;
  std::vector<std::string> missing;  // wanted, not in the checkpoint
  std::vector<std::string> extra;    // in the checkpoint, not wanted
  std::vector<Mismatch> mismatched;  // another type or shape

  bool complete() const { return missing.empty() && mismatched.empty(); }
  /// Several lines: all unmatched tensors, and extra ones with names similar to a missing one.
  std::string ToString() const;
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_RESTORE_REPORT_H_
