# weir::sdk: only the headers for building a plugin. Users include <weir/sdk/v1/plugin.h>, in C++ or C11; its includes
# ("sdk/abi/…", "sdk/cpp/…") resolve from the source tree here and from include/weir when installed.
add_library(weir_sdk INTERFACE)
add_library(weir::sdk ALIAS weir_sdk)
set_target_properties(weir_sdk PROPERTIES EXPORT_NAME sdk)
target_compile_features(weir_sdk INTERFACE cxx_std_20)
target_include_directories(weir_sdk INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_BINARY_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weir>")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/include/weir/sdk/v1/plugin.h"
  CONTENT "#ifdef __cplusplus
#include \"sdk/cpp/plugin.h\" // IWYU pragma: export
#else
#include \"sdk/abi/compiler.h\"
#include \"sdk/abi/frontdoor.h\"
#include \"sdk/abi/cost.h\"
#include \"sdk/abi/device.h\"
#include \"sdk/abi/kernel.h\"
#include \"sdk/abi/plugin.h\"
#endif
" @ONLY)
