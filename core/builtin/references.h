// References to resources, as ops from before resource handles have them: a vector of two strings, container and name.
#ifndef WEIR_CORE_BUILTIN_REFERENCES_H_
#define WEIR_CORE_BUILTIN_REFERENCES_H_

#include <memory>
#include <string_view>

#include "core/base/errors.h"
#include "core/builtin/handles.h"

namespace weir::builtin {

/// Replaces the handle in output `i` by a reference.
void ReferToHandle(kernel::BuiltinCall& call, size_t i);

/// The resource of a type that the reference in input `i` names, of the step or the session, on the device of the node.
/// InvalidArgument if the input is no reference; NotFound with TensorFlow's text.
Result<std::shared_ptr<Resource>> ReferredResource(const kernel::BuiltinCall& call, size_t i,
                                                   std::string_view type_name);

/// The resource in input `i`, which is a handle or a reference.
template <class T>
Result<std::shared_ptr<T>> ResourceBehind(const kernel::BuiltinCall& call, size_t i) {
  if (call.inputs[i].dtype() == DType::kResource) return ResourceOf<T>(call, i);
  WEIR_ASSIGN(const std::shared_ptr<Resource> resource, ReferredResource(call, i, T::kTypeName));
  if (std::shared_ptr<T> typed = std::dynamic_pointer_cast<T>(resource)) return typed;
  return Internal("'{}' is not of type {}", resource->DebugString(), T::kTypeName);
}

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_REFERENCES_H_
