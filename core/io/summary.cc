#include "core/io/summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/errors.h"
#include "core/io/coding.h"
#include "core/proto/parse.h"
#include "core/tensor/number.h"
#include "core/tensor/tensor_proto.h"
#include "weir/proto/event.pb.h"

namespace weir::io {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
// Tensors in summaries are small; limits the memory used for damaged ones.
constexpr uint64_t kTensorBudget = 64 << 20;

constexpr uint64_t kLengthDelimited = 2, kFixed32 = 5;
constexpr uint64_t Key(int field, uint64_t wire_type) { return static_cast<uint64_t>(field) << 3 | wire_type; }

const std::vector<double>& BucketLimits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    positive.push_back(kLargest);
    std::vector<double> all;
    for (size_t i = positive.size(); i-- > 0;) all.push_back(-positive[i]);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

Histogram FromProto(const tf::HistogramProto& proto) {
  Histogram histogram{proto.min(), proto.max(), proto.num(), proto.sum(), proto.sum_squares(), {}, {}};
  histogram.bucket_limit.assign(proto.bucket_limit().begin(), proto.bucket_limit().end());
  histogram.bucket.assign(proto.bucket().begin(), proto.bucket().end());
  return histogram;
}

void ToProto(const Histogram& histogram, tf::HistogramProto& proto) {
  proto.set_min(histogram.min);
  proto.set_max(histogram.max);
  proto.set_num(histogram.num);
  proto.set_sum(histogram.sum);
  proto.set_sum_squares(histogram.sum_squares);
  for (const double limit : histogram.bucket_limit) proto.add_bucket_limit(limit);
  for (const double count : histogram.bucket) proto.add_bucket(count);
}

SummaryValue FromProto(const tf::Summary::Value& proto) {
  SummaryValue value;
  value.tag = proto.tag();
  value.plugin = proto.metadata().plugin_data().plugin_name();
  switch (proto.value_case()) {
    case tf::Summary::Value::kSimpleValue:
      value.kind = SummaryKind::kScalar;
      value.scalar = proto.simple_value();
      break;
    case tf::Summary::Value::kHisto:
      value.kind = SummaryKind::kHistogram;
      value.histogram = FromProto(proto.histo());
      break;
    case tf::Summary::Value::kTensor: {
      ExpansionBudget budget{kTensorBudget};
      Result<Tensor> tensor = TensorFromProto(proto.tensor(), &budget);
      value.kind = tensor.ok() ? SummaryKind::kTensor : SummaryKind::kOther;
      if (tensor.ok()) value.tensor = std::move(*tensor);
      break;
    }
    case tf::Summary::Value::kImage:
      value.kind = SummaryKind::kImage;
      value.encoded = proto.image().encoded_image_string();
      break;
    case tf::Summary::Value::kAudio:
      value.kind = SummaryKind::kAudio;
      value.encoded = proto.audio().encoded_audio_string();
      break;
    case tf::Summary::Value::kObsoleteOldStyleHistogram:
      value.kind = SummaryKind::kOther;
      break;
    case tf::Summary::Value::VALUE_NOT_SET:
      break;
  }
  return value;
}

}  // namespace

HistogramBuilder::HistogramBuilder() : counts_(BucketLimits().size()) {
  totals_.min = kLargest;
  totals_.max = -kLargest;
}

void HistogramBuilder::Add(double value) {
  const std::vector<double>& limits = BucketLimits();
  const auto limit = std::upper_bound(limits.begin(), limits.end() - 1, value);
  counts_[static_cast<size_t>(limit - limits.begin())] += 1;
  totals_.min = std::min(totals_.min, value);
  totals_.max = std::max(totals_.max, value);
  totals_.num += 1;
  totals_.sum += value;
  totals_.sum_squares += value * value;
}

Histogram HistogramBuilder::Finish() const {
  const std::vector<double>& limits = BucketLimits();
  Histogram histogram = totals_;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const bool goes_on = counts_[i] == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0;
    if (goes_on) continue;
    histogram.bucket_limit.push_back(limits[i]);
    histogram.bucket.push_back(counts_[i]);
  }
  return histogram;
}

SummaryBuilder& SummaryBuilder::AddScalar(std::string_view tag, float value) {
  // A Value in wire format: its tag, unless that is empty, and the number.
  std::string added;
  added.reserve(tag.size() + 16);
  if (!tag.empty()) {
    AppendVarint(added, Key(tf::Summary::Value::kTagFieldNumber, kLengthDelimited));
    AppendVarint(added, tag.size());
    added += tag;
  }
  AppendVarint(added, Key(tf::Summary::Value::kSimpleValueFieldNumber, kFixed32));
  AppendFixed32(added, std::bit_cast<uint32_t>(value));
  // Concatenated serialized messages of one type are their merge.
  AppendVarint(bytes_, Key(tf::Summary::kValueFieldNumber, kLengthDelimited));
  AppendVarint(bytes_, added.size());
  bytes_ += added;
  return *this;
}

SummaryBuilder& SummaryBuilder::AddHistogram(std::string_view tag, const Histogram& histogram) {
  tf::Summary summary;
  tf::Summary::Value& added = *summary.add_value();
  added.set_tag(std::string(tag));
  ToProto(histogram, *added.mutable_histo());
  bytes_ += summary.SerializeAsString();
  return *this;
}

SummaryBuilder& SummaryBuilder::AddAudio(std::string_view tag, SoundFile sound) {
  tf::Summary summary;
  tf::Summary::Value& added = *summary.add_value();
  added.set_tag(std::string(tag));
  tf::Summary::Audio& audio = *added.mutable_audio();
  audio.set_sample_rate(sound.sample_rate);
  audio.set_num_channels(sound.channels);
  audio.set_length_frames(sound.frames);
  audio.set_encoded_audio_string(std::move(sound.wav));
  audio.set_content_type("audio/wav");
  bytes_ += summary.SerializeAsString();
  return *this;
}

Result<std::string> TensorSummary(std::string_view node, std::string_view tag, const Tensor& tensor,
                                  std::optional<std::string_view> metadata) {
  tf::Summary summary;
  tf::Summary::Value& added = *summary.add_value();
  if (!node.empty()) added.set_node_name(std::string(node));
  if (!tag.empty()) added.set_tag(std::string(tag));
  if (metadata) {
    const Status parsed = proto::ParseBinary(*metadata, "SummaryMetadata", *added.mutable_metadata());
    if (!parsed.ok()) return InvalidArgument("Could not parse the summary metadata: {}", parsed.message());
  }
  // As TensorFlow's op does, strings as typed fields.
  const TensorEncoding encoding =
      tensor.dtype() == DType::kString ? TensorEncoding::kTyped : TensorEncoding::kContent;
  WEIR_TRY(TensorToProto(tensor, encoding, *added.mutable_tensor()));
  return proto::Serialize(summary, "Summary");
}

std::string ScalarSummary(std::string_view tag, float value) {
  return SummaryBuilder().AddScalar(tag, value).Serialized();
}

Result<std::string> HistogramSummary(std::string_view tag, const Tensor& values, std::string_view name) {
  HistogramBuilder histogram;
  for (int64_t i = 0; i < values.elements(); ++i) {
    const double value = ElementAsDouble(values, i);
    if (std::isnan(value)) return InvalidArgument("Nan in summary histogram for: {}", name);
    if (std::isinf(value)) return InvalidArgument("Infinity in summary histogram for: {}", name);
    histogram.Add(value);
  }
  return SummaryBuilder().AddHistogram(tag, histogram.Finish()).Serialized();
}

Result<std::string> MergeSummaries(std::span<const std::string> summaries) {
  std::set<std::string, std::less<>> tags;
  std::string merged;
  for (const std::string& bytes : summaries) {
    tf::Summary summary;
    if (Status status = proto::ParseBinary(bytes, "Summary", summary); !status.ok()) {
      return InvalidArgument("Could not parse one of the summary inputs: {}", status.message());
    }
    for (const tf::Summary::Value& value : summary.value()) {
      if (!value.tag().empty() && !tags.insert(value.tag()).second) {
        return InvalidArgument("Duplicate tag {} found in summary inputs", value.tag());
      }
    }
    merged += summary.SerializeAsString();
  }
  return merged;
}

Result<std::vector<SummaryValue>> DecodeSummary(std::string_view bytes) {
  tf::Summary summary;
  if (Status status = proto::ParseBinary(bytes, "Summary", summary); !status.ok()) {
    return DataLoss("{}", status.message());
  }
  std::vector<SummaryValue> values;
  for (const tf::Summary::Value& value : summary.value()) values.push_back(FromProto(value));
  return values;
}

}  // namespace weir::io
