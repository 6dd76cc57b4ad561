#include "core/cluster/guest_worker.h"

#include <fmt/format.h>

#include <set>

#include "core/base/errors.h"

namespace weir::cluster {

Status GuestWorker::Rename(const TaskName& name, std::vector<device::DeviceDescription>& devices) {
  std::set<std::string> names;
  for (device::DeviceDescription& device : devices) {
    device.info.name.job = name.job;
    device.info.name.replica = 0;
    device.info.name.task = name.index;
    if (names.insert(device.info.name.ToString()).second) continue;
    return InvalidArgument("the process offers two devices {}:{}", *device.info.name.type, *device.info.name.id);
  }
  return Status();
}

Result<WorkerStatus> GuestWorker::GetStatus(Clock::time_point deadline) {
  WEIR_ASSIGN(WorkerStatus status, far_->GetStatus(deadline));
  status.task = name_;
  WEIR_TRY(Rename(name_, status.devices));
  return status;
}

Status GuestWorker::CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) {
  WorkerSessionSpec own = spec;
  own.known_as = name_;
  own.isolate_state = true;
  WEIR_TRY(far_->CreateSession(own, deadline));
  auto held = far_->HoldSession(spec.handle, [weak = std::weak_ptr<GuestWorker>(Self())](const Status& why) {
    if (const std::shared_ptr<GuestWorker> self = weak.lock()) self->Lose(why);
  });
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ = std::move(held);
  return Status();
}

Status GuestWorker::DeleteSession(uint64_t session) {
  std::shared_ptr<const void> held;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    held.swap(held_);
  }
  return far_->DeleteSession(session);
}

Result<PartHandle> GuestWorker::RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) {
  WEIR_TRY(Lost());
  Result<PartHandle> handle = far_->RegisterPart(session, graph, deadline);
  if (!handle.ok()) return Judge(handle.status(), "a part of a step was registered");
  return handle;
}

void GuestWorker::RunStep(StepRequest request, StepDone done) {
  if (const Status lost = Lost(); !lost.ok()) return done(lost.Prepend(fmt::format("step {:x} ends: ", request.step)));
  const auto shared = std::make_shared<StepDone>(std::move(done));
  const std::string what = fmt::format("step {:x} ran", request.step);
  far_->RunStep(std::move(request), StepDone([self = Self(), shared, what](Result<std::vector<Tensor>> fetches) {
                  if (!fetches.ok()) return (*shared)(self->Judge(fetches.status(), what));
                  (*shared)(std::move(fetches));
                }));
}

void GuestWorker::RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) {
  const auto shared = std::make_shared<runtime::Rendezvous::Received>(std::move(received));
  const std::string what = fmt::format("step {:x} ran", request.step);
  far_->RecvTensor(request,
                   runtime::Rendezvous::Received([self = Self(), shared, what](Result<runtime::Message> came) {
                     if (!came.ok()) return (*shared)(self->Judge(came.status(), what));
                     (*shared)(std::move(came));
                   }));
}

Status GuestWorker::Lost() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lost_;
}

void GuestWorker::Lose(const Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ends_ || !lost_.ok()) return;
  lost_ = Unavailable("the remote devices {} at {} were lost before this step, and their variables with them: {}; "
                      "begin a new session, which gets them anew where the process answers, and restore the variables",
                      name_.ToString(), address_, why.message());
}

Status GuestWorker::Judge(const Status& status, const std::string& what) {
  // Damaged bytes end the connection, and each call on it has that error: the one that holds the session comes first.
  const bool damaged = status.node().empty() && (status.code() == Code::kDataLoss || !Lost().ok());
  if (status.code() != Code::kUnavailable && !damaged) return status;
  Lose(status);
  return status.Append(fmt::format("\nThe remote devices {} at {} were lost while {}, and their variables with them: "
                                   "begin a new session, which gets them anew where the process answers, and restore "
                                   "the variables.",
                                   name_.ToString(), address_, what));
}

}  // namespace weir::cluster
