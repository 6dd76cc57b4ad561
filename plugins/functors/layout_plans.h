// Formats of images such as NHWC: their checks, for DataFormatDimMap and DataFormatVecPermute.
#ifndef WEIR_PLUGINS_FUNCTORS_LAYOUT_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_LAYOUT_PLANS_H_

#include <algorithm>
#include <string>
#include <utility>

#include "sdk/cpp/prepare.h"

namespace weir::functors {

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

struct DimMapPlan : Layouts {
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
};

struct VecPermutePlan : Layouts {
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
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_LAYOUT_PLANS_H_
