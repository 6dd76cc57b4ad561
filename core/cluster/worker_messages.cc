#include "core/cluster/worker_messages.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/proto/parse.h"
#include "weir/proto/wire.pb.h"

namespace weir::cluster {
namespace {

constexpr size_t kMostErrorBytes = 32u << 10;
constexpr uint64_t kMostAlignment = uint64_t{1} << 21;
constexpr uint64_t kMostMemory = uint64_t{1} << 50;  // of one device

void ToWire(const Status& status, wire::Error& to) {
  to.set_code(static_cast<int>(status.code()));
  to.set_text(status.message().substr(0, kMostErrorBytes));
  to.set_node(status.node().substr(0, kMostErrorBytes));
  to.set_where(status.where().substr(0, kMostErrorBytes));
}

Status FromWire(const wire::Error& from) {
  if (from.code() == 0) return Status();
  const bool known = from.code() > 0 && from.code() <= static_cast<int>(Code::kUnauthenticated);
  const Status status(known ? static_cast<Code>(from.code()) : Code::kUnknown, from.text());
  return from.node().empty() ? status : status.WithNode(from.node(), from.where());
}

template <class Heads>
void HeadsToWire(const std::vector<TensorHead>& heads, Heads& to) {
  for (const TensorHead& head : heads) {
    wire::TensorHead& one = *to.Add();
    one.set_dtype(static_cast<int>(head.dtype));
    for (const int64_t dim : head.shape.dims()) one.add_dim(dim);
  }
}

template <class Heads>
Status HeadsFromWire(const Heads& from, std::vector<TensorHead>& to) {
  for (const wire::TensorHead& one : from) {
    const auto dtype = static_cast<DType>(one.dtype());
    if (one.dtype() <= 0 || !IsKnown(dtype) || IsRef(dtype)) {
      return InvalidArgument("tensor {} has the type {}, which no value has", to.size(), one.dtype());
    }
    WEIR_ASSIGN(Shape shape, Shape::Make(std::span(one.dim().data(), static_cast<size_t>(one.dim_size()))));
    to.push_back({dtype, std::move(shape)});
  }
  return Status();
}

/// The figures of a profile in a fixed order.
template <class Profile, class Visit>
void VisitFigures(Profile& profile, Visit&& visit) {
  for (auto& figure : profile.peak_flops_per_ns) visit(figure);
  for (auto* figure : {&profile.bandwidth_bytes_per_ns, &profile.cache_bytes, &profile.cache_bandwidth_bytes_per_ns,
                       &profile.launch_ns, &profile.issue_gap_ns, &profile.sync_wake_ns, &profile.half_saturation_flops,
                       &profile.half_saturation_bytes}) {
    visit(*figure);
  }
  for (auto& figure : profile.compute_efficiency) visit(figure);
  for (auto& figure : profile.memory_efficiency) visit(figure);
}

/// NaN, which is unknown, for a figure that no device has.
double Figure(double given) {
  return std::isfinite(given) && given > 0 ? given : std::numeric_limits<double>::quiet_NaN();
}

void LinkToWire(const std::optional<weir_link>& link, wire::Device& to) {
  if (!link) return;
  wire::Link& one = *to.mutable_to_host();
  one.set_latency_ns(link->latency_ns);
  one.set_pageable_bytes_per_ns(link->bandwidth_pageable_bytes_per_ns);
  one.set_pinned_bytes_per_ns(link->bandwidth_pinned_bytes_per_ns);
}

std::optional<weir_link> LinkFromWire(const wire::Device& from) {
  if (!from.has_to_host()) return std::nullopt;
  weir_link link{};
  link.struct_size = sizeof link;
  link.latency_ns = Figure(from.to_host().latency_ns());
  link.bandwidth_pageable_bytes_per_ns = Figure(from.to_host().pageable_bytes_per_ns());
  link.bandwidth_pinned_bytes_per_ns = Figure(from.to_host().pinned_bytes_per_ns());
  return link;
}

void DeviceToWire(const device::DeviceDescription& device, wire::Device& to) {
  const device::DeviceInfo& info = device.info;
  to.set_name(info.name.ToString());
  to.set_uid(info.uid);
  to.set_class_id(info.class_id);
  to.set_kind(info.kind);
  to.set_platform(info.platform);
  to.set_display_name(info.display_name);
  to.set_driver_version(info.driver_version);
  to.set_plugin(info.plugin);
  to.set_flags(info.flags);
  to.set_numa_node(info.numa_node);
  to.set_memory_bytes(info.memory_bytes);
  to.set_alignment(info.alignment);
  to.set_largest_allocation(info.largest_allocation);
  LinkToWire(device.to_host, to);
  if (!device.profile) return;
  wire::Profile& profile = *to.mutable_profile();
  profile.set_provenance(device.profile->provenance);
  VisitFigures(*device.profile, [&](const double& figure) { profile.add_figure(figure); });
  profile.set_queues(device.profile->queues);
  profile.set_copy_engines(device.profile->copy_engines);
}

Result<device::DeviceDescription> DeviceFromWire(const wire::Device& from) {
  device::DeviceDescription device;
  device::DeviceInfo& info = device.info;
  WEIR_ASSIGN(info.name, device::ParseDeviceName(from.name()));
  if (!info.name.full() || *info.name.type != from.kind()) {
    return InvalidArgument("the device '{}' of kind '{}' has no full name", from.name(), from.kind());
  }
  info.uid = LegibleLine(from.uid());
  info.class_id = LegibleLine(from.class_id());
  info.kind = from.kind();
  info.platform = LegibleLine(from.platform());
  info.display_name = LegibleLine(from.display_name());
  info.driver_version = LegibleLine(from.driver_version());
  info.plugin = LegibleLine(from.plugin());
  info.flags = from.flags();
  info.numa_node = from.numa_node();
  info.memory_bytes = from.memory_bytes();
  info.alignment = from.alignment();
  info.largest_allocation = from.largest_allocation();
  if (!std::has_single_bit(info.alignment) || info.alignment > kMostAlignment) {
    return InvalidArgument("the device '{}' has the alignment {}", from.name(), info.alignment);
  }
  if (info.memory_bytes > kMostMemory) {
    return InvalidArgument("the device '{}' has {} bytes of memory, which no device has", from.name(),
                           info.memory_bytes);
  }
  device.to_host = LinkFromWire(from);
  if (!from.has_profile()) return device;
  weir_profile& profile = device.profile.emplace();
  profile.struct_size = sizeof profile;
  profile.provenance = from.profile().provenance();
  int next = 0;
  VisitFigures(profile, [&](double& figure) {
    figure = Figure(next < from.profile().figure_size() ? from.profile().figure(next) : 0);
    ++next;
  });
  profile.queues = from.profile().queues();
  profile.copy_engines = from.profile().copy_engines();
  return device;
}

void SpecToWire(const WorkerSessionSpec& spec, wire::SessionSpec& to) {
  to.set_incarnation(spec.incarnation);
  to.set_isolate_state(spec.isolate_state);
  to.set_allow_soft_placement(spec.allow_soft_placement);
  to.set_constant_folding(spec.constant_folding);
  to.set_common_subexpressions(spec.common_subexpressions);
  to.set_fusion(spec.fusion);
  to.set_deterministic(spec.deterministic);
  to.set_inter_op(spec.inter_op);
  to.set_intra_op(spec.intra_op);
  to.set_known_as_job(spec.known_as.job);
  to.set_known_as_task(spec.known_as.index);
}

WorkerSessionSpec SpecFromWire(const wire::SessionSpec& from) {
  WorkerSessionSpec spec;
  spec.incarnation = from.incarnation();
  spec.isolate_state = from.isolate_state();
  spec.allow_soft_placement = from.allow_soft_placement();
  spec.constant_folding = from.constant_folding();
  spec.common_subexpressions = from.common_subexpressions();
  spec.fusion = from.fusion();
  spec.deterministic = from.deterministic();
  spec.inter_op = from.inter_op();
  spec.intra_op = from.intra_op();
  spec.known_as = {from.known_as_job(), from.known_as_task()};
  return spec;
}

void KernelToWire(const kernel::KernelDescription& kernel, wire::Kernel& to) {
  to.set_op(kernel.op);
  to.set_platform(kernel.platform);
  to.set_plugin(kernel.plugin);
  to.set_flags(kernel.flags);
  to.set_cost_class(kernel.cost_class);
  to.set_priority(kernel.priority);
  to.set_host_inputs(kernel.host_inputs);
  to.set_host_outputs(kernel.host_outputs);
  to.set_variable_reads(kernel.variable_reads);
  to.set_variable_writes(kernel.variable_writes);
  to.set_flops_per_element(kernel.flops_per_element);
  for (const auto& [attr, dtypes] : kernel.types) {
    wire::TypeConstraint& one = *to.add_type();
    one.set_attr(attr);
    one.set_dtypes(dtypes);
  }
}

kernel::KernelDescription KernelFromWire(const wire::Kernel& from) {
  kernel::KernelDescription kernel;
  kernel.op = LegibleLine(from.op());
  kernel.platform = LegibleLine(from.platform());
  kernel.plugin = LegibleLine(from.plugin());
  kernel.flags = from.flags();
  kernel.cost_class = from.cost_class();
  kernel.priority = from.priority();
  kernel.host_inputs = from.host_inputs();
  kernel.host_outputs = from.host_outputs();
  kernel.variable_reads = from.variable_reads();
  kernel.variable_writes = from.variable_writes();
  kernel.flops_per_element = from.flops_per_element() == 0 ? 0 : Figure(from.flops_per_element());
  for (const wire::TypeConstraint& one : from.type()) kernel.types.emplace_back(LegibleLine(one.attr()), one.dtypes());
  return kernel;
}

bool IsMethod(uint32_t number) {
  return (number >= static_cast<uint32_t>(Method::kGetStatus) &&
          number <= static_cast<uint32_t>(Method::kKeepSession)) ||
         number == static_cast<uint32_t>(Method::kTakeTrace) || number == static_cast<uint32_t>(Method::kMaster);
}

}  // namespace

std::string NameOf(Method method) {
  switch (method) {
    case Method::kGetStatus:
      return "GetStatus";
    case Method::kCreateSession:
      return "CreateSession";
    case Method::kDeleteSession:
      return "DeleteSession";
    case Method::kRegisterPart:
      return "RegisterPart";
    case Method::kDeregisterPart:
      return "DeregisterPart";
    case Method::kRunStep:
      return "RunStep";
    case Method::kRecvTensor:
      return "RecvTensor";
    case Method::kCancelStep:
      return "CancelStep";
    case Method::kCleanupStep:
      return "CleanupStep";
    case Method::kResetContainers:
      return "ResetContainers";
    case Method::kGetTransports:
      return "GetTransports";
    case Method::kSendTensor:
      return "SendTensor";
    case Method::kHoldSession:
      return "HoldSession";
    case Method::kKeepSession:
      return "KeepSession";
    case Method::kMeasure:
      return "Measure";
    case Method::kGetKernels:
      return "GetKernels";
    case Method::kTakeTrace:
      return "TakeTrace";
    case Method::kMaster:
      return "a call of the master";
  }
  return fmt::format("method {}", static_cast<uint32_t>(method));
}

Result<std::string> Encode(const WireRequest& request) {
  wire::Request to;
  to.set_session(request.session);
  to.set_part(request.part);
  to.set_step(request.step);
  to.set_request(request.request);
  to.set_alone(request.alone);
  to.set_trace(request.trace);
  to.set_forget(request.forget);
  to.set_link_job(request.link.job);
  to.set_link_task(request.link.index);
  to.set_key(request.key);
  if (request.method == Method::kCreateSession) SpecToWire(request.spec, *to.mutable_spec());
  if (!request.why.ok()) ToWire(request.why, *to.mutable_why());
  for (const std::string& container : request.containers) to.add_container(container);
  HeadsToWire(request.tensors, *to.mutable_tensor());
  to.set_dead(request.dead);
  to.set_method(request.master_method);
  return proto::Serialize(to, "a request");
}

Result<std::string> Encode(const WireReply& reply) {
  wire::Reply to;
  if (!reply.status.ok()) ToWire(reply.status, *to.mutable_error());
  to.set_incarnation(reply.worker.incarnation);
  to.set_draining(reply.worker.draining);
  to.set_clock_us(reply.worker.clock_us);
  for (const device::DeviceDescription& device : reply.worker.devices) DeviceToWire(device, *to.add_device());
  to.set_part(reply.part.id);
  for (const int feed : reply.part.feeds) to.add_feed(feed);
  for (const int fetch : reply.part.fetches) to.add_fetch(fetch);
  HeadsToWire(reply.tensors, *to.mutable_tensor());
  to.set_dead(reply.dead);
  to.set_forgotten(reply.forgotten);
  for (const kernel::KernelDescription& kernel : reply.kernels) KernelToWire(kernel, *to.add_kernel());
  for (const Alternate& alternate : reply.alternates) {
    wire::Alternate& one = *to.add_alternate();
    one.set_scheme(alternate.scheme);
    one.set_address(alternate.address);
  }
  return proto::Serialize(to, "a reply");
}

Result<WireRequest> DecodeRequest(uint32_t method, std::string_view bytes) {
  if (!IsMethod(method)) return Unimplemented("method {} is unknown to this version", method);
  wire::Request from;
  WEIR_TRY(proto::ParseBinary(bytes, "a request", from));
  WireRequest request;
  request.method = static_cast<Method>(method);
  request.session = from.session();
  request.part = from.part();
  request.step = from.step();
  request.request = from.request();
  request.alone = from.alone();
  request.trace = from.trace();
  request.forget = from.forget();
  request.link = {from.link_job(), from.link_task()};
  request.key = from.key();
  request.spec = SpecFromWire(from.spec());
  request.spec.handle = request.session;
  request.why = FromWire(from.why());
  if (request.method == Method::kCancelStep && request.why.ok()) {
    return InvalidArgument("a step was to be cancelled without a reason");
  }
  request.containers.assign(from.container().begin(), from.container().end());
  WEIR_TRY(HeadsFromWire(from.tensor(), request.tensors));
  request.dead = from.dead();
  request.master_method = from.method();
  return request;
}

Result<WireReply> DecodeReply(std::string_view bytes) {
  wire::Reply from;
  WEIR_TRY(proto::ParseBinary(bytes, "a reply", from));
  WireReply reply;
  reply.status = FromWire(from.error());
  reply.worker.incarnation = from.incarnation();
  reply.worker.draining = from.draining();
  reply.worker.clock_us = from.clock_us();
  if (from.device_size() > kMostDevices) {
    return InvalidArgument("a process has {} devices, at most {} are taken", from.device_size(), kMostDevices);
  }
  for (const wire::Device& device : from.device()) {
    WEIR_ASSIGN(device::DeviceDescription made, DeviceFromWire(device));
    reply.worker.devices.push_back(std::move(made));
  }
  reply.part.id = from.part();
  reply.part.feeds.assign(from.feed().begin(), from.feed().end());
  reply.part.fetches.assign(from.fetch().begin(), from.fetch().end());
  WEIR_TRY(HeadsFromWire(from.tensor(), reply.tensors));
  reply.dead = from.dead();
  reply.forgotten = from.forgotten();
  for (const wire::Kernel& kernel : from.kernel()) reply.kernels.push_back(KernelFromWire(kernel));
  for (const wire::Alternate& one : from.alternate()) {
    reply.alternates.push_back({LegibleLine(one.scheme()), LegibleLine(one.address())});
  }
  return reply;
}

}  // namespace weir::cluster
