// The text file "checkpoint" of a folder: which checkpoints it holds and which is the newest.
#ifndef WEIR_CORE_IO_CHECKPOINT_STATE_H_
#define WEIR_CORE_IO_CHECKPOINT_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace weir::io {

/// What the file says. Paths are checkpoint prefixes.
struct CheckpointState {
  std::string model_checkpoint_path;                    // the newest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first, the newest last
  std::vector<double> all_model_checkpoint_timestamps;  // seconds since 1970, one per path, or none
  double last_preserved_timestamp = 0;                  // 0: not said
};

inline constexpr char kCheckpointStateFile[] = "checkpoint";

/// TensorFlow's text, byte for byte.
std::string FormatCheckpointState(const CheckpointState& state);
/// InvalidArgument naming line and column for a text that is no CheckpointState.
Result<CheckpointState> ParseCheckpointState(std::string_view text);

/// Replaces the file `name` in `dir` atomically. The newest path is put at the end of the list if it is not there. When
/// `dir` is relative, so are the relative paths written: to it.
Status WriteCheckpointState(const std::string& dir, CheckpointState state,
                            const std::string& name = kCheckpointStateFile);
/// The file `name` in `dir`, its relative paths joined to `dir`.
Result<CheckpointState> ReadCheckpointState(const std::string& dir, const std::string& name = kCheckpointStateFile);

/// A checkpoint that lies in a folder, whole or not.
struct FoundCheckpoint {
  std::string prefix;
  std::optional<int64_t> step;  // the number after its last '-'
  double seconds = 0;           // when its index was written, since 1970
};
/// Every prefix with an index in `dir`, newest first: by step where the names are equal but for it, by time otherwise.
Result<std::vector<FoundCheckpoint>> FindCheckpoints(const std::string& dir);

/// True when PREFIX.index, or a version 1 file PREFIX, exists.
bool CheckpointExists(const std::string& prefix);
/// The newest checkpoint of a folder; "" when the state file is missing or garbage or its checkpoint is gone.
std::string LatestCheckpoint(const std::string& dir, const std::string& name = kCheckpointStateFile);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_CHECKPOINT_STATE_H_
