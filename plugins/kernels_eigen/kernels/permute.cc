// Axes in another order or direction: Transpose, ReverseV2; InvertPermutation.
#include <algorithm>
#include <string>

#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/strided_copy.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;

struct Transpose {
  StridedCopy copy;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> perm;
    if (const int32_t code = Steering(prep, 1, &perm); code != WEIR_OK) return code;
    const std::vector<int64_t> from = DimsOf(prep.shape(0)), steps = StepsOf(from);
    if (perm.size() != from.size()) {
      return prep.error().InvalidArgument("transpose expects a vector of size ", from.size(),
                                          ". But input(1) is a vector of size ", perm.size());
    }
    std::vector<int64_t> dims, permuted;
    std::vector<bool> seen(from.size());
    for (const int64_t axis : perm) {
      if (axis < 0 || axis >= static_cast<int64_t>(from.size())) {
        return prep.error().InvalidArgument(axis, " is out of range [0 .. ", from.size(), ")");
      }
      seen[static_cast<size_t>(axis)] = true;
      dims.push_back(from[static_cast<size_t>(axis)]);
      permuted.push_back(steps[static_cast<size_t>(axis)]);
    }
    if (const auto missing = std::find(seen.begin(), seen.end(), false); missing != seen.end()) {
      std::string listed;
      for (const int64_t axis : perm) listed.append(listed.empty() ? "" : ",").append(std::to_string(axis));
      return prep.error().InvalidArgument(missing - seen.begin(), " is missing from {", listed, "}.");
    }
    copy.Plan(dims, permuted, StepsOf(dims), sdk::SizeOf(prep.input(0).dtype));
    if (copy.dense()) prep.MayAlias(0, 0);
    return ExpectOutput(prep, 0, dims);
  }
  void Run(AnyInput x, HostIntegers, AnyOutput y) const { copy.Run(x.data(), y.data()); }
};

struct Reverse {
  StridedCopy copy;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> axes;
    if (const int32_t code = Steering(prep, 1, &axes); code != WEIR_OK) return code;
    const std::vector<int64_t> dims = DimsOf(prep.shape(0)), to = StepsOf(dims);
    const int64_t rank = static_cast<int64_t>(dims.size());
    std::vector<int64_t> from = to;
    int64_t offset = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank) {
        return prep.error().InvalidArgument("'axis'[", i, "] = ", axes[i], " is out of valid range [0, ", rank - 1);
      }
      int64_t& step = from[static_cast<size_t>(axis)];
      if (step < 0) return prep.error().InvalidArgument("axis ", axis, " specified more than once.");
      // If another extent is 0, the step is 0, and there is nothing to copy.
      offset += (dims[static_cast<size_t>(axis)] - 1) * step;
      step = -step;
    }
    copy.Plan(dims, from, to, sdk::SizeOf(prep.input(0).dtype), offset);
    if (copy.dense()) prep.MayAlias(0, 0);
    return ExpectOutput(prep, 0, dims);
  }
  void Run(AnyInput tensor, HostIntegers, AnyOutput output) const { copy.Run(tensor.data(), output.data()); }
};

struct InvertPermutation {
  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> x, sdk::View<T> y) const {
    if (x.rank() != 1) return env.error().InvalidArgument("invert_permutation expects a 1D vector.");
    const int64_t n = x.size();
    std::fill(y.data(), y.data() + n, T(-1));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = x[i];
      if (at < 0 || at >= n) return env.error().InvalidArgument(at, " is not between 0 and ", n);
      if (y[at] != T(-1)) return env.error().InvalidArgument(at, " is duplicated in the input.");
      y[at] = static_cast<T>(i);
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddPermute(sdk::KernelTable& k) {
  k.Add<Transpose>("Transpose").Restrict("T", kPlainSet | kFloat8Set).Class(WEIR_CLASS_GATHER);
  k.Add<Reverse>("ReverseV2").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<InvertPermutation>("InvertPermutation", sdk::Types<int32_t, int64_t>()).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
