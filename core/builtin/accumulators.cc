// The accumulator ops.
#include "core/base/errors.h"
#include "core/builtin/accumulator.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/references.h"

namespace weir::builtin {
namespace {

using AccumulatorPtr = std::shared_ptr<Accumulator>;

Status CheckSharedAccumulator(const Accumulator& made, const Accumulator::Options& asked, const std::string& name) {
  const Accumulator::Options& has = made.options();
  if (has.dtype != asked.dtype) {
    return InvalidArgument("Shared accumulator '{}' has dtype {} but requested dtype was {}", name, Name(has.dtype),
                           Name(asked.dtype));
  }
  if (has.shape != asked.shape) {
    return InvalidArgument("Shared accumulator '{}' has shape {} but requested shape was {}", name,
                           has.shape.ToString(), asked.shape.ToString());
  }
  if (has.reduction == asked.reduction) return Status();
  const auto text = [](Accumulator::Reduction r) { return r == Accumulator::Reduction::kMean ? "MEAN" : "SUM"; };
  return InvalidArgument("Shared accumulator '{}' has reduction type {} but requested reduction type was {}", name,
                         text(has.reduction), text(asked.reduction));
}

template <class Kind>
Status MakeAccumulator(kernel::BuiltinCall& call, bool by_reference) {
  Accumulator::Options options;
  WEIR_ASSIGN(options.dtype, call.attrs.Type("dtype"));
  WEIR_ASSIGN(options.shape, call.attrs.ShapeAttr("shape"));
  WEIR_ASSIGN(const std::string reduction, call.attrs.String("reduction_type"));
  options.reduction = reduction == "SUM" ? Accumulator::Reduction::kSum : Accumulator::Reduction::kMean;
  if (options.dtype != DType::kHalf && options.dtype != DType::kFloat && options.dtype != DType::kDouble) {
    return InvalidArgument("{} takes half, float or double, got {}", call.attrs.def().name, Name(options.dtype));
  }
  WEIR_ASSIGN(const std::string shared, call.attrs.String("shared_name"));
  WEIR_ASSIGN(const std::shared_ptr<Resource> made,
              OutputOfSession(call, 0, Kind::kTypeName, [&]() -> Result<std::shared_ptr<Resource>> {
                return std::shared_ptr<Resource>(
                    std::make_shared<Kind>(shared.empty() ? std::string(call.node_name) : shared, options));
              }));
  const auto accumulator = std::dynamic_pointer_cast<Kind>(made);
  if (!accumulator) return Internal("an accumulator of another kind has the name '{}'", shared);
  WEIR_TRY(CheckSharedAccumulator(*accumulator, options, shared));
  if (by_reference) ReferToHandle(call, 0);
  return Status();
}

/// The accumulator behind input 0, whichever kind it is.
Result<AccumulatorPtr> AccumulatorOf(const kernel::BuiltinCall& call) {
  if (call.inputs[0].dtype() == DType::kResource) {
    WEIR_ASSIGN(const std::shared_ptr<Resource> resource, ResourceAt(call, 0));
    if (auto typed = std::dynamic_pointer_cast<Accumulator>(resource)) return typed;
    return runtime::WrongType(call.inputs[0].as<ResourceHandle>()[0], *resource, DenseAccumulator::kTypeName);
  }
  Result<std::shared_ptr<Resource>> found = ReferredResource(call, 0, DenseAccumulator::kTypeName);
  if (!found.ok()) {
    const Result<std::shared_ptr<Resource>> sparse = ReferredResource(call, 0, SparseAccumulator::kTypeName);
    if (!sparse.ok()) return found.status();
    found = sparse;
  }
  return std::dynamic_pointer_cast<Accumulator>(*found);
}

Result<AccumulatorPtr> TypedAccumulator(const kernel::BuiltinCall& call, bool sparse) {
  WEIR_ASSIGN(AccumulatorPtr accumulator, AccumulatorOf(call));
  WEIR_ASSIGN(const DType dtype, call.attrs.Type("dtype"));
  const bool is_sparse = std::dynamic_pointer_cast<SparseAccumulator>(accumulator) != nullptr;
  if (is_sparse != sparse) {
    return InvalidArgument("{} needs a {} accumulator, and '{}' is a {} one", call.attrs.def().name,
                           sparse ? "sparse" : "dense", accumulator->name(), is_sparse ? "sparse" : "dense");
  }
  if (accumulator->options().dtype == dtype) return accumulator;
  return InvalidArgument("Type mismatch between accumulator '{}', which has {}, and the node, which has {}",
                         accumulator->name(), Name(accumulator->options().dtype), Name(dtype));
}

/// Element of a scalar; `text`: TensorFlow's error with the shape at its end.
template <class T>
Result<T> OneOf(const kernel::BuiltinCall& call, size_t i, std::string_view text) {
  if (call.inputs[i].shape().rank() == 0) return call.inputs[i].as<T>()[0];
  return InvalidArgument("{}{}", text, call.inputs[i].shape().ToString());
}

Status ApplyGradient(kernel::BuiltinCall& call, bool sparse) {
  WEIR_ASSIGN(const AccumulatorPtr accumulator, TypedAccumulator(call, sparse));
  WEIR_ASSIGN(const int64_t step, OneOf<int64_t>(call, 1, "Argument local_step must be scalar, but had bad shape "));
  std::vector<Tensor> parts(call.inputs.begin() + 2, call.inputs.end());
  if (sparse) {
    WEIR_ASSIGN(const bool known, call.attrs.Bool("has_known_shape"));
    if (!known) parts.pop_back();
  }
  return accumulator->Apply(step, parts);
}

void TakeGradient(kernel::BuiltinCall call, runtime::Completion done, bool sparse) {
  const auto start = [&]() -> Status {
    WEIR_ASSIGN(const AccumulatorPtr accumulator, TypedAccumulator(call, sparse));
    WEIR_ASSIGN(const int32_t required,
                OneOf<int32_t>(call, 1, "Argument num_required must be scalar, but had bad shape "));
    accumulator->Take(required, call.cancellation, std::move(done));
    return Status();
  };
  if (const Status started = start(); !started.ok()) done(started);
}

Status NumAccumulated(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const AccumulatorPtr accumulator, AccumulatorOf(call));
  call.outputs[0] = Tensor::Scalar(accumulator->num_accumulated());
  return Status();
}

Status SetGlobalStep(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const AccumulatorPtr accumulator, AccumulatorOf(call));
  WEIR_ASSIGN(const int64_t step,
              OneOf<int64_t>(call, 1, "Argument new_global_step must be scalar, but had bad shape "));
  accumulator->SetGlobalStep(step);
  return Status();
}

}  // namespace

void AddAccumulators(kernel::KernelRegistry& kernels) {
  using kernel::InputUse;
  const auto make = [](auto maker, bool by_reference) {
    return [maker, by_reference](kernel::BuiltinCall& call) { return maker(call, by_reference); };
  };
  kernels.AddHost("ConditionalAccumulator", make(MakeAccumulator<DenseAccumulator>, true));
  kernels.AddHost("ResourceConditionalAccumulator", make(MakeAccumulator<DenseAccumulator>, false));
  kernels.AddHost("SparseConditionalAccumulator", make(MakeAccumulator<SparseAccumulator>, true));
  const auto apply = [](bool sparse) {
    return [sparse](kernel::BuiltinCall& call) { return ApplyGradient(call, sparse); };
  };
  const auto take = [](bool sparse) {
    return [sparse](kernel::BuiltinCall call, runtime::Completion done) {
      TakeGradient(std::move(call), std::move(done), sparse);
    };
  };
  for (const std::string prefix : {"", "Resource"}) {
    kernels.AddHost(prefix + "AccumulatorApplyGradient", apply(false), InputUse::kKept);
    kernels.AddHostAsync(prefix + "AccumulatorTakeGradient", take(false));
    kernels.AddHost(prefix + "AccumulatorNumAccumulated", NumAccumulated);
    kernels.AddHost(prefix + "AccumulatorSetGlobalStep", SetGlobalStep);
  }
  kernels.AddHost("SparseAccumulatorApplyGradient", apply(true), InputUse::kKept);
  kernels.AddHostAsync("SparseAccumulatorTakeGradient", take(true));
}

}  // namespace weir::builtin
