// Candidate samplers, with TensorFlow's classes for a seed; ComputeAccidentalHits.
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "plugins/kernels_eigen/kernels/class_weights.h"
#include "plugins/kernels_eigen/kernels/float_lists.h"
#include "plugins/kernels_eigen/kernels/node_stream.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Prep;
using sdk::View;

struct UniformClasses {
  int64_t range = 0;

  int32_t Open(const Prep& prep) {
    range = prep.node().Int("range_max");
    return WEIR_OK;
  }
  int64_t Draw(Words& words) const { return static_cast<int64_t>(words.Next64() % static_cast<uint64_t>(range)); }
  float Probability(int64_t) const { return static_cast<float>(1.0 / static_cast<double>(range)); }
};

struct LogUniformClasses {
  int64_t range = 0;
  double log_range = 0;

  int32_t Open(const Prep& prep) {
    range = prep.node().Int("range_max");
    log_range = std::log1p(static_cast<double>(range));
    return WEIR_OK;
  }
  int64_t Draw(Words& words) const {
    const double value = std::exp(words.NextDouble() * log_range);
    if (!(value < 9.2e18)) return range - 1;
    return (static_cast<int64_t>(value) - 1) % range;
  }
  float Probability(int64_t value) const {
    const auto x = static_cast<double>(value);
    return static_cast<float>(std::log((x + 2.0) / (x + 1.0)) / log_range);
  }
};

/// Classes as often as they were true ones before.
struct LearnedClasses {
  struct Counts {
    explicit Counts(int64_t range) : counts(range) {}
    std::mutex mutex;
    ClassCounts counts;
  };

  int64_t range = 0;
  std::shared_ptr<Counts> learned;

  int32_t Open(const Prep& prep) {
    range = prep.node().Int("range_max");
    if (range >= std::numeric_limits<int32_t>::max()) {
      return prep.error().InvalidArgument("range_max must be below 2147483647, got ", range);
    }
    learned = KeptByNode<Counts>(prep.node(), "counts", [n = range] { return new (std::nothrow) Counts(n); });
    if (learned != nullptr) return WEIR_OK;
    return prep.error().Fail(WEIR_RESOURCE_EXHAUSTED, "no memory for the counts of classes");
  }
  std::unique_lock<std::mutex> Lock() const { return std::unique_lock(learned->mutex); }
  int64_t Draw(Words& words) const { return learned->counts.Draw(words); }
  float Probability(int64_t value) const {
    return static_cast<float>(learned->counts.Weight(value)) / static_cast<float>(learned->counts.total());
  }
  void Learn(View<const int64_t> classes) const {
    for (int64_t i = 0, n = classes.size(); i < n; ++i) learned->counts.Count(classes[i]);
  }
};

/// Classes with the weights of an attribute or a file.
struct FixedClasses {
  int64_t range = 0;
  int64_t drawable = 0;  // classes with a positive weight
  std::vector<float> weights;
  float total = 0;
  AliasTable table;

  int32_t Open(const Prep& prep) {
    const sdk::Node& node = prep.node();
    const sdk::Error& error = prep.error();
    const std::string file(node.String("vocab_file"));
    const std::span<const double> unigrams = FloatsOf(node, "unigrams");
    range = node.Int("range_max");
    const int64_t reserved = node.Int("num_reserved_ids");
    if (file.empty() && unigrams.empty()) return error.InvalidArgument("Must provide either vocab_file or unigrams.");
    if (!file.empty() && !unigrams.empty()) {
      return error.InvalidArgument("Must only provide one of vocab_file and unigrams.");
    }
    if (range > std::numeric_limits<int32_t>::max()) {
      return error.InvalidArgument("range_max must be below 2147483648, got ", range);
    }
    if (reserved > range || reserved > int64_t{1} << 24) {
      return error.InvalidArgument("num_reserved_ids must be at most range_max, ", range, ", and 2^24, got ", reserved);
    }
    for (int64_t i = 0; i < reserved; ++i) weights.push_back(0);
    const auto distortion = static_cast<float>(node.Float("distortion", 1));
    const int64_t shards = node.Int("num_shards", 1), shard = node.Int("shard");
    int64_t word = reserved;
    const auto add = [&](float weight) {
      if (word++ % shards != shard) return;
      weights.push_back(std::pow(weight, distortion));
      total += weights.back();
    };
    for (const double weight : unigrams) add(static_cast<float>(weight));
    if (!file.empty()) {
      const int32_t code = ReadVocabulary(error, file, add);
      if (code != WEIR_OK) return code;
    }
    return Check(error);
  }
  int64_t Draw(Words& words) const { return table.Draw(words); }
  float Probability(int64_t value) const { return weights[static_cast<size_t>(value)] / total; }

 private:
  /// Lines of comma-separated values, the last of which is the weight.
  template <class Add>
  static int32_t ReadVocabulary(const sdk::Error& error, const std::string& file, Add&& add) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return error.Fail(WEIR_NOT_FOUND, file, "; No such file or directory");
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      const std::string_view last = std::string_view(line).substr(line.rfind(',') + 1);
      float weight = 0;
      const auto [end, fault] = std::from_chars(last.data(), last.data() + last.size(), weight);
      if (fault != std::errc() || end != last.data() + last.size()) {
        return error.InvalidArgument("Wrong vocabulary format at line: ", line);
      }
      add(weight);
    }
    return WEIR_OK;
  }

  int32_t Check(const sdk::Error& error) {
    if (range != static_cast<int64_t>(weights.size())) {
      return error.InvalidArgument("range is ", range, " must be equal to weights size  ", weights.size());
    }
    for (const float weight : weights) {
      if (!(weight >= 0) || std::isinf(weight)) return error.InvalidArgument("a weight must be >= 0, got ", weight);
      drawable += weight > 0 ? 1 : 0;
    }
    if (drawable == 0) return error.InvalidArgument("all weights are 0");
    table = AliasTable(weights);
    return WEIR_OK;
  }
};

/// The probability that a class is in the sample, or with repetitions the number of its occurrences.
float ExpectedCount(float p, int64_t count, int64_t tries) {
  if (tries == count) return p * static_cast<float>(count);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
}

int32_t PlanSampler(const Prep& prep, int64_t* count) {
  const weir_shape& classes = prep.shape(0);
  const int64_t num_true = prep.node().Int("num_true");
  *count = prep.node().Int("num_sampled");
  if (classes.rank != 2) return prep.error().InvalidArgument("true_classes must be a matrix");
  if (classes.dims[1] != num_true) {
    return prep.error().InvalidArgument("true_classes must have num_true columns, expected: ", classes.dims[1],
                                        " was: ", num_true);
  }
  int32_t code = ExpectOutput(prep, 0, {*count});
  if (code == WEIR_OK) code = ExpectOutput(prep, 1, {classes.dims[0], num_true});
  return code != WEIR_OK ? code : ExpectOutput(prep, 2, {*count});
}

int32_t CheckTrueClasses(const sdk::Error& error, View<const int64_t> classes, int64_t range) {
  for (int64_t i = 0, n = classes.size(); i < n; ++i) {
    if (classes[i] >= 0 && classes[i] < range) continue;
    return error.InvalidArgument("`true_candidate` out of range [", 0, ", ", range, "), received ", classes[i]);
  }
  return WEIR_OK;
}

template <class Classes>
struct Sampler {
  Classes source;
  NodeStream stream;
  int64_t count = 0;
  bool unique = false;

  int32_t Prepare(const Prep& prep) {
    unique = prep.node().Bool("unique");
    int32_t code = source.Open(prep);
    if (code == WEIR_OK) code = PlanSampler(prep, &count);
    if (code == WEIR_OK) code = stream.Open(prep);
    if (code != WEIR_OK) return code;
    int64_t range = source.range;
    if constexpr (requires { source.drawable; }) range = source.drawable;
    if (unique && count > range) return prep.error().InvalidArgument("Sampler's range is too small.");
    return WEIR_OK;
  }

  int32_t Run(sdk::Env& env, View<const int64_t> classes, View<int64_t> sampled, View<float> true_counts,
              View<float> sampled_counts) {
    if (const int32_t code = CheckTrueClasses(env.error(), classes, source.range); code != WEIR_OK) return code;
    std::unique_lock<std::mutex> lock;
    if constexpr (requires { source.Lock(); }) lock = source.Lock();
    Words words(stream.generator(), stream.Reserve(static_cast<uint64_t>(count) * 512));
    int64_t tries = count;
    if (unique) {
      tries = DrawDistinct(words, sampled);
      if (tries < 0) return env.error().InvalidArgument("Sampler's range is too small.");
    } else {
      for (int64_t i = 0; i < count; ++i) sampled[i] = source.Draw(words);
    }
    for (int64_t i = 0; i < count; ++i) {
      sampled_counts[i] = ExpectedCount(source.Probability(sampled[i]), count, tries);
    }
    for (int64_t i = 0, n = classes.size(); i < n; ++i) {
      true_counts[i] = ExpectedCount(source.Probability(classes[i]), count, tries);
    }
    if constexpr (requires { source.Learn(classes); }) source.Learn(classes);
    return WEIR_OK;
  }

 private:
  /// The number of draws; -1 if 2^31 do not find `count` classes.
  int64_t DrawDistinct(Words& words, View<int64_t> sampled) const {
    std::unordered_set<int64_t> seen;
    int64_t tries = 0;
    for (int64_t found = 0; found < count;) {
      if (++tries == std::numeric_limits<int32_t>::max()) return -1;
      const int64_t value = source.Draw(words);
      if (seen.insert(value).second) sampled[found++] = value;
    }
    return tries;
  }
};

struct AllClasses {
  int64_t count = 0;

  int32_t Prepare(const Prep& prep) { return PlanSampler(prep, &count); }
  int32_t Run(sdk::Env& env, View<const int64_t> classes, View<int64_t> sampled, View<float> true_counts,
              View<float> sampled_counts) {
    if (const int32_t code = CheckTrueClasses(env.error(), classes, count); code != WEIR_OK) return code;
    for (int64_t i = 0; i < count; ++i) sampled[i] = i;
    std::fill_n(sampled_counts.data(), count, 1.0f);
    std::fill_n(true_counts.data(), true_counts.size(), 1.0f);
    return WEIR_OK;
  }
};

struct AccidentalHits {
  int64_t num_true = 0;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    num_true = node.Int("num_true");
    return WEIR_OK;
  }

  int32_t Compute(sdk::Context& ctx) {
    View<const int64_t> classes, sampled;
    if (const int32_t code = ctx.Input(0, &classes); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &sampled); code != WEIR_OK) return code;
    if (classes.rank() != 2 || classes.dim(1) != num_true) {
      return ctx.error().InvalidArgument("true_candidates must be a batch_size * num_true matrix");
    }
    if (sampled.rank() != 1) {
      return ctx.error().InvalidArgument(
          "sampled_candidates must be a vector, which is typically an output from CandidateSampler");
    }
    std::unordered_map<int64_t, int64_t> places;  // the last one of a class that was drawn several times
    for (int64_t i = 0; i < sampled.size(); ++i) places[sampled[i]] = i;
    std::vector<int32_t> rows;
    std::vector<int64_t> ids;
    for (int64_t i = 0, n = classes.size(); i < n; ++i) {
      const auto found = places.find(classes[i]);
      if (found == places.end()) continue;
      rows.push_back(static_cast<int32_t>(i / num_true));
      ids.push_back(found->second);
    }
    View<int32_t> out_rows;
    View<int64_t> out_ids;
    View<float> out_weights;
    const auto hits = static_cast<int64_t>(rows.size());
    if (const int32_t code = ctx.Output(0, {hits}, &out_rows); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, {hits}, &out_ids); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(2, {hits}, &out_weights); code != WEIR_OK) return code;
    std::copy(rows.begin(), rows.end(), out_rows.data());
    std::copy(ids.begin(), ids.end(), out_ids.data());
    std::fill_n(out_weights.data(), hits, std::numeric_limits<float>::lowest());
    return WEIR_OK;
  }
};

}  // namespace

void AddSamplers(sdk::KernelTable& k) {
  k.Add<Sampler<UniformClasses>>("UniformCandidateSampler").Class(WEIR_CLASS_RNG, 10);
  k.Add<Sampler<LogUniformClasses>>("LogUniformCandidateSampler").Class(WEIR_CLASS_RNG, 40);
  k.Add<Sampler<LearnedClasses>>("LearnedUnigramCandidateSampler").Class(WEIR_CLASS_RNG, 100);
  k.Add<Sampler<LearnedClasses>>("ThreadUnsafeUnigramCandidateSampler").Class(WEIR_CLASS_RNG, 100);
  k.Add<Sampler<FixedClasses>>("FixedUnigramCandidateSampler").Class(WEIR_CLASS_RNG, 10);
  k.Add<AllClasses>("AllCandidateSampler").Class(WEIR_CLASS_RNG);
  k.Add<AccidentalHits>("ComputeAccidentalHits").Class(WEIR_CLASS_GATHER, 10);
}

}  // namespace weir::kernels_eigen
