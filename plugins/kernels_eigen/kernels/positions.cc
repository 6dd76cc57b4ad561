// Positions in arrays: UnravelIndex, DataFormatDimMap, DataFormatVecPermute.
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

/// For each axis of src_format its place in dst_format.
struct Layouts {
  std::string from, to;

  void ReadFormats(const sdk::Prep& prep) {
    from = prep.node().String("src_format", "NHWC");
    to = prep.node().String("dst_format", "NCHW");
  }
  int32_t CheckPermutation(const sdk::Error& error) const {
    std::string a = from, b = to;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a == b && std::adjacent_find(a.begin(), a.end()) == a.end()) return WEIR_OK;
    return error.InvalidArgument("Destination and source format must determine a permutation, got ", from, " and ", to);
  }
};

struct DataFormatDimMap : Layouts {
  int32_t Prepare(sdk::Prep& prep) {
    ReadFormats(prep);
    for (const auto& [name, format] : {std::pair("Source", &from), std::pair("Destination", &to)}) {
      if (format->size() == 4 || format->size() == 5) continue;
      return prep.error().InvalidArgument(name, " format must be of length 4 or 5, received ",
                                          format == &from ? "src_format = " : "dst_format = ", *format);
    }
    prep.MayAlias(0, 0);
    return CheckPermutation(prep.error());
  }
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

struct DataFormatVecPermute : Layouts {
  int32_t Prepare(sdk::Prep& prep) {
    ReadFormats(prep);
    const sdk::Error& error = prep.error();
    const weir_shape& shape = prep.shape(0);
    if (shape.rank != 1 && shape.rank != 2) {
      return error.InvalidArgument("input must be a vector or 2D tensor, but got shape ", shape);
    }
    const auto whole = static_cast<int64_t>(from.size()), spatial = whole - 2;
    if (shape.dims[0] != whole && shape.dims[0] != spatial) {
      return error.InvalidArgument(shape.rank, "D input must be of size ", spatial, " or ", whole, ", but got shape ",
                                   shape);
    }
    if (shape.rank == 2 && shape.dims[1] != 2) {
      return error.InvalidArgument("Second dimension of 2D input must be of size 2, but got shape ", shape);
    }
    if (const int32_t code = CheckPermutation(error); code != WEIR_OK) return code;
    if (shape.dims[0] == spatial) {
      for (std::string* format : {&from, &to}) {
        std::erase_if(*format, [](char axis) { return axis == 'N' || axis == 'C'; });
      }
      if (static_cast<int64_t>(from.size()) != spatial) {
        return error.InvalidArgument("Formats ", from, " and ", to, " have no axes N and C");
      }
    }
    return WEIR_OK;
  }
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
