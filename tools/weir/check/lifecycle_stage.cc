// Stage lifecycle: init, enumerate, open and close, shutdown.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/device/device_name.h"
#include "core/kernel/host.h"
#include "tools/weir/check/process_state.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

constexpr int kMostAtOnce = 16;
constexpr int kLeastOpenings = 10, kMostOpenings = 1000;

Finding CheckEnumerate(const Subject& subject, std::vector<FoundDevice>& found) {
  if (subject.devices() == nullptr) return Finding::Skip("it brings no devices");
  Result<std::vector<FoundDevice>> first = Enumerate(subject);
  if (!first.ok()) return first.status();
  const Result<std::vector<FoundDevice>> second = Enumerate(subject);
  if (!second.ok()) return second.status().Prepend("the second time: ");
  if (*first != *second)
    return Status(
        FailedPrecondition("enumerate returns {} devices, then {} different ones", first->size(), second->size()));
  found = std::move(*first);
  return Status();
}

Status CheckRecords(const std::vector<FoundDevice>& found) {
  std::set<std::string> uids;
  for (const FoundDevice& device : found) {
    if (device.uid.empty()) return InvalidArgument("a device of kind '{}' has no uid", device.kind);
    if (!uids.insert(device.uid).second) return InvalidArgument("two devices have the uid '{}'", device.uid);
    if (device.platform.empty()) return InvalidArgument("device '{}' has no platform", device.uid);
    const Result<device::DeviceName> name = device::ParseDeviceName("/device:" + device.kind + ":0");
    if (!name.ok() || name->type != device.kind) {
      return InvalidArgument("device '{}': kind '{}' is not a device type", device.uid, device.kind);
    }
    if ((device.alignment & (device.alignment - 1)) != 0) {
      return InvalidArgument("device '{}': alignment {} is not a power of two", device.uid, device.alignment);
    }
  }
  return {};
}

Finding OpenNobody(const Subject& subject) {
  if (subject.devices() == nullptr) return Finding::Skip("it brings no devices");
  const auto opened = OpenedDevice::Open(subject, {.uid = "a-device-that-nobody-has"});
  if (opened.ok()) return Status(FailedPrecondition("it opens a device that enumerate never told of"));
  return Status();
}

// Opens the device until memory ends or there are kMostAtOnce, at least once.
Status OpenAtOnce(const Subject& subject, const FoundDevice& device) {
  std::vector<std::unique_ptr<OpenedDevice>> open;
  while (open.size() < kMostAtOnce) {
    Result<std::unique_ptr<OpenedDevice>> one = OpenedDevice::Open(subject, device);
    if (one.ok()) {
      open.push_back(std::move(*one));
    } else if (open.empty()) {
      return one.status();
    } else if (one.status().code() == Code::kResourceExhausted) {
      return {};
    } else {
      return one.status().Prepend(
          fmt::format("while it is open {} times (RESOURCE_EXHAUSTED would say that no more fit): ", open.size()));
    }
  }
  return {};
}

// Opening may take long, for example to compile programs: as often as a third of the time limit permits.
Finding OpenOften(const Target& target, const Subject& subject, const std::vector<FoundDevice>& found) {
  using Clock = std::chrono::steady_clock;
  if (found.empty()) return Finding::Skip("it finds no device here");
  const auto share = std::chrono::milliseconds(target.time_limit_ms) / (3 * static_cast<int>(found.size()));
  for (const FoundDevice& device : found) {
    if (const Status at_once = OpenAtOnce(subject, device); !at_once.ok()) return at_once;
    const Clock::time_point end = Clock::now() + share;
    for (int round = 0; round < kMostOpenings && (round < kLeastOpenings || Clock::now() < end); ++round) {
      const auto again = OpenedDevice::Open(subject, device);
      if (!again.ok()) return again.status().Prepend(fmt::format("opened and closed {} times, then: ", round));
    }
  }
  return Status();
}

Status InitAgain(const Subject& subject, const std::vector<FoundDevice>& found) {
  if (subject.Init().ok()) return FailedPrecondition("init succeeds a second time");
  if (subject.devices() == nullptr) return {};
  const Result<std::vector<FoundDevice>> now = Enumerate(subject);
  if (!now.ok()) return now.status().Prepend("after init was refused: ");
  if (*now == found) return {};
  return FailedPrecondition("enumerate returned {} devices, after a second init {} different ones", found.size(),
                            now->size());
}

Finding CheckShutdown(const Target& target, const Subject& subject, int threads_before) {
  if (!WEIR_HAS(&subject.table(), shutdown)) return Status(InvalidArgument("it has no shutdown"));
  subject.table().shutdown();
  // A joined thread disappears from the process's list a moment later.
  int threads = 0;
  for (int wait = 0; wait < 100; ++wait) {
    threads = ProcessState::Now().threads;
    if (threads <= threads_before) return Status();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const int own = ThreadsIn(target.path);
  if (own > 0) {
    return Status(FailedPrecondition("{} threads run after shutdown, {} did before init; {} run the plugin's own code",
                                     threads, threads_before, own));
  }
  return Finding::Warn(fmt::format("{} threads run after shutdown, {} did before init: they are those of libraries",
                                   threads, threads_before));
}

}  // namespace

std::vector<RuleResult> LifecycleStage(const Target& target) {
  return RunInChild("WEIR-LIFE-01", target.time_limit_ms, [&](Recorder& recorder) {
    const int threads_before = ProcessState::Now().threads;
    Result<Subject> subject = Unknown("not tried");
    if (!recorder.Try("WEIR-LIFE-01", [&] { return (subject = Subject::Start(target)).status(); })) return;
    std::vector<FoundDevice> found;
    recorder.Try("WEIR-LIFE-02", [&] { return CheckEnumerate(*subject, found); });
    recorder.Try("WEIR-LIFE-03", [&] { return CheckRecords(found); });
    recorder.Try("WEIR-LIFE-04", [&] { return OpenNobody(*subject); });
    recorder.Try("WEIR-LIFE-05", [&] { return OpenOften(target, *subject, found); });
    recorder.Try("WEIR-LIFE-07", [&] { return InitAgain(*subject, found); });
    recorder.Try("WEIR-LIFE-06", [&] { return CheckShutdown(target, *subject, threads_before); });
  });
}

}  // namespace weir::check
