// Arbitrary bytes as a TensorProto: the result is an error, or a tensor that survives export and import bit by bit.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/tensor/tensor_proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir::ExpansionBudget budget;
  budget.bytes = uint64_t{64} << 20;
  const auto tensor = weir::ParseTensorProto(std::string_view(reinterpret_cast<const char*>(data), size), &budget);
  if (!tensor.ok()) return 0;
  const weir::Result<std::string> bytes = weir::SerializeTensorProto(*tensor);
  if (!bytes.ok()) return 0;
  const auto again = weir::ParseTensorProto(*bytes);
  if (!again.ok() || !again->SameBits(*tensor)) std::abort();
  return 0;
}
