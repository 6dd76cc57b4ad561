// Arbitrary text as a device name: the result is an error, or a name that survives writing and reading, matches itself
// and merges with itself. Two names either do not merge, or merge to one that matches both.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/device/device_name.h"

namespace {

using weir::device::DeviceName;

void Check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view first = text.substr(0, text.find('\n'));
  const std::string_view second = text.substr(first.size());
  const weir::Result<DeviceName> a = weir::device::ParseDeviceName(first);
  if (!a.ok()) return 0;
  const weir::Result<DeviceName> again = weir::device::ParseDeviceName(a->ToString());
  Check(again.ok() && *again == *a);
  Check(weir::device::Matches(*a, *a));
  const weir::Result<DeviceName> b = weir::device::ParseDeviceName(second.empty() ? second : second.substr(1));
  if (!b.ok()) return 0;
  const weir::Result<DeviceName> both = weir::device::MergeNames(*a, *b, false);
  if (both.ok()) Check(weir::device::Matches(*a, *both) && weir::device::Matches(*b, *both));
  Check(weir::device::MergeNames(*a, *a, false).ok());
  static_cast<void>(weir::device::MergeNames(*a, *b, true).ok());
  return 0;
}
