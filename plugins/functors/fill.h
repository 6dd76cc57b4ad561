// Arrays made from scalars: checks and constants.
#ifndef WEIR_PLUGINS_FUNCTORS_FILL_H_
#define WEIR_PLUGINS_FUNCTORS_FILL_H_

#include <bit>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

struct FillPlan {
  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    if (prep.size(1) != 1) return prep.error().InvalidArgument("value must be a scalar, got shape ", prep.shape(1));
    return ExpectOutput(prep, 0, dims);
  }
};

/// The low 64 bits of 1, or of true; the others are 0.
inline uint64_t BitsOfOne(uint32_t dtype) {
  switch (dtype) {
    case WEIR_FLOAT16:
      return 0x3c00;
    case WEIR_BFLOAT16:
      return 0x3f80;
    case WEIR_FLOAT32:
    case WEIR_COMPLEX64:
      return std::bit_cast<uint32_t>(1.0f);
    case WEIR_FLOAT64:
    case WEIR_COMPLEX128:
      return std::bit_cast<uint64_t>(1.0);
    default:
      return 1;
  }
}

/// Equal steps from start to stop; the last element is `stop` itself.
struct LinSpacePlan {
  int32_t Prepare(sdk::Prep& prep) {
    const char* names[] = {"start", "stop", "num"};
    for (uint32_t i = 0; i < 3; ++i) {
      if (prep.shape(i).rank == 0) continue;
      return prep.error().InvalidArgument(names[i], " must be a scalar, not shape ", prep.shape(i));
    }
    int64_t num = 0;
    if (const int32_t code = Steering(prep, 2, "num", &num); code != WEIR_OK) return code;
    if (num <= 0) return prep.error().InvalidArgument("Requires num > 0: ", num);
    return ExpectOutput(prep, 0, {num});
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_FILL_H_
