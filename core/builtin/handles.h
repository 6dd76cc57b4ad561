// Resource handles as operands of a builtin call.
#ifndef WEIR_CORE_BUILTIN_HANDLES_H_
#define WEIR_CORE_BUILTIN_HANDLES_H_

#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/kernel/builtin.h"
#include "core/runtime/resource.h"
#include "core/tensor/resource.h"

namespace weir::builtin {

/// A scalar tensor with one handle.
Tensor HandleTensor(ResourceHandle handle);

/// The handle in input `i`. InvalidArgument if that is not a scalar handle.
Result<ResourceHandle> HandleAt(const kernel::BuiltinCall& call, size_t i);

/// The resource of the handle in input `i`. NotFound with TensorFlow's text if the resource was destroyed or belongs to
/// another session or step.
Result<std::shared_ptr<Resource>> ResourceAt(const kernel::BuiltinCall& call, size_t i);

/// As above with a cast to T, which must have a kTypeName; InvalidArgument for another type.
template <class T>
Result<std::shared_ptr<T>> ResourceOf(const kernel::BuiltinCall& call, size_t i) {
  WEIR_ASSIGN(std::shared_ptr<Resource> resource, ResourceAt(call, i));
  std::shared_ptr<T> typed = std::dynamic_pointer_cast<T>(resource);
  if (!typed) return runtime::WrongType(call.inputs[i].as<ResourceHandle>()[0], *resource, T::kTypeName);
  return typed;
}

/// Sets output `i` to a handle of a resource that is destroyed at the end of the step.
Status OutputOfStep(kernel::BuiltinCall& call, size_t i, std::shared_ptr<Resource> resource);

/// The session's resource with the name in the attribute `shared_name`, or that of the node, in the container of the
/// attribute; created on first use.
Result<std::shared_ptr<Resource>> SharedResource(const kernel::BuiltinCall& call, std::string_view type_name,
                                                 const runtime::ResourceScope::Make& make);

/// Sets output `i` to a handle of a session resource, created on first use. Its name comes from the attributes
/// `container` and `shared_name`; if `shared_name` is empty the resource belongs to the node.
Result<std::shared_ptr<Resource>> OutputOfSession(kernel::BuiltinCall& call, size_t i, std::string_view type_name,
                                                  const runtime::ResourceScope::Make& make);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_HANDLES_H_
