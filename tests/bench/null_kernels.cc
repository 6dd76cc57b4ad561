// A kernel set with a kernel that does nothing, for measuring the cost of an executed instruction.
#include "sdk/cpp/plugin.h"

namespace {

/// Replaces Neg on int8; its declared cost is below that of any real kernel, so that it is chosen.
struct Nothing {
  static weir::sdk::Cost Estimate(const weir::sdk::Prep&) { return {0, 0, 0}; }
  template <class T>
  void Run(weir::sdk::View<const T>, weir::sdk::View<T>) const {}
};

void AddNothing(weir::sdk::KernelTable& k) { k.Add<Nothing>("Neg", weir::sdk::Types<int8_t>()); }

}  // namespace

WEIR_PLUGIN("bench_null", "1.0.0", "weir", "cpu", weir::sdk::Kernels<AddNothing>)
