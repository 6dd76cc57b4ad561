// Native values of another plugin's device, for kernel sets that serve it.
//
// ```cpp
// struct NeedsContext {
//   uint64_t context = 0;
//   int32_t Prepare(Prep& prep) {
//     const NativeDevice native(prep.device(), "cuda/13");
//     return native.Get(WEIR_NATIVE_CONTEXT, prep.device(), &context, prep.error());
//   }
// };
// ```
#ifndef WEIR_SDK_CPP_NATIVE_H_
#define WEIR_SDK_CPP_NATIVE_H_

#include <string_view>

#include "sdk/abi/device_tables.h"
#include "sdk/abi/native.h"
#include "sdk/cpp/prepare.h"

namespace weir::sdk {

/// Table `id` of the plugin that opened `device`; null if it has none, or the host has no "device_tables/1".
template <class Table>
const Table* TableOf(weir_device* device, std::string_view id) {
  const auto* tables =
      static_cast<const weir_device_tables*>(HostTable()->get_interface(Str(WEIR_DEVICE_TABLES_INTERFACE)));
  return WEIR_HAS(tables, table) ? static_cast<const Table*>(tables->table(device, Str(id))) : nullptr;
}

/// "native/1" of a device. A value lives as long as the object that it stands for. Not for use in Run, which gets the
/// native stream by Env::native_stream.
class NativeDevice {
 public:
  /// `platform_abi`: the ABI whose values the kernel set understands.
  NativeDevice(weir_device* device, std::string_view platform_abi)
      : device_(device), wanted_(platform_abi), api_(TableOf<weir_native_api>(device, WEIR_NATIVE_INTERFACE)) {}

  /// Unimplemented if the device has no native values, or those of another ABI.
  int32_t Check(const Error& error) const {
    if (!WEIR_HAS(api_, native)) return error.Unimplemented("the device has no native values (native/1)");
    if (ToView(api_->platform_abi) == wanted_) return WEIR_OK;
    return error.Unimplemented("the device has native values of '", api_->platform_abi, "', wanted '", wanted_, "'");
  }
  /// `object`: the device, a weir_stream*, a weir_event* or a const weir_buf*, as `kind` (WEIR_NATIVE_*) says.
  int32_t Get(uint32_t kind, const void* object, uint64_t* value, const Error& error) const {
    if (const int32_t code = Check(error); code != WEIR_OK) return code;
    return api_->native(device_, kind, object, value, error.record());
  }

 private:
  weir_device* device_;
  std::string_view wanted_;
  const weir_native_api* api_;
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_NATIVE_H_
