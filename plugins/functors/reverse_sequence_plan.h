// Checks and extents of ReverseSequence.
#ifndef WEIR_PLUGINS_FUNCTORS_REVERSE_SEQUENCE_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_REVERSE_SEQUENCE_PLAN_H_

#include <algorithm>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// The input as [outer, middle, between, inner]; the two middle axes are the batch's and the sequence's, in any order.
struct ReverseSequencePlan {
  int64_t outer = 1, first = 1, between = 1, second = 1;
  size_t inner_bytes = 0;
  bool batch_first = false;
  int64_t seq_dim = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &input = prep.shape(0), &lengths = prep.shape(1);
    const sdk::Error& error = prep.error();
    const int64_t batch_dim = prep.node().Int("batch_dim"), rank = input.rank;
    seq_dim = prep.node().Int("seq_dim");
    if (batch_dim < 0) return error.InvalidArgument("Invalid batch_dim ", batch_dim);
    if (seq_dim < 0) return error.InvalidArgument("Invalid seq_dim ", seq_dim);
    if (lengths.rank != 1) return error.InvalidArgument("seq_lengths must be 1-dim, not ", lengths.rank);
    if (batch_dim == seq_dim) return error.InvalidArgument("batch_dim == seq_dim == ", seq_dim);
    if (seq_dim >= rank) return error.InvalidArgument("seq_dim must be < input rank ( ", seq_dim, " vs. ", rank, ")");
    if (batch_dim >= rank) {
      return error.InvalidArgument("batch_dim must be < input rank ( ", batch_dim, " vs. ", rank, ")");
    }
    if (lengths.dims[0] != input.dims[batch_dim]) {
      return error.InvalidArgument("Length of seq_lengths != input.dims(", batch_dim, "), (", lengths.dims[0], " vs. ",
                                   input.dims[batch_dim], ")");
    }
    batch_first = batch_dim < seq_dim;
    const auto low = static_cast<uint32_t>(std::min(batch_dim, seq_dim));
    const auto high = static_cast<uint32_t>(std::max(batch_dim, seq_dim));
    first = input.dims[low];
    second = input.dims[high];
    if (prep.size(0) == 0) {
      outer = 0;
      return WEIR_OK;
    }
    outer = SizeOf(input, 0, low);
    between = SizeOf(input, low + 1, high);
    inner_bytes = static_cast<size_t>(SizeOf(input, high + 1, input.rank)) * sdk::SizeOf(prep.input(0).dtype);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_REVERSE_SEQUENCE_PLAN_H_
