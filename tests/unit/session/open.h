// A session with a configuration, for tests.
#ifndef WEIR_TESTS_UNIT_SESSION_OPEN_H_
#define WEIR_TESTS_UNIT_SESSION_OPEN_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "core/session/options.h"
#include "core/session/session.h"

namespace weir::session {

/// Over the plugins of this build. Null after a failed expectation.
inline std::unique_ptr<Session> Open(const graph::Definition& graph, const config::Config& config = {}) {
  Result<std::shared_ptr<Runtime>> runtime = Runtime::For(config);
  EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
  if (!runtime.ok()) return nullptr;
  SessionOptions options = SessionOptionsFrom((*runtime)->config);
  Result<std::unique_ptr<Session>> session = Session::Make(*runtime, graph, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  return session.ok() ? std::move(*session) : nullptr;
}

}  // namespace weir::session

#endif  // WEIR_TESTS_UNIT_SESSION_OPEN_H_
