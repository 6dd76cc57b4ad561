// Documentation of the keys: a commented file, and a list of current values.
#ifndef WEIR_CORE_CONFIG_DOCUMENT_H_
#define WEIR_CORE_CONFIG_DOCUMENT_H_

#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/schema.h"

namespace weir::config {

/// The text of config/weir.toml: every key with its meaning, range and default, all commented out.
std::string Document();

/// One key with its current value.
struct Shown {
  std::string key;
  Value value;
  std::string source;  // Origin::ToString
  Effect effect = Effect::kHonoured;
};

/// Lists the values in `config` in schema order, plugin tables last: every key, or only those that were set.
enum class Show { kSet, kAll };
std::vector<Shown> List(const Config& config, Show show);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_DOCUMENT_H_
