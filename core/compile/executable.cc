#include "core/compile/executable.h"

#include <bit>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/host.h"

namespace weir::compile {
namespace {

constexpr uint64_t kMostScratch = uint64_t{1} << 30;  // bytes of all tiles

/// What a prepared kernel of a plan holds.
struct Running {
  std::shared_ptr<const Executable> executable;
};

int32_t RunExecutable(void* state, const weir_reg* regs, const weir_env* env) {
  return static_cast<const Running*>(state)->executable->Run(regs, env);
}

const weir_kernel& ExecutableRecord() {
  static const weir_kernel record = [] {
    weir_kernel made{};
    made.struct_size = sizeof made;
    made.flags = WEIR_KERNEL_DETERMINISTIC;
    made.op = kernel::ViewOf(std::string_view("compiled region"));
    made.cost_class = WEIR_CLASS_ELEMENTWISE;
    made.unprepare = [](weir_prepared* prepared) {
      delete static_cast<Running*>(prepared->state);
      prepared->state = nullptr;
    };
    return made;
  }();
  return record;
}

/// Compares a side of an io_spec with the region's.
template <class ValueAt>
Status CheckSide(std::string_view side, const weir_region_value* const* given, uint32_t count, size_t wanted,
                 ValueAt&& value_at) {
  if (count != wanted) return Internal("its io_spec has {} {}s, the region {}", count, side, wanted);
  for (size_t i = 0; i < wanted; ++i) {
    const RegionValue& value = value_at(i);
    const weir_region_value* const record = given == nullptr ? nullptr : given[i];
    if (record == nullptr || record->struct_size < offsetof(weir_region_value, constant)) {
      return Internal("its io_spec does not describe {} {}", side, i);
    }
    if (record->dtype != static_cast<uint32_t>(value.dtype)) {
      return Internal("its io_spec gives {} {} the type {}, the region has {}", side, i, record->dtype,
                      static_cast<uint32_t>(value.dtype));
    }
    const std::span<const int64_t> dims = value.shape.dims();
    bool equal = record->shape.rank == dims.size();
    for (size_t axis = 0; equal && axis < dims.size(); ++axis) {
      equal = record->shape.dims != nullptr && record->shape.dims[axis] == dims[axis];
    }
    if (!equal) return Internal("its io_spec gives {} {} another shape than {}", side, i, value.shape.ToString());
  }
  return Status();
}

uint64_t BytesOfValue(const RegionValue& value) {
  return static_cast<uint64_t>(value.shape.elements()) * SizeOf(value.dtype);
}

}  // namespace

Executable::Executable(const kernel::CompilerEntry& compiler, weir_executable* made)
    : compiler_(compiler), made_(made) {
  entry_.record = &ExecutableRecord();
  entry_.plugin = compiler.plugin;
}

Executable::~Executable() {
  try {
    compiler_.api->destroy(made_);
  } catch (...) {  // a fault of the plugin, which cannot be reported from here
  }
}

Result<std::shared_ptr<const Executable>> Executable::Take(const kernel::CompilerEntry& compiler, weir_executable* made,
                                                           const Region& region, uint64_t max_tiles) {
  if (made == nullptr) return Internal("it returned no executable");
  const std::shared_ptr<Executable> executable(new Executable(compiler, made));
  WEIR_TRY(executable->ReadSpec(region, max_tiles));
  return std::shared_ptr<const Executable>(executable);
}

Status Executable::ReadSpec(const Region& region, uint64_t max_tiles) {
  weir_executable_spec spec{};
  spec.struct_size = sizeof spec;
  WEIR_TRY(
      kernel::CallPlugin("io_spec", [&](weir_error* error) { return compiler_.api->io_spec(made_, &spec, error); }));
  WEIR_TRY(CheckSide("input", spec.inputs, spec.input_count, region.inputs.size(),
                     [&](size_t i) -> const RegionValue& { return region.inputs[i]; }));
  WEIR_TRY(CheckSide("output", spec.outputs, spec.output_count, region.outputs.size(),
                     [&](size_t i) -> const RegionValue& { return region.value(region.outputs[i]); }));
  if (spec.alias_count > region.inputs.size() * region.outputs.size() ||
      (spec.alias_count > 0 && spec.aliases == nullptr)) {
    return Internal("its io_spec has {} aliases", spec.alias_count);
  }
  for (uint32_t i = 0; i < spec.alias_count; ++i) {
    const weir_alias& alias = spec.aliases[i];
    const bool there = alias.input < region.inputs.size() && alias.output < region.outputs.size();
    if (!there || alias.kind != WEIR_ALIAS_MAY ||
        BytesOfValue(region.value(region.outputs[alias.output])) > BytesOfValue(region.inputs[alias.input])) {
      return Internal("its io_spec lets output {} share input {}", alias.output, alias.input);
    }
    aliases_.push_back(alias);
  }
  tiles_ = spec.tiles == 0 ? 1 : spec.tiles;
  scratch_bytes_ = spec.scratch_bytes;
  scratch_alignment_ = spec.scratch_alignment == 0 ? 1 : spec.scratch_alignment;
  if (tiles_ > max_tiles) return Internal("it has {} tiles, at most {} were allowed", tiles_, max_tiles);
  if (!std::has_single_bit(scratch_alignment_) || scratch_alignment_ > 4096 || scratch_bytes_ > kMostScratch / tiles_) {
    return Internal("it wants {} bytes of scratch memory at multiples of {} for each of {} tiles", scratch_bytes_,
                    scratch_alignment_, tiles_);
  }
  return Status();
}

int32_t Executable::Run(const weir_reg* regs, const weir_env* env) const noexcept {
  try {
    return compiler_.api->execute(made_, regs, env);
  } catch (...) {
    return WEIR_INTERNAL;
  }
}

std::unique_ptr<kernel::PreparedKernel> AsKernel(std::shared_ptr<const Executable> executable) {
  const Executable& of = *executable;
  weir_prepared prepared{};
  prepared.struct_size = sizeof prepared;
  prepared.fn = RunExecutable;
  prepared.scratch_bytes = of.scratch_bytes();
  prepared.scratch_alignment = of.scratch_alignment();
  prepared.aliases = of.aliases().data();
  prepared.alias_count = static_cast<uint32_t>(of.aliases().size());
  prepared.tiles = of.tiles();
  prepared.state = new Running{std::move(executable)};
  return kernel::PreparedKernel::Own(of.entry(), prepared);
}

}  // namespace weir::compile
