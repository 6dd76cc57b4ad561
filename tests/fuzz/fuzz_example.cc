// Arbitrary bytes as an Example: malformed, or features whose values are not more than the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/builtin/example.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::builtin;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Features features;
  if (!ReadExample(bytes, &features)) return 0;
  for (const auto& [name, feature] : features) {
    const weir::Result<FeatureList> list = ReadFeature(feature);
    if (!list.ok() || list->dtype == weir::DType::kInvalid) continue;
    FeatureValues values(list->dtype);
    if (!values.Append(list->bytes)) continue;
    if (values.size() > list->bytes.size()) std::abort();
    const auto count = static_cast<int64_t>(values.size());
    const weir::Result<weir::Tensor> tensor = values.Take(weir::Shape::Of({count}));
    if (!tensor.ok() || tensor->elements() != count) std::abort();
  }
  return 0;
}
