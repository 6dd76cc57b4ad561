// The attributes `activation` and `alpha` of fused ops.
#ifndef WEIR_PLUGINS_FUNCTORS_READ_FINISH_H_
#define WEIR_PLUGINS_FUNCTORS_READ_FINISH_H_

#include "plugins/functors/activation.h"
#include "sdk/cpp/prepare.h"

namespace weir::functors {

/// Unimplemented for an unknown activation.
inline int32_t ReadFinish(const sdk::Prep& prep, Finish* finish) {
  const std::string_view name = prep.node().String("activation");
  const std::optional<Activation> known = ParseActivation(name);
  if (!known) return prep.error().Unimplemented("no activation '", name, "'");
  finish->activation = *known;
  finish->alpha = static_cast<float>(prep.node().Float("alpha"));
  return WEIR_OK;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_READ_FINISH_H_
