#include "core/builtin/references.h"

#include <string>
#include <vector>

#include "core/base/errors.h"

namespace weir::builtin {

void ReferToHandle(kernel::BuiltinCall& call, size_t i) {
  const ResourceHandle handle = call.outputs[i].as<ResourceHandle>()[0];
  call.outputs[i] = Tensor::Vector<std::string>({handle.container, handle.name});
}

Result<std::shared_ptr<Resource>> ReferredResource(const kernel::BuiltinCall& call, size_t i,
                                                   std::string_view type_name) {
  const Tensor& input = call.inputs[i];
  if (input.dtype() != DType::kString || input.elements() != 2) {
    return InvalidArgument("input {} must be a reference of 2 strings, got {} of shape {}", i, Name(input.dtype()),
                           input.shape().ToString());
  }
  if (call.scope == nullptr) return FailedPrecondition("{} needs a session", call.attrs.def().name);
  const std::span<const std::string> names = input.as<std::string>();
  ResourceHandle handle;
  handle.device = call.device == nullptr ? "" : call.device->name();
  handle.container = names[0];
  handle.name = names[1];
  handle.type_name = type_name;
  const bool of_step = call.step_scope != nullptr && call.step_scope->Owns(handle);
  return (of_step ? call.step_scope : call.scope)->Find(handle);
}

}  // namespace weir::builtin
