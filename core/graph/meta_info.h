// Contents of a MetaGraphDef other than its graph.
#ifndef WEIR_CORE_GRAPH_META_INFO_H_
#define WEIR_CORE_GRAPH_META_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::graph {

/// SaverDef: the save and restore nodes, and the settings of the saver.
struct SaverNodes {
  std::string filename_tensor;  // "save/Const:0"
  std::string save_tensor;      // "save/control_dependency:0"
  std::string restore_op;       // "save/restore_all"
  int32_t max_to_keep = 5;
  bool sharded = false;
  float keep_checkpoint_every_n_hours = 10000;
};

/// Contents of a MetaGraphDef other than the graph and its collections.
struct MetaInfo {
  std::string version;
  std::vector<std::string> tags;
  std::optional<SaverNodes> saver;
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_META_INFO_H_
