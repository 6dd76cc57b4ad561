// The kind of an attribute value as static text.
#ifndef WEIR_CORE_OP_ATTR_KIND_H_
#define WEIR_CORE_OP_ATTR_KIND_H_

#include <string_view>

#include "core/op/attr_value.h"

namespace weir::op {

/// As AttrValue::TypeName, without an allocation: the text is static. Empty if the value is not set.
std::string_view KindOf(const AttrValue& value);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_ATTR_KIND_H_
