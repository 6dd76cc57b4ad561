// Rows of the fault table about disks: checkpoints that a parameter server of another process writes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/client/extra.h"
#include "core/io/bundle.h"
#include "core/io/checkpoint_state.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/fault_table.h"
#include "tests/e2e/served.h"
#include "tests/support/own_loopback.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using testing::AddressOf;
using testing::AllFaults;
using testing::FaultRow;
using testing::Limited;
using testing::ScratchFolder;
using testing::Serve;
using testing::ServerProcess;
using testing::TargetOf;

/// A variable of 3 MB on a ps, all of whose elements are the number of the save, and a saver that the ps writes for.
class SavedOnPs {
 public:
  static constexpr int64_t kSavedElements = 750000;

  explicit SavedOnPs(const std::vector<std::string>& before = {}) {
    Start(testing::OwnLoopback() + ":0", before);
    const AsDefault here(graph_);
    const DeviceScope ps("/job:ps/task:0");
    x_ = Placeholder(DType::kFloat, {});
    v_ = Variable(Zeros({static_cast<int>(kSavedElements)}), {.name = "v"});
    assign_ = v_.Assign(Fill({static_cast<int>(kSavedElements)}, x_)).op();
    saver_ = std::make_unique<Saver>(SaverOptions{.max_to_keep = 0, .sharded = true});
  }
  void Start(const std::string& listen, const std::vector<std::string>& before = {}) {
    ps_ = Serve({"--cluster", "ps=127.0.0.1:0", "--listen", listen}, {}, before);
    target_ = TargetOf(*ps_);
    session_ = std::make_unique<Session>(target_, graph_, Limited());
  }
  void Restart() {
    session_.reset();
    Start(AddressOf(target_));
  }
  Status Save(const std::string& folder, int number) {
    const Status assigned = session_->Run(assign_, {{x_, static_cast<float>(number)}}).status();
    if (!assigned.ok()) return assigned;
    return saver_->Save(*session_, folder + "/m", {.global_step = number}).status();
  }
  /// The number in all elements of the newest checkpoint that can be used; 0 without one, -1 if they differ.
  int Restored(const std::string& folder) {
    ::testing::internal::CaptureStderr();
    const Status status = saver_->RestoreLatest(*session_, folder).status();
    static_cast<void>(::testing::internal::GetCapturedStderr());
    if (!status.ok()) return 0;
    const auto all = session_->Run(v_);
    EXPECT_TRUE(all.ok()) << all.status().ToString();
    if (!all.ok()) return -1;
    const auto values = all->tensor().as<float>();
    for (const float value : values) {
      if (value != values[0]) return -1;
    }
    return static_cast<int>(values[0]);
  }
  ServerProcess& ps() { return *ps_; }

 private:
  std::string target_;
  std::unique_ptr<ServerProcess> ps_;
  Graph graph_;
  Output x_;
  Variable v_;
  Operation assign_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
};

/// A file system of 8 MiB in a folder.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder) : folder_(std::move(folder)) {
    if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=8m") != 0) why_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (why_.empty()) umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  /// Why there is none; empty if there is.
  const std::string& why() const { return why_; }
  bool SetReadOnly(bool on) const {
    unsigned long flags = MS_REMOUNT;
    if (on) flags |= MS_RDONLY;
    return mount("tmpfs", folder_.c_str(), "tmpfs", flags, "size=8m") == 0;
  }

 private:
  const std::string folder_;
  std::string why_;
};

const std::vector<Code> kDiskCodes = {Code::kResourceExhausted, Code::kUnavailable, Code::kPermissionDenied,
                                      Code::kFailedPrecondition, Code::kUnknown, Code::kOutOfRange,
                                      Code::kInternal};

TEST(FaultMatrix, D1_AFullDiskKeepsTheOlderCheckpoint) {
  const ScratchFolder folder;
  FaultRow row("D1", "ps mid-checkpoint, a disk of 8 MiB is full");
  const SmallDisk disk(folder.path());
  if (!disk.why().empty()) return row.Skip("no tmpfs can be mounted: " + disk.why());
  SavedOnPs saved;
  ASSERT_TRUE(saved.Save(folder.path(), 1).ok());
  ASSERT_TRUE(saved.Save(folder.path(), 2).ok());
  row.Told(saved.Save(folder.path(), 3), {Code::kResourceExhausted}, {"No space left on device", folder.path()});
  EXPECT_EQ(saved.Restored(folder.path()), 2);
  // With room again the next save succeeds.
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().filename().string().starts_with("m-1.")) fs::remove(entry.path());
  }
  const Status again = saved.Save(folder.path(), 4);
  EXPECT_TRUE(again.ok()) << again.ToString();
  EXPECT_EQ(saved.Restored(folder.path()), 4);
}

TEST(FaultMatrix, D1_AFileThatMayNotGrowIsAnError) {
  const ScratchFolder folder;
  FaultRow row("D1", "ps mid-checkpoint, RLIMIT_FSIZE");
  SavedOnPs saved({"/bin/sh", "-c", "ulimit -f 2048; exec \"$0\" \"$@\""});
  row.Told(saved.Save(folder.path(), 1), kDiskCodes, {"File too large", folder.path()});
  EXPECT_EQ(saved.Restored(folder.path()), 0);
}

TEST(FaultMatrix, D2_APsThatIsKilledMidCheckpointLeavesOneOfTwo) {
  FaultRow row("D2", "ps mid-checkpoint, SIGKILL at a temporary file (T1)");
  const ScratchFolder folder;
  SavedOnPs saved;
  ASSERT_TRUE(saved.Save(folder.path(), 1).ok());
  int last = 1;
  const int kills = AllFaults() ? 8 : 1;
  for (int i = 0; i < kills; ++i) {
    std::atomic<bool> over{false};
    std::thread kills_it([&] {
      const auto temporary = [&] {
        std::error_code gone;
        for (auto it = fs::recursive_directory_iterator(folder.path(), gone); it != fs::recursive_directory_iterator();
             it.increment(gone)) {
          if (gone || it->path().string().find("_temp") != std::string::npos) return true;
        }
        return false;
      };
      while (!over && !temporary()) std::this_thread::yield();
      saved.ps().Signal(SIGKILL);
    });
    const Status status = saved.Save(folder.path(), last + 1);
    over = true;
    kills_it.join();
    EXPECT_EQ(saved.ps().Wait(), 128 + SIGKILL);
    saved.Restart();
    const int now = saved.Restored(folder.path());
    EXPECT_TRUE(now == last || now == last + 1) << now << " after " << last;
    if (status.ok()) {
      EXPECT_EQ(now, last + 1);
    } else {
      row.Told(status, {Code::kUnavailable, Code::kAborted}, {});
    }
    const Status again = saved.Save(folder.path(), now + 1);
    ASSERT_TRUE(again.ok()) << again.ToString();
    last = now + 1;
    EXPECT_EQ(saved.Restored(folder.path()), last);
  }
}

/// The number in all elements of the newest checkpoint; 0 without one, -1 if it is no whole one.
int NumberSaved(const std::string& folder) {
  const std::string latest = LatestCheckpoint(folder);
  if (latest.empty()) return 0;
  const Result<io::BundleReader> reader = io::BundleReader::Open(latest);
  const Status whole = reader.ok() ? reader->Verify() : reader.status();
  EXPECT_TRUE(whole.ok()) << whole.ToString();
  if (!whole.ok()) return -1;
  const Result<Tensor> v = reader->Read("v"), w = reader->Read("w");
  const float number = v->as<float>()[0];
  for (const Result<Tensor>* const each : {&v, &w}) {
    for (const float value : (*each)->as<float>()) {
      if (value != number) return -1;
    }
  }
  return static_cast<int>(number);
}

TEST(FaultMatrix, T17_AChiefThatDiesBetweenTwoRenamesLeavesOneOfTwo) {
  FaultRow row("T17", "chief mid-checkpoint, dead at each of its renames");
  const ScratchFolder folder;
  const auto save = [&](int number, int k) {
    // Servers get their sockets from the launcher.
    const std::string task = "case {job} in ps) exec \"$0\" serve;; *) exec \"$1\" {hosts:ps} {hosts:worker} \"$2\" " +
                             std::to_string(number) + " " + std::to_string(k) + ";; esac";
    ServerProcess launch({WEIR_COMMAND, "launch", "--jobs", "ps=2,worker=1", "--", "/bin/sh", "-c", task, WEIR_COMMAND,
                          WEIR_FAULT_CHIEF, folder.path()});
    const std::string text = launch.ReadAll();
    const int status = launch.Wait();
    EXPECT_TRUE(status == 0 || status == 9) << text;
    return status;
  };
  ASSERT_EQ(save(1, 0), 0);
  int last = NumberSaved(folder.path()), deaths = 0;
  ASSERT_EQ(last, 1);
  const int most = AllFaults() ? 1000 : 3;
  for (int k = 1; k <= most; ++k) {
    const int status = save(last + 1, k);
    const int now = NumberSaved(folder.path());
    ASSERT_TRUE(now == last || now == last + 1) << "rename " << k << ": " << now << " after " << last;
    last = now;
    if (status == 0) break;
    ++deaths;
    ASSERT_EQ(save(last + 1, 0), 0) << k;
    ASSERT_EQ(NumberSaved(folder.path()), last + 1) << k;
    ++last;
  }
  EXPECT_GE(deaths, 2);
  row.Unnoticed(Status());
}

TEST(FaultMatrix, D3_RowsThatNeedWhatIsNotThereAreSkippedWithTheReason) {
  {
    FaultRow row("D3", "ps mid-checkpoint, power loss");
    row.Skip("lazyfs is no package of Debian 12; io's BrokenDisk tests fail and die at every call");
  }
  FaultRow row("T1", "worker mid-collective, SIGKILL");
  row.Skip("there are no collectives yet");
}

TEST(FaultMatrix, D4_ADiskThatTurnsReadOnlyKeepsTheOlderCheckpoint) {
  const ScratchFolder folder;
  FaultRow row("D4", "ps between checkpoints, the disk turns read-only");
  const SmallDisk disk(folder.path());
  if (!disk.why().empty()) return row.Skip("no tmpfs can be mounted: " + disk.why());
  SavedOnPs saved;
  ASSERT_TRUE(saved.Save(folder.path(), 1).ok());
  ASSERT_TRUE(disk.SetReadOnly(true));
  row.Told(saved.Save(folder.path(), 2), kDiskCodes, {"Read-only file system", folder.path()});
  EXPECT_EQ(saved.Restored(folder.path()), 1);
  ASSERT_TRUE(disk.SetReadOnly(false));
  ASSERT_TRUE(saved.Save(folder.path(), 3).ok());
  EXPECT_EQ(saved.Restored(folder.path()), 3);
}

TEST(FaultMatrix, D5_DamagedCheckpointsAreNeverAccepted) {
  const ScratchFolder folder;
  FaultRow row("D5", "ps restores, bits of the newest checkpoint flipped");
  SavedOnPs saved;
  ASSERT_TRUE(saved.Save(folder.path(), 1).ok());
  ASSERT_TRUE(saved.Save(folder.path(), 2).ok());
  std::mt19937 random(11);
  const int flips = AllFaults() ? 60 : 6;
  int accepted = 0;
  for (int i = 0; i < flips; ++i) {
    const std::string file = folder / (i % 2 == 0 ? "m-2.index" : "m-2.data-00000-of-00001");
    std::string bytes = testing::ReadWhole(file);
    ASSERT_FALSE(bytes.empty()) << file;
    const std::string whole = bytes;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    std::ofstream(file, std::ios::binary) << bytes;
    const int now = saved.Restored(folder.path());
    EXPECT_TRUE(now == 1 || now == 2) << now;  // 2: a bit that nothing reads
    accepted += now != 1 && now != 2 ? 1 : 0;
    std::ofstream(file, std::ios::binary) << whole;
  }
  EXPECT_EQ(accepted, 0);
  EXPECT_EQ(saved.Restored(folder.path()), 2);
  row.Unnoticed(Status());
}

}  // namespace
}  // namespace weir
