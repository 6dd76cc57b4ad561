// Ops that map each string of a tensor.
#ifndef WEIR_CORE_BUILTIN_TEXTS_H_
#define WEIR_CORE_BUILTIN_TEXTS_H_

#include <string>
#include <utility>

#include "core/builtin/operands.h"

namespace weir::builtin {

/// Output 0 gets the shape of input 0, which are strings, and `map` of each.
template <class T, class Map>
Status MapTexts(kernel::BuiltinCall& call, Map&& map) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "input"));
  WEIR_ASSIGN(Tensor made, Tensor::Make(DTypeOf<T>::value, call.inputs[0].shape()));
  const std::span<T> out = made.mutable_as<T>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = map(texts[i]);
  call.outputs[0] = std::move(made);
  return Status();
}

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_TEXTS_H_
