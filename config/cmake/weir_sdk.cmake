# weir::sdk: the headers that a plugin is built with, and nothing else.
add_library(weir_sdk INTERFACE)
add_library(weir::sdk ALIAS weir_sdk)
set_target_properties(weir_sdk PROPERTIES EXPORT_NAME sdk)
target_compile_features(weir_sdk INTERFACE cxx_std_20)
target_include_directories(weir_sdk INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weir>")
