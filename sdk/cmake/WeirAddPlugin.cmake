# weir_add_plugin(<name> SOURCES a.cc... [OUTPUT_NAME file] [OUTPUT_DIRECTORY dir] [COMPILE_OPTIONS ...] [LIBS ...]
#                 [INSTALL] [NO_CHECK])
#
# Builds a loadable plugin file: the module <output name>.so, which exports only weir_plugin_query_v1 and is checked
# after linking. The target is plugin_<name>; the file is written to OUTPUT_DIRECTORY, by default
# ${CMAKE_BINARY_DIR}/lib/weir/plugins. LIBS are linked privately; the SDK is always linked. INSTALL installs the file
# into lib/weir/plugins of the prefix, with the permissions that the loader requires. NO_CHECK skips the static check,
# for plugins that are broken on purpose. A plugin may have files for several instruction sets, by convention `file.so`
# and `file@v4.so`, with the same name in WEIR_PLUGIN but different COMPILE_OPTIONS and OUTPUT_NAME (sdk/README.md). A
# sanitizer build sets WEIR_SANITIZER (none, address, thread): the loader requires host and plugin to agree.
set(_weir_plugin_cmake_dir "${CMAKE_CURRENT_LIST_DIR}")
find_program(WEIR_NM NAMES "${CMAKE_NM}" nm)
find_program(WEIR_READELF NAMES "${CMAKE_READELF}" readelf)
mark_as_advanced(WEIR_NM WEIR_READELF)

# Packed relocations are a few KiB instead of a quarter of a large plugin's MiB, which each start would read. They need
# glibc 2.36.
include(CheckCXXSourceCompiles)
include(CMakePushCheckState)
cmake_push_check_state()
set(CMAKE_REQUIRED_LINK_OPTIONS "LINKER:-z,pack-relative-relocs" "LINKER:--fatal-warnings")
check_cxx_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error
#endif
int main() {}" WEIR_HAVE_PACKED_RELOCATIONS)
cmake_pop_check_state()

function(weir_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL;NO_CHECK" "OUTPUT_NAME;OUTPUT_DIRECTORY"
    "SOURCES;COMPILE_OPTIONS;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "weir_add_plugin(${name}): wanted SOURCES and optionally OUTPUT_NAME, OUTPUT_DIRECTORY, "
      "COMPILE_OPTIONS, LIBS, INSTALL, NO_CHECK; got ${ARGN}")
  endif()
  if(NOT arg_OUTPUT_NAME)
    set(arg_OUTPUT_NAME ${name})
  endif()
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/weir/plugins")
  endif()
  set(target plugin_${name})
  set_property(GLOBAL APPEND PROPERTY WEIR_PLUGINS ${target})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME "${arg_OUTPUT_NAME}" LIBRARY_OUTPUT_DIRECTORY "${arg_OUTPUT_DIRECTORY}"
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN" BUILD_WITH_INSTALL_RPATH ON
    LINK_DEPENDS "${_weir_plugin_cmake_dir}/plugin_exports.map")
  target_link_libraries(${target} PRIVATE weir::sdk ${arg_LIBS})
  target_compile_options(${target} PRIVATE ${arg_COMPILE_OPTIONS})
  target_link_options(${target} PRIVATE
    "LINKER:--version-script=${_weir_plugin_cmake_dir}/plugin_exports.map"
    "LINKER:-z,now" "LINKER:-z,relro" "LINKER:-z,noexecstack" "LINKER:--enable-new-dtags"
    $<$<BOOL:${WEIR_HAVE_PACKED_RELOCATIONS}>:LINKER:-z,pack-relative-relocs>)
  set(sanitizer 0)
  if(WEIR_SANITIZER STREQUAL address)
    set(sanitizer 1)
  elseif(WEIR_SANITIZER STREQUAL thread)
    set(sanitizer 2)
  endif()
  # With clang the executable provides the sanitizer runtime's symbols.
  if(sanitizer EQUAL 0 OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  if(NOT DEFINED WEIR_SANITIZER_KIND)  # weir's own build sets this and the flags for every target
    target_compile_definitions(${target} PRIVATE WEIR_SANITIZER_KIND=${sanitizer})
    if(sanitizer)
      target_compile_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZER})
      target_link_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZER})
    endif()
  endif()
  # The loader refuses files and folders that other users may write.
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND chmod 0755 "$<TARGET_FILE:${target}>" "$<TARGET_FILE_DIR:${target}>" VERBATIM)
  if(arg_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION "lib/weir/plugins"
      PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
  if(NOT arg_NO_CHECK)
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} "-DPLUGIN=$<TARGET_FILE:${target}>" "-DNM=${WEIR_NM}" "-DREADELF=${WEIR_READELF}"
        -P "${_weir_plugin_cmake_dir}/check_plugin.cmake" VERBATIM)
  endif()
endfunction()
