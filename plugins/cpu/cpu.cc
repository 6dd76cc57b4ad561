// The CPU as a device: memory, copies and a cost profile. Its kernels come from kernel sets for platform "cpu".
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "sdk/cpp/device.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kHugePage = uint64_t{2} << 20;  // of x86-64, and of 64-bit ARM with 4 KiB pages
constexpr double kAssumedClock = 2.5;  // cycles per ns; an assumption, so that every run has the same profile

uint64_t MemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) : 0;
}

/// Bytes of a cache level of this machine, or `otherwise` if the system does not report it.
double CacheBytes(int name, double otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<double>(bytes) : otherwise;
}

/// float operations per cycle of one core, computed from its vector width: two fused units.
double FlopsPerCycle() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
  return 8;
}

class Cpu {
 public:
  static void Enumerate(const Options&, const Emit& emit) {
    emit({.uid = "cpu-0",
          .class_id = "cpu",
          .kind = "CPU",
          .platform = "cpu",
          .name = "host processor",
          .flags = WEIR_DEVICE_SYNC_ONLY | WEIR_DEVICE_UNIFIED_MEMORY,
          .memory_bytes = MemoryBytes(),
          .alignment = kAlignment});
  }

  static std::unique_ptr<Cpu> Open(std::string_view uid, const Options&, const Error&) {
    return uid == "cpu-0" ? std::make_unique<Cpu>() : nullptr;
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

  // One core, with the figures of a data sheet. Element types without native arithmetic use float.
  void Profile(weir_profile& profile) const {
    profile.provenance = WEIR_PROVENANCE_DATASHEET;
    const double peak = FlopsPerCycle() * kAssumedClock;
    for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_INT32, WEIR_UINT32, WEIR_COMPLEX64})
      profile.peak_flops_per_ns[dtype] = peak;
    for (const uint32_t dtype : {WEIR_FLOAT64, WEIR_INT64, WEIR_UINT64, WEIR_COMPLEX128}) {
      profile.peak_flops_per_ns[dtype] = peak / 2;
    }
    for (const uint32_t dtype : {WEIR_FLOAT16, WEIR_BFLOAT16}) profile.peak_flops_per_ns[dtype] = peak / 4;
    for (const uint32_t dtype : {WEIR_INT8, WEIR_UINT8, WEIR_INT16, WEIR_UINT16, WEIR_BOOL}) {
      profile.peak_flops_per_ns[dtype] = peak;
    }
    profile.bandwidth_bytes_per_ns = 10;
    profile.cache_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
    profile.cache_bandwidth_bytes_per_ns = 50;
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

WEIR_PLUGIN("cpu", "0.1.0", "weir", "", weir::sdk::Devices<Cpu>)
