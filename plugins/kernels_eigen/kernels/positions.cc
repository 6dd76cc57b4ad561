// Positions in arrays: UnravelIndex, DataFormatDimMap, DataFormatVecPermute.
#include "plugins/functors/layout_plans.h"

#include <algorithm>
#include <string>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

struct UnravelIndex {
  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &indices = prep.shape(0), &dims = prep.shape(1);
    if (indices.rank > 1) {
      return prep.error().InvalidArgument("The indices can only be scalar or vector, got \"", indices, "\"");
    }
    if (dims.rank != 1) return prep.error().InvalidArgument("The indices can only be 1-D, got \"", dims, "\"");
    std::vector<int64_t> shape = DimsOf(indices);
    shape.insert(shape.begin(), dims.dims[0]);
    return ExpectOutput(prep, 0, shape);
  }
  template <class T>
  int32_t Run(Env& env, View<const T> indices, View<const T> dims, View<T> output) const {
    const sdk::Error error = env.error();
    const int64_t rank = dims.size(), count = indices.size();
    T total = 1;
    if (count == 0) return error.InvalidArgument("received empty tensor indices");
    for (int64_t i = 0; i < rank; ++i) {
      if (dims[i] == 0) {
        return error.InvalidArgument("Input dims cannot contain a dim of zero, but dims contains zero at index ", i);
      }
      if (dims[i] < 0) return error.InvalidArgument("Input dims cannot be negative, got ", dims[i], " at index ", i);
      if (__builtin_mul_overflow(total, dims[i], &total)) return Overflow(error, dims);
    }
    for (int64_t k = 0; k < count; ++k) {
      if (rank == 0 || indices[k] >= total) return error.InvalidArgument("index is out of bound as with dims");
    }
    for (int64_t i = 0; i < rank; ++i) {
      total /= dims[i];
      for (int64_t k = 0; k < count; ++k)
        output[i * count + k] = i == 0 ? indices[k] / total : indices[k] / total % dims[i];
    }
    return WEIR_OK;
  }

  template <class T>
  static int32_t Overflow(const sdk::Error& error, View<const T> dims) {
    std::string listed;
    for (int64_t i = 0; i < dims.size(); ++i) {
      if (i > 0) listed += ' ';
      listed += std::to_string(dims[i]);
    }
    return error.InvalidArgument("Input dims product is causing integer overflow: (", listed, ")");
  }
};

struct DataFormatDimMap : functors::DimMapPlan {
  /// As in TensorFlow, axes out of range wrap around.
  template <class T>
  void Run(View<const T> x, View<T> y) const {
    const auto rank = static_cast<T>(from.size());
    for (int64_t i = 0; i < x.size(); ++i) {
      const T axis = (x[i] % rank + rank) % rank;
      y[i] = static_cast<T>(to.find(from[static_cast<size_t>(axis)]));
    }
  }
};

struct DataFormatVecPermute : functors::VecPermutePlan {
  template <class T>
  void Run(View<const T> x, View<T> y) const {
    const int64_t row = x.rank() == 2 ? 2 : 1;
    for (size_t i = 0; i < to.size(); ++i) {
      const auto at = static_cast<int64_t>(from.find(to[i]));
      std::copy_n(x.data() + at * row, row, y.data() + static_cast<int64_t>(i) * row);
    }
  }
};

}  // namespace

void AddPositions(sdk::KernelTable& k) {
  k.Add<UnravelIndex>("UnravelIndex", sdk::Attr("Tidx", kIndex)).Class(WEIR_CLASS_GATHER);
  k.Add<DataFormatDimMap>("DataFormatDimMap", kIndex).Class(WEIR_CLASS_GATHER);
  k.Add<DataFormatVecPermute>("DataFormatVecPermute", kIndex).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
