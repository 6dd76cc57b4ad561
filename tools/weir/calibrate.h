// What `weir profile calibrate` measures.
#ifndef WEIR_TOOLS_WEIR_CALIBRATE_H_
#define WEIR_TOOLS_WEIR_CALIBRATE_H_

#include <string>
#include <vector>

#include "core/op/attr_value.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace weir::cli {

/// One point of a calibration file: a node whose kernels are timed.
struct CalibrationCase {
  std::string op;
  DType dtype = DType::kFloat;
  std::vector<std::string> flags;  // boolean attributes that are true, sorted
  op::AttrList settings = {};      // texts and lists of integers that are not the defaults
  std::vector<Shape> inputs;
  std::vector<size_t> constants;  // inputs whose values are known when a plan is made
  Shape output;
  double flops = 0;
};

/// All cases, those that matter most first. A family of ops is a function of calibrate_cases.cc.
std::vector<CalibrationCase> CalibrationCases();

/// Time that this thread has run, in ns: other processes that share the core do not count.
double ThreadNs();

/// Rates of one core.
struct CoreRates {
  double flops_per_ns = 0;         // float multiply-adds, two operations each, in the widest allowed vectors
  double memory_bytes_per_ns = 0;  // read and written by a copy beyond the caches
  double cache_bytes_per_ns = 0;   // the same within the second cache
};
/// `level`: the highest level of x86-64 whose instructions may be used, 1 to 4. Takes 0.2 s.
CoreRates MeasureRates(int level);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_CALIBRATE_H_
