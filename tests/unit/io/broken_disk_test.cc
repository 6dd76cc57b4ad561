// Saving while the k-th system call on files fails, or the process dies at it, for every k. The functions below replace
// the C library's.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "core/io/sweep.h"
#include "tests/unit/io/temp_dir.h"

namespace {

enum class Fault { kNone, kFail, kDie };
std::atomic<Fault> fault = Fault::kNone;
std::atomic<int> calls_left = 0;
bool no_links = false;  // the file system has no hard links

const char* last_call = "";  // the last failed call
// True if this call must fail.
bool Strikes(const char* name) {
  if (fault == Fault::kNone || --calls_left != 0) return false;
  last_call = name;
  if (fault == Fault::kDie) _exit(9);
  errno = EIO;
  return true;
}

}  // namespace

extern "C" {
ssize_t write(int fd, const void* data, size_t size) {
  return Strikes(__func__) ? -1 : static_cast<ssize_t>(syscall(SYS_write, fd, data, size));
}
// A dying process loses no data that the system has received, so nothing waits for the disk here.
int fdatasync(int) { return Strikes(__func__) ? -1 : 0; }
int fsync(int) { return Strikes(__func__) ? -1 : 0; }
int rename(const char* from, const char* to) noexcept {
  return Strikes(__func__) ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int link(const char* from, const char* to) noexcept {
  if (no_links) {
    errno = EPERM;
    return -1;
  }
  return Strikes(__func__) ? -1 : static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char* path) noexcept {
  return Strikes(__func__) ? -1 : static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int rmdir(const char* path) noexcept {
  return Strikes(__func__) ? -1 : static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  return (flags & O_CREAT) != 0 && Strikes(__func__)
             ? -1
             : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
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
  /// A sharded save: writes two shards to a separate folder, merges them, then writes the state file.
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
  // The value of all tensors of a checkpoint.
  Result<float> Load(const std::string& prefix) {
    WEIR_ASSIGN(const BundleReader reader, BundleReader::Open(prefix));
    WEIR_TRY(reader.Verify());
    WEIR_ASSIGN(const Tensor w, reader.Read("w"));
    return w.as<float>()[1];
  }
  // After any fault in the save of m-2: m-1 is complete, m-2 is complete or absent, and the state file names a complete
  // checkpoint.
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
  void ExpectNoLitter(int k) {
    for (const std::string& name : Names()) EXPECT_EQ(name.find("tempstate"), std::string::npos) << k << name;
  }
  /// Runs `what` in a process that dies at its k-th call, for every k until it survives; returns the number of deaths.
  template <class What, class Then>
  int DieAtEveryCall(What what, Then then) {
    for (int k = 1;; ++k) {
      const pid_t child = fork();
      if (child == 0) {
        calls_left = k;
        fault = Fault::kDie;
        const bool ok = what().ok();
        fault = Fault::kNone;
        _exit(ok ? 0 : 1);
      }
      int result = 0;
      EXPECT_EQ(waitpid(child, &result, 0), child);
      EXPECT_TRUE(WIFEXITED(result));
      if (WEXITSTATUS(result) == 0) return k - 1;
      EXPECT_EQ(WEXITSTATUS(result), 9);
      then(k);
      if (HasFailure()) return k;
    }
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
    if (status.ok()) {  // the failed call only cleans up
      EXPECT_EQ(*Load(Path("m-2")), 2) << k;
    } else {
      WEIR_EXPECT_ERROR(status, Code::kDataLoss, "Input/output error");
      ++failures;
    }
    ExpectSound(k);
    std::filesystem::remove_all(Path("m-2_temp"));
    SweepFolder(dir_);
    ExpectNoLitter(k);
    WEIR_ASSERT_OK(RemoveCheckpoint(Path("m-2")));
    WEIR_ASSERT_OK(WriteCheckpointState(dir_, {Path("m-1"), {}, {}, 0}));
  }
  EXPECT_GE(failures, 15);
  EXPECT_EQ(*Load(Path("m-2")), 2);
  EXPECT_EQ(LatestCheckpoint(dir_), Path("m-2"));
}

TEST_F(BrokenDisk, DyingAtAnyCallLeavesTheOldOrTheNewCheckpoint) {
  SetUpFirst();
  const int deaths = DieAtEveryCall([&] { return SaveSharded(Path("m-2"), 2); },
                                    [&](int k) {
                                      ExpectSound(k);
                                      std::filesystem::remove_all(Path("m-2_temp"));
                                      SweepFolder(dir_);
                                      ExpectNoLitter(k);
                                      WEIR_ASSERT_OK(RemoveCheckpoint(Path("m-2")));
                                      WEIR_ASSERT_OK(WriteCheckpointState(dir_, {Path("m-1"), {}, {}, 0}));
                                    });
  EXPECT_GE(deaths, 15);
}

/// Saves over a checkpoint: of one or two data files, onto one with the same or another number.
struct Overwriting {
  const char* name;
  bool old_sharded, new_sharded, links;
};
class Overwrite : public BrokenDisk, public ::testing::WithParamInterface<Overwriting> {
 protected:
  void SetUp() override {
    BrokenDisk::SetUp();
    no_links = !GetParam().links;
  }
  void TearDown() override {
    no_links = false;
    BrokenDisk::TearDown();
  }
  Status SaveAs(bool sharded, float value) { return sharded ? SaveSharded(Path("m"), value) : Save(Path("m"), value); }
  /// Expects the value before or after the save, and no other files once stale ones are removed.
  void ExpectEither(int k) {
    const Result<float> value = Load(Path("m"));
    ASSERT_TRUE(value.ok()) << k << ": " << value.status().ToString();
    EXPECT_TRUE(*value == 1 || *value == 2) << k;
    std::filesystem::remove_all(Path("m_temp"));
    SweepFolder(dir_);
    ExpectNoLitter(k);
    EXPECT_EQ(*Load(Path("m")), *value) << k;
    const size_t shards = static_cast<size_t>(BundleReader::Open(Path("m"))->num_shards());
    EXPECT_EQ(CountOf("m.data-"), shards) << k << last_call;
  }
  size_t CountOf(const std::string& start) {
    const std::vector<std::string> names = Names();
    return static_cast<size_t>(std::ranges::count_if(names, [&](const auto& name) { return name.starts_with(start); }));
  }
  void Renew() {
    WEIR_ASSERT_OK(RemoveCheckpoint(Path("m")));
    WEIR_ASSERT_OK(SaveAs(GetParam().old_sharded, 1));
  }
};

TEST_P(Overwrite, DyingAtAnyCallLeavesTheOldOrTheNewCheckpoint) {
  Renew();
  const int deaths = DieAtEveryCall([&] { return SaveAs(GetParam().new_sharded, 2); },
                                    [&](int k) {
                                      ExpectEither(k);
                                      Renew();
                                    });
  EXPECT_GE(deaths, 9);
  EXPECT_EQ(*Load(Path("m")), 2);
}

TEST_P(Overwrite, AnyFailingCallLeavesTheOldOrTheNewCheckpoint) {
  for (int k = 1;; ++k) {
    Renew();
    calls_left = k;
    fault = Fault::kFail;
    const Status status = SaveAs(GetParam().new_sharded, 2);
    fault = Fault::kNone;
    if (calls_left > 0) break;
    const Result<float> value = Load(Path("m"));
    EXPECT_TRUE(!status.ok() || (value.ok() && *value == 2)) << k;
    ExpectEither(k);
  }
  EXPECT_EQ(*Load(Path("m")), 2);
}

TEST_P(Overwrite, ASecondOverwriteHasTheUsualNames) {
  Renew();
  WEIR_ASSERT_OK(SaveAs(GetParam().new_sharded, 2));
  WEIR_ASSERT_OK(SaveAs(GetParam().new_sharded, 3));
  WEIR_ASSERT_OK(SaveAs(GetParam().new_sharded, 4));
  EXPECT_EQ(*Load(Path("m")), 4);
  const int shards = BundleReader::Open(Path("m"))->num_shards();
  const int usual = GetParam().new_sharded ? 2 : 1;
  EXPECT_TRUE(shards == usual || (!GetParam().links && shards == usual + 1)) << shards;
  EXPECT_EQ(CountOf("m.data-"), static_cast<size_t>(shards));
  ExpectNoLitter(0);
}

INSTANTIATE_TEST_SUITE_P(Io, Overwrite,
                         ::testing::Values(Overwriting{"OneByOne", false, false, true},
                                           Overwriting{"TwoByTwo", true, true, true},
                                           Overwriting{"OneByTwo", false, true, true},
                                           Overwriting{"TwoByOne", true, false, true},
                                           Overwriting{"OneByOneWithoutLinks", false, false, false},
                                           Overwriting{"TwoByTwoWithoutLinks", true, true, false}),
                         [](const auto& info) { return info.param.name; });

TEST_F(BrokenDisk, DyingWhileACheckpointIsRemovedLeavesNothingForGood) {
  const auto renew = [&] {
    WEIR_ASSERT_OK(Save(Path("m"), 1));
    Write(Path("m.meta"), "graph");
  };
  renew();
  const int deaths = DieAtEveryCall([&] { return RemoveCheckpoint(Path("m")); },
                                    [&](int k) {
                                      SweepFolder(dir_);
                                      ExpectNoLitter(k);
                                      const std::vector<std::string> names = Names();
                                      EXPECT_TRUE(names.empty() || FileExists(Path("m.index"))) << k;
                                      renew();
                                    });
  EXPECT_GE(deaths, 3);
  EXPECT_TRUE(Names().empty());
}

}  // namespace
}  // namespace weir::io
