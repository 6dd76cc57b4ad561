// Saver: variables to checkpoint files and back, as TensorFlow writes and reads them.
#ifndef WEIR_CORE_CLIENT_SAVER_SAVER_H_
#define WEIR_CORE_CLIENT_SAVER_SAVER_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/session/session.h"
#include "core/client/variables/variable.h"

// <weir/extra.h> has these.
namespace weir::graph {
struct SaverNodes;
}
namespace weir::io {
struct RestoreReport;
}

namespace weir {
struct SaverOptions {
  int max_to_keep = 5;                           // 0 = all, which are then not listed
  double keep_checkpoint_every_n_hours = 10000;  // one of that age is spared when its turn to be deleted comes
  std::string name = {};                         // of the scope of its nodes; empty = "save"
  bool verify = false;                           // reads each checkpoint back, as SaveOptions::verify does
  bool skip_when_busy = false;                   // SaveInBackground leaves a save out while another one is in flight
  bool sharded = false;                          // a data file per device that variables ask for, made on its host
  bool reshape = false;                          // restores tensors of as many elements in the variables' shapes
};

/// Saves of a Saver by outcome.
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

/// Saves and restores variables through nodes of their graph (`save/Const`, `save/SaveV2`, …); parts of a partitioned
/// variable are slices under its name. Errors of building are the graph's. Thread-safe; copies share all state.
class Saver {
 public:
  /// All variables of the graph under their names; "No variables to save" if there are none.
  explicit Saver(SaverOptions options = {}, Graph& graph = Graph::Default(), Where where = Where::current());
  /// These; "At least two variables have the same name: v" for a repeated one.
  explicit Saver(const ToSave& variables, SaverOptions options = {}, Where where = Where::current());
  /// For nodes of an imported graph; NotFound names a missing node.
  static Result<Saver> FromNodes(const graph::SaverNodes& nodes, Graph& graph = Graph::Default());

  /// Writes PATH.index, PATH.data-…, PATH.meta and the state file, then deletes checkpoints beyond max_to_keep, never
  /// the newest verified one. Makes the last folder of the path; removes leftovers of killed savers. The checkpoint
  /// appears with the rename of its index: an earlier failure leaves all older ones intact. max_to_keep also counts
  /// checkpoints of the same path that the state file lists. Returns the path with the step.
  Result<std::string> Save(Session& session, const std::string& path, const SaveOptions& options = {});
  /// Copies the variables to host memory in one step and writes them on a thread. While a save is in flight, another
  /// one waits, or with skip_when_busy is skipped (""). The error of a save is returned by the next Save,
  /// SaveInBackground or Wait, which does its work nevertheless; if that fails, too, the earlier error goes to stderr.
  Result<std::string> SaveInBackground(Session& session, const std::string& path, const SaveOptions& options = {});
  /// Waits for the save in flight and returns its error. So does the destructor of the last copy.
  Status Wait();
  SaveCounts counts() const;

  /// Sets the variables from a checkpoint; they need not be initialised. NotFound for a missing file or key (with near
  /// names); InvalidArgument for another type or shape; DataLoss for damage.
  Status Restore(Session& session, const std::string& path);
  /// Sets the variables whose type and shape match the checkpoint; reports the others.
  Result<io::RestoreReport> RestorePartial(Session& session, const std::string& path);
  /// Restores the newest usable checkpoint of a folder: those of the state file, newest first, then others found there.
  /// A damaged one is reported on stderr and the next is tried; an intact one of the state file that does not fit the
  /// model is an error. Returns the path; NotFound without checkpoints, otherwise the error of the newest.
  Result<std::string> RestoreLatest(Session& session, const std::string& dir);

  /// Paths of the checkpoints kept, oldest first.
  std::vector<std::string> last_checkpoints() const;
  /// Adds existing checkpoints, oldest first, before those kept; max_to_keep then counts them.
  void RecoverLastCheckpoints(const std::vector<std::string>& paths);
  /// Names of the nodes, for a MetaGraphDef.
  const graph::SaverNodes& nodes() const;

 private:
  friend struct NoValue<Saver>;
  class Implementation;
  explicit Saver(Graph& graph, SaverOptions options);  // without nodes
  std::shared_ptr<Implementation> implementation_;
};

template <>
struct NoValue<Saver> {
  static Saver Make() { return Saver(Graph::Default(), SaverOptions()); }
};

/// The newest checkpoint that the state file in `dir` names and that exists; "" otherwise.
std::string LatestCheckpoint(const std::string& dir, const std::string& latest_filename = "checkpoint");

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SAVER_SAVER_H_
