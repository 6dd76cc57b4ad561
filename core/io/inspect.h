// What a checkpoint holds, for people, and how it fits what a model wants.
#ifndef WEIR_CORE_IO_INSPECT_H_
#define WEIR_CORE_IO_INSPECT_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/io/bundle.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace weir::io {

/// What InspectCheckpoint prints.
struct InspectOptions {
  std::string tensor_name;   // only this one, with its value
  bool all_tensors = false;  // every name and value
  bool all_tensor_names = false;
};

/// As TensorFlow 1.x's print_tensors_in_checkpoint_file: "tensor_name:  v1", then the value as NumPy prints it,
/// sorted by name. With no option set, one line "v1 (DT_FLOAT) [3]" per tensor.
Result<std::string> InspectCheckpoint(const std::string& prefix, const InspectOptions& options = {});

/// What a model wants to restore: a checkpoint key, with type and shape.
struct WantedTensor {
  std::string name;
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

/// How a checkpoint fits the wanted tensors. Names in the order of `wanted`, extra ones sorted.
struct RestoreReport {
  struct Mismatch {
    std::string name;
    std::string text;  // "checkpoint has float [3], wanted float [4]"
  };
  std::vector<std::string> matched;
  std::vector<std::string> missing;  // wanted, not in the checkpoint
  std::vector<std::string> extra;    // in the checkpoint, not wanted
  std::vector<Mismatch> mismatched;  // another type or shape

  bool complete() const { return missing.empty() && mismatched.empty(); }
  /// Several lines; names every tensor that is not matched, and extra ones near a missing one.
  std::string ToString() const;
};

/// Compares by the index alone; reads no tensor.
RestoreReport CompareCheckpoint(const BundleReader& checkpoint, const std::vector<WantedTensor>& wanted);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_INSPECT_H_
