// The place stage alone, with made-up devices.
#ifndef WEIR_TESTS_BENCH_PLACE_STAGE_H_
#define WEIR_TESTS_BENCH_PLACE_STAGE_H_

#include <memory>
#include <string>

#include "core/session/runtime.h"

namespace weir::bench {

/// A step of many nodes and a CPU with accelerators to place it on.
class PlaceStage {
 public:
  /// `nodes` as in LargeGraphDef; all of them run, without folding or merging. `devices` includes the CPU.
  static Result<std::unique_ptr<PlaceStage>> Make(const session::Runtime& runtime, int nodes, int devices = 4);
  ~PlaceStage();

  /// Places once by costs; false and `error` on failure.
  bool PlaceOnce(std::string* error);
  /// ns of one placement by costs; -1 and `error` on failure.
  double PlaceNs(std::string* error);

 private:
  struct State;
  explicit PlaceStage(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_PLACE_STAGE_H_
