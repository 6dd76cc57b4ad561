#include "core/builtin/handles.h"

#include <utility>

#include "core/base/errors.h"

namespace weir::builtin {
namespace {

std::string DeviceOf(const kernel::BuiltinCall& call) { return call.device == nullptr ? "" : call.device->name(); }

/// Whose a resource without a shared name is: the node's alone, or that of all who say the node's name.
enum class Unnamed { kOwn, kNodeName };

Result<ResourceHandle> SessionHandle(const kernel::BuiltinCall& call, Unnamed unnamed, std::string_view type_name,
                                     const runtime::ResourceScope::Make& make) {
  if (call.scope == nullptr) return FailedPrecondition("{} needs a session", call.attrs.def().name);
  WEIR_ASSIGN(const std::string container, call.attrs.String("container"));
  WEIR_ASSIGN(std::string name, call.attrs.String("shared_name"));
  if (name.starts_with('_')) return InvalidArgument("shared_name cannot start with '_':{}", name);
  const bool own = name.empty() && unnamed == Unnamed::kOwn;
  if (name.empty()) name = call.node_name;
  const runtime::ResourceKey key{DeviceOf(call), container.empty() ? runtime::kDefaultContainer : container,
                                 std::move(name)};
  using Sharing = runtime::ResourceScope::Sharing;
  return call.scope->GetOrMake(key, own ? Sharing::kOwn : Sharing::kByName, type_name, make);
}

}  // namespace

Tensor HandleTensor(ResourceHandle handle) { return Tensor::Scalar(std::move(handle)); }

Result<ResourceHandle> HandleAt(const kernel::BuiltinCall& call, size_t i) {
  const Tensor& input = call.inputs[i];
  if (input.dtype() != DType::kResource || input.elements() != 1) {
    return InvalidArgument("input {} must be one resource handle, got {} of shape {}", i, Name(input.dtype()),
                           input.shape().ToString());
  }
  return input.as<ResourceHandle>()[0];
}

Result<std::shared_ptr<Resource>> ResourceAt(const kernel::BuiltinCall& call, size_t i) {
  WEIR_ASSIGN(const ResourceHandle handle, HandleAt(call, i));
  if (call.scope == nullptr) return FailedPrecondition("{} needs a session", call.attrs.def().name);
  const bool of_step = call.step_scope != nullptr && call.step_scope->Owns(handle);
  return (of_step ? call.step_scope : call.scope)->Find(handle);
}

Status OutputOfStep(kernel::BuiltinCall& call, size_t i, std::shared_ptr<Resource> resource) {
  if (call.step_scope == nullptr) return FailedPrecondition("{} needs a session", call.attrs.def().name);
  const runtime::ResourceKey key{DeviceOf(call), runtime::kStepContainer, std::string(call.node_name)};
  call.outputs[i] = HandleTensor(call.step_scope->Add(key, std::move(resource)));
  return Status();
}

Result<std::shared_ptr<Resource>> SharedResource(const kernel::BuiltinCall& call, std::string_view type_name,
                                                 const runtime::ResourceScope::Make& make) {
  WEIR_ASSIGN(const ResourceHandle handle, SessionHandle(call, Unnamed::kNodeName, type_name, make));
  return handle.resource;
}

Result<std::shared_ptr<Resource>> OutputOfSession(kernel::BuiltinCall& call, size_t i, std::string_view type_name,
                                                  const runtime::ResourceScope::Make& make) {
  const Result<bool> by_node = call.attrs.Bool("use_node_name_sharing");
  const Unnamed unnamed = by_node.ok() && *by_node ? Unnamed::kNodeName : Unnamed::kOwn;
  WEIR_ASSIGN(ResourceHandle handle, SessionHandle(call, unnamed, type_name, make));
  std::shared_ptr<Resource> resource = handle.resource;
  call.outputs[i] = HandleTensor(std::move(handle));
  return resource;
}

}  // namespace weir::builtin
