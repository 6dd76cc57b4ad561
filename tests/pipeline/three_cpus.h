// A process with three CPU devices, for tests of steps that are cut between them.
#ifndef WEIR_TESTS_PIPELINE_THREE_CPUS_H_
#define WEIR_TESTS_PIPELINE_THREE_CPUS_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/session/session.h"

namespace weir {

inline constexpr int kDevices = 3;

inline std::shared_ptr<session::Runtime> ThreeCpus() {
  static const std::shared_ptr<session::Runtime> runtime = [] {
    config::Config config;
    config.device_count["CPU"] = kDevices;
    Result<std::shared_ptr<session::Runtime>> loaded = session::Runtime::For(config);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return loaded.ok() ? std::move(*loaded) : nullptr;
  }();
  return runtime;
}

inline bool Same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!a[i].SameBits(b[i])) return false;
  }
  return a.size() == b.size();
}

}  // namespace weir

#endif  // WEIR_TESTS_PIPELINE_THREE_CPUS_H_
