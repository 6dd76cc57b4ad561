// Summaries, the data shown by TensorBoard, as serialized Summary messages.
#ifndef WEIR_CORE_IO_SUMMARY_H_
#define WEIR_CORE_IO_SUMMARY_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::io {

/// Distribution of values: bucket[i] counts those in [bucket_limit[i-1], bucket_limit[i]).
struct Histogram {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> bucket_limit;
  std::vector<double> bucket;
};

/// Counts values in TensorFlow's buckets: limits ±1e-12 * 1.1^k below 1e20, 0, and ±the largest double. Values must be
/// finite.
class HistogramBuilder {
 public:
  HistogramBuilder();
  void Add(double value);
  /// TensorFlow's form: a run of empty buckets becomes one entry with the last limit of the run. Without values min is
  /// the largest double and max its negative.
  Histogram Finish() const;

 private:
  Histogram totals_;
  std::vector<double> counts_;
};

/// Kinds of values in a Summary.
enum class SummaryKind { kNone, kScalar, kHistogram, kTensor, kImage, kAudio, kOther };

/// One value of a summary; the field of its kind is set.
struct SummaryValue {
  std::string tag;
  std::string plugin;  // from the metadata, or empty
  SummaryKind kind = SummaryKind::kNone;
  float scalar = 0;
  Histogram histogram;
  Tensor tensor;
  std::string encoded;  // contents of an image or audio file
};

/// The contents of a sound file and what viewers want to know about it.
struct SoundFile {
  float sample_rate = 0;
  int64_t channels = 0;
  int64_t frames = 0;  // samples of each channel
  std::string wav;
};

/// One Summary with several values.
class SummaryBuilder {
 public:
  SummaryBuilder& AddScalar(std::string_view tag, float value);
  SummaryBuilder& AddHistogram(std::string_view tag, const Histogram& histogram);
  SummaryBuilder& AddAudio(std::string_view tag, SoundFile sound);
  const std::string& Serialized() const { return bytes_; }

 private:
  std::string bytes_;
};

/// A Summary with one scalar.
std::string ScalarSummary(std::string_view tag, float value);
/// A Summary with the distribution of a host tensor of a real type and any shape. `name` is used in the errors "Nan in
/// summary histogram for: <name>" and "Infinity in summary histogram for: <name>" (InvalidArgument).
Result<std::string> HistogramSummary(std::string_view tag, const Tensor& values, std::string_view name);
/// A Summary with a host tensor. `node` and `tag` may be empty; `metadata`: a serialized SummaryMetadata.
/// InvalidArgument if it is not one.
Result<std::string> TensorSummary(std::string_view node, std::string_view tag, const Tensor& tensor,
                                  std::optional<std::string_view> metadata);
/// Merges the values of several Summaries. InvalidArgument "Duplicate tag X found in summary inputs", or for bytes that
/// are not a Summary.
Result<std::string> MergeSummaries(std::span<const std::string> summaries);

/// The values of a Summary; DataLoss for bytes that are not a Summary. A tensor that cannot be decoded has kind kOther.
Result<std::vector<SummaryValue>> DecodeSummary(std::string_view bytes);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_SUMMARY_H_
