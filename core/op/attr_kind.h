// The kind of an attribute value as text that needs no allocation.
#ifndef WEIR_CORE_OP_ATTR_KIND_H_
#define WEIR_CORE_OP_ATTR_KIND_H_

#include <string_view>

#include "core/op/attr_value.h"

namespace weir::op {

/// What AttrValue::TypeName says; the text is static. Empty for a value that is not set.
std::string_view KindOf(const AttrValue& value);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_ATTR_KIND_H_
