// Saver: variables to checkpoint files and back, as TensorFlow writes and reads them.
#ifndef WEIR_CORE_CLIENT_SAVER_H_
#define WEIR_CORE_CLIENT_SAVER_H_

#include <cstdint>
#include <map>
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

struct SaverOptions {
  int max_to_keep = 5;                           // 0 = all, which are then not listed
  double keep_checkpoint_every_n_hours = 10000;  // one of that age is spared when its turn to be deleted comes
  std::string name;                              // of the scope of its nodes; empty = "save"
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
  GlobalStep global_step;                      // appended to the path as "-100"
  std::string latest_filename = "checkpoint";  // the state file beside the checkpoint
  bool write_meta_graph = true;                // PATH.meta
  bool write_state = true;
};

/// A checkpoint key and the variable under it.
using SavedVariables = std::vector<std::pair<std::string, Variable>>;

/// Saves and restores a set of variables, the parts of a partitioned one as slices under its name, through nodes of
/// their graph (`save/Const`, `save/SaveV2`, …). Errors of building are the graph's. Single-threaded.
class Saver {
 public:
  /// All variables of the graph under their names; "No variables to save" when there is none.
  explicit Saver(SaverOptions options = {}, Graph& graph = Graph::Default(),
                 std::source_location where = std::source_location::current());
  /// These, under their names; "At least two variables have the same name: v" for a repeated one.
  explicit Saver(const std::vector<Variable>& variables, SaverOptions options = {},
                 std::source_location where = std::source_location::current());
  /// By checkpoint key.
  explicit Saver(const std::map<std::string, Variable>& variables, SaverOptions options = {},
                 std::source_location where = std::source_location::current());
  /// One whose nodes are in the graph already, as a MetaGraphDef says; NotFound naming the node that is not.
  static Result<Saver> FromNodes(const graph::SaverNodes& nodes, Graph& graph = Graph::Default());

  /// Writes PATH.index, PATH.data-…, PATH.meta and the state file, then deletes what is older than max_to_keep. Makes
  /// the folder if only it is missing. The checkpoint exists from the rename of its index on; whatever fails before
  /// leaves older ones untouched. Returns the path with the step.
  Result<std::string> Save(Session& session, const std::string& path, const SaveOptions& options = {});

  /// Sets the variables from a checkpoint; they need not be initialised. NotFound for a key that it lacks (with near
  /// names) or a missing file; InvalidArgument for another type or shape; DataLoss for damage.
  Status Restore(Session& session, const std::string& path);
  /// Sets those that the checkpoint has with the right type and shape, and says what became of the rest.
  Result<io::RestoreReport> RestorePartial(Session& session, const std::string& path);
  /// Restores the newest checkpoint of a folder that is whole: a damaged one is reported on stderr and the next older
  /// one taken. Returns its path; NotFound when there is none.
  Result<std::string> RestoreLatest(Session& session, const std::string& dir);

  /// Paths of the checkpoints kept, oldest first.
  std::vector<std::string> last_checkpoints() const;
  /// Names of the nodes, for a MetaGraphDef.
  const graph::SaverNodes& nodes() const { return nodes_; }

 private:
  friend struct NoValue<Saver>;
  explicit Saver(Graph& graph) : graph_(&graph) {}

  struct Kept {
    std::string path;
    double seconds = 0;  // since 1970
  };

  void Build(SavedVariables variables, const std::source_location& where);
  Output BuildRestore(const Output& path, const std::source_location& where);
  Status CheckSavePath(const std::string& path, const SaveOptions& options, bool has_step) const;
  std::vector<io::WantedTensor> Wanted() const;
  Status CheckShapes(const std::string& path) const;
  Status WriteMetaGraph(const std::string& path) const;
  Status Record(const std::string& path, const SaveOptions& options);
  Status Delete(const Kept& old);

  SaverOptions options_;
  Graph* graph_;
  SavedVariables variables_;
  graph::SaverNodes nodes_;
  List<Output> restored_;        // outputs of RestoreV2, one per variable
  List<Operation> assignments_;  // of each
  std::vector<Kept> kept_;
  double next_spared_seconds_ = 0;
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
