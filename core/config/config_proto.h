// Reads settings from TensorFlow's ConfigProto.
#ifndef WEIR_CORE_CONFIG_CONFIG_PROTO_H_
#define WEIR_CORE_CONFIG_CONFIG_PROTO_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/settings.h"

namespace weir::config {

/// Adds what a ConfigProto says, in wire or text format, told apart by content; `origin` is where it came from, and
/// gets the line of each field of a text. As in TensorFlow, a field that is not there says nothing, but for
/// allow_soft_placement: a ConfigProto without it means false.
/// `notes` takes a line for each field that is a hint which weir has no use for. InvalidArgument for what cannot be
/// parsed, and for values that `Settings::Set` refuses.
Status ReadConfigProto(std::string_view bytes, const Origin& origin, Settings& settings,
                       std::vector<std::string>& notes);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_CONFIG_PROTO_H_
