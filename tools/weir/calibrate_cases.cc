// The points of `weir profile calibrate`. A measured point serves shapes whose extents are within a factor of two, so
// extents four times apart cover all between them.
#include <algorithm>
#include <utility>

#include "tools/weir/calibrate.h"

namespace weir::cli {
namespace {

using Cases = std::vector<CalibrationCase>;

/// Products that take longer are left to the declared costs, which hold for large ones.
constexpr double kMostFlops = 3e8;

Shape Matrix(bool swapped, int64_t rows, int64_t columns) {
  return swapped ? Shape::Of({columns, rows}) : Shape::Of({rows, columns});
}

void AddProducts(Cases& cases) {
  struct Form {
    bool transpose_a, transpose_b, constant;
  };
  constexpr Form kForms[] = {
      {false, false, true}, {false, false, false}, {true, false, false}, {false, true, false}, {false, true, true}};
  for (const Form& form : kForms) {
    for (const int64_t m : {32, 8, 1, 256, 64, 1024}) {
      for (const int64_t k : {16, 64, 256, 1024, 4096}) {
        for (const int64_t n : {16, 64, 256, 1024, 4096}) {
          CalibrationCase made{.op = "MatMul"};
          made.flops = 2.0 * static_cast<double>(m * n * k);
          if (made.flops > kMostFlops) continue;
          if (form.transpose_a) made.flags.emplace_back("transpose_a");
          if (form.transpose_b) made.flags.emplace_back("transpose_b");
          if (form.constant) made.constants = {1};
          made.inputs = {Matrix(form.transpose_a, m, k), Matrix(form.transpose_b, k, n)};
          made.output = Shape::Of({m, n});
          cases.push_back(std::move(made));
        }
      }
    }
  }
}

/// Products of attention: queries by keys, and weights by values.
void AddBatchedProducts(Cases& cases) {
  for (const int64_t batch : {1, 8}) {
    for (const int64_t length : {32, 128, 512}) {
      for (const bool turned : {false, true}) {
        const int64_t heads = 8, depth = 64;
        CalibrationCase made{.op = "BatchMatMulV2"};
        made.flops = 2.0 * static_cast<double>(batch * heads * length * length * depth);
        if (made.flops > kMostFlops) continue;
        if (turned) made.flags = {"adj_y"};
        made.inputs = turned ? std::vector<Shape>{Shape::Of({batch, heads, length, depth}),
                                                  Shape::Of({batch, heads, length, depth})}
                             : std::vector<Shape>{Shape::Of({batch, heads, length, length}),
                                                  Shape::Of({batch, heads, length, depth})};
        made.output = Shape::Of({batch, heads, length, turned ? length : depth});
        cases.push_back(std::move(made));
      }
    }
  }
}

void AddSoftmaxes(Cases& cases) {
  constexpr int64_t kMostElements = 1 << 19;
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const int64_t rows : {1, 4, 16, 64, 256, 1024}) {
      for (const int64_t classes : {4, 16, 64, 256, 1024, 4096, 16384, 65536}) {
        if (rows * classes > kMostElements) continue;
        CalibrationCase made{.op = op};
        made.flops = 15.0 * static_cast<double>(rows * classes);
        made.inputs = {Shape::Of({rows, classes})};
        made.output = made.inputs[0];
        cases.push_back(std::move(made));
      }
    }
  }
}

/// A convolution of one image; of a depthwise one, `out` is the channels of image and result.
CalibrationCase Convolution(int64_t extent, int64_t window, int64_t in, int64_t out, int64_t stride) {
  CalibrationCase made{.op = in == 0 ? "DepthwiseConv2dNative" : "Conv2D"};
  const int64_t channels = in == 0 ? out : in, end = (extent + stride - 1) / stride;
  made.flops = 2.0 * static_cast<double>(end * end * window * window * std::max<int64_t>(in, 1) * out);
  made.settings = {{"padding", "SAME"}, {"strides", std::vector<int64_t>{1, stride, stride, 1}}};
  made.inputs = {Shape::Of({1, extent, extent, channels}), Shape::Of({window, window, channels, in == 0 ? 1 : out})};
  made.output = Shape::Of({1, end, end, out});
  return made;
}

/// Convolutions of images: constant filters, as inference has them, and fed ones, as training has.
void AddConvolutions(Cases& cases) {
  constexpr double kMostConvolutionFlops = 8e7;
  const auto add = [&](CalibrationCase made) {
    if (made.flops > kMostConvolutionFlops) return;
    for (const bool constant : {true, false}) {
      if (constant) made.constants = {1};
      if (!constant) made.constants = {};
      cases.push_back(made);
      if (made.settings[1].second == op::AttrValue(std::vector<int64_t>{1, 1, 1, 1})) {
        CalibrationCase valid = made;  // with as many places, and the padding in the image
        const int64_t more = made.inputs[1].dim(0) - 1, extent = made.inputs[0].dim(1) + more;
        valid.settings[0].second = op::AttrValue("VALID");
        valid.inputs[0] = Shape::Of({1, extent, extent, made.inputs[0].dim(3)});
        cases.push_back(std::move(valid));
      }
    }
  };
  for (const int64_t extent : {7, 28, 112}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t window : {3, 1}) {
        for (const int64_t in : {2, 16, 64, 256}) {
          for (const int64_t out : {16, 64, 256}) add(Convolution(extent, window, in, out, stride));
        }
      }
      for (const int64_t channels : {16, 64, 256}) add(Convolution(extent, 3, 0, channels, stride));
    }
  }
  for (const int64_t out : {16, 64}) add(Convolution(112, 7, 2, out, 2));
}

}  // namespace

std::vector<CalibrationCase> CalibrationCases() {
  Cases cases;
  AddSoftmaxes(cases);
  AddConvolutions(cases);
  AddBatchedProducts(cases);
  AddProducts(cases);
  return cases;
}

}  // namespace weir::cli
