// The points of `weir profile calibrate`. A measured point serves shapes whose extents are within a factor of two, so
// extents four times apart cover all between them.
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

}  // namespace

std::vector<CalibrationCase> CalibrationCases() {
  Cases cases;
  AddSoftmaxes(cases);
  AddBatchedProducts(cases);
  AddProducts(cases);
  return cases;
}

}  // namespace weir::cli
