// The example `digits` on signals and on write errors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "tests/e2e/cli_process.h"

namespace weir::testing {
namespace {

/// digits as a process with both outputs in one pipe.
class DigitsProcess {
 public:
  explicit DigitsProcess(const std::vector<std::string>& words, const std::string& working_directory = {}) {
    int ends[2];
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      if (!working_directory.empty() &&
          (chdir(working_directory.c_str()) != 0 || rmdir(working_directory.c_str()) != 0)) {
        _exit(126);
      }
      dup2(ends[1], 1);
      dup2(ends[1], 2);
      std::vector<char*> argv = {const_cast<char*>("digits")};
      for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      execv(WEIR_DIGITS, argv.data());
      _exit(127);
    }
    close(ends[1]);
    out_ = ends[0];
  }
  DigitsProcess(const DigitsProcess&) = delete;
  DigitsProcess& operator=(const DigitsProcess&) = delete;
  ~DigitsProcess() { close(out_); }

  /// Reads until `text` was printed; false if the process ended before.
  bool WaitFor(const std::string& text) {
    while (said_.find(text) == std::string::npos) {
      char bytes[4096];
      const ssize_t got = read(out_, bytes, sizeof bytes);
      if (got <= 0) return false;
      said_.append(bytes, static_cast<size_t>(got));
    }
    return true;
  }
  void Kill(int number) const { kill(child_, number); }
  /// The exit status, or minus the signal that ended the process.
  int End() {
    WaitFor("no such text: to the end\n");
    int result = 0;
    waitpid(child_, &result, 0);
    return WIFSIGNALED(result) ? -WTERMSIG(result) : WEXITSTATUS(result);
  }
  const std::string& said() const { return said_; }

 private:
  pid_t child_ = -1;
  int out_ = -1;
  std::string said_;
};

TEST(Digits, SigtermSavesAndEnds) {
  for (const auto& [number, status] : {std::pair(SIGTERM, 143), std::pair(SIGINT, 130)}) {
    const ScratchFolder folder;
    DigitsProcess digits({"--dir", folder / "run"});
    ASSERT_TRUE(digits.WaitFor("placement:")) << digits.said();
    digits.Kill(number);
    EXPECT_EQ(digits.End(), status) << digits.said();
    const std::string latest = io::LatestCheckpoint(folder / "run");
    ASSERT_NE(latest, "") << digits.said();
    EXPECT_NE(digits.said().find("saved: " + latest), std::string::npos) << digits.said();
    const Result<io::BundleReader> reader = io::BundleReader::Open(latest);
    ASSERT_TRUE(reader.ok());
    EXPECT_TRUE(reader->Verify().ok());
    EXPECT_GE(reader->Read("global_step")->as<int64_t>()[0], 1);
  }
}

TEST(Digits, FoldersThatCannotBeMadeAreErrors) {
  const ScratchFolder folder;
  folder.Write("file", "");
  for (const std::string& dir : {folder / "file", folder / "file/below"}) {
    DigitsProcess digits({"--dir", dir});
    EXPECT_EQ(digits.End(), 1);
    EXPECT_NE(digits.said().find("digits: FAILED_PRECONDITION: " + (folder / "file") + "; Not a directory"),
              std::string::npos)
        << digits.said();
  }
  std::filesystem::create_directory(folder / "gone");
  DigitsProcess lost({"--dir", "run"}, folder / "gone");
  EXPECT_EQ(lost.End(), 1);
  EXPECT_NE(lost.said().find("digits: NOT_FOUND: run; No such file"), std::string::npos) << lost.said();
}

TEST(Digits, TheModelIsSavedThoughEventsCannotBeWritten) {
  const ScratchFolder folder;
  folder.Write("events", "no folder");
  DigitsProcess digits({"--dir", folder.path()});
  ASSERT_TRUE(digits.WaitFor("placement:")) << digits.said();
  digits.Kill(SIGTERM);
  EXPECT_EQ(digits.End(), 1);
  EXPECT_NE(digits.said().find("events"), std::string::npos) << digits.said();
  EXPECT_NE(io::LatestCheckpoint(folder.path()), "") << digits.said();
}

}  // namespace
}  // namespace weir::testing
