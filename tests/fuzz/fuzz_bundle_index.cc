// Arbitrary bytes as the index of a checkpoint: the result is an error, or sorted entries.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/io/table_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto entries = weir::io::ParseTable(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.index");
  if (!entries.ok()) return 0;
  for (size_t i = 1; i < entries->size(); ++i) {
    if (!((*entries)[i - 1].key < (*entries)[i].key)) std::abort();
  }
  return 0;
}
