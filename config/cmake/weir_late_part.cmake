# weir_add_late_part(<plugin> <name> SOURCES a.cc... [LIBS ...] [COMPILE_OPTIONS ...])
#
# Builds lib/weir/<plugin>/<name>.so, a part of a shipped plugin that the plugin loads on its first use
# (sdk/cpp/late_part.h). The target is weir_<plugin>_<name>, which exports symbols that begin with "weir_"; the plugin
# depends on it.
function(weir_add_late_part plugin name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;LIBS;COMPILE_OPTIONS")
  set(target weir_${plugin}_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/weir/${plugin}"
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE weir::sdk ${arg_LIBS})
  target_compile_options(${target} PRIVATE ${arg_COMPILE_OPTIONS})
  set(map "${PROJECT_SOURCE_DIR}/config/cmake/weir_late_part.map")
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}" "LINKER:-z,now" "LINKER:-z,relro"
    "LINKER:-z,noexecstack" $<$<BOOL:${WEIR_HAVE_PACKED_RELOCATIONS}>:LINKER:-z,pack-relative-relocs>)
  if(WEIR_SANITIZER STREQUAL none)
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  # As the loader wants of plugins: no other user may write the file or its folder.
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND chmod 0755 "$<TARGET_FILE:${target}>" "$<TARGET_FILE_DIR:${target}>" VERBATIM)
  add_dependencies(plugin_${plugin} ${target})
  install(TARGETS ${target} LIBRARY DESTINATION "lib/weir/${plugin}" COMPONENT runtime
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()
