// Places in a tensor given by integer operands: rows, or slices by their coordinates.
#ifndef WEIR_PLUGINS_FUNCTORS_PLACES_H_
#define WEIR_PLUGINS_FUNCTORS_PLACES_H_

#include <array>
#include <string>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// `count` places in a tensor; each is the start of `row` contiguous elements.
struct Places {
  int64_t count = 0;
  int64_t row = 1;
  std::vector<int64_t> limits;  // by coordinate
  std::vector<int64_t> steps;   // elements per step of a coordinate
  std::vector<int64_t> dims;    // of the tensor; empty if each index names a row

  /// Indices of any shape; each names a row of `params`, whose rank is at least 1.
  static Places OfRows(const weir_shape& params, const weir_shape& indices) {
    Places places;
    places.count = SizeOf(indices, 0, indices.rank);
    places.row = SizeOf(params, 1, params.rank);
    places.limits = {params.dims[0]};
    places.steps = {places.row};
    return places;
  }

  /// indices: [outer…, depth], with as many coordinates as `params` has axes, or fewer.
  static Places OfSlices(const weir_shape& params, const weir_shape& indices) {
    Places places;
    const auto depth = static_cast<uint32_t>(indices.dims[indices.rank - 1]);
    places.count = SizeOf(indices, 0, indices.rank - 1);
    places.row = SizeOf(params, depth, params.rank);
    places.dims = DimsOf(params);
    places.limits.assign(params.dims, params.dims + depth);
    for (uint32_t i = 0; i < depth; ++i) places.steps.push_back(SizeOf(params, i + 1, params.rank));
    return places;
  }

  /// First element of place i; -1 if it is out of range.
  int64_t At(const sdk::Integers& indices, int64_t i) const {
    const auto depth = static_cast<int64_t>(limits.size());
    int64_t at = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t index = indices[i * depth + k];
      if (index < 0 || index >= limits[static_cast<size_t>(k)]) return -1;
      at += index * steps[static_cast<size_t>(k)];
    }
    return at;
  }

  /// Ok if every place is in range.
  int32_t Check(const sdk::Error& error, const sdk::Integers& indices) const {
    for (int64_t i = 0; i < count; ++i) {
      if (At(indices, i) < 0) return Refuse(error, indices, i);
    }
    return WEIR_OK;
  }

  /// InvalidArgument with TensorFlow's text for place i; `what`: the text's name for the tensor's shape.
  [[gnu::cold, gnu::noinline]] int32_t Refuse(const sdk::Error& error, const sdk::Integers& indices, int64_t i,
                                              std::string_view what = "shape") const {
    const weir_shape& shape = indices.shape();
    if (dims.empty()) return IndexOutOfRange(error, "indices", shape, i, indices[i], " is not in ", limits[0]);
    const auto depth = static_cast<int64_t>(limits.size());
    std::string coordinates;
    for (int64_t k = 0; k < depth; ++k) coordinates += (k > 0 ? ", " : "") + std::to_string(indices[i * depth + k]);
    std::vector<int64_t> position(shape.rank - 1);
    for (uint32_t k = shape.rank - 1; k-- > 0; i /= shape.dims[k]) position[k] = i % shape.dims[k];
    const weir_shape at{shape.rank - 1, 0, position.data()}, whole{static_cast<uint32_t>(dims.size()), 0, dims.data()};
    if (at.rank == 0) {
      return error.InvalidArgument("indices = [", coordinates, "] does not index into ", what, " ", whole);
    }
    return error.InvalidArgument("indices", at, " = [", coordinates, "] does not index into ", what, " ", whole);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_PLACES_H_
