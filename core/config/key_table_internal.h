// The rows of the schema, for schema.cc.
#ifndef WEIR_CORE_CONFIG_KEY_TABLE_INTERNAL_H_
#define WEIR_CORE_CONFIG_KEY_TABLE_INTERNAL_H_

#include <vector>

#include "core/config/schema.h"

namespace weir::config {

std::vector<Key> MakeKeyTable();

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_KEY_TABLE_INTERNAL_H_
