// ReverseSequence: the beginnings of sequences in reverse order.
#include <cstring>

#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

/// The input as [outer, middle, between, inner]; the two middle axes are the batch's and the sequence's, in any order.
struct ReverseSequence {
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

  int32_t Run(sdk::Env& env, sdk::AnyInput input, sdk::Integers lengths, sdk::AnyOutput output) const {
    const int64_t steps = batch_first ? second : first;
    for (int64_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 0) return env.error().InvalidArgument("seq_lens(", i, ") < 0");
      if (lengths[i] > steps) return env.error().InvalidArgument("seq_lens(", i, ") > input.dims(", seq_dim, ")");
    }
    const auto* from = static_cast<const std::byte*>(input.data());
    auto* to = static_cast<std::byte*>(output.data());
    ForBlock(inner_bytes, [&](auto bytes) {
      int64_t at = 0;
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t a = 0; a < first; ++a) {
          for (int64_t m = 0; m < between; ++m) {
            for (int64_t b = 0; b < second; ++b, ++at) {
              const int64_t step = batch_first ? b : a, length = lengths[batch_first ? a : b];
              const int64_t mirrored = step < length ? length - 1 - step : step;
              const int64_t source = batch_first ? ((o * first + a) * between + m) * second + mirrored
                                                 : ((o * first + mirrored) * between + m) * second + b;
              std::memcpy(to + static_cast<size_t>(at) * bytes, from + static_cast<size_t>(source) * bytes, bytes);
            }
          }
        }
      }
    });
    return WEIR_OK;
  }
};

}  // namespace

void AddReverseSequence(sdk::KernelTable& k) {
  k.Add<ReverseSequence>("ReverseSequence").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
