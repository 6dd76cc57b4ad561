// ArgMax and ArgMin: the first index of the extreme element along one dimension.
#include <algorithm>
#include <limits>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

template <class T, bool kMax>
bool Better(T x, T best) {
  if constexpr (kMax) {
    return x > best;
  } else {
    return x < best;
  }
}

constexpr int64_t kColumnTile = 256;

/// Writes indices [0, count) at element `first` of an output of any integer type.
void Store(const int64_t* at, int64_t count, const sdk::AnyOutput& output, int64_t first) {
  const auto store = [&]<class I>(I* to) {
    for (int64_t i = 0; i < count; ++i) to[first + i] = static_cast<I>(at[i]);
  };
  switch (output.dtype()) {
    case WEIR_INT64:
      return store(static_cast<int64_t*>(output.data()));
    case WEIR_INT32:
      return store(static_cast<int32_t*>(output.data()));
    default:
      return store(static_cast<int16_t*>(output.data()));  // int16 and uint16: the same bits
  }
}

// As in TensorFlow, NaN never wins, and the index is 0 if no element exceeds the least finite number.
template <bool kMax>
struct ArgReduce {
  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> input, sdk::HostIntegers dimension, sdk::AnyOutput output) const {
    const int64_t rank = input.rank();
    if (dimension.size() != 1) {
      return env.error().InvalidArgument("dim must be a scalar, but received tensor of shape: ", dimension.shape());
    }
    const int64_t axis = dimension[0] < 0 ? dimension[0] + rank : dimension[0];
    if (axis < 0 || axis >= rank) {
      return env.error().InvalidArgument("Expected dimension in the range [", -rank, ", ", rank, "), but got ",
                                         dimension[0]);
    }
    const int64_t n = input.dim(static_cast<uint32_t>(axis));
    int64_t outer = 1, inner = 1;
    for (int64_t i = 0; i < axis; ++i) outer *= input.dim(static_cast<uint32_t>(i));
    for (int64_t i = axis + 1; i < rank; ++i) inner *= input.dim(static_cast<uint32_t>(i));
    if (n == 0 && outer * inner != 0) {
      return env.error().InvalidArgument("Reduction axis ", dimension[0], " is empty in shape ", input.shape());
    }
    if (output.size() != outer * inner) {
      return env.error().InvalidArgument("the result has ", outer * inner, " elements, the output ", output.shape());
    }
    int64_t at[kColumnTile];
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t begin = 0; begin < inner; begin += kColumnTile) {
        const int64_t count = std::min(kColumnTile, inner - begin);
        const T* x = input.data() + i * n * inner + begin;
        if (inner == 1) {
          at[0] = Row(x, n);
        } else {
          Columns(x, n, inner, count, at);
        }
        Store(at, count, output, i * inner + begin);
      }
    }
    return WEIR_OK;
  }

  template <class C>
  static C Worst() {
    return kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  }

  template <class T>
  static int64_t Row(const T* x, int64_t n) {
    using C = sdk::Compute<T>;
    C best = Worst<C>();
    int64_t at = 0;
    for (int64_t i = 0; i < n; ++i) {
      const C value = static_cast<C>(x[i]);
      if (Better<C, kMax>(value, best)) {
        best = value;
        at = i;
      }
    }
    return at;
  }

  template <class T>
  static void Columns(const T* x, int64_t n, int64_t step, int64_t count, int64_t* at) {
    using C = sdk::Compute<T>;
    C best[kColumnTile];
    std::fill(best, best + count, Worst<C>());
    std::fill(at, at + count, int64_t{0});
    for (int64_t row = 0; row < n; ++row, x += step) {
      for (int64_t i = 0; i < count; ++i) {
        const C value = static_cast<C>(x[i]);
        if (!Better<C, kMax>(value, best[i])) continue;
        best[i] = value;
        at[i] = row;
      }
    }
  }
};

}  // namespace

void AddArgReduce(sdk::KernelTable& k) {
  // The kernels handle every index type; the tables only restrict it.
  k.Add<ArgReduce<true>>("ArgMax", kReal + kBool)
      .Class(WEIR_CLASS_REDUCE)
      .Restrict("output_type", {WEIR_INT32, WEIR_INT64, WEIR_INT16, WEIR_UINT16});
  k.Add<ArgReduce<false>>("ArgMin", kReal + kBool)
      .Class(WEIR_CLASS_REDUCE)
      .Restrict("output_type", {WEIR_INT32, WEIR_INT64});
}

}  // namespace weir::kernels_eigen
