// Signals to `weir launch` while it starts its processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/e2e/server_process.h"

namespace weir {
namespace {

using testing::ServerProcess;

/// A child between its fork and its program must end, too: the launcher waits for all.
TEST(ServeLaunch, ASignalThatComesWhileTasksStartEndsAllOfThem) {
  for (int i = 0; i < 24; ++i) {
    const int number = i % 2 == 0 ? SIGTERM : SIGINT;
    ServerProcess launch(
        {WEIR_COMMAND, "launch", "--jobs", "worker=40", "--", "/bin/sh", "-c", "echo up; exec sleep 1000"});
    if (i % 3 == 0) launch.ReadPast("up");
    if (i % 3 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2 * i));  // part of the test
    launch.Signal(number);
    EXPECT_EQ(launch.Wait(), 128 + number);
  }
}

}  // namespace
}  // namespace weir
