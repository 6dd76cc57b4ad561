#include "core/ops/elementwise.h"

#include <algorithm>
#include <string_view>

namespace weir::ops {

bool MayRefuseElements(const op::OpDef& op, DType type) {
  constexpr std::string_view kRefusing[] = {"Div", "FloorDiv", "FloorMod",   "Inv",         "Mod",
                                            "Pow", "RealDiv",  "Reciprocal", "TruncateDiv", "TruncateMod"};
  return IsInteger(type) && std::ranges::find(kRefusing, op.name) != std::end(kRefusing);
}

}  // namespace weir::ops
