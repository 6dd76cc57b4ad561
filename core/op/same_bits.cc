#include "core/op/same_bits.h"

#include <algorithm>

namespace weir::op {
namespace {

bool HoldsState(const ArgDef& arg) { return arg.is_ref || arg.dtype == DType::kResource; }

bool IsFunction(const AttrDef& attr) { return attr.type == "func" || attr.type == "list(func)"; }

}  // namespace

SameBits SameBitsOf(const OpDef& op) {
  if (op.category == Category::kFiles || op.category == Category::kNetwork) return SameBits::kNever;
  if (std::ranges::any_of(op.attrs, IsFunction)) return SameBits::kFunctions;
  if (!op.MayDiffer()) return SameBits::kAlways;
  if (op.FindAttr("seed") != nullptr && op.FindAttr("seed2") != nullptr) return SameBits::kSeeds;
  const bool state = std::ranges::any_of(op.inputs, HoldsState) || std::ranges::any_of(op.outputs, HoldsState);
  return state ? SameBits::kState : SameBits::kNever;
}

std::string_view Name(SameBits promise) {
  switch (promise) {
    case SameBits::kAlways:
      return "always";
    case SameBits::kSeeds:
      return "with equal seeds";
    case SameBits::kState:
      return "with equal state";
    case SameBits::kFunctions:
      return "as its functions";
    case SameBits::kNever:
      return "not promised";
  }
  return "unknown";
}

}  // namespace weir::op
