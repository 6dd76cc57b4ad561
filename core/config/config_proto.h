// Reads settings from TensorFlow's ConfigProto and writes them.
#ifndef WEIR_CORE_CONFIG_CONFIG_PROTO_H_
#define WEIR_CORE_CONFIG_CONFIG_PROTO_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/settings.h"

namespace weir::config {

/// Adds the settings of a ConfigProto, in wire or text format (detected by content). `origin` names the source; fields
/// of a text get line numbers. As in TensorFlow, absent fields have no effect, except that a missing
/// allow_soft_placement means false.
/// `notes` gets a line for each field that weir ignores. InvalidArgument for a message that cannot be parsed and for
/// values that `Settings::Set` rejects.
Status ReadConfigProto(std::string_view bytes, const Origin& origin, Settings& settings,
                       std::vector<std::string>& notes);

/// The serialized ConfigProto with the settings that `config` has from any source and that a ConfigProto can hold.
Result<std::string> WriteConfigProto(const Config& config);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_CONFIG_PROTO_H_
