// Sounds as files.
#ifndef WEIR_CORE_BUILTIN_WAV_H_
#define WEIR_CORE_BUILTIN_WAV_H_

#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.h"

namespace weir::builtin {

/// A WAV file of 16-bit samples. `audio`: samples between -1 and 1, those of all channels side by side; `channels`: 1
/// to 32767. InvalidArgument for more than such a file can hold.
Result<std::string> WavFile(std::span<const float> audio, int64_t channels, uint64_t hertz);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_WAV_H_
