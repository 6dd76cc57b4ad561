// Strings cut into pieces, and joined.
#include <algorithm>

#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/tensor/number.h"

namespace weir::builtin {
namespace {

using Pieces = std::vector<std::string_view>;

/// Pieces between characters of `delimiters`; the single bytes if there are none.
void CutAtAny(std::string_view text, std::string_view delimiters, bool skip_empty, Pieces* pieces) {
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) pieces->push_back(text.substr(i, 1));
    return;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(delimiters, begin), text.size());
    if (end > begin || !skip_empty) pieces->push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// Pieces between occurrences of `separator`, after at most `cuts` cuts.
void CutAt(std::string_view text, std::string_view separator, int64_t cuts, Pieces* pieces) {
  size_t begin = 0;
  for (; cuts > 0; --cuts) {
    const size_t end = text.find(separator, begin);
    if (end == std::string_view::npos) break;
    pieces->push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  pieces->push_back(text.substr(begin));
}

/// Words between white space, after at most `cuts` cuts.
void CutAtBlanks(std::string_view text, int64_t cuts, Pieces* pieces) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  if (cuts == 0) return pieces->push_back(text);
  size_t begin = text.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    pieces->push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
    // What is left behind the last cut is a piece even if it is empty, as in TensorFlow.
    if (--cuts == 0) return pieces->push_back(text.substr(std::min(begin, text.size())));
  }
}

/// Cuts a vector of strings; `what` is the name of input 1.
template <class Cut>
Status SplitBy(kernel::BuiltinCall& call, std::string_view what, Cut&& cut) {
  WEIR_TRY(CheckCounts(call, 2, 3));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "input"));
  WEIR_ASSIGN(const std::span<const std::string> separator, Elements<std::string>(call, 1, what));
  const Shape &shape = call.inputs[0].shape(), &separator_shape = call.inputs[1].shape();
  if (shape.rank() != 1) return InvalidArgument("input must be a vector, got shape: {}", shape.ToString());
  if (separator_shape.rank() != 0) {
    return InvalidArgument("{} must be a scalar, got shape: {}", what, separator_shape.ToString());
  }
  Pieces pieces;
  std::vector<int64_t> indices;
  int64_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t before = pieces.size();
    cut(texts[i], separator[0], &pieces);
    const auto count = static_cast<int64_t>(pieces.size() - before);
    for (int64_t k = 0; k < count; ++k) {
      indices.push_back(static_cast<int64_t>(i));
      indices.push_back(k);
    }
    longest = std::max(longest, count);
  }
  const auto count = static_cast<int64_t>(pieces.size());
  call.outputs[0] = Tensor::Of(Shape{count, 2}, indices);
  WEIR_ASSIGN(call.outputs[1], Tensor::Make(DType::kString, Shape{count}));
  std::copy(pieces.begin(), pieces.end(), call.outputs[1].mutable_as<std::string>().begin());
  call.outputs[2] = Tensor::Vector<int64_t>({shape.dim(0), longest});
  return Status();
}

Status StringSplit(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const bool skip_empty, call.attrs.Bool("skip_empty"));
  return SplitBy(call, "delimiter", [skip_empty](std::string_view text, std::string_view delimiters, Pieces* pieces) {
    if (!text.empty()) CutAtAny(text, delimiters, skip_empty, pieces);
  });
}

Status StringSplitV2(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(int64_t cuts, call.attrs.Int("maxsplit"));
  if (cuts < 0) cuts = INT64_MAX;
  return SplitBy(call, "sep", [cuts](std::string_view text, std::string_view separator, Pieces* pieces) {
    separator.empty() ? CutAtBlanks(text, cuts, pieces) : CutAt(text, separator, cuts, pieces);
  });
}

Status ReduceJoin(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "inputs"));
  WEIR_ASSIGN(const std::span<const int32_t> axes, Elements<int32_t>(call, 1, "reduction_indices"));
  WEIR_ASSIGN(const bool keep, call.attrs.Bool("keep_dims"));
  WEIR_ASSIGN(const std::string separator, call.attrs.String("separator"));
  const Shape& shape = call.inputs[0].shape();
  const int rank = shape.rank();
  std::vector<int> joined;  // axes in the reverse order of the indices: the last one, named first, changes fastest
  for (const int32_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return OutOfRange("Invalid reduction dimension {} for input with {} dimension(s)", axis, rank);
    }
    const int own = axis < 0 ? axis + rank : axis;
    if (std::ranges::find(joined, own) != joined.end()) {
      return InvalidArgument("Duplicate reduction dimension {}", axis);
    }
    joined.insert(joined.begin(), own);
  }
  std::vector<int64_t> steps(static_cast<size_t>(rank), 1), dims;
  std::vector<int> kept;
  for (int i = rank - 2; i >= 0 && !texts.empty(); --i) {
    steps[static_cast<size_t>(i)] = steps[static_cast<size_t>(i) + 1] * shape.dim(i + 1);
  }
  for (int i = 0; i < rank; ++i) {
    const bool stays = std::ranges::find(joined, i) == joined.end();
    if (stays) kept.push_back(i);
    if (stays || keep) dims.push_back(stays ? shape.dim(i) : 1);
  }
  const auto place = [&](const std::vector<int>& of, int64_t i) {
    int64_t at = 0;
    for (size_t k = of.size(); k-- > 0;) {
      at += i % shape.dim(of[k]) * steps[static_cast<size_t>(of[k])];
      i /= shape.dim(of[k]);
    }
    return at;
  };
  WEIR_ASSIGN(Shape out_shape, Shape::Make(dims));
  WEIR_ASSIGN(Tensor made, Tensor::Make(DType::kString, std::move(out_shape)));
  const std::span<std::string> out = made.mutable_as<std::string>();
  const int64_t parts = texts.empty() ? 0 : static_cast<int64_t>(texts.size() / out.size());
  for (size_t i = 0; i < out.size() && parts > 0; ++i) {
    const int64_t base = place(kept, static_cast<int64_t>(i));
    for (int64_t k = 0; k < parts; ++k) {
      if (k > 0) out[i] += separator;
      out[i] += texts[static_cast<size_t>(base + place(joined, k))];
    }
  }
  call.outputs[0] = std::move(made);
  return Status();
}

Status UnsortedSegmentJoin(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 1));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "inputs"));
  WEIR_ASSIGN(const std::string separator, call.attrs.String("separator"));
  const Tensor &ids = call.inputs[1], &count = call.inputs[2];
  const Shape &shape = call.inputs[0].shape(), &id_shape = ids.shape();
  if (!IsInteger(ids.dtype()) || !IsInteger(count.dtype())) {
    return InvalidArgument("segment_ids and num_segments must be integers");
  }
  if (count.shape().rank() != 0)
    return InvalidArgument("Number of segments should be a scalar, got shape {}", count.shape().ToString());
  if (id_shape.rank() == 0) return InvalidArgument("Segment_id cannot have rank 0");
  if (id_shape.rank() > shape.rank()) {
    return OutOfRange("Invalid segment_id rank {} for input with {} dimension(s)", id_shape.rank(), shape.rank());
  }
  for (int i = 0; i < id_shape.rank(); ++i) {
    if (id_shape.dim(i) == shape.dim(i)) continue;
    return InvalidArgument("Segment dimension is {} while input dimension is {} in rank {}", id_shape.dim(i),
                           shape.dim(i), i);
  }
  const int64_t segments = ElementAsInt(count, 0);
  if (segments < 0) return InvalidArgument("Number of segments must be non-negative but got {}", segments);
  std::vector<int64_t> dims = {segments};
  for (int i = id_shape.rank(); i < shape.rank(); ++i) dims.push_back(shape.dim(i));
  WEIR_ASSIGN(Shape out_shape, Shape::Make(dims));
  WEIR_ASSIGN(Tensor made, Tensor::Make(DType::kString, out_shape));
  const std::span<std::string> out = made.mutable_as<std::string>();
  const int64_t row = segments == 0 ? 0 : out_shape.elements() / segments;
  for (int64_t i = 0; i < ids.elements(); ++i) {
    const int64_t id = ElementAsInt(ids, i);
    if (id < 0 || id >= segments) {
      return InvalidArgument("segment_ids are not allowed to exceed num_segments or to have negative values.");
    }
    for (int64_t k = 0; k < row; ++k) {
      const auto to = static_cast<size_t>(id * row + k);
      if (!out[to].empty()) out[to] += separator;  // none behind empty texts, as in TensorFlow
      out[to] += texts[static_cast<size_t>(i * row + k)];
    }
  }
  call.outputs[0] = std::move(made);
  return Status();
}

}  // namespace

void AddStringJoins(kernel::KernelRegistry& kernels) {
  kernels.AddHost("StringSplit", StringSplit);
  kernels.AddHost("StringSplitV2", StringSplitV2);
  kernels.AddHost("ReduceJoin", ReduceJoin);
  kernels.AddHost("UnsortedSegmentJoin", UnsortedSegmentJoin);
}

}  // namespace weir::builtin
