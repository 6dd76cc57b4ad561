// The text file "checkpoint" of a folder: its checkpoints and the newest one.
#ifndef WEIR_CORE_IO_CHECKPOINT_STATE_H_
#define WEIR_CORE_IO_CHECKPOINT_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace weir::io {

/// Contents of the file. Paths are checkpoint prefixes.
struct CheckpointState {
  std::string model_checkpoint_path;                    // the newest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first, the newest last
  std::vector<double> all_model_checkpoint_timestamps;  // seconds since 1970, one per path, or none
  double last_preserved_timestamp = 0;                  // 0: not set
};

inline constexpr char kCheckpointStateFile[] = "checkpoint";

/// The text in TensorFlow's format, byte for byte.
std::string FormatCheckpointState(const CheckpointState& state);
/// InvalidArgument names line and column if the text is not a CheckpointState.
Result<CheckpointState> ParseCheckpointState(std::string_view text);

/// Replaces the file `name` in `dir` atomically. Appends the newest path to the list if it is missing. If `dir` is
/// relative, relative paths are written relative to it.
Status WriteCheckpointState(const std::string& dir, CheckpointState state,
                            const std::string& name = kCheckpointStateFile);
/// Reads the file `name` in `dir`; relative paths are joined to `dir`.
Result<CheckpointState> ReadCheckpointState(const std::string& dir, const std::string& name = kCheckpointStateFile);

/// A checkpoint found in a folder, complete or not.
struct FoundCheckpoint {
  std::string prefix;
  std::optional<int64_t> step;  // the number after its last '-'
  double seconds = 0;           // when its index was written, in seconds since 1970
};
/// Every prefix with an index in `dir`, newest first: by step if the names differ only in it, otherwise by time.
Result<std::vector<FoundCheckpoint>> FindCheckpoints(const std::string& dir);

/// True if PREFIX.index, or a version 1 file PREFIX, exists.
bool CheckpointExists(const std::string& prefix);
/// The newest checkpoint of a folder; "" if the state file is missing or malformed or its checkpoint is gone.
std::string LatestCheckpoint(const std::string& dir, const std::string& name = kCheckpointStateFile);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_CHECKPOINT_STATE_H_
