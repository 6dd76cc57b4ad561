// The text form of the cases of stages_test: a request and a graph, one line each for feeds, options and nodes.
//
//   # what the file shows
//   threads 2                          ops that may run concurrently; 1 if absent
//   devices async                      the CPU and two asynchronous devices /device:ASYNC:0 and 1; else the CPU
//   devices streamed                   the CPU and /device:STREAMED:0, a device with streams
//   kernels openblas                   kernel set of the CPU beside Eigen's; none if absent
//   cut                                every device is a part of its own
//   deterministic                      SessionOptions::deterministic
//   feed x float [2,3]                 "?" for an extent: a shape-generic plan
//   fetch y
//   target init
//   w = const float [2] 1 2.5 ^init    a Const: dtype, shape, values (a single one fills the shape), control inputs
//   y = MatMul(x, w:0, ^init) T=float transpose_a=true shape=[2,?] or [*] @/device:CPU:0
//   ----
//   the expected text
#ifndef WEIR_TESTS_PIPELINE_STAGE_CASE_H_
#define WEIR_TESTS_PIPELINE_STAGE_CASE_H_

#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace weir::testing {

struct StageCase {
  struct Feed {
    std::string name;
    DType dtype = DType::kInvalid;
    PartialShape shape;
  };
  std::vector<Feed> feeds;
  std::vector<std::string> fetches, targets;
  std::string graph;  // GraphDef, text
  std::string devices, kernels;
  int threads = 1;
  bool cut = false;
  bool deterministic = false;

  /// Every fed shape is fully known.
  bool exact() const;
};

/// Adds a test failure for each line that it cannot read.
StageCase ParseStageCase(const std::string& text);

}  // namespace weir::testing

#endif  // WEIR_TESTS_PIPELINE_STAGE_CASE_H_
