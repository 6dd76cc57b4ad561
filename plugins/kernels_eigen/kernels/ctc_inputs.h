// What the ops on connectionist temporal classification share: their inputs, and labellings as sparse outputs.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_CTC_INPUTS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_CTC_INPUTS_H_

#include <algorithm>
#include <vector>

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

/// Logits [time, batch, classes] and the number of steps of each sequence.
template <class T>
struct CtcInputs {
  sdk::View<const T> logits;
  sdk::View<const int32_t> lengths;
  int64_t time = 0, batch = 0, classes = 0;

  const T* Row(int64_t t, int64_t b) const { return logits.data() + (t * batch + b) * classes; }

  /// The texts and codes are those of TensorFlow's loss or of its decoders.
  int32_t Check(const sdk::Error& error, bool loss) {
    if (logits.rank() != 3) return error.InvalidArgument("inputs is not a 3-Tensor");
    time = logits.dim(0);
    batch = logits.dim(1);
    classes = logits.dim(2);
    if (loss && time == 0) return error.InvalidArgument("Max time or first dimension of input cannot be 0.");
    if (lengths.rank() != 1) return error.InvalidArgument("sequence_length is not a vector");
    const int32_t mismatch = loss ? WEIR_INVALID_ARGUMENT : WEIR_FAILED_PRECONDITION;
    if (lengths.dim(0) != batch) {
      return error.Fail(mismatch, "len(sequence_length) != batch_size.  len(sequence_length):  ", lengths.dim(0),
                        " batch_size: ", batch);
    }
    if (logits.size() == 0) return error.InvalidArgument("inputs must not be empty");
    if (classes > INT32_MAX) return error.InvalidArgument("num_classes ", classes, " is too large");
    for (int64_t b = 0; b < batch; ++b) {
      if (lengths[b] > time) return error.Fail(mismatch, "sequence_length(", b, ") <= ", time);
      if (loss && lengths[b] < 0) return error.InvalidArgument("seq_len(", b, ") < 0");
    }
    return WEIR_OK;
  }
};

using CtcLabels = std::vector<int64_t>;

/// Writes indices [labels, 2], labels, and the shape [2] of a sparse [batch, longest] to outputs `path`, `path + paths`
/// and `path + 2 paths`.
inline int32_t WriteLabels(const sdk::Context& ctx, const std::vector<CtcLabels>& labels, uint32_t path,
                           uint32_t paths) {
  int64_t count = 0, longest = 0;
  for (const CtcLabels& row : labels) {
    count += static_cast<int64_t>(row.size());
    longest = std::max(longest, static_cast<int64_t>(row.size()));
  }
  sdk::View<int64_t> indices, values, shape;
  if (const int32_t code = ctx.Output(path, {count, 2}, &indices); code != WEIR_OK) return code;
  if (const int32_t code = ctx.Output(path + paths, {count}, &values); code != WEIR_OK) return code;
  if (const int32_t code = ctx.Output(path + 2 * paths, {2}, &shape); code != WEIR_OK) return code;
  int64_t at = 0;
  for (size_t b = 0; b < labels.size(); ++b) {
    for (size_t i = 0; i < labels[b].size(); ++i, ++at) {
      indices[2 * at] = static_cast<int64_t>(b);
      indices[2 * at + 1] = static_cast<int64_t>(i);
      values[at] = labels[b][i];
    }
  }
  shape[0] = static_cast<int64_t>(labels.size());
  shape[1] = longest;
  return WEIR_OK;
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_CTC_INPUTS_H_
