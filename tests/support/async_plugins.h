// A plugin folder with the CPU, the asynchronous example device, and one set of kernels for both, so that a graph gives
// the same bits on both.
#ifndef WEIR_TESTS_SUPPORT_ASYNC_PLUGINS_H_
#define WEIR_TESTS_SUPPORT_ASYNC_PLUGINS_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sdk/abi/plugin.h"
#include "sdk/examples/async_device/async_platform.h"

namespace weir::testing {

/// Lives until the process ends. Its device plugin is a copy of the built one, with separate state.
class AsyncPlugins {
 public:
  static AsyncPlugins& Get();
  /// Empty if the build lacks a plugin.
  const std::string& folder() const { return folder_; }
  /// The device plugin's table; null without it.
  const weir_plugin* device_plugin();

  /// Sets options, all as integers (also "fail_alloc"), for the device `uid`, or for all devices if it is empty. A
  /// device must have been enumerated.
  void Configure(const std::string& uid, const std::vector<std::pair<std::string, int64_t>>& options);
  weir_async_counts Counts();
  /// Text of the first race or misuse; empty if there is none.
  std::string FirstFault();
  void Reset();

 private:
  AsyncPlugins();
  const weir_async_control* control();

  std::string folder_;
  const weir_plugin* plugin_ = nullptr;
  const weir_async_control* control_ = nullptr;
};

/// Starts with clean counters and a healthy device. Fails if the test leaves an unexpected race or misuse.
class AsyncTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  AsyncPlugins& plugins_ = AsyncPlugins::Get();
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_ASYNC_PLUGINS_H_
