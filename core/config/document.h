// The keys for people to read: as a commented file, and as a list of what holds.
#ifndef WEIR_CORE_CONFIG_DOCUMENT_H_
#define WEIR_CORE_CONFIG_DOCUMENT_H_

#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/schema.h"

namespace weir::config {

/// The text of config/weir.toml: every key with what it means, what it may be and its default, all commented out.
std::string Document();

/// One key with what holds for it.
struct Shown {
  std::string key;
  Value value;
  std::string source;  // Origin::ToString
  Effect effect = Effect::kHonoured;
};

/// What `config` holds, in the order of the schema, plugins' tables last: every key, or those that somebody set.
enum class Show { kSet, kAll };
std::vector<Shown> List(const Config& config, Show show);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_DOCUMENT_H_
