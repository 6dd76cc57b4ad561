// The operands of a product with a bias and an activation, for kernels of _BiasedMatMul.
#ifndef WEIR_PLUGINS_FUNCTORS_BIASED_PRODUCT_H_
#define WEIR_PLUGINS_FUNCTORS_BIASED_PRODUCT_H_

#include "plugins/functors/read_finish.h"
#include "sdk/cpp/products.h"

namespace weir::functors {

/// Checks operand 2, a bias for each column of the planned product, and reads the attributes of the activation.
/// Unimplemented for another shape or activation.
inline int32_t PrepareBias(const sdk::Prep& prep, const sdk::Products& products, Finish* finish) {
  const weir_shape& bias = prep.shape(2);
  if (bias.rank != 1 || bias.dims[0] != products.one().n) {
    return prep.error().Unimplemented("the bias must have the shape [", products.one().n, "], got ", bias);
  }
  return ReadFinish(prep, finish);
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BIASED_PRODUCT_H_
