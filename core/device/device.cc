#include "core/device/device.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "core/base/errors.h"
#include "core/base/timed.h"
#include "core/device/arena.h"
#include "core/device/cost_faults.h"
#include "core/device/error_record.h"
#include "core/device/health.h"
#include "core/device/open_devices.h"

namespace weir::device {
namespace {

weir_str View(std::string_view text) { return {text.data(), text.size()}; }

weir_opt Option(std::string_view key, uint32_t type, uint64_t value) {
  weir_opt option{};
  option.key = View(key);
  option.type = type;
  option.value.i = static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  return option;
}

template <class Visit>
void ForEachFigure(weir_profile& profile, Visit visit) {
  for (double& f : profile.peak_flops_per_ns) visit(f);
  visit(profile.bandwidth_bytes_per_ns);
  visit(profile.cache_bytes);
  visit(profile.cache_bandwidth_bytes_per_ns);
  visit(profile.launch_ns);
  visit(profile.issue_gap_ns);
  visit(profile.sync_wake_ns);
  visit(profile.half_saturation_flops);
  visit(profile.half_saturation_bytes);
  for (double& f : profile.compute_efficiency) visit(f);
  for (double& f : profile.memory_efficiency) visit(f);
}

// "GPU:0", as in the configuration.
std::string Short(const Device& device) {
  const DeviceName& name = device.info().name;
  return fmt::format("{}:{}", name.type.value_or(device.info().kind), name.id.value_or(0));
}

std::string MendedBy(std::string_view table, const std::string& name) {
  return fmt::format(" ([{}.\"{}\"] in the configuration replaces its figures)", table, name);
}

weir_buf MemoryOf(const Tensor& tensor) {
  weir_buf memory = tensor.buffer()->memory();
  memory.offset += tensor.offset();
  memory.bytes = tensor.bytes();
  if (memory.host != nullptr) memory.host = static_cast<std::byte*>(memory.host) + tensor.offset();
  return memory;
}

}  // namespace

// An open device; closed with its last owner.
class OpenDevice final : public SlabSource {
 public:
  OpenDevice(const weir_device_api* api, weir_device* handle, const std::string& name,
             std::shared_ptr<const void> plugin)
      : api_(api), handle_(handle), health_(name, api, handle), plugin_(std::move(plugin)) {}
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  ~OpenDevice() override {
    if (listed_) RemoveOpenDevice(handle_);
    if (WEIR_HAS(api_, close)) api_->close(handle_);
  }
  /// Makes the plugin's tables known to kernel sets.
  void List(const DeviceTables& tables) {
    if (!listed_.exchange(true)) AddOpenDevice(handle_, tables);
  }

  weir_device* handle() const { return handle_; }
  Health& health() { return health_; }

  Result<weir_buf> AllocateSlab(uint64_t bytes) override {
    if (!WEIR_HAS(api_, alloc) || !WEIR_HAS(api_, free))
      return Unimplemented("{} has no memory of its own", health_.name());
    weir_buf slab{};
    slab.struct_size = sizeof(slab);
    uint32_t flags = 0;
    const Status allocated = CallPlugin("alloc of device/1", [&](weir_error* error) {
      const int32_t code = api_->alloc(handle_, bytes, WEIR_SPACE_DEVICE, &slab, error);
      flags = error->flags;
      return code;
    });
    WEIR_TRY(health_.Judge(allocated, flags));
    if (slab.bytes < bytes) {
      const uint64_t got = slab.bytes;
      api_->free(handle_, &slab);
      return Internal("the plugin allocated {} bytes of {} requested", got, bytes);
    }
    return slab;
  }
  void FreeSlab(const weir_buf& slab) override { api_->free(handle_, &slab); }
  uint64_t LargestSlab() override {
    const std::optional<ReportedMemory> reported = AskMemory();
    if (!reported) return 0;
    return reported->largest != 0 ? reported->largest : reported->free;
  }

  std::optional<ReportedMemory> AskMemory() const {
    if (!WEIR_HAS(api_, mem_info)) return std::nullopt;
    ReportedMemory memory;
    const Status asked = CallPlugin("mem_info of device/1", [&](weir_error*) {
      return api_->mem_info(handle_, WEIR_SPACE_DEVICE, &memory.free, &memory.total, &memory.largest);
    });
    if (!asked.ok()) return std::nullopt;
    return memory;
  }

 private:
  const weir_device_api* api_;
  weir_device* handle_;
  Health health_;
  std::shared_ptr<const void> plugin_;
  std::atomic<bool> listed_{false};
};

// Opened for the first logical device that uses it, closed after the last.
class SharedHardware {
 public:
  template <class Open>
  Result<std::shared_ptr<OpenDevice>> Get(Open open) {
    const std::lock_guard lock(mutex_);
    if (std::shared_ptr<OpenDevice> there = open_.lock()) return there;
    WEIR_TRY(hung_);
    Result<std::shared_ptr<OpenDevice>> made = open();
    if (made.ok()) open_ = *made;
    if (made.status().code() == Code::kDeadlineExceeded) hung_ = made.status();
    return made;
  }

 private:
  std::mutex mutex_;  // serializes opening, protects both
  std::weak_ptr<OpenDevice> open_;
  Status hung_;
};

std::shared_ptr<SharedHardware> MakeSharedHardware() { return std::make_shared<SharedHardware>(); }

// The mutable state. Also the allocator, which opens the device on first use.
class Device::State final : public Allocator {
 public:
  State(const Device& device, const weir_device_api* api, const weir_cost_api* cost, MemoryOptions memory,
        std::shared_ptr<const void> plugin, DeviceExtras extras)
      : device_(device),
        api_(api),
        cost_(cost),
        memory_(std::move(memory)),
        plugin_(std::move(plugin)),
        extras_(std::move(extras)) {}

  const weir_device_api* api() const { return api_; }

  Result<weir_device*> Open() {
    std::call_once(opened_, [this] { open_status_ = OpenOnce(); });
    if (!open_status_.ok()) return open_status_;
    return open_->handle();
  }

  Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override {
    WEIR_TRY(Open().status());
    Result<std::shared_ptr<Buffer>> made = arena_->Allocate(bytes);
    const uint64_t limit = Limit();
    const uint64_t largest = device_.info_.largest_allocation;
    if ((limit != 0 && bytes > limit) || (largest != 0 && bytes > largest)) return made;
    for (int i = 0; i < kMostTries && !made.ok() && AskKeepers(); ++i) made = arena_->Allocate(bytes);
    return made;
  }

  void AddKeeper(std::weak_ptr<MemoryKeeper> keeper) {
    const std::lock_guard lock(keepers_mutex_);
    std::erase_if(keepers_, [](const std::weak_ptr<MemoryKeeper>& other) { return other.expired(); });
    keepers_.push_back(std::move(keeper));
  }

  void SetMeasuredCosts(CostFigures measured) { measured_ = std::move(measured); }

  Streams* streams() const { return streams_.get(); }
  bool capped() const { return memory_.limit_bytes != 0; }
  Health* health() const { return health_.load(std::memory_order_acquire); }

  const weir_profile* Profile() {
    std::call_once(profiled_, [this] { ReadProfile(); });
    return has_profile_ ? &profile_ : nullptr;
  }

  const std::string& ProfileFault() {
    Profile();
    return profile_fault_;
  }

  Result<weir_link> Link(uint32_t space, Device* peer, uint32_t peer_space) {
    if (!WEIR_HAS(cost_, link)) return Unimplemented("{}: its plugin declares no links", device_.name_);
    WEIR_ASSIGN(weir_device * handle, Open());
    weir_device* other = nullptr;
    if (peer != nullptr) {
      WEIR_ASSIGN(other, peer->Open());
    }
    weir_link link{};
    link.struct_size = sizeof(link);
    link.latency_ns = link.bandwidth_pageable_bytes_per_ns = link.bandwidth_pinned_bytes_per_ns =
        std::numeric_limits<double>::quiet_NaN();
    WEIR_TRY(CallPlugin("link of cost/1", [&](weir_error* error) {
      return cost_->link(handle, space, other, peer_space, &link, error);
    }));
    if (const std::vector<std::string> faults = ClearFaults(link); !faults.empty()) {
      const std::string here = space == WEIR_SPACE_DEVICE ? Short(device_) : "CPU:0";
      const std::string there = peer != nullptr && peer != &device_ ? Short(*peer)
                                : peer_space == WEIR_SPACE_DEVICE   ? Short(device_)
                                                                    : "CPU:0";
      return Internal("link of cost/1: {}{}", ListFaults(faults), MendedBy("link", here + "->" + there));
    }
    return link;
  }

  MemoryUse Use() const {
    const std::lock_guard lock(mutex_);
    return arena_ ? arena_->use() : MemoryUse();
  }

  std::optional<ReportedMemory> Reported() const {
    std::shared_ptr<OpenDevice> open;
    {
      const std::lock_guard lock(mutex_);
      open = open_;
    }
    return open ? open->AskMemory() : std::nullopt;
  }

  std::shared_ptr<Arena> arena() const {
    const std::lock_guard lock(mutex_);
    return arena_;
  }

 private:
  static constexpr int kMostTries = 4;  // other threads may take the reclaimed memory first

  uint64_t Limit() const { return memory_.limit_bytes != 0 ? memory_.limit_bytes : device_.info_.memory_bytes; }

  bool AskKeepers() {
    std::vector<std::weak_ptr<MemoryKeeper>> keepers;
    {
      const std::lock_guard lock(keepers_mutex_);
      keepers = keepers_;
    }
    bool any = false;
    for (const std::weak_ptr<MemoryKeeper>& one : keepers) {
      const std::shared_ptr<MemoryKeeper> keeper = one.lock();
      if (keeper && keeper->GiveBack()) any = true;
    }
    return any;
  }

  Status OpenOnce() {
    const DeviceInfo& info = device_.info_;
    WEIR_ASSIGN(std::shared_ptr<OpenDevice> open,
                extras_.hardware ? extras_.hardware->Get([this] { return OpenHardware(); }) : OpenHardware());
    ArenaOptions arena;
    arena.device = device_.name_;
    arena.limit_bytes = Limit();
    arena.limit_source = memory_.limit_source;
    arena.initial_bytes = memory_.initial_bytes;
    arena.grow = memory_.allow_growth || (info.flags & (WEIR_DEVICE_UNIFIED_MEMORY | WEIR_DEVICE_MUST_GROW)) != 0;
    arena.pooled = !info.self_pool() && (info.flags & WEIR_DEVICE_NO_OFFSET) == 0;
    if (!info.unified_memory()) arena.alignment = info.alignment;
    arena.largest_bytes = info.largest_allocation;
    open->List({api_, cost_, device_.stream_apis_, arena.alignment});
    const std::lock_guard lock(mutex_);
    arena_ = Arena::Make(open, std::move(arena));
    open_ = std::move(open);
    if (device_.has_streams()) {
      const bool ordered = (info.flags & WEIR_DEVICE_ORDERED_ALLOC) != 0;
      const std::shared_ptr<Health> health(open_, &open_->health());
      streams_ = Streams::Make(health, api_, device_.stream_apis_, open_->handle(), ordered);
    }
    health_ = &open_->health();
    return {};
  }

  Result<std::shared_ptr<OpenDevice>> OpenHardware() {
    const DeviceInfo& info = device_.info_;
    if (!WEIR_HAS(api_, open)) return Unavailable("{}: its plugin cannot open devices", device_.name_);
    std::vector<weir_opt> options = extras_.options;
    if (info.self_pool()) {
      options.push_back(Option("mem.limit_bytes", WEIR_VALUE_INT, memory_.limit_bytes));
      options.push_back(Option("mem.initial_bytes", WEIR_VALUE_INT, memory_.initial_bytes));
      options.push_back(Option("mem.allow_growth", WEIR_VALUE_BOOL, memory_.allow_growth ? 1 : 0));
    }
    // The call may outlive this device. A device that it opens too late is closed again.
    const auto open = [api = api_, uid = info.uid, by = info.plugin, name = device_.name_, options = std::move(options),
                       keep = extras_.keep, plugin = plugin_] { return CallOpen(api, uid, by, name, options, plugin); };
    if (extras_.open_limit.count() == 0) return open();
    auto opened = RunWithin<Result<std::shared_ptr<OpenDevice>>>(extras_.open_limit, open);
    if (opened) return std::move(*opened);
    return DeadlineExceeded("cannot open {} ({}): open of device/1 did not end within {} ms (plugins.open_limit_ms)",
                            device_.name_, info.plugin, extras_.open_limit.count());
  }

  static Result<std::shared_ptr<OpenDevice>> CallOpen(const weir_device_api* api, const std::string& uid,
                                                      const std::string& by, const std::string& name,
                                                      const std::vector<weir_opt>& options,
                                                      const std::shared_ptr<const void>& plugin) {
    weir_device* handle = nullptr;
    const Status opened = CallPlugin("open of device/1", [&](weir_error* error) {
      return api->open(View(uid), options.data(), options.size(), &handle, error);
    });
    if (!opened.ok()) return Unavailable("cannot open {} ({}): {}", name, by, opened.message());
    if (handle == nullptr) return Unavailable("cannot open {} ({}): the plugin gave no device", name, by);
    return std::make_shared<OpenDevice>(api, handle, name, plugin);
  }

  void ReadProfile() {
    profile_ = {};
    profile_.struct_size = sizeof(profile_);
    ForEachFigure(profile_, [](double& f) { f = std::numeric_limits<double>::quiet_NaN(); });
    if (const Result<weir_device*> handle = WEIR_HAS(cost_, profile) ? Open() : Unimplemented("no profile");
        handle.ok()) {
      const Status status =
          CallPlugin("profile of cost/1", [&](weir_error* error) { return cost_->profile(*handle, &profile_, error); });
      const std::vector<std::string> faults = ClearFaults(profile_);
      has_profile_ = status.ok();
      if (!status.ok()) {
        profile_fault_ = status.ToString();
      } else if (!faults.empty()) {
        profile_fault_ = fmt::format("its cost profile: {}{}", ListFaults(faults), MendedBy("device", Short(device_)));
      }
    }
    Apply(measured_, WEIR_PROVENANCE_CALIBRATED);
    Apply(extras_.cost, profile_.provenance);
  }

  void Apply(const CostFigures& figures, uint32_t provenance) {
    if (figures.empty()) return;
    if (!has_profile_) {
      ForEachFigure(profile_, [](double& f) { f = std::numeric_limits<double>::quiet_NaN(); });
      profile_.provenance = WEIR_PROVENANCE_DATASHEET;
      has_profile_ = true;
    }
    profile_.provenance = std::max(profile_.provenance, provenance);
    for (const auto& [dtype, peak] : figures.peak_flops_per_ns) {
      if (dtype >= 0 && static_cast<size_t>(dtype) < std::size(profile_.peak_flops_per_ns))
        profile_.peak_flops_per_ns[dtype] = peak;
    }
    if (figures.bandwidth_bytes_per_ns > 0) profile_.bandwidth_bytes_per_ns = figures.bandwidth_bytes_per_ns;
    if (figures.launch_ns > 0) profile_.launch_ns = figures.launch_ns;
    if (figures.cache_bandwidth_bytes_per_ns > 0) {
      profile_.cache_bandwidth_bytes_per_ns = figures.cache_bandwidth_bytes_per_ns;
    }
  }

  const Device& device_;
  const weir_device_api* api_;
  const weir_cost_api* cost_;
  const MemoryOptions memory_;
  std::shared_ptr<const void> plugin_;
  const DeviceExtras extras_;
  std::once_flag opened_;
  std::once_flag profiled_;
  Status open_status_;
  mutable std::mutex mutex_;  // protects open_ and arena_ while they are set; both are constant after Open
  std::shared_ptr<OpenDevice> open_;
  std::atomic<Health*> health_{nullptr};  // of open_
  std::shared_ptr<Arena> arena_;
  std::shared_ptr<Streams> streams_;  // constant after Open
  std::mutex keepers_mutex_;          // protects keepers_
  std::vector<std::weak_ptr<MemoryKeeper>> keepers_;
  CostFigures measured_;
  weir_profile profile_{};
  bool has_profile_ = false;
  std::string profile_fault_;
};

Device::Device(DeviceInfo info, const weir_device_api* api, const weir_cost_api* cost, MemoryOptions memory,
               std::shared_ptr<const void> plugin, DeviceExtras extras)
    : info_(std::move(info)),
      name_(info_.name.ToString()),
      state_(std::make_unique<State>(*this, api, cost, std::move(memory), std::move(plugin), std::move(extras))) {}

Device::~Device() = default;

Result<weir_device*> Device::Open() { return state_->Open(); }
Result<Streams*> Device::streams() {
  WEIR_TRY(Open().status());
  return state_->streams();
}
Allocator& Device::allocator() { return *state_; }
void Device::AddKeeper(std::weak_ptr<MemoryKeeper> keeper) { state_->AddKeeper(std::move(keeper)); }
void Device::SetMeasuredCosts(CostFigures measured) { state_->SetMeasuredCosts(std::move(measured)); }
const weir_profile* Device::profile() { return state_->Profile(); }
const std::string& Device::profile_fault() { return state_->ProfileFault(); }
Result<weir_link> Device::Link(uint32_t space, Device* peer, uint32_t peer_space) {
  return state_->Link(space, peer, peer_space);
}
bool Device::capped() const { return state_->capped(); }

MemoryUse Device::memory_use() const { return state_->Use(); }
std::optional<ReportedMemory> Device::reported_memory() const { return state_->Reported(); }
uint64_t Device::Trim() {
  const std::shared_ptr<Arena> arena = state_->arena();
  return arena ? arena->Trim() : 0;
}
Status Device::health() const {
  const Health* const health = state_->health();
  return health != nullptr ? health->Get() : Status();
}
bool Device::reset_needed() const {
  const Health* const health = state_->health();
  return health != nullptr && health->ResetNeeded();
}
Status Device::Judge(const Status& status, uint32_t error_flags) const {
  Health* const health = state_->health();
  return health != nullptr ? health->Judge(status, error_flags) : status;
}
bool Device::opened() const { return state_->arena() != nullptr; }

Status Device::Copy(const weir_buf& to, const weir_buf& from, uint64_t bytes) {
  if (bytes == 0) return {};
  if (bytes > to.bytes || bytes > from.bytes) {
    return InvalidArgument("{}: a copy of {} bytes from a range of {} into one of {}", name_, bytes, from.bytes,
                           to.bytes);
  }
  if (to.host != nullptr && from.host != nullptr) {
    std::memmove(to.host, from.host, bytes);
    return {};
  }
  WEIR_ASSIGN(weir_device * handle, Open());
  if (!WEIR_HAS(state_->api(), copy)) return Unimplemented("{}: its plugin cannot copy memory", name_);
  uint32_t flags = 0;
  const Status copied = CallPlugin("copy of device/1", [&](weir_error* error) {
    const int32_t code = state_->api()->copy(handle, nullptr, &to, &from, bytes, error);
    flags = error->flags;
    return code;
  });
  return Judge(copied.Prepend(name_ + ": "), flags);
}

Result<Tensor> Device::ToHost(const Tensor& tensor) {
  if (tensor.on_host()) return tensor;
  WEIR_ASSIGN(Tensor host, Tensor::Make(tensor.dtype(), tensor.shape()));
  WEIR_TRY(Copy(MemoryOf(host), MemoryOf(tensor), tensor.bytes()));
  return host;
}

Result<Tensor> Device::FromHost(const Tensor& tensor) {
  if (host_memory()) return tensor;
  if (!HasFixedSize(tensor.dtype())) {
    return InvalidArgument("a tensor of type {} cannot be copied to {}: it exists in host memory only",
                           Name(tensor.dtype()), name_);
  }
  WEIR_ASSIGN(Tensor there, Tensor::Make(tensor.dtype(), tensor.shape(), allocator()));
  if (tensor.elements() != 0) WEIR_TRY(Copy(MemoryOf(there), MemoryOf(tensor), tensor.bytes()));
  return there;
}

Device* DeviceSet::Find(std::string_view full_name) const {
  for (const auto& device : devices_) {
    if (device->name() == full_name) return device.get();
  }
  return nullptr;
}

std::vector<Device*> DeviceSet::Matching(const DeviceName& spec) const {
  std::vector<Device*> matching;
  for (const auto& device : devices_) {
    if (Matches(spec, device->info().name)) matching.push_back(device.get());
  }
  return matching;
}

}  // namespace weir::device
