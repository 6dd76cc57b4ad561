// A template for a device plugin. Rename MY and my_device, then add the calls of your hardware; <weir/sdk/v1/plugin.h>
// and sdk/cpp/device.h document each member.
#include <weir/sdk/v1/plugin.h>

#include <cstdlib>

#include "sdk/cpp/device.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

class MyDevice {
 public:
  // Emits each card. If the driver is missing, emits none and returns no error.
  static void Enumerate(const Options&, const Emit& emit) {
    emit({.uid = "my-0",
          .kind = "MY",
          .platform = "my/1",
          .name = "my accelerator",
          .memory_bytes = uint64_t{256} << 20});
  }
  static std::unique_ptr<MyDevice> Open(std::string_view uid, const Options&, const Error&) {
    return uid == "my-0" ? std::make_unique<MyDevice>() : nullptr;
  }

  // Memory of the card; null if memory is exhausted. Copies default to memcpy.
  void* Alloc(uint64_t bytes, uint32_t) {
    return bytes > (uint64_t{256} << 20) ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void Free(void* block, uint64_t) { std::free(block); }

  // Costs on the idle card; leave a value unknown if you do not know it.
  void Profile(weir_profile& profile) const {
    profile.provenance = WEIR_PROVENANCE_DATASHEET;
    profile.peak_flops_per_ns[WEIR_FLOAT32] = 4;
    profile.bandwidth_bytes_per_ns = 8;
    profile.launch_ns = 100;
  }
};

struct Sum {
  template <class T>
  T operator()(T x, T y) const {
    return x + y;
  }
};

struct Negative {
  template <class T>
  T operator()(T x) const {
    return -x;
  }
};

void AddKernels(KernelTable& k) {
  k.Binary<Sum>("AddV2", Types<float>());
  k.Unary<Negative>("Neg", Types<float>());
}

}  // namespace

WEIR_PLUGIN("my_device", "0.1.0", "Example Ltd", "my/1", Devices<MyDevice>, Kernels<AddKernels>)
