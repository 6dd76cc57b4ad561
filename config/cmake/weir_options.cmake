# Options of the build, and the flags of all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/static")

option(WEIR_WERROR "Treat warnings as errors" OFF)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  set(shared ON)
else()
  set(shared OFF)
endif()
option(WEIR_SHARED "Build and install the shared library weir::weir" ${shared})
option(WEIR_PRECOMPILE "Compile the headers that all of core includes once" OFF)
option(WEIR_FUZZ "Build the fuzz targets (clang only)" OFF)
set(WEIR_SANITIZER none CACHE STRING "none, address (with undefined-behaviour checks) or thread")
set_property(CACHE WEIR_SANITIZER PROPERTY STRINGS none address thread)
set(WEIR_KERNEL_DTYPES full CACHE STRING "dtypes that kernels are built for: full, or short for sanitizer builds")
set_property(CACHE WEIR_KERNEL_DTYPES PROPERTY STRINGS full short)
foreach(library OPENBLAS ONEDNN LLVM IMAGES GRPC TLS)
  set(WEIR_${library} AUTO CACHE STRING "The plugin that uses this library: AUTO, ON or OFF")
  set_property(CACHE WEIR_${library} PROPERTY STRINGS AUTO ON OFF)
endforeach()

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(WEIR_WERROR)
  add_compile_options(-Werror)
endif()

if(WEIR_SANITIZER STREQUAL none)
  set(WEIR_SANITIZER_KIND 0)
elseif(WEIR_SANITIZER STREQUAL address)
  set(WEIR_SANITIZER_KIND 1)
  # Checks of every single access cost half of the compile time of kernels and a quarter of core's, and the address
  # checks find most of what they find. Folders that read bytes of files and messages keep them.
  set(weir_access_checks null,alignment,object-size,pointer-overflow,nonnull-attribute,returns-nonnull-attribute)
  set(weir_sanitize -fsanitize=address,undefined -fno-sanitize=vptr,${weir_access_checks}
    -fno-sanitize-recover=undefined)
  set(weir_checked_accesses base tensor io graph config plugin builtin)
elseif(WEIR_SANITIZER STREQUAL thread)
  set(WEIR_SANITIZER_KIND 2)
  # libprotobuf is not built for the thread sanitizer, and its headers lay out maps differently if they see the macro.
  # The macro is therefore removed from every source, and the macro that libstdc++ derives from it is set explicitly.
  set(weir_sanitize -fsanitize=thread -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
else()
  message(FATAL_ERROR "WEIR_SANITIZER is '${WEIR_SANITIZER}', wanted none, address or thread")
endif()
add_compile_definitions(WEIR_SANITIZER_KIND=${WEIR_SANITIZER_KIND})
if(WEIR_SANITIZER_KIND)
  add_compile_options(${weir_sanitize} -fno-omit-frame-pointer)
  add_link_options(${weir_sanitize})
endif()
if(WEIR_KERNEL_DTYPES STREQUAL short)
  add_compile_definitions(WEIR_KERNEL_DTYPES_SHORT=1)
endif()
if(WEIR_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "WEIR_FUZZ needs clang (preset fuzz)")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# The compiler collects garbage only above 1 GiB, which few sources reach; saves a tenth of its time.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(--param=ggc-min-heapsize=1048576)
endif()

# Each test links most of core with its debug information, of which a tree would have gigabytes.
add_link_options(LINKER:--compress-debug-sections=zlib)

# ccache is optional. These settings let a second clone share the cache.
find_program(WEIR_CCACHE ccache)
mark_as_advanced(WEIR_CCACHE)
if((WEIR_PRECOMPILE OR BUILD_TESTING) AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-fpch-preprocess)  # ccache needs it for precompiled headers
endif()
if(WEIR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${WEIR_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
