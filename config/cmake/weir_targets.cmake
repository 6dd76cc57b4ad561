# Functions that define targets. Folder names stand for their libraries: DEPS base op means weir_base weir_op. Headers
# take most of the compile time, so all presets except dev compile eight sources of a target together; 24 in tests and,
# with a sanitizer, in core, which are not optimised and have most of their templates in common. Names in their unnamed
# namespaces must differ. The preset dev finds a source that lacks an include.
include(GoogleTest)

# The folders of the public API. Only their libraries export symbols of weir::weir; all others stay hidden, and so does
# every dependency.
set(weir_exporting base tensor trace io op graph scope config place session client)

# Precompiled headers: one for tests, and one for core if the preset enables it; sources with another visibility need
# another.
function(weir_precompiled_header name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HEADERS;FLAGS")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cc" CONTENT "// holds a precompiled header\n" @ONLY)
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/${name}.cc")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  target_compile_options(${name} PRIVATE ${arg_FLAGS})
  target_precompile_headers(${name} PRIVATE <algorithm> <functional> <map> <memory> <mutex> <span> <sstream> <string>
    <thread> <unordered_map> <vector> <fmt/format.h> ${arg_HEADERS} "${PROJECT_SOURCE_DIR}/core/base/errors.h"
    "${PROJECT_SOURCE_DIR}/core/tensor/tensor.h")
endfunction()
if(WEIR_PRECOMPILE)
  weir_precompiled_header(weir_precompiled LIBS fmt::fmt)
  if(WEIR_SHARED)
    weir_precompiled_header(weir_precompiled_exporting LIBS fmt::fmt)
    set_target_properties(weir_precompiled_exporting PROPERTIES CXX_VISIBILITY_PRESET default)
  endif()
endif()
# Tests are never optimised, and their own code is not checked for undefined behaviour: compiling takes most of their
# time.
set(weir_test_flags -O0)
if(WEIR_SANITIZER STREQUAL address)
  list(APPEND weir_test_flags -fno-sanitize=undefined)
endif()
if(BUILD_TESTING)
  weir_precompiled_header(weir_precompiled_test LIBS fmt::fmt GTest::gtest HEADERS <gtest/gtest.h>
    FLAGS ${weir_test_flags})
endif()

# Tests link most of core statically. The default linker needs three times the time of lld.
set(weir_test_linker "")
find_program(WEIR_LLD NAMES ld.lld)
mark_as_advanced(WEIR_LLD)
if(WEIR_LLD)
  set(weir_test_linker -fuse-ld=lld)
endif()

# Uses a precompiled header; the target must have the macros and flags that the header was compiled with.
function(weir_precompile target header)
  get_target_property(sources ${target} SOURCES)
  if(TARGET ${header} AND sources MATCHES "\\.cc(;|$)" AND NOT sources MATCHES "\\.c(;|$)")
    target_link_libraries(${target} PRIVATE fmt::fmt)
    target_compile_options(${target} PRIVATE -fPIC)  # executables would use -fPIE
    target_precompile_headers(${target} REUSE_FROM ${header})
  endif()
endfunction()

# weir_protobuf(<out_var> <root> file.proto...): generates C++ sources into ${PROJECT_BINARY_DIR}/proto. File names, and
# the imports inside the files, are relative to <root>.
function(weir_protobuf out_var root)
  set(generated "")
  set(out_dir "${PROJECT_BINARY_DIR}/proto")
  file(MAKE_DIRECTORY "${out_dir}")
  foreach(file IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" stem "${file}")
    set(outputs "${out_dir}/${stem}.pb.cc" "${out_dir}/${stem}.pb.h")
    add_custom_command(OUTPUT ${outputs}
      COMMAND protobuf::protoc "--proto_path=${root}" "--cpp_out=${out_dir}" "${file}"
      DEPENDS "${root}/${file}" VERBATIM COMMENT "protoc ${file}")
    list(APPEND generated "${out_dir}/${stem}.pb.cc")
  endforeach()
  # Headers take most of the time, so the generated sources are compiled in two groups. Each source has two static names
  # that the others have too, and which the messages of protobuf's own headers must keep.
  set(sources ${generated})
  set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
  list(LENGTH sources count)
  math(EXPR half "(${count} + 1) / 2")
  foreach(group IN ITEMS 0 1)
    set(text "")
    foreach(header IN ITEMS extension_set.h generated_message_reflection.h map_field.h reflection_ops.h wire_format.h)
      string(APPEND text "#include <google/protobuf/${header}>\n")
    endforeach()
    # Descriptors are registered by their first use.
    string(APPEND text "#include \"core/proto/descriptors.h\"\n#define AddDescriptorsRunner LateDescriptors\n")
    math(EXPR first "${group} * ${half}")
    list(SUBLIST sources ${first} ${half} members)
    foreach(source IN LISTS members)
      cmake_path(GET source STEM LAST_ONLY stem)
      string(MAKE_C_IDENTIFIER "${stem}" stem)
      string(APPEND text "#define schemas schemas_${stem}\n#define file_default_instances instances_${stem}\n"
        "#include \"${source}\"\n#undef schemas\n#undef file_default_instances\n")
    endforeach()
    set(file "${out_dir}/generated_${group}.cc")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
    # Generated code is compiled without warnings and without checks for undefined behaviour.
    set_source_files_properties("${file}" PROPERTIES COMPILE_OPTIONS "-w;-fno-sanitize=undefined"
      SKIP_PRECOMPILE_HEADERS ON OBJECT_DEPENDS "${members}")
    list(APPEND generated "${file}")
  endforeach()
  set(${out_var} ${generated} PARENT_SCOPE)
endfunction()

# weir_library(NAME graph SRCS a.cc HDRS a.h DEPS base op [PRIVATE_LIBS Snappy::snappy] [PROTOS weir/proto/x.proto]):
# the static library weir_graph (weir::graph) of one folder. PROTOS are relative to the folder.
function(weir_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SRCS;HDRS;DEPS;PRIVATE_LIBS;PROTOS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME)
    message(FATAL_ERROR "weir_library: wanted NAME, SRCS, HDRS, DEPS, PRIVATE_LIBS, PROTOS; got ${ARGN}")
  endif()
  set(target weir_${arg_NAME})
  set(scope PUBLIC)
  if(arg_SRCS OR arg_PROTOS)
    add_library(${target} STATIC ${arg_SRCS})
    target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
    if(WEIR_SANITIZER_KIND)
      set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 24)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
    target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  endif()
  if(NOT TARGET weir::${arg_NAME})
    add_library(weir::${arg_NAME} ALIAS ${target})
  endif()
  if(arg_NAME IN_LIST weir_checked_accesses)
    target_compile_options(${target} PRIVATE -fsanitize=${weir_access_checks} -fno-sanitize-recover=undefined)
  endif()
  if(arg_HDRS)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_HDRS})
  endif()
  if(arg_PROTOS)
    weir_protobuf(generated "${CMAKE_CURRENT_SOURCE_DIR}" ${arg_PROTOS})
    target_sources(${target} PRIVATE ${generated})
    target_include_directories(${target} SYSTEM PUBLIC "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/proto>")
    target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  endif()
  if(scope STREQUAL PUBLIC)
    set(header weir_precompiled)
    if(WEIR_SHARED AND arg_NAME IN_LIST weir_exporting)
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default)
      set(header weir_precompiled_exporting)
    endif()
    weir_precompile(${target} ${header})
  endif()
  weir_link_folders(${target} ${scope} ${arg_DEPS})
  if(arg_PRIVATE_LIBS)
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE_LIBS})
  endif()
  set_property(GLOBAL APPEND PROPERTY WEIR_FOLDERS ${arg_NAME})
endfunction()

# Links the libraries of folders. weir_check_deps reports missing folders at the end of configuring.
function(weir_link_folders target scope)
  foreach(dep IN LISTS ARGN)
    target_link_libraries(${target} ${scope} weir_${dep})
    set_property(GLOBAL APPEND PROPERTY WEIR_USED_FOLDERS ${dep})
  endforeach()
endfunction()

function(weir_check_deps)
  get_property(used GLOBAL PROPERTY WEIR_USED_FOLDERS)
  list(REMOVE_DUPLICATES used)
  foreach(dep IN LISTS used)
    if(NOT TARGET weir_${dep})
      message(FATAL_ERROR "DEPS names '${dep}', but no folder of that name has a CMakeLists.txt")
    endif()
  endforeach()
endfunction()

# weir_executable(NAME digits SRCS digits.cc DEPS client [LIBS CLI11::CLI11]): build/<preset>/bin/<name>.
function(weir_executable)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;OUTPUT_NAME" "SRCS;DEPS;LIBS")
  add_executable(${arg_NAME} ${arg_SRCS})
  if(arg_OUTPUT_NAME)
    set_target_properties(${arg_NAME} PROPERTIES OUTPUT_NAME ${arg_OUTPUT_NAME})
  endif()
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  weir_link_folders(${arg_NAME} PRIVATE ${arg_DEPS})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBS})
  target_link_options(${arg_NAME} PRIVATE
    $<$<BOOL:${WEIR_HAVE_PACKED_RELOCATIONS}>:LINKER:-z,pack-relative-relocs>)  # sdk/cmake/WeirAddPlugin.cmake
endfunction()

# weir_test(NAME graph_test SRCS a_test.cc DEPS graph LABELS unit [LIBS GTest::gmock] [DATA files] [TIMEOUT 60]): a
# GoogleTest program in build/<preset>/tests, linked with gtest's main. Every TEST is one ctest test.
function(weir_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "SRCS;DEPS;LABELS;LIBS;DEFINITIONS;ENVIRONMENT")
  if(NOT arg_LABELS)
    message(FATAL_ERROR "weir_test ${arg_NAME}: LABELS is missing")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${arg_NAME} ${arg_SRCS})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests"
    UNITY_BUILD_BATCH_SIZE 24)
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${arg_NAME} PRIVATE ${arg_DEFINITIONS})
  target_compile_options(${arg_NAME} PRIVATE ${weir_test_flags})
  target_link_options(${arg_NAME} PRIVATE ${weir_test_linker})
  weir_precompile(${arg_NAME} weir_precompiled_test)
  weir_link_folders(${arg_NAME} PRIVATE ${arg_DEPS})
  target_link_libraries(${arg_NAME} PRIVATE GTest::gtest_main GTest::gtest ${arg_LIBS})
  weir_discover(${arg_NAME} "${arg_NAME}" "${arg_LABELS}" "${arg_ENVIRONMENT}" "" "*" ${arg_TIMEOUT})
  foreach(label IN LISTS arg_LABELS)  # one target per label, for presets that run some labels only
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${arg_NAME})
  endforeach()
endfunction()

# weir_test_again(PROGRAM session_test NAME session_async ENVIRONMENT A=b LABELS unit [FILTER Session.*]): runs the
# tests of a program again in another environment, as <name>.<test>.
function(weir_test_again)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PROGRAM;NAME;FILTER" "LABELS;ENVIRONMENT")
  if(NOT arg_FILTER)
    set(arg_FILTER "*")
  endif()
  weir_discover(${arg_PROGRAM} "${arg_NAME}" "${arg_LABELS}" "${arg_ENVIRONMENT}" "${arg_NAME}." "${arg_FILTER}" 300)
endfunction()

# Adds each test of a program as a ctest test. With a sanitizer, the start of a process is most of the time of a test;
# there each suite is a ctest test.
function(weir_discover program name labels environment prefix filter timeout)
  set(environment "WEIR_BUILD_DIR=${PROJECT_BINARY_DIR}" "WEIR_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/tests/cache" ${environment})
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  if(WEIR_SANITIZER_KIND)
    math(EXPR timeout "${timeout} * 3")
    file(REMOVE "${file}_suites.txt")
    set(text "")
    foreach(variable IN ITEMS filter prefix labels environment timeout)
      string(APPEND text "set(${variable} \"${${variable}}\")\n")
    endforeach()
    file(WRITE "${file}_suites.cmake" "set(program \"${PROJECT_BINARY_DIR}/tests/${program}\")
set(folder \"${PROJECT_BINARY_DIR}\")\nset(list \"${file}_suites.txt\")\n${text}"
      "include(\"${PROJECT_SOURCE_DIR}/config/cmake/weir_test_suites.cmake\")\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}_suites.cmake")
    return()
  endif()
  gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_LIST ${name}_tests
    TEST_PREFIX "${prefix}" TEST_FILTER "${filter}" WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
    PROPERTIES TIMEOUT ${timeout})
  # List properties do not survive discovery, so a file that ctest reads afterwards sets them.
  file(WRITE "${file}_properties.cmake" "foreach(test IN LISTS ${name}_tests)
  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${labels}\" ENVIRONMENT \"${environment}\")
endforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}_properties.cmake")
endfunction()

# weir_fuzz(NAME fuzz_graph_def SRCS a.cc DEPS graph [SEEDS dir]): a libFuzzer program in build/fuzz/fuzz; other presets
# skip it. tools/test runs every program in that folder, with the inputs in <name>_seeds as seeds.
function(weir_fuzz)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SEEDS" "SRCS;DEPS;LIBS")
  if(NOT WEIR_FUZZ)
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SRCS})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_options(${arg_NAME} PRIVATE -fsanitize=fuzzer)
  weir_link_folders(${arg_NAME} PRIVATE ${arg_DEPS})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBS})
  if(arg_SEEDS)
    add_custom_command(TARGET ${arg_NAME} POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy_directory
      "${CMAKE_CURRENT_SOURCE_DIR}/${arg_SEEDS}" "${PROJECT_BINARY_DIR}/fuzz/${arg_NAME}_seeds" VERBATIM)
  endif()
  if(NOT TARGET fuzz)
    add_custom_target(fuzz)
  endif()
  add_dependencies(fuzz ${arg_NAME})
endfunction()
