// Checkpoint ops of version 1: one file of all tensors.
#include "core/builtin/legacy_checkpoint.h"

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/io/tensor_slice.h"

namespace weir::builtin {
namespace {

/// The only element of input `i`.
Result<std::string> OnlyText(const kernel::BuiltinCall& call, size_t i, std::string_view what) {
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, i, what));
  if (texts.size() == 1) return texts[0];
  return InvalidArgument("Input {} ({}) must be a string scalar; got a tensor of {} elements", i, what, texts.size());
}

Status SaveTensors(kernel::BuiltinCall& call, bool slices) {
  const size_t first = slices ? 3 : 2;
  WEIR_TRY(CheckCounts(call, first, 0));
  WEIR_ASSIGN(const std::string path, OnlyText(call, 0, "filename"));
  WEIR_ASSIGN(const std::span<const std::string> names, Elements<std::string>(call, 1, "tensor_names"));
  std::span<const std::string> specs;
  if (slices) {
    WEIR_ASSIGN(specs, Elements<std::string>(call, 2, "shapes_and_slices"));
    if (specs.size() != names.size()) {
      return InvalidArgument("Expected {} elements for the tensor shapes and slices but got {}", names.size(),
                             specs.size());
    }
  }
  if (call.inputs.size() != names.size() + first) {
    return InvalidArgument(
        "Expected totally {} inputs as input #1 (which is a string tensor of saved names) contains {} names, but "
        "received {} inputs",
        names.size() + first, names.size(), call.inputs.size());
  }
  io::LegacyWriter writer(path);
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& tensor = call.inputs[first + i];
    if (!slices || specs[i].empty()) {
      const io::TensorSlice whole(static_cast<size_t>(tensor.shape().rank()));
      WEIR_TRY(writer.Add(names[i], tensor.shape(), whole, tensor));
      continue;
    }
    WEIR_ASSIGN(const io::ShapeAndSlice part, io::ParseShapeAndSlice(specs[i]));
    WEIR_ASSIGN(const io::TensorSlice resolved, io::Resolve(part.slice, part.full));
    WEIR_ASSIGN(const Shape shape, io::ShapeOf(resolved));
    if (!(shape == tensor.shape())) {
      return InvalidArgument(
          "Slice in shape_and_slice specification does not match the shape of the tensor to  save: {}, tensor: {}",
          specs[i], tensor.shape().ToString());
    }
    WEIR_TRY(writer.Add(names[i], part.full, part.slice, tensor));
  }
  return writer.Finish();
}

Status RestoreTensor(kernel::BuiltinCall& call, bool slice) {
  WEIR_TRY(CheckCounts(call, slice ? 3 : 2, 1));
  WEIR_ASSIGN(const std::string pattern, OnlyText(call, 0, "file_pattern"));
  WantedSlice wanted;
  WEIR_ASSIGN(wanted.name, OnlyText(call, 1, "tensor_name"));
  WEIR_ASSIGN(wanted.dtype, call.attrs.Type("dt"));
  if (slice) {
    WEIR_ASSIGN(wanted.spec, OnlyText(call, 2, "shape_and_slice"));
  }
  WEIR_ASSIGN(const io::LegacyReader reader, io::LegacyReader::Open(pattern));
  WEIR_ASSIGN(call.outputs[0], RestoreFrom(reader, pattern, wanted));
  return Status();
}

}  // namespace

Result<Tensor> RestoreFrom(const io::LegacyReader& reader, const std::string& pattern, const WantedSlice& wanted) {
  const io::LegacyReader::Entry* entry = reader.Find(wanted.name);
  if (entry == nullptr) {
    return NotFound("Tensor name \"{}\" not found in checkpoint files {}", wanted.name, pattern);
  }
  if (entry->dtype != wanted.dtype) {
    return InvalidArgument("Expected to restore a tensor of type {}, got a tensor of type {} instead: tensor_name = {}",
                           Name(wanted.dtype), Name(entry->dtype), wanted.name);
  }
  if (wanted.spec.empty()) {
    return reader.ReadSlice(wanted.name, io::TensorSlice(static_cast<size_t>(entry->shape.rank())));
  }
  WEIR_ASSIGN(const io::ShapeAndSlice part, io::ParseShapeAndSlice(wanted.spec));
  if (!(part.full == entry->shape)) {
    return InvalidArgument(
        "Shape in shape_and_slice spec does not match the shape in the save file: {}, save file shape: {}",
        part.full.ToString(), entry->shape.ToString());
  }
  return reader.ReadSlice(wanted.name, part.slice);
}

void AddLegacyCheckpoint(kernel::KernelRegistry& kernels) {
  kernels.AddHostBlocking("Save", [](kernel::BuiltinCall& call) { return SaveTensors(call, false); });
  kernels.AddHostBlocking("SaveSlices", [](kernel::BuiltinCall& call) { return SaveTensors(call, true); });
  kernels.AddHostBlocking("Restore", [](kernel::BuiltinCall& call) { return RestoreTensor(call, false); });
  kernels.AddHostBlocking("RestoreSlice", [](kernel::BuiltinCall& call) { return RestoreTensor(call, true); });
}

}  // namespace weir::builtin
