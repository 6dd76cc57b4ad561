// Saver: variables to checkpoint files and back, as TensorFlow writes and reads them.
#ifndef WEIR_CORE_CLIENT_SAVER_H_
#define WEIR_CORE_CLIENT_SAVER_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "core/client/meta_graph.h"
#include "core/client/session.h"
#include "core/client/variable.h"
#include "core/graph/meta_graph.h"
#include "core/io/inspect.h"

namespace weir {

class CheckpointKeeper;
struct SaveJob;
struct SavedShard;
struct SaverShard;

struct SaverOptions {
  int max_to_keep = 5;                           // 0 = all, which are then not listed
  double keep_checkpoint_every_n_hours = 10000;  // one of that age is spared when its turn to be deleted comes
  std::string name = {};                         // of the scope of its nodes; empty = "save"
  bool verify = false;                           // reads each checkpoint back, as SaveOptions::verify does
  bool skip_when_busy = false;                   // SaveInBackground leaves a save out while another one is in flight
  bool sharded = false;                          // a data file per device that variables ask for, made on its host
};

/// What became of the saves of a Saver. Each is counted once: as saved, failed or skipped.
struct SaveCounts {
  int64_t saved = 0;
  int64_t failed = 0;
  int64_t skipped = 0;   // left out because one was in flight
  int64_t verified = 0;  // of those saved or failed, how many were read back whole
};

/// A training step: a number, or what a variable or value holds when the checkpoint is saved.
class GlobalStep {
 public:
  GlobalStep() = default;
  GlobalStep(int64_t step) : number_(step) {}                    // NOLINT(google-explicit-constructor)
  GlobalStep(int step) : number_(step) {}                        // NOLINT(google-explicit-constructor)
  GlobalStep(Output step) : value_(step) {}                      // NOLINT(google-explicit-constructor)
  GlobalStep(const Variable& step) : value_(step.snapshot()) {}  // NOLINT(google-explicit-constructor)
  /// Nothing when there is none.
  Result<std::optional<int64_t>> In(Session& session) const;

 private:
  std::optional<int64_t> number_;
  Output value_;
};

struct SaveOptions {
  GlobalStep global_step = {};                 // appended to the path as "-100"
  std::string latest_filename = "checkpoint";  // the state file beside the checkpoint
  bool write_meta_graph = true;                // PATH.meta
  bool write_state = true;
  bool verify = false;  // reads the checkpoint back, and compares checksums, before the state file names it
};

/// A checkpoint key and the variable under it.
using SavedVariables = std::vector<std::pair<std::string, Variable>>;

/// What a Saver is told to save: variables under their names, `{v, w}`, or by checkpoint key, `{{"a", v}, {"b", w}}`.
class ToSave {
 public:
  ToSave(std::initializer_list<Variable> variables) : ToSave(std::vector<Variable>(variables)) {}
  ToSave(std::initializer_list<SavedVariables::value_type> variables);
  ToSave(const std::vector<Variable>& variables);            // NOLINT(google-explicit-constructor)
  ToSave(const std::map<std::string, Variable>& variables);  // NOLINT(google-explicit-constructor)
  const SavedVariables& list() const { return list_; }

 private:
  void Add(const std::string& key, const Variable& variable);
  SavedVariables list_;
};

/// Saves and restores a set of variables, the parts of a partitioned one as slices under its name, through nodes of
/// their graph (`save/Const`, `save/SaveV2`, …). Errors of building are the graph's. Single-threaded; copies share the
/// list of kept checkpoints and the save in flight.
class Saver {
 public:
  /// All variables of the graph under their names; "No variables to save" when there is none.
  explicit Saver(SaverOptions options = {}, Graph& graph = Graph::Default(),
                 std::source_location where = std::source_location::current());
  /// These; "At least two variables have the same name: v" for a repeated one.
  explicit Saver(const ToSave& variables, SaverOptions options = {},
                 std::source_location where = std::source_location::current());
  /// One whose nodes are in the graph already, as a MetaGraphDef says; NotFound naming the node that is not.
  static Result<Saver> FromNodes(const graph::SaverNodes& nodes, Graph& graph = Graph::Default());

  /// Writes PATH.index, PATH.data-…, PATH.meta and the state file, then deletes what is older than max_to_keep, but
  /// never the newest that was verified. Makes the folder if only it is missing, and removes what killed savers left in
  /// it. The checkpoint exists from the rename of its index on; whatever fails before leaves older ones untouched, one
  /// of the same path too. The first save to a path takes over the checkpoints of that path, with any step, that the
  /// state file lists, so that max_to_keep counts those of processes before this one. Returns the path with the step.
  Result<std::string> Save(Session& session, const std::string& path, const SaveOptions& options = {});
  /// Copies the variables to host memory in one step and returns; a thread writes them. One save is in flight: another
  /// one waits for it first, or is left out ("" is returned) with SaverOptions::skip_when_busy. Save, Wait and the next
  /// call of this return the error of the one before, and do what they are for nevertheless; where that fails, too, the
  /// error before goes to stderr.
  Result<std::string> SaveInBackground(Session& session, const std::string& path, const SaveOptions& options = {});
  /// Waits for the save in flight, and returns its error. The last copy of the saver waits, too.
  Status Wait();
  SaveCounts counts() const;

  /// Sets the variables from a checkpoint; they need not be initialised. Tidies its folder as Save does. NotFound for a
  /// key that it lacks (with near names) or a missing file; InvalidArgument for another type or shape; DataLoss for
  /// damage.
  Status Restore(Session& session, const std::string& path);
  /// Sets those that the checkpoint has with the right type and shape, and says what became of the rest.
  Result<io::RestoreReport> RestorePartial(Session& session, const std::string& path);
  /// Restores the newest checkpoint of a folder that can be used: those of the state file from the newest on, then any
  /// others that lie there. One that cannot be read whole is reported on stderr, in one line, and the next older one is
  /// tried; so is a state file that cannot be read. Returns the path; NotFound when there is no checkpoint, otherwise
  /// the error of the newest. A checkpoint of the state file that is whole and does not fit the model is an error.
  Result<std::string> RestoreLatest(Session& session, const std::string& dir);

  /// Paths of the checkpoints kept, oldest first.
  std::vector<std::string> last_checkpoints() const;
  /// Adds checkpoints that exist to those kept, older than these, oldest first; max_to_keep then counts them too.
  void RecoverLastCheckpoints(const std::vector<std::string>& paths);
  /// Names of the nodes, for a MetaGraphDef.
  const graph::SaverNodes& nodes() const { return nodes_; }

 private:
  friend struct NoValue<Saver>;
  explicit Saver(Graph& graph) : graph_(&graph) {}

  void Build(SavedVariables variables, const std::source_location& where);
  std::vector<Operation> BuildRestore(const Output& path, const SaverShard& shard, const std::source_location& where);
  Status CheckSavePath(const std::string& path, const SaveOptions& options, bool has_step) const;
  Result<SaveJob> Prepare(Session& session, const std::string& path, const SaveOptions& options);
  Result<std::string> SaveNow(Session& session, const std::string& path, const SaveOptions& options);
  Result<std::string> StartSave(Session& session, const std::string& path, const SaveOptions& options);
  Status Write(Session& session, const std::string& path) const;
  Result<std::vector<Operation>> SaveOperations() const;
  Result<std::vector<SavedShard>> FetchShards(Session& session, const std::string& path) const;
  Status RestoreFrom(Session& session, const std::string& path);
  static std::shared_ptr<CheckpointKeeper> NewKeeper();
  std::vector<io::WantedTensor> Wanted() const;
  Status CheckShapes(const std::string& path) const;

  SaverOptions options_;
  Graph* graph_;
  SavedVariables variables_;
  graph::SaverNodes nodes_;
  List<Output> restored_;        // outputs of RestoreV2, one per variable
  List<Operation> assignments_;  // of each
  std::shared_ptr<CheckpointKeeper> keeper_ = NewKeeper();
};

/// One that saves nothing; the default constructor would add nodes.
template <>
struct NoValue<Saver> {
  static Saver Make() { return Saver(Graph::Default()); }
};

/// Adds the graph of a `.meta` file with its collections, and returns the saver that the file names, else one of all
/// variables; none when there is no variable, or none whose name the import scope lets through. The errors are those of
/// ImportMetaGraphFile.
Result<std::optional<Saver>> ImportMetaGraphWithSaver(const std::string& path, Graph& graph = Graph::Default(),
                                                      const MetaGraphOptions& options = {});

/// The newest checkpoint that the state file in `dir` names and that exists; "" otherwise.
std::string LatestCheckpoint(const std::string& dir, const std::string& latest_filename = "checkpoint");

/// As TensorFlow's print_tensors_in_checkpoint_file: names and values of all tensors, or of one.
Result<std::string> InspectCheckpoint(const std::string& path, const std::string& tensor_name = "",
                                      bool all_tensors = false);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SAVER_H_
