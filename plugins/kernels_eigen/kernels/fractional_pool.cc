// Maxima and means of cells whose sizes differ by one pixel at random, and their gradients. B. Graham, "Fractional
// max-pooling" (2014). The cells are TensorFlow's for a seed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/float_lists.h"
#include "plugins/kernels_eigen/kernels/node_stream.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Error;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// Where the cells along one axis begin, and the end of the last one.
using CellEdges = std::vector<int64_t>;

/// The pixels [first, last] of cell i of an axis of `extent` pixels. Overlapping cells share their edges.
struct CellRange {
  int64_t first, last;
  CellRange(const int64_t* edges, int64_t i, int64_t extent, bool overlapping) : first(edges[i]), last(edges[i + 1]) {
    if (!overlapping && last > std::numeric_limits<int64_t>::min()) --last;
    last = std::min(last, extent - 1);
  }
};

/// Edges at multiples of one number with one random offset.
CellEdges PseudoRandomEdges(Words words, int64_t extent, int64_t cells) {
  const double step = static_cast<double>(extent) / static_cast<double>(cells);
  const auto least = static_cast<double>(extent / cells);
  const double offset =
      words.NextDouble() * std::min((least + 2) / step - 1,
                                    (static_cast<double>(extent) + 1 - least) / step - static_cast<double>(cells - 1));
  CellEdges edges(static_cast<size_t>(cells) + 1, 0);
  for (int64_t i = 1; i < cells; ++i) {
    edges[static_cast<size_t>(i)] = static_cast<int64_t>(std::ceil(step * (static_cast<double>(i) + offset))) - 1;
  }
  edges.back() = extent;
  return edges;
}

/// Edges of cells in random order, as many large ones as there have to be.
CellEdges RandomEdges(Words words, int64_t extent, int64_t cells) {
  std::vector<int64_t> sizes(static_cast<size_t>(cells), extent / cells);
  for (int64_t i = 0; i < extent % cells; ++i) ++sizes[static_cast<size_t>(i)];
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    std::swap(sizes[i], sizes[i + words.Next() % static_cast<uint32_t>(sizes.size() - i)]);
  }
  CellEdges edges = {0};
  for (const int64_t size : sizes) edges.push_back(edges.back() + size);
  return edges;
}

struct FractionalPlan {
  NodeStream stream;
  bool deterministic = false, pseudo = false, overlapping = false;
  int64_t cells[2] = {};

  int32_t Plan(const Prep& prep, std::string_view what) {
    const sdk::Node& node = prep.node();
    const Error& error = prep.error();
    pseudo = node.Bool("pseudo_random");
    overlapping = node.Bool("overlapping");
    deterministic = node.Bool("deterministic");
    const std::span<const double> ratio = FloatsOf(node, "pooling_ratio");
    if (ratio.size() != 4) return error.InvalidArgument("pooling_ratio field must specify 4 dimensions");
    for (const double one : ratio) {
      if (one >= 1) continue;
      return error.InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", static_cast<float>(one));
    }
    if (ratio[0] != 1 || ratio[3] != 1) {
      return error.Unimplemented("Fractional ", what,
                                 " pooling is not yet supported on the batch nor channel dimension.");
    }
    if (!deterministic && (node.Int("seed") != 0 || node.Int("seed2") != 0)) {
      return error.InvalidArgument("Both seed and seed2 should be 0 if deterministic is false.");
    }
    const weir_shape& images = prep.shape(0);
    if (images.rank != 4) return error.InvalidArgument("tensor_in must be 4-dimensional");
    for (size_t i = 0; i < 4; ++i) {
      const auto extent = static_cast<float>(images.dims[i]), divisor = static_cast<float>(ratio[i]);
      if (extent < divisor) {
        return error.InvalidArgument("Pooling ratio is higher than input dimension size for dimension ", i,
                                     ". Input dim size: ", images.dims[i], " pooling ratio: ", divisor);
      }
      if (i == 1 || i == 2) cells[i - 1] = static_cast<int64_t>(std::floor(extent / divisor));
    }
    int32_t code = ExpectOutput(prep, 0, {images.dims[0], cells[0], cells[1], images.dims[3]});
    if (code == WEIR_OK) code = ExpectOutput(prep, 1, {cells[0] + 1});
    if (code == WEIR_OK) code = ExpectOutput(prep, 2, {cells[1] + 1});
    return code != WEIR_OK ? code : stream.Open(prep);
  }

  /// Writes the edges of rows and columns. Cells that are drawn once are those of the stream's first blocks.
  void Draw(const weir_shape& images, View<int64_t> rows, View<int64_t> columns) const {
    uint64_t next = 0;
    const View<int64_t>* const to[] = {&rows, &columns};
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t n = cells[axis], extent = images.dims[axis + 1];
      const uint64_t blocks = pseudo ? 1 : static_cast<uint64_t>(n + 3) / 4;
      const uint64_t first = deterministic ? next : stream.Reserve(blocks);
      next += blocks;
      const Words words(stream.generator(), first);
      const CellEdges edges = pseudo ? PseudoRandomEdges(words, extent, n) : RandomEdges(words, extent, n);
      std::copy(edges.begin(), edges.end(), to[axis]->data());
    }
  }

  /// Calls body(pixel, cell, pixels of the cell) for each pixel of each cell, both as numbers of rows of channels.
  template <class Body>
  void ForPixels(const weir_shape& images, View<const int64_t> rows, View<const int64_t> columns, Body&& body) const {
    const int64_t height = images.dims[1], width = images.dims[2];
    int64_t cell = 0;
    for (int64_t image = 0; image < images.dims[0]; ++image) {
      for (int64_t r = 0; r < cells[0]; ++r) {
        const CellRange down(rows.data(), r, height, overlapping);
        for (int64_t c = 0; c < cells[1]; ++c, ++cell) {
          const CellRange across(columns.data(), c, width, overlapping);
          const int64_t pixels = (down.last - down.first + 1) * (across.last - across.first + 1);
          for (int64_t y = down.first; y <= down.last; ++y) {
            for (int64_t x = across.first; x <= across.last; ++x) body((image * height + y) * width + x, cell, pixels);
          }
        }
      }
    }
  }

  static View<const int64_t> Edges(View<int64_t> drawn) { return {drawn.data(), drawn.shape()}; }
};

struct FractionalMaxPool : FractionalPlan {
  int32_t Prepare(const Prep& prep) { return Plan(prep, "max"); }

  template <class T>
  void Run(View<const T> images, View<T> pooled, View<int64_t> rows, View<int64_t> columns) {
    Draw(images.shape(), rows, columns);
    const int64_t depth = images.dim(3);
    std::fill_n(pooled.data(), pooled.size(), std::numeric_limits<T>::lowest());
    ForPixels(images.shape(), Edges(rows), Edges(columns), [&](int64_t pixel, int64_t cell, int64_t) {
      const T* const from = images.data() + pixel * depth;
      T* const to = pooled.data() + cell * depth;
      for (int64_t d = 0; d < depth; ++d) to[d] = to[d] < from[d] ? from[d] : to[d];  // NaN is not larger
    });
  }
};

struct FractionalAvgPool : FractionalPlan {
  int32_t Prepare(const Prep& prep) { return Plan(prep, "average"); }

  template <class T>
  void Run(View<const T> images, View<T> pooled, View<int64_t> rows, View<int64_t> columns) {
    Draw(images.shape(), rows, columns);
    const int64_t depth = images.dim(3);
    std::vector<int64_t> counts(static_cast<size_t>(pooled.size() / depth), 1);
    std::fill_n(pooled.data(), pooled.size(), T(0));
    ForPixels(images.shape(), Edges(rows), Edges(columns), [&](int64_t pixel, int64_t cell, int64_t pixels) {
      const T* const from = images.data() + pixel * depth;
      T* const to = pooled.data() + cell * depth;
      for (int64_t d = 0; d < depth; ++d) to[d] = Sum(to[d], from[d]);
      counts[static_cast<size_t>(cell)] = pixels;
    });
    T* to = pooled.data();
    for (const int64_t count : counts) {
      for (int64_t d = 0; d < depth; ++d) *to++ /= static_cast<T>(count);
    }
  }
};

/// dy goes to the first largest pixel of its cell.
struct FractionalMaxPoolGrad {
  bool overlapping = false;

  int32_t Prepare(const Prep& prep) {
    overlapping = prep.node().Bool("overlapping");
    constexpr const char* kNames[] = {"orig_input", "orig_output", "out_backprop", "row_pooling_sequence",
                                      "col_pooling_sequence"};
    for (uint32_t i = 0; i < 3; ++i) {
      if (i < 2 && prep.shape(i).rank != 4) {
        return prep.error().InvalidArgument(kNames[i], " should be a tensor of rank 4, got shape ", prep.shape(i));
      }
      if (prep.size(i) != 0) continue;
      return prep.error().InvalidArgument(kNames[i], " must not be empty, got shape ", prep.shape(i));
    }
    for (uint32_t i = 3; i < 5; ++i) {
      if (prep.shape(i).rank == 1) continue;
      return prep.error().InvalidArgument(kNames[i], " must be a vector, received shape ", prep.shape(i));
    }
    return WEIR_OK;
  }

  template <class T>
  int32_t Run(sdk::Env& env, View<const T> images, View<const T> pooled, View<const T> dy, View<const int64_t> rows,
              View<const int64_t> columns, View<T> dx) const {
    const int64_t inputs = images.size(), outputs = pooled.size();
    std::vector<int64_t> chosen(static_cast<size_t>(outputs), -1);
    if (images.dim(3) == pooled.dim(3)) Choose(images, pooled.shape(), rows, columns, &chosen);
    for (int64_t i = 0; i < outputs; ++i) {
      const int64_t at = chosen[static_cast<size_t>(i)];
      if ((at < 0 ? std::numeric_limits<T>::lowest() : images[at]) == pooled[i]) continue;
      return env.error().InvalidArgument("tensor_out_dup is not the same as tensor_out");
    }
    std::fill_n(dx.data(), inputs, T(0));
    for (int64_t i = 0, n = dy.size(); i < n; ++i) {
      const int64_t at = i < outputs ? chosen[static_cast<size_t>(i)] : -1;
      if (at < 0) return env.error().InvalidArgument("Invalid input backprop index: ", at, ", ", inputs);
      dx[at] = Sum(dx[at], dy[i]);
    }
    return WEIR_OK;
  }

 private:
  /// The element of `images` that each output is; -1 for those without a cell.
  template <class T>
  void Choose(View<const T> images, const weir_shape& pooled, View<const int64_t> rows, View<const int64_t> columns,
              std::vector<int64_t>* chosen) const {
    const int64_t height = images.dim(1), width = images.dim(2), depth = images.dim(3);
    const auto known = [](int64_t cells, View<const int64_t> edges) {
      return std::max<int64_t>(0, std::min(cells, edges.size() - 1));
    };
    const int64_t down = known(pooled.dims[1], rows), across = known(pooled.dims[2], columns);
    for (int64_t image = 0; image < std::min(images.dim(0), pooled.dims[0]); ++image) {
      for (int64_t cell = 0; cell < down * across; ++cell) {
        const int64_t r = cell / across, c = cell % across;
        const CellRange y_range(rows.data(), r, height, overlapping), x_range(columns.data(), c, width, overlapping);
        if (y_range.first < 0 || x_range.first < 0) continue;
        int64_t* const to = chosen->data() + ((image * pooled.dims[1] + r) * pooled.dims[2] + c) * depth;
        for (int64_t y = y_range.first; y <= y_range.last; ++y) {
          for (int64_t x = x_range.first; x <= x_range.last; ++x) {
            const int64_t from = ((image * height + y) * width + x) * depth;
            for (int64_t d = 0; d < depth; ++d) {
              if (to[d] < 0 || images[to[d]] < images[from + d]) to[d] = from + d;
            }
          }
        }
      }
    }
  }
};

/// dy is divided among the pixels of its cell.
struct FractionalAvgPoolGrad {
  bool overlapping = false;
  int64_t batch = 0, height = 0, width = 0, depth = 0;

  int32_t Prepare(const Prep& prep) {
    const Error& error = prep.error();
    overlapping = prep.node().Bool("overlapping");
    if (prep.shape(0).rank != 1 || prep.shape(0).dims[0] != 4) {
      return error.InvalidArgument("original input tensor shape must be1-dimensional and 4 elements");
    }
    const weir_shape& dy = prep.shape(1);
    if (dy.rank != 4) return error.InvalidArgument("out_backprop must be 4-dimensional");
    for (uint32_t i = 0; i < 4; ++i) {
      if (dy.dims[i] > 0) continue;
      return error.InvalidArgument("out_backprop must be positive for all dimension, got:", dy.dims[i]);
    }
    for (const uint32_t axis : {1u, 2u}) {
      if (prep.size(axis + 1) > dy.dims[axis]) continue;
      return error.InvalidArgument("Given out_backprop shape ", dy, ", ", axis == 1 ? "row" : "col",
                                   "_seq_tensor must have at least ", dy.dims[axis] + 1, " elements, but got ",
                                   prep.size(axis + 1));
    }
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    constexpr const char* kAxes[] = {"Batch", "Rows", "Columns", "Depth"};
    for (const int64_t dim : dims) {
      if (dim < 0) return error.InvalidArgument("Expected a non-negative size, got ", dim);
    }
    for (size_t i = 0; i < 4; ++i) {
      if (dims[i] == 0) return error.InvalidArgument(kAxes[i], " dimension of input must not be 0");
    }
    batch = dims[0], height = dims[1], width = dims[2], depth = dims[3];
    if (dy.dims[0] > batch || dy.dims[3] > depth) {
      return error.InvalidArgument("out_backprop shape ", dy, " has more images or channels than the input ",
                                   ShapeOf(dims));
    }
    return ExpectOutput(prep, 0, dims);
  }

  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, View<const T> dy, View<const int64_t> rows, View<const int64_t> columns,
              View<T> dx) const {
    std::vector<double> sums(static_cast<size_t>(dx.size()), 0.0);
    const int64_t channels = dy.dim(3);
    const T* from = dy.data();
    for (int64_t image = 0; image < dy.dim(0); ++image) {
      for (int64_t r = 0; r < dy.dim(1); ++r) {
        const CellRange down(rows.data(), r, height, overlapping);
        if (down.first < 0 || down.last < 0) return Negative(env.error(), "Row", rows);
        for (int64_t c = 0; c < dy.dim(2); ++c, from += channels) {
          const CellRange across(columns.data(), c, width, overlapping);
          if (across.first < 0 || across.last < 0) return Negative(env.error(), "Column", columns);
          const auto pixels =
              static_cast<double>(down.last - down.first + 1) * static_cast<double>(across.last - across.first + 1);
          for (int64_t y = down.first; y <= down.last; ++y) {
            for (int64_t x = across.first; x <= across.last; ++x) {
              double* const to = sums.data() + ((image * height + y) * width + x) * depth;
              for (int64_t d = 0; d < channels; ++d) to[d] += static_cast<double>(from[d]) / pixels;
            }
          }
        }
      }
    }
    std::transform(sums.begin(), sums.end(), dx.data(), [](double sum) { return static_cast<T>(sum); });
    return WEIR_OK;
  }

 private:
  static int32_t Negative(const Error& error, const char* name, View<const int64_t> edges) {
    std::vector<std::string> texts;
    size_t widest = 0;
    for (int64_t i = 0; i < edges.size(); ++i) {
      texts.push_back(std::to_string(edges[i]));
      widest = std::max(widest, texts.back().size());
    }
    std::string all;
    for (const std::string& text : texts) {
      all.append(all.empty() ? "" : " ").append(widest - text.size(), ' ').append(text);
    }
    return error.InvalidArgument(name, " sequence tensor values must not be negative, got ", all);
  }
};

}  // namespace

void AddFractionalPool(sdk::KernelTable& k) {
  constexpr auto kPooled = kFloat + kIndex;
  k.Add<FractionalMaxPool>("FractionalMaxPool", kPooled).Class(WEIR_CLASS_REDUCE, 4);
  k.Add<FractionalAvgPool>("FractionalAvgPool", kPooled).Class(WEIR_CLASS_REDUCE, 4);
  k.Add<FractionalMaxPoolGrad>("FractionalMaxPoolGrad", kPooled).Class(WEIR_CLASS_REDUCE, 4);
  k.Add<FractionalAvgPoolGrad>("FractionalAvgPoolGrad", kPooled).Class(WEIR_CLASS_REDUCE, 4);
}

}  // namespace weir::kernels_eigen
