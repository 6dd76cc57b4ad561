// Reading of tensors from checkpoints of version 1.
#ifndef WEIR_CORE_BUILTIN_LEGACY_CHECKPOINT_H_
#define WEIR_CORE_BUILTIN_LEGACY_CHECKPOINT_H_

#include <string>

#include "core/io/legacy_checkpoint.h"

namespace weir::builtin {

struct WantedSlice {
  std::string name;
  std::string spec;  // "10 20 0,5:-", or "" for the whole tensor
  DType dtype = DType::kInvalid;
};

/// The tensor or slice; errors have TensorFlow's texts, which name the files by `pattern`.
Result<Tensor> RestoreFrom(const io::LegacyReader& reader, const std::string& pattern, const WantedSlice& wanted);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_LEGACY_CHECKPOINT_H_
