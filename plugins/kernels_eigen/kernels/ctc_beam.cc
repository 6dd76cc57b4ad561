// CTCBeamSearchDecoder: A. Graves, "Supervised sequence labelling with recurrent neural networks" (2012),
// section 7.5.3.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <unordered_map>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/ctc_inputs.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::View;

template <class T>
constexpr T kImpossible = -std::numeric_limits<T>::infinity();

template <class T>
T BeamSum(T a, T b) {
  if (a == kImpossible<T>) return b;
  if (b == kImpossible<T>) return a;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

/// Log probabilities of a labelling: in all, of alignments that end with a blank, and of those that end with its label.
template <class T>
struct BeamScore {
  T total = kImpossible<T>, blank = kImpossible<T>, label = kImpossible<T>;
};

/// A labelling that extends another one.
template <class T>
struct Beam {
  Beam* parent = nullptr;
  int32_t label = -1;
  std::unordered_map<int32_t, Beam*> children;
  BeamScore<T> before, now;
  int64_t order = 0;  // of its entry in the set of the best

  bool active() const { return now.total != kImpossible<T>; }
};

template <class T>
class BeamSearch {
 public:
  BeamSearch(int64_t width, int64_t classes) : width_(static_cast<size_t>(width)), classes_(classes) {
    Beam<T>& root = beams_.emplace_back();
    root.now.total = root.now.blank = 0;
    Insert(&root);
  }

  /// One step; `logits` [classes], the last class is the blank.
  void Step(const T* logits) {
    const T largest = *std::max_element(logits, logits + classes_);
    T sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(logits[c] - largest);
    const T offset = largest + std::log(sum);
    const std::vector<Beam<T>*> branches(best_.begin(), best_.end());
    best_.clear();
    for (Beam<T>* beam : branches) beam->before = beam->now;
    for (Beam<T>* beam : branches) {
      if (beam->parent != nullptr) {
        if (beam->parent->active()) {
          const BeamScore<T>& previous = beam->parent->before;
          beam->now.label =
              BeamSum(beam->now.label, beam->label == beam->parent->label ? previous.blank : previous.total);
        }
        beam->now.label += logits[beam->label] - offset;
      }
      beam->now.blank = beam->before.total + logits[classes_ - 1] - offset;
      beam->now.total = BeamSum(beam->now.blank, beam->now.label);
      Insert(beam);
    }
    for (Beam<T>* beam : branches) {
      if (!Candidate(beam->before.total)) continue;
      for (int32_t label = 0; label + 1 < classes_; ++label) Extend(beam, label, logits[label] - offset);
    }
  }

  /// The best `count` labellings with their log probabilities; false if there are fewer.
  bool Top(size_t count, bool merge, std::vector<CtcLabels>* labels, std::vector<T>* scores) const {
    if (best_.size() < count) return false;
    auto at = best_.begin();
    for (size_t i = 0; i < count; ++i, ++at) {
      CtcLabels& path = labels->emplace_back();
      int32_t last = -1;
      for (const Beam<T>* beam = *at; beam->parent != nullptr; beam = beam->parent) {
        if (!merge || beam->label != last) path.push_back(beam->label);
        last = beam->label;
      }
      std::reverse(path.begin(), path.end());
      scores->push_back((*at)->now.total);
    }
    return true;
  }

 private:
  struct Better {
    bool operator()(const Beam<T>* a, const Beam<T>* b) const {
      return a->now.total != b->now.total ? a->now.total > b->now.total : a->order < b->order;
    }
  };

  bool Candidate(T total) const {
    return total > kImpossible<T> && (best_.size() < width_ || total > (*best_.rbegin())->now.total);
  }

  void Insert(Beam<T>* beam) {
    beam->order = next_order_++;
    best_.insert(beam);
  }

  /// Considers `beam` with one more label, of log probability `score`.
  void Extend(Beam<T>* beam, int32_t label, T score) {
    const auto known = beam->children.find(label);
    if (known != beam->children.end() && known->second->active()) return;
    BeamScore<T> now;
    now.label = score + (label == beam->label ? beam->before.blank : beam->before.total);
    now.total = now.label;
    if (!Candidate(now.total)) {
      if (known != beam->children.end()) known->second->before = known->second->now = BeamScore<T>();
      return;
    }
    Beam<T>* child = known != beam->children.end() ? known->second : &beams_.emplace_back();
    if (known == beam->children.end()) beam->children[label] = child;
    if (best_.size() == width_) {
      Beam<T>* worst = *best_.rbegin();
      best_.erase(std::prev(best_.end()));
      worst->now = BeamScore<T>();
    }
    child->parent = beam;
    child->label = label;
    child->now = now;
    Insert(child);
  }

  size_t width_;
  int64_t classes_;
  std::deque<Beam<T>> beams_;
  std::set<Beam<T>*, Better> best_;
  int64_t next_order_ = 0;
};

struct BeamDecoder {
  int64_t width = 1, paths = 1;
  bool merge = true;

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    width = node.Int("beam_width", 1);
    paths = node.Int("top_paths", 1);
    merge = node.Bool("merge_repeated", true);
    if (width < 1 || paths < 1) {
      return error.InvalidArgument("beam_width and top_paths must be >= 1, got ", width, " and ", paths);
    }
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    CtcInputs<T> in;
    if (const int32_t code = ctx.Input(0, &in.logits); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &in.lengths); code != WEIR_OK) return code;
    if (const int32_t code = in.Check(ctx.error(), false); code != WEIR_OK) return code;
    if (paths > width) return ctx.error().InvalidArgument("requested more paths than the beam width.");
    const auto count = static_cast<uint32_t>(paths);
    std::vector<std::vector<CtcLabels>> labels(count);  // by path, then by sequence
    View<T> scores;
    if (const int32_t code = ctx.Output(3 * count, {in.batch, paths}, &scores); code != WEIR_OK) return code;
    for (int64_t b = 0; b < in.batch; ++b) {
      BeamSearch<T> search(width, in.classes);
      for (int64_t t = 0; t < in.lengths[b] && !ctx.cancelled(); ++t) search.Step(in.Row(t, b));
      std::vector<CtcLabels> found;
      std::vector<T> found_scores;
      if (!search.Top(count, merge, &found, &found_scores)) {
        return ctx.error().InvalidArgument("Less leaves in the beam search than requested.");
      }
      for (uint32_t i = 0; i < count; ++i) {
        labels[i].push_back(std::move(found[i]));
        scores[b * paths + i] = found_scores[i];
      }
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (const int32_t code = WriteLabels(ctx, labels[i], i, count); code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddCtcBeam(sdk::KernelTable& k) { k.Add<BeamDecoder>("CTCBeamSearchDecoder", kFloat).Class(WEIR_CLASS_SORT, 500); }

}  // namespace weir::kernels_eigen
