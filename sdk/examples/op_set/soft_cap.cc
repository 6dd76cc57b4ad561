// An op that weir does not have: its definition, its shape function, a gradient that is written as other ops, and a
// kernel for the CPU. SoftCap(x; limit) = limit * x / (limit + |x|), which lies between -limit and limit.
#include <cmath>

#include "sdk/cpp/kernel.h"
#include "sdk/cpp/ops.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

struct SoftCap {
  static constexpr std::string_view kName = "SoftCap";
  static constexpr std::string_view kDoc = "limit * x / (limit + |x|), element by element.";
  static constexpr std::string_view kInputs[] = {"x: T"};
  static constexpr std::string_view kOutputs[] = {"y: T"};
  static constexpr std::string_view kAttrs[] = {"T: {float, double}", "limit: float = 1.0"};

  static int32_t Shapes(const OpShapes& shapes, const Error& error) {
    if (!(shapes.node().Float("limit") > 0)) {
      return error.InvalidArgument("limit must be positive, got ", shapes.node().Float("limit"));
    }
    shapes.Set(0, shapes.input(0));
    return WEIR_OK;
  }

  /// dy * (limit / (limit + |x|))^2
  static int32_t Gradient(const OpGradient& g, const Error&) {
    const uint64_t limit = g.ConstantLike(g.x(0), g.node().Float("limit"));
    const uint64_t ratio = g.Apply("RealDiv", {limit, g.Apply("AddV2", {limit, g.Apply("Abs", {g.x(0)})})});
    g.Set(0, g.Apply("Mul", {g.dy(0), g.Apply("Square", {ratio})}));
    return WEIR_OK;
  }
};

struct SoftCapKernel {
  double limit = 1;

  void Prepare(Prep& prep) {
    limit = prep.node().Float("limit", 1);
    prep.MayAlias(0, 0);
  }
  template <class T>
  void Run(View<const T> x, View<T> y) const {
    const T cap = static_cast<T>(limit);
    for (int64_t i = 0, n = x.size(); i < n; ++i) y[i] = cap * x[i] / (cap + std::abs(x[i]));
  }
};

void AddKernels(KernelTable& k) {
  k.Add<SoftCapKernel>("SoftCap", Types<float, double>()).Class(WEIR_CLASS_ELEMENTWISE, 3);
}

}  // namespace

WEIR_PLUGIN("soft_cap", "1.0.0", "weir", "cpu", Ops<SoftCap>, Kernels<AddKernels>)
