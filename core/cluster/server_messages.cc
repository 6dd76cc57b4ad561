#include "core/cluster/server_messages.h"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "core/base/errors.h"
#include "core/proto/parse.h"
#include "weir/proto/server.pb.h"

namespace weir::cluster {
namespace {

constexpr int64_t kLongestAsk = 600000;
constexpr std::chrono::milliseconds kLongestProfile{600000};
constexpr int kMostHolders = 1000;
constexpr size_t kLargeMessage = 64 << 10;  // more than fits in a packet of any link

Result<std::string> CallServer(MasterService& master, std::string_view method, std::string request,
                               Clock::time_point deadline) {
  const auto answered = std::make_shared<std::promise<Result<std::string>>>();
  auto answer = answered->get_future();
  MasterCall call;
  call.method = method;
  call.request = std::move(request);
  call.deadline = deadline;
  master.Call(std::move(call), MasterDone([answered](Result<std::string> r) { answered->set_value(std::move(r)); }));
  return answer.get();
}

PeerView PeerFrom(const tf::PeerReport& message, const TaskName& task) {
  PeerView peer;
  peer.task = task;
  peer.address = message.address();
  peer.status = Status(static_cast<Code>(message.status_code()), message.status_error_message());
  peer.took = std::chrono::microseconds(message.micros());
  peer.incarnation = message.incarnation();
  peer.draining = message.draining();
  return peer;
}

}  // namespace

Result<std::string> WriteView(const ServerView& view, std::string padding) {
  tf::ServerReport message;
  message.set_task(view.task.ToString());
  message.set_address(view.address);
  message.set_incarnation(view.incarnation);
  message.set_version(view.version);
  message.set_clock_micros(view.clock_us);
  message.set_draining(view.draining);
  message.set_sessions(static_cast<int64_t>(view.counts.sessions));
  message.set_parts(static_cast<int64_t>(view.counts.parts));
  message.set_steps(static_cast<int64_t>(view.counts.steps));
  message.set_running(static_cast<int64_t>(view.counts.running));
  message.set_seconds_up(view.seconds_up);
  message.mutable_device()->Add(view.devices.begin(), view.devices.end());
  for (const PeerView& peer : view.peers) {
    tf::PeerReport& written = *message.add_peer();
    written.set_task(peer.task.ToString());
    written.set_address(peer.address);
    written.set_status_code(static_cast<int>(peer.status.code()));
    written.set_status_error_message(peer.status.message());
    written.set_micros(peer.took.count());
    written.set_incarnation(peer.incarnation);
    written.set_draining(peer.draining);
  }
  message.set_padding(std::move(padding));
  return proto::Serialize(message, "ServerReport");
}

Result<ReportRequest> ReadReportRequest(std::string_view bytes) {
  tf::ServerReportRequest message;
  WEIR_TRY(proto::ParseBinary(bytes, "ServerReportRequest", message));
  return ReportRequest{std::chrono::milliseconds(std::clamp<int64_t>(message.peer_limit_ms(), 0, kLongestAsk)),
                       std::move(*message.mutable_padding())};
}

Result<std::chrono::milliseconds> ReadProfileRequest(std::string_view bytes) {
  tf::ServerProfileRequest message;
  WEIR_TRY(proto::ParseBinary(bytes, "ServerProfileRequest", message));
  if (message.limit_ms() < 0 || message.limit_ms() > kLongestProfile.count()) {
    return InvalidArgument("steps are recorded for 0 to {} ms, not for {}", kLongestProfile.count(),
                           message.limit_ms());
  }
  return std::chrono::milliseconds(message.limit_ms());
}

Result<std::string> WriteProfile(const ServerProfile& profile) {
  tf::ServerProfile message;
  message.set_chrome_trace(profile.chrome_trace);
  message.set_parts(profile.parts);
  message.set_dropped(profile.dropped);
  for (const session::MemoryReport::OnDevice& on : profile.memory.devices) {
    tf::DeviceMemory& written = *message.add_device();
    written.set_device(on.device);
    written.set_in_use(on.all.in_use);
    written.set_peak(on.all.peak);
    written.set_reserved(on.all.reserved);
    written.set_variables(on.variables);
    written.set_steps(on.steps);
    if (!on.reported) continue;
    written.set_device_free(on.reported->free);
    written.set_device_total(on.reported->total);
  }
  for (const session::MemoryReport::Holder& holder : profile.memory.holders) {
    if (message.holder_size() >= kMostHolders) break;
    tf::MemoryHolder& written = *message.add_holder();
    written.set_what(holder.what);
    written.set_device(holder.device);
    written.set_bytes(holder.bytes);
  }
  return proto::Serialize(message, "ServerProfile");
}

Result<ServerProfile> ProfileServer(MasterService& master, std::chrono::milliseconds time, Clock::time_point deadline) {
  tf::ServerProfileRequest request;
  request.set_limit_ms(time.count());
  WEIR_ASSIGN(std::string bytes, proto::Serialize(request, "ServerProfileRequest"));
  WEIR_ASSIGN(const std::string answer, CallServer(master, kServerProfile, std::move(bytes), deadline));
  tf::ServerProfile message;
  WEIR_TRY(proto::ParseBinary(answer, "ServerProfile", message));
  ServerProfile profile;
  profile.chrome_trace = std::move(*message.mutable_chrome_trace());
  profile.parts = message.parts();
  profile.dropped = message.dropped();
  for (const tf::DeviceMemory& from : message.device()) {
    session::MemoryReport::OnDevice on;
    on.device = from.device();
    on.variables = from.variables();
    on.steps = from.steps();
    on.all.in_use = from.in_use();
    on.all.peak = from.peak();
    on.all.reserved = from.reserved();
    if (from.device_total() != 0) on.reported = device::ReportedMemory{from.device_free(), from.device_total(), 0};
    profile.memory.devices.push_back(std::move(on));
  }
  for (const tf::MemoryHolder& from : message.holder()) {
    profile.memory.holders.push_back({from.what(), from.device(), from.bytes()});
  }
  return profile;
}

Result<std::string> WriteEndJob(bool ends) {
  tf::EndJobResponse message;
  message.set_ends(ends);
  return proto::Serialize(message, "EndJobResponse");
}

Result<ServerView> AskServer(MasterService& master, std::chrono::milliseconds peer_limit, Clock::time_point deadline,
                             size_t padding) {
  tf::ServerReportRequest request;
  request.set_padding(std::string(padding, '.'));
  request.set_peer_limit_ms(peer_limit.count());
  WEIR_ASSIGN(std::string bytes, proto::Serialize(request, "ServerReportRequest"));
  WEIR_ASSIGN(const std::string answer, CallServer(master, kServerReport, std::move(bytes), deadline));
  tf::ServerReport message;
  WEIR_TRY(proto::ParseBinary(answer, "ServerReport", message));
  if (message.padding().size() != padding) {
    return Unimplemented("{} of {} bytes came back: the server is of an older version", message.padding().size(),
                         padding);
  }
  ServerView view;
  WEIR_ASSIGN(view.task, TaskOfDevice(message.task()));
  view.address = message.address();
  view.incarnation = message.incarnation();
  view.version = message.version();
  view.clock_us = message.clock_micros();
  view.draining = message.draining();
  const auto count = [](int64_t number) { return static_cast<size_t>(std::max<int64_t>(number, 0)); };
  view.counts = {count(message.sessions()), count(message.parts()), count(message.steps()), count(message.running())};
  view.seconds_up = message.seconds_up();
  view.devices.assign(message.device().begin(), message.device().end());
  for (const tf::PeerReport& peer : message.peer()) {
    WEIR_ASSIGN(const TaskName task, TaskOfDevice(peer.task()));
    view.peers.push_back(PeerFrom(peer, task));
  }
  return view;
}

Status TryLargeMessage(MasterService& master, Clock::time_point deadline) {
  const Status status = AskServer(master, {}, deadline, kLargeMessage).status();
  if (status.code() != Code::kDeadlineExceeded && status.code() != Code::kUnavailable) return status;
  return status.Prepend(fmt::format("small messages cross, one of {} KiB does not: check the MTU of every link on the "
                                    "way: ", kLargeMessage >> 10));
}

Result<bool> TellJobEnd(MasterService& master, Clock::time_point deadline) {
  WEIR_ASSIGN(const std::string answer, CallServer(master, kEndJob, {}, deadline));
  tf::EndJobResponse message;
  WEIR_TRY(proto::ParseBinary(answer, "EndJobResponse", message));
  return message.ends();
}

}  // namespace weir::cluster
