// A complete synchronous device with two kernels: device memory accessed by copies, an option, a cost profile.
#include <atomic>
#include <cstdlib>

#include "sdk/cpp/device.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

constexpr uint64_t kDefaultBytes = 64u << 20;

/// One open device: an imitated accelerator that uses memory of this process.
class ToyDevice {
 public:
  explicit ToyDevice(uint64_t capacity) : capacity_(capacity) {}

  static std::span<const weir_option_spec* const> OptionSpecs() {
    static const weir_option_spec memory_bytes = [] {
      weir_option_spec spec{};
      spec.struct_size = sizeof spec;
      spec.type = WEIR_VALUE_INT;
      spec.has_range = 1;
      spec.key = Str("memory_bytes");
      spec.doc = Str("capacity of the device's memory in bytes");
      spec.default_value.key = spec.key;
      spec.default_value.type = WEIR_VALUE_INT;
      spec.default_value.value.i = kDefaultBytes;
      spec.minimum = 1 << 20;
      spec.maximum = 1u << 30;
      return spec;
    }();
    static const weir_option_spec* const specs[] = {&memory_bytes};
    return specs;
  }

  // A real device would query its driver here, and emit nothing for missing hardware.
  static void Enumerate(const Options& options, const Emit& emit) {
    emit({.uid = "toy-0",
          .kind = "TOY",
          .platform = "toy/1",
          .name = "toy accelerator",
          .memory_bytes = static_cast<uint64_t>(options.Int("memory_bytes", kDefaultBytes))});
  }

  static std::unique_ptr<ToyDevice> Open(std::string_view uid, const Options& options, const Error&) {
    if (uid != "toy-0") return nullptr;
    return std::make_unique<ToyDevice>(static_cast<uint64_t>(options.Int("memory_bytes", kDefaultBytes)));
  }

  // The core's arena calls these rarely, from any thread.
  void* Alloc(uint64_t bytes, uint32_t) {
    if (used_.fetch_add(bytes) + bytes > capacity_) {
      used_.fetch_sub(bytes);
      return nullptr;
    }
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void Free(void* block, uint64_t bytes) {
    std::free(block);
    used_.fetch_sub(bytes);
  }
  void MemInfo(uint32_t, uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const {
    total_bytes = capacity_;
    free_bytes = largest_bytes = capacity_ - used_.load();
  }

  void Profile(weir_profile& profile) const {
    profile.provenance = WEIR_PROVENANCE_DATASHEET;
    profile.peak_flops_per_ns[WEIR_FLOAT32] = 4;
    profile.bandwidth_bytes_per_ns = 8;
    profile.launch_ns = 100;
  }

 private:
  const uint64_t capacity_;
  std::atomic<uint64_t> used_{0};
};

struct Sum {
  template <class T>
  T operator()(T x, T y) const {
    return x + y;
  }
};

struct Rectify {
  template <class T>
  T operator()(T x) const {
    return x > T(0) ? x : T(0);
  }
};

void AddKernels(KernelTable& k) {
  k.Binary<Sum>("AddV2", Types<float, double>());
  k.Unary<Rectify>("Relu", Types<float, double>());
}

}  // namespace

WEIR_PLUGIN("toy", "1.0.0", "weir", "toy/1", Devices<ToyDevice>, Kernels<AddKernels>)
