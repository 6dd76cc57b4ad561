// The operands of a product with a bias and an activation, for kernels of _BiasedMatMul.
#ifndef WEIR_PLUGINS_FUNCTORS_BIASED_PRODUCT_H_
#define WEIR_PLUGINS_FUNCTORS_BIASED_PRODUCT_H_

#include "plugins/functors/activation.h"
#include "sdk/cpp/products.h"

namespace weir::functors {

/// Checks operand 2, a bias for each column of the planned product, and reads the attribute `activation`. Unimplemented
/// for another shape or activation.
inline int32_t PrepareBias(const sdk::Prep& prep, const sdk::Products& products, Activation* activation) {
  const weir_shape& bias = prep.shape(2);
  if (bias.rank != 1 || bias.dims[0] != products.one().n) {
    return prep.error().Unimplemented("the bias must have the shape [", products.one().n, "], got ", bias);
  }
  const std::string_view name = prep.node().String("activation");
  const std::optional<Activation> known = ParseActivation(name);
  if (!known) return prep.error().Unimplemented("no activation '", name, "'");
  *activation = *known;
  return WEIR_OK;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BIASED_PRODUCT_H_
