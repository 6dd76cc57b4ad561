// Checkpoint ops. Prefixes are paths on the machine that runs the kernel.

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/legacy_checkpoint.h"
#include "core/builtin/operands.h"
#include "core/io/bundle.h"
#include "core/io/files.h"
#include "core/io/tensor_slice.h"

namespace weir::builtin {
namespace {

// The common inputs of SaveV2 and RestoreV2: a prefix, names, and a slice text per name.
struct Request {
  std::string prefix;
  std::span<const std::string> names;
  std::span<const std::string> slices;
};

Result<Request> ReadRequest(const kernel::BuiltinCall& call) {
  Request request;
  WEIR_ASSIGN(const std::span<const std::string> prefix, Elements<std::string>(call, 0, "prefix"));
  if (prefix.size() != 1) {
    return InvalidArgument("Input prefix should have a single element, got {} instead.", prefix.size());
  }
  request.prefix = prefix[0];
  WEIR_ASSIGN(request.names, StringVector(call, 1, "tensor_names"));
  WEIR_ASSIGN(request.slices, StringVector(call, 2, "shape_and_slices"));
  if (request.names.size() != request.slices.size()) {
    return InvalidArgument("tensor_names and shape_and_slices have different number of elements: {} vs. {}",
                           request.names.size(), request.slices.size());
  }
  return request;
}

Status SaveV2(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 0));
  WEIR_ASSIGN(const Request request, ReadRequest(call));
  const size_t tensors = call.inputs.size() - 3;
  if (request.names.size() != tensors) {
    return InvalidArgument("Got {} tensor names but {} tensors.", request.names.size(), tensors);
  }
  WEIR_ASSIGN(io::BundleWriter writer, io::BundleWriter::Create(request.prefix));
  for (size_t i = 0; i < tensors; ++i) {
    const Tensor& tensor = call.inputs[3 + i];
    if (request.slices[i].empty()) {
      WEIR_TRY(writer.Add(request.names[i], tensor));
      continue;
    }
    WEIR_ASSIGN(const io::ShapeAndSlice part, io::ParseShapeAndSlice(request.slices[i]));
    WEIR_TRY(writer.AddSlice(request.names[i], part.full, part.slice, tensor));
  }
  return writer.Finish();
}

Result<Tensor> RestoreOne(const io::BundleReader& reader, const std::string& name, const std::string& spec,
                          DType wanted) {
  WEIR_ASSIGN(const io::BundleEntry* entry, reader.Get(name));
  if (entry->dtype != wanted) {
    return InvalidArgument("tensor_name = {}; expected dtype {} does not equal original dtype {}", name, Name(wanted),
                           Name(entry->dtype));
  }
  if (spec.empty()) return reader.ReadDeferred(name);
  WEIR_ASSIGN(const io::ShapeAndSlice part, io::ParseShapeAndSlice(spec));
  if (!(part.full == entry->shape)) {
    return InvalidArgument(
        "tensor_name = {}; shape in shape_and_slice spec {} does not match the shape stored in "
        "checkpoint: {}",
        name, part.full.ToString(), entry->shape.ToString());
  }
  return reader.ReadSlice(name, part.slice);
}

/// From a checkpoint of version 1, whose file has the name of the prefix.
Status RestoreLegacy(const Request& request, const std::vector<DType>& types, std::vector<Tensor>& outputs) {
  WEIR_ASSIGN(const io::LegacyReader reader, io::LegacyReader::Open(request.prefix));
  for (size_t i = 0; i < types.size(); ++i) {
    WEIR_ASSIGN(outputs[i], RestoreFrom(reader, request.prefix, {request.names[i], request.slices[i], types[i]}));
  }
  return Status();
}

Status RestoreV2(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, call.outputs.size()));
  WEIR_ASSIGN(const Request request, ReadRequest(call));
  WEIR_ASSIGN(const std::vector<DType> types, call.attrs.Types("dtypes"));
  if (request.names.size() != types.size() || call.outputs.size() != types.size()) {
    return InvalidArgument("Got {} tensor names, but {} expected dtypes.", request.names.size(), types.size());
  }
  if (!io::FileExists(io::IndexPath(request.prefix)) && io::FileExists(request.prefix)) {
    return RestoreLegacy(request, types, call.outputs);
  }
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(request.prefix));
  for (size_t i = 0; i < types.size(); ++i) {
    WEIR_ASSIGN(call.outputs[i], RestoreOne(reader, request.names[i], request.slices[i], types[i]));
  }
  return Status();
}

Status MergeV2Checkpoints(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 0));
  WEIR_ASSIGN(const std::span<const std::string> sources, StringVector(call, 0, "checkpoint_prefixes"));
  WEIR_ASSIGN(const std::string destination, Scalar<std::string>(call, 1, "destination_prefix"));
  io::MergeOptions options;
  WEIR_ASSIGN(options.delete_old_dirs, call.attrs.Bool("delete_old_dirs"));
  WEIR_ASSIGN(options.allow_missing_files, call.attrs.Bool("allow_missing_files"));
  return io::MergeBundles({sources.begin(), sources.end()}, destination, options);
}

Status ShardedFilename(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 1));
  WEIR_ASSIGN(const std::string basename, Scalar<std::string>(call, 0, "basename"));
  WEIR_ASSIGN(const int32_t shard, Scalar<int32_t>(call, 1, "shard"));
  WEIR_ASSIGN(const int32_t num_shards, Scalar<int32_t>(call, 2, "num_shards"));
  call.outputs[0] = Tensor::String(fmt::format("{}-{:05d}-of-{:05d}", basename, shard, num_shards));
  return Status();
}

Status ShardedFilespec(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const std::string basename, Scalar<std::string>(call, 0, "basename"));
  WEIR_ASSIGN(const int32_t num_shards, Scalar<int32_t>(call, 1, "num_shards"));
  call.outputs[0] = Tensor::String(fmt::format("{}-{}-of-{:05d}", basename, "?????", num_shards));
  return Status();
}

}  // namespace

void AddCheckpoint(kernel::KernelRegistry& kernels) {
  kernels.AddHostBlocking("SaveV2", SaveV2);
  kernels.AddHostBlocking("RestoreV2", RestoreV2);
  kernels.AddHostBlocking("MergeV2Checkpoints", MergeV2Checkpoints);
  kernels.AddHost("ShardedFilename", ShardedFilename);
  kernels.AddHost("ShardedFilespec", ShardedFilespec);
}

}  // namespace weir::builtin
