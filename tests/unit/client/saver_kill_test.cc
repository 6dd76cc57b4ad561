// Savers that are killed: at every system call of a save, and at random. Each saver is a separate process that
// continues after the killed one; this process examines the files in between. The functions below replace the C
// library's.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "tests/unit/client/fresh.h"

namespace {

std::atomic<int> calls_left = 0;  // until the process dies; 0 = never

void DieIfDue() {
  if (calls_left > 0 && --calls_left == 0) _exit(9);
}

}  // namespace

extern "C" {
ssize_t write(int fd, const void* data, size_t size) {
  DieIfDue();
  return static_cast<ssize_t>(syscall(SYS_write, fd, data, size));
}
// A dying process loses no data that the system has received, so nothing waits for the disk here.
int fdatasync(int) {
  DieIfDue();
  return 0;
}
int fsync(int) {
  DieIfDue();
  return 0;
}
int rename(const char* from, const char* to) noexcept {
  DieIfDue();
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int link(const char* from, const char* to) noexcept {
  DieIfDue();
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char* path) noexcept {
  DieIfDue();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int mkdir(const char* path, mode_t mode) noexcept {
  DieIfDue();
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int rmdir(const char* path) noexcept {
  DieIfDue();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  DieIfDue();
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
}

namespace weir::test {
namespace {

constexpr int64_t kElements = 40000;
constexpr int kMaxToKeep = 3;
// Between the calls at which saves die: with sanitizers, a save and its forks take up to a second.
constexpr int kStride = WEIR_SANITIZER_KIND == 0 ? 1 : 3;

enum class Mode { kSteps, kSamePath, kBackground, kSharded };

/// The saving process: all elements of its variables are the number of the save.
class SavingProcess {
 public:
  explicit SavingProcess(std::string dir, Mode mode) : dir_(std::move(dir)), mode_(mode) {}

  /// Restores, or starts at 0. False on failure.
  bool Begin() {
    const bool any = !LatestCheckpoint(dir_).empty();
    const Status status = any ? saver_.RestoreLatest(session_, dir_).status() : session_.Run(init_).status();
    if (!status.ok()) return false;
    const Result<Fetched> now = session_.Run(v_.snapshot());
    if (now.ok()) number_ = static_cast<int>(now->tensor().as<float>()[0]);
    return now.ok();
  }
  /// Saves the next number; if k is not 0, dies at the k-th call of the save.
  bool Save(int k = 0) {
    if (!session_.Run(assign_, {{x_, static_cast<float>(++number_)}}).ok()) return false;
    SaveOptions options;
    if (mode_ == Mode::kSteps || mode_ == Mode::kBackground) options.global_step = number_;
    calls_left = k;
    const bool background = mode_ == Mode::kBackground;
    const Status saved = background ? saver_.SaveInBackground(session_, dir_ + "/m", options).status()
                                    : saver_.Save(session_, dir_ + "/m", options).status();
    const Status done = saver_.Wait();
    calls_left = 0;
    return saved.ok() && done.ok();
  }
  int number() const { return number_; }

 private:
  static Variable OnCpu() {
    const DeviceScope cpu("/cpu:0");
    return Variable(0.0f, {.name = "w"});
  }
  Fresh fresh_;
  std::string dir_;
  Mode mode_;
  int number_ = 0;
  Output x_ = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  Variable v_{Tensor::Vector<float>(std::vector<float>(kElements)), {.name = "v"}};
  Variable w_ = OnCpu();
  Operation assign_ = Group({v_.Assign(Fill({static_cast<int>(kElements)}, x_)).op(), w_.Assign(x_).op()});
  Operation init_ = GlobalVariablesInitializer();
  Saver saver_{SaverOptions{.max_to_keep = kMaxToKeep, .sharded = mode_ == Mode::kSharded}};
  Session session_{fresh_.graph};
};

class SaverKill : public testing::TestWithParam<Mode> {
 protected:
  /// Runs `what` in a separate process. Returns its exit status, or 128 + n if signal n ended it.
  static int InProcess(const std::function<int()>& what) {
    const pid_t child = fork();
    if (child == 0) _exit(what());
    return EndOf(child);
  }
  static int EndOf(pid_t child) {
    int result = 0;
    EXPECT_EQ(waitpid(child, &result, 0), child);
    return WIFSIGNALED(result) ? 128 + WTERMSIG(result) : WEXITSTATUS(result);
  }
  /// The number in all elements of the newest checkpoint; 0 without a checkpoint, -1 if it is incomplete.
  int Committed() {
    const std::string latest = LatestCheckpoint(dir_.path);
    if (latest.empty()) return 0;
    const Result<io::BundleReader> reader = io::BundleReader::Open(latest);
    const Status whole = reader.ok() ? reader->Verify() : reader.status();
    EXPECT_TRUE(Succeeds(whole));
    if (!whole.ok()) return -1;
    const Result<Tensor> value = reader->Read("v"), single = reader->Read("w");
    for (const float each : value->as<float>()) {
      if (each != single->as<float>()[0]) return -1;
    }
    return static_cast<int>(value->as<float>()[0]);
  }
  std::vector<std::string> NamesWith(const std::string& part) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path)) {
      const std::string name = entry.path().filename();
      if (name.find(part) != std::string::npos) names.push_back(name);
    }
    return names;
  }
  /// Expects the files of a complete save: the kept checkpoints, and nothing else.
  void ExpectTidy(const std::string& when) {
    EXPECT_TRUE(NamesWith("tempstate").empty()) << when << NamesWith("tempstate").front();
    const Result<io::CheckpointState> state = io::ReadCheckpointState(dir_.path);
    ASSERT_TRUE(Succeeds(state)) << when;
    const size_t kept = state->all_model_checkpoint_paths.size();
    EXPECT_LE(kept, static_cast<size_t>(kMaxToKeep)) << when;
    EXPECT_EQ(NamesWith(".index").size(), kept) << when;
    EXPECT_EQ(NamesWith(".data-").size(), GetParam() == Mode::kSharded ? 2 * kept : kept) << when;
    EXPECT_TRUE(NamesWith("_temp").empty()) << when;
    EXPECT_EQ(NamesWith(".meta").size(), kept) << when;
  }
  TemporaryFolder dir_;
};

TEST_P(SaverKill, DyingAtEveryCallOfASave) {
  const auto save = [&](int k) {
    return InProcess([&] {
      SavingProcess process(dir_.path, GetParam());
      return process.Begin() && process.Save(k) ? 0 : 1;
    });
  };
  const auto fill = [&] {
    return InProcess([&] {
      SavingProcess process(dir_.path, GetParam());
      bool ok = process.Begin();
      for (int i = 0; i < kMaxToKeep + 1; ++i) ok = ok && process.Save();
      return ok ? 0 : 1;
    });
  };
  ASSERT_EQ(fill(), 0);
  int last = Committed();
  ASSERT_EQ(last, kMaxToKeep + 1);
  int deaths = 0;
  for (int k = 1;; k += kStride) {
    const int end = save(k);
    const int now = Committed();
    ASSERT_TRUE(now == last || now == last + 1) << "call " << k << ": " << now << " after " << last;
    EXPECT_LE(NamesWith("tempstate").size(), 6u) << k;  // temporary files of one save
    last = now;
    if (end == 0) break;
    ASSERT_EQ(end, 9) << k;
    ++deaths;
    ASSERT_EQ(save(0), 0) << k;  // the next process
    ASSERT_EQ(Committed(), last + 1) << k;
    last = Committed();
    ExpectTidy("call " + std::to_string(k));
    if (HasFailure()) return;
  }
  EXPECT_GE(deaths * kStride, 20);
  ExpectTidy("in the end");
}

TEST_P(SaverKill, DyingAtRandom) {
  const char* asked = std::getenv("WEIR_TEST_KILLS");
  const int kills = asked == nullptr ? 15 : std::atoi(asked);
  std::mt19937 random(static_cast<uint32_t>(GetParam()) + 20);
  int acknowledged = 0, lost = 0, newer = 0;
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      SavingProcess process(dir_.path, GetParam());
      if (!process.Begin()) _exit(1);
      for (;;) {
        const int number = process.number();  // is committed
        if (write(ends[1], &number, sizeof number) != sizeof number || !process.Save()) _exit(2);
      }
    }
    close(ends[1]);
    int number = 0;
    for (int saves = static_cast<int>(random() % 5); saves >= 0; --saves) {
      ASSERT_EQ(read(ends[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
      if (number < acknowledged) ++lost;
      acknowledged = number;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    kill(child, SIGKILL);
    ASSERT_EQ(EndOf(child), 128 + SIGKILL);
    while (read(ends[0], &number, sizeof number) == static_cast<ssize_t>(sizeof number)) acknowledged = number;
    close(ends[0]);
    const int now = Committed();
    ASSERT_GE(now, acknowledged) << "kill " << kill_number;
    ASSERT_LE(now, acknowledged + 1) << "kill " << kill_number;
    newer += now - acknowledged;
    acknowledged = now;
    EXPECT_LE(NamesWith("tempstate").size(), 6u) << kill_number;  // temporary files of one save
    EXPECT_LE(NamesWith(".index").size(), static_cast<size_t>(kMaxToKeep) + 8u) << kill_number;
  }
  EXPECT_EQ(lost, 0);
  ASSERT_EQ(InProcess([&] {
              SavingProcess process(dir_.path, GetParam());
              return process.Begin() && process.Save() ? 0 : 1;
            }),
            0);
  EXPECT_EQ(Committed(), acknowledged + 1);
  ExpectTidy("in the end");
  RecordProperty("kills", kills);
  RecordProperty("committed_but_not_acknowledged", newer);
}

std::string NameOf(const testing::TestParamInfo<Mode>& info) {
  return std::array{"WithSteps", "SamePath", "Background", "Sharded"}[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Client, SaverKill,
                         testing::Values(Mode::kSteps, Mode::kSamePath, Mode::kBackground, Mode::kSharded), NameOf);

}  // namespace
}  // namespace weir::test
