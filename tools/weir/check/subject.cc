#include "tools/weir/check/subject.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "core/base/errors.h"
#include "core/kernel/host.h"
#include "core/plugin/compatible.h"
#include "core/plugin/missing.h"
#include "core/plugin/module.h"
#include "core/plugin/scan.h"

namespace weir::check {
namespace {

using kernel::CallPlugin;
using kernel::Text;
using kernel::ViewOf;

std::atomic<uint64_t> host_calls{0};

// Counts the call and forwards it to the core's function.
template <auto kField>
struct Counted;
template <class R, class... Args, R (*weir_host::*kField)(Args...)>
struct Counted<kField> {
  static R Call(Args... args) {
    host_calls.fetch_add(1, std::memory_order_relaxed);
    return (kernel::HostTable().*kField)(args...);
  }
};

template <auto kField>
void Watch(weir_host& host) {
  host.*kField = &Counted<kField>::Call;
}

void SwallowLog(int32_t, const char*, int32_t, weir_str) { host_calls.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

const weir_host& WatchingHost() {
  static const weir_host table = [] {
    weir_host host = kernel::HostTable();
    host.log = SwallowLog;
    Watch<&weir_host::enabled>(host);
    Watch<&weir_host::schedule>(host);
    Watch<&weir_host::parallel_for>(host);
    Watch<&weir_host::host_alloc>(host);
    Watch<&weir_host::host_free>(host);
    Watch<&weir_host::node_name>(host);
    Watch<&weir_host::node_op>(host);
    Watch<&weir_host::attr>(host);
    Watch<&weir_host::constant_input>(host);
    Watch<&weir_host::get_interface>(host);
    Watch<&weir_host::node_resource>(host);
    return host;
  }();
  return table;
}

uint64_t HostCalls() { return host_calls.load(std::memory_order_relaxed); }

Result<Subject> Subject::Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return FailedPrecondition("{}", plugin::WithAllMissing(dlerror(), path));
  Subject subject;
  subject.query_ = reinterpret_cast<weir_plugin_query_fn>(dlsym(library, WEIR_PLUGIN_QUERY_SYMBOL));
  if (subject.query_ == nullptr) return FailedPrecondition("it does not export {}", WEIR_PLUGIN_QUERY_SYMBOL);
  subject.table_ = subject.query_(WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
  if (!WEIR_HAS(subject.table_, get_interface))
    return FailedPrecondition("{} returns no table", WEIR_PLUGIN_QUERY_SYMBOL);
  return subject;
}

Result<Subject> Subject::Start(const Target& target, const std::string& path) {
  WEIR_ASSIGN(Subject subject, Load(path));
  WEIR_ASSIGN(subject.options_, plugin::PluginOptions::Resolve(*subject.table_, *target.config));
  static std::set<const weir_plugin*> started;  // each stage has a separate process with one thread
  if (!started.contains(subject.table_)) {
    WEIR_TRY(subject.Init());
    started.insert(subject.table_);
  }
  return subject;
}

std::vector<weir_opt> Subject::options() const {
  return options_ == nullptr ? plugin::DefaultOptions(*table_) : options_->View();
}

Status Subject::Init() const {
  if (!WEIR_HAS(table_, init)) return FailedPrecondition("its table has no init");
  const std::vector<weir_opt> options = this->options();
  return CallPlugin(
      "init", [&](weir_error* error) { return table_->init(&WatchingHost(), options.data(), options.size(), error); });
}

Result<std::vector<FoundDevice>> Enumerate(const Subject& subject) {
  const weir_device_api* api = subject.devices();
  if (!WEIR_HAS(api, enumerate)) return FailedPrecondition("it has no devices");
  std::vector<FoundDevice> found;
  const auto emit = [](void* ctx, const weir_device_record* record) {
    FoundDevice device;
    device.uid = Text(record->uid);
    device.kind = Text(record->kind);
    device.platform = Text(record->platform);
    device.flags = record->flags;
    if (WEIR_HAS(record, memory_bytes)) device.memory_bytes = record->memory_bytes;
    if (WEIR_HAS(record, alignment)) device.alignment = record->alignment;
    static_cast<std::vector<FoundDevice>*>(ctx)->push_back(std::move(device));
  };
  const std::vector<weir_opt> options = subject.options();
  WEIR_TRY(CallPlugin("enumerate", [&](weir_error* error) {
    return api->enumerate(options.data(), options.size(), emit, &found, error);
  }));
  return found;
}

Result<std::unique_ptr<OpenedDevice>> OpenedDevice::Open(const Subject& subject, const FoundDevice& found) {
  std::unique_ptr<OpenedDevice> device(new OpenedDevice);
  const weir_device_api* api = subject.devices();
  if (!WEIR_HAS(api, open)) return FailedPrecondition("it cannot open devices");
  device->found_ = found;
  const std::vector<weir_opt> options = subject.options();
  WEIR_TRY(CallPlugin("open", [&](weir_error* error) {
    return api->open(ViewOf(std::string_view(found.uid)), options.data(), options.size(), &device->handle_, error);
  }));
  if (device->handle_ == nullptr) return Internal("open of '{}' returns no device", found.uid);
  device->api_ = api;
  return device;
}

OpenedDevice::~OpenedDevice() {
  if (WEIR_HAS(api_, close)) api_->close(handle_);
}

device::StreamApis Subject::streams() const {
  return {Interface<weir_stream_api>(WEIR_STREAM_INTERFACE), Interface<weir_memory_api>(WEIR_MEMORY_INTERFACE),
          Interface<weir_copy_api>(WEIR_COPY_INTERFACE), Interface<weir_native_api>(WEIR_NATIVE_INTERFACE)};
}

std::vector<std::string> OtherPlugins(const Target& target, uint32_t kinds) {
  std::vector<std::string> paths;
  const plugin::HostTraits host = plugin::HostTraits::Current(target.config->plugins.isa.value());
  for (const std::string& folder : target.folders) {
    const Result<std::vector<std::string>> files = plugin::ListFolder(folder);
    if (!files.ok()) continue;
    for (const std::string& file : *files) {
      const Result<plugin::ScannedFile> scanned = plugin::ScanFile(file, folder);
      if (!scanned.ok() || (scanned->note.kinds & kinds) == 0 || scanned->path == target.path) continue;
      if (!plugin::CheckCompatible(scanned->note, host).ok() || !plugin::CheckIsa(scanned->note, host).ok()) continue;
      paths.push_back(scanned->path);
    }
  }
  return paths;
}

Result<std::unique_ptr<device::Device>> DeviceFor(const Target& target, const Subject& subject,
                                                  std::string_view platform) {
  using Found = Result<std::unique_ptr<device::Device>>;
  const auto open_from = [&](const Subject& from) -> Found {
    WEIR_ASSIGN(const std::vector<FoundDevice> found, Enumerate(from));
    const auto fits = [&](const FoundDevice& device) { return device.platform == platform; };
    const auto of_platform = std::find_if(found.begin(), found.end(), fits);
    if (of_platform == found.end()) return NotFound("no device of platform {}", platform);
    device::DeviceInfo info;
    info.name = {.job = "localhost", .replica = 0, .task = 0, .type = of_platform->kind, .id = 0};
    info.uid = of_platform->uid;
    info.kind = of_platform->kind;
    info.platform = of_platform->platform;
    info.flags = of_platform->flags;
    info.memory_bytes = of_platform->memory_bytes;
    info.alignment = of_platform->alignment;
    auto device = std::make_unique<device::Device>(
        std::move(info), from.devices(), from.Interface<weir_cost_api>(WEIR_COST_INTERFACE),
        device::MemoryOptions{.allow_growth = true}, nullptr,
        device::DeviceExtras{.options = from.options(), .keep = from.resolved()});
    const bool synchronous = (of_platform->flags & WEIR_DEVICE_SYNC_ONLY) != 0;
    if (const device::StreamApis streams = from.streams(); !synchronous && streams.Complete()) {
      device->SetStreamApis(streams);
    }
    WEIR_TRY(device->Open().status());
    return device;
  };
  if (subject.devices() != nullptr) {
    Found own = open_from(subject);
    if (own.ok() || own.status().code() != Code::kNotFound) return own;
  }
  for (const std::string& path : OtherPlugins(target, WEIR_KIND_DEVICE)) {
    const Result<Subject> other = Subject::Start(target, path);
    if (!other.ok()) continue;
    Found device = open_from(*other);
    if (device.ok()) return device;
  }
  return NotFound("no plugin beside it brings a device of platform {}", platform);
}

}  // namespace weir::check
