// A fake task behind a listener, and the ends of a client.
#ifndef WEIR_TESTS_UNIT_CLUSTER_WIRE_PAIR_H_
#define WEIR_TESTS_UNIT_CLUSTER_WIRE_PAIR_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/wired_cluster.h"
#include "tests/unit/cluster/fake_worker.h"

namespace weir::testing {

constexpr std::chrono::seconds kSoon{120};
inline cluster::Clock::time_point In(std::chrono::milliseconds time) { return cluster::Clock::now() + time; }

/// Waits until `done` is true; false after two minutes.
template <class Done>
bool Until(Done&& done) {
  const cluster::Clock::time_point end = In(kSoon);
  while (!done()) {
    if (cluster::Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// A step, and a transfer, that the caller waits for.
inline Result<std::vector<Tensor>> StepOf(cluster::Worker& worker, cluster::StepRequest request) {
  std::promise<Result<std::vector<Tensor>>> ended;
  worker.RunStep(std::move(request),
                 cluster::StepDone([&ended](Result<std::vector<Tensor>> r) { ended.set_value(std::move(r)); }));
  return ended.get_future().get();
}
inline Result<runtime::Message> ReceiveFrom(cluster::Worker& worker, const std::string& key) {
  std::promise<Result<runtime::Message>> ended;
  worker.RecvTensor({5, 6, key}, runtime::Rendezvous::Received(
                                     [&ended](Result<runtime::Message> r) { ended.set_value(std::move(r)); }));
  return ended.get_future().get();
}

struct WirePair {
  explicit WirePair(const cluster::LocalEnd& server_end = {}, const cluster::LocalEnd& client_end = {},
                    std::shared_ptr<cluster::Transport> transport = SocketTransport()) {
    cluster::LocalEnd self = server_end;
    self.task = {"ps", 0};
    if (self.incarnation == 0) self.incarnation = 99;
    auto made = transport->Listen({fake, master}, {"localhost:0", -1, self});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) return;
    listener = *std::move(made);
    far = *SocketTransport()->ConnectWorker({"ps", 0}, listener->address(), client_end);
    far_master = *SocketTransport()->ConnectMaster(listener->address(), client_end);
  }
  ~WirePair() {
    if (listener != nullptr) listener->Close();
    fake->Finish();
  }
  WirePair(const WirePair&) = delete;
  WirePair& operator=(const WirePair&) = delete;

  Result<std::vector<Tensor>> Step(cluster::StepRequest request) const { return StepOf(*far, std::move(request)); }
  Result<runtime::Message> Receive(const std::string& key) const { return ReceiveFrom(*far, key); }
  Result<std::string> Master(const std::string& method, const std::string& request,
                             cluster::Clock::time_point deadline = In(kSoon)) const {
    std::promise<Result<std::string>> ended;
    far_master->Call({method, request, deadline, "", nullptr},
                     cluster::MasterDone([&ended](Result<std::string> r) { ended.set_value(std::move(r)); }));
    return ended.get_future().get();
  }

  const std::shared_ptr<FakeWorker> fake = std::make_shared<FakeWorker>(cluster::TaskName{"ps", 0});
  const std::shared_ptr<FakeMaster> master = std::make_shared<FakeMaster>();
  std::unique_ptr<cluster::Listener> listener;
  std::shared_ptr<cluster::Worker> far;
  std::shared_ptr<cluster::MasterService> far_master;
};

/// A device of a task with every field set.
inline device::DeviceDescription AnyDevice(const cluster::TaskName& task) {
  device::DeviceDescription device;
  device.info.name = {.job = task.job, .replica = 0, .task = task.index, .type = "GPU", .id = 1};
  device.info.uid = "uid";
  device.info.class_id = "class";
  device.info.kind = "GPU";
  device.info.platform = "cuda";
  device.info.display_name = "A card";
  device.info.driver_version = "535";
  device.info.plugin = "gpu";
  device.info.flags = 5;
  device.info.numa_node = 1;
  device.info.memory_bytes = uint64_t{24} << 30;
  device.info.alignment = 256;
  device.info.largest_allocation = 1 << 30;
  weir_profile& profile = device.profile.emplace();
  profile.struct_size = sizeof profile;
  profile.peak_flops_per_ns[1] = 12000;
  profile.bandwidth_bytes_per_ns = 900;
  profile.launch_ns = std::numeric_limits<double>::quiet_NaN();
  profile.memory_efficiency[15] = 0.5;
  profile.queues = 4;
  profile.copy_engines = 2;
  return device;
}

inline void ExpectSame(const device::DeviceDescription& got, const device::DeviceDescription& wanted) {
  EXPECT_EQ(got.info.name, wanted.info.name);
  EXPECT_EQ(got.info.uid, wanted.info.uid);
  EXPECT_EQ(got.info.class_id, wanted.info.class_id);
  EXPECT_EQ(got.info.platform, wanted.info.platform);
  EXPECT_EQ(got.info.display_name, wanted.info.display_name);
  EXPECT_EQ(got.info.driver_version, wanted.info.driver_version);
  EXPECT_EQ(got.info.plugin, wanted.info.plugin);
  EXPECT_EQ(got.info.flags, wanted.info.flags);
  EXPECT_EQ(got.info.numa_node, wanted.info.numa_node);
  EXPECT_EQ(got.info.memory_bytes, wanted.info.memory_bytes);
  EXPECT_EQ(got.info.alignment, wanted.info.alignment);
  EXPECT_EQ(got.info.largest_allocation, wanted.info.largest_allocation);
  ASSERT_TRUE(got.profile.has_value());
  EXPECT_EQ(got.profile->peak_flops_per_ns[1], 12000);
  EXPECT_EQ(got.profile->bandwidth_bytes_per_ns, 900);
  EXPECT_TRUE(std::isnan(got.profile->launch_ns));
  EXPECT_EQ(got.profile->memory_efficiency[15], 0.5);
  EXPECT_EQ(got.profile->queues, 4u);
  EXPECT_EQ(got.profile->copy_engines, 2u);
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_UNIT_CLUSTER_WIRE_PAIR_H_
