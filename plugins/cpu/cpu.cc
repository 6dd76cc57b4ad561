// The CPU as a device: memory, copies and a cost profile. Its kernels come from kernel sets for platform "cpu".
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "sdk/cpp/cpu.h"
#include "sdk/cpp/device.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kHugePage = uint64_t{2} << 20;  // of x86-64, and of 64-bit ARM with 4 KiB pages

uint64_t MemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) : 0;
}

/// Bytes of a cache level of this machine, or `otherwise` if the system does not report it.
double CacheBytes(int name, double otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<double>(bytes) : otherwise;
}

/// The profile of one core of a processor of each class. Rates of the AMD rows were measured, those of Intel are of the
/// published widths and memory speeds. `weir profile calibrate` measures the machine at hand.
struct Shipped {
  double flops_per_cycle;  // float, fused units times vector width
  double clock;            // cycles per ns under load
  double bandwidth;        // bytes per ns, from memory beyond the caches
  double cache_bandwidth;  // bytes per ns, from the second cache
};
constexpr Shipped kShipped[] = {
    {8, 2.5, 10, 25},    // baseline
    {32, 3.3, 20, 60},   // amd-avx2
    {32, 3.7, 22, 80},   // amd-avx512: two halves of a vector, one after the other, up to Zen 4
    {64, 4.2, 42, 200},  // amd-zen5
    {32, 3.0, 12, 60},   // intel-avx2
    {64, 2.6, 12, 80},   // intel-avx512
};

const Shipped& ShippedProfile() { return kShipped[static_cast<size_t>(ThisCpuClass())]; }

/// "AMD EPYC (25/17/1), x86-64-v4, profile amd-avx512"; files of measured times belong to one such text.
std::string Description() {
  const weir::sdk::CpuModel cpu = weir::sdk::ReadCpuModel();
  constexpr const char* kLevels[] = {"", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  std::string text = cpu.brand.empty() ? "host processor" : cpu.brand;
  if (cpu.family != 0) {
    text += " (" + std::to_string(cpu.family) + "/" + std::to_string(cpu.model) + "/" + std::to_string(cpu.stepping) +
            "), " + kLevels[static_cast<size_t>(ThisCpu().Below(HighestIsa()))];
  }
  return text + ", profile " + std::string(Name(ThisCpuClass()));
}

/// Only the profile depends on the instruction set.
int32_t LimitIsa(Isa, weir_error*) { return WEIR_OK; }

class CpuDevice {
 public:
  static void Enumerate(const Options&, const Emit& emit) {
    const std::string description = Description();
    emit({.uid = "cpu-0",
          .class_id = "cpu",
          .kind = "CPU",
          .platform = "cpu",
          .name = description,
          .flags = WEIR_DEVICE_SYNC_ONLY | WEIR_DEVICE_UNIFIED_MEMORY,
          .memory_bytes = MemoryBytes(),
          .alignment = kAlignment});
  }

  static std::unique_ptr<CpuDevice> Open(std::string_view uid, const Options&, const Error&) {
    return uid == "cpu-0" ? std::make_unique<CpuDevice>() : nullptr;
  }

  // Sizes beyond the machine's memory are refused at once: the system would grant them and kill the process later.
  // Large blocks use huge pages if the system has them, which reduces TLB misses.
  void* Alloc(uint64_t bytes, uint32_t) {
    if (bytes > MemoryBytes()) return nullptr;
    void* const block = ::operator new(bytes, AlignmentOf(bytes), std::nothrow);
    if (block != nullptr && bytes >= kHugePage) (void)madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return block;
  }
  void Free(void* block, uint64_t bytes) { ::operator delete(block, AlignmentOf(bytes)); }

  void MemInfo(uint32_t, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const {
    struct sysinfo info {};
    total_bytes = MemoryBytes();
    free_bytes =
        sysinfo(&info) == 0 ? std::min<uint64_t>((info.freeram + info.bufferram) * info.mem_unit, total_bytes) : 0;
    largest_bytes = free_bytes;
  }

  static std::align_val_t AlignmentOf(uint64_t bytes) {
    return std::align_val_t(bytes >= kHugePage ? kHugePage : kAlignment);
  }

  // One core. Element types without native arithmetic use float.
  void Profile(weir_profile& profile) const {
    profile.provenance = WEIR_PROVENANCE_DATASHEET;
    const Shipped& shipped = ShippedProfile();
    const double peak = shipped.flops_per_cycle * shipped.clock;
    for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_INT32, WEIR_UINT32, WEIR_COMPLEX64})
      profile.peak_flops_per_ns[dtype] = peak;
    for (const uint32_t dtype : {WEIR_FLOAT64, WEIR_INT64, WEIR_UINT64, WEIR_COMPLEX128}) {
      profile.peak_flops_per_ns[dtype] = peak / 2;
    }
    for (const uint32_t dtype : {WEIR_FLOAT16, WEIR_BFLOAT16}) profile.peak_flops_per_ns[dtype] = peak / 4;
    for (const uint32_t dtype : {WEIR_INT8, WEIR_UINT8, WEIR_INT16, WEIR_UINT16, WEIR_BOOL}) {
      profile.peak_flops_per_ns[dtype] = peak;
    }
    profile.bandwidth_bytes_per_ns = shipped.bandwidth;
    profile.cache_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
    profile.cache_bandwidth_bytes_per_ns = shipped.cache_bandwidth;
    profile.launch_ns = 3;
    profile.issue_gap_ns = 0;
    profile.sync_wake_ns = 0;
    profile.half_saturation_flops = 0;
    profile.half_saturation_bytes = 0;
    constexpr double kCompute[WEIR_CLASS_COUNT] = {0.5, 0.4, 0.1, 0.2, 0.05, 0.02, 0.05, 0.2, 0.01};
    constexpr double kMemory[WEIR_CLASS_COUNT] = {0.8, 0.7, 0.8, 0.8, 0.3, 0.2, 0.5, 0.4, 0.1};
    for (int i = 0; i < WEIR_CLASS_COUNT; ++i) {
      profile.compute_efficiency[i] = kCompute[i];
      profile.memory_efficiency[i] = kMemory[i];
    }
    profile.queues = 1;
    profile.copy_engines = 0;
  }
};

}  // namespace

WEIR_PLUGIN("cpu", "0.1.0", "weir", "", weir::sdk::Devices<CpuDevice>, weir::sdk::IsaOption<LimitIsa>)
