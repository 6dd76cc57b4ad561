// ReverseSequence: the beginnings of sequences in reverse order.
#include <cstring>

#include "plugins/functors/reverse_sequence_plan.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

struct ReverseSequence : functors::ReverseSequencePlan {
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
