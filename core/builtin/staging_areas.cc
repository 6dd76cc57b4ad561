// The staging ops. They have no handles: the attributes of each name the area, which the first op that runs makes.
#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/staging_area.h"

namespace weir::builtin {
namespace {

/// `make`: of limits and types.
template <class Area, class Make>
Result<std::shared_ptr<Area>> AreaOf(const kernel::BuiltinCall& call, const Make& make) {
  WEIR_ASSIGN(const std::shared_ptr<Resource> resource,
              SharedResource(call, Area::kTypeName, [&]() -> Result<std::shared_ptr<Resource>> {
                StagingLimits limits;
                WEIR_ASSIGN(limits.capacity, call.attrs.Int("capacity"));
                WEIR_ASSIGN(limits.memory_limit, call.attrs.Int("memory_limit"));
                WEIR_ASSIGN(std::vector<DType> types, call.attrs.Types("dtypes"));
                return std::shared_ptr<Resource>(make(limits, std::move(types)));
              }));
  if (auto area = std::dynamic_pointer_cast<Area>(resource)) return area;
  return Internal("'{}' is no staging area", resource->DebugString());
}

Result<std::shared_ptr<StagingArea>> QueuedArea(const kernel::BuiltinCall& call) {
  return AreaOf<StagingArea>(call, [](StagingLimits limits, const std::vector<DType>&) {
    return std::make_shared<StagingArea>(limits);
  });
}
Result<std::shared_ptr<StagingMap>> MappedArea(const kernel::BuiltinCall& call) {
  return AreaOf<StagingMap>(call, [](StagingLimits limits, std::vector<DType> types) {
    return std::make_shared<StagingMap>(limits, std::move(types));
  });
}

/// Registers an op that may wait: `start` takes the call and its completion, which it leaves alone if it fails.
template <class Start>
void AddStaging(kernel::KernelRegistry& kernels, const std::string& op, Start start,
                kernel::InputUse use = kernel::InputUse::kDuringCall) {
  const auto run = [start](kernel::BuiltinCall call, runtime::Completion done) {
    if (const Status started = start(call, done); !started.ok()) done(started);
  };
  kernels.AddHostAsync(op, run, use);
}

Status StageTuple(kernel::BuiltinCall& call, runtime::Completion& done) {
  WEIR_ASSIGN(const std::shared_ptr<StagingArea> area, QueuedArea(call));
  area->Put(std::move(call.inputs), call.cancellation, std::move(done));
  return Status();
}

Status UnstageTuple(kernel::BuiltinCall& call, runtime::Completion& done) {
  WEIR_ASSIGN(const std::shared_ptr<StagingArea> area, QueuedArea(call));
  WEIR_ASSIGN(std::vector<DType> types, call.attrs.Types("dtypes"));
  area->Take(std::move(types), call.cancellation, std::move(done));
  return Status();
}

Status PeekAtTuple(kernel::BuiltinCall& call, runtime::Completion& done) {
  WEIR_ASSIGN(const std::shared_ptr<StagingArea> area, QueuedArea(call));
  WEIR_ASSIGN(std::vector<DType> types, call.attrs.Types("dtypes"));
  if (call.inputs[0].shape().rank() != 0) return InvalidArgument("index must be scalar");
  WEIR_ASSIGN(const int32_t index, Scalar<int32_t>(call, 0, "index"));
  if (index < 0) return InvalidArgument("index {} of a staged tuple is negative", index);
  area->Peek(static_cast<size_t>(index), std::move(types), call.cancellation, std::move(done));
  return Status();
}

Result<int64_t> KeyOf(const kernel::BuiltinCall& call) {
  if (call.inputs[0].shape().rank() == 0) return Scalar<int64_t>(call, 0, "key");
  return InvalidArgument("key must be an int64 scalar: {}", call.inputs[0].shape().ToString());
}

Result<std::vector<int32_t>> IndicesAt(const kernel::BuiltinCall& call, size_t i) {
  WEIR_ASSIGN(const std::span<const int32_t> indices, Elements<int32_t>(call, i, "indices"));
  return std::vector<int32_t>(indices.begin(), indices.end());
}

Status MapStageParts(kernel::BuiltinCall& call, runtime::Completion& done) {
  WEIR_ASSIGN(const std::shared_ptr<StagingMap> area, MappedArea(call));
  WEIR_ASSIGN(const int64_t key, KeyOf(call));
  WEIR_ASSIGN(std::vector<int32_t> indices, IndicesAt(call, 1));
  StagingBase::Tuple values(call.inputs.begin() + 2, call.inputs.end());
  area->Put(key, std::move(indices), std::move(values), call.cancellation, std::move(done));
  return Status();
}

Status MapGetParts(kernel::BuiltinCall& call, runtime::Completion& done, StagingMap::Use use) {
  WEIR_ASSIGN(const std::shared_ptr<StagingMap> area, MappedArea(call));
  WEIR_ASSIGN(const int64_t key, KeyOf(call));
  WEIR_ASSIGN(std::vector<int32_t> indices, IndicesAt(call, 1));
  WEIR_ASSIGN(std::vector<DType> types, call.attrs.Types("dtypes"));
  area->Get(key, std::move(indices), std::move(types), use, call.cancellation, std::move(done));
  return Status();
}

Status MapTakeFirst(kernel::BuiltinCall& call, runtime::Completion& done) {
  WEIR_ASSIGN(const std::shared_ptr<StagingMap> area, MappedArea(call));
  WEIR_ASSIGN(std::vector<int32_t> indices, IndicesAt(call, 0));
  WEIR_ASSIGN(std::vector<DType> types, call.attrs.Types("dtypes"));
  area->TakeFirst(std::move(indices), std::move(types), call.cancellation, std::move(done));
  return Status();
}

template <class Area>
Status SizeOfArea(kernel::BuiltinCall& call, const Result<std::shared_ptr<Area>>& area,
                  int64_t (Area::*size)() const) {
  WEIR_TRY(area.status());
  call.outputs[0] = Tensor::Scalar(static_cast<int32_t>(((**area).*size)()));
  return Status();
}

template <class Area>
Status EmptyArea(const Result<std::shared_ptr<Area>>& area) {
  WEIR_TRY(area.status());
  (*area)->Empty();
  return Status();
}

}  // namespace

void AddStagingAreas(kernel::KernelRegistry& kernels) {
  using kernel::BuiltinCall;
  using kernel::InputUse;
  using Use = StagingMap::Use;
  AddStaging(kernels, "Stage", StageTuple, InputUse::kKept);
  AddStaging(kernels, "Unstage", UnstageTuple);
  AddStaging(kernels, "StagePeek", PeekAtTuple);
  kernels.AddHost("StageSize", [](BuiltinCall& call) {
    return SizeOfArea<StagingArea>(call, QueuedArea(call), &StagingArea::size);
  });
  kernels.AddHost("StageClear", [](BuiltinCall& call) { return EmptyArea(QueuedArea(call)); });
  const auto get = [](Use use) {
    return [use](BuiltinCall& call, runtime::Completion& done) { return MapGetParts(call, done, use); };
  };
  for (const std::string prefix : {"", "Ordered"}) {
    AddStaging(kernels, prefix + "MapStage", MapStageParts, InputUse::kKept);
    AddStaging(kernels, prefix + "MapPeek", get(Use::kPeek));
    AddStaging(kernels, prefix + "MapUnstage", get(Use::kTake));
    AddStaging(kernels, prefix + "MapUnstageNoKey", MapTakeFirst);
    kernels.AddHost(prefix + "MapSize", [](BuiltinCall& call) {
      return SizeOfArea<StagingMap>(call, MappedArea(call), &StagingMap::size);
    });
    kernels.AddHost(prefix + "MapIncompleteSize", [](BuiltinCall& call) {
      return SizeOfArea<StagingMap>(call, MappedArea(call), &StagingMap::incomplete_size);
    });
    kernels.AddHost(prefix + "MapClear", [](BuiltinCall& call) { return EmptyArea(MappedArea(call)); });
  }
}

}  // namespace weir::builtin
