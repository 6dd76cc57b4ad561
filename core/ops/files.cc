// Checkpoint ops, and ops on the names of checkpoint files.
#include "core/io/tensor_slice.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kWrites = "it writes files";
constexpr std::string_view kReads = "what it answers comes from files";
constexpr std::string_view kStrings = "strings have no derivative";

/// The shape described by "" or "10 20 0,5:-": unknown, or that of the slice.
Result<PartialShape> RestoredShape(const std::string& shape_and_slice) {
  if (shape_and_slice.empty()) return PartialShape();
  WEIR_ASSIGN(const io::ShapeAndSlice parsed, io::ParseShapeAndSlice(shape_and_slice));
  WEIR_ASSIGN(const io::TensorSlice slice, io::Resolve(parsed.slice, parsed.full));
  WEIR_ASSIGN(const Shape shape, io::ShapeOf(slice));
  return PartialShape(shape);
}

/// prefix: [], tensor_names: [n], shape_and_slices: [n], with n tensors.
Status CheckNames(const ShapeContext& c, int tensors) {
  WEIR_TRY(c.WithRank(0, 0).status());
  for (int i = 1; i <= 2; ++i) {
    WEIR_ASSIGN(const PartialShape names, c.WithRank(i, 1));
    WEIR_TRY(ExpectDim(names.dim(0), tensors));
  }
  return Status();
}

Status SaveShape(ShapeContext& c) { return CheckNames(c, c.num_inputs() - 3); }

Status RestoreShape(ShapeContext& c) {
  WEIR_TRY(CheckNames(c, c.num_outputs()));
  const Tensor* slices = c.value(2);
  if (slices == nullptr || slices->elements() != c.num_outputs()) return Status();
  for (int i = 0; i < c.num_outputs(); ++i) {
    WEIR_ASSIGN(PartialShape shape, RestoredShape(slices->as<std::string>()[static_cast<size_t>(i)]));
    c.set_output(i, std::move(shape));
  }
  return Status();
}

/// filename: [], names: [n], perhaps shapes and slices: [n], with n tensors.
Status SaveLegacyShape(ShapeContext& c, int first) {
  WEIR_TRY(c.WithRank(0, 0).status());
  for (int i = 1; i < first; ++i) {
    WEIR_ASSIGN(const PartialShape names, c.WithRank(i, 1));
    WEIR_TRY(ExpectDim(names.dim(0), c.num_inputs() - first));
  }
  return Status();
}

Status RestoreLegacyShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  const Tensor* slice = c.num_inputs() > 2 ? c.value(2) : nullptr;
  if (slice == nullptr || slice->elements() != 1) return Status();
  WEIR_ASSIGN(PartialShape shape, RestoredShape(slice->as<std::string>()[0]));
  c.set_output(0, std::move(shape));
  return Status();
}

Status MatchingFilesShape(ShapeContext& c) {
  WEIR_TRY(ToRankAtMost(c.input(0), 1).status());
  c.set_output(0, VectorOf(-1));
  return Status();
}

Status MergeCheckpointsShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  return c.WithRank(1, 0).status();
}

Status AllScalars(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  c.set_output(0, Shape());
  return Status();
}

/// Scalars are compatible with every shape; the other shapes must agree.
Status StringJoinShape(ShapeContext& c) {
  PartialShape joined;
  bool all_scalars = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).rank() == 0) continue;
    all_scalars = false;
    WEIR_ASSIGN(joined, joined.Merge(c.input(i)));
  }
  c.set_output(0, all_scalars ? PartialShape(Shape()) : std::move(joined));
  return Status();
}

OpBuilder File(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kFiles); }

void DeclareCheckpoints(OpRegistry& ops) {
  File(ops, "SaveV2")
      .In("prefix: string")
      .In("tensor_names: string")
      .In("shape_and_slices: string")
      .In("tensors: [dtypes]")
      .Attr("dtypes: list(type) >= 1")
      .Stateful()
      .Shape(SaveShape)
      .NoGradient(kWrites)
      .Doc("Writes the tensors under their names into the checkpoint `prefix`: its .index and .data files.");
  File(ops, "RestoreV2")
      .In("prefix: string")
      .In("tensor_names: string")
      .In("shape_and_slices: string")
      .Out("tensors: [dtypes]")
      .Attr("dtypes: list(type) >= 1")
      .Stateful()
      .Shape(RestoreShape)
      .NoGradient(kReads)
      .Doc("Reads tensors, or the given slices of them, from the checkpoint `prefix`.");
  File(ops, "MergeV2Checkpoints")
      .In("checkpoint_prefixes: string")
      .In("destination_prefix: string")
      .Attr("delete_old_dirs: bool = true")
      .Attr("allow_missing_files: bool = false")
      .Stateful()
      .Shape(MergeCheckpointsShape)
      .NoGradient(kWrites)
      .Doc("Makes one checkpoint of several written in parts, moving their data files and merging their indices.");
}

void DeclareLegacyCheckpoints(OpRegistry& ops) {
  for (const bool slices : {false, true}) {
    OpBuilder save = File(ops, slices ? "SaveSlices" : "Save");
    save.In("filename: string").In("tensor_names: string");
    if (slices) save.In("shapes_and_slices: string");
    save.In("data: [T]").Attr("T: list(type) >= 1").Stateful().NoGradient(kWrites);
    save.Shape([first = slices ? 3 : 2](ShapeContext& c) { return SaveLegacyShape(c, first); });
    save.Doc(slices ? "As Save; a tensor with a text \"10 20 0,5:-\" is that slice of a tensor of shape [10, 20]."
                    : "Writes the tensors under their names into one file, a checkpoint of version 1.");
    OpBuilder restore = File(ops, slices ? "RestoreSlice" : "Restore");
    restore.In("file_pattern: string").In("tensor_name: string");
    if (slices) restore.In("shape_and_slice: string");
    restore.Out("tensor: dt").Attr("dt: type").Attr("preferred_shard: int = -1").Stateful().NoGradient(kReads);
    restore.Shape(RestoreLegacyShape);
    restore.Doc(slices ? "As Restore; reads a slice of the tensor, given as in SaveSlices."
                       : "Reads a tensor from a checkpoint of version 1, whose files match the pattern.");
  }
}

void DeclareContents(OpRegistry& ops) {
  File(ops, "ReadFile")
      .In("filename: string")
      .Out("contents: string")
      .Shape(AllScalars)
      .NoGradient(kReads)
      .Doc("The contents of a file.");
  File(ops, "WriteFile")
      .In("filename: string")
      .In("contents: string")
      .Stateful()
      .Shape([](ShapeContext& c) {
        WEIR_TRY(c.WithRank(0, 0).status());
        return c.WithRank(1, 0).status();
      })
      .NoGradient(kWrites)
      .Doc("Writes a file, and creates its folders.");
  File(ops, "MatchingFiles")
      .In("pattern: string")
      .Out("filenames: string")
      .Shape(MatchingFilesShape)
      .NoGradient(kReads)
      .Doc("The sorted paths of the files and folders that match one of the patterns.");
}

void DeclareNames(OpRegistry& ops) {
  ops.Declare("ShardedFilename")
      .Is(Category::kArray)
      .In("basename: string")
      .In("shard: int32")
      .In("num_shards: int32")
      .Out("filename: string")
      .Shape(AllScalars)
      .NoGradient(kStrings)
      .Doc("The name of one part of a file in parts: \"base-00001-of-00004\".");
  ops.Declare("ShardedFilespec")
      .Is(Category::kArray)
      .In("basename: string")
      .In("num_shards: int32")
      .Out("filename: string")
      .Shape(AllScalars)
      .NoGradient(kStrings)
      .Doc("The pattern of the names of all parts: \"base-\?\?\?\?\?-of-00004\".");
  ops.Declare("StringJoin")
      .Is(Category::kArray)
      .In("inputs: N*string")
      .Out("output: string")
      .Attr("N: int >= 0")
      .Attr("separator: string = ''")
      .Shape(StringJoinShape)
      .NoGradient(kStrings)
      .Doc("The inputs joined element by element with `separator` between them.");
}

}  // namespace

void DeclareFiles(OpRegistry& ops) {
  DeclareCheckpoints(ops);
  DeclareLegacyCheckpoints(ops);
  DeclareContents(ops);
  DeclareNames(ops);
}

}  // namespace weir::ops
