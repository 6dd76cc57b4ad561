// The request of `weir run` and `weir explain`, read and checked.
#ifndef WEIR_TOOLS_WEIR_RUN_REQUEST_H_
#define WEIR_TOOLS_WEIR_RUN_REQUEST_H_

#include <string>
#include <vector>

#include "core/graph/definition.h"
#include "core/session/session.h"
#include "tools/weir/commands.h"

namespace weir::cli {

/// The request of a run; all its names exist in the graph.
struct Request {
  std::vector<session::Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> files;  // one per fetch; empty without an output folder
};

/// A GraphDef file, binary or text. Errors name the file.
Result<graph::Definition> ReadGraph(const std::string& path);

/// Checks every name before any value is read or any node runs. Without fetches and targets, it fetches the outputs
/// that can be stored in a file and that no node reads.
Result<Request> MakeRequest(const RunCommandOptions& options, const graph::Definition& graph);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_RUN_REQUEST_H_
