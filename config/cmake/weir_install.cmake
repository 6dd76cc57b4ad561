# weir::weir, the shared library for external users, and the install components:
#   component sdk      include/weir/sdk  lib/cmake/weir  share/weir/sdk; needs no build
#   component runtime  bin/weir  lib/libweir.so.X.Y  lib/weir/{weir_probe,plugins/*.so}
#                      lib/weir/<plugin>/*.so, parts that plugins load late
#                      include/weir/{weir.h,extra.h,raw_ops.h,core}
# The target `shipped` builds the component runtime. The package also works from the build folder.
include(CMakePackageConfigHelpers)

if(WEIR_SHARED)
  set(map "${PROJECT_SOURCE_DIR}/config/cmake/weir_exports.map")
  add_library(weir_shared SHARED)
  add_library(weir::weir ALIAS weir_shared)
  set_target_properties(weir_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME weir EXPORT_NAME weir
    LINK_DEPENDS "${map}" VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(weir_shared INTERFACE cxx_std_20)
  target_link_options(weir_shared PRIVATE "LINKER:--version-script=${map}" "LINKER:-z,relro" "LINKER:-z,now"
    $<$<BOOL:${WEIR_HAVE_PACKED_RELOCATIONS}>:LINKER:-z,pack-relative-relocs>)
  target_include_directories(weir_shared INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_BINARY_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR};${CMAKE_INSTALL_INCLUDEDIR}/weir>")
  foreach(folder IN LISTS weir_exporting)
    target_sources(weir_shared PRIVATE "$<TARGET_OBJECTS:weir_${folder}>")
    target_link_libraries(weir_shared PRIVATE weir_${folder})
  endforeach()
  foreach(header IN ITEMS weir.h extra.h)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/include/weir/${header}"
      CONTENT "#include \"core/client/${header}\"  // IWYU pragma: export\n" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/include/weir/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir"
      COMPONENT runtime)
  endforeach()
  # tools/lint proves that the list is what these two reach.
  file(STRINGS "${PROJECT_SOURCE_DIR}/config/public_headers.txt" public_headers REGEX "^core/")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/config/public_headers.txt")
  foreach(header IN LISTS public_headers)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir/${folder}" COMPONENT runtime)
  endforeach()
  if(TARGET raw_ops)
    install(FILES "${PROJECT_BINARY_DIR}/include/weir/raw_ops.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir"
      COMPONENT runtime)
  endif()
endif()

set(weir_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weir")

# weir_install_package(<target> <file> <component>): exports the target for the install and for the build folder.
function(weir_install_package target file component)
  install(TARGETS ${target} EXPORT ${target}
    LIBRARY COMPONENT ${component} NAMELINK_COMPONENT ${component})
  install(EXPORT ${target} NAMESPACE weir:: FILE ${file} DESTINATION "${weir_cmake_dir}" COMPONENT ${component})
  export(EXPORT ${target} NAMESPACE weir:: FILE "${PROJECT_BINARY_DIR}/${file}")
endfunction()
weir_install_package(weir_sdk weirSdkTargets.cmake sdk)
if(WEIR_SHARED)
  weir_install_package(weir_shared weirTargets.cmake runtime)
endif()

set(weir_plugin_dir "lib/weir/plugins")
set(weir_package_files WeirAddPlugin.cmake check_plugin.cmake plugin_exports.map)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weirConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_package_config_file(sdk/cmake/weirConfig.cmake.in "${PROJECT_BINARY_DIR}/installed/weirConfig.cmake"
  INSTALL_DESTINATION "${weir_cmake_dir}" PATH_VARS weir_plugin_dir)
configure_package_config_file(sdk/cmake/weirConfig.cmake.in "${PROJECT_BINARY_DIR}/weirConfig.cmake"
  INSTALL_DESTINATION "${PROJECT_BINARY_DIR}" INSTALL_PREFIX "${PROJECT_BINARY_DIR}" PATH_VARS weir_plugin_dir)
foreach(file IN LISTS weir_package_files)
  configure_file("sdk/cmake/${file}" "${PROJECT_BINARY_DIR}/${file}" COPYONLY)
endforeach()
list(TRANSFORM weir_package_files PREPEND sdk/cmake/)
install(FILES "${PROJECT_BINARY_DIR}/installed/weirConfig.cmake" "${PROJECT_BINARY_DIR}/weirConfigVersion.cmake"
  ${weir_package_files} DESTINATION "${weir_cmake_dir}" COMPONENT sdk)

install(DIRECTORY sdk/abi sdk/cpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir/sdk" COMPONENT sdk
  FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_BINARY_DIR}/include/weir/sdk/v1/plugin.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir/sdk/v1" COMPONENT sdk)
install(DIRECTORY sdk/template sdk/examples DESTINATION "${CMAKE_INSTALL_DATADIR}/weir/sdk" COMPONENT sdk)
install(DIRECTORY tests/ops/cases/ DESTINATION "${CMAKE_INSTALL_DATADIR}/weir/op_cases" COMPONENT sdk
  FILES_MATCHING PATTERN "*.txt")
install(FILES sdk/README.md sdk/CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DATADIR}/weir/sdk" COMPONENT sdk)
install(FILES config/weir.toml README.md CHANGELOG.md LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/weir"
  COMPONENT runtime)
get_property(weir_plugins GLOBAL PROPERTY WEIR_SHIPPED_PLUGINS)
if(weir_plugins)
  install(TARGETS ${weir_plugins} LIBRARY DESTINATION "${weir_plugin_dir}"
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
    COMPONENT runtime)
endif()
set(weir_shipped ${weir_plugins})
foreach(target IN ITEMS weir weir_probe weir_shared raw_ops)
  if(TARGET ${target})
    list(APPEND weir_shipped ${target})
  endif()
endforeach()
if(TARGET weir)
  install(TARGETS weir RUNTIME COMPONENT runtime)
  install(TARGETS weir_probe RUNTIME DESTINATION "lib/weir" COMPONENT runtime)
endif()
add_custom_target(shipped)
if(weir_shipped)
  add_dependencies(shipped ${weir_shipped})
endif()
