#include "core/config/logical_devices.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "core/base/errors.h"

namespace weir::config {
namespace {

constexpr double kMiB = 1048576;
constexpr std::string_view kCpu = "CPU";
constexpr std::string_view kGpu = "GPU";

struct ShortName {
  std::string_view name;
  DType dtype;
};
constexpr ShortName kShortNames[] = {{"f64", DType::kDouble},    {"f32", DType::kFloat},      {"f16", DType::kHalf},
                                     {"bf16", DType::kBfloat16}, {"i64", DType::kInt64},      {"i32", DType::kInt32},
                                     {"i16", DType::kInt16},     {"i8", DType::kInt8},        {"u64", DType::kUint64},
                                     {"u32", DType::kUint32},    {"u16", DType::kUint16},     {"u8", DType::kUint8},
                                     {"c64", DType::kComplex64}, {"c128", DType::kComplex128}};

// A value with the key that set it.
template <class T>
struct Sourced {
  T value{};
  std::string key;  // empty = not set
};

// Looks up keys in the device's table, then in the table of its kind.
class Tables {
 public:
  Tables(const Config& config, std::string kind, size_t number)
      : config_(config), names_{fmt::format("{}:{}", kind, number), kind} {}

  // The first table entry of `member` that is set.
  template <class T>
  Sourced<T> Get(T DeviceConfig::*member, const char* key) const {
    for (const std::string& name : names_) {
      const auto table = config_.device.find(name);
      if (table == config_.device.end() || table->second.*member == T()) continue;
      return {table->second.*member, ToString({"device", name, key})};
    }
    return {};
  }

  device::CostFigures Cost() const {
    device::CostFigures cost;
    cost.bandwidth_bytes_per_ns = Get(&DeviceConfig::mem_gbps, "mem_gbps").value;
    cost.launch_ns = Get(&DeviceConfig::launch_us, "launch_us").value * 1000;
    for (auto name = names_.rbegin(); name != names_.rend(); ++name) {
      const auto table = config_.device.find(*name);
      if (table == config_.device.end()) continue;
      for (const auto& [type, gflops] : table->second.peak_gflops) {
        if (const auto dtype = ElementType(type); dtype && gflops > 0) {
          cost.peak_flops_per_ns[static_cast<int>(*dtype)] = gflops;
        }
      }
    }
    return cost;
  }

 private:
  const Config& config_;
  std::vector<std::string> names_;
};

class Resolver {
 public:
  Resolver(const Config& config, std::span<const device::DeviceInfo* const> hardware)
      : config_(config), hardware_(hardware), kind_(hardware.front()->kind) {}

  Result<std::vector<LogicalDevice>> Run() {
    WEIR_ASSIGN(const std::vector<size_t> visible, Visible());
    WEIR_TRY(CheckVirtualDevices(visible.size()));
    for (size_t i = 0; i < visible.size(); ++i) {
      const Sourced<std::vector<double>> limits = VirtualLimits(i);
      if (limits.value.empty()) {
        devices_.push_back({.hardware = visible[i]});
      } else {
        WEIR_TRY(Cut(visible[i], limits));
      }
    }
    CutCpus(visible);
    for (size_t i = 0; i < devices_.size(); ++i) WEIR_TRY(Complete(i, devices_[i]));
    return std::move(devices_);
  }

 private:
  bool is_cpu() const { return kind_ == kCpu; }

  // Indices of the visible physical devices in list order, at most device_count.
  Result<std::vector<size_t>> Visible() const {
    std::string key = ToString({"device", kind_, "visible_device_list"});
    std::string list;
    if (const auto table = config_.device.find(kind_); table != config_.device.end()) {
      list = table->second.visible_device_list;
    }
    if (list.empty() && kind_ == kGpu) {
      list = config_.gpu_options.visible_device_list;
      key = "gpu_options.visible_device_list";
    }
    std::vector<size_t> visible(hardware_.size());
    std::iota(visible.begin(), visible.end(), size_t{0});
    if (!list.empty()) {
      WEIR_ASSIGN(visible, ParseList(list, key));
    }
    if (const auto count = config_.device_count.find(kind_); count != config_.device_count.end()) {
      visible.resize(std::min(visible.size(), static_cast<size_t>(count->second)));
    }
    return visible;
  }

  Result<std::vector<size_t>> ParseList(std::string_view list, const std::string& key) const {
    std::vector<size_t> visible;
    for (std::string_view rest = list;;) {
      const size_t comma = std::min(rest.find(','), rest.size());
      WEIR_ASSIGN(const size_t index, ParseEntry(rest.substr(0, comma), list, key));
      if (std::find(visible.begin(), visible.end(), index) != visible.end()) {
        return InvalidArgument("{}: visible_device_list contained a duplicate entry: {}", config_.Where(key), list);
      }
      visible.push_back(index);
      if (comma == rest.size()) return visible;
      rest.remove_prefix(comma + 1);
    }
  }

  Result<size_t> ParseEntry(std::string_view entry, std::string_view list, const std::string& key) const {
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    for (size_t i = 0; i < hardware_.size(); ++i) {
      if (hardware_[i]->uid == entry) return i;
    }
    size_t index = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
    if (entry.empty() || error != std::errc() || end != entry.data() + entry.size()) {
      return InvalidArgument(
          "{}: Could not parse entry in 'visible_device_list': '{}'. visible_device_list = {}; wanted indices or uids "
          "of {} devices",
          config_.Where(key), entry, list, kind_);
    }
    if (index < hardware_.size()) return index;
    return InvalidArgument("{}: 'visible_device_list' listed an invalid {} id '{}' but visible device count is {}",
                           config_.Where(key), kind_, entry, hardware_.size());
  }

  Status CheckVirtualDevices(size_t visible) const {
    const size_t listed = config_.gpu_options.experimental.virtual_devices.size();
    if (kind_ != kGpu || listed <= visible) return {};
    return InvalidArgument(
        "gpu_options.experimental.virtual_devices has {} elements, but only {} GPUs are visible: The number of GPUs in "
        "visible_device_list doesn't match the number of elements in the virtual_devices list.",
        listed, visible);
  }

  Sourced<std::vector<double>> VirtualLimits(size_t i) const {
    Sourced<std::vector<double>> own =
        Tables(config_, kind_, i).Get(&DeviceConfig::virtual_memory_limit_mb, "virtual_memory_limit_mb");
    const auto& listed = config_.gpu_options.experimental.virtual_devices;
    if (own.value.empty() && kind_ == kGpu && i < listed.size()) {
      return {listed[i].memory_limit_mb, fmt::format("gpu_options.experimental.virtual_devices.{}.memory_limit_mb", i)};
    }
    return own;
  }

  Status Cut(size_t hardware, const Sourced<std::vector<double>>& limits) {
    const device::DeviceInfo& info = *hardware_[hardware];
    double sum = 0;
    for (const double mb : limits.value) {
      const auto bytes = static_cast<uint64_t>(mb * kMiB);
      if (bytes == 0) return InvalidArgument("{}: a limit of {} MiB holds nothing", config_.Where(limits.key), mb);
      sum += mb * kMiB;
      LogicalDevice device{.hardware = hardware, .shared = true};
      device.memory.limit_bytes = bytes;
      device.memory.limit_source = config_.Where(limits.key);
      devices_.push_back(std::move(device));
    }
    if (info.memory_bytes != 0 && sum > static_cast<double>(info.memory_bytes)) {
      return InvalidArgument("{}: {:.0f} bytes in all, but {} ({}) has {}", config_.Where(limits.key), sum, info.uid,
                             info.display_name, info.memory_bytes);
    }
    return {};
  }

  // Adds CPUs if device_count requests more than exist.
  void CutCpus(const std::vector<size_t>& visible) {
    const auto count = config_.device_count.find(kind_);
    if (!is_cpu() || count == config_.device_count.end() || visible.empty()) return;
    const size_t found = devices_.size();
    for (size_t i = found; i < static_cast<size_t>(count->second); ++i) {
      LogicalDevice& first = devices_[i % found];
      first.shared = true;
      devices_.push_back(LogicalDevice(first));
    }
  }

  // Sets memory limits and cost figures of logical device `i`.
  Status Complete(size_t i, LogicalDevice& device) const {
    const device::DeviceInfo& info = *hardware_[device.hardware];
    const Tables tables(config_, kind_, i);
    device::MemoryOptions& memory = device.memory;
    const bool cut = memory.limit_bytes != 0;
    const Sourced<double> cap = tables.Get(&DeviceConfig::memory_limit_mb, "memory_limit_mb");
    WEIR_TRY(Lower(static_cast<uint64_t>(cap.value * kMiB), cap.key, memory));
    if (!cut) {
      WEIR_ASSIGN(const Sourced<double> fraction, Fraction(tables, info));
      WEIR_TRY(
          Lower(static_cast<uint64_t>(fraction.value * static_cast<double>(info.memory_bytes)), fraction.key, memory));
      // Only a fraction may exceed the device's memory.
      const bool beyond = info.memory_bytes != 0 && memory.limit_bytes > info.memory_bytes;
      if (fraction.key.empty() && beyond) {
        memory.limit_bytes = 0;
        memory.limit_source.clear();
      }
    }
    memory.initial_bytes =
        static_cast<uint64_t>(tables.Get(&DeviceConfig::initial_memory_mb, "initial_memory_mb").value * kMiB);
    const std::optional<bool> growth = tables.Get(&DeviceConfig::allow_growth, "allow_growth").value;
    memory.allow_growth = growth.value_or(!is_cpu() && config_.gpu_options.allow_growth);
    device.memory_bytes = memory.limit_bytes != 0 ? memory.limit_bytes : info.memory_bytes;
    device.enabled = tables.Get(&DeviceConfig::enabled, "enabled").value;
    device.cost = tables.Cost();
    return {};
  }

  // Lowers the limit to `bytes` if `key` is set.
  Status Lower(uint64_t bytes, const std::string& key, device::MemoryOptions& memory) const {
    if (key.empty()) return {};
    if (bytes == 0) return InvalidArgument("{}: less than a byte is left of the device", config_.Where(key));
    if (memory.limit_bytes != 0 && memory.limit_bytes <= bytes) return {};
    memory.limit_bytes = bytes;
    memory.limit_source = config_.Where(key);
    return {};
  }

  Result<Sourced<double>> Fraction(const Tables& tables, const device::DeviceInfo& info) const {
    Sourced<double> fraction = tables.Get(&DeviceConfig::memory_fraction, "memory_fraction");
    if (fraction.key.empty() && !is_cpu() && config_.gpu_options.per_process_gpu_memory_fraction != 0) {
      fraction = {config_.gpu_options.per_process_gpu_memory_fraction, "gpu_options.per_process_gpu_memory_fraction"};
    }
    if (fraction.key.empty()) return fraction;
    if (fraction.value > 1 && !info.unified_memory()) {
      return InvalidArgument("{} = {}: {} ({}) has no unified memory, so the maximum is 1", config_.Where(fraction.key),
                             fraction.value, info.uid, info.display_name);
    }
    if (info.memory_bytes == 0) {
      return InvalidArgument("{} = {}: {} ({}) does not say how much memory it has; set a memory_limit_mb instead",
                             config_.Where(fraction.key), fraction.value, info.uid, info.display_name);
    }
    return fraction;
  }

  const Config& config_;
  std::span<const device::DeviceInfo* const> hardware_;
  const std::string kind_;
  std::vector<LogicalDevice> devices_;
};

}  // namespace

std::optional<DType> ElementType(std::string_view short_name) {
  for (const ShortName& known : kShortNames) {
    if (known.name == short_name) return known.dtype;
  }
  return std::nullopt;
}

Result<std::vector<LogicalDevice>> LogicalDevices(const Config& config,
                                                  std::span<const device::DeviceInfo* const> hardware) {
  return Resolver(config, hardware).Run();
}

}  // namespace weir::config
