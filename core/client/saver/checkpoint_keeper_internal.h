// The files of a Saver: which checkpoints are kept, what the state file says, and the save that is written in the
// background.
#ifndef WEIR_CORE_CLIENT_SAVER_CHECKPOINT_KEEPER_INTERNAL_H_
#define WEIR_CORE_CLIENT_SAVER_CHECKPOINT_KEEPER_INTERNAL_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/status.h"
#include "core/client/saver/saver.h"
#include "core/tensor/tensor.h"

namespace weir {

/// What one SaveV2 writes: its operands, in host memory.
struct SavedShard {
  std::vector<std::string> names;
  std::vector<std::string> slices;  // as SaveV2 is told; "" for a whole tensor
  std::vector<Tensor> tensors;
};

/// One save: where it goes, and what is done after its tensors are written.
struct SaveJob {
  std::string base;  // the path without the step
  std::string path;
  std::string meta_graph;  // contents of PATH.meta; empty = none is written
  std::string latest_filename;
  bool write_state = true;
  bool verify = false;
  std::vector<SavedShard> shards;  // of a save in the background
};

/// Lines on stderr about checkpoints that cannot be used; one line each, without control characters.
void WarnOfCheckpoint(const std::string& text);

/// Calls come from one thread at a time; the one that it starts works on what it was given, and on the rest under the
/// mutex.
class CheckpointKeeper {
 public:
  CheckpointKeeper() = default;
  CheckpointKeeper(const CheckpointKeeper&) = delete;
  CheckpointKeeper& operator=(const CheckpointKeeper&) = delete;
  /// Waits for the save in flight; an error that nobody has asked for goes to stderr.
  ~CheckpointKeeper();

  /// The options that count from now on; checkpoints that are due to be spared are counted from the first call.
  void Configure(const SaverOptions& options);
  /// Reads the checkpoint back if it is to be verified, writes PATH.meta, names it in the state file, and deletes what
  /// is too many. Counts the save.
  Status Finish(const SaveJob& job);
  /// Counts a save that failed before that, and gives its error back.
  Status CountFailed(Status status);
  /// Writes the shards of `job` and finishes it, on a thread of its own. None is in flight.
  void Start(SaveJob job);
  /// True while a save is in flight.
  bool Busy() const { return busy_; }
  /// Waits for it; the error of the last one, once.
  Status Wait();
  void CountSkipped();

  /// Adds checkpoints that exist, older than those known, oldest first.
  void Recover(const std::vector<std::string>& paths);
  std::vector<std::string> last_checkpoints() const;
  SaveCounts counts() const;

 private:
  struct Kept {
    std::string path;
    double seconds = 0;  // since 1970
    bool verified = false;
  };

  Status WriteAndRecord(const SaveJob& job);
  Status Record(const SaveJob& job);
  void RecoverBase(const SaveJob& job);
  std::vector<Kept> TakeSurplus();
  Status WriteState(const SaveJob& job, const std::vector<Kept>& doomed) const;

  mutable std::mutex mutex_;  // guards all but the thread
  SaverOptions options_;
  std::vector<Kept> kept_;  // oldest first
  std::set<std::string> recovered_;
  std::optional<double> next_spared_seconds_;
  SaveCounts counts_;
  Status error_;
  std::thread thread_;
  std::atomic<bool> busy_ = false;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SAVER_CHECKPOINT_KEEPER_INTERNAL_H_
