// Kernels for another plugin's device: one more op for platform "toy/1". The two files are never linked to each other.
// The loader does not open this file unless a plugin has devices of that platform.
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

struct Product {
  template <class T>
  T operator()(T x, T y) const {
    return x * y;
  }
};

void AddKernels(KernelTable& k) { k.Binary<Product>("Mul", Types<float, double>()); }

}  // namespace

WEIR_PLUGIN("toy_mul", "1.0.0", "weir", "toy/1", Kernels<AddKernels>)
