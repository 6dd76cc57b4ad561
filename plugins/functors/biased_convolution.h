// The operands of a convolution with a bias, an addend and an activation, for kernels of _BiasedConv2D and its kin.
#ifndef WEIR_PLUGINS_FUNCTORS_BIASED_CONVOLUTION_H_
#define WEIR_PLUGINS_FUNCTORS_BIASED_CONVOLUTION_H_

#include <algorithm>

#include "plugins/functors/read_finish.h"
#include "sdk/cpp/convolutions.h"

namespace weir::functors {

/// True for [channels], and where channels are the last axis also for [1, …, channels].
inline bool IsChannelVector(const weir_shape& shape, const sdk::Convolution& conv) {
  if (shape.rank < 1 || shape.rank > conv.windows.spatial + 2) return false;
  if (conv.windows.channels_first && shape.rank != 1) return false;
  const int64_t* const last = shape.dims + shape.rank - 1;
  return *last == conv.out && std::all_of(shape.dims, last, [](int64_t extent) { return extent == 1; });
}

/// Checks operand 2, the bias of a planned convolution, and operand 3, the addend, if `with_addend`; reads the
/// attributes of the activation. Unimplemented for other shapes or activations, and for convolutions without products.
inline int32_t PrepareFinish(const sdk::Prep& prep, const sdk::Convolution& conv, bool with_addend, Finish* finish) {
  if (conv.empty) return prep.error().Unimplemented("the convolution has no products");
  if (!IsChannelVector(prep.shape(2), conv)) {
    return prep.error().Unimplemented("the bias must have the shape [", conv.out, "], got ", prep.shape(2));
  }
  if (with_addend) {
    const weir_shape &addend = prep.shape(3), &y = prep.output(0).shape;
    if (addend.rank != y.rank || !std::equal(y.dims, y.dims + y.rank, addend.dims)) {
      return prep.error().Unimplemented("the addend must have the shape ", y, ", got ", addend);
    }
  }
  return ReadFinish(prep, finish);
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BIASED_CONVOLUTION_H_
