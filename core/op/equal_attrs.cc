#include "core/op/equal_attrs.h"

namespace weir::op {

bool EqualAttrs(const AttrView& a, const AttrView& b) {
  for (const AttrDef& def : a.def().attrs) {
    const AttrValue* const left = a.Find(def.name);
    const AttrValue* const right = b.Find(def.name);
    if (left == right) continue;
    if (left == nullptr || right == nullptr || !(*left == *right)) return false;
  }
  return true;
}

}  // namespace weir::op
