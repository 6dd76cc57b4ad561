#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "core/base/errors.h"
#include "core/client/saver/meta_graph.h"
#include "core/client/saver/saver_internal.h"
#include "core/graph/definition.h"
#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "core/io/files.h"
#include "core/io/sweep.h"
#include "core/io/tensor_slice.h"

namespace weir {
namespace {

Result<Tensor> ReadPart(const io::BundleReader& reader, const std::string& key, const Variable& variable) {
  if (!variable.slice()) return reader.Read(key);
  io::TensorSlice slice;
  for (size_t i = 0; i < variable.slice()->offset.size(); ++i) {
    slice.push_back({variable.slice()->offset[i], variable.slice()->shape[i]});
  }
  return reader.ReadSlice(key, slice);
}

/// TensorFlow's words around an error of restoring from `path`.
Status Explain(const Status& status, const std::string& path) {
  const bool missing = status.code() == Code::kNotFound;
  if (missing && status.message().find("not found in checkpoint") == std::string::npos) {
    return status.Prepend(fmt::format("The passed save_path is not a valid checkpoint: {}\n\n", path));
  }
  if (!missing && status.code() != Code::kInvalidArgument) return status;
  return status.Prepend(
      fmt::format("Restoring from checkpoint failed. This is most likely due to a {} the checkpoint. Please ensure "
                  "that you have not altered the graph expected based on the checkpoint. Original error:\n\n",
                  missing ? "Variable name or other graph key that is missing from"
                          : "mismatch between the current graph and the graph from"));
}

/// Reads all of a checkpoint.
Status CheckWhole(const std::string& path) {
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(path));
  return reader.Verify();
}

/// The checkpoints of a folder, newest first: those that the state file lists, then the others.
struct Candidates {
  std::vector<std::string> paths;
  size_t listed = 0;
};

Result<Candidates> FindCandidates(const std::string& dir) {
  Candidates candidates;
  std::set<std::filesystem::path> known;
  const auto add = [&](const std::string& path) {
    if (known.insert(std::filesystem::path(path).lexically_normal()).second) candidates.paths.push_back(path);
  };
  const Result<io::CheckpointState> state = io::ReadCheckpointState(dir);
  if (state.ok()) {
    add(state->model_checkpoint_path);
    const std::vector<std::string>& all = state->all_model_checkpoint_paths;
    for (auto path = all.rbegin(); path != all.rend(); ++path) add(*path);
  }
  candidates.listed = candidates.paths.size();
  if (const auto found = io::FindCheckpoints(dir); found.ok()) {
    for (const io::FoundCheckpoint& each : *found) add(each.prefix);
  }
  if (state.ok()) return candidates;
  if (candidates.paths.empty()) return state.status();
  WarnOfCheckpoint(
      fmt::format("the checkpoints that lie in '{}' are tried, newest first, as its state file is none: {}", dir,
                  state.status().ToString()));
  return candidates;
}

}  // namespace

std::vector<io::WantedTensor> Saver::Implementation::Wanted() const {
  std::vector<io::WantedTensor> wanted;
  std::set<std::string> seen;
  for (const auto& [key, variable] : variables_) {
    if (!seen.insert(key).second) continue;  // further parts
    wanted.push_back({key, variable.dtype(),
                      variable.slice() ? PartialShape(Shape::Of(variable.slice()->full_shape)) : variable.shape()});
  }
  return wanted;
}

/// Resource variables take any shape that is assigned to them, so theirs are compared here.
Status Saver::Implementation::CheckShapes(const std::string& path) const {
  if (options_.reshape) return Status();
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(path));
  for (const auto& [key, variable] : variables_) {
    const io::BundleEntry* entry = variable.slice() ? nullptr : reader.Find(key);
    if (entry == nullptr || !variable.is_resource() || variable.shape().CompatibleWith(entry->shape)) continue;
    return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
                           variable.shape().ToString(), entry->shape.ToString())
        .WithNode(variable.op().name(), variable.op().node().origin());
  }
  return Status();
}

Status Saver::Implementation::Restore(Session& session, const std::string& path) {
  io::SweepFolder(io::DirName(path));
  return RestoreFrom(session, path);
}

Status Saver::Implementation::RestoreFrom(Session& session, const std::string& path) {
  WEIR_TRY(built_);
  if (path.empty()) return InvalidArgument("Can't load save_path when it is None.");
  if (Status shapes = CheckShapes(path); !shapes.ok()) return Explain(shapes, path);
  const Status status = session.Run(nodes_.restore_op, {{nodes_.filename_tensor, path}}).status();
  return status.ok() ? status : Explain(status, path);
}

Result<io::RestoreReport> Saver::Implementation::RestorePartial(Session& session, const std::string& path) {
  WEIR_TRY(built_);
  WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(path));
  io::RestoreReport report = io::CompareCheckpoint(reader, Wanted());
  const std::set<std::string> matched(report.matched.begin(), report.matched.end());
  Feeds feeds;
  Fetch::List targets;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!matched.contains(variables_[i].first)) continue;
    WEIR_ASSIGN(const Tensor value, ReadPart(reader, variables_[i].first, variables_[i].second));
    feeds.emplace_back(restored_[i], Literal(value));
    targets.emplace_back(assignments_[i]);
  }
  if (!targets.empty()) WEIR_TRY(session.Run(targets, feeds).status());
  return report;
}

Result<std::string> Saver::Implementation::RestoreLatest(Session& session, const std::string& dir) {
  WEIR_TRY(built_);
  io::SweepFolder(dir);
  WEIR_ASSIGN(const Candidates candidates, FindCandidates(dir));
  Status first;
  for (size_t i = 0; i < candidates.paths.size(); ++i) {
    const std::string& path = candidates.paths[i];
    const Status status = RestoreFrom(session, path);
    if (status.ok()) return path;
    if (status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded) return status;
    const Status whole = CheckWhole(path);
    if (whole.ok() && i < candidates.listed) return status;
    const Status& cause = whole.ok() ? status : whole;
    WarnOfCheckpoint(fmt::format("checkpoint {} cannot be used, an older one is tried: {}", path, cause.ToString()));
    if (first.ok()) first = cause;
  }
  return first.ok() ? NotFound("no checkpoint in '{}'", dir) : first;
}

}  // namespace weir
