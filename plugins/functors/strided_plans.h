// Ops that copy boxes of elements between arrays: their checks and the steps of the copy. `Copy` has Plan(dims, from,
// to, bytes, from_offset, to_offset) and dense(), as StridedCopy of kernels_eigen.
#ifndef WEIR_PLUGINS_FUNCTORS_STRIDED_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_STRIDED_PLANS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

template <class Copy>
struct SlicePlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> begin, size;
    if (const int32_t code = Steering(prep, 1, &begin); code != WEIR_OK) return code;
    if (const int32_t code = Steering(prep, 2, &size); code != WEIR_OK) return code;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0)), steps = StepsOf(whole);
    if (begin.size() != whole.size() || size.size() != whole.size()) {
      return prep.error().InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", whole.size(),
                                          ", but got shapes ", prep.shape(1), " and ", prep.shape(2), " instead.");
    }
    int64_t offset = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      if (begin[i] < 0 || begin[i] > whole[i]) {
        return prep.error().InvalidArgument("Expected begin[", i, "] in [0, ", whole[i], "], but got ", begin[i]);
      }
      if (size[i] == -1) size[i] = whole[i] - begin[i];
      if (size[i] < 0 || size[i] > whole[i] - begin[i]) {
        return prep.error().InvalidArgument("Expected size[", i, "] in [0, ", whole[i] - begin[i], "], but got ",
                                            size[i]);
      }
      offset += begin[i] * steps[i];
    }
    copy.Plan(size, steps, StepsOf(size), sdk::SizeOf(prep.input(0).dtype), offset);
    if (size == whole && copy.dense()) prep.MayAlias(0, 0);
    return ExpectOutput(prep, 0, size);
  }
};

/// The elements start, start + stride, … of one axis.
struct AxisPart {
  int64_t start = 0, stride = 1, count = 0;
};

/// The elements that a StridedSlice selects along each axis of an array, and the shape of its result.
class Selection {
 public:
  std::vector<AxisPart> axes;
  std::vector<int64_t> answer;

  /// Reads the spec from inputs `first` (begin), first + 1 (end) and first + 2 (strides).
  int32_t Read(const sdk::Prep& prep, uint32_t first, const std::vector<int64_t>& whole) {
    std::vector<int64_t>* const operands[] = {&begin_, &end_, &strides_};
    for (uint32_t i = 0; i < 3; ++i) {
      if (const int32_t code = Steering(prep, first + i, operands[i]); code != WEIR_OK) return code;
    }
    bool vectors = true;
    for (uint32_t i = 0; i < 3; ++i) vectors = vectors && prep.shape(first + i).rank == 1;
    if (!vectors || begin_.size() != end_.size() || begin_.size() != strides_.size()) {
      return prep.error().InvalidArgument(
          "Expected begin, end, and strides to be 1D equal size tensors, but got shapes ", prep.shape(first), ", ",
          prep.shape(first + 1), ", and ", prep.shape(first + 2), " instead.");
    }
    return LayOut(prep, whole);
  }

  /// Steps of the selected elements in an array of that shape, and the offset of the first one.
  std::vector<int64_t> Steps(const std::vector<int64_t>& whole, int64_t* offset) const {
    std::vector<int64_t> steps = StepsOf(whole);
    *offset = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      *offset += axes[i].start * steps[i];
      // The stride of an axis with a single element may be any number, and is not used.
      steps[i] = axes[i].count > 1 ? steps[i] * axes[i].stride : 0;
    }
    return steps;
  }
  std::vector<int64_t> Counts() const {
    std::vector<int64_t> counts;
    for (const AxisPart& axis : axes) counts.push_back(axis.count);
    return counts;
  }

 private:
  static bool Has(int64_t mask, size_t i) { return i < 64 && (static_cast<uint64_t>(mask) >> i & 1) != 0; }

  /// Assigns an axis to every entry. The ellipsis, and axes missing at the end, select whole axes.
  int32_t LayOut(const sdk::Prep& prep, const std::vector<int64_t>& whole) {
    const sdk::Node& node = prep.node();
    const int64_t ellipsis = node.Int("ellipsis_mask"), new_axis = node.Int("new_axis_mask");
    size_t entries_after = 0;
    bool seen = false;
    for (size_t i = 0; i < begin_.size(); ++i) {
      if (Has(ellipsis, i)) {
        if (seen) return prep.error().InvalidArgument("Multiple ellipses in slice spec not allowed");
        seen = true;
      } else if (seen && !Has(new_axis, i)) {
        ++entries_after;
      }
    }
    const auto take_whole_until = [&](size_t end) {
      while (axes.size() < std::min(end, whole.size())) {
        answer.push_back(whole[axes.size()]);
        axes.push_back({0, 1, whole[axes.size()]});
      }
    };
    for (size_t i = 0; i < begin_.size(); ++i) {
      if (Has(ellipsis, i)) {
        take_whole_until(whole.size() > entries_after ? whole.size() - entries_after : 0);
      } else if (Has(new_axis, i)) {
        answer.push_back(1);
      } else if (whole.empty()) {
        return prep.error().InvalidArgument("Attempting to slice scalar input.");
      } else if (axes.size() == whole.size()) {
        return prep.error().InvalidArgument("Index out of range using input dim ", whole.size(), "; input has only ",
                                            whole.size(), " dims");
      } else if (const int32_t code = Take(prep, i, whole[axes.size()]); code != WEIR_OK) {
        return code;
      }
    }
    take_whole_until(whole.size());
    return WEIR_OK;
  }

  /// Applies entry i to an axis of `extent` elements.
  int32_t Take(const sdk::Prep& prep, size_t i, int64_t extent) {
    const sdk::Node& node = prep.node();
    const int64_t stride = strides_[i];
    if (stride == 0) return prep.error().InvalidArgument("strides[", i, "] must be non-zero");
    if (Has(node.Int("shrink_axis_mask"), i)) {
      if (stride < 0) return prep.error().InvalidArgument("only stride 1 allowed on non-range indexing.");
      const int64_t at = begin_[i] < 0 ? begin_[i] + extent : begin_[i];
      if (at < 0 || at >= extent) {
        return prep.error().InvalidArgument("slice index ", at, " of dimension ", axes.size(), " out of bounds.");
      }
      axes.push_back({at, 1, 1});
      return WEIR_OK;
    }
    const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? extent : extent - 1;
    const auto clamp = [&](int64_t bound) { return std::clamp(bound < 0 ? bound + extent : bound, low, high); };
    const int64_t from = Has(node.Int("begin_mask"), i) ? (stride > 0 ? low : high) : clamp(begin_[i]);
    const int64_t to = Has(node.Int("end_mask"), i) ? (stride > 0 ? high : low) : clamp(end_[i]);
    const int64_t way = to - from;
    const bool none = way == 0 || (way < 0) != (stride < 0);
    const int64_t count = none ? 0 : way / stride + (way % stride != 0 ? 1 : 0);
    axes.push_back({from, stride, count});
    answer.push_back(count);
    return WEIR_OK;
  }

  std::vector<int64_t> begin_, end_, strides_;
};

template <class Copy>
struct StridedSlicePlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    Selection selection;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0));
    if (const int32_t code = selection.Read(prep, 1, whole); code != WEIR_OK) return code;
    int64_t offset = 0;
    const std::vector<int64_t> counts = selection.Counts(), steps = selection.Steps(whole, &offset);
    copy.Plan(counts, steps, StepsOf(counts), sdk::SizeOf(prep.input(0).dtype), offset);
    if (counts == whole && copy.dense()) prep.MayAlias(0, 0);
    return ExpectOutput(prep, 0, selection.answer);
  }
};

template <class Copy>
struct StridedSliceGradPlan {
  Copy copy;
  bool covers = false;  // every element of the output is written

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> whole;
    if (const int32_t code = Steering(prep, 0, &whole); code != WEIR_OK) return code;
    if (const int32_t code = ExpectOutput(prep, 0, whole); code != WEIR_OK) return code;
    Selection selection;
    if (const int32_t code = selection.Read(prep, 1, whole); code != WEIR_OK) return code;
    const weir_shape wanted{static_cast<uint32_t>(selection.answer.size()), 0, selection.answer.data()};
    if (!sdk::SameShape(prep.shape(4), wanted)) {
      return prep.error().InvalidArgument("shape of dy was ", prep.shape(4), " instead of ", wanted);
    }
    int64_t offset = 0;
    const std::vector<int64_t> counts = selection.Counts(), steps = selection.Steps(whole, &offset);
    copy.Plan(counts, StepsOf(counts), steps, sdk::SizeOf(prep.input(4).dtype), 0, offset);
    covers = counts == whole;
    return WEIR_OK;
  }
};

/// The copy of `value`, input 4, which is broadcast, into the selected elements of input 0.
template <class Copy>
struct SliceAssignPlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    const std::vector<int64_t> whole = DimsOf(prep.shape(0));
    Selection selection;
    if (const int32_t code = selection.Read(prep, 1, whole); code != WEIR_OK) return code;
    std::vector<int64_t> value = DimsOf(prep.shape(4));
    const std::vector<int64_t> value_steps = StepsOf(value);
    const size_t rank = selection.answer.size(), missing = rank - std::min(rank, value.size());
    const size_t surplus = value.size() - std::min(rank, value.size());
    bool fits =
        std::all_of(value.begin(), value.begin() + static_cast<int64_t>(surplus), [](int64_t n) { return n == 1; });
    // Extents of 1 aside, the axes of the answer are those of the array.
    std::vector<int64_t> dims, from, to;
    for (size_t i = 0; i < rank && fits; ++i) {
      const int64_t extent = selection.answer[i];
      const int64_t own = i < missing ? 1 : value[surplus + i - missing];
      fits = own == extent || own == 1;
      if (extent == 1) continue;
      dims.push_back(extent);
      from.push_back(own == 1 ? 0 : value_steps[surplus + i - missing]);
    }
    if (!fits) {
      const weir_shape final{static_cast<uint32_t>(rank), 0, selection.answer.data()};
      return prep.error().InvalidArgument("Cannot broadcast input shape ", prep.shape(4), " into final shape ", final);
    }
    int64_t offset = 0;
    const std::vector<int64_t> steps = selection.Steps(whole, &offset);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (selection.axes[i].count != 1) to.push_back(steps[i]);
    }
    copy.Plan(dims, from, to, sdk::SizeOf(prep.input(4).dtype), 0, offset);
    return WEIR_OK;
  }
};

template <class Copy>
struct TransposePlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> perm;
    if (const int32_t code = Steering(prep, 1, &perm); code != WEIR_OK) return code;
    const std::vector<int64_t> from = DimsOf(prep.shape(0)), steps = StepsOf(from);
    if (perm.size() != from.size()) {
      return prep.error().InvalidArgument("transpose expects a vector of size ", from.size(),
                                          ". But input(1) is a vector of size ", perm.size());
    }
    std::vector<int64_t> dims, permuted;
    std::vector<bool> seen(from.size());
    for (const int64_t axis : perm) {
      if (axis < 0 || axis >= static_cast<int64_t>(from.size())) {
        return prep.error().InvalidArgument(axis, " is out of range [0 .. ", from.size(), ")");
      }
      seen[static_cast<size_t>(axis)] = true;
      dims.push_back(from[static_cast<size_t>(axis)]);
      permuted.push_back(steps[static_cast<size_t>(axis)]);
    }
    if (const auto missing = std::find(seen.begin(), seen.end(), false); missing != seen.end()) {
      std::string listed;
      for (const int64_t axis : perm) listed.append(listed.empty() ? "" : ",").append(std::to_string(axis));
      return prep.error().InvalidArgument(missing - seen.begin(), " is missing from {", listed, "}.");
    }
    copy.Plan(dims, permuted, StepsOf(dims), sdk::SizeOf(prep.input(0).dtype));
    if (copy.dense()) prep.MayAlias(0, 0);
    return ExpectOutput(prep, 0, dims);
  }
};

template <class Copy>
struct ReversePlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> axes;
    if (const int32_t code = Steering(prep, 1, &axes); code != WEIR_OK) return code;
    const std::vector<int64_t> dims = DimsOf(prep.shape(0)), to = StepsOf(dims);
    const int64_t rank = static_cast<int64_t>(dims.size());
    std::vector<int64_t> from = to;
    int64_t offset = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank) {
        return prep.error().InvalidArgument("'axis'[", i, "] = ", axes[i], " is out of valid range [0, ", rank - 1);
      }
      int64_t& step = from[static_cast<size_t>(axis)];
      if (step < 0) return prep.error().InvalidArgument("axis ", axis, " specified more than once.");
      // If another extent is 0, the step is 0, and there is nothing to copy.
      offset += (dims[static_cast<size_t>(axis)] - 1) * step;
      step = -step;
    }
    copy.Plan(dims, from, to, sdk::SizeOf(prep.input(0).dtype), offset);
    if (copy.dense()) prep.MayAlias(0, 0);
    return ExpectOutput(prep, 0, dims);
  }
};

/// The result is treated as an array of twice the rank: repetition, original, repetition, original …
template <class Copy>
struct TilePlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> multiples;
    if (const int32_t code = Steering(prep, 1, &multiples); code != WEIR_OK) return code;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0)), steps = StepsOf(whole);
    if (multiples.size() != whole.size()) {
      return prep.error().InvalidArgument("Expected multiples argument to be a vector of length ", whole.size(),
                                          " but got length ", multiples.size());
    }
    std::vector<int64_t> out, dims, from;
    for (size_t i = 0; i < whole.size(); ++i) {
      int64_t extent = 0;
      if (multiples[i] < 0 || __builtin_mul_overflow(whole[i], multiples[i], &extent)) {
        return prep.error().InvalidArgument("Expected multiples[", i, "] >= 0, but got ", multiples[i]);
      }
      out.push_back(extent);
      dims.insert(dims.end(), {multiples[i], whole[i]});
      from.insert(from.end(), {0, steps[i]});
    }
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    copy.Plan(dims, from, StepsOf(dims), sdk::SizeOf(prep.input(0).dtype));
    if (out == whole && copy.dense()) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

template <class Copy>
struct BroadcastToPlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> out;
    if (const int32_t code = Steering(prep, 1, &out); code != WEIR_OK) return code;
    for (const int64_t dim : out) {
      if (dim < 0) return prep.error().InvalidArgument("Dimension ", dim, " must be >= 0");
    }
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0)), steps = StepsOf(whole);
    std::vector<int64_t> from(out.size(), 0);
    bool fits = whole.size() <= out.size();
    for (size_t i = 0; fits && i < whole.size(); ++i) {
      const size_t at = out.size() - whole.size() + i;
      fits = whole[i] == out[at] || whole[i] == 1;
      if (whole[i] != 1) from[at] = steps[i];
    }
    if (!fits) {
      return prep.error().InvalidArgument("Incompatible shapes: ", prep.shape(0), " vs. ", prep.output(0).shape);
    }
    copy.Plan(out, from, StepsOf(out), sdk::SizeOf(prep.input(0).dtype));
    if (copy.dense() && prep.size(0) == sdk::SizeOf(prep.output(0).shape)) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

/// Pad and PadV2. The elements around the copied ones are to be filled first, if `pads`.
template <class Copy>
struct PadPlan {
  Copy copy;
  bool pads = false;

  int32_t Plan(sdk::Prep& prep) {
    std::vector<int64_t> paddings;
    if (const int32_t code = Steering(prep, 1, &paddings); code != WEIR_OK) return code;
    const std::vector<int64_t> whole = DimsOf(prep.shape(0)), out = DimsOf(prep.output(0).shape);
    if (paddings.size() != 2 * whole.size() || out.size() != whole.size()) {
      return prep.error().InvalidArgument("The first dimension of paddings must be the rank of inputs", prep.shape(1),
                                          " ", prep.shape(0));
    }
    const std::vector<int64_t> to = StepsOf(out);
    int64_t offset = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
      if (before < 0 || after < 0) {
        return prep.error().InvalidArgument("Paddings must be non-negative: ", before, " ", after);
      }
      // This order of comparisons avoids overflow.
      if (before > out[i] || after > out[i] - before || whole[i] != out[i] - before - after) {
        return prep.error().Fail(WEIR_INTERNAL, "output 0 has shape ", prep.output(0).shape, ", padding ",
                                 prep.shape(0), " by ", before, " and ", after, " along axis ", i, " gives another");
      }
      pads = pads || before != 0 || after != 0;
      offset += before * to[i];
    }
    copy.Plan(whole, StepsOf(whole), to, sdk::SizeOf(prep.input(0).dtype), 0, offset);
    if (!pads) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_STRIDED_PLANS_H_
