// A kernel set whose one kernel does nothing: it measures what an executed instruction costs.
#include "sdk/cpp/plugin.h"

namespace {

/// Stands in for Neg on int8; declared cheaper than any real kernel, so that it is chosen.
struct Nothing {
  static weir::sdk::Cost Estimate(const weir::sdk::Prep&) { return {0, 0, 0}; }
  template <class T>
  void Run(weir::sdk::View<const T>, weir::sdk::View<T>) const {}
};

void AddNothing(weir::sdk::KernelTable& k) { k.Add<Nothing>("Neg", weir::sdk::Types<int8_t>()); }

}  // namespace

WEIR_PLUGIN("bench_null", "1.0.0", "weir", "cpu", weir::sdk::Kernels<AddNothing>)
