// What `weir run` and `weir explain` are asked for, read and checked.
#ifndef WEIR_TOOLS_WEIR_RUN_REQUEST_H_
#define WEIR_TOOLS_WEIR_RUN_REQUEST_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/session/session.h"
#include "tools/weir/commands.h"

namespace weir::cli {

/// What is to be run, with all names known to the graph.
struct Request {
  std::vector<session::Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> files;  // one per fetch; empty without an output folder
};

/// A GraphDef file, binary or text. Errors name the file.
Result<graph::Graph> ReadGraph(const std::string& path);

/// Checks every name before any value is read or any node runs. Without fetches and targets: the outputs that a file
/// can hold and no node reads.
Result<Request> MakeRequest(const RunCommandOptions& options, const graph::Graph& graph);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_RUN_REQUEST_H_
