// Comparison of the attributes of two nodes of one op.
#ifndef WEIR_CORE_OP_EQUAL_ATTRS_H_
#define WEIR_CORE_OP_EQUAL_ATTRS_H_

#include "core/op/attrs.h"

namespace weir::op {

/// Both views must have the same definition. Compares declared attributes including defaults; ignores all others.
bool EqualAttrs(const AttrView& a, const AttrView& b);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_EQUAL_ATTRS_H_
