#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "core/base/legible.h"
#include "core/client/ops/build_op.h"
#include "core/client/saver/checkpoint_keeper_internal.h"
#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "core/io/files.h"
#include "core/io/sweep.h"

namespace weir {
namespace {

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Status WriteShard(const std::string& path, const SavedShard& shard) {
  WEIR_ASSIGN(io::BundleWriter writer, io::BundleWriter::Create(path));
  for (size_t i = 0; i < shard.tensors.size(); ++i) {
    if (shard.slices[i].empty()) {
      WEIR_TRY(writer.Add(shard.names[i], shard.tensors[i]));
      continue;
    }
    WEIR_ASSIGN(const io::ShapeAndSlice part, io::ParseShapeAndSlice(shard.slices[i]));
    WEIR_TRY(writer.AddSlice(shard.names[i], part.full, part.slice, shard.tensors[i]));
  }
  return writer.Finish();
}

Status WriteShards(const SaveJob& job) {
  if (job.shards.size() == 1) return WriteShard(job.path, job.shards.front());
  const std::string start = job.path + io::ShardsSuffix();
  std::vector<std::string> parts;
  for (size_t i = 0; i < job.shards.size(); ++i) {
    parts.push_back(fmt::format("{}-{:05d}-of-{:05d}", start, i, job.shards.size()));
  }
  const io::HeldFolders held(parts);
  for (size_t i = 0; i < parts.size(); ++i) WEIR_TRY(WriteShard(parts[i], job.shards[i]));
  return io::MergeBundles(parts, job.path);
}

/// True for BASE and BASE-100.
bool IsOfBase(const std::string& path, const std::string& base) {
  if (!path.starts_with(base)) return false;
  const std::string rest = path.substr(base.size());
  return rest.empty() ||
         (rest.size() > 1 && rest[0] == '-' && rest.find_first_not_of("0123456789", 1) == std::string::npos);
}

}  // namespace

void WarnOfCheckpoint(const std::string& text) { WarnOnStderr("weir: " + LegibleLine(text) + "\n"); }

CheckpointKeeper::~CheckpointKeeper() {
  if (const Status status = Wait(); !status.ok()) WarnOfCheckpoint(status.ToString());
}

void CheckpointKeeper::Configure(const SaverOptions& options) {
  const std::lock_guard lock(mutex_);
  options_ = options;
  if (!next_spared_seconds_) next_spared_seconds_ = SecondsNow() + options.keep_checkpoint_every_n_hours * 3600;
}

Status CheckpointKeeper::Finish(const SaveJob& job) {
  const Status status = WriteAndRecord(job);
  if (!status.ok()) return CountFailed(status);
  const std::lock_guard lock(mutex_);
  ++counts_.saved;
  return Status();
}

Status CheckpointKeeper::CountFailed(Status status) {
  const std::lock_guard lock(mutex_);
  ++counts_.failed;
  return status;
}

void CheckpointKeeper::CountSkipped() {
  const std::lock_guard lock(mutex_);
  ++counts_.skipped;
}

Status CheckpointKeeper::WriteAndRecord(const SaveJob& job) {
  if (job.verify) {
    WEIR_ASSIGN(const io::BundleReader reader, io::BundleReader::Open(job.path));
    WEIR_TRY(reader.Verify());
    const std::lock_guard lock(mutex_);
    ++counts_.verified;
  }
  if (!job.meta_graph.empty()) WEIR_TRY(io::WriteFileAtomically(job.path + ".meta", job.meta_graph));
  return job.write_state ? Record(job) : Status();
}

/// Names the checkpoint in the state file, and only then deletes what is too many. Until that is gone the state file
/// lists it as well, so that the process after a killed one deletes it.
Status CheckpointKeeper::Record(const SaveJob& job) {
  const std::lock_guard lock(mutex_);
  std::vector<Kept> doomed;
  if (options_.max_to_keep > 0) {
    RecoverBase(job);
    std::erase_if(kept_, [&](const Kept& each) { return each.path == job.path; });
    kept_.push_back({job.path, SecondsNow(), job.verify});
    doomed = TakeSurplus();
  }
  WEIR_TRY(WriteState(job, doomed));
  if (doomed.empty()) return Status();
  Status status;
  for (const Kept& old : doomed) {
    const Status removed = io::RemoveCheckpoint(old.path);
    if (removed.ok()) continue;
    status = removed;
    kept_.insert(kept_.begin(), old);
  }
  WEIR_TRY(status);
  return WriteState(job, {});
}

Status CheckpointKeeper::WriteState(const SaveJob& job, const std::vector<Kept>& doomed) const {
  io::CheckpointState state;
  state.model_checkpoint_path = job.path;
  for (const std::vector<Kept>* list : {&doomed, &kept_}) {
    for (const Kept& each : *list) state.all_model_checkpoint_paths.push_back(each.path);
  }
  return io::WriteCheckpointState(io::DirName(job.path), std::move(state), job.latest_filename);
}

/// Takes the oldest beyond max_to_keep off the list, and gives those that are to be deleted. The newest one stays, and
/// so does the newest that passed verification.
std::vector<CheckpointKeeper::Kept> CheckpointKeeper::TakeSurplus() {
  std::vector<Kept> doomed;
  while (kept_.size() > static_cast<size_t>(options_.max_to_keep)) {
    const auto verified = std::find_if(kept_.rbegin(), kept_.rend(), [](const Kept& each) { return each.verified; });
    const size_t spared = static_cast<size_t>(kept_.rend() - verified) - 1;  // beyond the end when there is none
    const size_t oldest = spared == 0 ? 1 : 0;
    if (oldest + 1 >= kept_.size()) break;
    const Kept old = kept_[oldest];
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(oldest));
    if (old.seconds > *next_spared_seconds_) {
      *next_spared_seconds_ += options_.keep_checkpoint_every_n_hours * 3600;
    } else {
      doomed.push_back(old);
    }
  }
  return doomed;
}

/// The first save to a path takes over what the state file lists of that path, as a process before this one left it.
void CheckpointKeeper::RecoverBase(const SaveJob& job) {
  if (!recovered_.insert(job.base).second) return;
  const std::string dir = io::DirName(job.base);
  const Result<io::CheckpointState> state = io::ReadCheckpointState(dir, job.latest_filename);
  if (!state.ok()) return;
  std::vector<Kept> found;
  for (const std::string& path : state->all_model_checkpoint_paths) {
    const std::string known = io::JoinPath(dir, io::BaseName(path));
    const bool here = io::DirName(path) == dir || io::SameFile(io::DirName(path), dir);
    const auto same = [&](const Kept& each) { return each.path == known; };
    if (!here || !IsOfBase(known, job.base) || !io::CheckpointExists(known)) continue;
    if (std::ranges::any_of(kept_, same) || std::ranges::any_of(found, same)) continue;
    found.push_back({known, io::ModifiedSeconds(io::IndexPath(known)).value_or(0), false});
  }
  kept_.insert(kept_.begin(), found.begin(), found.end());
}

void CheckpointKeeper::Recover(const std::vector<std::string>& paths) {
  const std::lock_guard lock(mutex_);
  std::vector<Kept> found;
  for (const std::string& path : paths) {
    if (!io::CheckpointExists(path)) continue;
    std::erase_if(kept_, [&](const Kept& each) { return each.path == path; });
    found.push_back({path, io::ModifiedSeconds(io::IndexPath(path)).value_or(0), false});
  }
  kept_.insert(kept_.begin(), found.begin(), found.end());
}

void CheckpointKeeper::Start(SaveJob job) {
  busy_ = true;
  const auto work = [this](const SaveJob& save) {
    Status status = WriteShards(save);
    status = status.ok() ? Finish(save) : CountFailed(status);
    if (!status.ok()) {
      const std::lock_guard lock(mutex_);
      error_ = status.Prepend(fmt::format("the save of {} in the background failed: ", save.path));
    }
    busy_ = false;
  };
  try {
    thread_ = std::thread(work, job);
  } catch (const std::system_error&) {
    work(job);  // no thread is to be had
  }
}

Status CheckpointKeeper::Wait() {
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, Status());
}

std::vector<std::string> CheckpointKeeper::last_checkpoints() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const Kept& each : kept_) paths.push_back(each.path);
  return paths;
}

SaveCounts CheckpointKeeper::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace weir
