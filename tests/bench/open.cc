#include "tests/bench/open.h"

#include <utility>

#include "core/client/graph/graph_internal.h"
#include "core/session/session.h"

namespace weir::bench {

session::SessionOptions Unfolded() {
  session::SessionOptions options;
  options.constant_folding = false;
  options.common_subexpressions = false;
  return options;
}

Result<Program> Open(const std::shared_ptr<session::Runtime>& runtime, weir::Graph& client,
                     const session::CallableOptions& call, const session::SessionOptions& options) {
  WEIR_TRY(client.status());
  Program program;
  program.graph = std::make_unique<graph::Definition>(std::move(Internals(client).definition));
  WEIR_ASSIGN(program.session, session::Session::Make(runtime, *program.graph, options));
  WEIR_ASSIGN(program.call, program.session->MakeCallable(call));
  program.names = call;
  return program;
}

}  // namespace weir::bench
