// Connectionist temporal classification: A. Graves et al., "Connectionist temporal classification: labelling
// unsegmented sequence data with recurrent neural networks" (2006). CTCLoss, CTCGreedyDecoder.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/ctc_inputs.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::View;

constexpr double kNever = -std::numeric_limits<double>::infinity();

double LogSum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

/// "1,2".
std::string Listed(const std::vector<int32_t>& labels) {
  std::string text;
  for (const int32_t label : labels) text.append(text.empty() ? "" : ",").append(std::to_string(label));
  return text;
}

/// Log probabilities of all alignments of one labelling with one sequence.
class Lattice {
 public:
  /// States are the labels with a blank before, between and after them.
  Lattice(const std::vector<int32_t>& labels, int32_t blank, bool merge, int64_t steps, int64_t classes)
      : states_(2 * labels.size() + 1, blank), merge_(merge), steps_(steps), classes_(classes) {
    for (size_t i = 0; i < labels.size(); ++i) states_[2 * i + 1] = labels[i];
    blank_ = blank;
    forward_.assign(states_.size() * static_cast<size_t>(steps), kNever);
    backward_ = forward_;
  }

  /// `scores` [steps, classes]: log probabilities. Returns the labelling's log probability.
  double Sum(const std::vector<double>& scores) {
    scores_ = &scores;
    const auto count = static_cast<int64_t>(states_.size());
    for (int64_t u = 0; u < std::min<int64_t>(2, count); ++u) Forward(0, u) = Score(0, u);
    for (int64_t t = 1; t < steps_; ++t) {
      for (int64_t u = 0; u < count; ++u) {
        double sum = Stays(u) ? Forward(t - 1, u) : kNever;
        if (u > 0) sum = LogSum(sum, Forward(t - 1, u - 1));
        if (u > 1 && Skips(u - 2, u)) sum = LogSum(sum, Forward(t - 1, u - 2));
        Forward(t, u) = sum + Score(t, u);
      }
    }
    for (int64_t u = std::max<int64_t>(0, count - 2); u < count; ++u) Backward(steps_ - 1, u) = 0;
    for (int64_t t = steps_ - 2; t >= 0; --t) {
      for (int64_t u = 0; u < count; ++u) {
        double sum = Stays(u) ? Backward(t + 1, u) + Score(t + 1, u) : kNever;
        if (u + 1 < count) sum = LogSum(sum, Backward(t + 1, u + 1) + Score(t + 1, u + 1));
        if (u + 2 < count && Skips(u, u + 2)) sum = LogSum(sum, Backward(t + 1, u + 2) + Score(t + 1, u + 2));
        Backward(t, u) = sum;
      }
    }
    double total = kNever;
    for (int64_t u = 0; u < count; ++u) total = LogSum(total, Forward(0, u) + Backward(0, u));
    return total;
  }

  /// Adds the probability of each class at step t, of alignments that give the labelling.
  void Posterior(int64_t t, double total, std::vector<double>* by_class) {
    by_class->assign(static_cast<size_t>(classes_), kNever);
    for (size_t u = 0; u < states_.size(); ++u) {
      double& sum = (*by_class)[static_cast<size_t>(states_[u])];
      sum = LogSum(sum, Forward(t, static_cast<int64_t>(u)) + Backward(t, static_cast<int64_t>(u)));
    }
    for (double& sum : *by_class) sum = std::exp(sum - total);
  }

 private:
  double& Forward(int64_t t, int64_t u) {
    return forward_[static_cast<size_t>(t) * states_.size() + static_cast<size_t>(u)];
  }
  double& Backward(int64_t t, int64_t u) {
    return backward_[static_cast<size_t>(t) * states_.size() + static_cast<size_t>(u)];
  }
  int32_t State(int64_t u) const { return states_[static_cast<size_t>(u)]; }
  double Score(int64_t t, int64_t u) const { return (*scores_)[static_cast<size_t>(t * classes_ + State(u))]; }
  bool Stays(int64_t u) const { return merge_ || State(u) == blank_; }
  /// A label may follow another one without a blank between them, unless repeated labels are merged.
  bool Skips(int64_t from, int64_t to) const { return State(to) != blank_ && !(merge_ && State(from) == State(to)); }

  std::vector<int32_t> states_;
  bool merge_;
  int64_t steps_, classes_;
  int32_t blank_ = 0;
  const std::vector<double>* scores_ = nullptr;
  std::vector<double> forward_, backward_;
};

struct CtcLoss {
  bool collapse = false, merge = true, ignore = false;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    collapse = node.Bool("preprocess_collapse_repeated");
    merge = node.Bool("ctc_merge_repeated", true);
    ignore = node.Bool("ignore_longer_outputs_than_inputs");
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    CtcInputs<T> in;
    View<const int64_t> indices;
    View<const int32_t> values;
    if (const int32_t code = ctx.Input(0, &in.logits); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &values); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &in.lengths); code != WEIR_OK) return code;
    if (const int32_t code = in.Check(ctx.error(), true); code != WEIR_OK) return code;
    std::vector<std::vector<int32_t>> labels(static_cast<size_t>(in.batch));
    if (const int32_t code = ReadLabels(ctx.error(), in.batch, indices, values, &labels); code != WEIR_OK) return code;
    View<T> loss, gradient;
    if (const int32_t code = ctx.Output(0, {in.batch}, &loss); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, in.logits.shape(), &gradient); code != WEIR_OK) return code;
    std::fill_n(gradient.data(), gradient.size(), T(0));
    for (int64_t b = 0; b < in.batch; ++b) {
      const int64_t steps = in.lengths[b];
      std::vector<int32_t> kept;
      const std::vector<int32_t>& all = labels[static_cast<size_t>(b)];
      if (const int32_t code = Keep(ctx.error(), b, in.classes, all, &kept); code != WEIR_OK) return code;
      const bool longer = static_cast<int64_t>(all.size()) > steps;
      if (longer && !ignore) {
        return ctx.error().InvalidArgument(
            "Not enough time for target transition sequence (required: ", all.size(), ", available: ", steps, ")", b,
            "You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs");
      }
      loss[b] = steps == 0 || longer ? T(0) : Loss(in, b, kept, gradient);
    }
    return WEIR_OK;
  }

 private:
  /// Labels by sequence; the indices must be sorted.
  static int32_t ReadLabels(const sdk::Error& error, int64_t batch, View<const int64_t> indices,
                            View<const int32_t> values, std::vector<std::vector<int32_t>>* labels) {
    if (indices.rank() != 2) return error.InvalidArgument("labels_indices is not a matrix");
    if (indices.dim(1) <= 1) {
      return error.InvalidArgument("labels_indices second dimension must be >= 1. Received ", indices.dim(1));
    }
    if (values.rank() != 1) return error.InvalidArgument("labels_values is not a vector");
    if (indices.dim(0) != values.dim(0)) {
      return error.InvalidArgument(
          "labels_indices and labels_values must contain the same number of rows, but saw "
          "shapes: ",
          indices.shape(), " vs. ", values.shape());
    }
    if (indices.dim(1) != 2) return error.InvalidArgument("Order length must be SparseTensor rank.");
    int64_t longest = 0;
    const int64_t count = values.size();
    for (int64_t i = 0; i < count; ++i) longest = std::max(longest, indices[2 * i + 1]);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = indices[2 * i], place = indices[2 * i + 1];
      const auto refuse = [&](auto... text) {
        return error.InvalidArgument("label SparseTensor is not valid: indices[", i, "] = [", row, ",", place, "] is ",
                                     text...);
      };
      if (row < 0 || row >= batch || place < 0) {
        return refuse("out of bounds: need 0 <= index < [", batch, ",", longest == INT64_MAX ? longest : longest + 1,
                      "]");
      }
      if (i > 0 && row == indices[2 * i - 2] && place == indices[2 * i - 1]) return refuse("repeated");
      if (i > 0 && (row < indices[2 * i - 2] || (row == indices[2 * i - 2] && place < indices[2 * i - 1]))) {
        return refuse(
            "out of order. Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to create a "
            "correctly ordered copy.\n\n");
      }
      (*labels)[static_cast<size_t>(row)].push_back(values[i]);
    }
    return WEIR_OK;
  }

  /// The labels without those from classes - 1 on, which must be the last, and without repetitions if wanted.
  int32_t Keep(const sdk::Error& error, int64_t b, int64_t classes, const std::vector<int32_t>& labels,
               std::vector<int32_t>* kept) const {
    if (labels.empty()) return error.InvalidArgument("Labels length is zero in batch ", b);
    bool finished = false;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (i > 0 && collapse && labels[i] == labels[i - 1]) continue;
      if (labels[i] >= classes - 1) {
        finished = true;
        continue;
      }
      if (finished) {
        return error.InvalidArgument(
            "Saw a non-null label (index >= num_classes - 1) following a null label, batch: ", b,
            " num_classes: ", classes, " labels: ", Listed(labels), " labels seen so far: ", Listed(*kept));
      }
      kept->push_back(labels[i]);
    }
    for (const int32_t label : *kept) {
      if (label >= 0) continue;
      return error.InvalidArgument("All labels must be nonnegative integers, batch: ", b, " labels: ", Listed(*kept));
    }
    return WEIR_OK;
  }

  template <class T>
  T Loss(const CtcInputs<T>& in, int64_t b, const std::vector<int32_t>& labels, View<T> gradient) const {
    const int64_t steps = in.lengths[b], classes = in.classes;
    std::vector<double> scores(static_cast<size_t>(steps * classes));
    for (int64_t t = 0; t < steps; ++t) {
      const T* row = in.Row(t, b);
      const auto largest = static_cast<double>(*std::max_element(row, row + classes));
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - largest);
      const double offset = largest + std::log(sum);
      for (int64_t c = 0; c < classes; ++c) {
        scores[static_cast<size_t>(t * classes + c)] = static_cast<double>(row[c]) - offset;
      }
    }
    Lattice lattice(labels, static_cast<int32_t>(classes - 1), merge, steps, classes);
    const double total = lattice.Sum(scores);
    std::vector<double> posterior(static_cast<size_t>(classes), 0.0);
    for (int64_t t = 0; t < steps; ++t) {
      if (total != kNever) lattice.Posterior(t, total, &posterior);
      T* out = gradient.data() + (in.Row(t, b) - in.logits.data());
      for (int64_t c = 0; c < classes; ++c) {
        const double p = std::exp(scores[static_cast<size_t>(t * classes + c)]);
        out[c] = static_cast<T>(p - posterior[static_cast<size_t>(c)]);
      }
    }
    return static_cast<T>(-total);
  }
};

struct GreedyDecoder {
  bool merge = false;
  int64_t blank_index = -1;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    merge = node.Bool("merge_repeated");
    blank_index = node.Int("blank_index", -1);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    CtcInputs<T> in;
    if (const int32_t code = ctx.Input(0, &in.logits); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &in.lengths); code != WEIR_OK) return code;
    if (const int32_t code = in.Check(ctx.error(), false); code != WEIR_OK) return code;
    if (blank_index < -in.classes || blank_index >= in.classes) {
      return ctx.error().InvalidArgument("blank_index expected to be between ", -in.classes, " and ", in.classes - 1,
                                         " but was ", blank_index);
    }
    const int64_t blank = blank_index < 0 ? blank_index + in.classes : blank_index;
    View<T> scores;
    if (const int32_t code = ctx.Output(3, {in.batch, 1}, &scores); code != WEIR_OK) return code;
    std::vector<CtcLabels> labels(static_cast<size_t>(in.batch));
    for (int64_t b = 0; b < in.batch; ++b) {
      scores[b] = 0;
      int64_t before = -1;
      for (int64_t t = 0; t < in.lengths[b]; ++t) {
        const T* row = in.Row(t, b);
        const int64_t best = std::max_element(row, row + in.classes) - row;
        scores[b] -= row[best];
        if (best != blank && !(merge && best == before)) labels[static_cast<size_t>(b)].push_back(best);
        before = best;
      }
    }
    return WriteLabels(ctx, labels, 0, 1);
  }
};

}  // namespace

void AddCtc(sdk::KernelTable& k) {
  k.Add<CtcLoss>("CTCLoss", kFloat).Class(WEIR_CLASS_REDUCE, 500);
  k.Add<GreedyDecoder>("CTCGreedyDecoder", kFloat).Class(WEIR_CLASS_REDUCE, 5);
}

}  // namespace weir::kernels_eigen
