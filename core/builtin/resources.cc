// Ops on resources of any type.
#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/tensor/resource.h"

namespace weir::builtin {
namespace {

/// Plans keep their variables, so a variable is not destroyed but loses its value.
Status DropValue(runtime::Variable& variable, const ResourceHandle& handle) {
  Tensor gone;  // destroyed outside the lock
  const std::unique_lock lock(variable.mutex);
  if (!variable.value.valid()) {
    return runtime::NoSuchResource(handle.container, handle.name, runtime::Variable::kTypeName);
  }
  if (!variable.value.on_host()) {
    return Unimplemented("variable '{}' lies in the memory of {}, where it cannot be destroyed", handle.name,
                         handle.device);
  }
  std::swap(gone, variable.value);
  return Status();
}

Status DestroyResource(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const bool ignore, call.attrs.Bool("ignore_lookup_error"));
  WEIR_ASSIGN(const ResourceHandle handle, HandleAt(call, 0));
  const Result<std::shared_ptr<Resource>> resource = ResourceAt(call, 0);
  Status done = resource.status();
  if (resource.ok()) {
    const auto variable = std::dynamic_pointer_cast<runtime::Variable>(*resource);
    const bool of_step = call.step_scope != nullptr && call.step_scope->Owns(handle);
    done = variable ? DropValue(*variable, handle) : (of_step ? call.step_scope : call.scope)->Destroy(handle);
  }
  return ignore && done.code() == Code::kNotFound ? Status() : done;
}

/// Reads of variables share the value until it is written, whatever the node says.
Status DisableCopyOnRead(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 0));
  const Result<std::shared_ptr<Resource>> resource = ResourceAt(call, 0);
  return resource.ok() || resource.status().code() == Code::kNotFound ? Status() : resource.status();
}

/// The variable's last value; the variable ends.
Status DestroyTemporaryVariable(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(std::string name, call.attrs.String("var_name"));
  if (call.step_scope == nullptr) return FailedPrecondition("{} needs a session", call.attrs.def().name);
  const runtime::ResourceKey key{{}, runtime::kStepContainer, std::move(name)};
  const std::shared_ptr<runtime::Variable> variable = call.step_scope->Find(key);
  if (!variable) return runtime::NoSuchResource(key.container, key.name, "tensorflow::TemporaryVariableOp::TmpVar");
  call.outputs[0] = call.inputs[0];
  return call.step_scope->Destroy(runtime::HandleOf(key, variable));
}

}  // namespace

void AddResources(kernel::KernelRegistry& kernels) {
  kernels.AddHost("DestroyResourceOp", DestroyResource);
  kernels.AddHost("DisableCopyOnRead", DisableCopyOnRead);
  kernels.AddHost("DestroyTemporaryVariable", DestroyTemporaryVariable);
}

}  // namespace weir::builtin
