// The barrier ops.
#include <algorithm>

#include "core/base/errors.h"
#include "core/builtin/barrier.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/references.h"

namespace weir::builtin {
namespace {

using BarrierPtr = std::shared_ptr<Barrier>;

Status CheckSharedBarrier(const Barrier& barrier, const Barrier::Options& asked, const std::string& name) {
  const Barrier::Options& has = barrier.options();
  if (has.types != asked.types) {
    return InvalidArgument("Shared barrier '{}' has component types {} but requested component types were {}", name,
                           ListText(has.types), ListText(asked.types));
  }
  if (has.shapes == asked.shapes) return Status();
  return InvalidArgument("Shared barrier '{}' has component shapes {} but requested component shapes were {}", name,
                         ListText(has.shapes), ListText(asked.shapes));
}

Status MakeBarrier(kernel::BuiltinCall& call) {
  Barrier::Options options;
  WEIR_ASSIGN(options.types, call.attrs.Types("component_types"));
  WEIR_ASSIGN(options.shapes, call.attrs.Shapes("shapes"));
  WEIR_ASSIGN(const int64_t capacity, call.attrs.Int("capacity"));
  WEIR_ASSIGN(const std::string shared, call.attrs.String("shared_name"));
  for (const PartialShape& shape : options.shapes) {
    if (!shape.fully_defined()) return InvalidArgument("Shape {} is not fully defined", shape.ToString());
  }
  if (options.shapes.size() != options.types.size()) {
    return InvalidArgument("All of the component shapes must be specified");
  }
  if (capacity != -1) {
    return InvalidArgument(
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited "
        "capacity.");
  }
  WEIR_ASSIGN(const std::shared_ptr<Resource> made,
              OutputOfSession(call, 0, Barrier::kTypeName, [&]() -> Result<std::shared_ptr<Resource>> {
                return std::shared_ptr<Resource>(std::make_shared<Barrier>(call.node_name, shared, options));
              }));
  const auto barrier = std::dynamic_pointer_cast<Barrier>(made);
  if (!barrier) return Internal("what is no barrier has the name '{}'", shared);
  WEIR_TRY(CheckSharedBarrier(*barrier, options, shared));
  ReferToHandle(call, 0);
  return Status();
}

Status InsertMany(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const BarrierPtr barrier, ResourceBehind<Barrier>(call, 0));
  WEIR_ASSIGN(const int64_t component, call.attrs.Int("component_index"));
  const std::vector<DType>& types = barrier->options().types;
  if (component < 0 || component >= static_cast<int64_t>(types.size())) {
    return InvalidArgument("The component ID is out of range {} > num_components (= {})", component, types.size());
  }
  const std::vector<DType> wanted = {DType::kString, types[static_cast<size_t>(component)]};
  WEIR_TRY(CheckSignature(call, wanted, {}, {}));
  const Shape &keys = call.inputs[1].shape(), &values = call.inputs[2].shape();
  if (keys.rank() != 1 || values.rank() < 1 || keys.dim(0) != values.dim(0)) {
    return InvalidArgument("keys have shape {} and values {}, wanted a vector and a row for each key", keys.ToString(),
                           values.ToString());
  }
  return barrier->Insert(call.inputs[1].as<std::string>(), component, call.inputs[2]);
}

void TakeMany(kernel::BuiltinCall call, runtime::Completion done) {
  const auto start = [&]() -> Status {
    WEIR_ASSIGN(const int64_t timeout, call.attrs.Int("timeout_ms"));
    if (timeout != -1) return InvalidArgument("Timeout not supported yet.");
    WEIR_ASSIGN(const BarrierPtr barrier, ResourceBehind<Barrier>(call, 0));
    WEIR_ASSIGN(const bool small, call.attrs.Bool("allow_small_batch"));
    WEIR_ASSIGN(const std::vector<DType> types, call.attrs.Types("component_types"));
    if (call.inputs[1].shape().rank() != 0) return InvalidArgument("num_elements must be a scalar.");
    const auto outputs = [](const std::vector<DType>& components) {
      std::vector<DType> all = {DType::kInt64, DType::kString};
      all.insert(all.end(), components.begin(), components.end());
      return all;
    };
    const std::vector<DType> count_type = {DType::kInt32};
    WEIR_TRY(CheckSignature(call, count_type, outputs(types), outputs(barrier->options().types)));
    WEIR_ASSIGN(const int32_t count, Scalar<int32_t>(call, 1, "num_elements"));
    if (count < 0) return InvalidArgument("BarrierTakeMany requested {} < 0 elements", count);
    barrier->Take(count, small ? Barrier::Batch::kWhatThereIs : Barrier::Batch::kAllOrNone, call.cancellation,
                  std::move(done));
    return Status();
  };
  if (const Status started = start(); !started.ok()) done(started);
}

Status CloseBarrier(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const BarrierPtr barrier, ResourceBehind<Barrier>(call, 0));
  WEIR_ASSIGN(const bool cancel, call.attrs.Bool("cancel_pending_enqueues"));
  return barrier->Close(cancel ? Barrier::Pending::kDrop : Barrier::Pending::kFinish);
}

Status SizeOfBarrier(kernel::BuiltinCall& call, int64_t (Barrier::*size)() const) {
  WEIR_ASSIGN(const BarrierPtr barrier, ResourceBehind<Barrier>(call, 0));
  call.outputs[0] = Tensor::Scalar(static_cast<int32_t>((*barrier.*size)()));
  return Status();
}

}  // namespace

void AddBarriers(kernel::KernelRegistry& kernels) {
  kernels.AddHost("Barrier", MakeBarrier);
  kernels.AddHost("BarrierInsertMany", InsertMany, kernel::InputUse::kKept);
  kernels.AddHostAsync("BarrierTakeMany", TakeMany);
  kernels.AddHost("BarrierClose", CloseBarrier);
  kernels.AddHost("BarrierReadySize",
                  [](kernel::BuiltinCall& call) { return SizeOfBarrier(call, &Barrier::ready_size); });
  kernels.AddHost("BarrierIncompleteSize",
                  [](kernel::BuiltinCall& call) { return SizeOfBarrier(call, &Barrier::incomplete_size); });
}

}  // namespace weir::builtin
