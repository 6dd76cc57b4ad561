// Arguments of runs by name.
#ifndef WEIR_CORE_SESSION_CALL_H_
#define WEIR_CORE_SESSION_CALL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace weir::session {

using Feed = std::pair<std::string, Tensor>;

/// Feeds, fetches and targets of a prepared call, by tensor and node names.
struct CallableOptions {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

using CallableHandle = int64_t;

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_CALL_H_
