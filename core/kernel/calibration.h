// Measured times of competing kernels, read from a file that `tools/bench gemm` writes. This code measures nothing.
//
// The file is JSON:
//   {"weir_calibration": 1, "machine": "…",                     one text, not read
//    "points": [{"op": "MatMul", "dtype": "float32",            element type of the first input
//                "flags": ["transpose_b"],                      boolean attributes that are true, sorted
//                "inputs": [[32, 784], [512, 784]],             shapes
//                "constant": [1],                               inputs whose values are known when a plan is made
//                "ns": {"kernels_eigen": 412000, …}}, …]}       by plugin
#ifndef WEIR_CORE_KERNEL_CALIBRATION_H_
#define WEIR_CORE_KERNEL_CALIBRATION_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/prepared.h"
#include "core/op/attrs.h"

namespace weir::kernel {

/// Immutable; thread-safe.
class Calibration {
 public:
  /// InvalidArgument, naming `source` and the fault, for invalid JSON, another version, more than 100,000 points, a
  /// point with a missing or mistyped field, an unknown element type, a negative extent, or a time that is not
  /// positive.
  static Result<std::shared_ptr<const Calibration>> Parse(std::string_view text, const std::string& source);
  /// As Parse, for a file of at most 64 MiB.
  static Result<std::shared_ptr<const Calibration>> Read(const std::string& path);

  /// Times in ns of the plugins' kernels, in the order of `plugins`, from the measured point nearest to the node: same
  /// op, element type, flags and constants, and every extent within a factor of two. For comparison, not for
  /// prediction. Empty if no such point covers all plugins.
  std::vector<double> Times(const op::AttrView& attrs, std::span<const OperandSpec> inputs,
                            std::span<const std::string> plugins) const;

  size_t size() const { return points_.size(); }

 private:
  struct Point {
    std::vector<Shape> inputs;
    std::map<std::string, double, std::less<>> ns;
  };
  /// The key joins op, element type, flags and constants.
  std::multimap<std::string, Point, std::less<>> points_;
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_CALIBRATION_H_
