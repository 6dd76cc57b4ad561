// Measured times of competing kernels and rates of their device, read from a file that `weir profile calibrate` or
// `tools/bench gemm` writes. This code measures nothing.
//
// The file is JSON; device, plugins and rates may be missing:
//   {"weir_calibration": 1, "machine": "…",                     one text, not read
//    "device": "AMD EPYC …",                                    the description of the device that was measured
//    "plugins": {"kernels_eigen": "0.1.0", …},                  its kernel sets with their versions
//    "rates": {"float32": 100, "float64": 50,                   operations per ns by element type
//              "memory": 20, "cache": 80},                      bytes per ns, from memory and from the second cache
//    "points": [{"op": "MatMul", "dtype": "float32",            element type of the first input
//                "flags": ["transpose_b"],                      boolean attributes that are true and not so by default
//                "settings": {"padding": "SAME",                attributes that are texts or lists of integers and not
//                             "strides": [1, 2, 2, 1]},         the defaults; may be missing
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
#include "core/device/device.h"
#include "core/kernel/prepared.h"
#include "core/op/attrs.h"

namespace weir::kernel {

/// Immutable; thread-safe.
class Calibration {
 public:
  /// InvalidArgument, naming `source` and the fault, for invalid JSON, another version, more than 100,000 points, a
  /// point with a missing or mistyped field, an unknown element type, a negative extent, or a time or rate that is not
  /// positive.
  static Result<std::shared_ptr<const Calibration>> Parse(std::string_view text, const std::string& source);
  /// As Parse, for a file of at most 64 MiB.
  static Result<std::shared_ptr<const Calibration>> Read(const std::string& path);

  /// Empty if the file does not say.
  const std::string& device() const { return device_; }
  const std::map<std::string, std::string>& plugins() const { return plugins_; }
  const device::CostFigures& rates() const { return rates_; }

  /// Times in ns of the plugins' kernels, in the order of `plugins`, from the measured point nearest to the node: same
  /// op, element type, flags, settings and constants, and every extent within a factor of two. For comparison, not for
  /// prediction. A fused op without such a point has the times of the op whose operands are its first ones: of
  /// MatMul(a, b) for Relu(BiasAdd(MatMul(a, b), bias)). Empty if no such point covers all plugins.
  std::vector<double> Times(const op::AttrView& attrs, std::span<const OperandSpec> inputs,
                            std::span<const std::string> plugins) const;

  size_t size() const { return points_.size(); }

 private:
  struct Point {
    std::vector<Shape> inputs;
    std::map<std::string, double, std::less<>> ns;
  };
  std::string device_;
  std::map<std::string, std::string> plugins_;
  device::CostFigures rates_;
  /// The times of a point of that key near these shapes; empty if there is none with all plugins.
  std::vector<double> Nearest(const std::string& key, std::span<const OperandSpec> inputs,
                              std::span<const std::string> plugins) const;

  /// The key joins op, element type, flags, settings and constants.
  std::multimap<std::string, Point, std::less<>> points_;
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_CALIBRATION_H_
