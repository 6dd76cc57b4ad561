// Whole arrays: DeepCopy, Empty, ParallelConcat, and rows changed in a copy: InplaceUpdate, InplaceAdd, InplaceSub.
#include <cstring>

#include "plugins/functors/inplace_plans.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Integers;
using sdk::View;

size_t BytesOf(const AnyOutput& v) {
  return HasNoElements(v.shape()) ? 0 : static_cast<size_t>(v.size()) * sdk::SizeOf(v.dtype());
}

struct DeepCopy {
  void Run(AnyInput x, AnyOutput y) const {
    if (const size_t bytes = BytesOf(y); bytes != 0) std::memcpy(y.data(), x.data(), bytes);
  }
};

struct Empty : functors::EmptyPlan {
  void Run(sdk::HostIntegers, AnyOutput output) const {
    if (const size_t bytes = BytesOf(output); bytes != 0) std::memset(output.data(), 0, bytes);
  }
};

struct ParallelConcat : functors::ParallelConcatPlan {
  void Run(sdk::AnyInputs values, AnyOutput output) const {
    const size_t bytes = BytesOf(output) / values.size();
    if (bytes == 0) return;
    auto* to = static_cast<char*>(output.data());
    for (uint32_t i = 0; i < values.size(); ++i, to += bytes) std::memcpy(to, values[i].data(), bytes);
  }
};

struct InplaceUpdate : functors::InplacePlan {
  void Run(AnyInput x, Integers indices, AnyInput v, AnyOutput y) const {
    if (empty) return;
    const size_t bytes = static_cast<size_t>(row) * sdk::SizeOf(y.dtype());
    auto* const to = static_cast<char*>(y.data());
    if (to != x.data()) std::memcpy(to, x.data(), static_cast<size_t>(rows) * bytes);
    const auto* from = static_cast<const char*>(v.data());
    for (int64_t i = 0, n = indices.size(); i < n; ++i, from += bytes) {
      std::memcpy(to + static_cast<size_t>(At(indices[i])) * bytes, from, bytes);
    }
  }
};

template <bool kAdd>
struct InplaceChange : functors::InplacePlan {
  template <class T>
  void Run(View<const T> x, Integers indices, View<const T> v, View<T> y) const {
    using C = sdk::Compute<T>;
    if (empty) return;
    if (y.data() != x.data()) std::copy_n(x.data(), rows * row, y.data());
    const T* from = v.data();
    for (int64_t i = 0, n = indices.size(); i < n; ++i, from += row) {
      T* const to = y.data() + At(indices[i]) * row;
      for (int64_t k = 0; k < row; ++k) {
        const C a = static_cast<C>(to[k]), b = static_cast<C>(from[k]);
        to[k] = static_cast<T>(kAdd ? Sum(a, b) : Difference(a, b));
      }
    }
  }
};

}  // namespace

void AddInplace(sdk::KernelTable& k) {
  constexpr uint64_t kCopied = kPlainSet | kQuantizedSet | kFloat8Set | kInt4Set;
  k.Add<DeepCopy>("DeepCopy").Restrict("T", kCopied).Class(WEIR_CLASS_GATHER);
  k.Add<Empty>("Empty").Restrict("dtype", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<ParallelConcat>("ParallelConcat").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<InplaceUpdate>("InplaceUpdate").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<InplaceChange<true>>("InplaceAdd", kNumbers).Class(WEIR_CLASS_GATHER);
  k.Add<InplaceChange<false>>("InplaceSub", kNumbers).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
