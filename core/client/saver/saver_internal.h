// The nodes of a Saver and what it does with them.
#ifndef WEIR_CORE_CLIENT_SAVER_SAVER_INTERNAL_H_
#define WEIR_CORE_CLIENT_SAVER_SAVER_INTERNAL_H_

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/client/saver/checkpoint_keeper_internal.h"
#include "core/client/saver/saver.h"
#include "core/io/inspect.h"

namespace weir {

/// Variables of one device, and the host that saves and restores them.
struct SaverShard {
  std::string device;
  std::string host;
  SavedVariables variables;
};

/// Shared by the copies of a Saver.
class Saver::Implementation {
 public:
  Implementation(Graph& graph, SaverOptions options) : options_(std::move(options)), graph_(&graph) {}

  /// Adds the nodes for `variables`.
  void Build(SavedVariables variables, const Where& where);
  /// Takes over nodes that are in the graph.
  void Adopt(const graph::SaverNodes& nodes);

  /// Held by the calls below.
  std::mutex& mutex() { return mutex_; }
  Result<std::string> Save(Session& session, const std::string& path, const SaveOptions& options);
  Result<std::string> SaveInBackground(Session& session, const std::string& path, const SaveOptions& options);
  Status Restore(Session& session, const std::string& path);
  Result<io::RestoreReport> RestorePartial(Session& session, const std::string& path);
  Result<std::string> RestoreLatest(Session& session, const std::string& dir);
  CheckpointKeeper& keeper() { return keeper_; }
  const graph::SaverNodes& nodes() const { return nodes_; }

 private:
  std::mutex mutex_;
  void BuildNodes(SavedVariables variables, const Where& where);
  std::vector<Operation> BuildRestore(const Output& path, const SaverShard& shard, const Where& where);
  Status CheckSavePath(const std::string& path, const SaveOptions& options, bool has_step) const;
  Result<SaveJob> Prepare(Session& session, const std::string& path, const SaveOptions& options);
  Result<std::string> SaveNow(Session& session, const std::string& path, const SaveOptions& options);
  Result<std::string> StartSave(Session& session, const std::string& path, const SaveOptions& options);
  Status Write(Session& session, const std::string& path) const;
  Result<std::vector<Operation>> SaveOperations() const;
  Result<std::vector<SavedShard>> FetchShards(Session& session, const std::string& path) const;
  Status RestoreFrom(Session& session, const std::string& path);
  std::vector<io::WantedTensor> Wanted() const;
  Status CheckShapes(const std::string& path) const;

  SaverOptions options_;
  Graph* graph_;
  Status built_;  // why there are no nodes
  SavedVariables variables_;
  graph::SaverNodes nodes_;
  List<Output> restored_;        // outputs of RestoreV2, one per variable
  List<Operation> assignments_;  // of each
  CheckpointKeeper keeper_;
  bool warned_ = false;  // of a path that ends in a slash
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SAVER_SAVER_INTERNAL_H_
