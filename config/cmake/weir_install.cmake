# weir::weir, the shared library for users outside, and what `cmake --install` puts where:
#   bin/weir  lib/libweir.so.X.Y  lib/weir/plugins/*.so  lib/cmake/weir  include/weir/{weir.h,core,sdk}  share/weir/sdk
include(CMakePackageConfigHelpers)

# weir_reached_headers(<out> header...): the headers and all that they include of ours, relative to the source tree.
function(weir_reached_headers out)
  set(open ${ARGN})
  set(seen "")
  while(open)
    list(POP_FRONT open header)
    if(header IN_LIST seen)
      continue()
    endif()
    list(APPEND seen "${header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${header}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" lines REGEX "^#include \"(core|sdk)/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" header "${line}")
      list(APPEND open "${header}")
    endforeach()
  endwhile()
  set(${out} ${seen} PARENT_SCOPE)
endfunction()

# The folders that users call. Only their libraries export symbols; all others stay hidden inside, and so does every
# dependency.
set(weir_exporting base tensor trace io op graph scope config place session client)
if(WEIR_SHARED)
  set(map "${PROJECT_SOURCE_DIR}/config/cmake/weir_exports.map")
  add_library(weir_shared SHARED)
  add_library(weir::weir ALIAS weir_shared)
  set_target_properties(weir_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME weir EXPORT_NAME weir
    LINK_DEPENDS "${map}" VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(weir_shared INTERFACE cxx_std_20)
  target_link_libraries(weir_shared INTERFACE fmt::fmt)  # the format strings of Status
  target_link_options(weir_shared PRIVATE "LINKER:--version-script=${map}" "LINKER:-z,relro" "LINKER:-z,now")
  target_include_directories(weir_shared INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_BINARY_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR};${CMAKE_INSTALL_INCLUDEDIR}/weir>")
  foreach(folder IN LISTS weir_exporting)
    set_target_properties(weir_${folder} PROPERTIES CXX_VISIBILITY_PRESET default)
    target_sources(weir_shared PRIVATE "$<TARGET_OBJECTS:weir_${folder}>")
    target_link_libraries(weir_shared PRIVATE weir_${folder})
  endforeach()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/include/weir/weir.h"
    CONTENT "#include \"core/client/weir.h\"  // IWYU pragma: export\n" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/include/weir/weir.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir")
  weir_reached_headers(public_headers core/client/weir.h)
  foreach(header IN LISTS public_headers)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir/${folder}")
  endforeach()
  install(TARGETS weir_shared EXPORT weir)
endif()

set(weir_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
install(TARGETS weir_sdk EXPORT weir)
install(EXPORT weir NAMESPACE weir:: FILE weirTargets.cmake DESTINATION "${weir_cmake_dir}")
configure_package_config_file(sdk/cmake/weirConfig.cmake.in "${PROJECT_BINARY_DIR}/weirConfig.cmake"
  INSTALL_DESTINATION "${weir_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weirConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/weirConfig.cmake" "${PROJECT_BINARY_DIR}/weirConfigVersion.cmake"
  sdk/cmake/WeirAddPlugin.cmake sdk/cmake/check_plugin.cmake sdk/cmake/plugin_exports.map
  DESTINATION "${weir_cmake_dir}")
install(DIRECTORY sdk/abi sdk/cpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir/sdk" FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_BINARY_DIR}/include/weir/sdk/v1/plugin.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir/sdk/v1")
install(DIRECTORY sdk/template sdk/examples DESTINATION "${CMAKE_INSTALL_DATADIR}/weir/sdk" OPTIONAL)
if(TARGET weir)
  install(TARGETS weir RUNTIME)
  install(TARGETS weir_probe RUNTIME DESTINATION "lib/weir")
endif()
get_property(weir_plugins GLOBAL PROPERTY WEIR_SHIPPED_PLUGINS)
if(weir_plugins)
  install(TARGETS ${weir_plugins} LIBRARY DESTINATION "lib/weir/plugins"
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()
