// Saving while the k-th system call on files fails, or the process dies at it, for every k. The calls below stand in
// front of the C library's.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "tests/unit/io/temp_dir.h"

namespace {

enum class Fault { kNone, kFail, kDie };
std::atomic<Fault> fault = Fault::kNone;
std::atomic<int> calls_left = 0;

// True when this call is to fail.
bool Strikes() {
  if (fault == Fault::kNone || --calls_left != 0) return false;
  if (fault == Fault::kDie) _exit(9);
  errno = EIO;
  return true;
}

}  // namespace

extern "C" {
ssize_t write(int fd, const void* data, size_t size) {
  return Strikes() ? -1 : static_cast<ssize_t>(syscall(SYS_write, fd, data, size));
}
int fdatasync(int fd) { return Strikes() ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd)); }
int fsync(int fd) { return Strikes() ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int rename(const char* from, const char* to) noexcept {
  return Strikes() ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

namespace weir::io {
namespace {

class BrokenDisk : public TempDir {
 protected:
  Status Save(const std::string& prefix, float value) {
    WEIR_ASSIGN(BundleWriter writer, BundleWriter::Create(prefix));
    WEIR_TRY(writer.Add("w", Tensor::Vector<float>({value, value})));
    return writer.Finish();
  }
  // A sharded save: two shards in a folder of their own, merged, then the state file.
  Status SaveSharded(const std::string& prefix, float value) {
    const std::vector<std::string> shards = {prefix + "_temp/part-0", prefix + "_temp/part-1"};
    WEIR_TRY(Save(shards[0], value));
    {
      WEIR_ASSIGN(BundleWriter writer, BundleWriter::Create(shards[1]));
      WEIR_TRY(writer.Add("v", Tensor::Vector<float>({value})));
      WEIR_TRY(writer.Finish());
    }
    WEIR_TRY(MergeBundles(shards, prefix));
    return WriteCheckpointState(dir_, {prefix, {Path("m-1"), prefix}, {}, 0});
  }
  // The value that a checkpoint holds in all its tensors.
  Result<float> Load(const std::string& prefix) {
    WEIR_ASSIGN(const BundleReader reader, BundleReader::Open(prefix));
    WEIR_TRY(reader.Verify());
    WEIR_ASSIGN(const Tensor w, reader.Read("w"));
    return w.as<float>()[1];
  }
  // Whatever happened to the save of m-2: m-1 is whole, m-2 is whole or absent, the state file names one that is whole.
  void ExpectSound(int k) {
    const Result<float> old = Load(Path("m-1"));
    ASSERT_TRUE(old.ok()) << k << old.status().ToString();
    EXPECT_EQ(*old, 1) << k;
    const Result<float> fresh = Load(Path("m-2"));
    EXPECT_TRUE(fresh.ok() ? *fresh == 2 : fresh.status().code() == Code::kNotFound) << k << fresh.status().ToString();
    const std::string latest = LatestCheckpoint(dir_);
    EXPECT_TRUE(latest == Path("m-1") || latest == Path("m-2")) << k << latest;
    WEIR_EXPECT_OK(Load(latest).status());
  }
  void SetUpFirst() {
    WEIR_ASSERT_OK(Save(Path("m-1"), 1));
    WEIR_ASSERT_OK(WriteCheckpointState(dir_, {Path("m-1"), {}, {}, 0}));
  }
};

TEST_F(BrokenDisk, EveryFailingCallIsReportedAndNothingIsLost) {
  SetUpFirst();
  int failures = 0;
  for (int k = 1;; ++k) {
    calls_left = k;
    fault = Fault::kFail;
    const Status status = SaveSharded(Path("m-2"), 2);
    fault = Fault::kNone;
    if (calls_left > 0) {
      WEIR_EXPECT_OK(status);
      break;
    }
    WEIR_EXPECT_ERROR(status, Code::kDataLoss, "Input/output error");
    ++failures;
    ExpectSound(k);
    for (const std::string& name : Names()) EXPECT_EQ(name.find("tempstate"), std::string::npos) << k << name;
    WEIR_ASSERT_OK(RemoveCheckpoint(Path("m-2")));
    std::filesystem::remove_all(Path("m-2_temp"));
  }
  EXPECT_GE(failures, 15);
  EXPECT_EQ(*Load(Path("m-2")), 2);
  EXPECT_EQ(LatestCheckpoint(dir_), Path("m-2"));
}

TEST_F(BrokenDisk, DyingAtAnyCallLeavesTheOldOrTheNewCheckpoint) {
  SetUpFirst();
  int deaths = 0;
  for (int k = 1;; ++k) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      calls_left = k;
      fault = Fault::kDie;
      const bool ok = SaveSharded(Path("m-2"), 2).ok();
      fault = Fault::kNone;
      _exit(ok ? 0 : 1);
    }
    int result = 0;
    ASSERT_EQ(waitpid(child, &result, 0), child);
    ASSERT_TRUE(WIFEXITED(result));
    if (WEXITSTATUS(result) == 0) break;
    ASSERT_EQ(WEXITSTATUS(result), 9);
    ++deaths;
    ExpectSound(k);
    WEIR_ASSERT_OK(RemoveCheckpoint(Path("m-2")));
    std::filesystem::remove_all(Path("m-2_temp"));
  }
  EXPECT_GE(deaths, 15);
}

TEST_F(BrokenDisk, OverwritingAPrefixGivesOldOrNewOrARefusal) {
  for (int k = 1;; ++k) {
    WEIR_ASSERT_OK(Save(Path("m"), 1));
    calls_left = k;
    fault = Fault::kFail;
    const Status status = Save(Path("m"), 2);
    fault = Fault::kNone;
    if (calls_left > 0) break;
    EXPECT_FALSE(status.ok());
    const Result<float> value = Load(Path("m"));
    EXPECT_TRUE(value.ok() ? *value == 1 || *value == 2 : value.status().code() == Code::kDataLoss) << k;
  }
  EXPECT_EQ(*Load(Path("m")), 2);
}

}  // namespace
}  // namespace weir::io
