// Times of kernels and transfers that runs of steps took, for predictions. `weir profile record` writes them, and a
// session that places steps again collects them. This code measures nothing.
//
// The file is JSON:
//   {"weir_measured": 1,
//    "devices": {"CPU AMD EPYC …": {                            the fingerprint of a device
//      "plugins": {"kernels_eigen": "0.1.0", …},                its kernel sets with their versions
//      "gap_ns": 120,                                           time of the executor between two kernels
//      "kernels": [{"key": "MatMul float[32,784] …",            MeasuredKey
//                   "n": 12, "median_ns": 4120, "mad_ns": 80, "min_ns": 4000, "last_ns": 4200,
//                   "declared_ns": 3900}, …]}},                 what the kernel's plugin predicts
//    "links": {"CPU:0->GPU:0": [[4096, 1800], …]}}              bytes and ns of transfers
#ifndef WEIR_CORE_KERNEL_MEASURED_H_
#define WEIR_CORE_KERNEL_MEASURED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/kernel/prepared.h"
#include "core/op/attrs.h"

namespace weir::kernel {

/// Samples of one kernel's time.
struct MeasuredTime {
  int64_t n = 0;
  double median_ns = 0;
  double mad_ns = 0;  // median of the distances from the median
  double min_ns = 0;
  double last_ns = 0;
  double declared_ns = 0;  // 0 = unknown
};

struct MeasuredDevice {
  std::map<std::string, std::string> plugins;
  double gap_ns = 0;
  std::map<std::string, MeasuredTime> kernels;  // by MeasuredKey
};

/// A copyable value. Samples of the present process are kept to form medians; those of a file count by their median.
class MeasuredCosts {
 public:
  /// At least this many samples make a time, fewer are ignored.
  static constexpr int64_t kEnough = 3;

  /// InvalidArgument, naming `source` and the fault, for invalid JSON, another version, more than 100,000 times, a
  /// missing or mistyped field, and a time that is negative, infinite or not a number.
  static Result<MeasuredCosts> Parse(std::string_view text, const std::string& source);
  /// As Parse, for a file of at most 64 MiB.
  static Result<MeasuredCosts> Read(const std::string& path);
  /// True if the text looks like such a file, so that errors of Parse are the right ones to report.
  static bool IsMeasured(std::string_view text);
  std::string ToJson() const;

  /// Adds a sample. Ignores a time that is negative or not finite.
  void Add(const std::string& device, const std::string& key, double ns, double declared_ns);
  void AddTransfer(const std::string& link, uint64_t bytes, double ns);
  void SetDevice(const std::string& device, std::map<std::string, std::string> plugins, double gap_ns);
  /// Adds all of `other`. Of equal keys, the one with more samples counts; the later one if equal.
  void Merge(const MeasuredCosts& other);

  /// The time of a kernel with at least kEnough samples; null otherwise.
  const MeasuredTime* Find(const std::string& device, const std::string& key) const;
  /// The median of measured over declared time of an op's kernels with enough samples; 0 if there are none. O(kernels).
  double Factor(const std::string& device, std::string_view op) const;
  /// The largest recorded key of the kernels that differ from `key` only in the extents of their operands, if all of
  /// them have fewer elements; null otherwise. Borrowed. O(kernels of the op).
  const std::string* Outgrown(const std::string& device, const std::string& key) const;
  double GapNs(const std::string& device) const;
  /// Latency and rate of a link, by least squares over its transfers; nullopt for fewer than kEnough.
  struct Link {
    double latency_ns = 0;
    double bytes_per_ns = 0;
  };
  std::optional<Link> FindLink(const std::string& link) const;

  const std::map<std::string, MeasuredDevice>& devices() const { return devices_; }
  const std::map<std::string, std::vector<std::pair<double, double>>>& transfers() const { return transfers_; }
  bool empty() const { return devices_.empty() && transfers_.empty(); }
  size_t size() const;

 private:
  static constexpr size_t kMostSamples = 64;
  static constexpr size_t kMostTransfers = 1000;

  std::map<std::string, MeasuredDevice> devices_;
  std::map<std::string, std::map<std::string, std::vector<double>>> samples_;  // of this process; the latest ones
  std::map<std::string, std::vector<std::pair<double, double>>> transfers_;    // by link: bytes, ns
};

/// Identifies a kind of device in such a file: kind, description, driver.
std::string FingerprintOf(const device::DeviceInfo& device);

/// What the time of a node's kernel depends on: the op, types and shapes of operands, and all attributes but types,
/// shapes, functions and values.
std::string MeasuredKey(const op::AttrView& attrs, std::span<const OperandSpec> inputs);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_MEASURED_H_
