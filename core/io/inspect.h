// Inspection of checkpoints, and comparison with the tensors that a model needs.
#ifndef WEIR_CORE_IO_INSPECT_H_
#define WEIR_CORE_IO_INSPECT_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/io/bundle.h"
#include "core/io/restore_report.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace weir::io {

/// Selects the output of InspectCheckpoint.
struct InspectOptions {
  std::string tensor_name;   // only this tensor, with its value
  bool all_tensors = false;  // every name and value
  bool all_tensor_names = false;
};

/// The format of TensorFlow 1.x's print_tensors_in_checkpoint_file: "tensor_name:  v1", then the value in NumPy's
/// format, sorted by name. Without options, one line "v1 (DT_FLOAT) [3]" per tensor.
Result<std::string> InspectCheckpoint(const std::string& prefix, const InspectOptions& options = {});

/// A tensor that a model restores: checkpoint key, type and shape.
struct WantedTensor {
  std::string name;
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

/// Compares using the index only; reads no tensor.
RestoreReport CompareCheckpoint(const BundleReader& checkpoint, const std::vector<WantedTensor>& wanted);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_INSPECT_H_
