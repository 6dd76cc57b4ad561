#include "core/client/session/tracing.h"

#include <utility>

#include "core/client/session/session_interface.h"

namespace weir {

void Trace(Session& session, std::shared_ptr<session::Tracer> tracer) {
  if (session.behind() != nullptr) session.behind()->TraceTo(std::move(tracer));
}

}  // namespace weir
