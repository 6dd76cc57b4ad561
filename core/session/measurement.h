// Times of a step's runs.
#ifndef WEIR_CORE_SESSION_MEASUREMENT_H_
#define WEIR_CORE_SESSION_MEASUREMENT_H_

#include <cstdint>
#include <map>
#include <string>

namespace weir::session {

/// What runs of a step took, beside the prediction. Medians of all runs but the first.
struct StepMeasurement {
  int runs = 0;
  int64_t predicted_ns = 0;
  int64_t step_ns = 0;
  std::map<std::string, int64_t> node_ns;  // on its device, all executions of a run together
  std::string profile = {};                // core/kernel/measured.h
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_MEASUREMENT_H_
